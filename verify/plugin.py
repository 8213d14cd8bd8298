"""pytest as the front door: options, verdict words, progress, and the report after the run.

Loaded by the root conftest.py, or from an installed package with ``pytest -p verify.plugin --pyargs verify``.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest

from simulate.monte_carlo import open_executor
from verify.engine import Session
from verify.judge import readings
from verify.model import AnyClaim, Claim, Identity, Tier
from verify.options import OPTIONS, Plan, plan
from verify.results import Row

__all__ = ["Verification"]

EVERY = 10.0
"""Seconds between two lines of progress."""

REPORT_DIR = "losscurv-report"

SHOWN = {
    "agrees": ("agrees", ".", ("AGREES", {"green": True})),
    "disagrees": ("disagrees (expected)", "d", ("DISAGREES (expected)", {"yellow": True})),
    "undecided": ("undecided", "u", ("UNDECIDED", {"yellow": True})),
}


class Verification:
    """One run of the claims: made when the first claim is tested, closed with the test session."""

    def __init__(self, plan: Plan, config: pytest.Config) -> None:
        self.plan = plan
        self._config = config
        self._stack = contextlib.ExitStack()
        self._session: Session | None = None
        self._spoken = time.monotonic()
        self.notes: list[str] = []
        self.differences: list[str] = []

    @property
    def session(self) -> Session:
        """The session behind the claims, with its workers."""
        if self._session is None:
            executor: Executor = self._stack.enter_context(
                open_executor(self.plan.settings.workers, self.plan.executor)
            )
            self._session = Session(self.plan.claims, self.plan.settings, executor)
            self._session.listener = self._speak
        return self._session

    def row(self, claim: AnyClaim, label: str) -> Row:
        """One reading of a claim; a broken claim has one row for all of its readings."""
        rows = self.session.rows(claim)
        return next((row for row in rows if row.reading == label), rows[0])

    def rows(self) -> list[Row]:
        """What has been judged so far."""
        return self._session.finished_rows() if self._session else []

    def close(self) -> None:
        """Stop the workers and write the report, if one was asked for."""
        self._stack.close()
        if self._session is None:
            return
        if self.plan.report_dir is not None or self.plan.replay is not None:
            from verify import report, suite

            results = suite.collect(self._session, self.plan, interrupted=len(self.rows()) < len(_readings(self.plan)))
            if self.plan.report_dir is not None:
                self.notes.append(f"report: {report.write(results, self.plan.report_dir)}")
            if self.plan.replay is not None:
                self.differences = suite.differences(self.plan.replay, results)
                self.notes += self.differences or ["replay: every score and verdict is the same"]

    def _speak(self) -> None:
        progress = self.session.progress()
        if time.monotonic() - self._spoken < EVERY or progress.done == progress.total:
            return
        self._spoken = time.monotonic()
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and not self._config.option.verbose < 0:
            reporter.ensure_newline()
            reporter.write_line(
                f"  {progress.done} of {progress.total} claims, {progress.elapsed:.0f} s, "
                f"about {progress.left:.0f} s left"
            )


KEY = pytest.StashKey[Verification]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a run, the same as those of ``losscurv report``."""
    group = parser.getgroup("verification", "theory against simulation")
    for flag, keywords in OPTIONS:
        group.addoption(flag, **keywords)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options before anything runs."""
    named = _names_verify(config)
    try:
        chosen = plan(
            {flag.lstrip("-").replace("-", "_"): config.getoption(flag) for flag, _ in OPTIONS},
            tier=Tier.DEFAULT if named else Tier.SMOKE,
            report_dir=REPORT_DIR if named and not config.option.collectonly else None,
        )
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[KEY] = Verification(chosen, config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per claim and reading."""
    if "row" in metafunc.fixturenames:
        cases = _readings(metafunc.config.stash[KEY].plan)
        ids = [claim.id + (f" [{label}]" if label.startswith("as our") else "") for claim, label in cases]
        metafunc.parametrize("row", cases, ids=ids, indirect=True)


@pytest.fixture(scope="session")
def verification(request: pytest.FixtureRequest) -> Verification:
    """The run of the claims that this test session judges."""
    return request.config.stash[KEY]


@pytest.fixture
def row(request: pytest.FixtureRequest, verification: Verification, record_property: Any) -> Row:
    """The row of one reading of one claim."""
    claim, label = request.param
    found = verification.row(claim, label)
    record_property("verdict", found.verdict)
    record_property("expected", found.expected)
    for i, point in enumerate(found.points):
        record_property(f"measured[{i}]", point.measured)
        record_property(f"predicted[{i}]", point.predicted)
        record_property(f"replicates[{i}]", point.replicates)
    return found


def pytest_report_header(config: pytest.Config) -> str:
    """Tier, seed and workers: what it takes to run the same again."""
    settings = config.stash[KEY].plan.settings
    return f"verification: tier {settings.tier}, seed {settings.seed}, workers {settings.workers}, {settings.device}"


def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> Any:
    """Verdict words for claims; other tests keep pytest's own."""
    verdict = dict(report.user_properties).get("verdict")
    if report.when == "call" and report.passed and verdict in SHOWN:
        return SHOWN[str(verdict)]
    return None


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Write the report; a replay that differs fails the run."""
    verification = session.config.stash[KEY]
    try:
        verification.close()
    except (OSError, ValueError) as error:
        verification.notes.append(f"report not written: {error}")
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
    if verification.differences and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    yield


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table of claims and the line that counts them."""
    verification = config.stash[KEY]
    rows = verification.rows()
    if not rows:
        return
    from rich.console import Console

    from verify.terminal import table, tally

    terminalreporter.section("theory against simulation")
    console = Console(file=terminalreporter._tw._file, highlight=False)  # noqa: SLF001 - pytest offers no public file
    if not config.option.verbose < 0:
        console.print(table(rows))
    for note in verification.notes:
        terminalreporter.write_line(note)
    terminalreporter.write_line(tally(rows))


def _readings(plan: Plan) -> list[tuple[AnyClaim, str]]:
    return [(claim, label) for claim in plan.claims for label in _labels(claim)]


def _labels(claim: AnyClaim) -> list[str]:
    if isinstance(claim, Claim):
        return [reading.label for reading in readings(claim)]
    if isinstance(claim, Identity) and claim.printed:
        return ["corrected", "as our copy reads"]
    return ["theory"]


def _names_verify(config: pytest.Config) -> bool:
    """Whether the command line names the verify folder or something in it."""
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        return False
    here = Path(__file__).parent
    named = [Path(str(arg).partition("::")[0]) for arg in config.args]
    return any(str(p) == "verify" or (config.invocation_params.dir / p).resolve().is_relative_to(here) for p in named)
