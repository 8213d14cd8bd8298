"""Rates of a schedule: the formulas on a quadratic, and what counts as the interval."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from simulate.objectives import Objective
from simulate.operators import gauss_newton
from tests.verify.practice.schedule.small_schedules import EIGENVALUES, descend, line, rates, read, sgd
from theory.learning_rates import momentum as formulas
from verify.practice.schedule import CurvatureSchedule

# --- the formulas, on a quadratic ---------------------------------------------------------------------------------


@pytest.mark.parametrize("nesterov", [False, True])
def test_rates_are_those_of_the_extreme_eigenvalues(nesterov: bool) -> None:
    model, batch = line()
    optimizer = sgd(model, nesterov=nesterov)
    schedule = CurvatureSchedule(optimizer, model, nn.MSELoss())

    schedule.step(batch)

    ideal = (formulas.nesterov if nesterov else formulas.heavy_ball)(9.0, 0.5)
    assert_allclose(rates(optimizer), [(ideal.learning_rate, ideal.momentum)], rtol=1e-12)
    last = read(schedule)
    assert_allclose(last.values, EIGENVALUES, rtol=1e-12)
    assert_allclose([last.largest, last.smallest, last.contraction], [9.0, 0.5, ideal.contraction], rtol=1e-9)
    assert last.error < 1e-6 and last.products == 8 and last.bulk is None and last.outcome == "rates set"
    assert_allclose(sum(last.weights), 1.0, rtol=1e-12)


@pytest.mark.parametrize("nesterov", [False, True])
def test_error_shrinks_by_the_contraction_of_the_formula(nesterov: bool) -> None:
    """At the ends of the spectrum the roots are double, so the error goes as t times the power."""
    model, batch = line()
    optimizer = sgd(model, nesterov=nesterov)
    schedule = CurvatureSchedule(optimizer, model, nn.MSELoss(), every=10**6)
    norms = []
    for _ in range(401):
        norms.append(float(model.weight.detach().norm()))
        schedule.step(batch)
        descend(optimizer, model, nn.MSELoss(), batch)

    measured = (norms[400] / norms[200] / 2) ** (1 / 200)

    assert_allclose(measured, read(schedule).contraction, rtol=1e-3)


@pytest.mark.parametrize("nesterov", [False, True])
def test_steps_of_torch_are_those_of_the_formulas(nesterov: bool) -> None:
    """Torch's parameters are the points at which the gradient is taken, with Nesterov the ones looked ahead to."""
    model, batch = line()
    optimizer = sgd(model, nesterov=nesterov)
    schedule = CurvatureSchedule(optimizer, model, nn.MSELoss(), every=10**6)
    values, w = np.array(EIGENVALUES), np.ones(8)
    before, ahead = w, w
    for _ in range(30):
        assert_allclose(model.weight.detach().numpy()[0], ahead if nesterov else w, rtol=1e-9, atol=1e-12)
        schedule.step(batch)
        descend(optimizer, model, nn.MSELoss(), batch)
        rate, inertia = rates(optimizer)[0]
        if nesterov:
            before, w = w, ahead - rate * values * ahead
            ahead = w + inertia * (w - before)
        else:
            before, w = w, w - rate * values * w + inertia * (w - before)


def test_displacement_goes_on_where_the_rate_changes() -> None:
    """Heavy ball with a rate that changes in every step: w + rho (w - before) - alpha gradient."""
    model, batch = line()
    optimizer = sgd(model)
    schedule = CurvatureSchedule(optimizer, model, nn.MSELoss(), every=1)
    values, w = np.array(EIGENVALUES), np.ones(8)
    before = w
    for factor in (1.0, 3.0, 0.2, 5.0, 1.0):
        root = factor**0.5
        schedule.step((root * batch[0], batch[1]))
        descend(optimizer, model, nn.MSELoss(), batch)
        rate, inertia = rates(optimizer)[0]
        before, w = w, w - rate * values * w + inertia * (w - before)
        assert_allclose(model.weight.detach().numpy()[0], w, rtol=1e-12, atol=1e-14)
    assert_allclose(rate, formulas.heavy_ball(9.0, 0.5).learning_rate, rtol=1e-9)


def test_scaling_the_loss_scales_the_rate_and_not_the_momentum() -> None:
    found = []
    for factor in (1.0, 100.0):
        model, (inputs, targets) = line()
        optimizer = sgd(model)
        schedule = CurvatureSchedule(
            optimizer, model, lambda o, t, c=factor: c * nn.functional.mse_loss(o, t)
        )
        schedule.step((inputs, targets))
        found.append(np.array(rates(optimizer)[0]) * (factor, 1.0))
    assert_allclose(found[0], found[1], rtol=1e-9)


# --- what counts as the interval ----------------------------------------------------------------------------------


def test_bulk_at_zero_is_dropped() -> None:
    model, batch = line((0.0,) * 40 + (1.0, 4.0))
    optimizer = sgd(model)
    schedule = CurvatureSchedule(optimizer, model, nn.MSELoss())

    schedule.step(batch)

    last = read(schedule)
    assert last.bulk is not None and abs(last.bulk) < 1e-12
    assert_allclose([last.largest, last.smallest], [4.0, 1.0], rtol=1e-9)
    assert max(last.weights) > 0.5 and last.products == 10


def test_bulk_near_zero_is_dropped_unless_told() -> None:
    found = {}
    for bulk in (0.5, 1.0):
        model, batch = line((0.01,) * 40 + (1.0, 4.0))
        schedule = CurvatureSchedule(sgd(model), model, nn.MSELoss(), bulk=bulk)
        schedule.step(batch)
        found[bulk] = read(schedule)
    assert_allclose(found[0.5].bulk, 0.01, rtol=1e-9)
    assert_allclose(found[0.5].smallest, 1.0, rtol=1e-9)
    assert found[1.0].bulk is None
    assert_allclose(found[1.0].smallest, 0.01, rtol=1e-9)


@pytest.mark.parametrize("eigenvalues", [(2.0,) * 6, (0.0,) * 40 + (2.0,)])
def test_one_value_left_is_descent_without_momentum(eigenvalues: tuple[float, ...]) -> None:
    """The largest is never dropped, however many it stands for: the rate would be too large for it."""
    model, batch = line(eigenvalues)
    optimizer = sgd(model)
    schedule = CurvatureSchedule(optimizer, model, nn.MSELoss(), every=1)
    descend(optimizer, model, nn.MSELoss(), batch)

    schedule.step(batch)

    assert_allclose(rates(optimizer), [(0.5, 0.0)], rtol=1e-9)
    assert "without momentum" in read(schedule).outcome
    assert "momentum_buffer" not in optimizer.state[model.weight]


@pytest.mark.parametrize("factor", [0.0, -1.0])
def test_no_positive_curvature_keeps_the_rates(factor: float) -> None:
    model, batch = line()
    optimizer = sgd(model)
    schedule = CurvatureSchedule(optimizer, model, lambda o, t: factor * nn.functional.mse_loss(o, t))

    schedule.step(batch)

    assert rates(optimizer) == [(0.01, 0.9)]
    last = read(schedule)
    assert (last.largest, last.smallest, last.error, last.contraction) == (None,) * 4
    assert last.outcome == "rates kept: there is no positive curvature"


def test_negative_curvature_beside_positive_does_not_count() -> None:
    model, (inputs, targets) = line()
    schedule = CurvatureSchedule(sgd(model), model, lambda o, signs: (signs * o**2).mean())

    schedule.step((inputs, targets - 1 + 2 * (inputs.diagonal() > 2.1)[:, None]))

    assert_allclose(read(schedule).values, (-1.0, -0.5, *EIGENVALUES[2:]), rtol=1e-9)
    assert_allclose([read(schedule).largest, read(schedule).smallest], [9.0, 1.5], rtol=1e-9)


def test_rounding_of_zero_is_no_curvature() -> None:
    """The null space is less than the bulk here, or nothing is dropped."""
    for seed in range(4):
        model, batch = line((0.0,) * 3 + (1.0, 2.0, 3.0, 4.0, 5.0))
        schedule = CurvatureSchedule(sgd(model), model, nn.MSELoss(), bulk=1.0, seed=seed)
        schedule.step(batch)
        assert abs(read(schedule).values[0]) < 1e-12
        assert_allclose(read(schedule).smallest, 1.0, rtol=1e-9)


def test_few_steps_give_the_ritz_pairs_of_the_krylov_space() -> None:
    eigenvalues = np.arange(1.0, 31.0)
    model, batch = line(tuple(eigenvalues))
    schedule = CurvatureSchedule(sgd(model), model, nn.MSELoss(), steps=5, seed=7)

    schedule.step(batch)

    start = np.random.default_rng([7, 0]).standard_normal(30)
    basis = np.linalg.qr((eigenvalues[:, None] / 30) ** np.arange(5) * start[:, None])[0]
    values, vectors = np.linalg.eigh(basis.T * eigenvalues @ basis)
    top = basis @ vectors[:, -1]
    last = read(schedule)
    assert_allclose(last.values, values, rtol=1e-9)
    assert_allclose(last.weights, (start @ basis @ vectors / np.linalg.norm(start)) ** 2, rtol=1e-6)
    assert_allclose(last.error, np.linalg.norm(eigenvalues * top - values[-1] * top), rtol=1e-6)
    assert last.products == 5


def test_weight_decay_of_a_group_is_curvature_of_its_parameters() -> None:
    model = nn.utils.skip_init(nn.Linear, 4, 1, dtype=torch.float64)
    inputs = torch.randn(9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    batch = inputs, torch.zeros(9, 1, dtype=torch.float64)
    groups = [{"params": [model.bias], "weight_decay": 0.0}, {"params": [model.weight], "weight_decay": 0.3}]
    schedule = CurvatureSchedule(torch.optim.SGD(groups, lr=0.1, momentum=0.5), model, nn.MSELoss(), bulk=1.0)

    schedule.step(batch)

    matrix = gauss_newton(Objective(model, batch, nn.MSELoss())).dense().numpy()
    expected = np.linalg.eigvalsh(matrix + np.diag([0.3] * 4 + [0.0]))
    assert_allclose(read(schedule).values, expected, rtol=1e-9)


def test_damping_raises_both_ends_by_a_share_of_the_largest() -> None:
    model, batch = line()
    optimizer = sgd(model)

    CurvatureSchedule(optimizer, model, nn.MSELoss(), damping=0.1).step(batch)

    assert_allclose(rates(optimizer), [formulas.heavy_ball(9.9, 1.4)[:2]], rtol=1e-9)


@pytest.mark.parametrize(("bounds", "rate"), [({"highest": 0.01}, 0.01), ({"lowest": 5.0}, 5.0)])
def test_learning_rate_stays_within_its_bounds(bounds: dict[str, float], rate: float) -> None:
    """And the contraction is that of the rates in force."""
    model, batch = line()
    optimizer = sgd(model)
    schedule = CurvatureSchedule(optimizer, model, nn.MSELoss(), **bounds)

    schedule.step(batch)

    inertia = float(formulas.heavy_ball(9.0, 0.5).momentum)
    assert_allclose(rates(optimizer), [(rate, inertia)], rtol=1e-9)
    expected = formulas.heavy_ball_contraction(rate, inertia, largest=9.0, smallest=0.5)
    assert_allclose(read(schedule).contraction, expected, rtol=1e-9)
