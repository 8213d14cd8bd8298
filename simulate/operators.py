"""Matrices of the curvature of an `Objective`, by their products with vectors.

| function | matrix |
|---|---|
| `hessian` | second derivative of the loss, G + Ht |
| `gauss_newton` | G = sum J' A J, A the second derivative of the loss in the outputs, J that of the outputs |
| `h_term` | Ht, the rest: second derivatives of the outputs, weighted by the gradient of the loss in them |
| `fisher` | J' A J with A of the model's own distribution, mean over samples |
| `empirical_fisher` | mean over samples of g g', g the gradient of one sample |

A product differentiates the graph of the gradient once more. That graph is kept from product to product as long as
memory allows, so that a product costs little more than one forward and backward pass instead of two to four.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from simulate import _memory
from simulate.lanczos import Operator
from simulate.objectives import Batch, Objective
from simulate.objectives.batches import cuttable, rows
from simulate.objectives.derivatives import bytes_held, second_derivative, slopes
from simulate.objectives.output_curvature import Bend, logistic_curvature, output_curvature, softmax_curvature
from simulate.objectives.parameters import Leaves, as_found

__all__ = [
    "CurvatureOperator",
    "Likelihood",
    "empirical_fisher",
    "fisher",
    "gauss_newton",
    "h_term",
    "hessian",
    "likelihood_of",
]

Likelihood = Literal["categorical", "bernoulli", "gaussian"]
_FAMILIES = {
    nn.CrossEntropyLoss: "categorical",
    nn.BCEWithLogitsLoss: "bernoulli",
    nn.MSELoss: "gaussian",
}
"""Whose loss is what up to a constant factor."""

_VECTORS = 4
"""As long as the parameters, that a product takes beside its graph: the gradient, what comes back twice, the sum."""

Product = Callable[[Leaves], Leaves]
"""Of the part of the matrix that one batch adds, with a vector split like the parameters."""


@dataclass(frozen=True, kw_only=True)
class CurvatureOperator(Operator):
    """A matrix of curvature: an `Operator`, whose rows have the names of the parameters."""

    objective: Objective

    def __call__(self, vectors: Tensor) -> Tensor:
        """The products, checked for finiteness.

        Raises
        ------
        ValueError
            If they are not finite.
        """
        products = self.product(vectors).detach()
        # a look at every number costs a twentieth of a product; a finite sum has none that is not
        if not bool(products.sum().isfinite()) and not bool(products.isfinite().all()):
            raise ValueError("operator must return finite products, got NaN or infinity")
        return products


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
    >>> line = Objective(lambda p, x: x @ p[0].T, nn.MSELoss(), (x, x[:, :1]), parameters=[weight])
    >>> hessian(line).dense()  # 2 x'x / N
    tensor([[10., -1.],
            [-1.,  5.]], dtype=torch.float64)
    """

    def build(leaves: Leaves, batch: Batch) -> Product:
        loss = objective.loss(objective.outputs(leaves, batch.inputs), batch)
        return second_derivative(loss, leaves)

    return _operator(objective, build)


def h_term(objective: Objective) -> CurvatureOperator:
    """The part of the Hessian that the curvature of the outputs makes: Hessian less Gauss-Newton matrix.

    Raises
    ------
    ValueError
        As `hessian`.
    """

    def build(leaves: Leaves, batch: Batch) -> Product:
        outputs = objective.outputs(leaves, batch.inputs)
        return second_derivative((_slope(objective, outputs, batch) * outputs).sum(), leaves)

    return _operator(objective, build)


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
    return _sandwich(objective, lambda outputs, batch: output_curvature(objective, outputs, batch))


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

    def bend(outputs: Tensor, batch: Batch) -> Bend:
        slope = _slope(objective, outputs, batch)
        # a row of the slope has the share of its sample in the mean: once too often in the square
        rows = slope.flatten(1) / math.sqrt(objective.share)
        return lambda tangent: (rows * (rows * tangent.flatten(1)).sum(1, keepdim=True)).view_as(slope)

    return _sandwich(objective, bend)


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
        variance about the outputs. What the loss stands for if None: a cross-entropy, with logits, or squared errors.

    Raises
    ------
    ValueError
        If `likelihood` is unknown, or None for another loss; and as `hessian`.
    """
    family = likelihood_of(objective, likelihood)

    def bend(outputs: Tensor, _: Batch) -> Bend:
        outputs, share = outputs.detach(), objective.share
        if family == "gaussian":
            return lambda tangent: share * tangent
        return (softmax_curvature if family == "categorical" else logistic_curvature)(outputs, share)

    return _sandwich(objective, bend)


def likelihood_of(objective: Objective, likelihood: str | None) -> str:
    """What `likelihood` of `fisher` says, or the loss stands for.

    Raises
    ------
    ValueError
        If it is unknown, or None for a loss that stands for none.
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


def _sandwich(objective: Objective, bend: Callable[[Tensor, Batch], Bend]) -> CurvatureOperator:
    """J' A J: tangents of the outputs as derivative of J'u in u, so that both ways use one graph."""

    def build(leaves: Leaves, batch: Batch) -> Product:
        outputs = objective.outputs(leaves, batch.inputs)
        bent = bend(outputs, batch)
        # one zero in all places: logits may be larger than all else
        weights = outputs.new_zeros(()).expand_as(outputs).requires_grad_()
        pulled = slopes(outputs, leaves, weights, again=True)

        def product(vector: Leaves) -> Leaves:
            return slopes(outputs, leaves, bent(*slopes(pulled, weights, vector)))

        return product

    return _operator(objective, build)


def _slope(objective: Objective, outputs: Tensor, batch: Batch) -> Tensor:
    free = outputs.detach().requires_grad_()
    return torch.autograd.grad(objective.loss(free, batch), free)[0]


def _operator(objective: Objective, build: Callable[[Leaves, Batch], Product]) -> CurvatureOperator:
    graphs = _Graphs(objective, build)

    def product(vectors: Tensor) -> Tensor:
        total = torch.empty_like(vectors)
        with objective.ranks.together("a product", vectors=[vectors]):
            # what is kept draws nothing at random, but a checkpoint in it runs parts of the model again
            with objective.measured(draws=not graphs.kept), torch.enable_grad():
                new = True
                for part in graphs:
                    for row, vector in zip(total, vectors, strict=True):
                        _take(row, part(objective.split(vector)), new=new)
                    new = False
            if new:  # of a process without samples
                total.zero_()
        return objective.ranks.total(total)

    return CurvatureOperator(
        product=product,
        dim=objective.dim,
        dtype=objective.dtype,
        device=objective.device,
        places=objective.blocks(),
        objective=objective,
    )


def _take(row: Tensor, parts: Leaves, *, new: bool) -> None:
    """Write what the first batch gives and add the others: what is one batch is neither cleared nor summed."""
    flat = [part.detach().reshape(-1) for part in parts]
    if new:
        torch.cat(flat, out=row)
    else:
        row += torch.cat(flat)


class _Graphs:
    """The graph of every batch: kept from one pass to the next if all fit into half of the free memory."""

    def __init__(self, objective: Objective, build: Callable[[Leaves, Batch], Product]) -> None:
        self._objective, self._build = objective, build
        self._leaves = objective.leaves()
        self._kept: list[Product] | None = None
        self._keeps: bool | None = None

    @property
    def kept(self) -> bool:
        """Whether the next pass builds nothing."""
        return self._kept is not None

    def __iter__(self) -> Iterator[Product]:
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[Product] = []
        for batch in self._objective.batches():
            if self._keeps is None:
                self._keeps = self._affordable(batch)
            graph = self._build(self._leaves, batch)
            if self._keeps:
                kept.append(graph)
            yield graph
        if self._keeps:
            self._kept = kept

    def _affordable(self, batch: Batch) -> bool:
        rows, each, once = self._cost(batch)
        once += _VECTORS * self._objective.dim * torch.finfo(self._objective.dtype).bits // 8
        what, device = f"the derivatives of {rows} samples", self._objective.device
        _memory.require_free(
            "data", rows * each + once, what, device=device, advice="pass a smaller chunk or fewer samples"
        )
        return _memory.is_free(2 * (self._objective.own_rows * each + once), device)

    def _cost(self, batch: Batch) -> tuple[int, int, int]:
        """Samples of the batch, bytes that the graph holds for each of them, and once for all."""
        size, objective = rows(batch.targets), self._objective
        with as_found(objective.model, objective.training):  # what it draws is drawn again for the product
            if size >= 3 and not objective.training and cuttable(batch.inputs, batch.targets):
                with contextlib.suppress(Exception):  # of a model or a loss for one size of batch alone
                    two, three = (self._held(batch.part(slice(n))) for n in (2, 3))
                    return size, max(three - two, 0), max(3 * two - 2 * three, 0)
            return size, -(-self._held(batch) // size), 0

    def _held(self, batch: Batch) -> int:
        return bytes_held(lambda: self._build(self._leaves, batch._replace(factor=0.0)))
