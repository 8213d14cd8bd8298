"""Full-batch gradient descent of wide networks on the squared error, many learning rates at once.

The loss is E = sum |y - f|^2 / (2 T) over the T samples, so that its Hessian at a minimum of zero error is the
Fisher matrix of `simulate.wide.fisher_gram`. With ``subtracted`` every output has its mean over the samples taken off
before it is compared with y. Each network is trained once at every learning rate of its own; shapes lead with
the n networks, then their R rates.

A run that overflows has exploded: its loss is infinite from that step on, and it is not trained any further.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from simulate import _checks, _memory
from simulate.activations import ActivationLike
from simulate.matrices import ensembles
from simulate.objectives.batches import cuts
from simulate.training.rules import per_network
from simulate.wide import fisher_gram
from simulate.wide.signals import WideNetwork, forward

_ENTRIES = 1 << 20
"""Most entries of the Gram matrices held at once: 8 MiB stay near the cache, more take twice as long."""


class Descent(NamedTuple):
    """Result of training n networks at R rates each.

    Attributes
    ----------
    losses
        Losses before every step and after the last, (n, R, steps + 1); infinite once a run has exploded.
    """

    losses: Tensor

    @property
    def final(self) -> Tensor:
        """Losses after the last step, (n, R)."""
        return self.losses[..., -1]

    @property
    def peak(self) -> Tensor:
        """Largest losses during training, (n, R)."""
        return self.losses.amax(-1)

    @property
    def exploded(self) -> Tensor:
        """Whether each run has overflowed, (n, R)."""
        return self.final.isinf()


class Bracket(NamedTuple):
    """Learning rates between which runs begin to explode, each (n,): 0 or infinity if no such rate was found."""

    lower: Tensor
    upper: Tensor


def outputs(network: WideNetwork, activation: ActivationLike, *, subtracted: bool = False) -> Tensor:
    """Return the outputs (n, T, C), minus their mean over the samples if `subtracted`.

    Raises
    ------
    ValueError
        If the activation is unknown, or a sequence of them does not match the hidden layers.
    """
    found = forward(network, activation).preactivations[-1]
    return found - found.mean(1, keepdim=True) if subtracted else found


def taught(network: WideNetwork, teacher: WideNetwork, activation: ActivationLike) -> Tensor:
    """Return the outputs of a teacher on the inputs of other networks, as targets (n, T, C).

    Raises
    ------
    ValueError
        If the activation is unknown, or a sequence of them does not match the hidden layers.
    """
    return outputs(
        WideNetwork(weights=teacher.weights, biases=teacher.biases, inputs=network.inputs), activation
    )


def squared_error(found: Tensor, targets: Tensor) -> Tensor:
    """Return E = sum |y - f|^2 / (2 T) for outputs (n, T, C), shape (n,)."""
    return (targets - found).square().sum((1, 2)) / (2 * targets.shape[1])


def sharpness(network: WideNetwork, activation: ActivationLike, *, subtracted: bool = False) -> Tensor:
    """Return the largest eigenvalue of the Fisher matrix, of outputs minus their means if `subtracted`; shape (n,).

    It is infinite if the Gram matrix overflows. The Gram matrix has the precision of the network, the eigenvalue double
    precision.

    Raises
    ------
    ValueError
        As `fisher_gram.gram`.

    Examples
    --------
    A linear read-out of two samples: the Gram matrix of the inputs and a bias, divided by T = 2.

    >>> x = torch.tensor([[[3.0, 4.0], [4.0, 3.0]]])
    >>> one = WideNetwork(weights=(torch.ones(1, 1, 2),), biases=(torch.zeros(1, 1),), inputs=x)
    >>> sharpness(one, "linear"), sharpness(one, "linear", subtracted=True)
    (tensor([25.5000], dtype=torch.float64), tensor([0.5000], dtype=torch.float64))
    """
    n, samples = network.inputs.shape[:2]
    most = max(1, _ENTRIES // (network.outputs * samples) ** 2)
    if n > most:
        tensors = (*network.weights, *network.biases)
        parts = (_network([t[some] for t in tensors], network.inputs[some]) for some in cuts(n, most))
        return torch.cat([sharpness(part, activation, subtracted=subtracted) for part in parts])
    gram = fisher_gram.gram(network, activation).double()
    gram = fisher_gram.centred(gram) if subtracted else gram
    flat = fisher_gram.as_matrices(gram)
    finite = flat.sum((1, 2)).isfinite()
    if bool(finite.all()):
        return ensembles.top_eigenvalue(flat) / samples
    # a decomposition fails for the whole block if one entry is infinite
    found = flat.new_full((n,), math.inf)
    found[finite] = ensembles.top_eigenvalue(flat[finite]) / samples if bool(finite.any()) else 0.0
    return found


def descend(
    network: WideNetwork,
    activation: ActivationLike,
    targets: Tensor,
    *,
    rates: Tensor,
    steps: int,
    subtracted: bool = False,
) -> Descent:
    """Train each network at each of its learning rates: theta <- theta - rate dE/dtheta, weights and biases.

    Parameters
    ----------
    network
        The n networks at the start, with their inputs.
    activation
        A name, a pair of function and derivative, or one of these for each hidden layer.
    targets
        y, (n, T, C).
    rates
        (n, R), positive.
    steps
        Number of steps, at least 1.
    subtracted
        Whether the outputs have their mean over the samples subtracted.

    Raises
    ------
    ValueError
        If shapes disagree, a rate is not positive, a number of steps is not one, the activation is unknown, or the
        runs do not fit into memory.

    Examples
    --------
    One weight and one bias, of curvature 2: a step at rate 1/4 leaves a quarter of the loss, one at rate 3 makes it
    25 times as large.

    >>> x = torch.ones(1, 1, 1)
    >>> one = WideNetwork(weights=(torch.zeros(1, 1, 1),), biases=(torch.zeros(1, 1),), inputs=x)
    >>> run = descend(one, "linear", x, rates=torch.tensor([[0.25, 3.0]]), steps=2)
    >>> run.losses
    tensor([[[5.0000e-01, 1.2500e-01, 3.1250e-02],
             [5.0000e-01, 1.2500e+01, 3.1250e+02]]])
    """
    steps = _checks.natural("steps", steps)
    n, samples, _ = network.inputs.shape
    if targets.shape != (n, samples, network.outputs):
        expected = (n, samples, network.outputs)
        raise ValueError(f"targets must be of shape {expected}, got {tuple(targets.shape)}")
    if rates.ndim != 2 or rates.shape[0] != n or rates.shape[1] < 1:
        raise ValueError(f"rates must be of shape ({n}, R), got {tuple(rates.shape)}")
    if not _checks.all_positive(rates):
        raise ValueError("rates must be finite and positive")
    _memory.require_free(
        "rates",
        rates.numel() * _numbers(network) * network.inputs.element_size(),
        f"{rates.numel()} runs of {samples} samples",
        device=network.inputs.device,
        advice="use fewer rates, samples or networks",
    )
    losses = rates.new_full((rates.numel(), steps + 1), math.inf)
    repeated = (*network.weights, *network.biases, network.inputs, targets, rates.reshape(-1, 1))
    *own, inputs, wanted, each = (t.repeat_interleave(len(losses) // len(t), 0) for t in repeated)
    places = torch.arange(len(losses), device=rates.device)
    for step in range(steps + 1):
        with torch.enable_grad():
            at = [t.detach().requires_grad_() for t in own]
            found = squared_error(outputs(_network(at, inputs), activation, subtracted=subtracted), wanted)
            gradients = torch.autograd.grad(found.sum(), at, materialize_grads=True)
        found = found.detach()
        well = found.isfinite()
        if not bool(well.all()):
            found, places, inputs, wanted, each = (t[well] for t in (found, places, inputs, wanted, each))
            own, gradients = [t[well] for t in own], [g[well] for g in gradients]
            if not len(places):
                break
        losses[places, step] = found
        own = [t - gradient.mul_(per_network(each, t)) for t, gradient in zip(own, gradients, strict=True)]
    return Descent(losses.reshape(*rates.shape, -1))


def critical_rates(
    network: WideNetwork,
    activation: ActivationLike,
    targets: Tensor,
    *,
    lower: Tensor,
    upper: Tensor,
    steps: int,
    halvings: int,
    subtracted: bool = False,
) -> Bracket:
    """Narrow down, for each network, the learning rate at which training begins to explode, by bisection.

    Parameters
    ----------
    network, activation, targets, subtracted
        As for `descend`.
    lower, upper
        Rates to search between, (n,), 0 < lower < upper.
    steps
        A run that has not exploded after this many steps counts as stable.
    halvings
        How often the ratio of the two rates is replaced by its square root.

    Returns
    -------
    The bracket, with 0 if the lower end explodes, and infinity if the upper end does not. There may be other changes
    between the two: explosion need not be monotone in the rate.

    Raises
    ------
    ValueError
        As `descend`, or if the bounds are not in order.
    """
    if not bool(((lower > 0) & (lower < upper) & upper.isfinite()).all()):
        raise ValueError("lower must be positive and less than upper")
    halvings = _checks.natural("halvings", halvings)

    def explodes(rates: Tensor) -> Tensor:
        return descend(network, activation, targets, rates=rates, steps=steps, subtracted=subtracted).exploded

    ends = explodes(torch.stack([lower, upper], 1))
    low, high = lower, upper
    for _ in range(halvings):
        # halves the logarithm of the ratio: the bracket is relative
        middle = (low * high).sqrt()
        beyond = explodes(middle[:, None])[:, 0]
        low, high = torch.where(beyond, low, middle), torch.where(beyond, middle, high)
    low = torch.where(ends[:, 0], 0.0, low)
    return Bracket(low, torch.where(ends[:, 1], high, math.inf))


def _network(tensors: Sequence[Tensor], inputs: Tensor) -> WideNetwork:
    depth = len(tensors) // 2
    return WideNetwork(weights=tuple(tensors[:depth]), biases=tuple(tensors[depth:]), inputs=inputs)


def _numbers(network: WideNetwork) -> int:
    # parameters, their gradients, what is subtracted and the next ones; inputs, and for the units of each layer what
    # they keep for the way back: up to eight tensors (gelu)
    parameters = sum(t[0].numel() for t in (*network.weights, *network.biases))
    units = sum(bias.shape[1] for bias in network.biases)
    return 4 * parameters + network.inputs.shape[1] * (network.inputs.shape[2] + 8 * units)
