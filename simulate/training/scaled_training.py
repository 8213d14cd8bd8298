"""Gradient descent on the cross-entropy with given probabilities as weights of the gradients of the logits.

The gradient of the loss is the mean over samples of sum_k (p - onehot)_k dz_k / T. Networks that differ by a scale of
their weights take the same path if these p agree. So a path may be given probabilities of another network, or uniform
ones. It takes any model, and many bias-free perceptrons at once: logits (..., N, K), and parameters with the same
leading axes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from simulate import _checks, _memory
from simulate.networks import mlp_logits
from simulate.training.rules import per_network

Parameters = Sequence[Tensor]
Predictions = Callable[[int, Tensor], Tensor]
"""Function of the number of the step and the logits to the probabilities that weight its gradient."""


class Moment(NamedTuple):
    """State of a path before a step.

    Attributes
    ----------
    parameters, gradients
        Parameters before the step, and the gradients, without rate and momentum.
    logits, predictions
        Logits (..., N, K) on the batch of the step, and the probabilities that weight their gradients.
    """

    parameters: tuple[Tensor, ...]
    gradients: tuple[Tensor, ...]
    logits: Tensor
    predictions: Tensor


def descent(
    parameters: Parameters,
    batches: Sequence[tuple[Any, Tensor]],
    *,
    rate: float | Tensor,
    steps: int,
    logits: Callable[[Parameters, Any], Tensor] = mlp_logits,
    temperature: float = 1.0,
    momentum: float = 0.0,
    predictions: Predictions | None = None,
) -> Iterator[Moment]:
    """Yield the state before each step of gradient descent, and after the last.

    Parameters
    ----------
    parameters
        Start of the path; not changed.
    batches
        Inputs and labels (..., N), used in turn and then again from the first.
    rate
        Learning rate, one number or one for each of the leading axes of the parameters.
    steps
        Number of steps; 0 gives the start alone.
    logits
        A function of parameters and inputs; the bias-free ReLU perceptron of these weights by default.
    temperature
        T > 0, which the logits are divided by.
    momentum
        Share of the last move that is added to a step, in [0, 1).
    predictions
        Probabilities that weight the gradients of the logits: the network's own if None.

    Raises
    ------
    ValueError
        If a rate or the temperature is not positive, the momentum is not in [0, 1), `steps` is negative, there is no
        batch, or the gradients and moves do not fit into memory.

    Examples
    --------
    Two classes at zero logits: the probability of the right one is half a step away from one.

    >>> weights = [torch.zeros(2, 1)]
    >>> *_, last = descent(weights, [(torch.ones(1, 1), torch.tensor([1]))], rate=0.5, steps=1)
    >>> last.parameters
    (tensor([[-0.2500],
            [ 0.2500]]),)
    """
    _checks.positive_numbers("rate", rate.cpu().numpy() if isinstance(rate, Tensor) else rate)
    _checks.positive_numbers("temperature", temperature)
    _checks.natural_or_zero("steps", steps)
    if not 0 <= momentum < 1:
        raise ValueError(f"momentum must be in [0, 1), got {momentum}")
    if len(batches) == 0:
        raise ValueError("batches must hold at least one batch")
    # gradients, the moves before and after, and the next parameters; memory of the model itself is not counted
    needed, count = 4 * sum(p.nbytes for p in parameters), sum(p.numel() for p in parameters)
    what, device = f"gradients and moves of {count} parameters", parameters[0].device if parameters else "cpu"
    _memory.require_free("parameters", needed, what, device=device, advice="use fewer networks at once")
    predicted = predictions or (lambda _, found: (found / temperature).softmax(-1))

    def path() -> Iterator[Moment]:
        at = tuple(p.detach() for p in parameters)
        moves = tuple(torch.zeros_like(p) for p in at)
        for step, (inputs, labels) in enumerate(itertools.islice(itertools.cycle(batches), steps + 1)):
            with torch.enable_grad():
                leaves = tuple(p.detach().requires_grad_() for p in at)
                found = logits(leaves, inputs)
                p = predicted(step, found.detach())
                residuals = (p - functional.one_hot(labels, p.shape[-1])) / (temperature * p.shape[-2])
                gradients = torch.autograd.grad(found, leaves, residuals)
            yield Moment(at, gradients, found.detach(), p)
            rates = [per_network(rate, g) if isinstance(rate, Tensor) else rate for g in gradients]
            moves = tuple(momentum * m - r * g for m, r, g in zip(moves, rates, gradients, strict=True))
            at = tuple(p + m for p, m in zip(at, moves, strict=True))

    return path()  # a generator of its own, so that the arguments are checked here and not at the first step


def uniform(_: int, logits: Tensor) -> Tensor:
    """Return uniform predictions, whatever the logits.

    Examples
    --------
    >>> uniform(0, torch.tensor([[3.0, 0.0, -1.0, 2.0]]))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """
    return torch.full_like(logits, 1 / logits.shape[-1])


def inner(one: Parameters, other: Parameters, axes: int) -> Tensor:
    """Return the inner products of two sets of parameters over all but the first `axes` axes.

    Examples
    --------
    >>> inner([torch.ones(2, 3, 4)], [torch.ones(2, 3, 4)], 1)
    tensor([12., 12.])
    """
    return torch.stack([(a * b).flatten(axes).sum(-1) for a, b in zip(one, other, strict=True)]).sum(0)
