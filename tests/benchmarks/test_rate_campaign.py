"""A half of the rates, from runs to tables, with networks of some numbers; stopped, and continued."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from benchmarks.rates import __main__ as command, rules
from benchmarks.rates.cells import (
    FULL,
    SIZES,
    Answer,
    Cell,
    Effort,
    Ground,
    Measured,
    Outcome,
    Records,
    best,
    cells_of,
    place,
    rate,
)
from benchmarks.rates.networks import NETWORKS, SAMPLES, Network
from benchmarks.rates.rules import FIXED, LOOKS, Asked, Probe, ramp
from benchmarks.rates.tables import constants, judged, regretted, tables
from verify.practice.plan.trials import looked_ahead

pytestmark = pytest.mark.slow

UNUSED: Any = None
"""For what the rule on trial does not look at."""

SHORT = Effort(6, 0, (0,), (("start", "sgd"), ("trained", "sgd"), ("start", "momentum")), 4)


@pytest.fixture(scope="module")
def small() -> Network:
    """One layer of digits."""
    network = next(n for n in NETWORKS if n.source == "digits-8")

    def layer() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

    return Network(**{**vars(network), "module": layer, "squared": False, "start": "torch"})


@pytest.fixture(scope="module")
def found(small: Network, tmp_path_factory: pytest.TempPathFactory) -> Records:
    records = Records(tmp_path_factory.mktemp("rates") / "small.jsonl")
    list(rules.work(small, SHORT, records))
    return records


def test_all_cells_are_measured_and_all_rules_answer(small: Network, found: Records) -> None:
    cells = list(cells_of(small, SHORT))
    assert set(found.cells) == set(cells)
    for cell in cells:
        asked = {name for at, name in found.answers if at == cell}
        looks = [look for look in LOOKS if cell.optimiser in look.optimisers]
        assert asked == {name for look in looks for name, size in look.expected if size == cell.batch_size}
        assert found.cells[cell].steps == SHORT.horizon(cell.batch_size)
        assert 1 <= len(found.cells[cell].tried) <= SHORT.most


def filed(text: str) -> set[str]:
    """Return the lines of a file, with costs rounded, because their sums begin anew with a campaign."""
    lines = [json.loads(line) for line in text.splitlines()]
    return {json.dumps(line | {"cost": f"{line.get('cost', 0.0):.9g}"}) for line in lines}


def test_what_was_found_is_not_run_again(
    small: Network, found: Records, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A campaign that was killed in the middle of a line ends with a file that says the same."""
    whole = found.file.read_text(encoding="utf-8")
    half = tmp_path / "half.jsonl"
    half.write_text(whole[: len(whole) // 2], encoding="utf-8")
    list(rules.work(small, SHORT, Records(half)))
    assert filed(half.read_text(encoding="utf-8")) == filed(whole)

    def no_run(*_: object, **__: object) -> Outcome:
        raise AssertionError("run again")

    monkeypatch.setattr(Ground, "outcome", no_run)
    monkeypatch.setattr(rules, "_trials", no_run)
    list(rules.work(small, SHORT, Records(half)))


def test_a_look_that_was_filed_in_part_is_asked_again(tmp_path: Path) -> None:
    records, cells = Records(tmp_path / "a.jsonl"), {s: Cell("a", "start", "sgd", 0, s) for s in SIZES}
    asked = Asked(UNUSED, "sgd", FULL, cells, {}, UNUSED)
    calls: list[int] = []

    def ask(_: Asked) -> dict[str, dict[int, Answer]]:
        calls.append(1)
        return {"a": {size: Answer(0.5, 1.0) for size in SIZES}}

    records.add_answer(cells[512], "a", Answer(0.5, 1.0))
    for expected in (1, 1):
        rules.ask(asked, rules.Look(("a",), ask), records)
        assert len(calls) == expected
    assert asked.earlier == {("a", size): Answer(0.5, 1.0) for size in SIZES}


def test_a_rule_that_refuses_a_network_gives_no_rate(
    small: Network, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, cells = Records(tmp_path / "a.jsonl"), {s: Cell("a", "start", "sgd", 0, s) for s in SIZES}
    asked = Asked(Ground(small, "start", 0), "sgd", FULL, cells, {}, UNUSED)

    def ask(_: Asked) -> dict[str, dict[int, Answer]]:
        raise ValueError("model must be convex")

    rules.ask(asked, rules.Look(("a", "b"), ask, sizes=(8,)), records)
    assert asked.earlier == {("a", 8): Answer(None, 0.0), ("b", 8): Answer(None, 0.0)}
    assert capsys.readouterr().err == f"{small.name}: no a and no b: model must be convex\n"


def lines(records: Records, *known: Any) -> str:
    """The tables, without what pads their cells."""
    return "\n".join(" ".join(line.split()) for line in tables([records], *known).splitlines())


def test_rates_that_rules_give_were_run(found: Records) -> None:
    rows = judged([found])
    assert rows
    followed = [row for row in rows if row.rule not in rules.EDGES and row.ratio is not None]
    assert all(math.isfinite(row.regret) or row.above or row.ratio > 1 for row in followed)
    made = lines(found)
    assert "| walk |" in made
    assert "| sgd, trained | cells |" in made
    assert "nan" not in made


def test_a_carried_rate_has_the_ratio_of_its_rule() -> None:
    cells = {size: Cell("a", "start", "sgd", 0, size) for size in SIZES}
    measured = {s: Measured(10, 2.0, 2.3, {k: Outcome(abs(k + 2), True) for k in (-4, -2, 0)}) for s in SIZES}
    asked = Asked(UNUSED, "sgd", FULL, cells, measured, UNUSED)
    for name in ("2 / E lambda_1(B)", "one step with noise scale"):
        asked.earlier.update({(name, s): Answer(s / 100, 0.3) for s in SIZES})
    asked.earlier["walk", 64] = Answer(0.125, 3.0)
    answers = rules._carried(asked)
    assert answers["best at 64, by noise scale"][512] == Answer(0.5 * 8, 1.0 + 0.3)
    assert answers["walk at 64, by E lambda_1(B)"][8] == Answer(0.125 / 8, 1.3)
    assert 64 not in answers["walk at 64, by noise scale"]
    asked.earlier["walk", 64] = Answer(None, 3.0)
    assert rules._carried(asked)["walk at 64, by noise scale"][8].rate is None
    scaled = rules._scaled(asked)
    assert scaled["linear from the best at 64"][512].rate == 0.5 * 8
    assert scaled["square root from the best at 64"][8].rate == pytest.approx(0.5 / math.sqrt(8))


def test_a_ramp_multiplies_the_rate_after_each_step(small: Network) -> None:
    ground = Ground(small, "start", 0)
    asked = Asked(ground, "sgd", SHORT, {}, {}, UNUSED)
    rates, losses = ramp(asked, 64)
    assert rates[0] == pytest.approx(1e-5)
    assert len(rates) == len(losses) <= 100
    assert rates[-1] / rates[0] == pytest.approx(1e6 ** ((len(rates) - 1) / 99))
    assert min(losses) < losses[0]


def test_curvature_of_one_layer_is_that_of_its_dense_hessian(small: Network) -> None:
    """The largest eigenvalue, the best full step and the rate at which a step no longer lowers the loss."""
    ground = Ground(small, "start", 0)
    probe = Probe(ground)
    inputs, targets = ground.data
    layer = ground.model[1]

    def loss(weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(inputs.flatten(1) @ weight.T + bias, targets)

    own = (layer.weight.detach(), layer.bias.detach())
    blocks = torch.autograd.functional.hessian(loss, own)
    dense = torch.cat(
        [torch.cat([b.reshape(o.numel(), -1) for b in row], 1) for o, row in zip(own, blocks, strict=True)]
    )
    assert probe.top == pytest.approx(float(torch.linalg.eigvalsh(dense)[-1]), rel=0.02)
    gradient = torch.cat([g.reshape(-1) for g in torch.func.grad(loss, (0, 1))(*own)])
    expected = float(gradient @ gradient / (gradient @ dense @ gradient))
    assert probe.one_step[0] == pytest.approx(expected, rel=1e-3)
    assert probe.one_step[1] > 0
    assert expected < probe.critical(512) < 20 * expected
    assert probe.spent > 0


def test_the_bracket_and_theorem_4_lie_about_two_over_the_eigenvalue(small: Network) -> None:
    probe = Probe(Ground(small, "start", 0))
    most = 2 / probe.linearised[0].largest
    sides = [probe.bracket(size) for size in (8, 64, 512)]
    assert all(low <= high <= 1.001 * most for low, high in sides)
    assert sides[0][0] < sides[1][0] < sides[2][0]
    assert probe.theorem_4(8) < probe.theorem_4(512) <= 1.001 * most


class Told:
    """Trials whose end is known."""

    def __init__(self, ahead: Callable[[int], int], start: float | None = 2.0) -> None:
        self.ahead, self.start = ahead, start

    def run(self) -> list[SimpleNamespace]:
        return [self._tried(size) for size in sorted(SIZES)]

    def _tried(self, size: int) -> SimpleNamespace:
        steps = self.ahead(size)
        seen = SimpleNamespace(best=SimpleNamespace(rate=3.0 * size), steps=2 * steps)
        start = self.start and self.start * steps
        return SimpleNamespace(batch_size=size, start=start, trains=4.0 * size, walked=seen)


def test_a_walk_tells_what_a_plan_does_and_another_takes_fewer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(UNUSED, "momentum", FULL, {}, {}, UNUSED)
    monkeypatch.setattr(rules, "_trials", lambda _, ahead: Told(ahead))
    answers = rules._walk(asked)
    assert answers["walk"] == {8: Answer(1280.0, 2.0), 64: Answer(400.0, 2.0), 512: Answer(400.0, 2.0)}
    assert answers["walk without a step back"][512] == Answer(1536.0, 2.0)
    assert answers["walk, largest that trains"][8].rate == 32.0
    assert answers["walk of fewer steps"][8] == Answer(400.0, 400 / 640)
    assert answers["walk of fewer steps"][64] == answers["walk"][64]
    monkeypatch.setattr(rules, "_trials", lambda _, ahead: Told(ahead, None))
    assert rules._walk(asked)["walk without a step back"][64] == Answer(None, 2.0)


def test_a_plan_looks_ahead_as_far_as_the_grid() -> None:
    assert [looked_ahead(size, SAMPLES) for size in SIZES] == [FULL.horizon(size) for size in SIZES]


def test_a_search_begins_at_what_is_known() -> None:
    sgd = Cell("a", "start", "sgd", 0, 64)
    one = Measured(10, 2.0, 2.3, {k: Outcome(abs(k + 5), True) for k in (-7, -5, -3)})
    assert rules.beginning(sgd, {}) == (place(FIXED["sgd"]), 4)
    known = {sgd: one}
    assert rules.beginning(sgd._replace(seed=1), known) == (-5, 2)
    assert rules.beginning(sgd._replace(state="trained"), known) == (-5, 2)
    assert rules.beginning(sgd._replace(batch_size=8), known) == (-5, 4)
    assert rules.beginning(sgd._replace(optimiser="momentum"), known) == (-12, 2)
    assert rules.beginning(sgd._replace(optimiser="adam"), known) == (place(FIXED["adam"]), 4)


def rows_of(tmp_path: Path, answer: Answer, *more: tuple[int, Outcome]) -> Records:
    """A cell whose best is at 0 and whose edge at 2, with a rule's answer and runs."""
    records, cell = Records(tmp_path / "a.jsonl"), Cell("a", "start", "sgd", 0, 64)
    tried = {
        -2: Outcome(0.5, True),
        0: Outcome(0.2, True),
        2: Outcome(0.6, True),
        3: Outcome(math.inf, False),
    }
    records.add_cell(cell, Measured(10, 2.5, 2.2, tried))
    for at, seen in more:
        records.add_run(cell, at, seen)
    records.add_answer(cell, "walk", answer)
    return Records(records.file)


def test_a_rate_is_judged_by_the_run_at_it(tmp_path: Path) -> None:
    (row,) = judged([rows_of(tmp_path, Answer(0.5, 1.5))])
    assert row.ratio == 0.5
    assert row.edge_ratio == 0.25
    assert not row.above
    assert row.regret == pytest.approx((0.5 - 0.2) / (2.2 - 0.2))
    assert row.cost == 1.5


def test_a_rate_that_does_not_train_is_above_the_edge(tmp_path: Path) -> None:
    (row,) = judged([rows_of(tmp_path, Answer(rate(3), 1.5))])
    assert row.above
    assert row.regret == math.inf
    (tmp_path / "other").mkdir()
    slow = rows_of(tmp_path / "other", Answer(rate(-9), 0.0), (-9, Outcome(2.3, False)))
    assert not judged([slow])[0].above


def test_no_answer_is_a_miss(tmp_path: Path) -> None:
    records = rows_of(tmp_path, Answer(None, 2.0))
    (row,) = judged([records])
    assert row.ratio is None
    assert row.regret == math.inf
    assert "| walk | 1 | 0.00 | 0.00 | -, none in 1 | 0.00 | 0.00 | 2 |" in lines(records)


def test_constants_are_medians_of_best_over_rule(tmp_path: Path) -> None:
    records = rows_of(tmp_path, Answer(0.25, 0.0))
    assert constants(judged([records])) == {("sgd", "walk"): 4.0}
    assert "| sgd: walk | 4 | 1.00 | 1.00 | 1 |" in lines(records)
    assert "| sgd: walk | 2 | 0.00 | 1.00 | 2 |" in lines(records, {("sgd", "walk"): 2.0})


def test_regret_counts_from_the_better_of_start_and_constant() -> None:
    measured = Measured(10, 30.0, 2.2, {0: Outcome(0.2, True)})
    assert regretted(measured, 2.2) == 1.0
    assert regretted(measured, 0.2) == 0.0


def test_a_later_state_was_trained_and_all_runs_begin_there(small: Network) -> None:
    early, late = (Ground(small, state, 0) for state in ("start", "trained"))
    assert late.references(64, 20)[0] < early.references(64, 20)[0]
    before = {name: value.clone() for name, value in late.model.state_dict().items()}
    late.outcome("sgd", 64, 0, steps=5, reference=1.0)
    assert all(torch.equal(value, before[name]) for name, value in late.model.state_dict().items())


def test_a_run_is_held_to_a_constant_on_its_own_batches(small: Network) -> None:
    """Over whole epochs that is the constant of all samples; over a few batches it follows their classes."""
    ground = Ground(small, "start", 0)
    assert ground.references(512, 20)[1] == pytest.approx(ground.constant, rel=1e-5)
    few = ground.references(8, 10)[1]
    assert few != pytest.approx(ground.constant, rel=1e-4)
    assert few == pytest.approx(ground.constant, rel=0.2)
    start = ground.references(8, 10)[0]
    assert not ground.outcome("sgd", 8, -60, steps=10, reference=min(start, few)).trains


def test_a_folder_is_of_one_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "setting.json").write_text(json.dumps({"half": "design", "quick": False, "data": None}))
    assert command.main(["--folder", str(tmp_path), "--half", "design", "--quick"]) == 1
    assert "--folder must be of this setting" in capsys.readouterr().err


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_command_runs_a_network_and_writes_tables(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    short = Effort(2, 0, (0,), (("start", "adam"),), 2)
    monkeypatch.setattr(command, "QUICK", short)
    name = "tanh-squared-digits-torch"
    given = [
        "--folder",
        str(tmp_path),
        "--half",
        "design",
        "--quick",
        "--network",
        name,
        "--workers",
        workers,
    ]
    assert command.main(given) == 0
    said = capfd.readouterr()
    assert f"{name}, start, adam, seed 0, B = 64: best" in said.err
    assert (tmp_path / "tables.md").read_text() == said.out[:-1]
    assert len(Records(tmp_path / f"{name}.jsonl").cells) == 3
    assert (
        best(Records(tmp_path / f"{name}.jsonl").cells[Cell(name, "start", "adam", 0, 64)].tried) is not None
    )
