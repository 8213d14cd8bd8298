"""Networks along training against the optimisers of torch, step by step, at rates that change."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from simulate import networks
from simulate.training.grids import TrainingSets, checkpoints
from simulate.training.rules import ADAM, MOMENTUM
from simulate.training.stacks import Modules, Perceptrons, perceptrons_at_start
from simulate.training.trial_training import CommonBatches

RATES = [0.1, 0.1, 0.05, 0.2, 0.01]
SAMPLES = 6


def two_perceptrons():
    models = [networks.Mlp((4, 3, 2), bias=True, rng=np.random.default_rng(seed)) for seed in (1, 2)]
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(2 * SAMPLES, 4, generator=generator, dtype=torch.float64)
    y = torch.randint(2, (2 * SAMPLES,), generator=generator)
    own = torch.arange(2 * SAMPLES).view(2, SAMPLES)
    batches = [CommonBatches(samples=SAMPLES, size=2, seed=seed) for seed in (5, 6)]
    return models, TrainingSets(x, y, own), batches


def by_torch(model, samples, batches, network, optimiser, factor=1.0):
    """Parameters before the first step and after each, and the optimiser."""
    found = [[p.detach().clone() for p in model.parameters()]]
    for step, rate in enumerate(RATES):
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        rows = samples.own[network][batches[network].at(step)]
        nn.functional.cross_entropy(model(factor * samples.inputs[rows]), samples.targets[rows]).backward()
        optimiser.step()
        found.append([p.detach().clone() for p in model.parameters()])
    return found


@pytest.mark.parametrize("at", [(0, 2, 5), (1,), (3, 4)])
def test_descent_with_momentum_and_decay_is_that_of_torch(at):
    models, samples, batches = two_perceptrons()
    stack = Modules(models[0])
    start = stack.stacked(models)
    kept = [p.clone() for p in start]
    found = checkpoints(
        stack, start, samples, batches, rates=RATES, at=at, rule=MOMENTUM, decay=0.3, changed=lambda x: 2 * x
    )
    assert [c.step for c in found] == list(at)
    for network, model in enumerate(copy.deepcopy(models)):
        optimiser = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9, weight_decay=0.3)
        expected = by_torch(model, samples, batches, network, optimiser, factor=2.0)
        for checkpoint in found:
            for own, other in zip(checkpoint.parameters, expected[checkpoint.step], strict=True):
                torch.testing.assert_close(own[network], other)
    for p, before in zip(start, kept, strict=True):
        torch.testing.assert_close(p, before, rtol=0, atol=0)


def test_what_adam_keeps_is_what_torch_keeps():
    models, samples, batches = two_perceptrons()
    stack = Modules(models[0])
    early, late = checkpoints(
        stack, stack.stacked(models), samples, batches, rates=RATES, at=(2, 5), rule=ADAM
    )
    model = copy.deepcopy(models[1])
    optimiser = torch.optim.Adam(model.parameters(), lr=1.0)
    expected = by_torch(model, samples, batches, 1, optimiser)
    for own, other in zip(early.parameters, expected[2], strict=True):
        torch.testing.assert_close(own[1], other)
    assert late.memory.steps == 5
    for square, p in zip(late.memory.second, model.parameters(), strict=True):
        torch.testing.assert_close(square[1], optimiser.state[p]["exp_avg_sq"])
    assert not torch.equal(early.memory.second[0], late.memory.second[0])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"at": ()}, "at must be rising numbers of steps from 0 to 5"),
        ({"at": (6,)}, "at must be rising"),
        ({"at": (-1,)}, "at must be rising"),
        ({"at": (1,), "decay": -0.1}, "decay must be finite and not negative, got -0.1"),
        ({"at": (1,), "decay": float("nan")}, "decay must be finite"),
    ],
)
def test_refusals(asked, message):
    start = perceptrons_at_start([np.random.default_rng(0)], (1, 2))
    samples = TrainingSets(torch.ones(1, 1), torch.tensor([0]))
    batches = [CommonBatches(samples=1, size=1)]
    with pytest.raises(ValueError, match=message):
        checkpoints(Perceptrons("relu"), start, samples, batches, rates=RATES, **asked)
