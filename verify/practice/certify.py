r"""Verdict on curvature that another library computed: an eigenvalue, a trace, a norm, a density, an operator.

The true value is enclosed by an interval that holds with a stated probability. A claim is *right* if even the far end
of the interval is within the tolerance of it, *wrong* if even the near end is not, else *undecided* at this budget.

| quantity | interval of the true value of a matrix A of order P |
|---|---|
| eigenvalues | `simulate.eigenvalues.extremes`, certified |
| trace, norm | exact by P products if the budget allows; else as below |
| density | total weight 1, mean tr A / P, mean square |A|^2 / P, no node beyond the extreme eigenvalues |
| operator C | |C - A| / |A|, by products with m Gaussian vectors |

All norms are Frobenius norms. With an orthonormal basis Q of products with random vectors, and R = 1 - Q Q',

.. math:: \mathrm{tr} A = \mathrm{tr}\, Q'AQ + \mathrm{tr} RAR, \quad |A|^2 = |AQ|^2 + |AR|^2,

the split of Hutch++. The rests are estimated by m Gaussian vectors g. The mean of |Bg|^2 is below t |B|^2, t < 1, or
above it, t > 1, each with probability at most (t e^{1-t})^{m/2}: the moment-generating function of a quadratic form of
given trace is largest at rank one. The mean of g'Bg is off tr B by more than 2 |B| (sqrt(x/m) + x/m) with probability
at most 2 e^{-x}. Neither bound uses a variance that is estimated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from simulate import _checks
from simulate.eigenvalues import Floats, extremes
from simulate.lanczos import Operator, one_by_one
from simulate.objectives import Objective, require_objective
from simulate.operators import empirical_fisher, fisher, gauss_newton, hessian
from simulate.results import Columns, Result, plain
from verify.practice.measure.budget import FIRST, GAUSS_NEWTON, HESSIAN, Budget

_QUANTITIES = {
    "eigenvalues": (1e-3, "real numbers, at most one for each parameter"),
    "trace": (0.05, "one real number"),
    "frobenius norm": (0.05, "one real number"),
    "density": (0.05, "nodes and weights of one shape"),
    "operator": (1e-3, ""),
}
"""For each quantity the relative deviation that is right by default, and what a claim must be."""

_MATRICES = {
    "hessian": (hessian, HESSIAN),
    "gauss_newton": (gauss_newton, GAUSS_NEWTON),
    "fisher": (fisher, GAUSS_NEWTON),
    "empirical_fisher": (empirical_fisher, GAUSS_NEWTON),
}
"""Matrices, and the passes of a product with each."""

_DOUBT = 0.01
"""Probability that an interval misses the true value, that of `extremes` too."""

_LEAST, _PROBES = 6, 20
"""Fewest products for moments; probes of an operator."""

_ROUNDINGS = 100
"""Roundings of the largest product that are added to an interval."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate(Result):
    """Verdict of `certify`.

    Attributes
    ----------
    verdict
        "right", "wrong" or "undecided".
    quantity, matrix
        What was claimed.
    rows
        Names of the numbers that were compared, (k,).
    claimed, lower, upper
        Each number as claimed, and the interval of the true one, (k,). The rows "norm of the difference" of an
        operator and "beyond the spectrum" of a density are claimed to be 0.
    deviation
        Smallest and largest deviation that the intervals allow, the largest over the rows; relative to the largest
        modulus of the eigenvalues asked for, to the larger of trace and norm, or to the norm.
    probability
        Least probability that the intervals hold.
    passes
        Cost, in forward and backward passes over all samples.
    likely_cause
        Known error that explains the deviation; empty if none does.
    """

    verdict: Literal["right", "wrong", "undecided"]
    quantity: str
    matrix: str
    rows: list[str]
    claimed: Floats
    lower: Floats
    upper: Floats
    deviation: tuple[float, float]
    probability: float
    passes: float
    likely_cause: str

    def _headline(self) -> str:
        least, most = self.deviation
        amount = {
            "right": f"within {most:.2g}",
            "wrong": f"by at least {least:.2g}",
            "undecided": f"at this budget, off by {least:.2g} to {most:.2g}",
        }[self.verdict]
        cause = f": {self.likely_cause}" * bool(self.likely_cause)
        sure = f"({self.passes:g} passes, probability {self.probability:g})"
        return f"{self.quantity} of {self.matrix} {self.verdict} {amount}{cause} {sure}"

    def _columns(self) -> Columns:
        return {"": self.rows, "claimed": self.claimed, "lower": self.lower, "upper": self.upper}

    def _draw(self, axes: Any) -> None:
        axes.vlines(self.rows, self.lower, self.upper, lw=5, alpha=0.4)
        axes.plot(self.rows, self.claimed, "x")
        axes.set_title(self.quantity)


class _Rows(NamedTuple):
    """Attributes of a `Certificate` by a comparison."""

    rows: list[str]
    claimed: Floats
    lower: Floats
    upper: Floats
    deviation: tuple[float, float]


_Compare = Callable[[float], _Rows]
"""Comparison of a claim with the matrix times a factor."""


def certify(
    claimed: Any,
    objective: Objective,
    *,
    quantity: str = "eigenvalues",
    matrix: str = "hessian",
    which: str = "LA",
    tolerance: float | None = None,
    budget: float = 500.0,
    seed: _checks.Seed = 0,
) -> Certificate:
    """Return whether another library's number, density or operator is right for this model, loss and data.

    Parameters
    ----------
    claimed
        A number, numbers, a tensor or an array: k eigenvalues in any order, a trace, a norm. Of a density the pair
        (nodes, weights), each (m,) or (runs, m). Of an operator a matrix, a ``scipy.sparse.linalg.LinearOperator``,
        anything with ``@``, or a function of a vector (P,), with rows in the order of the model's parameters.
    objective
        Model, data and loss.
    quantity
        "eigenvalues", "trace", "frobenius norm", "density" or "operator".
    matrix
        "hessian", "gauss_newton", "fisher" or "empirical_fisher".
    which
        Eigenvalues claimed, named as in `scipy.sparse.linalg.eigsh`: "LA" the k largest, "SA" the k smallest, "LM" the
        k largest in modulus, which power iteration finds; their signs are not compared.
    tolerance
        Relative deviation up to which a claim is right, see `Certificate.deviation`; if None, 0.001 for eigenvalues and
        operators, and 0.05 for the others, which most libraries estimate.
    budget
        Most passes, each as expensive as one forward and one backward pass over all samples. A product with the Hessian
        counts 2.5, with another matrix 1.6, and the first one 6 more. A trace, a norm or a density uses all of them, or
        what an exact value takes. Products of a claimed operator are not counted.
    seed
        Seed of the random vectors.

    Raises
    ------
    ValueError
        If an argument is unknown or out of its domain, the claim is not of the kind of its quantity, or the budget does
        not allow the fewest products; and as the matrix.

    References
    ----------
    Meyer, Musco, Musco and Woodruff (2021), Hutch++: optimal stochastic trace estimation; Laurent and Massart (2000),
    Adaptive estimation of a quadratic functional by model selection, lemma 1.

    Examples
    --------
    >>> x = torch.tensor([[3.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    >>> line = Objective(torch.nn.Linear(2, 1, bias=False).double(), (x, x[:, :1]))  # its Hessian is diag(9, 1)
    >>> certify(9.0, line).verdict
    'right'
    >>> found = certify(20.0, line, quantity="trace")
    >>> found.verdict, found.likely_cause
    ('wrong', 'equals the value times N = 2: the loss was probably summed over samples')
    """
    require_objective("certify", objective)
    for name, value, known in (
        ("quantity", quantity, _QUANTITIES),
        ("matrix", matrix, _MATRICES),
        ("which", which, ("LA", "SA", "LM")),
    ):
        _checks.one_of(name, value, known)
    standard = _QUANTITIES[quantity][0]
    off = float(_checks.positive_numbers("tolerance", standard if tolerance is None else tolerance))
    spent = Budget(min(budget, 1e9))
    (make, cost), rng = _MATRICES[matrix], _checks.generator(seed)
    operator = spent.on(make(objective), cost)
    claim, products = _claim(claimed, quantity, operator), int((spent.limit - FIRST) / cost)
    if isinstance(claim, Operator):
        compare = _operator(claim, operator, rng)
    elif quantity == "eigenvalues":
        compare = _eigenvalues(claim, operator, rng, max(products, 2 * len(claim)), off / 4, which)
    else:
        # a density needs the ends of the spectrum too
        compare = _moments(claim, operator, rng, max(products >> (quantity == "density"), _LEAST), quantity)
    rows = compare(1.0)
    least, most = rows.deviation
    verdict = "right" if most <= off else "wrong" if least > off else "undecided"
    return Certificate(
        verdict=verdict,
        quantity=quantity,
        matrix=matrix,
        **rows._asdict(),
        probability=1 - _DOUBT * (1 + (quantity == "density")),
        passes=spent.spent,
        likely_cause=next(_causes(compare, objective, off), "") if verdict == "wrong" else "",
    )


def _claim(claimed: Any, quantity: str, operator: Operator) -> Floats | Operator:
    """Return eigenvalues (k,), a number (1,), nodes and weights (2, m), or an operator."""
    if quantity == "operator":
        if isinstance(claimed, Tensor | np.ndarray):
            claimed = torch.as_tensor(claimed, dtype=operator.dtype)
        apply, shape = getattr(claimed, "__matmul__", claimed), getattr(claimed, "shape", operator.shape)
        if not callable(apply) or tuple(shape) != operator.shape:
            got = f"{type(claimed).__name__} of shape {tuple(shape)}"
            raise ValueError(f"claimed must be a function of a vector or {operator.shape} numbers, got {got}")
        return replace(operator, product=one_by_one(lambda vector: torch.as_tensor(apply(vector))))
    values = np.zeros(0)
    with suppress(ValueError):  # parts of several shapes
        values = np.asarray(plain(claimed))  # NaN becomes None
    fits = {"eigenvalues": 0 < values.size <= operator.dim, "density": values.shape[:1] == (2,)}
    if values.dtype.kind not in "iuf" or not fits.get(quantity, values.size == 1):
        got = f"{type(claimed).__name__} of shape {values.shape}"
        raise ValueError(f"claimed must be {_QUANTITIES[quantity][1]}, got {got}")
    if quantity != "density":
        return values.ravel() / 1.0
    # the density is the mean over the runs
    return values.reshape(2, -1) / [[1], [math.prod(values.shape[1:-1])]]


def _compared(names: list[str], claimed: Floats, ends: Floats, size: Floats) -> _Rows:
    """Compare numbers (k,) with intervals (2, k), relative to a size with its bounds, (2,) or (2, k)."""
    low, high = ends
    off = np.array(
        [np.maximum(low - claimed, claimed - high).clip(0), np.maximum(high - claimed, claimed - low)]
    )
    with np.errstate(divide="ignore"):  # the matrix may be 0
        size = np.reshape(size, (2, -1))[::-1]
        least, most = np.divide(off, size, out=0 * off, where=off > 0).max(1).tolist()
    return _Rows(names, claimed, low, high, (least, most))


def _moduli(ends: Floats) -> Floats:
    """Return the intervals of the moduli of numbers in these intervals, (2, k)."""
    moduli = np.abs(ends)
    return np.array([moduli.min(0) * (ends.prod(0) > 0), moduli.max(0)])


def _gaussian(operator: Operator, rng: Generator, count: int) -> Tensor:
    return operator.vectors(rng.standard_normal((count, operator.dim)))


# --- eigenvalues -------------------------------------------------------------------------------------------------


def _eigenvalues(
    claimed: Floats, operator: Operator, rng: Generator, steps: int, tolerance: float, which: str
) -> _Compare:
    count = len(claimed)
    top = count * (which != "SA")
    bottom = min(count * (which != "LA"), operator.dim - top)
    found = extremes(
        operator, rng, largest=top, smallest=bottom, tolerance=tolerance, certified=True, steps=steps
    )
    values, reach = found.values, np.linalg.norm(found.residuals)
    # what has not converged is somewhere in the range of all eigenvalues
    lowest, highest = min(values.min(), found.floor) - reach, max(values.max(), found.ceiling) + reach
    ends = np.where(found.converged, [values - found.bounds, values + found.bounds], [[lowest], [highest]])
    if which == "LM":
        ends = _moduli(ends)

    def ordered(numbers: Floats) -> Floats:
        moduli = np.abs(numbers) if which == "LM" else numbers
        return np.sort(moduli)[..., :: 1 if which == "SA" else -1]

    ends = ordered(ends)[:, :count]
    names = [*map(str, range(1, count + 1))]
    return lambda factor: _compared(names, ordered(claimed / factor), ends, _moduli(ends).max(1))


# --- trace, norm and density -------------------------------------------------------------------------------------


def _factors(probes: int) -> Floats:
    """Return both t, descending, at which the bound on the probability is a quarter of `_DOUBT`."""
    from scipy.special import lambertw

    branches: Any = [-1, 0]
    return -lambertw(-((_DOUBT / 4) ** (2 / probes)) / math.e, branches).real


def _moments(claimed: Floats, operator: Operator, rng: Generator, products: int, quantity: str) -> _Compare:
    dim, plus_minus = operator.dim, np.array([-1, 1])
    exact = dim + 2 <= products  # a basis of the whole space leaves 0 of the probes
    first = _gaussian(operator, rng, dim if exact else products // 3)
    sketch = first if exact else operator(first)
    basis = torch.linalg.qr(sketch.double().mT)[0].mT.to(first).contiguous()
    probes = _gaussian(operator, rng, 2 if exact else products - 2 * len(first))
    probes -= (probes @ basis.mT) @ basis
    along, beyond = operator(basis).double(), operator(probes).double()
    rest = float(beyond.square().sum(1).mean()) / _factors(len(probes))
    x, rounding = math.log(4 / _DOUBT) / len(probes), _ROUNDINGS * torch.finfo(first.dtype).eps
    norm = np.sqrt(float(along.square().sum()) + rest) * (1 + rounding * plus_minus)
    error = 2 * math.sqrt(rest[1]) * (math.sqrt(x) + x) + rounding * math.sqrt(dim) * norm[1]
    trace = float((basis * along).sum() + (probes * beyond).sum() / len(probes)) + error * plus_minus
    size = np.maximum(_moduli(trace[:, None])[:, 0], norm)
    if quantity != "density":
        interval, of = (trace, size) if quantity == "trace" else (norm, norm)
        return lambda factor: _compared([quantity], claimed / factor, interval[:, None], of)
    found = extremes(operator, rng, largest=1, smallest=1, certified=True, steps=products)
    ends = np.array([found.values, [found.ceiling, found.floor]])
    edge = np.abs(ends).max(1)

    def compare(factor: float) -> _Rows:
        nodes = claimed[0] / factor
        moments = [float(claimed[1] @ nodes**power) for power in range(3)]
        # the farthest node outside of the spectrum, by its widest and its narrowest ends
        out = [max(0.0, nodes.max() - high, low - nodes.min()) for high, low in ends[::-1]]
        true = np.array([np.ones(2), trace / dim, norm**2 / dim, out])
        sizes = np.array([np.ones(2), size / dim, norm**2 / dim, edge])
        names = ["total weight", "mean", "mean square", "beyond the spectrum"]
        return _compared(names, np.array([*moments, 0.0]), true.T, sizes.T)

    return compare


# --- operator ----------------------------------------------------------------------------------------------------


def _operator(claimed: Operator, operator: Operator, rng: Generator) -> _Compare:
    vectors = _gaussian(operator, rng, _PROBES)
    true, other = operator(vectors).double(), claimed(claimed.vectors(vectors)).double()
    scale = 1 / np.sqrt(_PROBES * _factors(_PROBES))

    def compare(factor: float) -> _Rows:
        off = float((other / factor - true).norm()) * scale
        return _compared(["norm of the difference"], np.zeros(1), off[:, None], float(true.norm()) * scale)

    return compare


# --- causes ------------------------------------------------------------------------------------------------------


def _causes(compare: _Compare, objective: Objective, tolerance: float) -> Iterator[str]:
    """Yield known errors that explain a wrong claim."""
    rows = compare(1.0)
    if rows.rows[0] == "total weight" and abs(rows.claimed[0] - 1) > tolerance:
        yield f"the weights sum to {rows.claimed[0]:.4g} instead of 1"
    with objective.measured(), torch.no_grad():
        outputs = objective.outputs(objective.leaves, objective.few().inputs)
    n, c = objective.samples, math.prod(outputs.shape[1:])
    factors = {"N": n, "N C": n * c, "N C / 2": n * c / 2, "2": 2, "C": c, "C / 2": c / 2}
    factors |= {f"1 / ({name})": 1 / factor for name, factor in factors.items()}
    for name, factor in {"the sign": -1, **factors}.items():
        if compare(factor).deviation[1] <= tolerance / 2:
            summed = ": the loss was probably summed over samples" * (name[0] == "N")
            yield f"equals the value times {name} = {factor:.4g}{summed}"
