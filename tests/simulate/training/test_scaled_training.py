"""Descent with probabilities of one's own choice: the steps of torch's SGD, and gradients written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from simulate import networks
from simulate.objectives.parameters import parametric
from simulate.training.scaled_training import descent, inner, uniform

WIDTHS = (5, 7, 4)


def problem(count: int = 6) -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(1)
    weights = list(networks.mlp_weights(rng, WIDTHS))
    x = torch.from_numpy(rng.standard_normal((count, WIDTHS[0])))
    return weights, x, torch.from_numpy(rng.integers(0, WIDTHS[-1], count))


def last(*args, **kwargs):
    *_, end = descent(*args, **kwargs)
    return end


@pytest.mark.parametrize("temperature", [1.0, 2.7])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_steps_are_those_of_stochastic_gradient_descent(momentum: float, temperature: float) -> None:
    weights, x, labels = problem()
    model = networks.Mlp(WIDTHS, rng=np.random.default_rng(1))
    batches = list(zip(x.split(2), labels.split(2), strict=True))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
    for step in range(7):
        inputs, classes = batches[step % 3]
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(inputs) / temperature, classes).backward()
        optimiser.step()
    end = last(weights, batches, rate=0.1, steps=7, momentum=momentum, temperature=temperature)
    for found, expected in zip(end.parameters, model.parameters(), strict=True):
        torch.testing.assert_close(found, expected.detach(), rtol=1e-12, atol=1e-13)
        assert not found.requires_grad
    torch.testing.assert_close(end.logits, model(batches[1][0]).detach())
    torch.testing.assert_close(end.predictions, (end.logits / temperature).softmax(-1))


@pytest.mark.parametrize("alpha", [0.25, 2.0])
def test_at_matched_temperature_and_rate_a_scaled_network_takes_the_same_path_to_the_bit(
    alpha: float,
) -> None:
    """A power of two moves exponents only: nothing is rounded differently."""
    weights, x, labels = problem()
    settings: dict = {
        "batches": list(zip(x.split(2), labels.split(2), strict=True)),
        "steps": 7,
        "momentum": 0.9,
    }
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
        for found, expected in zip(together.parameters, alone.parameters, strict=True):
            torch.testing.assert_close(found[i], expected, rtol=1e-12, atol=1e-13)


def test_uniform_predictions_descend_the_logit_of_the_label_less_their_mean() -> None:
    weights, x, labels = problem()
    leaves = [w.clone().requires_grad_() for w in weights]
    z = networks.mlp_logits(leaves, x)
    expected = torch.autograd.grad(-(z.gather(1, labels[:, None])[:, 0] - z.mean(1)).mean(), leaves)
    (start,) = descent(weights, [(x, labels)], rate=1.0, steps=0, predictions=uniform)
    for found, wanted in zip(start.gradients, expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-14)
    product = -sum(float((w * g).sum()) for w, g in zip(weights, expected, strict=True))
    assert math.isclose(-float(inner(start.parameters, start.gradients, 0)), product, rel_tol=1e-12)


def test_predictions_of_another_network_are_those_of_its_step() -> None:
    weights, x, labels = problem()
    other = [m.predictions for m in descent([2 * w for w in weights], [(x, labels)], rate=0.1, steps=3)]
    path = list(descent(weights, [(x, labels)], rate=0.1, steps=3, predictions=lambda step, _: other[step]))
    assert all(torch.equal(m.predictions, p) for m, p in zip(path, other, strict=True))
    own = last(weights, [(x, labels)], rate=0.1, steps=3)
    assert not torch.allclose(path[-1].parameters[0], own.parameters[0], rtol=1e-3)


def test_any_model_can_be_trained_and_is_left_as_it_was() -> None:
    model = networks.LeNet5(rng=np.random.default_rng(0))
    before = [p.detach().clone() for p in model.parameters()]
    own = parametric(model)
    x, labels = torch.ones(2, 3, 32, 32, dtype=torch.float64), torch.tensor([1, 2])
    end = last(own.parameters, [(x, labels)], rate=0.01, steps=1, logits=own.call)
    nn.functional.cross_entropy(model(x), labels).backward()
    for found, p, old in zip(end.parameters, model.parameters(), before, strict=True):
        assert torch.equal(p, old) and p.grad is not None
        torch.testing.assert_close(found, old - 0.01 * p.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"rate": 0.0}, "rate must be finite and positive"),
        ({"rate": torch.tensor([0.1, -0.1])}, "rate must be finite and positive"),
        ({"temperature": -1.0}, "temperature must be finite and positive"),
        ({"momentum": 1.0}, r"momentum must be in \[0, 1\), got 1.0"),
        ({"steps": -1}, "steps must be a positive integer"),
    ],
)
def test_what_is_no_training_is_refused_at_once(changes: dict, match: str) -> None:
    weights, x, labels = problem()
    settings = {"rate": 0.1, "steps": 2} | changes
    with pytest.raises(ValueError, match=match):
        descent(weights, [(x, labels)], **settings)


def test_there_must_be_a_batch() -> None:
    with pytest.raises(ValueError, match="batches must be at least one, got none"):
        descent(problem()[0], [], rate=0.1, steps=1)
