"""Spectra of symmetric matrices: distributions of stacked replicates, and estimates for one large matrix.

`distribution` diagonalises a block of replicates. The others take one matrix, dense or as a `lanczos.Operator` of
any size (such as a Hessian known by its products), draw random vectors from a seed, and return float64 numbers with
their errors. Extreme eigenvalues are in `simulate.eigenvalues`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from simulate import _checks, _memory
from simulate._checks import Floats
from simulate.lanczos import AnyMatrix, Operator, Tridiagonal, as_operator
from simulate.lanczos.gauss import recurrence
from simulate.lanczos.precision import in_full_precision
from simulate.lanczos.probes import probe_count, random_signs
from simulate.lanczos.products import EXHAUSTED
from simulate.lanczos.rows import unit_of
from simulate.results import Columns, Result, draw_bars

if TYPE_CHECKING:
    from simulate.results import Axes


_PROBES = 30
"""Default number of random vectors of an estimate."""

_STEPS = 100
"""Steps of Lanczos with each probe, or as many as the matrix has rows."""

_POINTS = 401
"""Default number of points of a density."""

_SMEARING = 0.01
"""Width of an eigenvalue in a density, as a share of the range of the spectrum."""


def distribution(matrices: Tensor, x: Sequence[float]) -> Tensor:
    """Share of the eigenvalues of each symmetric matrix that is at most x: (n, dim, dim) -> (n, len(x)).

    Each matrix gives one number per x: its eigenvalues repel each other, so they are not independent samples.

    Raises
    ------
    ValueError
        If the matrices are not square, or `x` is not a list of numbers.

    Examples
    --------
    >>> distribution(torch.diag_embed(torch.tensor([[1.0, 2.0, 3.0, 4.0]])), (0.5, 2.0, 9.0)).tolist()
    [[0.0, 0.5, 1.0]]
    """
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2]:
        raise ValueError(f"matrices must be of shape (n, dim, dim), got {tuple(matrices.shape)}")
    points = np.asarray(x, dtype=np.float64)
    if points.ndim != 1 or np.isnan(points).any():
        raise ValueError(f"x must be a list of numbers, got {x}")
    values = torch.linalg.eigvalsh(matrices)
    at = torch.as_tensor(points, dtype=values.dtype, device=values.device)
    # right: an eigenvalue equal to x counts as at most x
    counts = torch.searchsorted(values, at.expand(len(values), -1).contiguous(), right=True)
    return counts.to(values.dtype) / values.shape[1]


class _Numbers(NamedTuple):
    value: float
    standard_error: float


class Estimate(_Numbers, Result):
    """A mean over random probes, and its standard error; a pair of numbers."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self._headline()}"

    def _headline(self) -> str:
        return f"{self.value:.6g} ± {self.standard_error:.2g}"

    def _columns(self) -> Columns:
        return {"value": [self.value], "standard error": [self.standard_error]}

    def _draw(self, axes: Axes) -> None:
        draw_bars(axes, ["estimate"], [self.value], [self.standard_error])


def trace(matrix: AnyMatrix, seed: _checks.Seed = 0, *, probes: int = _PROBES, power: int = 1) -> Estimate:
    """Estimate the trace of a power of a symmetric matrix from vectors of random signs, without bias.

    Parameters
    ----------
    matrix
        Dense, or a `lanczos.Operator`.
    seed
        Seed of the probes: an integer, or a numpy generator.
    probes
        Number of vectors of random signs, at least 2; `power` / 2 products with each, rounded up.
    power
        Power of the matrix, at least 1.

    Raises
    ------
    ValueError
        If `probes` is below 2, `power` below 1, the matrix cannot be used, see `lanczos.as_operator`, or the result
        overflows.

    Examples
    --------
    >>> trace(np.diag([1.0, 2.0, 3.0]), power=2)  # no error: it is diagonal
    Estimate: 14 ± 0
    """
    with in_full_precision():
        operator, power = as_operator(matrix), _checks.natural("power", power)
        left = _signs(operator, _checks.generator(seed), probes)
        # z' A^p z is an inner product of A^(p/2) z with itself: half as many products
        for _ in range(power // 2):
            left = operator(left)
        right = operator(left) if power % 2 else left
        return _mean((left.double() * right.double()).sum(1))


def frobenius_norm(matrix: AnyMatrix, seed: _checks.Seed = 0, *, probes: int = _PROBES) -> Estimate:
    """Estimate the Frobenius norm of a symmetric matrix, the root of the trace of its square; one product per probe.

    The root biases it low by about standard_error^2 / (2 value).

    Raises
    ------
    ValueError
        If `probes` is below 2, the matrix cannot be used, see `lanczos.as_operator`, or the result overflows.

    Examples
    --------
    >>> frobenius_norm(np.diag([3.0, -4.0]), probes=5)
    Estimate: 5 ± 0
    """
    with in_full_precision():
        operator = as_operator(matrix)
        products = operator(_signs(operator, _checks.generator(seed), probes)).double()
        unit = float(products.abs().max()) or 1.0  # squares in it neither overflow nor vanish
        norm = root_of_estimate(_mean((products / unit).square().sum(1)))
        return _finite_estimate(unit * norm.value, unit * norm.standard_error)


def root_of_estimate(estimate: Estimate) -> Estimate:
    """Return the root of an estimate, with its standard error to first order."""
    root = math.sqrt(estimate.value)
    # the derivative of a square root is infinite at zero
    return Estimate(root, estimate.standard_error / (2 * root) if root else 0.0)


@dataclass(frozen=True, kw_only=True, repr=False)
class Density(Result):
    """A smoothed spectral density on a grid.

    Attributes
    ----------
    x
        Points of the grid.
    value
        Density of the eigenvalues at `x`, each smeared to a Gaussian; of the shape of `x`, as the next two.
    standard_error
        Standard error over the probes.
    truncation
        Change of the value without the last quarter of the Lanczos steps, a guess of what further steps would change.
    dim
        Rows of the matrix.
    width
        Standard deviation of the smearing.
    steps, probes
        Number of Lanczos steps with each probe, and number of probes.
    """

    x: Floats
    value: Floats
    standard_error: Floats
    truncation: Floats
    dim: int
    width: float
    steps: int
    probes: int

    _evenly_spaced = True

    def _headline(self) -> str:
        x = self.x.ravel()
        span = f"from {x.min():.4g} to {x.max():.4g}" if x.size else "nowhere"
        smeared = f"{self.dim} eigenvalues {span}, each smeared by {self.width:.3g}"
        return f"{smeared}; {self.probes} probes of {self.steps} steps"

    def _columns(self) -> Columns:
        return {
            "x": self.x.ravel(),
            "density": self.value.ravel(),
            "standard error": self.standard_error.ravel(),
            "truncation": self.truncation.ravel(),
        }

    def _draw(self, axes: Axes) -> None:
        order = np.argsort(self.x, axis=None)
        x, value, *errors = (np.asarray(cells)[order] for cells in self._columns().values())
        # the axis starts at a tenth of the density of a single eigenvalue
        least = 0.1 / (self.dim * math.sqrt(2 * math.pi) * self.width)
        low, high = (np.maximum(value + sign * sum(errors), least) for sign in (-1, 1))
        axes.fill_between(x, low, high, alpha=0.3, lw=0, label="standard error and truncation")
        axes.plot(x, np.maximum(value, least))
        axes.set(yscale="log", ylim=(least, None), xlabel="eigenvalue", title="density of the eigenvalues")
        axes.legend(frameon=False)


def density(
    matrix: AnyMatrix,
    seed: _checks.Seed = 0,
    *,
    x: ArrayLike | None = None,
    width: float | None = None,
    steps: int | None = None,
    probes: int = 10,
    progress: Callable[[int], None] | None = None,
) -> Density:
    """Estimate the density of the eigenvalues of a symmetric matrix, each smeared to a Gaussian, by Lanczos quadrature.

    Estimates (1/dim) sum_i exp(-(x - lambda_i)^2 / (2 width^2)) / (sqrt(2 pi) width). Structure finer than the range
    of the spectrum divided by `steps` is not resolved, which shows in `truncation`.

    Parameters
    ----------
    matrix
        Dense, or a `lanczos.Operator`.
    seed
        Seed of the probes: an integer, or a numpy generator.
    x
        Points, of any shape; if None, 401 points over the range of the Ritz values.
    width
        Standard deviation of the smearing, in the unit of the eigenvalues; if None, a hundredth of the range of the
        Ritz values.
    steps
        Products with each probe, at most the order of the matrix; if None, 100, or the order if that is less.
    probes
        Number of Gaussian vectors, at least 2.
    progress
        Called after each step with the number of products so far, out of `steps` times `probes`.

    Raises
    ------
    ValueError
        If `x` is not finite, `width` not a positive number, `probes` below 2, the values do not fit into memory, or
        `steps` or the matrix cannot be used, see `lanczos.tridiagonal`.

    References
    ----------
    Ubaru, Chen and Saad (2017), Fast estimation of tr(f(A)) via stochastic Lanczos quadrature.

    Examples
    --------
    >>> found = density(np.eye(50), x=[1.0, 1.5], width=0.1, steps=1, probes=2)
    >>> found.value.round(3), found.standard_error.round(3)
    (array([3.989, 0.   ]), array([0., 0.]))
    >>> density(np.diag([0.0, 0.0, 1.0]))
    Density: 3 eigenvalues from -0.04 to 1.04, each smeared by 0.01; 10 probes of 3 steps
    ...
    """
    with in_full_precision():
        operator, rng = as_operator(matrix), _checks.generator(seed)
        at = None if x is None else np.asarray(x, dtype=np.float64)
        if at is not None and not np.isfinite(at).all():
            raise ValueError(f"x must be finite, got {x}")
        if width is not None and np.ndim(width) != 0:
            raise ValueError(f"width must be one number, got {width}")
        sd = None if width is None else _checks.positive_number("width", width)
        steps = min(_STEPS, operator.dim) if steps is None else _checks.natural("steps", steps)
        count, points = _checked_probes(operator, probes), _POINTS if at is None else at.size
        what = f"{probes} densities at {points} points from {steps} nodes"
        _memory.require_free("x", 32 * points * count * steps, what)
        starts = rng.standard_normal((count, operator.dim))
        reporting, ends = operator, itertools.count(1)
        if progress is not None:

            def product(vectors: Tensor) -> Tensor:
                products = operator(vectors)
                progress(next(ends) * len(vectors))
                return products

            reporting = replace(operator, product=product)
        found = recurrence(reporting, starts, steps)
        nodes, _ = found.quadrature()
        low, high, size = float(nodes.min()), float(nodes.max()), float(np.abs(nodes).max())
        # for a multiple of the identity the range is rounding: the width then follows its size, or is 0.01
        distinct = high - low > EXHAUSTED * torch.finfo(operator.dtype).eps * size
        sd = sd or _SMEARING * (high - low if distinct else size or 1.0)
        # beyond four widths a Gaussian is below 4e-4 of its peak
        at = np.linspace(low - 4 * sd, high + 4 * sd, _POINTS) if at is None else at
        each = _smoothed_density(found, at, sd)
        shorter = _smoothed_density(found.leading(steps - steps // 4), at, sd)
        # squares of the densities of a narrow spectrum could overflow
        value, unit = each.mean(0), float(each.max(initial=0.0)) or 1.0
        return Density(
            x=at,
            value=value,
            standard_error=unit * (each / unit).std(0, ddof=1) / math.sqrt(len(each)),
            truncation=np.abs(value - shorter.mean(0)),
            dim=operator.dim,
            width=sd,
            steps=steps,
            probes=count,
        )


def _smoothed_density(found: Tridiagonal, x: Floats, sd: float) -> Floats:
    """Return the density estimate of each start, (m, *x.shape)."""
    nodes, weights = found.quadrature()
    with np.errstate(over="ignore"):  # an overflowing distance has density 0
        distance = (x.reshape(1, -1, 1) - nodes[:, None, :]) / sd
        heights = (np.exp(-(distance**2) / 2) * weights[:, None, :]).sum(-1)
    return (heights / (math.sqrt(2 * math.pi) * sd)).reshape(len(nodes), *x.shape)


def _signs(operator: Operator, rng: np.random.Generator, probes: int) -> Tensor:
    return operator.vectors(random_signs(rng, (_checked_probes(operator, probes), operator.dim)))


def _checked_probes(operator: Operator, probes: int) -> int:
    probes = probe_count(probes)
    _memory.require_free("probes", 32 * probes * operator.dim, f"{probes} vectors of {operator.dim} numbers")
    return probes


def _mean(samples: Tensor) -> Estimate:
    unit = unit_of(
        samples
    )  # without it, squares of a spread of 1e-200 vanish, and the estimate would seem exact
    error = unit * float((samples / unit).std()) / math.sqrt(len(samples))
    return _finite_estimate(float(samples.mean()), error)


def _finite_estimate(value: float, error: float) -> Estimate:
    if not (math.isfinite(value) and math.isfinite(error)):
        raise ValueError(f"matrix must be such that the estimate does not overflow, got {value} +- {error}")
    return Estimate(value, error)
