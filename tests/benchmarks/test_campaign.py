from __future__ import annotations

import dataclasses
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.mutants import record
from benchmarks.mutants.__main__ import campaign, known
from benchmarks.mutants.edits import Edit, edits, sample
from benchmarks.mutants.reach import ROOT
from benchmarks.mutants.trial import CAUGHT, Finding, Judging, Row, Told, Trial, preload, shift
from verify.judging.campaign import Campaign, Outcomes, campaigns

FIRST = sample(edits(ROOT, "theory/own_direction.py"), 6, 3, ROOT)
NOTHING: dict[str, Any] = {
    k: v for k, v in dataclasses.asdict(Finding()).items() if not k.startswith("doing")
}


def finding(edit: Edit, outcome: str, **more: Any) -> dict[str, Any]:
    return {**edit._asdict(), **NOTHING, "outcome": outcome, "asked": 3, "seconds": 0.1, **more}


class Tried:
    """A trial whose outcome is known; the `stop` of a campaign that is killed reaches it."""

    def __init__(self, edit: Edit, outcome: str = "disagrees") -> None:
        self.edit, self.outcome, self.stopped = edit, outcome, False

    def poll(self) -> dict[str, Any] | None:
        if self.outcome == "killed":
            raise KeyboardInterrupt
        return finding(self.edit, self.outcome)

    def stop(self) -> None:
        self.stopped = True


def run(chosen: list[Edit], file: Path, on_trial: Callable[[Edit], Tried]) -> list[Any]:
    return campaign(chosen, on_trial, file, 2, wait=0.0)


def test_a_killed_campaign_continues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, made = tmp_path / "mutants.jsonl", list[Tried]()

    def until_the_fourth(edit: Edit) -> Tried:
        made.append(Tried(edit, "killed" if edit == FIRST[3] else "disagrees"))
        return made[-1]

    with pytest.raises(KeyboardInterrupt):
        run(FIRST, file, until_the_fourth)
    assert made[-1].stopped
    with file.open("a") as log:
        log.write('{"file": "theory/own_dir')  # killed while it wrote
    there = len(known(file))
    again: list[Edit] = []
    found = run(FIRST, file, lambda edit: again.append(edit) or Tried(edit, "survived"))

    assert 0 < there < len(FIRST) == len(known(file)) == there + len(again)
    assert [row["after"] for row in found] == [edit.after for edit in FIRST]
    assert [row["outcome"] for row in found].count("disagrees") == there
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith(f"{len(again)} of {len(again)}: survived")
    assert run(FIRST, file, lambda edit: pytest.fail(str(edit))) == found  # now nothing is left to try


def test_more_patience_tries_the_unfinished_anew(tmp_path: Path) -> None:
    file, again = tmp_path / "mutants.jsonl", list[Edit]()
    outcomes = zip(FIRST, ("unfinished", *["inert"] * 5), strict=True)
    file.write_text("".join(json.dumps(finding(e, o, patience=60.0)) + "\n" for e, o in outcomes))
    for patience in (60.0, 90.0):
        campaign(FIRST, lambda e: again.append(e) or Tried(e), file, 2, wait=0.0, patience=patience)
    assert again == FIRST[:1]


# --- one edit


def row(verdict: str, measured: float = 1.01, *, surprise: bool = False, error: str = "") -> SimpleNamespace:
    point = SimpleNamespace(
        predicted=1.0, measured=measured, lower=1.0, upper=1.02, margin=0.1, reason="budget"
    )
    rest = {"surprise": surprise, "error": error, "points": [point]}
    return SimpleNamespace(id="a", kind="mean", verdict=verdict, **rest)


def judged(was: str, *rows: Any, refused: str = "", blocks: float = 0.0) -> Finding:
    """Return the outcome of an edit whose only claim has these rows."""
    before = {"a": Row(was, [[1.0, 1.01, 1.0, 1.02, 0.1]])}
    trial = Judging(Told(["paper/a"], ["paper/a"], before, {}, Path(), math.inf), lambda _: None)
    trial.claims = {"paper/a": SimpleNamespace(id="paper/a", experiment=SimpleNamespace(id="paper/draws"))}
    vars(trial).update(
        _block_effect=lambda _: blocks, _judge_group=lambda *_: iter([("paper/a", list(rows), refused)])
    )
    trial.found.moved = blocks
    trial.run()
    return trial.found


@pytest.mark.parametrize(
    ("outcome", "was", "rows", "more"),
    [
        ("inert", "agrees", [row("agrees")], {}),
        ("survived", "agrees", [row("agrees", 1.03)], {}),
        ("survived", "agrees", [row("agrees")], {"blocks": 1e-6}),
        ("disagrees", "agrees", [row("disagrees", 1.3, surprise=True)], {}),
        ("disagrees", "disagrees", [row("agrees", 1.0, surprise=True)], {}),
        ("broken", "agrees", [row("broken", error="Traceback", surprise=True)], {}),
        ("refused", "agrees", [], {"refused": "have a rival far enough away"}),
        ("undecided", "agrees", [row("undecided", 1.1)], {}),
        ("undecidable", "agrees", [row("undecided", 1.1, surprise=True)], {}),
        ("survived", "undecided", [row("undecided", 1.1)], {}),
    ],
)
def test_outcomes(outcome: str, was: str, rows: list[Any], more: dict[str, Any]) -> None:
    found = judged(was, *rows, **more)
    assert found.outcome == outcome
    if rows and rows[0].points[0].measured == 1.03:  # what moved is counted in margins
        assert (found.mover, round(found.margins, 6)) == ("paper/a", 0.2)


def test_a_block_is_compared_bit_for_bit() -> None:
    block = np.random.default_rng(0).standard_normal((16, 3))
    nudged = block.copy()
    nudged[3, 1] = np.nextafter(nudged[3, 1], 9.0)

    assert shift(block, block.copy()) == 0.0
    assert 0.0 < shift(block, nudged) < 1e-9 < 1e-3 < shift(block, 1.02 * block)
    assert shift(block, block[:, :2]) == math.inf


@pytest.mark.parametrize(("outcome", "end"), [("hung", lambda: time.sleep(60)), ("broken", sys.exit)])
def test_a_child_that_does_not_come_back(
    outcome: str, end: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(_: Any, told: Any, tell: Callable[[dict[str, Any]], None]) -> None:
        tell({**dataclasses.asdict(Finding()), "doing": "paper/slow"})
        end()

    monkeypatch.setattr("benchmarks.mutants.trial.judge", judge)
    trial = Trial(FIRST[0], Told([], ["paper/a"], {}, {}, Path(), 0.2))
    found = ended(trial)
    assert (found["outcome"], found["claim"], found["asked"]) == (outcome, "paper/slow", 1)
    assert found["outcome"] in CAUGHT


def ended(trial: Trial) -> dict[str, Any]:
    while (found := trial.poll()) is None:
        time.sleep(0.01)
    return found


@pytest.mark.slow
def test_an_error_in_a_law_is_caught_and_its_absence_is_not() -> None:
    """A real claim in forked processes: the change of a quadratic loss, against the loss at both ends."""
    preload()
    change = edits(ROOT, "theory/loss_change.py")
    error = next(e for e in change if (e.function, e.kind) == ("quadratic_change", "factor"))
    told = Told([], ["granziol2022/loss-change"], {}, {}, Path("nowhere"), 60.0)
    found = [ended(Trial(edit, told)) for edit in (error._replace(after=error.before), error)]
    assert [(row["outcome"], row["run"]) for row in found] == [("survived", 1), ("disagrees", 1)]


# --- what is kept and shown


def made(*outcomes: str) -> Campaign:
    tried = zip(FIRST, outcomes, strict=False)
    found = [finding(edit, o, margins=0.123456, mover="a/b") for edit, o in tried]
    counts = {"folder": "theory", "passed": 5, "not_executed": 6, "executed": 70}
    return record.summary(counts | {"seed": 3, "commit": "abc", "date": "2026-11-23"}, found, ROOT)


def put_on_record(folder: Path, *made: Campaign) -> tuple[Campaign, ...]:
    """Return the record after campaigns in this folder, read from its file."""
    file = folder / "campaign.json"
    file.write_text(record.written(record.merged(campaigns(file), made)))
    return campaigns(file)


def test_a_record_is_read_as_it_was_made(tmp_path: Path) -> None:
    (one,) = put_on_record(tmp_path, made("disagrees", "broken", "survived", "inert", "undecided"))

    assert one.all == Outcomes(5, 1, 2, 1) and (one.all.live, one.unexplained) == (4, 2)
    assert [s.outcome for s in one.survivors] == ["survived", "undecided"]
    assert one.survivors[0].becomes in FIRST[2].apply(ROOT)
    assert one.survivors[0].margins == 0.12


def test_a_new_campaign_replaces_that_of_its_folder_and_keeps_reasons(tmp_path: Path) -> None:
    other = made("survived")._replace(folder="simulate")
    old = put_on_record(tmp_path, made("disagrees", "survived"), other)
    one = old[0]._replace(survivors=[old[0].survivors[0]._replace(reason="route: so")])
    (tmp_path / "campaign.json").write_text(record.written([one, old[1]]))

    again = made("survived", "undecided")
    moved = again.survivors[1]._replace(place=f"{FIRST[1].file}:{FIRST[1].line + 7}")
    new, kept = both = put_on_record(tmp_path, again._replace(survivors=[again.survivors[0], moved]))
    assert kept == old[1]
    assert [s.reason for s in new.survivors] == ["", "route: so"]
    page = record.document(both)  # where survivors without a reason come first
    assert page.index("|  |\n") < page.index("route: so")
    assert "Survivors: 2, 1 of them without a reason" in page


def test_a_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "campaign.json"
    file.write_text('[{"folder": "theory"}]')

    with pytest.raises(ValueError, match="must be a record of a campaign, got TypeError"):
        campaigns(file)
    assert campaigns(tmp_path / "none.json") == ()


def test_the_record_says_all_that_was_tried_and_why_the_rest_survived() -> None:
    """Shared code of both sides of a claim is not a reason for survival."""
    assert record.PAGE.read_text() == record.document(campaigns())
    for one in campaigns():
        assert len(one.survivors) == one.all.live - one.all.caught
        for kind, _, why in (s.reason.partition(": ") for s in one.survivors if s.reason):
            assert why and kind in ("identity", "accuracy", "margin", "route", "reported", "setting")
            assert kind != "margin" or why.count("%") >= 2
            assert "cancel" not in why and "control variate" not in why
