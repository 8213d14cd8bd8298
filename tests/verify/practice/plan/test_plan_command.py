"""A plan from the command line and as a page; what cannot be planned is told."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.verify.practice.plan.small_plans import SIZES, small_network
from verify import cli
from verify.page import terminal
from verify.practice import work
from verify.practice.loading import Problem, problem
from verify.practice.measure import measure_problem
from verify.practice.measure.pages import measurement_page, measurement_text
from verify.practice.plan import Plan, pages as plan_pages, plan_problem, words as plan_words


@pytest.fixture(scope="module")
def given() -> Problem:
    return small_network()


@pytest.fixture(scope="module")
def made(given: Problem) -> Plan:
    return plan_problem(given, SIZES, heavy=5, batches=2, adam=(1e-3, 4), steps=20)


# --- what is given, and what is left as found ------------------------------------------------------------------


def test_the_same_seed_gives_the_same_plan_and_changes_nothing() -> None:
    given = small_network()
    model, state = given.objective.model, torch.get_rng_state()
    assert model is not None
    before = {name: p.clone() for name, p in model.state_dict().items()}
    few: dict[str, Any] = {"directions": 2, "heavy": 1, "batches": 2, "steps": 10}
    first, again = (plan_problem(given, [2], seed=5, **few) for _ in range(2))
    assert (first.trials, first.linearised, first.state) == (again.trials, again.linearised, again.state)
    assert all(torch.equal(p, before[name]) for name, p in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(torch.get_rng_state(), state)
    other = plan_problem(given, [2], seed=6, **few)
    assert other.linearised is not None and first.linearised is not None
    assert other.linearised.rates[0].batch != first.linearised.rates[0].batch
    assert other.trials[0].walked != first.trials[0].walked


def test_work_is_told_in_order_and_within_bounds(given: Problem) -> None:
    told: list[tuple[str, float]] = []
    few: dict[str, Any] = {"directions": 1, "heavy": 1, "batches": 2, "steps": 5}
    plan_problem(given, [2, 7, 14], tell=lambda what, share: told.append((what, share)), **few)
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert 0 == shares[0] < shares[-1] <= 1
    assert list(dict.fromkeys(what for what, _ in told)) == [
        "trial training",
        "top of the Gauss-Newton matrix",
        "top of the Hessian",
        "single samples",
        "noise of the samples",
        "eigenvalues of batches",
        "noise of gradients",
        "limits of the optimizer",
    ]


def test_a_pipe_is_told_how_long_it_takes(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_EVERY", 0.0)
    with work.on_terminal("plan") as tell:
        tell("batches", 0.25)
    assert capsys.readouterr().err == "  batches: 25 %, 0 s\n"
    assert work._left(30.0, 0.25) == "30 s, about 90 s left"


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([], "batch sizes must be at least one, got none"),
        ([0], "batch sizes must be integers of at least 1, got 0"),
        ([4, -2], "batch sizes must be integers of at least 1, got -2"),
        ([1.5], "batch sizes must be integers of at least 1, got 1.5"),
        ([True], "batch sizes must be integers of at least 1, got True"),
        ([15], "batch sizes must be at most the number of samples, 14, got 15"),
        ([4, 2, 4], "batch sizes must be different, got 4 more than once"),
    ],
)
def test_batch_sizes_that_cannot_be_are_refused(given: Problem, sizes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_problem(given, sizes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adam": (0.0, 4)}, "Adam's rate must be positive and its batch size at least 1, got 0.0 and 4"),
        ({"adam": (math.nan, 4)}, "Adam's rate must be positive"),
        ({"adam": (0.1, 0)}, "Adam's rate must be positive and its batch size at least 1, got 0.1 and 0"),
        ({"directions": 0}, "directions must be at least 1, got 0"),
        ({"heavy": -1}, "heavy must be at least 0, got -1"),
        ({"batches": 1}, "batches must be at least 2, got 1"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"intended": 0}, "intended must be at least 1, got 0"),
        ({"rate": -0.1}, "rate must be positive and finite, got -0.1"),
        ({"rate": math.nan}, "rate must be positive and finite, got nan"),
        ({"momentum": 1.0}, "momentum must be from 0 to below 1, got 1.0"),
        ({"weight_decay": -1.0}, "weight_decay must be non-negative and finite, got -1.0"),
        ({"optimizer": "adamx"}, "optimizer must be one of sgd, momentum, adam, adamw, .*, got 'adamx'"),
        (
            {"optimizer": [3]},
            r"optimizer must be one of .*, got \[3\]; batch sizes go by name, batch_sizes=\[3\]",
        ),
        ({"optimizer": "adam", "momentum": 0.9}, "momentum must be left out with adam, got 0.9"),
        (
            {"optimizer": torch.optim.Adam, "weight_decay": 0.1},
            "must go with an optimizer given by name; set them in the optimizer itself",
        ),
        (
            {"trials": False, "linearised": False},
            "a plan must have trials or the linearised section, got neither",
        ),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_numbers_that_cannot_be_are_refused(given: Problem, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_problem(given, [1], **options)


def _line() -> nn.Module:
    return nn.Linear(1, 1, bias=False)


@pytest.mark.parametrize(
    ("loss", "training", "message"),
    [
        (nn.MSELoss(reduction="sum"), False, "loss must be a mean over the samples, got a sum"),
        (nn.MSELoss(), True, "a plan needs evaluation mode"),
        (nn.L1Loss(), False, "model must have curvature along some direction"),
        (
            lambda o, y: ((o - y) ** 2).mean().sqrt(),
            False,
            "loss must be a mean over samples, each for itself, for a plan, got another: the loss of a batch is not",
        ),
        (lambda o, y: ((o - o.mean(0)) ** 2).mean(), False, "each for itself, for a plan, got another"),
        (lambda o, y: (y * (o - y) ** 2).sum() / y.sum(), False, "each for itself, for a plan, got another"),
        (lambda o, y: -((o - y) ** 2).mean(), False, "loss must be convex in the outputs"),
        (lambda o, y: ((o - y) ** 2 * (y - 1.5)).mean(), False, "loss must be convex in the .* use float64"),
    ],
)
def test_problems_without_a_bracket_are_refused(loss: Any, training: bool, message: str) -> None:
    x = torch.tensor([[1.0], [2.0], [3.0]])
    given = problem(_line(), (x, x), loss=loss, training=training)
    with pytest.raises(ValueError, match=message):
        plan_problem(given, [1], trials=False)


def test_a_single_sample_has_no_batches() -> None:
    x = torch.ones(1, 1)
    with pytest.raises(ValueError, match="data must hold at least two samples for a plan, got one"):
        plan_problem(problem(_line(), (x, 2 * x)), [1])


# --- the command -----------------------------------------------------------------------------------------------


MODEL = """
import torch

class Net(torch.nn.Linear):
    def forward(self, x):
        print("running")
        return super().forward(x)

def build():
    return Net(3, 2)
"""


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "own.npz", x=rng.standard_normal((9, 3)), y=rng.integers(0, 2, 9))
    (tmp_path / "net.py").write_text(MODEL)
    given = ["--model", f"{tmp_path / 'net.py'}:build", "--data", str(tmp_path / "own.npz")]
    return ["plan", *given, "--output", str(tmp_path / "out")]


def test_the_command_prints_a_row_for_each_size_and_writes_its_files(
    words: list[str], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    more = ["--adam-rate", "1e-3", "--adam-batch", "3", "--steps", "20"]
    assert cli.main([*words, "--batch-sizes", "1,3,9", *more]) == 0
    printed = capsys.readouterr()
    told = set(printed.err.splitlines()) - {"running"}
    assert len(told) == 1
    assert re.fullmatch(
        r"losscurv: about \d+ to \d+ steps of training, the more the less is learned, \d+ to \d+ s; curvature, about"
        r" \d+ s",
        told.pop(),
    )
    assert printed.out.endswith(f"\npage: {tmp_path / 'out' / 'plan.html'}\n")
    tables = [b.splitlines() for b in printed.out.split("\n\n") if b.lstrip().startswith("B  ")]
    assert [[row.split()[0] for row in table] for table in tables] == [["B", "1", "3", "9"]] * 2
    assert [table[0].split("  ")[-1].strip() for table in tables] == ["loss", "Adam √B"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "plan.html",
        "plan.json",
        "plan.png",
        "plan.svg",
    ]


def test_json_is_what_is_written(
    words: list[str], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_pages.plots, "save_figure", lambda *_: [])
    assert cli.main([*words, "--batch-sizes", "9", "--json", "--steps", "10", "--intended", "90"]) == 0
    printed = capsys.readouterr().out
    assert printed == (tmp_path / "out" / "plan.json").read_text(encoding="utf-8")
    found = json.loads(printed)
    assert found["samples"] == 9
    assert found["version"] == 3
    (at,) = found["linearised"]["rates"]
    assert (at["batch_size"], at["adam"], at["sharpness"]["standard_error"]) == (9, None, 0)
    (trial,) = found["trials"]
    assert trial["batch_size"] == 9
    assert trial["walked"]["rungs"]
    assert (trial["ahead"], found["intended"]) == (10, 90)
    assert found["state"]["constant"] > 0
    assert all("hold-out networks" in line for line in found["uncertainty"])
    assert len(found["uncertainty"]) == 2


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (("--batch-sizes", "0"), "batch sizes must be integers of at least 1, got 0"),
        (("--batch-sizes", "10"), "batch sizes must be at most the number of samples, 9, got 10"),
        (("--batch-sizes", "-4"), "batch sizes must be integers of at least 1, got -4"),
        (("--batch-sizes", "3,3"), "batch sizes must be different, got 3 more than once"),
        (("--batch-sizes", "3,many"), "--batch-sizes must be integers with commas between them"),
        (("--batch-sizes", ""), "--batch-sizes must be given a value, got ''"),
        (("--batch-sizes", "3,"), "--batch-sizes must be integers with commas between them"),
        (("--batch-sizes", "3", "--adam-rate", "1"), "--adam-rate and --adam-batch must be given together"),
        (("--batch-sizes", "3", "--steps", "0"), "steps must be at least 1, got 0"),
        (("--batch-sizes", "3", "--training"), "a plan needs evaluation mode"),
    ],
)
def test_bad_words_end_in_one_line(words: list[str], more: tuple[str, ...], line: str, capsys: Any) -> None:
    assert cli.main([*words, *more]) == 2
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1].startswith("losscurv: ")
    assert line in printed.err
    assert set(printed.err.splitlines()[:-1]) <= {"running"}
    assert printed.out == ""


@pytest.mark.parametrize("more", [("--batch-sizes", "10"), ("--batch-sizes", "3", "--samples", "99")])
def test_what_cannot_be_planned_leaves_no_folder(words: list[str], more: Any, tmp_path: Path) -> None:
    assert cli.main([*words, *more]) == 2
    assert not (tmp_path / "out").exists()


def test_a_full_disk_takes_no_rates_away(
    words: list[str], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise ValueError("plan cannot be written")

    monkeypatch.setattr(plan_pages, "write_plan", full)
    assert cli.main([*words, "--batch-sizes", "9", "--steps", "10"]) == 2
    out, err = capsys.readouterr()
    assert "start with" in out and "stable below" in out and "page:" not in out
    assert err.splitlines()[-1] == "losscurv: plan cannot be written"


def test_batch_sizes_must_be_given(words: list[str], capsys: Any) -> None:
    assert cli.main(words) == 2
    assert "--batch-sizes" in capsys.readouterr().err


# --- pages -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [50, 80, 100])
def test_tables_fit_the_terminal(width: int, made: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    tables = [table for table in (plan_words.trial_table(made), plan_words.batch_table(made)) if table]
    printed = plan_words.plan_text(made)

    assert tables
    for head, *rows in tables:
        lines = terminal.fitted_table(head, rows, right=True)
        assert max(map(len, lines)) <= width and "\n".join(lines) in printed


def test_the_picture_has_a_panel_for_each_section(made: Plan) -> None:
    tried, bracket, adam = plan_pages.plan_figure(made).axes
    assert {"start with", "largest that trained"} <= set(tried.get_legend_handles_labels()[1])
    names = set(bracket.get_legend_handles_labels()[1])
    assert {
        "stable below, unstable above",
        "2 / Theorem 4",
        "2 / E λ₁(B), eight of ten batches",
        "crossover within",
    } <= names
    assert [axes.get_title(loc="left") for axes in (tried, bracket, adam)] == [
        "Trial training: SGD",
        "Plain SGD, linearised at these parameters",
        "Adam, in proportion to √B",
    ]


def test_measure_says_the_same_of_full_gradients_in_the_same_words(given: Problem, made: Plan) -> None:
    """On pages as in the terminal."""
    found = measure_problem(given, top=1)
    lines = [line for line in measurement_text(found).splitlines() if line.startswith("2/λ₁(")]
    assert [line[:7] for line in lines] == ["2/λ₁(H)", "2/λ₁(G)"]
    printed = plan_words.plan_text(made)
    assert all(line in " ".join(printed.split()) for line in lines)
    assert max(map(len, printed.splitlines())) <= 90  # of tables; sentences take 80
    for page in (measurement_page(found), plan_pages.plan_page(made)):
        assert all(escape(line) in page for line in lines)


def test_what_was_not_asked_for_is_not_said(given: Problem) -> None:
    curved = plan_problem(given, [3], directions=1, heavy=0, batches=2, trials=False)
    assert len(plan_pages.plan_figure(curved).axes) == 1
    assert "Adam" not in plan_words.plan_text(curved)
    assert "start with" not in plan_words.plan_text(curved) + plan_pages.plan_page(curved)
    tried = plan_problem(given, [3], steps=10, linearised=False)
    assert len(plan_pages.plan_figure(tried).axes) == 1
    assert "inearised" not in plan_words.plan_text(tried)
    assert "unstable" not in plan_pages.plan_page(tried)


def test_the_page_needs_nothing_else_and_shows_every_rate(made: Plan) -> None:
    text = plan_pages.plan_page(made)
    assert text.count("<svg") == 1
    for foreign in ("<script", 'href="http', "@import", "src="):
        assert foreign not in text
    for at in made.trials:
        assert text.count(f'<th scope="row">{at.batch_size}</th>') == 2
    assert "var(--theory)" in text


def test_what_is_infinite_is_null_in_json(made: Plan) -> None:
    state = dataclasses.replace(made.state, loss=math.inf)
    found = json.loads(plan_pages.plan_json(dataclasses.replace(made, state=state)))
    assert found["state"]["loss"] is None


def test_a_folder_that_cannot_be_written_is_told(made: Plan, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="plan cannot be written to"):
        plan_pages.write_plan(made, tmp_path / "file" / "below")
