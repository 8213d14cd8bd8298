from __future__ import annotations

import copy
import io
import json
import random
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.objectives import Objective
from simulate.operators import gauss_newton
from theory.learning_rates import momentum as formulas
from verify.practice.schedule import CurvatureSchedule

EIGENVALUES = (0.5, 1.0, 1.5, 3.0, 4.0, 6.0, 7.5, 9.0)
"""Of the quadratic, spread so that no Ritz value stands for half of them."""


def line(eigenvalues: Any = EIGENVALUES) -> tuple[nn.Linear, tuple[Tensor, Tensor]]:
    """Least squares whose Hessian is diagonal with these eigenvalues; the minimum is at 0."""
    values = torch.tensor(eigenvalues, dtype=torch.float64)
    model = nn.utils.skip_init(nn.Linear, len(values), 1, bias=False, dtype=torch.float64)
    nn.init.ones_(model.weight)
    inputs = torch.diag((values * len(values) / 2).sqrt())
    return model, (inputs, torch.zeros(len(values), 1, dtype=torch.float64))


def network(dtype: torch.dtype = torch.float64) -> tuple[nn.Sequential, list[tuple[Tensor, Tensor]]]:
    """A small classifier with dropout and batch normalisation, and four batches."""
    rng = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = (nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
        model = nn.Sequential(*layers).to(dtype)
    inputs = torch.randn(4, 12, 6, generator=rng, dtype=dtype)
    targets = torch.randint(0, 3, (4, 12), generator=rng)
    return model, list(zip(inputs, targets, strict=True))


def sgd(model: nn.Module, *, nesterov: bool = False, **options: Any) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=nesterov, **options)


def descend(optimizer: torch.optim.SGD, model: nn.Module, loss: Any, batch: tuple[Any, Any]) -> None:
    optimizer.zero_grad()
    loss(model(batch[0]), batch[1]).backward()
    optimizer.step()


def rates(optimizer: torch.optim.Optimizer) -> list[tuple[float, float]]:
    return [(group["lr"], group["momentum"]) for group in optimizer.param_groups]


def read(schedule: CurvatureSchedule) -> Any:
    assert schedule.last is not None
    return schedule.last


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

    matrix = gauss_newton(Objective(model, nn.MSELoss(), batch)).dense().numpy()
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


# --- what is measured, and when -----------------------------------------------------------------------------------


def test_measures_every_so_many_steps() -> None:
    model, batches = network()
    schedule = CurvatureSchedule(sgd(model), model, nn.CrossEntropyLoss(), every=3)
    measured = []
    for batch in batches * 2:
        schedule.step(batch)
        measured.append(read(schedule).iteration)
    assert measured == [0, 0, 0, 3, 3, 3, 6, 6]


def test_data_take_the_place_of_the_batch() -> None:
    model, batches = network()
    whole = tuple(torch.cat(parts) for parts in zip(*batches, strict=True))
    found = []
    for data in (None, batches, whole, iter(batches)):
        schedule = CurvatureSchedule(sgd(model), model, nn.CrossEntropyLoss(), data=data, every=1)
        schedule.step(batches[0])
        schedule.step(batches[1])
        found.append(read(schedule).values)
    assert_allclose(found[1], found[2], rtol=1e-6, atol=1e-9)
    assert found[1] == found[3]
    assert abs(found[0][-1] / found[1][-1] - 1) > 0.01


def test_frozen_parameters_and_those_of_other_optimisers_are_left_out() -> None:
    model, batches = network()
    head = model[4]
    assert isinstance(head, nn.Linear)
    head.bias.requires_grad_(False)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    schedule = CurvatureSchedule(optimizer, model, nn.CrossEntropyLoss(), steps=100, bulk=1.0)

    schedule.step(batches[0])

    matrix = gauss_newton(Objective(model, nn.CrossEntropyLoss(), batches[0], parameters="4.weight")).dense()
    assert read(schedule).products <= matrix.shape[0] == 48
    assert_allclose(read(schedule).largest, torch.linalg.eigvalsh(matrix)[-1], rtol=1e-9)


def test_training_mode_sees_the_statistics_of_the_batch() -> None:
    found = []
    for training in (False, True):
        model, batches = network()
        schedule = CurvatureSchedule(sgd(model), model, nn.CrossEntropyLoss(), training=training)
        schedule.step(batches[0])
        found.append(read(schedule).largest)
    assert abs(found[1] / found[0] - 1) > 0.1


def test_no_pass_takes_more_samples_than_a_chunk() -> None:
    model, batches = network()
    seen = []

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        seen.append(len(targets))
        return nn.functional.cross_entropy(outputs, targets)

    CurvatureSchedule(sgd(model), model, loss, chunk=5).step(batches[0])

    assert max(seen) == 5


def test_all_groups_get_the_same_rates() -> None:
    model, batch = network()[0], network()[1][0]
    groups = [{"params": model[0].parameters(), "lr": 0.5}, {"params": model[4].parameters()}]
    optimizer = torch.optim.SGD(groups, lr=torch.tensor(0.1, dtype=torch.float64))
    kept = optimizer.param_groups[1]["lr"]

    schedule = CurvatureSchedule(optimizer, model, nn.CrossEntropyLoss())
    schedule.step(batch)

    last = read(schedule)
    assert rates(optimizer) == [(last.learning_rate, last.momentum)] * 2
    assert optimizer.param_groups[1]["lr"] is kept


@pytest.mark.parametrize("training", [False, True])
def test_model_gradients_and_generators_are_left_as_found(training: bool) -> None:
    model, batches = network(torch.float32)
    nn.CrossEntropyLoss()(model(batches[0][0]), batches[0][1]).backward()
    before = copy.deepcopy(model.state_dict())
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    states = torch.get_rng_state(), random.getstate()

    with torch.no_grad():
        CurvatureSchedule(sgd(model), model, nn.CrossEntropyLoss(), training=training).step(batches[1])

    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(torch.equal(g, p.grad) for g, p in zip(gradients, model.parameters(), strict=True))
    assert model.training and all(p.requires_grad for p in model.parameters())
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()


# --- states -------------------------------------------------------------------------------------------------------


def _trained(steps: range, model: Any, optimizer: Any, schedule: Any, batches: Any) -> list[Any]:
    readings = []
    for i in steps:
        torch.manual_seed(i)  # for the dropout
        schedule.step(batches[i % 4])
        descend(optimizer, model, nn.CrossEntropyLoss(), batches[i % 4])
        readings.append(schedule.last)
    return readings


@pytest.mark.parametrize("through", ["torch", "json"])
def test_resumed_run_is_the_uninterrupted_one_bit_for_bit(through: str) -> None:
    """Also into a schedule that was made with other options."""
    model, batches = network()
    optimizer = sgd(model, nesterov=True)
    schedule = CurvatureSchedule(
        optimizer, model, nn.CrossEntropyLoss(), every=3, steps=6, damping=0.1, seed=5
    )
    _trained(range(5), model, optimizer, schedule, batches)
    stored = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    state = schedule.state_dict()
    if through == "json":
        state = json.loads(json.dumps(state))
    else:
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        state = torch.load(file, weights_only=True)
    readings = _trained(range(5, 11), model, optimizer, schedule, batches)

    again, _ = network()
    other = sgd(again, nesterov=True)
    resumed = CurvatureSchedule(other, again, nn.CrossEntropyLoss())
    again.load_state_dict(stored[0])
    other.load_state_dict(stored[1])
    resumed.load_state_dict(state)

    assert _trained(range(5, 11), again, other, resumed, batches) == readings
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    assert resumed.state_dict() == schedule.state_dict()


def test_state_before_the_first_step() -> None:
    model, batches = network()
    schedule = CurvatureSchedule(sgd(model), model, nn.CrossEntropyLoss(), seed=3)
    state = schedule.state_dict()
    assert state["reading"] is None and schedule.last is None
    other = CurvatureSchedule(sgd(model), model, nn.CrossEntropyLoss())
    other.load_state_dict(state)
    for each in (schedule, other):
        each.step(batches[0])
    assert other.last == schedule.last


def test_the_seed_draws_the_start() -> None:
    model, batches = network()
    found = []
    for seed in (0, 0, 1):
        schedule = CurvatureSchedule(sgd(model), model, nn.CrossEntropyLoss(), seed=seed, steps=3, every=1)
        for _ in range(2):
            schedule.step(batches[0])
            found.append(read(schedule).values)
    assert found[:2] == found[2:4]
    assert found[0] != found[1] and found[0] != found[4]


# --- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every must be an integer of at least 1, got 0"),
        ({"every": 2.0}, r"every must be an integer of at least 1, got 2\.0"),
        ({"steps": 1}, "steps must be an integer of at least 2, got 1"),
        ({"steps": True}, "steps must be an integer of at least 2, got True"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"chunk": 0}, "chunk must be an integer of at least 1, got 0"),
        ({"chunk": 2, "training": True}, "chunk must be None in training mode, got 2"),
        ({"training": 1}, "training must be True or False, got 1"),
        ({"bulk": 0.4}, r"bulk must be a number, between one half and one, got 0\.4"),
        ({"damping": -0.1}, r"damping must be a number, finite and not negative, got -0\.1"),
        ({"damping": float("nan")}, "damping must be a number, finite and not negative, got nan"),
        ({"lowest": float("inf")}, "lowest must be a number, finite and not negative, got inf"),
        ({"highest": "1"}, "highest must be a number, positive and at least lowest, got '1'"),
        (
            {"lowest": 2.0, "highest": 1.0},
            r"highest must be a number, positive and at least lowest, got 1\.0",
        ),
        ({"data": 3}, "data must be batches"),
    ],
)
def test_options_out_of_their_domain_are_refused(options: dict[str, Any], message: str) -> None:
    model, _ = line()
    with pytest.raises(ValueError, match=message):
        CurvatureSchedule(sgd(model), model, nn.MSELoss(), **options)


def test_optimisers_that_the_formulas_do_not_know_are_refused() -> None:
    model, _ = network()

    def refused(optimizer: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            CurvatureSchedule(optimizer, model, nn.CrossEntropyLoss())

    refused(torch.optim.Adam(model.parameters()), "optimizer must be torch.optim.SGD, got Adam")
    refused(sgd(model, dampening=0.5), "optimizer must be without dampening")
    refused(sgd(model, maximize=True), "optimizer must minimise the loss")
    groups = [
        {"params": model[0].parameters(), "nesterov": True},
        {"params": model[4].parameters(), "nesterov": False},
    ]
    both = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    refused(both, "optimizer must have nesterov in all parameter groups or in none")
    refused(sgd(line()[0]), "optimizer must hold parameters of the model only, got 1 of something else")
    optimizer = sgd(model)
    model.requires_grad_(False)
    refused(optimizer, "optimizer must hold a parameter that requires a gradient, got none")


def test_model_must_be_a_module() -> None:
    model, _ = line()
    with pytest.raises(ValueError, match="model must be a module, got function"):
        CurvatureSchedule(sgd(model), lambda x: x, nn.MSELoss())  # pyright: ignore[reportArgumentType]


def test_sum_over_samples_is_refused_with_data() -> None:
    model, batch = line()
    with pytest.raises(ValueError, match="loss must be a mean over samples where data are given"):
        CurvatureSchedule(sgd(model), model, nn.MSELoss(reduction="sum"), data=batch)


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [("inputs", "loss must be finite"), ("weights", "parameters must be finite"), ("pair", "batches")],
)
def test_failed_measurement_changes_nothing(spoilt: str, message: str) -> None:
    model, (inputs, targets) = line()
    optimizer = sgd(model)
    schedule = CurvatureSchedule(optimizer, model, nn.MSELoss(), every=1)
    schedule.step((inputs, targets))
    before = rates(optimizer), schedule.last, schedule.state_dict()
    batch: Any = (inputs * float("nan") if spoilt == "inputs" else inputs, targets)
    if spoilt == "weights":
        nn.init.constant_(model.weight, float("inf"))

    with pytest.raises(ValueError, match=message):
        schedule.step(inputs if spoilt == "pair" else batch)

    assert (rates(optimizer), schedule.last, schedule.state_dict()) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("options"), "state must be one that state_dict returned"),
        (lambda state: state.update(reading={"values": [1.0]}), "state must be one that state_dict returned"),
        (lambda state: state["options"].pop("every"), "state must be one that state_dict returned"),
        (lambda state: state["options"].update(every=0), "every must be an integer of at least 1"),
        (lambda state: state.update(iteration=-1), "iteration must be an integer of at least 0"),
    ],
)
def test_states_of_something_else_are_refused(change: Any, message: str) -> None:
    model, batch = line()
    schedule = CurvatureSchedule(sgd(model), model, nn.MSELoss())
    schedule.step(batch)
    kept, state = schedule.state_dict(), copy.deepcopy(schedule.state_dict())
    change(state)

    with pytest.raises(ValueError, match=message):
        schedule.load_state_dict(state)

    assert schedule.state_dict() == kept
