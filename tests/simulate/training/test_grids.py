"""Networks trained in one stack against the same networks trained one by one with torch's own optimisers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from simulate.training.grids import TrainingSets, ends_measured, train
from simulate.training.rules import ADAM, AVERAGED, MOMENTUM, NESTEROV, SGD, Rule
from simulate.training.stacks import Modules, Perceptrons, perceptrons_at_start
from simulate.training.trial_training import CommonBatches

WIDTHS = (5, 7, 6, 3)
RATES = torch.tensor([[0.02, 0.3], [0.05, 0.1]], dtype=torch.float64)
N, B, STEPS = 11, 4, 9


def _samples(targets="classes", own=None):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(N, 5, generator=generator, dtype=torch.float64)
    y = (
        torch.arange(N) % 3
        if targets == "classes"
        else torch.randn(N, 3, generator=generator, dtype=torch.float64)
    )
    return TrainingSets(x, y, own)


def _start(bias=True):
    streams = [np.random.default_rng(seed) for seed in (1, 2)]
    return perceptrons_at_start(streams, WIDTHS, bias=bias, dtype=torch.float64)


def _batches(samples=N, size=B):
    return [CommonBatches(samples=samples, size=size, seed=seed) for seed in (4, 5)]


def _model(parameters, which, activation=nn.ReLU):
    layers = []
    for i in range(0, len(parameters), 2):
        weight, bias = parameters[i][which], parameters[i + 1][which]
        linear = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
        with torch.no_grad():
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
        layers += [linear, activation()]
    return nn.Sequential(*layers[:-1])


OPTIMISERS = {
    "sgd": (SGD, lambda p, rate: torch.optim.SGD(p, lr=rate)),
    "momentum": (MOMENTUM, lambda p, rate: torch.optim.SGD(p, lr=rate, momentum=0.9)),
    "averaged": (AVERAGED, lambda p, rate: torch.optim.SGD(p, lr=rate, momentum=0.9, dampening=0.9)),
    "nesterov": (NESTEROV, lambda p, rate: torch.optim.SGD(p, lr=rate, momentum=0.9, nesterov=True)),
    "adam": (ADAM, lambda p, rate: torch.optim.Adam(p, lr=rate)),
    "damped adam": (
        Rule(momentum=0.5, second=0.7, damping=1.0),
        lambda p, rate: torch.optim.Adam(p, lr=rate, betas=(0.5, 0.7), eps=1.0),
    ),
    "rmsprop of the start": (
        Rule(second=0.9),
        lambda p, rate: torch.optim.Adam(p, lr=rate, betas=(0.0, 0.9)),
    ),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_run_is_the_one_that_torch_makes_alone(name):
    rule, made = OPTIMISERS[name]
    start, samples, batches = _start(), _samples(), _batches()
    run = train(Perceptrons("relu"), start, samples, batches, rates=RATES, steps=STEPS, rule=rule)
    ends, _ = ends_measured(Perceptrons("relu"), run, samples, size=4)
    for network in range(2):
        for column in range(2):
            model = _model(start, network)
            optimiser = made(model.parameters(), RATES[network, column].item())
            losses = []
            for chosen in batches[network].steps(0, STEPS):
                optimiser.zero_grad()
                loss = nn.functional.cross_entropy(model(samples.inputs[chosen]), samples.targets[chosen])
                loss.backward()
                losses.append(loss.item())
                optimiser.step()
            np.testing.assert_allclose(run.losses[network, column], losses, rtol=1e-10)
            end = nn.functional.cross_entropy(model(samples.inputs), samples.targets).item()
            assert ends[network, column].item() == pytest.approx(end, rel=1e-10)


@pytest.mark.parametrize("loss", ["cross-entropy", "squared error"])
@pytest.mark.parametrize(
    ("activation", "layer"), [("relu", nn.ReLU), ("tanh", nn.Tanh), ("linear", nn.Identity)]
)
def test_closed_form_is_what_torch_derives(activation, layer, loss):
    start = _start()
    samples = _samples("classes" if loss == "cross-entropy" else "numbers")
    models = [_model(start, i, layer) for i in range(2)]
    derived, closed = Modules(models[0], loss), Perceptrons(activation, loss)
    stacked = derived.stacked(models)
    x, y = samples.inputs.expand(2, -1, -1), samples.targets.expand(2, *samples.targets.shape)
    ours, theirs = closed.losses_and_gradients(start, x, y), derived.losses_and_gradients(stacked, x, y)
    torch.testing.assert_close(ours[0], theirs[0])
    for one, other in zip(ours[1], theirs[1], strict=True):
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(closed.outputs(start, x), derived.outputs(stacked, x))
    rates = torch.tensor([0.1, 0.2], dtype=torch.float64)
    moved = [p.clone() for p in start]
    closed.descend_(moved, x, y, rates)
    derived.descend_(stacked, x, y, rates)
    for one, other in zip(moved, stacked, strict=True):
        torch.testing.assert_close(one, other)


def test_classes_and_their_indicators_have_the_same_squared_error():
    start, samples = _start(bias=False), _samples()
    stack, x = Perceptrons("tanh", "squared error", bias=False), samples.inputs.expand(2, -1, -1)
    classes = samples.targets.expand(2, -1)
    indicators = nn.functional.one_hot(classes, 3).double()
    one, other = (stack.losses_and_gradients(start, x, y) for y in (classes, indicators))
    torch.testing.assert_close(one[0], other[0])
    torch.testing.assert_close(one[1][0], other[1][0])


def test_networks_with_samples_of_their_own_do_not_see_the_others():
    own = torch.tensor([[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]])
    samples, batches = _samples(own=own), _batches(5, 2)
    both = train(Perceptrons("relu"), _start(), samples, batches, rates=RATES, steps=STEPS)
    alone = TrainingSets(samples.inputs[own[1]], samples.targets[own[1]])
    second = [p[1:] for p in _start()]
    one = train(Perceptrons("relu"), second, alone, batches[1:], rates=RATES[1:], steps=STEPS)
    torch.testing.assert_close(both.losses[1:], one.losses)
    for part in (0, 1):
        ends = ends_measured(Perceptrons("relu"), both, samples)[part][1:]
        torch.testing.assert_close(ends, ends_measured(Perceptrons("relu"), one, alone)[part])


@pytest.mark.parametrize("rule", [SGD, ADAM], ids=["sgd", "adam"])
def test_lost_runs_leave_the_stack_and_change_no_other(rule):
    start, samples, batches = _start(), _samples(), _batches()
    wild = torch.tensor([[0.02, 1e6], [1e6, 0.1]], dtype=torch.float64)
    stack = Perceptrons("relu", "squared error")
    seen = {}

    def watch(step, cells):
        seen[step] = len(cells.places)
        return {"norm": cells.parameters[0].square().sum((1, 2)), "where": cells.places[:, None].double()}

    how = {"steps": STEPS, "rule": rule}
    run = train(stack, start, samples, batches, rates=wild, watch=watch, at=(0, 3, STEPS), **how)
    tame = train(stack, start, samples, batches, rates=RATES, **how)
    assert run.lost.tolist() == [[False, True], [True, False]]
    torch.testing.assert_close(run.losses[0, 0], tame.losses[0, 0])
    torch.testing.assert_close(run.losses[1, 1], tame.losses[1, 1])
    assert run.losses[0, 1, -1] == math.inf
    assert run.losses[0, 1, 0].isfinite()
    assert seen[0] == 4
    assert seen[STEPS] == 2
    assert run.watched["where"].shape == (2, 2, 3, 1)
    assert run.watched["where"][1, 1, 2, 0] == 3
    assert run.watched["norm"][0, 1, 2].isnan()
    losses, accuracies = ends_measured(stack, run, samples)
    assert losses[0, 1] == math.inf
    assert accuracies[0, 1] == 0
    assert losses[0, 0].isfinite()


def test_a_grid_of_modules_that_are_all_lost_has_its_ends():
    """Under `vmap` a convolution takes no stack of no networks."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2))
    samples = TrainingSets(torch.randn(6, 1, 4, 4), torch.arange(6) % 2)
    batches = [CommonBatches(samples=6, size=6)]
    run = train(
        Modules(model),
        Modules.stacked([model]),
        samples,
        batches,
        rates=torch.tensor([[1e20, 1e30]]),
        steps=3,
    )
    assert run.lost.all()
    losses, accuracies = ends_measured(Modules(model), run, samples)
    assert losses.tolist() == [[math.inf, math.inf]]
    assert accuracies.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rates": -RATES}, "rates must be finite and positive"),
        ({"rates": RATES[:1]}, "of the 1 networks that have rates"),
        ({"batches": _batches()[:1]}, "of the 2 networks that have rates"),
        ({"batches": _batches(7)}, "of the 11 samples of a network"),
        ({"samples": _samples(own=torch.arange(N)[None])}, "own must be of the 2 networks"),
        ({"at": (99,)}, "at must hold steps from 0 to 9"),
        ({"steps": 0}, "steps must be"),
    ],
)
def test_what_does_not_fit_is_refused(changed, message):
    asked = {"samples": _samples(), "batches": _batches(), "rates": RATES, "steps": STEPS, **changed}
    with pytest.raises(ValueError, match=message):
        train(Perceptrons("relu"), _start(), asked.pop("samples"), asked.pop("batches"), **asked)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rule(momentum=1.0), "momentum must be in"),
        (lambda: Rule(second=-0.1), "second must be in"),
        (lambda: Rule(damping=0.0), "damping must be positive"),
        (lambda: Rule(nesterov=True, averaged=True), "nesterov must stand without"),
        (lambda: Perceptrons("gelu"), "activation must be one of"),
        (lambda: Perceptrons("relu", "hinge"), "loss must be one of"),
        (lambda: Modules(nn.BatchNorm1d(3)), "running statistics"),
    ],
)
def test_rules_and_stacks_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_perceptrons_start_within_the_bounds_of_torch() -> None:
    for parameter, into in zip(
        perceptrons_at_start([np.random.default_rng(0)], (40, 50, 9)), (40, 40, 50, 50), strict=True
    ):
        assert 0.85 < parameter.abs().max() * into**0.5 <= 1.0
