"""Products with the inverse of a symmetric positive definite matrix, by conjugate gradients, with their residuals.

The method solves (A + c) x = b for several b side by side, one block product a step. What it believes of its residual
drifts away from the truth by rounding; so the residual is taken anew from the solution at the end, and where it is
still too large, and falls, the method starts again from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate import _checks, _memory
from simulate.lanczos.precision import in_full_precision
from simulate.lanczos.products import AnyMatrix, Operator, as_operator
from simulate.lanczos.rows import dots, row_lengths
from simulate.results import Columns, Result

if TYPE_CHECKING:
    from simulate.results import Axes

_ROUNDINGS = 16
"""Roundings by which the product of a residual with its preconditioned form may be below zero."""

_VECTORS = 8
"""Vectors held at once for each right-hand side."""


@dataclass(frozen=True, repr=False)
class Solution(Result):
    """Solution of a linear system, with its residuals.

    Attributes
    ----------
    vectors
        x, of the shape of the right-hand sides and the type of the matrix.
    residuals
        |b - (A + c) x| / |b| of each, by a product with x itself and as well as its rounding allows; 0 for b = 0.
    converged
        Whether it is at most the tolerance.
    products
        Products with the matrix that were spent on each right-hand side, at most.
    stopped
        Why there were no more.
    """

    vectors: Tensor
    residuals: _checks.Floats
    converged: NDArray[np.bool_]
    products: int
    stopped: str

    def _headline(self) -> str:
        count, worst = len(self.residuals), float(self.residuals.max())
        said = f"{count} right-hand side{'s' * (count != 1)} of length {len(self.vectors)}"
        return f"{said}, largest residual {worst:.2g} of |b|; {self.products} products, {self.stopped}"

    def _columns(self) -> Columns:
        lengths = self.vectors.reshape(len(self.vectors), -1).norm(dim=0).tolist()
        return {"norm of x": lengths, "relative residual": self.residuals, "converged": self.converged}

    def _draw(self, axes: Axes) -> None:
        axes.plot(np.arange(1, len(self.residuals) + 1), self.residuals, ls="", marker="o", ms=4)
        if bool((self.residuals > 0).all()):
            axes.set_yscale("log")
        axes.set(title="|b - (A + c) x| / |b|", xlabel="right-hand side")
        axes.locator_params(axis="x", integer=True)


def solve(
    matrix: AnyMatrix,
    right: Any,
    *,
    damping: float = 0.0,
    tolerance: float = 1e-6,
    steps: int = 1000,
    preconditioner: AnyMatrix | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Solution:
    """Return (A + damping I)^-1 b, by conjugate gradients.

    Parameters
    ----------
    matrix
        Symmetric, and positive definite with the damping: a Gauss-Newton or Fisher matrix is with any that is
        positive; a Hessian need not be.
    right
        b, (dim,), or several as the columns of (dim, k).
    damping
        Added to the diagonal.
    tolerance
        Residual to stop at, as a share of the length of each b. What rounding allows, may be more: then the smallest
        that was had is given, and `converged` says so.
    steps
        Most products with each b.
    preconditioner
        What is near the inverse of the damped matrix, positive definite: `KroneckerFactors.inverse` at the same
        damping, say. It changes the number of products, not the solution.
    progress
        Called after each step with the products so far and the largest residual, as it is believed to be.

    Raises
    ------
    ValueError
        If a direction of negative curvature is met, of the matrix or of the preconditioner; the shape of `right` is not
        that of the matrix, or it is not finite; `damping` is not finite, `tolerance` not positive, `steps` below 2; the
        vectors do not fit into memory; or the matrix cannot be used, see `as_operator`.

    Notes
    -----
    A matrix that is indefinite is not always found out: only if a search direction meets negative curvature.

    References
    ----------
    Hestenes and Stiefel (1952), Methods of conjugate gradients for solving linear systems; with a preconditioner, Saad
    (2003), Iterative methods for sparse linear systems, algorithm 9.1.

    Examples
    --------
    >>> found = solve(np.diag([1.0, 2.0, 4.0]), np.ones(3), damping=1.0)
    >>> found.vectors, found.products
    (tensor([0.5000, 0.3333, 0.2000], dtype=torch.float64), 4)
    >>> solve(np.diag([1.0, -2.0]), np.ones(2))
    Traceback (most recent call last):
    ValueError: matrix must be positive definite, got curvature -0.5 along a direction; add a damping ...
    """
    with in_full_precision():
        operator = as_operator(matrix).damped(damping)
        near = None if preconditioner is None else as_operator(preconditioner)
        if near is not None and near.shape != operator.shape:
            raise ValueError(f"preconditioner must be of shape {operator.shape}, got {near.shape}")
        relative, steps = _checks.positive_number("tolerance", tolerance), _checks.natural("steps", steps)
        if steps < 2:
            raise ValueError(f"steps must be at least 2, a step and a check of its residual, got {steps}")
        columns = torch.as_tensor(right)
        if columns.ndim not in (1, 2) or len(columns) != operator.dim or columns.numel() == 0:
            shape = tuple(columns.shape)
            raise ValueError(f"right must be of shape ({operator.dim},) or ({operator.dim}, k), got {shape}")
        _checks.require_finite("right", columns)
        count = columns[0].numel()
        size = _VECTORS * count * operator.dim * operator.dtype.itemsize
        _memory.require_free(
            "right", size, f"{_VECTORS * count} vectors", device=operator.device, advice="use fewer columns"
        )
        rows = operator.vectors(columns.reshape(operator.dim, -1).mT).contiguous()
        lengths = row_lengths(rows)
        units = (
            rows / lengths.masked_fill(lengths == 0, 1.0)[:, None]
        )  # squares of these neither overflow nor vanish
        search = _Search(operator, near, units, relative, steps, progress)
        stopped = search.run()
        found = (search.best * lengths[:, None]).mT
        residuals = search.residuals.cpu().numpy().astype(np.float64)
        return Solution(
            found.reshape(columns.shape), residuals, residuals <= relative, search.products, stopped
        )


@dataclass(eq=False)
class _Search:
    """Conjugate gradients for rows of unit length or zero, restarted as long as true residuals fall."""

    _operator: Operator
    _near: Operator | None
    _rows: Tensor
    _tolerance: float
    _steps: int
    _progress: Callable[[int, float], None] | None
    products: int = 0

    def __post_init__(self) -> None:
        self.best, self.residuals = torch.zeros_like(self._rows), row_lengths(self._rows)

    def run(self) -> str:
        """Solve, and return the reason to stop."""
        while bool((open_rows := self.residuals > self._tolerance).any()):
            # a restart takes three products: the true residual, a step, and the residual after it
            improves = self._improved(open_rows.nonzero()[:, 0])
            if bool((self.residuals > self._tolerance).any()) and self.products + 3 > self._steps:
                return f"the step limit, {self._steps} products"
            if not improves:
                return "the rounding of the products, which allows no smaller residual"
        return "all residuals at most the tolerance"

    def _improved(self, which: Tensor) -> bool:
        """Restart some rows from their best solutions; return whether the true residual of any of them fell."""
        start = self.best[which]
        left = self._rows[which]
        # the residual of a zero start is the right-hand side: no product
        if bool(start.any()):
            left = left - self._operator(start)
            self.products += 1
        found = start + self._corrections(left)
        # from the solution: the recursive residual drifts away from it by rounding
        true = row_lengths(self._rows[which] - self._operator(found))
        self.products += 1
        better = true < self.residuals[which]
        self.best[which[better]], self.residuals[which[better]] = found[better], true[better]
        # less than half, and it is rounding that it falls by
        return bool((true < self.residuals.new_tensor(0.5) * row_lengths(left)).any())

    def _corrections(self, left: Tensor) -> Tensor:
        """Run the method until its recursive residuals are small enough; return the corrections."""
        total, left = torch.zeros_like(left), left.clone()
        # what falls further is the belief alone
        target = (torch.finfo(left.dtype).eps * row_lengths(left)).clamp(min=self._tolerance)
        near = self._nearly(left)
        direction, energy = near, dots(left, near)
        while self.products + 1 < self._steps:
            active = (row_lengths(left) > target) & (energy > 0)
            if not bool(active.any()):
                break
            products = self._operator(direction)
            self.products += 1
            bends = dots(direction, products)
            self._require_positive(direction, bends, active)
            # rows that have converged stay as they are; their next step would be 0 / 0
            step = torch.where(active, energy / bends.masked_fill(~active, 1.0), 0.0)[:, None]
            total += step * direction
            left -= step * products
            near, before = self._nearly(left), energy
            energy = dots(left, near)
            share = torch.where(active, energy / before.masked_fill(before == 0, 1.0), 0.0)
            direction = near + share[:, None] * direction
            if self._progress is not None:
                self._progress(self.products, float(row_lengths(left).max()))
        return total

    def _nearly(self, left: Tensor) -> Tensor:
        if self._near is None:
            return left.clone()
        # the preconditioner may have another precision, since only the speed depends on it
        near = self._near(left.to(self._near.dtype)).to(left.dtype)
        rounding = _ROUNDINGS * torch.finfo(left.dtype).eps * row_lengths(left) * row_lengths(near)
        if bool((dots(left, near) < -rounding).any()):
            raise ValueError(
                "preconditioner must be positive definite, got negative curvature along a residual"
            )
        return near

    def _require_positive(self, direction: Tensor, bends: Tensor, active: Tensor) -> None:
        wrong = active & (bends <= 0)
        if not bool(wrong.any()):
            return
        curvature = bends[wrong] / dots(direction[wrong], direction[wrong])
        least = float(curvature.min())
        more = f"{-least:.3g}" if least else "0"
        raise ValueError(
            f"matrix must be positive definite, got curvature {least:.3g} along a direction; add a damping of more than"
            f" {more}, or solve with the Gauss-Newton matrix"
        )
