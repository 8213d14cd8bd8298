"""Result of one measurement of a watcher, as a record and as a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from simulate.results import Columns, Result, draw_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BRIEF = ("step", "loss", "eigenvalue", "error", "limit", "preconditioned", "batch_eigenvalue", "outcome")
"""Columns that show how training goes."""


@dataclass(frozen=True, kw_only=True, repr=False)
class CurvatureRecord(Result):
    r"""The curvature between two steps of training. What was not measured, or has no value, is None.

    Attributes
    ----------
    step
        Steps of the optimiser that were done, from 1.
    outcome
        "measured", "diverged: ..." or "not measured: ...".
    loss
        Of the batch of this step, of the fixed samples where no batch is given, without weight decay.
    eigenvalue, error
        Largest eigenvalue of the Hessian of the fixed samples, with the weight decay that the optimiser adds to the
        gradient, and the length of its residual: an eigenvalue lies so near. The Ritz value is never above the
        largest.
    batch_eigenvalue, batch_error
        The same of the batch of this step.
    mean_batch_eigenvalue, mean_batch_error, batches
        Mean over the latest batches that were measured, its standard error from their scatter (which holds the drift
        of training too), and how many they were.
    preconditioned, preconditioned_error
        Largest eigenvalue of :math:`D^{1/2} H D^{1/2}` of the fixed samples, D the size of a step for each parameter
        over the largest rate: for Adam, and where parameter groups have different rates.
    limit, limit_of
        The eigenvalue above which full gradients are unstable on a quadratic, at the rates of this step, and which
        eigenvalue it is to be compared with: "eigenvalue" or "preconditioned".
    limit_note
        The formula of the limit, or why there is none.
    gradient_square, gradient_variance
        Of this batch, unbiased: squared length of the mean gradient, which may come out negative, and trace of the
        covariance of the gradients of single samples.
    noise_scale
        The second over the first, each a mean over the latest batches: a number of samples. None where the first is
        not positive.
    rates
        Learning rate of each parameter group.
    samples
        In the batch, or fixed samples where no batch is given.
    products
        With Hessians, spent on this measurement.
    passes
        Forward and backward passes through the batch of this step that this is worth, a product counted as one.
    seconds, share
        This measurement took so long; all of them, of all time since the first.
    interval
        Steps since the measurement before, more than asked for where that would have cost too much; 0 for the first.
    """

    step: int
    outcome: str
    loss: float | None = None
    eigenvalue: float | None = None
    error: float | None = None
    batch_eigenvalue: float | None = None
    batch_error: float | None = None
    mean_batch_eigenvalue: float | None = None
    mean_batch_error: float | None = None
    batches: int = 0
    preconditioned: float | None = None
    preconditioned_error: float | None = None
    limit: float | None = None
    limit_of: str | None = None
    limit_note: str = ""
    gradient_square: float | None = None
    gradient_variance: float | None = None
    noise_scale: float | None = None
    rates: tuple[float, ...] = ()
    samples: int = 0
    products: int = 0
    passes: float = 0.0
    seconds: float = 0.0
    share: float = 0.0
    interval: int = 0

    @property
    def diverged(self) -> bool:
        """Whether the loss or the parameters are no finite numbers."""
        return self.outcome.startswith("diverged")

    def _brief(self) -> Sequence[str]:
        return BRIEF

    def _headline(self) -> str:
        return f"step {self.step}, {self.outcome}"

    def _columns(self) -> Columns:
        return record_columns([self])

    def _draw(self, axes: Axes) -> None:
        names = ("eigenvalue", "batch_eigenvalue", "preconditioned", "limit")
        known = {name: value for name in names if (value := getattr(self, name)) is not None}
        draw_bars(axes, list(known), list(known.values()))
        axes.set(title=f"step {self.step}, {self.outcome}")

    def _inches(self) -> tuple[float, float]:
        return 5.2, 1.6


def record_columns(records: Sequence[CurvatureRecord]) -> Columns:
    """All fields of the records, a column each."""
    return {
        field.name: [getattr(record, field.name) for record in records] for field in fields(CurvatureRecord)
    }


def record_line(record: CurvatureRecord) -> str:
    """The record as one line of JSON; what is not finite is null.

    Examples
    --------
    >>> line = record_line(CurvatureRecord(step=1, outcome="diverged: the loss is nan", loss=float("nan")))
    >>> json.loads(line)["loss"], record_of(json.loads(line)).diverged
    (None, True)
    """
    return json.dumps(record.to_dict(), allow_nan=False)


def record_of(stored: Mapping[str, Any]) -> CurvatureRecord:
    """A record from its line of JSON; names that are unknown are left out."""
    known = {field.name for field in fields(CurvatureRecord)}
    kept: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    return CurvatureRecord(**{name: value for name, value in kept.items() if name in known})
