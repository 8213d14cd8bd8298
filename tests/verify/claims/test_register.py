"""The ledger of claims: it holds what the code declares, loses nothing, and tells what changed."""

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from simulate.monte_carlo import Point
from tests.verify import toy_claims
from verify import claims
from verify.claims import register, registry
from verify.claims.noise_scale import critical
from verify.claims.register import HEAD, added, read, rivals
from verify.model import AnyClaim, Kind, Verdict

FILES = {paper: Path(claims.__path__[0], paper, register.FILE) for paper in registry.OWN}
RIGHT = toy_claims.RIGHT


def entered(*states: Sequence[AnyClaim]) -> str:
    """The ledger of claims as they were on the first of January 2026, the second, ..."""
    text = HEAD
    for day, listed in enumerate(states, 1):
        text += added(read(text), listed, f"2026-01-0{day}")
    return text


def told(text: str) -> str:
    return "; ".join(read(text)["right"].story)


each_paper = pytest.mark.parametrize("paper", registry.OWN)


@pytest.mark.slow
@each_paper
def test_what_is_registered_is_what_the_code_declares(paper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a claim was added or changed, `python -m verify.claims.register` adds its line."""
    # the names of the routes are asked for, and not what this one takes long for
    monkeypatch.setattr(critical, "critical_sizes", lambda *_: np.ones((2, 2)))
    known = read(FILES[paper].read_text())
    assert added(known, [claim for claim in registry.claims() if claim.paper == paper], "today") == ""


def test_a_claim_is_entered_once_and_its_changes_are_added() -> None:
    first = entered([RIGHT])
    assert added(read(first), [RIGHT], "2026-01-02") == ""

    second = entered([RIGHT], [replace(RIGHT, margin=RIGHT.margin / 2)])
    assert second.startswith(first)
    assert told(second) == "declared 2026-01-01; 2026-01-02: margin tightened from 50% to 25%"
    assert register.digest({"beyond": read(first)}) != register.digest({"beyond": read(second)})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"margin": 0.7}, "margin widened from 50% to 70%"),
        ({"margin": 0.4, "relative": False}, "margin from 50% to 0.4"),
        ({"margin": lambda _: 0.4}, "margin from 50% to by point%"),
        ({"predict": lambda p: 0.6 * p.scale}, "prediction from 0.85 to 1.02"),
        ({"predict": lambda p: 0.5 * (1 + 1e-6) * p.scale}, "declared again"),
        ({"rivals": {"twice": lambda p: p.scale}}, "rivals added: 'twice'"),
        ({"expected": Verdict.DISAGREES}, "expected from agrees to disagrees"),
        ({"kind": Kind.AT_LEAST}, "kind from mean to lower bound on a mean"),
        ({"pilot": "the margin 0.5"}, "set after pilot draws"),
        ({"may_be_undecided": "tails"}, "may end undecided"),
        (
            {"experiment": replace(toy_claims.UNIFORM, points=(Point(scale=2.7),))},
            "other run points, prediction from 0.85 to 1.35",
        ),
    ],
)
def test_a_change_is_told_and_so_is_its_reversal(change: dict, words: str) -> None:
    """A claim that was withdrawn and comes back as it was has no other change."""
    there, changed = [RIGHT], [replace(RIGHT, **change)]
    assert words in told(entered(there, [], changed))
    assert read(entered(there, changed, there))["right"].terms == read(entered(there))["right"].terms


def test_the_rivals_of_an_identity_are_registered() -> None:
    """Rivals are the routes that are neither measured nor the theory, nor the form as our copy reads."""
    words = told(entered([RIGHT], [replace(toy_claims.EXACT, id=RIGHT.id)]))
    assert "kind from mean to Identity" in words and "rivals added: 'one short'" in words
    assert rivals(toy_claims.EXACT) == ["one short"]
    assert rivals(replace(toy_claims.EXACT, printed="one short")) == []


def test_what_is_gone_stays_in_the_ledger() -> None:
    assert read(entered([RIGHT], []))["right"].withdrawn == "2026-01-02"
    back = entered([RIGHT], [], [RIGHT])
    assert not read(back)["right"].withdrawn
    assert told(back) == "declared 2026-01-01; 2026-01-02: withdrawn; 2026-01-03: declared again"


@each_paper
def test_no_commit_has_changed_a_line(paper: str) -> None:
    """A copy of the source without its history has one state to look at."""
    file = FILES[paper]

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=file.parent, capture_output=True, text=True).stdout

    commits = git("log", "--first-parent", "--reverse", "--format=%h", "--", file.name).split()
    states = [git("show", f"{commit}:./{file.name}") for commit in commits]
    for before, after in pairwise([*states, file.read_text()]):
        assert after.startswith(before)


def test_a_damaged_ledger_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "folders", lambda *_: {"beyond": tmp_path})
    whole = register.ledgers.__wrapped__
    assert whole() == {"beyond": {}}
    (tmp_path / register.FILE).write_text("date,margin\n2026-01-01,0.5\n")
    with pytest.raises(ValueError, match="must be a ledger of claims, got KeyError"):
        whole()
