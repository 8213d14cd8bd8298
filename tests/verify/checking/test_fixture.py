"""The fixture `losscurv_check` in somebody's own tests: what fails, with which words, alone and with pytest-xdist."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import verify
from losscurv_pytest import MOST

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
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "losscurv_pytest",
            "-p",
            "no:cacheprovider",
            *words,
        ]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return Session(tmp_path)


def test_loading_the_plugin_loads_nothing_but_pytest() -> None:
    program = (
        "import pytest, sys\nbefore = set(sys.modules)\nimport losscurv_pytest\n"
        "assert set(sys.modules) - before == {'losscurv_pytest'}, set(sys.modules) - before\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_agreeing_passes_and_uses_its_part_of_the_error(session: Session) -> None:
    ran = session.run(test_one=PASSES)
    assert ran.returncode == 0 and "1 passed" in ran.stdout

    ran = session.run("--losscurv-error=0.1", test_one=PASSES.replace("1e-3 / 1024", "0.1 / 1024"))
    assert ran.returncode == 0, ran.stdout


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


def test_disagreeing_fails_with_the_table(session: Session) -> None:
    ran = session.run(test_one=PASSES.replace("return sum(", "return 1.5 * sum("))

    assert ran.returncode == 1
    assert (
        "disagrees at 1 of 1 points, by more than 10 % (chance of a wrong verdict at most 9.8e-05 %"
        in ran.stdout
    )
    assert "  n = 10   disagrees   predicted 4.39   measured " in ran.stdout
    assert "Traceback" not in ran.stdout and "losscurv_pytest.py" not in ran.stdout


def test_a_failing_example_of_hypothesis_fails_with_the_call(session: Session) -> None:
    text = PASSES.replace("return sum(", "return 9.0 if n > 6 else sum(").replace(
        '"n": 10', '"n": st.integers(2, 60)'
    )
    ran = session.run(
        "-p", "_hypothesis_pytestplugin", test_one=f"from hypothesis import strategies as st\n{text}"
    )

    assert ran.returncode == 1
    assert "  reproduce: losscurv.check(harmonic, largest, [{'n': 7}], margin=0.1, error=" in ran.stdout


def test_undecided_fails_with_the_replicates_it_would_take(session: Session) -> None:
    ran = session.run(test_one=PASSES.replace("margin=0.1", "margin=0.01, budget=2000"))

    assert ran.returncode == 1
    assert "the budget of 2,000 replicates ended; it would take about " in ran.stdout


def test_an_error_of_its_own_is_refused(session: Session) -> None:
    ran = session.run(test_one=PASSES.replace("margin=0.1", "margin=0.1, error=0.1"))

    assert ran.returncode == 1
    assert (
        "losscurv_check shares the error of the session: leave error out, use --losscurv-error" in ran.stdout
    )


@pytest.mark.parametrize("value", ["0", "1", "-1", "nan"])
def test_an_error_that_is_no_chance_is_refused(session: Session, value: str) -> None:
    ran = session.run(f"--losscurv-error={value}", test_one=PASSES)

    assert ran.returncode == 4
    assert f"--losscurv-error: must be greater than 0 and less than 1, got {value}" in ran.stderr


def many(checks: int) -> str:
    """A module with so many checks, each of which is as good as free."""
    return f"""
import pytest

@pytest.mark.parametrize("i", range({checks}))
def test_many(losscurv_check, i):
    losscurv_check(lambda: 1.0, lambda rng, size: rng.normal(1.0, 0.1, size), margin=0.5, vectorised=True, seed=i)
"""


def test_a_check_too_many_fails_with_a_sentence(session: Session) -> None:
    ran = session.run("-q", test_many=many(MOST + 1))

    assert ran.returncode == 1
    assert f"1 failed, {MOST} passed" in ran.stdout
    assert (
        "this session makes more than 1,024 checks, which share its error of 0.001: run the tests in"
        in ran.stdout
    )


FEWER = "import losscurv_pytest\nlosscurv_pytest.MOST = 6\n"


@pytest.mark.parametrize(("checks", "status"), [(6, 0), (7, 1)])
def test_the_processes_of_xdist_count_together(session: Session, checks: int, status: int) -> None:
    pytest.importorskip("xdist")
    ran = session.run("-p", "xdist", "-n2", test_many=many(checks), conftest=FEWER)

    assert ran.returncode == status, ran.stdout
    assert ("this session makes more than 6 checks" in ran.stdout) == bool(status)
    assert f"{checks} passed" in ran.stdout


TELLS = (
    FORMULAS
    + """
import pytest

@pytest.mark.parametrize("n", [7, 9, 10, 12])
def test_harmonic(losscurv_check, n):
    found = losscurv_check(harmonic, largest, [{"n": n}], margin=0.1, vectorised=True)
    with open(f"found-{n}.txt", "a") as file:
        file.write(repr(found) + "\\n")
"""
)


def test_order_and_xdist_do_not_matter(session: Session) -> None:
    pytest.importorskip("xdist")
    names = [f"test_one.py::test_harmonic[{n}]" for n in (12, 7, 10, 9)]
    for words in (["-p", "xdist", "-n2"], names, ["-k", "9 or 12"]):
        ran = session.run(*words, test_one=TELLS)
        assert ran.returncode == 0, ran.stdout
    for n, runs in ((7, 2), (9, 3), (10, 2), (12, 3)):
        lines = (session.folder / f"found-{n}.txt").read_text().splitlines()
        assert len(lines) == 3 * runs and len(set(lines)) == 3


def test_the_plugin_of_the_suite_may_be_there_too(session: Session) -> None:
    ran = session.run("-p", "verify.plugin", test_one=PASSES)

    assert ran.returncode == 0 and "1 passed" in ran.stdout, ran.stdout + ran.stderr


def test_the_installed_package_brings_the_fixture() -> None:
    text = (FOLDER / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.pytest11]\nlosscurv = "losscurv_pytest"\n' in text
