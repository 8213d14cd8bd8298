"""Learning rates at which bias-free ReLU classifiers learn by full-batch gradient descent, many at once.

The loss is the softmax cross-entropy, mean over the samples, with gradients in closed form. A run *learns* if its loss
falls to a target within a number of steps. It ends then, or once it overflows, or once it is *dead*: no unit of its
last hidden layer responds to any sample, so that the gradient stays 0.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from simulate import _checks, _memory


class Classifiers(NamedTuple):
    """Networks of the same widths, each with samples of its own.

    Attributes
    ----------
    weights
        One tensor (n, out, in) per layer, from the input.
    inputs
        (n, N, in).
    labels
        (n, N), classes from 0.
    """

    weights: tuple[Tensor, ...]
    inputs: Tensor
    labels: Tensor

    def scaled(self, alpha: float) -> Classifiers:
        """Return the networks with all weights multiplied by alpha."""
        return self._replace(weights=tuple(alpha * w for w in self.weights))


def losses_and_gradients(networks: Classifiers) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
    """Return losses (n,), their gradients, shaped like the weights, and whether each network is dead, (n,).

    Examples
    --------
    One layer that gives both classes the same logit: a loss of log 2, and a gradient (p - y) x'.

    >>> one = Classifiers((torch.ones(1, 2, 1),), torch.tensor([[[3.0]]]), torch.tensor([[0]]))
    >>> losses, gradients, dead = losses_and_gradients(one)
    >>> losses, gradients[0].flatten(), dead
    (tensor([0.6931]), tensor([-1.5000,  1.5000]), tensor([False]))
    """
    # a row for each unit: sums over units and classes go along rows of samples
    signals = [networks.inputs.mT]
    for weight in networks.weights[:-1]:
        signals.append((weight @ signals[-1]).relu_())
    logits, own = networks.weights[-1] @ signals[-1], networks.labels[:, None]
    # relative to the largest, so that no exponential overflows
    shifted = logits - logits.amax(1, keepdim=True)
    p = shifted.exp()
    total = p.sum(1, keepdim=True)
    losses = (total.log() - shifted.gather(1, own)).mean((1, 2))
    # residuals as of `simulate.modules.softmax`
    others = p.div_(total).scatter_(1, own, 0.0)
    slope = others.scatter(1, own, -others.sum(1, keepdim=True))
    dead = ~(signals[-1] != 0).flatten(1).any(1)
    slope, found = slope / slope.shape[2], list[Tensor]()
    for weight, signal in zip(reversed(networks.weights), reversed(signals), strict=True):
        found.append(slope @ signal.mT)
        if signal is not signals[0]:
            slope = torch.ops.aten.threshold_backward(weight.mT @ slope, signal, 0.0)
    return losses, tuple(reversed(found)), dead


def learns(networks: Classifiers, rates: Tensor, *, target: float, steps: int) -> Tensor:
    """Return whether each network reaches a loss below `target` within `steps` steps w <- w - rate dw, (n,).

    Parameters
    ----------
    networks
        Networks at the start, and their samples.
    rates
        Learning rates (n,), positive.
    target
        Loss to reach, positive.
    steps
        Number of steps, at least 1.

    Raises
    ------
    ValueError
        If shapes disagree, a rate or `target` is not positive and finite, `steps` is no positive integer, or the
        runs do not fit into memory.

    Examples
    --------
    >>> x = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    >>> one = Classifiers((torch.zeros(1, 2, 2),), x, torch.tensor([[0, 1]]))
    >>> [bool(learns(one, torch.tensor([rate]), target=0.1, steps=3)) for rate in (0.1, 10.0)]
    [False, True]
    """
    steps, target = _checks.natural("steps", steps), _checks.positive_number("target", target)
    _require_shapes(networks, rates)
    n, samples, width = networks.inputs.shape
    units = width + sum(w.shape[1] for w in networks.weights)
    parameters = sum(w[0].numel() for w in networks.weights)
    # signals, slopes, masks and products at once; weights, gradients and the next ones
    needed = 4 * n * (samples * units + parameters) * networks.inputs.element_size()
    what = f"{n} runs of {samples} samples"
    _memory.require_free(
        "networks", needed, what, device=networks.inputs.device, advice="use fewer networks or samples"
    )
    rates = rates.to(networks.inputs)
    found = torch.zeros(len(rates), dtype=torch.bool, device=rates.device)
    places = torch.arange(len(rates), device=rates.device)
    # in memory as `losses_and_gradients` multiplies them: a row for each unit
    networks = networks._replace(inputs=networks.inputs.mT.contiguous().mT)
    for step in range(steps + 1):
        losses, gradients, dead = losses_and_gradients(networks)
        going = (losses >= target) & losses.isfinite() & ~dead
        if not bool(going.all()):
            found[places[losses < target]] = True
            weights = tuple(w[going] for w in networks.weights)
            networks = Classifiers(weights, networks.inputs[going], networks.labels[going])
            places, rates = places[going], rates[going]
            gradients = tuple(g[going] for g in gradients)
        if step == steps or not len(places):
            break
        moved = (
            torch.addcmul(w, rates[:, None, None], g, value=-1)
            for w, g in zip(networks.weights, gradients, strict=True)
        )
        networks = networks._replace(weights=tuple(moved))
    return found


def largest_rates(
    networks: Classifiers, *, lowest: Tensor, factor: float, count: int, target: float, steps: int
) -> _checks.Floats:
    """Return the largest rate at which each network learns, (n,), from trials at lowest factor^j, j < count.

    If a network learns at the first m of these rates and at no other, this is the geometric mean of the m-th rate and
    the next. In general m is the number of rates at which it learns, since learning need not be monotone in the rate.
    Below the grid every rate counts as learning, above it none. With `lowest` drawn log-uniformly over one factor, the
    grid adds scatter and no bias.

    Parameters
    ----------
    networks, target, steps
        As for `learns`; few steps miss slow runs.
    lowest
        Lowest rates (n,), positive.
    factor
        Ratio of successive rates, more than 1.
    count
        Number of rates, at least 1.

    Raises
    ------
    ValueError
        As `learns`, or if `factor` is not more than 1 and finite, or `count` no positive integer.

    Examples
    --------
    One weight per class and samples that cannot be told apart: at its best the loss is log 2.

    >>> x = torch.tensor([[[1.0], [1.0]]])
    >>> one = Classifiers((torch.tensor([[[9.0], [0.0]]]),), x, torch.tensor([[0, 1]]))
    >>> largest_rates(one, lowest=torch.ones(1), factor=4.0, count=3, target=1.0, steps=60)
    array([8.])
    """
    count, factor = _checks.natural("count", count), _checks.positive_number("factor", factor)
    if factor <= 1:
        raise ValueError(f"factor must be more than 1, got {factor}")
    n = len(networks.inputs)
    _require_shapes(networks, lowest)
    grid = lowest[:, None] * factor ** torch.arange(count, dtype=lowest.dtype, device=lowest.device)
    runs = Classifiers(
        tuple(w.repeat_interleave(count, 0) for w in networks.weights),
        networks.inputs.repeat_interleave(count, 0),
        networks.labels.repeat_interleave(count, 0),
    )
    learned = learns(runs, grid.flatten(), target=target, steps=steps).view(n, count).sum(1)
    return lowest.double().cpu().numpy() * factor ** (learned.cpu().numpy() - 0.5)


def _require_shapes(networks: Classifiers, rates: Tensor) -> None:
    n = len(networks.inputs)
    if rates.shape != (n,) or not _checks.all_positive(rates):
        raise ValueError(f"rates must be finite and positive, of shape ({n},), got {rates}")
    outs = [networks.inputs.shape[2], *(w.shape[1] for w in networks.weights)]
    fits = [w.shape[0] == n and w.shape[2] == out for w, out in zip(networks.weights, outs, strict=False)]
    if not all(fits) or networks.labels.shape != networks.inputs.shape[:2]:
        shapes = [tuple(t.shape) for t in (*networks.weights, networks.inputs, networks.labels)]
        raise ValueError(f"weights, inputs and labels must fit each other, n = {n} of each, got {shapes}")
