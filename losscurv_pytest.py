"""Plugin of pytest that is loaded wherever losscurv is installed: `losscurv_check`, and `--pyargs verify`.

It imports nothing but pytest; all else is loaded when it is used. It is not inside the package `losscurv`: importing
that would end the run of anybody whose project has a `simulate.py`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from verify.checking import Checked

__all__ = ["MOST", "losscurv_check"]

MOST = 1024
"""Checks of a session; each uses this part of its error, however many there are and whatever is selected."""

COUNT = "losscurv_checks"
"""Under which a process of pytest-xdist reports how many it has made."""

_made = pytest.StashKey[int]()

TOO_MANY = (
    "this session makes more than {most:,} checks, which share its error of {error:g}; run the tests in several "
    "sessions, or judge several points in one check"
)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Load the options and fixtures of the report before pytest reads its command line, for ``--pyargs verify``."""
    known = early_config.known_args_namespace
    if known.pyargs and any(
        arg.partition("::")[0].partition(".")[0] == "verify" for arg in known.file_or_dir
    ):
        try:
            import losscurv  # noqa: F401 - refuses a `verify` that is not ours
        except ImportError:
            return
        early_config.pluginmanager.import_plugin("verify.plugin")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the error of the session."""
    parser.getgroup("losscurv", "verdicts on formulas").addoption(
        "--losscurv-error",
        type=_probability,
        default=1e-3,
        metavar="P",
        help=f"probability of any wrong verdict in the session (default 0.001); each losscurv_check uses P/{MOST}",
    )


@pytest.fixture(
    scope="session"
)  # for fixtures of classes and modules, and for tests with hypothesis's @given
def losscurv_check(request: pytest.FixtureRequest) -> Callable[..., Checked]:
    """`losscurv.check` that fails the test unless the formula agrees; returns the result if it does."""

    def judge_or_fail(*arguments: Any, **options: Any) -> Checked:
        __tracebackhide__ = True
        from losscurv import check

        if "error" in options:
            raise TypeError(
                "losscurv_check takes its error from the session: leave error out and set --losscurv-error"
            )
        config: Any = request.config
        config.stash[_made] = made = config.stash.get(_made, 0) + 1
        error = config.getoption("--losscurv-error")
        if made > MOST:
            pytest.fail(TOO_MANY.format(most=MOST, error=error), pytrace=False)
        result = check(*arguments, error=error / MOST, **options)
        if not result.agrees:
            pytest.fail(result.summary().rstrip(), pytrace=False)
        return result

    return judge_or_fail


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the controller of pytest-xdist how many checks this process has made, or fail the session for all of them.

    A process by itself has failed the test that made one too many.
    """
    config: Any = session.config
    made = config.stash.get(_made, 0)
    if hasattr(config, "workeroutput"):
        config.workeroutput[COUNT] = made
    elif made > MOST and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add up what the processes of pytest-xdist have made."""
    made = getattr(node, "workeroutput", {}).get(COUNT, 0)
    node.config.stash[_made] = node.config.stash.get(_made, 0) + made


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say that there were too many checks."""
    if config.stash.get(_made, 0) > MOST:
        error = config.getoption("--losscurv-error")
        terminalreporter.write_line(TOO_MANY.format(most=MOST, error=error), red=True)


def _probability(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must be greater than 0 and less than 1, got {text}")
    return value
