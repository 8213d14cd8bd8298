"""The fixture `losscurv_check` in somebody's own tests: what fails, with which words, alone and with pytest-xdist."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import verify
from tests.interpreters import fresh

pytestmark = pytest.mark.slow

FOLDER = Path(verify.__file__).parents[1]

FORMULAS = """
def harmonic(n):
    return sum(1 / k for k in range(1, n + 1))

def largest(rng, size, n):
    return rng.exponential(size=(size, n)).max(axis=1)
"""

PASSES = (
    FORMULAS
    + """
def test_harmonic(losscurv_check):
    found = losscurv_check(harmonic, largest, [{"n": 10}], margin=0.1, vectorised=True)
    assert found.agrees and found.error == 1e-3 / 1024
"""
)


class Session:
    """pytest in a process of its own, in which an installed losscurv would load the plug-in by its entry point."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *words: str, **files: str) -> subprocess.CompletedProcess[str]:
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text)
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
            "PYTHONPATH": str(FOLDER),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        command = [sys.executable, "-m", "pytest", "-p", "losscurv_pytest", "-p", "no:cacheprovider", *words]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return Session(tmp_path)


def test_loading_the_plugin_loads_nothing_but_pytest() -> None:
    program = (
        "import pytest, sys\nbefore = set(sys.modules)\nimport losscurv_pytest\n"
        "assert set(sys.modules) - before == {'losscurv_pytest'}, set(sys.modules) - before\n"
    )
    fresh(program)


def test_fixtures_of_a_class_and_examples_of_hypothesis_may_use_it(session: Session) -> None:
    text = (
        FORMULAS
        + """
import pytest
from hypothesis import given, settings, strategies as st

class TestHarmonic:
    @pytest.fixture(scope="class")
    def found(self, losscurv_check):
        return losscurv_check(harmonic, largest, [{"n": 10}], margin=0.1, vectorised=True)

    def test_it(self, found):
        assert found.agrees

@given(n=st.integers(1, 5))
@settings(max_examples=2, deadline=None, database=None)
def test_examples(losscurv_check, n):
    losscurv_check(harmonic, largest, [{"n": n}], margin=0.1, vectorised=True)
"""
    )
    ran = session.run("-p", "_hypothesis_pytestplugin", test_one=text)
    assert ran.returncode == 0 and "2 passed" in ran.stdout, ran.stdout


@pytest.mark.parametrize(
    ("old", "new", "status", "words"),
    [
        ("", "", 0, "1 passed"),
        ("return sum(", "return 1.5 * sum(", 1, "  n = 10   disagrees   predicted 4.39   measured "),
        ("=0.1", "=0.01, budget=2000", 1, "the budget of 2,000 replicates ended; it would take about "),
        ("=0.1", "=0.1, error=0.1", 1, "leave error out and set --losscurv-error"),
        ("1e-3", "0.1", 0, "--losscurv-error=0.1"),
        ("", "", 4, "--losscurv-error=nan"),
    ],
)
def test_a_check_passes_or_fails_with_its_words(
    session: Session, old: str, new: str, status: int, words: str
) -> None:
    """Beside the plug-in of the suite; the last two are options."""
    options = [words] if words.startswith("--") else []
    ran = session.run("-p", "verify.plugin", *options, test_one=PASSES.replace(old, new))

    assert ran.returncode == status, ran.stdout + ran.stderr
    assert options or words in ran.stdout
    assert "Traceback" not in ran.stdout and "losscurv_pytest.py" not in ran.stdout


FEWER = "import losscurv_pytest\nlosscurv_pytest.MOST = 6\n"

TELLS = f"""
import pytest
{FORMULAS}
@pytest.mark.parametrize("n", range(7, 13))
def test_harmonic(losscurv_check, n):
    found = losscurv_check(harmonic, largest, [{{"n": n}}], margin=0.1, vectorised=True)
    with open(f"found-{{n}}.txt", "a") as file:
        file.write(repr(found) + "\\n")
"""


def test_order_and_xdist_do_not_matter_and_checks_are_counted_together(session: Session) -> None:
    pytest.importorskip("xdist")
    for words in (["-p", "xdist", "-n2"], [f"test_one.py::test_harmonic[{n}]" for n in (12, 7)]):
        ran = session.run(*words, test_one=TELLS, conftest=FEWER)
        assert ran.returncode == 0, ran.stdout
    for n, runs in ((7, 2), (9, 1), (12, 2)):
        lines = (session.folder / f"found-{n}.txt").read_text().splitlines()
        assert len(lines) == 3 * runs and len(set(lines)) == 3
    ran = session.run("-p", "xdist", "-n2", test_one=TELLS.replace("13)", "14)"), conftest=FEWER)
    assert ran.returncode == 1 and "this session makes more than 6 checks" in ran.stdout
    assert "7 passed" in ran.stdout
