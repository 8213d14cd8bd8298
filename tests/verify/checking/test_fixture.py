"""The fixture `losscurv_check` in somebody's own tests: what fails, with which words, alone and with pytest-xdist."""

from collections.abc import Callable
from pathlib import Path

import pytest

import losscurv_pytest
import verify
from losscurv import check
from tests.interpreters import fresh
from tests.verify.checking.simulators import harmonic, largest

pytestmark = pytest.mark.slow
pytest_plugins = ["pytester"]

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


@pytest.fixture(scope="module", autouse=True)
def everything_loaded() -> None:
    """A session of pytester forgets what it has loaded, but numpy can be loaded only once."""
    check(harmonic, largest, [{"n": 10}], margin=0.01, budget=2000).summary()


Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """pytest on some files, as an installed losscurv would load the plug-in by its entry point."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(verify.__file__).parents[1]))

    def ran(*words: str, **files: str) -> pytest.RunResult:
        pytester.makepyfile(**files)
        return pytester.runpytest_inprocess("-p", "losscurv_pytest", "-p", "no:cacheprovider", *words)

    return ran


def test_loading_the_plugin_loads_nothing_but_pytest() -> None:
    program = (
        "import pytest, sys\nbefore = set(sys.modules)\nimport losscurv_pytest\n"
        "assert set(sys.modules) - before == {'losscurv_pytest'}, set(sys.modules) - before\n"
    )
    fresh(program)


def test_fixtures_of_a_class_and_examples_of_hypothesis_may_use_it(run: Run) -> None:
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
    ran = run("-p", "_hypothesis_pytestplugin", test_one=text)
    assert ran.ret == 0 and "2 passed" in ran.stdout.str()


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
    run: Run, old: str, new: str, status: int, words: str
) -> None:
    """Beside the plug-in of the suite; the last two are options."""
    options = [words] if words.startswith("--") else []
    ran = run("-p", "verify.plugin", *options, test_one=PASSES.replace(old, new))

    assert ran.ret == status
    output = ran.stdout.str()
    assert options or words in output
    assert "Traceback" not in output and "losscurv_pytest.py" not in output


FEWER = """
import losscurv_pytest
losscurv_pytest.MOST = 6
def pytest_terminal_summary(terminalreporter, config):
    terminalreporter.write_line(f"made {config.stash[losscurv_pytest._made]}")
"""

TELLS = f"""
import pytest
{FORMULAS}
@pytest.mark.parametrize("n", range(7))
def test_harmonic(losscurv_check, n):
    found = losscurv_check(harmonic, largest, [{{"n": n + 7}}], margin=0.1, vectorised=True)
    with open(f"found-{{n}}.txt", "a") as file:
        file.write(repr(found) + "\\n")
"""


def test_order_and_xdist_do_not_matter_and_checks_are_counted_together(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven where six are allowed: by itself the last fails, side by side the session does."""
    pytest.importorskip("xdist")
    monkeypatch.setattr(losscurv_pytest, "MOST", losscurv_pytest.MOST)
    backwards = [f"test_one.py::test_harmonic[{n}]" for n in reversed(range(7))]
    for words, passed in (
        (["-p", "xdist", "-n2"], "7 passed"),
        (backwards, "1 failed, 6 passed"),
        (backwards[:6], "6 passed"),
    ):
        ran = run(*words, test_one=TELLS, conftest=FEWER)
        output, many = ran.stdout.str(), words != backwards[:6]
        assert ran.ret == many and ("this session makes more than 6 checks" in output) == many
        assert passed in output and f"\nmade {6 + many}\n" in output
    for n in range(7):
        lines = (pytester.path / f"found-{n}.txt").read_text().splitlines()
        assert len(lines) == (9 if n else 3) and len(set(lines)) == 3
