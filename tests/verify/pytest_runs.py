"""Runs of pytest inside pytest, with the plugin."""

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

import verify
from tests.verify import toy_claims
from tests.verify.toy_claims import require_one_copy
from verify import cli
from verify.claims import registry
from verify.page import report

Planter = Callable[..., None]


Run = Callable[..., pytest.RunResult]


FOLDER = Path(verify.__file__).parent


CLAIMS = FOLDER / "test_claims.py"


COMMON = (
    *("-p", "verify.plugin", "--import-mode=importlib", "--workers=1"),
    *("-W", "error", "-W", "ignore::pytest.PytestAssertRewriteWarning"),  # the plugin is loaded here already
    *("-p", "no:cacheprovider", "-p", "no:hypothesispytest"),  # it loads itself anew in every run of pytester
)


@pytest.fixture(scope="module", autouse=True)
def everything_loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """pytester forgets what a run imports, but torch and its like can be loaded only once."""
    registry.claims()
    importlib.import_module("simulate.data")
    require_one_copy()
    with pytest.MonkeyPatch.context() as patch:
        toy_claims.replace_all(patch, toy_claims.RIGHT)
        patch.setattr(report, "write", lambda *_, **__: None)
        folder = tmp_path_factory.mktemp("loading")
        assert cli.main(["report", "--workers", "1", "--report-dir", str(folder)]) == 0


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """pytest in a folder of its own, with the plugin as from an installed package and one worker."""
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def ran(*words: str | Path) -> pytest.RunResult:
        return pytester.runpytest_inprocess(*COMMON, *words)

    return ran


def last_line(result: pytest.RunResult) -> str:
    return result.outlines[-1].strip("= ")
