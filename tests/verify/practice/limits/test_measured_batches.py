"""`measure` on mini-batches: eigenvalues of dense matrices of the same batches, the law, and the budget."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from torch import nn

from tests.refusals import refusal
from tests.simulate.models_and_data import dense_hessian
from tests.verify.practice.small_measurements import (
    N,
    gauss_newtons,
    no_constant,
    small_data,
    small_net,
    small_problem,
)
from verify import cli
from verify.practice import measure as measuring
from verify.practice.loading import problem
from verify.practice.measure import batches, measure_problem
from verify.practice.measure.measurement import Measurement

SIZE = 4


@pytest.fixture(scope="module")
def found() -> Measurement:
    return measure_problem(small_problem(), top=2, seed=1, budget=900, batches=SIZE)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_MOST", 3)


def tops_of_all_batches(matrices: np.ndarray) -> np.ndarray:
    """Largest eigenvalues of the mean over every batch of the size."""
    return np.array(
        [np.linalg.eigvalsh(matrices[list(at)].mean(0))[-1] for at in combinations(range(N), SIZE)]
    )


def test_every_value_is_the_largest_eigenvalue_of_a_batch(found: Measurement) -> None:
    given, drawn = small_problem(), found.batches
    assert drawn is not None and drawn.size == SIZE and 16 <= len(drawn.pairs) <= 40
    samples = np.stack([dense_hessian(given.batch_objective([i])).numpy() for i in range(N)])
    tops, others = (tops_of_all_batches(matrices) for matrices in (samples, gauss_newtons(given)))
    for first, second in drawn.pairs:
        off = np.abs(tops / first - 1), np.abs(others / second - 1)
        assert off[0].min() < 1e-3 and np.max(off, axis=0).min() < 1e-2  # whichever was drawn


def test_mean_error_and_ends_are_those_of_the_values(found: Measurement) -> None:
    values = np.array(found.batches.pairs)
    for k, seen in enumerate((found.batches.hessian, found.batches.gauss_newton)):
        assert_allclose(seen.mean.value, values[:, k].mean())
        assert_allclose(seen.mean.standard_error, values[:, k].std(ddof=1) / len(values) ** 0.5)
        assert_allclose([seen.low, seen.high], np.quantile(values[:, k], [0.1, 0.9]))


def test_the_law_predicts_the_gauss_newton_matrix_of_batches(found: Measurement) -> None:
    """On all batches of dense matrices, apart from the batches drawn here."""
    tops = tops_of_all_batches(gauss_newtons(small_problem()))
    law, seen = found.batches.law, found.batches.gauss_newton
    assert found.batches.not_predicted == ""
    assert abs(seen.mean.value - np.mean(tops)) < 5 * seen.mean.standard_error
    assert_allclose(law.mean.value, np.mean(tops), rtol=0.05)
    assert_allclose([law.low, law.high], np.quantile(tops, [0.1, 0.9]), rtol=0.25)


@pytest.mark.usefixtures("few")
def test_batches_change_no_other_number(found: Measurement) -> None:
    plain, again, other = (
        measure_problem(small_problem(), top=2, seed=seed, batches=size)
        for seed, size in ((1, None), (1, SIZE), (2, SIZE))
    )
    assert plain.batches is None
    for name in ("hessian", "gauss_newton", "noise", "zone", "loss", "lines", "short"):
        assert getattr(plain, name) == getattr(again, name), name
    assert again.batches.pairs == found.batches.pairs[:3]
    assert not np.allclose(again.batches.pairs, other.batches.pairs, 0.02)
    assert again.batches.law == found.batches.law


@pytest.mark.parametrize("budget", [120.0, 300.0, 500.0])
def test_the_budget_is_kept_and_what_is_left_open_is_said(budget: float) -> None:
    given = small_problem()
    seen = measure_problem(given, top=2, budget=budget, batches=SIZE)
    assert seen.passes <= budget
    assert (seen.batches is None) == ("mini-batches" in seen.short)
    # each of them costs passes
    assert budget < 500 or 2 < len(seen.batches.pairs) < 30


@pytest.mark.usefixtures("few")
def test_what_the_budget_leaves_no_room_for_is_not_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_PROBES", 10**6)
    seen = measure_problem(small_problem(), top=2, budget=400, batches=SIZE)
    assert seen.batches.law is None and seen.batches.not_predicted == "the budget"
    assert re.search("G by theory +none: the budget", seen.summary())


@pytest.mark.usefixtures("few")
def test_a_loss_that_is_not_convex_is_measured_and_not_predicted() -> None:
    x, _ = small_data()
    net, data = small_net(nn.Tanh()), (x, x[:, :3])
    seen = measuring.measure(net, data, lambda z, y: -((z - y) ** 2).mean(), top=2, budget=500, batches=SIZE)
    assert "convex" in seen.batches.not_predicted and len(seen.batches.pairs) > 2


def test_a_size_out_of_its_domain_and_a_sum_are_refused() -> None:
    for size in (0, N, N + 1, 2.5, True):
        with refusal("^batches must be "):
            measure_problem(small_problem(), batches=size)
    loss = nn.CrossEntropyLoss(reduction="sum")
    given = problem(small_net(nn.Tanh()), small_data(), loss=loss, dtype="float64")
    with refusal("batches must be below 9 samples of a mean loss, got 4$"):
        measure_problem(given, batches=4)


@pytest.mark.usefixtures("few")
def test_the_command_prints_means_and_draws_a_histogram(net: list[str], capsys: Any) -> None:
    words = ["measure", *net, "--top=1", "--budget=300", "--batches", "3"]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    drawn = json.loads(Path("losscurv-measure/measure.json").read_text(), parse_constant=no_constant)[
        "batches"
    ]
    assert re.search(r"^3 mini-batches of 3: ", out, re.MULTILINE)
    assert drawn["law"]["mean"].keys() == {"value", "standard_error"}
    page = Path("losscurv-measure/measure.html").read_text()
    assert page.count("<svg") == 5 and "Mini-batches of 3" in page
    assert cli.main([*words[:-1], "8"]) == 2
    assert "batches must be below 8" in capsys.readouterr().err
