"""Descent with probabilities of one's own choice: the steps of torch's SGD, and gradients written out."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from simulate import networks
from simulate.objectives.parameters import parametric
from simulate.training.scaled_training import descent

WIDTHS = (5, 7, 4)


def problem(count: int = 6) -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(1)
    weights = list(networks.mlp_weights(rng, WIDTHS))
    x = torch.from_numpy(rng.standard_normal((count, WIDTHS[0])))
    return weights, x, torch.from_numpy(rng.integers(0, WIDTHS[-1], count))


def in_batches(x: torch.Tensor, labels: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return list(zip(x.split(2), labels.split(2), strict=True))


def last(*args, **kwargs):
    *_, end = descent(*args, **kwargs)
    return end


@pytest.mark.parametrize("temperature", [1.0, 2.7])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_steps_are_those_of_stochastic_gradient_descent(momentum: float, temperature: float) -> None:
    weights, x, labels = problem()
    model = networks.Mlp(WIDTHS, rng=np.random.default_rng(1))
    batches = in_batches(x, labels)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
    for step in range(7):
        inputs, classes = batches[step % 3]
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(inputs) / temperature, classes).backward()
        optimiser.step()
    end = last(weights, batches, rate=0.1, steps=7, momentum=momentum, temperature=temperature)
    expected = [p.detach() for p in model.parameters()]
    assert_close(list(end.parameters), expected, rtol=1e-12, atol=1e-13)
    assert not any(p.requires_grad for p in end.parameters)
    assert_close(end.logits, model(batches[1][0]).detach())
    assert_close(end.predictions, (end.logits / temperature).softmax(-1))


@pytest.mark.parametrize("alpha", [0.25, 2.0])
def test_at_matched_temperature_and_rate_a_scaled_network_takes_the_same_path_to_the_bit(
    alpha: float,
) -> None:
    """A power of two moves exponents only: nothing is rounded differently."""
    weights, x, labels = problem()
    settings = {"batches": in_batches(x, labels), "steps": 7, "momentum": 0.9}
    plain = last(weights, rate=0.1, **settings)
    matched = {"rate": alpha**2 * 0.1, "temperature": alpha ** len(weights)}
    scaled = last([alpha * w for w in weights], **matched, **settings)
    for found, expected in zip(scaled.parameters, plain.parameters, strict=True):
        assert torch.equal(found, alpha * expected)


def test_every_rate_trains_a_network_of_its_own() -> None:
    weights, x, labels = problem()
    rates = torch.tensor([0.05, 0.2], dtype=torch.float64)
    together = last([torch.stack([w, w]) for w in weights], [(x, labels.expand(2, -1))], rate=rates, steps=4)
    for i, rate in enumerate(rates.tolist()):
        alone = last(weights, [(x, labels)], rate=rate, steps=4)
        assert_close(tuple(p[i] for p in together.parameters), alone.parameters, rtol=1e-12, atol=1e-13)


def test_predictions_of_another_network_are_those_of_its_step() -> None:
    weights, x, labels = problem()
    other = [m.predictions for m in descent([2 * w for w in weights], [(x, labels)], rate=0.1, steps=3)]
    path = list(descent(weights, [(x, labels)], rate=0.1, steps=3, predictions=lambda step, _: other[step]))
    assert all(torch.equal(m.predictions, p) for m, p in zip(path, other, strict=True))
    own = last(weights, [(x, labels)], rate=0.1, steps=3)
    assert not torch.allclose(path[-1].parameters[0], own.parameters[0], rtol=1e-3)


def test_any_model_can_be_trained_and_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 2), nn.Tanh(), nn.Flatten(), nn.Linear(8, 3)).double()
    before = [p.detach().clone() for p in model.parameters()]
    own = parametric(model)
    x, labels = torch.arange(18.0).double().view(2, 1, 3, 3).sin(), torch.tensor([1, 2])
    end = last(own.parameters, [(x, labels)], rate=0.01, steps=1, logits=own.call)
    nn.functional.cross_entropy(model(x), labels).backward()
    for found, p, old in zip(end.parameters, model.parameters(), before, strict=True):
        assert torch.equal(p, old)
        assert_close(found, old - 0.01 * p.grad, rtol=1e-10, atol=1e-12)
