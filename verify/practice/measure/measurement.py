"""Results of `measure`, as records for JSON and the page."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from simulate.results import Columns, Result
from simulate.spectra import Estimate
from verify.practice.measure.batches import MiniBatches
from verify.practice.measure.zone import Zone

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["exact", "bound", "standard error"]


@dataclass(frozen=True, kw_only=True)
class Number:
    """A value with its error: none but rounding ("exact"), a bound on it ("bound"), or its "standard error"."""

    value: float
    error: float
    kind: Kind

    @classmethod
    def exact(cls, value: float) -> Number:
        """Return a number without an error."""
        return cls(value=value, error=0.0, kind="exact")

    @classmethod
    def estimated(cls, found: Estimate) -> Number:
        """Return a number with a standard error."""
        return cls(value=found.value, error=found.standard_error, kind="standard error")

    @property
    def estimate(self) -> Estimate:
        """Value and standard error, without the kind."""
        return Estimate(self.value, self.error)


@dataclass(frozen=True, kw_only=True)
class Eigenvalue:
    """A Ritz value, and the bound on its distance to an eigenvalue: the residual of its vector.

    The k-th largest value is at most the k-th largest eigenvalue. `converged` says that the bound is at most 1e-3 of
    the largest eigenvalue in modulus.
    """

    value: float
    bound: float
    converged: bool


@dataclass(frozen=True, kw_only=True)
class SmearedDensity:
    """Smeared density of the eigenvalues at `x`: its value, the standard error, and what fewer steps would change."""

    x: tuple[float, ...] = field(repr=False)
    value: tuple[float, ...] = field(repr=False)
    standard_error: tuple[float, ...] = field(repr=False)
    truncation: tuple[float, ...] = field(repr=False)
    width: float
    steps: int
    probes: int


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """The Hessian or the Gauss-Newton matrix.

    Attributes
    ----------
    top
        Largest eigenvalues, descending.
    lowest
        Smallest eigenvalue; None of the Gauss-Newton matrix, whose eigenvalues are not negative for a convex loss.
    ceiling
        No eigenvalue is larger, with probability at least 0.99 over the random start.
    stopped
        Why Lanczos stopped; "all eigenvalues" of a matrix that was computed whole.
    trace, frobenius
        Sum of the eigenvalues, root of the sum of their squares.
    excess
        The first over the second; None of a matrix that is zero.
    density
        None of a matrix that is zero.
    """

    top: tuple[Eigenvalue, ...]
    lowest: Eigenvalue | None
    ceiling: float
    stopped: str
    trace: Number
    frobenius: Number
    excess: Number | None
    density: SmearedDensity | None


@dataclass(frozen=True, kw_only=True)
class Layer:
    """The block of the Hessian that belongs to the parameters of one layer.

    Attributes
    ----------
    name, parameters
        Which, and how many it has.
    largest, trace, frobenius, excess
        Of the block.
    share
        Square of its Frobenius norm over that of the whole Hessian; what all layers lack lies between them.
    short
        What the budget did not suffice for, in words; empty if nothing.
    """

    name: str
    parameters: int
    largest: Eigenvalue
    trace: Number
    frobenius: Number
    share: Number
    excess: Number | None
    short: str


@dataclass(frozen=True, kw_only=True)
class LossLine:
    """The loss along a direction, at distances from the parameters as they are; None where it is no number.

    `parabola` is what gradient and curvature there say.
    """

    curvature: float
    distance: tuple[float, ...] = field(repr=False)
    loss: tuple[float | None, ...] = field(repr=False)
    parabola: tuple[float, ...] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class SampleNoise:
    """Scatter of the Hessians H_i of single samples about their mean H.

    Attributes
    ----------
    total
        Mean over the samples of |H_i - H|_F^2.
    element
        Standard deviation of one element of H_i: root of the total over P^2.
    along_top
        Variance over the samples of v_1' H_i v_1, v_1 the first eigenvector of H.
    row
        Mean over the samples of |(H_i - H) v_1|^2, of which `along_top` is a part.
    edges, counts
        Histogram of v_1' H_i v_1.

    `total`, `element` and `row` are None if the budget does not suffice.
    """

    total: Number | None
    element: Number | None
    along_top: Number
    row: Number | None
    edges: tuple[float, ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True, kw_only=True, repr=False)
class Measurement(Result):
    """Result of `measure`.

    Attributes
    ----------
    name
        Model and data.
    parameters, samples, classes
        P, N and K; K is None where the targets are no classes.
    loss, gradient_norm
        Loss and norm of its gradient at the current parameters.
    hessian, gauss_newton
        Of the loss.
    h_term_frobenius
        Frobenius norm of their difference.
    zone
        Whether the loss is in the Goldilocks zone; None if the Hessian is zero.
    noise
        Scatter of single samples; None for one sample, and if samples are coupled.
    coupling
        Why the loss is not a mean over parts of the samples, in words; empty if it is one.
    largest_rate
        2/lambda_1: full-batch gradient descent is stable below; None without positive curvature.
    layers
        Block by block, where asked for.
    batches
        Largest eigenvalues of mini-batches, where asked for and within the budget.
    lines
        The loss along the first eigenvectors of the Hessian.
    doubts
        What looks like a mistake in model or data, in words: see `verify.practice.setup_warnings`.
    short
        What the budget left open, in words; empty if nothing.
    products
        Matrix-vector products, each over all samples.
    passes
        What all parts cost, in forward and backward passes over all samples.
    """

    name: str
    parameters: int
    samples: int
    classes: int | None
    dtype: str
    device: str
    seed: int
    loss: Number
    gradient_norm: Number
    hessian: Matrix
    gauss_newton: Matrix
    h_term_frobenius: Number
    zone: Zone | None
    noise: SampleNoise | None
    coupling: str
    largest_rate: Number | None
    layers: tuple[Layer, ...]
    batches: MiniBatches | None
    lines: tuple[LossLine, ...]
    doubts: tuple[str, ...]
    short: str
    products: int
    passes: float
    seconds: float

    def _headline(self) -> str:
        size = f"P = {self.parameters}, N = {self.samples}"
        rate = self.largest_rate
        stable = "" if rate is None else f", full gradients stable below rate {rate.value:.4g}"
        zone = "" if self.zone is None else f", Goldilocks zone: {self.zone.verdict}"
        return f"{self.name}, {size}, loss {self.loss.value:.5g}{stable}{zone}"

    def _columns(self) -> Columns:
        matrices = {"Hessian": self.hessian, "Gauss-Newton": self.gauss_newton}
        names = ["trace", "Frobenius norm", "trace / Frobenius", "lowest eigenvalue"]
        names += [f"eigenvalue {k + 1}" for k in range(len(self.hessian.top))]
        columns: dict[str, list[Any]] = {"quantity": names}
        for name, matrix in matrices.items():
            numbers = (matrix.trace, matrix.frobenius, matrix.excess)
            values = [None if each is None else (each.value, each.error) for each in numbers]
            eigenvalues = (matrix.lowest, *matrix.top)
            values += [None if each is None else (each.value, each.bound) for each in eigenvalues]
            columns[name] = [pair and pair[0] for pair in values]
            columns[f"{name} ±"] = [pair and pair[1] for pair in values]
        return columns

    def _draw(self, axes: Axes) -> None:
        # by its name: the module of the pictures imports these records
        import_module("verify.practice.measure.plots").draw_eigenvalues(axes, self)

    def summary(self) -> str:
        """Return what ``losscurv measure`` prints."""
        return import_module("verify.practice.measure.pages").measurement_text(self)
