"""A half of the rates, from runs to tables, with networks of some numbers; stopped, and continued."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from benchmarks.rates import __main__ as command, rules
from benchmarks.rates.cells import (
    SIZES,
    Cell,
    Ground,
    Outcome,
    Result,
    Results,
    best,
    load,
    place,
    rate,
)
from benchmarks.rates.networks import NETWORKS, Network
from benchmarks.rates.rules import FIXED, RULES, Asked
from benchmarks.rates.tables import judged, regretted, tables
from simulate.training.constant_outputs import constant_loss
from verify.practice import plan

pytestmark = pytest.mark.slow

UNUSED: Any = None
"""For what the rule on trial does not look at."""

KINDS = (("start", "sgd"), ("trained", "sgd"), ("start", "momentum"), ("start", "adam"))


@pytest.fixture(scope="module")
def small() -> Network:
    """One layer of digits."""
    network = next(n for n in NETWORKS if n.source == "digits-8")

    def layer() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

    return Network(**{**vars(network), "module": layer, "squared": False, "start": "torch"})


@pytest.fixture(scope="module", autouse=True)
def _short() -> Any:
    """Few rates of six steps, of one seed."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"SEEDS": (0,), "MOST": 4, "looked_ahead": lambda *_: 6}.items():
            patch.setattr(rules, name, value)
        patch.setattr(plan, "looked_ahead", lambda *_: 6)
        yield


@pytest.fixture(scope="module")
def folder(small: Network, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("rates")
    list(rules.work(small, found))
    return found


def loaded(folder: Path) -> Results:
    return {cell: result for file in folder.glob("*.json") for cell, result in load(file).items()}


def test_all_cells_are_measured_and_all_rules_answer(small: Network, folder: Path) -> None:
    found = loaded(folder)
    assert set(found) == {Cell(small.name, state, name, 0, size) for state, name in KINDS for size in SIZES}
    for cell, result in found.items():
        asked = {n for n, r in RULES.items() if cell.optimiser in r.optimisers and cell.batch_size in r.sizes}
        assert set(result.answers) == asked
        assert 1 <= len(result.tried) <= 4


def test_what_was_found_is_not_run_again(
    small: Network, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last file is lost: its cells alone are run again, and give the same."""
    file = folder / f"{small.name}-start-adam-0.json"
    before = load(file)
    file.unlink()
    list(rules.work(small, folder))
    assert load(file) == before
    monkeypatch.setattr(rules, "_run_group", None)
    assert len(list(rules.work(small, folder))) == 12


def test_a_rate_is_positive_and_finite_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {"a": -1.0, "b": math.inf, "c": 0.5, "d": None}
    monkeypatch.setattr(rules, "RULES", {name: rules.Rule(lambda *_, r=r: r) for name, r in rates.items()})
    given = rules.answers(Asked(UNUSED, "sgd", 0.5), 8)
    assert given == {"a": None, "b": None, "c": 0.5, "d": None}


def lines(results: Results) -> str:
    """The tables, without what pads their cells."""
    return "\n".join(" ".join(line.split()) for line in tables(results).splitlines())


def test_rates_that_rules_give_were_run(folder: Path) -> None:
    rows = judged(loaded(folder))
    assert rows
    followed = [row for row in rows if row.rule not in rules.EDGES and row.ratio is not None]
    assert all(math.isfinite(row.regret) or row.above or row.ratio > 1 for row in followed)
    made = lines(loaded(folder))
    assert "| walk |" in made
    assert "| sgd, trained | cells |" in made
    assert "nan" not in made


def test_the_best_rate_is_carried_by_powers_of_the_batch_size() -> None:
    asked = Asked(UNUSED, "sgd", 0.5)
    assert RULES["linear from the best at 64"].rate(asked, 512) == 0.5 * 8
    assert RULES["square root from the best at 64"].rate(asked, 8) == pytest.approx(0.5 / math.sqrt(8))


def test_rates_from_the_curvature_of_one_layer_are_bounded_by_that_of_its_dense_hessian(
    small: Network,
) -> None:
    ground = Ground(small, "start", 0)
    asked = Asked(ground, "sgd", 0.5)
    inputs, targets = ground.data
    layer = ground.model[1]

    def loss(weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(inputs.flatten(1) @ weight.T + bias, targets)

    own = (layer.weight.detach(), layer.bias.detach())
    blocks = torch.autograd.functional.hessian(loss, own)
    dense = torch.cat(
        [torch.cat([b.reshape(o.numel(), -1) for b in row], 1) for o, row in zip(own, blocks, strict=True)]
    )
    top = float(torch.linalg.eigvalsh(dense)[-1])

    def found(name: str, size: int) -> float:
        return RULES[name].rate(asked, size) or math.nan

    assert found("2 / lambda_1", 8) == pytest.approx(2 / top, rel=0.02)
    for name in ("2 / E lambda_1(B)", "Theorem 4", "lower side of the bracket"):
        assert 0 < found(name, 8) < found(name, 512) <= 1.02 * 2 / top
    assert found("lower side of the bracket", 8) <= found("upper side of the bracket", 8)


@pytest.mark.parametrize("start", [2.0, None])
def test_a_walk_tells_what_a_plan_does(start: float | None) -> None:
    def told(size: int) -> SimpleNamespace:
        seen = SimpleNamespace(best=SimpleNamespace(rate=3.0 * size))
        return SimpleNamespace(start=start and start * size, trains=4.0 * size, walked=seen)

    asked: Any = SimpleNamespace(trial=told)

    def found(name: str, size: int) -> float | None:
        return RULES[name].rate(asked, size)

    assert found("walk", 8) == (start and 16.0)
    assert found("walk without a step back", 512) == (start and 1536.0)
    assert found("walk, largest that trains", 8) == 32.0
    between = found("walk at 8 and 512, by a power between", 64)
    assert between is None if start is None else between == pytest.approx(128.0)


def test_a_search_begins_at_what_is_known() -> None:
    sgd = Cell("a", "start", "sgd", 0, 64)
    one = Result(2.0, {k: Outcome(abs(k + 5), True) for k in (-7, -5, -3)}, {}, {}, 3.0)
    assert rules.beginning(sgd, {}) == (place(FIXED["sgd"]), 4)
    known = {sgd: one}
    assert rules.beginning(sgd._replace(seed=1), known) == (-5, 2)
    assert rules.beginning(sgd._replace(state="trained"), known) == (-5, 2)
    assert rules.beginning(sgd._replace(batch_size=8), known) == (-5, 4)
    assert rules.beginning(sgd._replace(optimiser="adam"), known) == (place(FIXED["adam"]), 4)


def rows_of(given: float | None, *more: tuple[int, Outcome]) -> Results:
    """A cell whose best is at 0 and whose edge at 2, with a rule's answer and runs."""
    tried = {
        -2: Outcome(0.5, True),
        0: Outcome(0.2, True),
        2: Outcome(0.6, True),
        3: Outcome(math.inf, False),
    }
    cell = Cell("a", "start", "sgd", 0, 64)
    return {cell: Result(2.2, tried, tried | dict(more), {"walk": given}, 1.5)}


def test_a_rate_is_judged_by_the_run_at_it() -> None:
    results = rows_of(0.5)
    (row,) = judged(results)
    assert (row.ratio, row.edge_ratio, row.above) == (0.5, 0.25, False)
    assert row.regret == pytest.approx((0.5 - 0.2) / (2.2 - 0.2))
    assert "| walk | 1 | 1.00 | 0.00 | 0.00 |" in lines(results)
    assert "| sgd, start | 1 | 1.5 | 2 | 2 | 2 | - | - | - |" in lines(results)


def test_a_rate_that_does_not_train_is_above_the_edge() -> None:
    (row,) = judged(rows_of(rate(3)))
    assert row.above
    assert row.regret == math.inf
    assert not judged(rows_of(rate(-9), (-9, Outcome(2.3, False))))[0].above


def test_no_answer_is_a_miss() -> None:
    (row,) = judged(rows_of(None))
    assert row.ratio is None
    assert row.regret == math.inf
    assert "| walk | 1 | 0.00 | 0.00 | 0.00 |" in lines(rows_of(None))


def test_regret_counts_from_the_better_of_start_and_constant() -> None:
    result = Result(2.2, {0: Outcome(0.2, True)}, {}, {}, 0.0)
    assert regretted(result, 2.2) == 1.0
    assert regretted(result, 0.2) == 0.0


def test_a_later_state_was_trained_and_all_runs_begin_there(small: Network) -> None:
    early, late = (Ground(small, state, 0) for state in ("start", "trained"))
    assert late.training("sgd", 64).untrained(18, 20) < early.training("sgd", 64).untrained(18, 20)
    before = {name: value.clone() for name, value in late.model.state_dict().items()}
    late.outcome("sgd", 64, 0, steps=5, reference=1.0)
    assert all(torch.equal(value, before[name]) for name, value in late.model.state_dict().items())


def test_a_run_is_held_to_a_constant_on_its_own_batches(small: Network) -> None:
    """Over whole epochs that is the constant of all samples; over a few batches it follows their classes."""
    ground = Ground(small, "start", 0)
    constant = constant_loss(small.loss, torch.zeros(2, 10), ground.data[1])
    assert ground.reference(512, 20) == pytest.approx(constant, rel=1e-5)
    few = ground.reference(8, 10)
    assert few != pytest.approx(constant, rel=1e-4)
    assert few == pytest.approx(constant, rel=0.2)
    assert not ground.outcome("sgd", 8, -60, steps=10, reference=few).trains


def test_the_command_runs_a_network_and_prints_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(rules, "KINDS", (("start", "adam"),))
    name = "tanh-squared-digits-torch"
    words = ["--folder", str(tmp_path), "--half", "design"]
    assert command.main([*words, "--network", name]) == 0
    said = capsys.readouterr()
    assert f"{name}, start, adam, seed 0, B = 64: best" in said.err
    (file,) = tmp_path.glob("*.json")
    assert len(load(file)) == 3 and all(best(result.tried) is not None for result in load(file).values())
    assert command.main([*words, "--tables"]) == 0
    assert capsys.readouterr().out == said.out and "| adam, start |" in said.out
    with pytest.raises(SystemExit, match="2"):
        command.main(words)
    assert "--data must name an archive of colour images for lenet-5-images-torch" in capsys.readouterr().err
