"""Training: the steps of Adam, and the loss they go down."""

import numpy as np
import torch

from simulate import networks
from simulate.perceptrons import _flat, per_sample
from simulate.perceptrons.trained import perceptron_objective, trained

WIDTHS = (4, 5, 3)


def problem() -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return per_sample.initial_parameters(rng, WIDTHS), rng.standard_normal((9, 4)), rng.integers(0, 3, 9)


def test_steps_are_those_of_adam() -> None:
    theta, x, labels = problem()
    reference, logits = theta.clone().requires_grad_(), _flat.flat_logits(WIDTHS, theta, "tanh")
    optimiser = torch.optim.Adam([reference], lr=0.03)
    for _ in range(5):
        optimiser.zero_grad()
        found = logits(reference, torch.from_numpy(x))
        torch.nn.functional.cross_entropy(found, torch.from_numpy(labels)).backward()
        optimiser.step()
    found = trained(WIDTHS, theta, x, labels, steps=5, rate=0.03)
    torch.testing.assert_close(found, reference.detach(), rtol=1e-10, atol=1e-12)
    assert not found.requires_grad
    assert torch.equal(trained(WIDTHS, theta, x, labels, steps=0), theta)


def test_the_loss_is_that_of_the_network_with_and_without_biases() -> None:
    _, x, labels = problem()
    weights = networks.mlp_weights(np.random.default_rng(3), WIDTHS)
    logits, classes = networks.mlp_logits(weights, torch.from_numpy(x), "gelu"), torch.from_numpy(labels)
    plain = torch.cat([w.flatten() for w in weights])
    biased = torch.cat([part for w in weights for part in (w.flatten(), w.new_zeros(len(w)))])
    biased[-3:] = shift = torch.tensor([0.0, 5.0, 0.0]).double()
    for theta, outputs in ((plain, logits), (biased, logits + shift)):
        measured = perceptron_objective(WIDTHS, theta, x, labels, "gelu")
        assert abs(measured.value() - float(torch.nn.functional.cross_entropy(outputs, classes))) < 1e-12
        assert torch.equal(torch.cat([p.flatten() for p in measured.leaves]), theta)
