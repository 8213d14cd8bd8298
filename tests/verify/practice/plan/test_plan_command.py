"""A plan from the command line and as a page; what cannot be planned is told."""

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.refusals import refusal
from tests.verify.practice.plan.small_plans import SIZES, small_network
from verify import cli
from verify.practice import work
from verify.practice.loading import Problem
from verify.practice.plan import Plan, pages as plan_pages, plan_problem
from verify.practice.plan.trials import Trials
from verify.signals import Interrupted


@pytest.fixture(scope="module")
def given() -> Problem:
    return small_network()


@pytest.fixture(scope="module")
def made(given: Problem) -> Plan:
    return plan_problem(given, SIZES, steps=20, curvature=True)


# --- what is given, and what is left as found ------------------------------------------------------------------


def test_the_same_seed_gives_the_same_plan_and_changes_nothing() -> None:
    given = small_network()
    model, state = given.objective.model, torch.get_rng_state()
    before = {name: p.clone() for name, p in model.state_dict().items()}
    first, again = (plan_problem(given, [2], seed=5, steps=10, curvature=True) for _ in range(2))
    assert (first.trials, first.linearised, first.state) == (again.trials, again.linearised, again.state)
    assert all(torch.equal(p, before[name]) for name, p in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(torch.get_rng_state(), state)
    other = plan_problem(given, [2], seed=6, steps=10)
    assert other.trials[0].runs != first.trials[0].runs and other.linearised is None


def test_a_pipe_is_told_how_long_it_takes(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_EVERY", 0.0)
    with work.on_terminal("plan") as tell:
        tell("batches", 0.25)
    assert capsys.readouterr().err == "  batches: 25 %, 0 s\n"
    assert work._time_left(30.0, 0.25) == "30 s, about 90 s left"
    assert work._time_left(30.0, 0.0) == "30 s"  # nothing is done yet, so nothing is known of the rest


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("32", "^batch_sizes must be an integer or a sequence of integers, got '32'$"),
        ([], r"^batch sizes must be different, and one at least, got \[\]"),
        ([1.5], "^each batch size must be a positive integer, got 1.5"),
        ([True], "positive integer, got True"),
        ([15], "^batch sizes must be at most the 14 samples, got 15"),
        ([4, 2, 4], r"^batch sizes must be different, .* got \[4, 2, 4\]"),
    ],
)
def test_batch_sizes_that_cannot_be_are_refused(given: Problem, sizes: Any, message: str) -> None:
    with refusal(message):
        plan_problem(given, sizes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be a positive integer, got 0"),
        ({"seconds": 0}, "seconds must be finite and positive, got 0"),
        ({"rate": -0.1}, "rate must be positive and finite, got -0.1"),
        ({"momentum": 1.0}, "momentum must be from 0 to below 1, got 1.0"),
        ({"optimizer": "adamx"}, "optimizer must be one of sgd, momentum, adam, adamw, .*, got 'adamx'"),
        ({"optimizer": "adam", "momentum": 0.9}, "adam takes no momentum, got 0.9; leave it out"),
        (
            {"optimizer": torch.optim.Adam, "weight_decay": 0.1},
            "apply to an optimizer given by name only; set them in the optimizer itself",
        ),
    ],
)
def test_numbers_that_cannot_be_are_refused(given: Problem, options: Any, message: str) -> None:
    with refusal(message):
        plan_problem(given, [1], **options)


# --- the command -----------------------------------------------------------------------------------------------


@pytest.fixture
def words(net: list[str]) -> list[str]:
    return ["plan", *net, "--output", "out"]


def test_the_command_prints_a_row_for_each_size_and_writes_its_files(
    words: list[str], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert cli.main([*words, "--batch-sizes", "1,3,8", "--curvature", "--steps", "20"]) == 0
    printed = capsys.readouterr()
    assert re.fullmatch(r"losscurv: about \d+ training steps, \d+ s\n", printed.err)
    assert printed.out.endswith("\npage: out/plan.html\n")
    trials, limits = (printed.out.split("\n\n")[k].splitlines() for k in (1, 3))
    for table in (trials, limits):
        assert [row.split()[0] for row in table if row.split()[0].isdigit()][:3] == ["1", "3", "8"]
    assert "8 of 10" in trials[0] and "Theorem 4" in limits[1]
    files = {file.name for file in Path("out").iterdir()}
    assert files == {"plan.html", "plan.json", "plan.png", "plan.svg"}


def test_json_is_what_is_written(words: list[str], capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_pages.plots, "save_figure", lambda *_: [])
    assert cli.main([*words, "--json", "--steps", "10", "--curvature"]) == 0
    printed = capsys.readouterr().out
    assert printed == Path("out/plan.json").read_text(encoding="utf-8")
    found = json.loads(printed)
    (at,), (trial,) = found["linearised"]["rates"], found["trials"]
    assert (found["samples"], found["version"], found["score"]) == (8, 4, "training")
    assert (at["batch_size"], at["sharpness"]["standard_error"]) == (8, 0)
    assert trial["batch_size"] == 8 and trial["ahead"] == 10 and trial["runs"][0]["loss"] > 0
    assert found["state"]["constant"] > 0


def test_an_interrupted_command_prints_what_it_has(
    words: list[str], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: Trials, *_: Any, **__: Any) -> bool:
        self.steps = {4: 10}
        run(self)
        raise Interrupted

    run = Trials.run
    monkeypatch.setattr(Trials, "run", interrupt)
    assert cli.main([*words, "--batch-sizes", "4,8", "--steps", "10"]) == 130
    out = capsys.readouterr().out
    assert "(interrupted)" in out and Path("out/plan.html").exists()
    assert [at["batch_size"] for at in json.loads(Path("out/plan.json").read_text())["trials"]] == [4]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("--batch-sizes 10", "batch sizes must be at most the 8 samples, got 10"),
        ("--batch-sizes -4", "each batch size must be a positive integer, got -4"),
        ("--batch-sizes 3,many", "--batch-sizes must be integers with commas between them"),
        ("--batch-sizes 3,", "--batch-sizes must be integers with commas between them"),
        ("--batch-sizes 2 4", "unrecognized arguments: 4; write --batch-sizes 2,4; see"),
        ("--training", "a plan needs evaluation mode"),
    ],
)
def test_bad_words_end_in_one_line_and_leave_no_folder(
    words: list[str], more: str, line: str, capsys: Any
) -> None:
    assert cli.main([*words, *more.split()]) == 2
    out, err = capsys.readouterr()
    assert line in err.splitlines()[-1] and not out
    assert not Path("out").exists()


def test_a_full_disk_takes_no_rates_away(
    words: list[str], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise ValueError("plan cannot be written")

    monkeypatch.setattr(plan_pages, "write_plan", full)
    assert cli.main([*words, "--steps", "10"]) == 2
    out, err = capsys.readouterr()
    assert "suggested rate" in out.replace("\n", " ") and "page:" not in out
    assert err.splitlines()[-1] == "losscurv: plan cannot be written"


# --- pages -----------------------------------------------------------------------------------------------------


def test_the_page_needs_nothing_else_and_shows_every_rate(made: Plan) -> None:
    text = plan_pages.plan_page(made)
    assert text.count("<svg") == text.count("<figcaption>") == 1
    assert "<script" not in text and "src=" not in text and 'href="http' not in text
    for at in made.trials:
        assert text.count(f'<th scope="row">{at.batch_size}</th>') == 2
    state = dataclasses.replace(made.state, loss=math.inf)
    found = json.loads(plan_pages.plan_json(dataclasses.replace(made, state=state)))
    assert found["state"]["loss"] is None
