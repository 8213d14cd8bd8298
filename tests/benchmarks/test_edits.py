from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.mutants.edits import KINDS, Edit, edits, passed_by, sample
from benchmarks.mutants.reach import FOLDERS, ROOT, Reach

LAW = '''
import numpy as np

EDGE = 2.0


def variance(rng, x, n):
    """Of 2 numbers."""
    draw = 1.5 * rng.standard_normal(3)
    return np.sqrt(x) + (x - 1) ** 2 / n + np.mean(draw) + EDGE * max(x, n)
'''

BESIDE = """
from theory._checks import positive, representable


def refused(x):
    if x > 3:
        raise ValueError(f"x must be <= 3, got {2 * x}")


def checked(x):
    x = positive("x", 1 * x)
    total = solved(x, rtol=0.5)
    return representable(total / 7, x=x)


class Law:
    def __repr__(self):
        return "Law of " + 2 * "x"
"""


def of(tmp_path: Path, source: str) -> tuple[list[Edit], list[Edit]]:
    (tmp_path / "law.py").write_text(source)
    return edits(tmp_path, "law.py"), passed_by(tmp_path, "law.py")


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("constant", "2.0", "2.1"),
        ("off by one", "3", "4"),
        ("sign", "x - 1", "x + 1"),
        ("swap", "x - 1", "((1) - (x))"),
        ("swap", "max", "min"),
        ("square", "(x - 1) ** 2", "(x - 1)"),
        ("square", "np.sqrt(x)", "(x)"),
        ("draw", "rng.standard_normal(3)", "(1.02 * rng.standard_normal(3))"),
        ("estimator", "mean", "sum"),
        ("normalisation", "(x - 1) ** 2 / n", "((x - 1) ** 2) / ((n) + 1)"),
        ("normalisation", "(x - 1) ** 2 / n", "((x - 1) ** 2)"),
    ],
)
def test_a_slip_is_the_one_of_its_kind(tmp_path: Path, kind: str, before: str, after: str) -> None:
    found, _ = of(tmp_path, LAW + "\n\ndef larger(a, b):\n    return a if a > b else b\n")

    assert (kind, before, after) in {(e.kind, e.before, e.after) for e in found}
    assert {edit.kind for edit in found} == set(KINDS)


def test_a_factor_is_one_to_ten_per_cent(tmp_path: Path) -> None:
    found, _ = of(tmp_path, LAW)
    factors = [float(e.after[1:].partition(" ")[0]) for e in found if e.kind == "factor"]

    assert factors and all(1.01 <= factor <= 1.10 for factor in factors)


def test_what_states_no_quantity_is_told_apart(tmp_path: Path) -> None:
    """Refusals and what they say, arguments of checks, tolerances and texts; not the result that a check looks at."""
    found, passed = of(tmp_path, BESIDE)

    assert {edit.before for edit in found} == {"7", "total / 7"}
    assert {"x > 3", "3", "2 * x", "1 * x", "0.5", "2"} <= {edit.before for edit in passed}


def test_a_module_of_checks_states_none() -> None:
    assert edits(ROOT, "theory/_checks.py") == [] != passed_by(ROOT, "theory/_checks.py")


def test_an_edit_changes_one_line_also_of_a_call_for_its_effect(tmp_path: Path) -> None:
    """Tensors are drawn and scaled in place."""
    law = LAW + "\n\ndef drawn(w, sigma, n):\n    w.normal_(0.5, sigma / n)\n"
    found, _ = of(tmp_path, law)
    assert {"0.5", "sigma / n"} <= {edit.before for edit in found}
    for edit in found:
        after = edit.apply(tmp_path).splitlines()
        pairs = enumerate(zip(law.splitlines(), after, strict=True), 1)
        assert [i for i, (a, b) in pairs if a != b] == [edit.line]
        assert edit.lines(tmp_path)[1] == after[edit.line - 1].strip()


def test_an_edit_of_other_code_is_refused(tmp_path: Path) -> None:
    found, _ = of(tmp_path, LAW)
    (tmp_path / "law.py").write_text(LAW.replace("x", "y"))

    with pytest.raises(ValueError, match=r"law.py:\d+ must hold"):
        next(e for e in found if e.before == "x - 1").apply(tmp_path)


def test_a_seed_chooses_the_same_edits_as_evenly_as_there_are_kinds() -> None:
    found = edits(ROOT, "theory/own_direction.py")
    chosen = sample(found, 40, 7, ROOT)

    assert chosen == sample(list(reversed(found)), 40, 7, ROOT)
    assert chosen[:15] == sample(found, 15, 7, ROOT)
    assert chosen != sample(found, 40, 8, ROOT)
    assert len(set(chosen)) == 40
    counts, there = (Counter(edit.kind for edit in some) for some in (chosen, found))
    assert all(counts[k] == there[k] or counts[k] >= max(counts.values()) - 1 for k in KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("top", FOLDERS)
def test_every_sampled_edit_parses(top: str) -> None:
    files = sorted(str(f.relative_to(ROOT)) for f in (ROOT / top).rglob("*.py"))[::3]
    found = [edit for file in files for edit in edits(ROOT, file)]
    for edit in sample(found, 60, 2, ROOT):
        ast.parse(edit.apply(ROOT))


# --- where an edit is executed


def test_a_line_is_executed_by_whoever_executes_it_and_a_constant_where_it_is_read(tmp_path: Path) -> None:
    """A line of a module runs once, when nobody is followed."""
    (tmp_path / "law.py").write_text("EDGE = 2.0\nWIDE = 2 * EDGE\n\n\ndef f(x=1.5):\n    return x * WIDE\n")
    (tmp_path / "user.py").write_text("from law import EDGE\n\n\ndef g():\n    return EDGE\n")
    by_a, by_b = {"law.py": [6]}, {"user.py": [5]}
    at = Reach({"drawn paper/a": by_a, "judged paper/a": by_a, "judged paper/b": by_b}, tmp_path).at

    assert at("law.py", 1) == (["paper/a"], ["paper/a", "paper/b"])
    assert at("law.py", 2) == at("law.py", 5) == (["paper/a"], ["paper/a"])
    (tmp_path / "law.py").write_text("def f(x):\n    if x:\n        return 1\n    return 2\n")
    assert Reach({"drawn paper/a": {"law.py": [2, 4]}}, tmp_path).at("law.py", 3) == ([], [])
