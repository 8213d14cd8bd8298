"""The recipe of CONTRIBUTING.md, pasted where it says that it lies, is let in, judged and tested like any claim."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from simulate.monte_carlo import SerialExecutor
from tests.interpreters import forked
from verify.claims import registry
from verify.results import Row
from verify.running.engine import Session, Settings

ROOT = Path(__file__).parents[1]
NAME = "granziol2022/second-moment"


def let_in(package: str, folder: str) -> list[Row]:
    """Call the tests on the claim of a file that is added to a package, and judge it.

    Admission with all others, the family of intervals, mutants told apart, a home on the map.
    """
    import_module(package).__path__.append(folder)
    from tests.verify.claims import test_mutants, test_registry
    from tests.verify.claims.reads import reading

    (claim,) = registry.select(claim=[NAME])
    assert reading(claim).predicted
    test_registry.test_the_registry_fits_its_family_and_a_session_judges_what_is_counted()
    test_registry.test_the_inventory_says_where_each_entry_stands()
    test_registry.test_every_experiment_can_be_sent_to_a_worker()
    test_mutants.test_run_points_tell_every_mutant_from_the_prediction(NAME)
    return Session([claim], Settings(), SerialExecutor()).rows(claim)


@pytest.mark.slow
def test_the_claim_is_let_in_and_judged(tmp_path: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    ((place, code),) = re.findall(r"```python\n# (verify/claims/\S+\.py)\n(.*?)```", text, re.DOTALL)
    assert not (ROOT / place).exists()
    (tmp_path / Path(place).name).write_text(f'"""The recipe."""\n\n{code}', encoding="utf-8")

    (row,) = forked(let_in, ".".join(Path(place).parts[:-1]), str(tmp_path))
    assert (row.id, row.verdict) == (NAME, "agrees")
    rejected = {rival.name for p in row.points for rival in p.rivals if rival.rejected}
    assert rejected == {"the limit", "no diagonal"}
