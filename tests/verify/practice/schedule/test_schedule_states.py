"""What a schedule measures and when, its states, and what it refuses."""

from __future__ import annotations

import copy
import io
import json
import random
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.objectives import Objective
from simulate.operators import gauss_newton
from tests.verify.practice.schedule.small_schedules import descend, line, rates, read, sgd
from verify.practice.schedule import CurvatureSchedule


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

    matrix = gauss_newton(Objective(model, batches[0], nn.CrossEntropyLoss(), parameters="4.weight")).dense()
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
