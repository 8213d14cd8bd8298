"""pytest as the front door: options, verdict words, progress, and the report after the run.

Loaded by the root conftest.py; where it is installed, by losscurv_pytest.py for ``pytest --pyargs verify``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from verify.escapes import escaped
from verify.heartbeat import Heartbeat
from verify.judging.judge import labels
from verify.model import AnyClaim, Tier
from verify.model.observation import Observation
from verify.results import Observed, Results, Row
from verify.running.engine import Session
from verify.running.options import OPTIONS, REPORT_DIR
from verify.running.request import Request, requested
from verify.running.rows import row_id

EVERY = 3.0
"""Seconds between two lines of progress."""

BROKEN = ("failed", "B", ("BROKEN", {"purple": True}))
OBSERVED = ("observed", "o", ("OBSERVED", {"green": True}))
EXPECTED = {
    "agrees": ("agrees", ".", "green"),
    "disagrees": ("disagrees (expected)", "d", "green"),
    "undecided": ("undecided", "u", "yellow"),
}
"""Category, letter and colour of each verdict that does not fail."""

NAMES = tuple(flag.removeprefix("--").replace("-", "_") for flag, _ in OPTIONS)


class Verification:
    """The run of the claims in one test session.

    The options are resolved when they are first needed: a run that collects no claim does not load them.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._request: Request | None = None
        self._session: Session | None = None
        self._stack = contextlib.ExitStack()
        self._spoken = time.monotonic()
        self.notes: list[str] = []
        self.differences: list[str] = []
        self.results: Results | None = None

    @property
    def resolved(self) -> bool:
        """Whether the options have been resolved."""
        return self._request is not None

    @property
    def request(self) -> Request:
        """Request of the session.

        Raises
        ------
        ValueError
            If an option cannot be used.
        """
        if self._request is None:
            named = _names_verify(self._config)
            # A test run of the whole project checks the smoke tier and writes no report.
            self._request = requested(
                {name: self._config.getoption(name) for name in NAMES},
                tier=Tier.DEFAULT if named else Tier.SMOKE,
                report_dir=REPORT_DIR if named else None,
            )
        return self._request

    def restrict(self, items: list[AnyClaim | Observation]) -> None:
        """Only these claims and observations are left after pytest's own selection."""
        chosen, request = {item.id for item in items}, self.request
        claims = tuple(claim for claim in request.claims if claim.id in chosen)
        observations = tuple(o for o in request.observations if o.id in chosen)
        left, total = len(claims) + len(observations), len(request.asked)
        if left < total:
            fewer = len(request.claims) - len(claims)
            self._request = dataclasses.replace(
                request,
                claims=claims,
                observations=observations,
                selection=f"{request.selection}: {left} of {total} claims and observations, chosen by pytest",
                left_out={**request.left_out, **({"pytest": fewer} if fewer else {})},
            )

    def session(self) -> Session:
        """The session; where the report goes is checked and workers are opened, before anything is judged.

        Raises
        ------
        ValueError, OSError
            If the folder cannot be written or the workers cannot be had.
        """
        from verify.running.suite import open_session

        if self._session is None:
            self._session = self._stack.enter_context(open_session(self.request, self._tell))
            self._session.pump.listener = self._speak
        return self._session

    def row(self, claim: AnyClaim, label: str) -> Row:
        """One reading of a claim; a broken claim has one row for all of its readings."""
        rows = self.session().rows(claim)
        return next((row for row in rows if row.reading == label), rows[0])

    def rows(self) -> list[Row]:
        """Rows judged so far."""
        return self._session.finished_rows() if self._session else []

    def observations(self) -> list[Observed]:
        """Observations made so far."""
        return self._session.finished_observations() if self._session else []

    def interrupt(self) -> None:
        """Stop the workers without waiting for what they are at."""
        # `open_workers` ends its workers at once if an exception passes through it.
        self._stack.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)

    def close(self) -> None:
        """Stop the workers, look at the run as a whole, and write the report, if one was asked for.

        Raises
        ------
        ValueError, OSError
            If the report cannot be written.
        """
        with Heartbeat(self._tell_if_asked, "stopping the workers") as heart:
            self._stack.close()
            made = bool(self.rows() or self.observations())
            if self._session is None or not made or hasattr(self._config, "workerinput"):
                return  # a process of pytest-xdist has a share of the run only
            from verify.reporting import publish
            from verify.running import suite

            progress, asked = self._session.progress(), self.request
            results = self.results = suite.collect(
                self._session,
                asked,
                interrupted=progress.done < progress.total,
                paged=asked.report_dir is not None,
                doing=heart.doing,
            )
            doubts = suite.doubts(results)
            notes, changed = suite.replayed(results, asked)
            self.differences, self.notes = [*changed, *doubts], [*notes, *doubts]
            if asked.report_dir is not None:
                heart.doing("writing the page")
                one_file = asked.options.one_file
                page = publish(results, asked.report_dir, asked.settings.workers, one_file=one_file)
                self.notes.append(f"report: {page}")

    def closing_lines(self, *, quiet: bool) -> list[str]:
        """Return the lines at the end of a run: one screen, or the table of claims, and the counts.

        What failed stands above, among the failures of pytest.
        """
        from verify.page import summary, terminal

        notes = [escaped(note) for note in self.notes]
        if self.results is None:
            return [*notes, terminal.tally(self.rows(), self.observations())]
        if quiet:
            return summary.ending(self.results, notes)
        table = self.request.options.table
        return summary.closing_text(self.results, (), notes, table=table).splitlines()

    def _speak(self) -> None:
        """Say from time to time how far the run is, and how long it takes yet."""
        if self._session is None or time.monotonic() - self._spoken < EVERY:
            return
        progress = self._session.progress()
        if progress.done == progress.total:
            return
        self._spoken = time.monotonic()
        self._tell_if_asked(str(progress))

    def _tell_if_asked(self, line: str) -> None:
        """A line of progress, but for who wants it quiet."""
        if self._config.option.verbose >= 0:
            self._tell(f"  {line}")

    def _tell(self, line: str) -> None:
        """A line among those of the tests."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        # A process of pytest-xdist has no terminal.
        if reporter is None:
            return
        # Otherwise pytest would keep the line as output of a test.
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            reporter.ensure_newline()
            reporter.write_line(escaped(line))


KEY = pytest.StashKey[Verification]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a run, the same as those of ``losscurv report``."""
    group = parser.getgroup("verification", "theory against simulation")
    for flag, keywords in OPTIONS:
        group.addoption(flag, **keywords)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options before anything runs."""
    verification = config.stash[KEY] = Verification(config)
    if config.option.help or config.option.version:
        return
    if _names_verify(config) or any(
        config.getoption(name) not in (None, False, "cpu", "", ()) for name in NAMES
    ):
        with _usage_errors():
            _require_one_process(config, verification.request)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return the lines above a test run: settings, what is judged, and what is left out."""
    verification = config.stash[KEY]
    heading = verification.request.heading if verification.resolved else ()
    return [escaped(f"verification: {line}") for line in heading]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per claim and reading, and one per observation."""
    if "observed" in metafunc.fixturenames:
        with _usage_errors():
            observations = metafunc.config.stash[KEY].request.observations
        metafunc.parametrize("observed", observations, ids=[o.id for o in observations], indirect=True)
    if "judged" in metafunc.fixturenames:
        with _usage_errors():
            cases = [(c, label) for c in metafunc.config.stash[KEY].request.claims for label in labels(c)]
        metafunc.parametrize("judged", cases, ids=[row_id(*case) for case in cases], indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the test of nothing that pytest makes of an empty list."""
    verification = config.stash[KEY]
    for name, kind in (("judged", "claims"), ("observed", "observations")):
        if verification.resolved and not getattr(verification.request, kind):
            items[:] = [item for item in items if name not in getattr(item, "fixturenames", ())]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Judge only what pytest has selected; find out now whether that is possible."""
    config = session.config
    params = [spec.params for item in session.items if (spec := getattr(item, "callspec", None))]
    chosen = [named["judged"][0] for named in params if "judged" in named]
    chosen += [named["observed"] for named in params if "observed" in named]
    if not chosen:
        return
    verification = config.stash[KEY]
    verification.restrict(chosen)
    # `--collect-only` judges nothing, so it needs no workers.
    if not config.option.collectonly:
        with _usage_errors():
            verification.session()


@pytest.fixture(scope="session")
def verification(request: pytest.FixtureRequest) -> Verification:
    """The run of the claims that this test session judges."""
    return request.config.stash[KEY]


@pytest.fixture
def judged(request: pytest.FixtureRequest, verification: Verification) -> Row:
    """The row of one reading of one claim."""
    claim, label = request.param
    row = verification.row(claim, label)
    # not record_property: it warns of a schema that pytest's own files do not keep, and warnings are errors here
    request.node.user_properties.append(("verdict", row.verdict))
    return row


@pytest.fixture
def observed(request: pytest.FixtureRequest, verification: Verification) -> Observed:
    """The record of one observation."""
    made = verification.session().observed(request.param)
    request.node.user_properties.append(("observed", made.replicates))
    return made


def pytest_report_teststatus(report: pytest.TestReport) -> Any:
    """Verdict words for claims and a word for observations; other tests keep pytest's own."""
    if report.when == "call" and "observed" in dict(report.user_properties):
        return OBSERVED if report.passed else BROKEN if report.failed else None
    verdict = dict(report.user_properties).get("verdict") if report.when == "call" else None
    if verdict is None or report.skipped:
        return None
    if report.failed:
        mark = (f"{str(verdict).upper()} (surprise)", {"red": True})
        return BROKEN if verdict == "broken" else ("failed", "F", mark)
    name, letter, colour = EXPECTED[str(verdict)]
    return name, letter, (name.replace(str(verdict), str(verdict).upper()), {colour: True})


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None]:
    """Write the report; a replay that differs fails the run."""
    verification = session.config.stash[KEY]
    try:
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            verification.interrupt()
        verification.close()
    except (OSError, ValueError) as error:
        verification.notes.append(f"report not written: {error}")
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
    if verification.differences and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    # All of the above first: pytest prints its summary, which shows these results, after the inner hooks.
    yield


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the verdicts and the line that counts them."""
    verification = config.stash[KEY]
    rows, observations = verification.rows(), verification.observations()
    if not (rows or observations):
        return
    terminalreporter.section(escaped(f"theory against simulation: {verification.request}"))
    for line in verification.closing_lines(quiet=config.option.verbose < 0):
        terminalreporter.write_line(line)


@contextlib.contextmanager
def _usage_errors() -> Iterator[None]:
    """Turn errors of usage into one line of pytest instead of a traceback."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise pytest.UsageError(escaped(str(error))) from None


def _require_one_process(config: pytest.Config, request: Request) -> None:
    """pytest-xdist would have each of its processes write a report of its share over that of the others."""
    if (request.report_dir or request.replay) and config.getoption("dist", "no") != "no":
        raise ValueError(
            "a report must be made by one process of pytest, which has --workers of its own; leave out -n"
        )


def _names_verify(config: pytest.Config) -> bool:
    """Whether the command line names the verify folder or something in it."""
    # `testpaths` of a configuration is no request for a report.
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return False
    here, started = Path(__file__).parent, config.invocation_params.dir
    named = [arg.partition("::")[0] for arg in config.args]
    return any(
        (started / arg).resolve().is_relative_to(here)
        or (config.option.pyargs and arg.partition(".")[0] == __package__)
        for arg in named
    )
