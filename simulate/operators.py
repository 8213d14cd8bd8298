"""Curvature matrices of an `Objective`, as products with vectors.

| function | matrix |
|---|---|
| `hessian` | second derivative of the loss, G + Ht |
| `gauss_newton` | G = sum J' A J, A the second derivative of the loss in the outputs, J that of the outputs |
| `h_term` | Ht, the rest: second derivatives of the outputs, weighted by the gradient of the loss in them |
| `fisher` | J' A J with A of the model's own distribution, mean over samples |
| `empirical_fisher` | mean over samples of g g', g the gradient of one sample |

Intermediate results of each batch, by forward or reverse mode, are kept from product to product as memory allows, so
that a product costs little more than one forward and backward pass instead of two to four: see `objectives.products`.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from simulate.lanczos import Operator
from simulate.objectives import Batch, Objective, require_objective
from simulate.objectives.derivatives import normal, slopes
from simulate.objectives.head_products import Matrix, head_product
from simulate.objectives.output_curvature import (
    OutputHessian,
    SoftmaxCurvature,
    logistic_curvature,
    output_curvature,
)
from simulate.objectives.parameters import Leaves
from simulate.objectives.products import Built, Derivative, Kept, about_outputs, of_scalar

Likelihood = Literal["categorical", "bernoulli", "gaussian"]
_FAMILIES = {
    nn.CrossEntropyLoss: "categorical",
    nn.BCEWithLogitsLoss: "bernoulli",
    nn.MSELoss: "gaussian",
}
"""Likelihood whose negative logarithm is each loss, up to a constant factor."""


@dataclass(frozen=True, kw_only=True, repr=False)
class CurvatureOperator(Operator):
    """A curvature matrix: an `Operator` whose rows have the names of the parameters."""

    objective: Objective


def hessian(objective: Objective) -> CurvatureOperator:
    """Second derivative of the loss.

    Parameters
    ----------
    objective
        Loss of a model on data.

    Raises
    ------
    ValueError
        If one batch does not fit into memory; from a product, if the result is not finite.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=torch.float64)
    >>> weight = torch.zeros(1, 2, dtype=torch.float64)
    >>> line = Objective(lambda p, x: x @ p[0].T, (x, x[:, :1]), nn.MSELoss(), parameters=[weight])
    >>> hessian(line).dense()  # 2 x'x / N
    tensor([[10., -1.],
            [-1.,  5.]], dtype=torch.float64)
    """
    require_objective("hessian", objective)

    def loss(leaves: Leaves, batch: Batch) -> Tensor:
        return objective.loss(objective.outputs(leaves, batch.inputs), batch)

    return _operator(objective, of_scalar(objective, "hessian", loss), "hessian")


def h_term(objective: Objective) -> CurvatureOperator:
    """The part of the Hessian that the curvature of the outputs makes: Hessian less Gauss-Newton matrix.

    Raises
    ------
    ValueError
        As `hessian`.
    """
    require_objective("h_term", objective)

    def weighed(leaves: Leaves, batch: Batch) -> Tensor:
        outputs = objective.outputs(leaves, batch.inputs)
        # the slope is a constant here, so that only second derivatives of the outputs are left
        return (_slope(objective, outputs, batch) * outputs).sum()

    return _operator(objective, of_scalar(objective, "h-term", weighed), "h_term")


def gauss_newton(objective: Objective) -> CurvatureOperator:
    """J' A J: what the Hessian would be if the outputs were linear in the parameters.

    Positive semi-definite for a loss that is convex in the outputs.

    Raises
    ------
    ValueError
        As `hessian`.

    References
    ----------
    Schraudolph (2002), Fast curvature matrix-vector products for second-order gradient descent.
    """
    require_objective("gauss_newton", objective)
    return _operator(
        objective, about_outputs(objective, partial(output_curvature, objective)), "gauss_newton"
    )


def empirical_fisher(objective: Objective) -> CurvatureOperator:
    """Mean over samples of the outer product of a sample's gradient with itself; the sum for a loss that is a sum.

    A sample is a row of the targets. Its gradient is that of its part of the loss, N times what it adds to a mean, and
    the mean has N in the denominator: `objective.samples`, which for a loss that weighs classes is their weight. Where
    samples see each other (`objective.separable` tells) it is that of the loss by the outputs in the row of the sample.

    Raises
    ------
    ValueError
        As `hessian`.
    """
    require_objective("empirical_fisher", objective)

    def bend(outputs: Tensor, batch: Batch) -> OutputHessian:
        slope = _slope(objective, outputs, batch)
        # a row of the slope has the share of its sample in the mean: once too often in the square
        rows = slope.reshape(len(slope), -1) / math.sqrt(objective.share)
        return lambda tangent: (rows * (rows * tangent.reshape_as(rows)).sum(1, keepdim=True)).view_as(slope)

    operator = _operator(objective, about_outputs(objective, bend), "empirical_fisher")
    whole = operator.product

    def product(vectors: Tensor) -> Tensor:
        found = whole(vectors)
        if len(found) and float(found.abs().max()) < torch.finfo(found.dtype).tiny and bool(vectors.any()):
            _require_squares(objective)
        return found

    return replace(operator, product=product)


def _require_squares(objective: Objective) -> None:
    """Refuse gradients whose squares are too small for numbers of their type: their products are zeros."""
    largest = 0.0
    with objective.ranks.together("squares"), objective.measured():
        for batch in objective.batches():
            outputs = objective.outputs(objective.leaves, batch.inputs)
            slope = _slope(objective, outputs, batch)
            size = float(slope.abs().max())
            # of order one, since derivatives of a tiny slope might vanish here already
            weights = slope / size * normal(slope) if size else slope
            pulled = slopes(outputs, objective.leaves, weights)
            largest = max([largest, *(size * float(part.abs().max()) for part in pulled if part.numel())])
    largest = max(objective.ranks.gathered("squares", largest))
    if 0.0 < largest**2 < torch.finfo(objective.dtype).tiny:
        kind = str(objective.dtype).removeprefix("torch.")
        raise ValueError(
            f"squared gradients must not vanish in {kind}, got gradients up to {largest:.1g}; measure in double"
            " precision, or multiply the loss by a constant"
        )


def fisher(objective: Objective, *, likelihood: Likelihood | None = None) -> CurvatureOperator:
    """Fisher information of the model's own distribution of the targets, mean (or sum) over the samples.

    The sum over all rows of the data is divided by what the mean of the loss is over, `objective.samples`: with a
    cross-entropy that ignores or weighs classes, whose targets do not enter here, that is another number.

    Parameters
    ----------
    objective
        Loss of a model on data; its targets do not enter.
    likelihood
        "categorical": classes with logits along axis 1; "bernoulli": one logit for every target; "gaussian": unit
        variance about the outputs. If None, that of the loss: a cross-entropy, one with logits, or squared errors.

    Raises
    ------
    ValueError
        If `likelihood` is unknown, or None for another loss; and as `hessian`.
    """
    require_objective("fisher", objective)
    family = likelihood_of(objective, likelihood)

    def bend(outputs: Tensor, _: Batch) -> OutputHessian:
        outputs, share = outputs.detach(), objective.share
        if family == "gaussian":
            return lambda tangent: share * tangent
        return (SoftmaxCurvature if family == "categorical" else logistic_curvature)(outputs, share)

    derivative = about_outputs(objective, bend)._replace(targets=False)
    known = "fisher" if family == "categorical" else None
    return _operator(objective, derivative, known, name=f"{family} fisher")


_AT_ONCE = 64
"""Largest number of vectors in one block product."""


def likelihood_of(objective: Objective, likelihood: str | None) -> str:
    """Return the given `likelihood` of `fisher`, or that of the loss.

    Raises
    ------
    ValueError
        If it is unknown, or None for a loss that is not a log likelihood.
    """
    for kind, family in _FAMILIES.items():
        if likelihood is None and isinstance(objective.criterion, kind):
            return family
    if likelihood is None or likelihood not in _FAMILIES.values():
        rule = f"likelihood must be one of {', '.join(_FAMILIES.values())}"
        raise ValueError(
            f"{rule}, got {likelihood!r}" if likelihood else f"{rule} for a loss of another kind, got None"
        )
    return likelihood


def _slope(objective: Objective, outputs: Tensor, batch: Batch) -> Tensor:
    free = outputs.detach().requires_grad_()
    return torch.autograd.grad(objective.loss(free, batch), free)[0]


def _operator(
    objective: Objective, derivative: Derivative, matrix: Matrix | None, name: str = ""
) -> CurvatureOperator:
    by_head = None if matrix is None else partial(head_product, objective, matrix)
    parts = Kept(objective, derivative._replace(by_head=by_head))

    def product(vectors: Tensor) -> Tensor:
        total = torch.empty_like(vectors)
        if not len(vectors):  # an estimate may pass no vectors, if the matrix maps all probes to zero
            return total
        with objective.ranks.together("a product", vectors=[vectors]):
            # kept products draw nothing at random, but a checkpoint among them runs parts of the model again
            with objective.measured(draws=not parts.complete):
                new = True
                for part in parts.along(vectors[0]):
                    _take(total, part, vectors, new=new)
                    new = False
            if new:  # this process has no samples
                total.zero_()
        return objective.ranks.total(total)

    return CurvatureOperator(
        product=product,
        dim=objective.dim,
        dtype=objective.dtype,
        device=objective.device,
        places=objective.blocks(),
        name=name or matrix or "",
        objective=objective,
    )


def _take(total: Tensor, part: Built, vectors: Tensor, *, new: bool) -> None:
    """Add the products of a batch to `total`; the first batch overwrites it, which saves clearing and summing."""
    if part.block is not None and len(vectors) > 1:
        with contextlib.suppress(Exception):  # an operation may not take several vectors at once
            found = [part.block(some) for some in vectors.split(_AT_ONCE)]
            whole = torch.cat([torch.cat([p.detach().flatten(1) for p in parts], dim=1) for parts in found])
            _ = total.copy_(whole) if new else total.add_(whole)
            return
    for i, row in enumerate(total):
        try:
            found = part.first if i == 0 and part.first is not None else part.product(vectors[i])
        # a RuntimeError too, but no fault of the model
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:  # raised by torch in the backward pass of a gradient
            got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            raise ValueError(f"model and loss must have second derivatives, got {got}") from error
        flat = [p.detach().reshape(-1) for p in found]
        _ = torch.cat(flat, out=row) if new else row.add_(torch.cat(flat))
