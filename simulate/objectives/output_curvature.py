"""Products with the second derivative of a loss in the outputs of a model.

| loss | its second derivative on one sample |
|---|---|
| `nn.CrossEntropyLoss` | a (diag(p) - p p'), p the softmax of the logits |
| `nn.BCEWithLogitsLoss` | a s (1 - s), s the sigmoid of the logit |
| `nn.MSELoss` | 2 a |
| any other | by automatic differentiation of the loss |

where a is the weight of the sample, of its classes and of the mean. The closed forms are for torch's own losses, with
all of their options; a loss with hooks, a subclass or one called in an unusual way is differentiated like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from simulate.objectives.batches import Batch, cuts
from simulate.objectives.derivatives import directional
from simulate.objectives.fingerprints import hooked
from simulate.objectives.objective import Objective

OutputHessian = Callable[[Tensor], Tensor]
"""Product of the second derivative with a change of the outputs of one batch."""

_AT_ONCE = 1 << 18
"""Numbers per step of a product: logits may be as large as all else together, and this many stay in the cache."""

_FUNCTIONS = (
    (functional.cross_entropy, nn.CrossEntropyLoss),
    (functional.mse_loss, nn.MSELoss),
    (functional.binary_cross_entropy_with_logits, nn.BCEWithLogitsLoss),
)


def output_curvature(objective: Objective, outputs: Tensor, batch: Batch) -> OutputHessian:
    """Return the second derivative, at these outputs, of the term of the loss that a batch adds.

    Raises
    ------
    ValueError
        As `Objective.loss`.

    Examples
    --------
    >>> objective = Objective(nn.Linear(2, 2), (torch.ones(1, 2), torch.tensor([0])), nn.CrossEntropyLoss())
    >>> output_curvature(objective, torch.zeros(1, 2), objective.few())(torch.tensor([[1.0, -1.0]]))
    tensor([[ 0.5000, -0.5000]])
    """
    outputs = outputs.detach()
    objective.loss(outputs, batch)  # raises if the targets are wrong
    closed = closed_curvature(objective.criterion, outputs, batch)
    if closed is not None:
        return closed
    free = outputs.requires_grad_()
    (slope,) = torch.autograd.grad(objective.loss(free, batch), free, create_graph=True)
    return lambda tangent: directional(slope, free, tangent)


class SoftmaxCurvature:
    """Softmax covariance of every sample, weight (diag(p) - p p'), with classes along axis 1: products and factors.

    Changes are taken relative to that of the most likely class, so that no digits are lost if it is nearly certain.

    Parameters
    ----------
    logits
        (N, K, ...).
    weight
        One number, or one for each sample and place, (N, 1, ...).

    Examples
    --------
    >>> softmax = SoftmaxCurvature(torch.zeros(1, 2), 4.0)
    >>> softmax(torch.tensor([[1.0, 0.0]]))
    tensor([[ 1., -1.]])
    >>> values, vectors = softmax.factors(slice(None))
    >>> (vectors * values) @ vectors.mT
    tensor([[[ 1., -1.],
             [-1.,  1.]]], dtype=torch.float64)
    """

    def __init__(self, logits: Tensor, weight: Tensor | float) -> None:
        self._last = logits.movedim(
            1, -1
        ).is_contiguous()  # classes contiguous in memory: computed along the last axis
        moved = logits.movedim(1, -1) if self._last else logits
        self._axis = -1 if self._last else 1
        self._p, self._top = moved.softmax(self._axis), moved.argmax(self._axis, keepdim=True)
        self._weight = weight.movedim(1, -1) if isinstance(weight, Tensor) and self._last else weight
        self._eliminated: tuple[slice, tuple[Tensor, ...]] | None = None

    def __call__(self, tangent: Tensor) -> Tensor:
        """Return the product with a change of the logits."""
        tangent = tangent.movedim(1, -1) if self._last else tangent
        if tangent.numel() <= _AT_ONCE:
            found = self._multiply(tangent, slice(None))
        else:
            found = torch.empty_like(self._p)
            # in slices that stay in the cache
            for rows in cuts(len(self._p), max(1, _AT_ONCE // max(1, self._p[0].numel()))):
                found[rows] = self._multiply(tangent[rows], rows)
        return found.movedim(-1, 1) if self._last else found

    def _multiply(self, tangent: Tensor, rows: slice) -> Tensor:
        scale = self._weight[rows] if isinstance(self._weight, Tensor) else self._weight
        # relative to the likeliest class: no digits are lost if it is nearly certain
        change = tangent - tangent.gather(self._axis, self._top[rows])
        change = change - (self._p[rows] * change).sum(self._axis, keepdim=True)
        return change.mul_(self._p[rows]).mul_(scale)

    def factors(self, part: slice) -> tuple[Tensor, Tensor]:
        """Return values (n, r) and vectors (n, m, r) with A = V diag(values) V' for some samples of m logits each."""
        values, vectors = self.factors_by_place(part, slice(None))
        if values.shape[1] == 1:
            return values[:, 0], vectors[:, 0]
        # each place has its own vectors, zero at the other places
        apart = torch.diag_embed(vectors.movedim(1, -1)).permute(0, 1, 3, 4, 2)
        return values.flatten(1), apart.flatten(3).flatten(1, 2)

    def factors_by_place(self, part: slice, columns: slice) -> tuple[Tensor, Tensor]:
        """Return some columns of the values (n, T, r) and vectors (n, T, K, r) of K classes at each of T places.

        V is triangular with the classes in descending order of p. After k of them are eliminated, the rest is
        diag(p) - p p'/t, with t the sum of the remaining p; it needs sums of positive numbers only.

        References
        ----------
        Tanabe and Sagae (1992), An exact Cholesky decomposition and the generalized inverse of the
        variance-covariance matrix of the multinomial distribution.
        """
        p, order, step, after, values = self._elimination(part)
        first, last, _ = columns.indices(values.shape[-1])
        below = after.where(after > 0, 1.0)[..., None, first:last]
        vectors = p[..., None] / -below
        vectors.masked_fill_(step[..., None] < torch.arange(first, last, device=p.device), 0.0)
        vectors.scatter_(-2, order[..., None, first:last], 1.0)
        return values[..., first:last], vectors

    def _elimination(self, part: slice) -> tuple[Tensor, ...]:
        """Return p, the order of the classes, the step of each, and what is left of p and the value at every step.

        Kept for the last `part`, since columns are asked for some at a time: sorting takes longer than a few of them.
        """
        if self._eliminated is None or self._eliminated[0] != part:
            p = self._p[part].double().movedim(self._axis, -1)
            p = p.reshape(len(p), -1, p.shape[-1])  # samples, places, classes
            descending, order = p.sort(-1, descending=True)
            # summed from the smallest, which the larger ones would otherwise swallow
            left = descending.flip(-1).cumsum(-1).flip(-1)
            after = functional.pad(left[..., 1:], (0, 1))
            weight = self._weight
            scale = weight[part].reshape(len(p), -1, 1).double() if isinstance(weight, Tensor) else weight
            values = scale * descending * after / left.where(left > 0, 1.0)
            steps = max(1, p.shape[-1] - 1)  # the last value is zero
            self._eliminated = part, (p, order, order.argsort(-1), after[..., :steps], values[..., :steps])
        return self._eliminated[1]


def logistic_curvature(logits: Tensor, weight: Tensor | float) -> OutputHessian:
    """Return the product with the diagonal weight s (1 - s), s the sigmoid; `weight` broadcasts against the logits.

    Examples
    --------
    >>> logistic_curvature(torch.zeros(1, 2), 4.0)(torch.tensor([[1.0, -2.0]]))
    tensor([[ 1., -2.]])
    """
    # s(-u) for 1 - s(u), which cancels for large u
    diagonal = logits.sigmoid().mul_((-logits).sigmoid_()).mul_(weight)
    return lambda tangent: diagonal * tangent


# --- the losses of torch -----------------------------------------------------------------------------------------


def closed_curvature(criterion: Any, outputs: Tensor, batch: Batch) -> OutputHessian | None:
    """Return the closed form of a loss of torch, whose targets must fit; None if the loss has none for this batch.

    Examples
    --------
    >>> batch = Batch(None, torch.zeros(2, 1), 1.0)
    >>> bend = closed_curvature(nn.MSELoss(), torch.ones(2, 1), batch)
    >>> bend and bend(torch.ones(2, 1)).tolist()
    [[1.0], [1.0]]
    """
    # by identity, since a callable object may have no hash
    loss = next((kind() for function, kind in _FUNCTIONS if criterion is function), criterion)
    kind = _CLOSED.get(type(loss))
    if kind is None or hooked(loss) or "forward" in vars(loss) or loss.reduction not in ("mean", "sum"):
        return None
    plain = type(outputs) is Tensor and type(batch.targets) is Tensor
    if not plain or not outputs.numel() or torch.is_autocast_enabled(outputs.device.type):
        return None
    matching = batch.targets.shape == outputs.shape and batch.targets.is_floating_point()
    return kind(loss, outputs, batch) if matching or kind is _cross_entropy else None


def _cross_entropy(loss: nn.CrossEntropyLoss, outputs: Tensor, batch: Batch) -> OutputHessian | None:
    targets = batch.targets
    if outputs.ndim < 2:
        return None
    if targets.shape == outputs.shape and targets.is_floating_point():
        return SoftmaxCurvature(outputs, _of_shares(loss, outputs, batch))
    if targets.shape == outputs[:, 0].shape and targets.dtype == torch.int64:
        return SoftmaxCurvature(outputs, _of_classes(loss, outputs, batch))
    return None


def _of_classes(loss: nn.CrossEntropyLoss, outputs: Tensor, batch: Batch) -> Tensor | float:
    """Return the weight of every sample and place, (N, 1, ...), from its class; one number if all are equal."""
    counted = batch.targets != loss.ignore_index
    if loss.weight is None:
        each, count = counted.to(outputs.dtype), float(counted.sum())
    else:
        own = loss.weight[batch.targets.where(counted, 0)] * counted
        # smoothing spreads a share of the target over all classes, each with its weight
        spread = loss.label_smoothing * loss.weight.mean()
        each, count = (1 - loss.label_smoothing) * own + spread * counted, float(own.sum())
    # with ignored classes only, all weights are zero, so that the denominator does not matter
    factor = batch.factor / (count or 1.0) if loss.reduction == "mean" else batch.factor
    if loss.weight is None and bool(counted.all()):
        return factor
    return (factor * each).unsqueeze(1)


def _of_shares(loss: nn.CrossEntropyLoss, outputs: Tensor, batch: Batch) -> Tensor:
    """Return the weight of every sample and place, (N, 1, ...), from the shares of the classes."""
    if loss.weight is None:
        own, mean = batch.targets.sum(1, keepdim=True), 1.0
    else:
        own = (batch.targets.movedim(1, -1) @ loss.weight).unsqueeze(1)
        mean = loss.weight.mean()
    each = (1 - loss.label_smoothing) * own + loss.label_smoothing * mean
    places = outputs.numel() // outputs.shape[1]
    return each * (batch.factor / places if loss.reduction == "mean" else batch.factor)


def _binary(loss: nn.BCEWithLogitsLoss, outputs: Tensor, batch: Batch) -> OutputHessian:
    factor = batch.factor / outputs.numel() if loss.reduction == "mean" else batch.factor
    weight = factor if loss.weight is None else factor * loss.weight
    if loss.pos_weight is not None:
        weight = weight * (1 + (loss.pos_weight - 1) * batch.targets)
    return logistic_curvature(outputs, weight)


def _squares(loss: nn.MSELoss, outputs: Tensor, batch: Batch) -> OutputHessian:
    factor = 2 * (batch.factor / outputs.numel() if loss.reduction == "mean" else batch.factor)
    return lambda tangent: factor * tangent


_CLOSED: dict[type, Callable[[Any, Tensor, Batch], OutputHessian | None]] = {
    nn.CrossEntropyLoss: _cross_entropy,
    nn.BCEWithLogitsLoss: _binary,
    nn.MSELoss: _squares,
}
