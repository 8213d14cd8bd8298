"""The recipe of CONTRIBUTING.md, pasted into a copy of the package, is let in, judged and tested like any claim."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from verify.results import load

ROOT = Path(__file__).parents[1]
COPIED = (
    "theory",
    "simulate",
    "verify",
    "tests/refusals.py",
    "tests/verify/claims",
    "tests/verify/toy_claims.py",
    "docs/claims",
    "pyproject.toml",
    "conftest.py",
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with one file more: what the recipe shows, where it says that it lies."""
    folder = tmp_path_factory.mktemp("house")
    for name in COPIED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"```python\n# (verify/claims/\S+\.py)\n(.*?)```", text, re.DOTALL)
    place, code = found
    assert not (folder / place).exists()
    (folder / place).write_text(f'"""The recipe."""\n\n{code}', encoding="utf-8")
    return folder


NAME = "granziol2022/second-moment"
ASKED = f"{NAME} or fits_its_family or where_each_entry or sent_to_a_worker"
BOTH = """
import json, sys
import pytest

tests, report = json.load(sys.stdin)
status = pytest.main(tests)  # first: it would load what the report uses
from tests.verify.claims.reads import reading
from verify import cli
from verify.claims import registry
from verify.running import suite
(claim,) = (c for c in registry.claims() if c.id == report[2])
assert reading(claim).predicted
suite.PLANTED, suite._derivations = (), lambda *_: []
sys.exit(status or cli.main(report))
"""
"""In one process: each would load the libraries and admit all claims anew.

Planted errors and derivations are those of every report, and take longer than all else.
"""


@pytest.fixture(scope="module")
def printed(house: Path) -> str:
    """Run the report of the claim and the tests on it, and return what they print."""
    report = ["report", "--claim", NAME, "--tier", "smoke", "--workers", "1", "--report-dir", "report"]
    files = [f"tests/verify/claims/test_{name}.py" for name in ("registry", "mutants")]
    plugins = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]  # which takes a second to load
    tests = ["-q", *plugins, *files, "-k", ASKED]
    done = subprocess.run(
        [sys.executable, "-c", BOTH],
        input=json.dumps([tests, report]),
        cwd=house,
        env={**os.environ, "PYTHONPATH": str(house)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.usefixtures("printed")
def test_the_claim_is_judged_in_the_smoke_tier(house: Path) -> None:
    (row,) = load(house / "report" / "results.json").rows
    assert (row.id, row.verdict) == (NAME, "agrees")
    assert {rival.name for p in row.points for rival in p.rivals if rival.rejected} == {
        "the limit",
        "no diagonal",
    }


def test_all_that_is_asked_of_a_claim_holds(printed: str) -> None:
    """Admission with all others, the family of intervals, mutants told apart, a home on the map."""
    assert "\n4 passed" in printed
