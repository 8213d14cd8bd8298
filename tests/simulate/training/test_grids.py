"""Networks trained in one stack against the same networks trained one by one with torch's own optimisers."""

import math
import sys

import numpy as np
import pytest
import torch
from numpy.random import default_rng
from numpy.testing import assert_allclose
from torch import nn
from torch.testing import assert_close

from simulate.training.grids import TrainingSets, checkpoints, ends_measured, train
from simulate.training.rules import ADAM, AVERAGED, MOMENTUM, SGD, Memory, Rule
from simulate.training.stacks import Modules, Perceptrons, ResidualPerceptrons, perceptrons_at_start
from simulate.training.trial_training import CommonBatches
from tests.refusals import refusal

WIDTHS = (5, 7, 6, 3)
RATES = torch.tensor([[0.02, 0.3], [0.05, 0.1]], dtype=torch.float64)
N, B, STEPS = 11, 4, 9
OWN = torch.tensor([[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]])


def _samples(targets="classes", own=None):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(N, 5, generator=generator, dtype=torch.float64)
    numbers = torch.randn(N, 3, generator=generator, dtype=torch.float64)
    return TrainingSets(x, torch.arange(N) % 3 if targets == "classes" else numbers, own)


def _start():
    streams = [default_rng(seed) for seed in (1, 2)]
    return perceptrons_at_start(streams, WIDTHS, dtype=torch.float64)


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


def by_torch(model, samples, batches, optimiser, rates, *, own=None):
    """Losses before each step, and parameters before the first and after each."""
    losses, found = [], []
    for rate, chosen in zip(rates, batches.steps(0, len(rates)), strict=True):
        found.append([p.detach().clone() for p in model.parameters()])
        optimiser.param_groups[0]["lr"] = float(rate)
        optimiser.zero_grad()
        rows = chosen if own is None else own[chosen]
        loss = nn.functional.cross_entropy(model(samples.inputs[rows]), samples.targets[rows])
        loss.backward()
        losses.append(loss.item())
        optimiser.step()
    return losses, [*found, list(model.parameters())]


@pytest.mark.parametrize("warmup", [None, torch.tensor([[1.0, 4.0], [20.0, 2.5]])])
@pytest.mark.parametrize("own", [None, OWN])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_run_is_the_one_that_torch_makes_alone(name, own, warmup):
    """Rates warm up on a line each, over their own steps."""
    rule, made = OPTIMISERS[name]
    start, samples, batches = _start(), _samples(own=own), _batches() if own is None else _batches(5, 2)
    how = {"rates": RATES, "steps": STEPS, "rule": rule, "warmup": warmup}
    run = train(Perceptrons("relu"), start, samples, batches, **how)
    ramps = torch.arange(1, STEPS + 1).double() / (torch.ones(2, 2) if warmup is None else warmup)[..., None]
    rates = RATES[..., None] * ramps.clamp(max=1)
    ends, right = ends_measured(Perceptrons("relu"), run, samples, size=4)
    for network, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        model, rows = _model(start, network), slice(None) if own is None else own[network]
        optimiser, mine = made(model.parameters(), 1.0), None if own is None else rows
        losses, _ = by_torch(model, samples, batches[network], optimiser, rates[network, column], own=mine)
        assert_allclose(run.losses[network, column], losses, rtol=1e-10)
        outputs, y = model(samples.inputs[rows]), samples.targets[rows]
        assert ends[network, column].item() == pytest.approx(
            nn.functional.cross_entropy(outputs, y).item(), rel=1e-10
        )
        assert right[network, column].item() == pytest.approx((outputs.argmax(1) == y).double().mean().item())


def test_squares_that_start_at_the_first_gradient_are_those_written_out():
    rng = default_rng(3)
    gradients = rng.standard_normal((4, 2, 3))
    weights, memory = [torch.zeros(2, 3, dtype=torch.float64)], Memory()
    rule = Rule(momentum=0.8, second=0.9, squared_start=True)
    w, m, v = np.zeros((2, 3)), np.zeros((2, 3)), gradients[0] ** 2
    for step, g in enumerate(gradients, 1):
        memory = rule.step_(weights, [torch.from_numpy(g)], torch.full((2,), 0.3).double(), memory)
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g**2
        w -= 0.3 * m / (1 - 0.8**step) / (np.sqrt(v / (1 - 0.9**step)) + 1e-8)
    # torch's kernel corrects in single precision
    assert_allclose(weights[0], w, rtol=1e-6)


@pytest.mark.parametrize(("name", "decay"), [("momentum", 0.3), ("adam", 0.0)])
@pytest.mark.parametrize("at", [(0, 2, 5), (1,), (3, 4)])
def test_checkpoints_are_where_torch_is_at_rates_that_change(name, decay, at):
    rule, made = OPTIMISERS[name]
    start, samples, batches, rates = _start(), _samples(own=OWN), _batches(5, 2), [0.1, 0.1, 0.05, 0.2, 0.01]
    kept, how = [p.clone() for p in start], {"rates": rates, "rule": rule, "decay": decay}
    found = checkpoints(Perceptrons("relu"), start, samples, batches, at=at, **how)
    assert [c.step for c in found] == list(at)
    for network in range(2):
        model = _model(start, network)
        optimiser = made(model.parameters(), 1.0)
        optimiser.param_groups[0]["weight_decay"] = decay
        expected = by_torch(model, samples, batches[network], optimiser, rates, own=OWN[network])[1]
        for checkpoint in found:
            assert_close([p[network] for p in checkpoint.parameters], expected[checkpoint.step])
    assert_close(start, kept, rtol=0, atol=0)


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
    assert_close(ours, theirs)
    assert_close(closed.outputs(start, x), derived.outputs(stacked, x))
    rates = torch.tensor([0.1, 0.2], dtype=torch.float64)
    moved = [p.clone() for p in start]
    closed.descend_(moved, x, y, rates)
    derived.descend_(stacked, x, y, rates)
    assert_close(moved, stacked)


def test_residual_perceptrons_are_sums_over_branches_and_have_the_slopes_of_differences():
    rng = default_rng(5)
    arrays = [
        rng.standard_normal(shape) for shape in ((2, 4, 3), (2, 3, 4, 4), (2, 2, 4), (2, 5, 3), (2, 5, 2))
    ]
    into, branches, out, x, y = arrays
    stack = ResidualPerceptrons("tanh", "squared error", scale=0.6)
    start = [torch.from_numpy(a) for a in arrays[:3]]

    def losses(branches):
        signal = np.einsum("nmi,nbi->nbm", into, x)
        for i in range(3):
            signal = signal + 0.6 * np.einsum("nmk,nbk->nbm", branches[:, i], np.tanh(signal))
        return np.square(np.einsum("nom,nbm->nbo", out, signal) - y).sum(2).mean(1) / 2

    found, gradients = stack.losses_and_gradients(start, torch.from_numpy(x), torch.from_numpy(y))
    assert_allclose(found, losses(branches), rtol=1e-12)
    shift = rng.standard_normal(branches.shape)
    slope = (losses(branches + 1e-5 * shift) - losses(branches - 1e-5 * shift)) / 2e-5
    assert_allclose((gradients[1].numpy() * shift).sum((1, 2, 3)), slope, rtol=1e-7)


def test_classes_and_their_indicators_have_the_same_squared_error():
    start, samples = _start(), _samples()
    stack, x = Perceptrons("tanh", "squared error"), samples.inputs.expand(2, -1, -1)
    classes = samples.targets.expand(2, -1)
    indicators = nn.functional.one_hot(classes, 3).double()
    assert_close(*(stack.losses_and_gradients(start, x, y) for y in (classes, indicators)))


@pytest.mark.parametrize("rule", [SGD, ADAM])
def test_lost_runs_leave_the_stack_and_change_no_other(rule):
    start, samples, batches = _start(), _samples(), _batches()
    wild = torch.tensor([[0.02, 1e6], [1e6, 0.1]], dtype=torch.float64)
    stack = Perceptrons("relu", "squared error")

    def watch(_, cells):
        return {"norm": cells.parameters[0].square().sum((1, 2)), "where": cells.places[:, None].double()}

    run, tame = (
        train(
            stack, start, samples, batches, rates=rates, steps=STEPS, rule=rule, watch=watch, at=(0, 3, STEPS)
        )
        for rates in (wild, RATES)
    )
    assert run.lost.tolist() == [[False, True], [True, False]]
    assert_close(run.losses.diagonal(), tame.losses.diagonal())
    assert run.losses[0, 1, -1] == math.inf and run.losses[0, 1, 0].isfinite()
    assert run.watched["where"].shape == (2, 2, 3, 1) and run.watched["where"][1, 1, 2, 0] == 3
    assert run.watched["norm"][0, 1, 2].isnan()
    losses, accuracies = ends_measured(stack, run, samples)
    assert losses[0, 1] == math.inf and accuracies[0, 1] == 0 and losses[0, 0].isfinite()
    assert run.cells.places.tolist() == [0, 3]


def test_a_grid_of_modules_that_are_all_lost_has_its_ends():
    """Under `vmap` a convolution takes no stack of no networks."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2))
    samples = TrainingSets(torch.randn(6, 1, 4, 4), torch.arange(6) % 2)
    batches = [CommonBatches(samples=6, size=6)]
    rates = torch.tensor([[1e20, 1e30]])
    run = train(Modules(model), Modules.stacked([model]), samples, batches, rates=rates, steps=3)
    assert run.lost.all()
    losses, accuracies = ends_measured(Modules(model), run, samples)
    assert losses.isinf().all() and not accuracies.any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rule(momentum=1.0), "momentum must be in"),
        (lambda: Rule(second=-0.1), "second must be in"),
        (lambda: Rule(damping=0.0), "damping must be positive"),
        (lambda: Perceptrons("gelu"), "activation must be one of"),
        (lambda: ResidualPerceptrons("gelu", scale=1.0), "activation must be one of"),
        (lambda: Perceptrons("relu", "hinge"), "loss must be one of"),
        (lambda: Modules(nn.BatchNorm1d(3)), "running statistics"),
    ],
)
def test_rules_and_stacks_that_make_no_sense_are_refused(make, message):
    with refusal(message):
        make()


def test_perceptrons_start_within_the_bounds_of_torch() -> None:
    for parameter, into in zip(
        perceptrons_at_start([default_rng(0)], (40, 50, 9)), (40, 40, 50, 50), strict=True
    ):
        assert 0.85 < parameter.abs().max() * into**0.5 <= 1.0


# --- rules at the ends of what numbers can hold


@pytest.mark.parametrize("rule", [MOMENTUM, ADAM])
def test_momentum_that_fades_ends_at_zero(rule):
    """0.9 times the smallest number there is would be rounded to that number for ever."""
    weights, memory = [torch.ones(2, 3)], Memory()
    for step in range(1200):
        gradient = torch.full((2, 3), float(step == 0))
        memory = rule.step_(weights, [gradient], torch.tensor([0.1, 0.2]), memory)

    assert torch.equal(memory.first[0], torch.zeros(2, 3))
    assert bool((weights[0] < 1).all())


@pytest.mark.parametrize("flushed", [False, True])
def test_a_step_leaves_it_to_the_caller_whether_small_numbers_count(flushed):
    if flushed and not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot")
    try:
        ADAM.step_([torch.ones(2, 3)], [torch.ones(2, 3)], torch.tensor([0.1, 0.2]), Memory())
        assert (sys.float_info.min / 2 == 0) == flushed
    finally:
        torch.set_flush_denormal(False)
