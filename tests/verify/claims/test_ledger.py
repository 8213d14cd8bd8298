"""The ledger of claims: it holds what the code declares, loses nothing, and tells what changed."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from simulate.monte_carlo import Point
from tests.verify import toy_claims
from verify import claims
from verify.claims import ledger, registry
from verify.claims.ledger import changes, declared, digest, entered, history, rivals, sealed
from verify.model import Kind, Verdict

FOLDERS = {paper: Path(claims.__path__[0]) / paper for paper in registry.OWN}


@pytest.mark.parametrize("paper", registry.OWN)
def test_what_is_registered_is_what_the_code_declares(paper: str) -> None:
    """After a claim was added or changed, `python -m verify.claims.register` enters it."""
    kept = ledger.ledger(FOLDERS[paper])
    now = {claim.id: declared(claim, rivals(claim)) for claim in registry.claims() if claim.paper == paper}

    assert now.keys() == {name for name, entry in kept.items() if "withdrawn" not in entry}
    assert {name: changes(kept[name]["terms"], terms) for name, terms in now.items()} == {
        name: {} for name in now
    }


def test_a_claim_is_entered_once_and_its_changes_are_added() -> None:
    claim = toy_claims.RIGHT
    first = entered({}, [claim], "2026-01-01")
    assert entered(first, [claim], "2026-01-02") == first

    sharper = replace(claim, margin=claim.margin / 2)
    second = entered(first, [sharper], "2026-01-03", "abc")
    assert second[claim.id]["declared"] == ["2026-01-01", ""]
    assert history(second[claim.id]) == (
        "declared 2026-01-01; 2026-01-03 (abc): margin tightened from 0.5 to 0.25"
    )
    assert digest([first]) != digest([second])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"margin": 0.7}, "margin widened from 0.5 to 0.7"),
        ({"predict": lambda p: 0.6 * p.scale}, "prediction from 0.85 to 1.02"),
        ({"rivals": {"twice": lambda p: p.scale}}, "rivals added: 'twice'"),
        ({"expected": Verdict.DISAGREES}, "expected agrees before, now disagrees"),
        ({"kind": Kind.AT_LEAST}, "kind mean before, now lower bound on a mean"),
        ({"pilot": "the margin 0.5"}, "set after pilot draws: the margin 0.5"),
        ({"may_be_undecided": "tails"}, "may end undecided: tails"),
        (
            {"experiment": replace(toy_claims.UNIFORM, points=(Point(scale=2.7),))},
            "other run points, prediction from 0.85 to 1.35",
        ),
    ],
)
def test_a_change_is_told(change: dict, words: str) -> None:
    first = entered({}, [toy_claims.RIGHT], "2026-01-01")
    second = entered(first, [replace(toy_claims.RIGHT, **change)], "2026-01-02")
    assert words in history(second[toy_claims.RIGHT.id])


def test_a_claim_of_another_sort_under_the_same_name_is_a_change() -> None:
    first = entered({}, [toy_claims.RIGHT], "2026-01-01")
    second = entered(first, [replace(toy_claims.EXACT, id=toy_claims.RIGHT.id)], "2026-01-02")
    words = history(second[toy_claims.RIGHT.id])
    assert "kind mean before, now Identity" in words and "rivals added: 'one short'" in words


def test_the_rivals_of_an_identity_are_registered() -> None:
    """Those of its routes that are neither measured nor the theory, nor the form as our copy reads."""
    assert rivals(toy_claims.EXACT) == ["one short"]
    assert rivals(replace(toy_claims.EXACT, printed="one short")) == []


def _registered(folder: Path, found: ledger.Ledger) -> Path:
    (folder / ledger.FILE).write_text(json.dumps(found))
    return folder


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda entry: entry["terms"].update(relative=False), "seal does not fit"),
        (lambda entry: entry["declared"].__setitem__(0, "2025-01-01"), "seal does not fit"),
        (lambda entry: entry["changes"].clear(), "seal does not fit"),
        (lambda entry: entry.pop("seal"), "seal does not fit"),
        (lambda entry: entry.pop("changes"), "without what was declared"),
        (lambda entry: entry["terms"].update(margin=0.7), "another margin than its last change"),
        (lambda entry: entry["changes"][1].update(margin=[0.4, 0.1]), "do not follow one another"),
    ],
    ids=["terms", "date", "changes", "seal", "no changes", "margin of changes", "chain"],
)
def test_an_entry_edited_by_hand_is_refused(edit: Any, message: str, tmp_path: Path) -> None:
    found = entered({}, [toy_claims.RIGHT], "2026-01-01")
    for day, margin in ((2, 0.3), (3, 0.1)):
        found = entered(found, [replace(toy_claims.RIGHT, margin=margin)], f"2026-01-0{day}")
    assert ledger.ledger(_registered(tmp_path, found)) == found

    edit(found[toy_claims.RIGHT.id])
    with pytest.raises(ValueError, match=f"got {toy_claims.RIGHT.id} .*{message}"):
        ledger.ledger(_registered(tmp_path, found))


def test_entries_of_before_there_were_seals_are_given_one(tmp_path: Path) -> None:
    found = entered({}, [toy_claims.RIGHT], "2026-01-01")
    without = {name: {k: v for k, v in entry.items() if k != "seal"} for name, entry in found.items()}
    kept = ledger.ledger(_registered(tmp_path, without), unsealed=True)
    assert entered(kept, [toy_claims.RIGHT], "2026-01-02") == found


def what_is_lost(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What a later state of a ledger no longer holds of an earlier one, a line each; none if it was only added to."""
    found: list[str] = []
    for name, entry in before.items():
        if name not in after:
            found.append(f"{name} is gone")
            continue
        now = after[name]
        if now["declared"][0] > entry["declared"][0]:
            found.append(f"{name} was declared {entry['declared'][0]}, now {now['declared'][0]}")
        if len(now["changes"]) < len(entry["changes"]):
            found.append(f"{name} had {len(entry['changes'])} changes, now {len(now['changes'])}")
        elif len(now["changes"]) == len(entry["changes"]) and changes(entry["terms"], now["terms"]):
            found.append(f"{name} has other terms and no change that tells them")
    return found


def test_what_a_ledger_loses_is_told() -> None:
    """Also where the seals were made anew."""
    claims = [toy_claims.RIGHT, toy_claims.WRONG]
    first = entered(entered({}, claims, "2026-01-01"), [replace(c, margin=0.4) for c in claims], "2026-01-02")
    added = entered(first, [toy_claims.RIGHT], "2026-01-03")
    assert what_is_lost(first, added) == []

    right, name = first[toy_claims.RIGHT.id], toy_claims.RIGHT.id
    assert what_is_lost(first, {name: right}) == ["beyond/wrong is gone"]
    for entry, words in (
        ({**right, "declared": ["2026-01-05", ""]}, "was declared 2026-01-01, now 2026-01-05"),
        ({**right, "changes": []}, "had 1 changes, now 0"),
        (
            {**right, "terms": {**right["terms"], "margin": 0.1}},
            "has other terms and no change that tells them",
        ),
    ):
        assert what_is_lost(first, {**first, name: sealed(name, entry)}) == [f"{name} {words}"]


@pytest.mark.parametrize("paper", registry.OWN)
def test_no_commit_has_lost_what_was_registered(paper: str) -> None:
    """From the first ledger with seals on; a copy of the source without its history has one state to look at."""
    file = FOLDERS[paper] / ledger.FILE

    def git(*words: str) -> str:
        run = subprocess.run(["git", *words], cwd=file.parent, capture_output=True, text=True, check=False)
        return run.stdout

    commits = git("log", "--first-parent", "--reverse", "--format=%h", "--", file.name).split()
    states = [json.loads(git("show", f"{commit}:./{file.name}")) for commit in commits]
    known = [one for one in states if all("seal" in entry for entry in one.values())]
    for before, after in pairwise([*known, ledger.ledger(FOLDERS[paper])]):
        assert what_is_lost(before, after) == []


def test_what_is_gone_stays_in_the_ledger() -> None:
    first = entered({}, [toy_claims.RIGHT], "2026-01-01")
    gone = entered(first, [], "2026-01-02", "abc")
    assert gone[toy_claims.RIGHT.id]["withdrawn"] == ["2026-01-02", "abc"]
    back = entered(gone, [toy_claims.RIGHT], "2026-01-03")
    assert "withdrawn" not in back[toy_claims.RIGHT.id]


def test_rounding_is_no_change() -> None:
    assert changes({"predicted": [0.123456]}, {"predicted": [0.1234563]}) == {}
    assert changes({"predicted": [0.123456]}, {"predicted": [0.12347]}) != {}


def test_a_damaged_ledger_is_refused(tmp_path: Path) -> None:
    assert ledger.ledger(tmp_path) == {}
    for text in ("{", json.dumps([1])):
        (tmp_path / ledger.FILE).write_text(text)
        with pytest.raises(ValueError, match="must be a ledger of claims"):
            ledger.ledger(tmp_path)
