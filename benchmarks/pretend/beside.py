"""What no mode of torch sees, work of the CPU on any device: decompositions by numpy and scipy, training in numpy."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any
from unittest import mock

import numpy as np
import scipy.linalg

from benchmarks.pretend.counts import Counts
from simulate.matrices import ensembles, reduced
from simulate.perceptrons import trained

__all__ = ["numpy_seen"]

NAMES = (
    "cholesky",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "pinv",
    "qr",
    "solve",
    "svd",
    "svdvals",
)

BANDED = ("eig_banded", "eigh_tridiagonal", "eigvals_banded", "eigvalsh_tridiagonal", "solve_triangular")

SEEN: Any = (
    (np.linalg, NAMES),
    (scipy.linalg, (*NAMES, *BANDED)),
    (ensembles, ("eigenpair", "_bisected")),  # LAPACK by its own names
    (reduced, ("eigenpair",)),
)


@contextlib.contextmanager
def numpy_seen(counts: Counts) -> Iterator[None]:
    """Within, every call of them is counted, by the line that made it."""
    with contextlib.ExitStack() as stack:
        for module, names in SEEN:
            for name in names:
                if hasattr(module, name):
                    stack.enter_context(
                        mock.patch.object(module, name, _counted(getattr(module, name), counts))
                    )
        stack.enter_context(mock.patch.object(trained, "trained", _training(trained.trained, counts)))
        yield


def _training(function: Callable[..., Any], counts: Counts) -> Callable[..., Any]:
    """A step is three products with every weight matrix."""

    @wraps(function)
    def counted(widths: Any, theta: Any, x: Any, *args: Any, steps: int, **options: Any) -> Any:
        counts.calculated_beside(6.0 * steps * len(x) * theta.numel())
        return function(widths, theta, x, *args, steps=steps, **options)

    return counted


def _counted(function: Callable[..., Any], counts: Counts) -> Callable[..., Any]:
    @wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        counts.decomposed_beside(args[0])
        return function(*args, **kwargs)

    return counted
