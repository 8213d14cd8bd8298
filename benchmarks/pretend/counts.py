"""Counts of work on the pretended device and on the CPU, by lines.

No mode of torch sees work outside of torch, which is always on the CPU: decompositions by numpy and scipy, and training
in numpy. It is counted by wrappers.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.linalg
import torch
from torch import Tensor
from torch.utils.flop_counter import flop_registry

from simulate.lanczos import chain
from simulate.matrices import ensembles, reduced
from simulate.perceptrons import trained

ROOT = Path(__file__).parents[2]

OURS = tuple(f"{ROOT / top}/" for top in ("losscurv", "theory", "simulate", "verify"))

DECOMPOSITIONS = ("_linalg_", "linalg_", "triangular_solve", "cholesky", "geqrf", "ormqr", "svd", "qr")
"""Prefixes of operations that take the cube of a size."""


def aten(names: str) -> frozenset[str]:
    """Return names of operations as schemas have them."""
    return frozenset(f"aten::{name}" for name in names.split())


MADE = aten("""
    arange empty empty_like empty_strided eye full full_like new_empty new_zeros ones ones_like
    scalar_tensor zeros zeros_like zero_ fill_ copy_ _to_copy clone stack cat uniform_ normal_ lift_fresh
""")
"""Operations that only make, draw, copy or lay out numbers, as on their way to a device; not counted as CPU work."""


class EnoughLaunches(BaseException):
    """Raised after the requested number of launches; not an `Exception`, so that nothing catches it on the way."""


@dataclass
class Counts:
    """Work on the device and on the CPU.

    Attributes
    ----------
    most
        Launches after which the next call of torch by Python raises `EnoughLaunches`.
    launches
        Operations on the device that are not views: each is a kernel, a copy, or a few of them.
    waits
        Number of times that the CPU waited for the device.
    sent
        Bytes copied to the device.
    device_work, host_work
        Floating point operations of products and decompositions, and for other operations elements of floating point
        results. Work of the CPU is by line.
    """

    most: float = math.inf
    launches: int = 0
    waits: int = 0
    sent: int = 0
    device_work: float = 0.0
    host_work: Counter[str] = field(default_factory=Counter)

    @property
    def host_share(self) -> float:
        """Share of all work done by the CPU; 1 if the device had none."""
        on_cpu = sum(self.host_work.values())
        return on_cpu / (on_cpu + self.device_work) if self.device_work else 1.0

    def launched(self, func: Any, args: Any, kwargs: Any, made: Any) -> None:
        """Count an operation on the device, with the arguments and result of its arithmetic."""
        self.launches += 1
        self.device_work += _work_of(func, args, kwargs, made)

    def worked_beside(self, func: Any, args: Any, kwargs: Any, made: Any) -> None:
        """Count an operation on tensors of the CPU."""
        if func._schema.name not in MADE:
            self.host_work[line_of_ours()] += _work_of(func, args, kwargs, made)

    def decomposed_beside(self, array: Any) -> None:
        """Count a numpy or scipy decomposition of matrices (..., n, n), or of a tridiagonal one with diagonal (n,)."""
        line = line_of_ours()
        # predictions are computed from numbers on the CPU, wherever these were measured
        if line.startswith("theory/"):
            return
        *stack, rows, columns = shape if len(shape := np.shape(array)) > 1 else (1, *shape)
        self.calculated_beside(math.prod(stack) * rows * columns * max(min(rows, columns), 1))

    def calculated_beside(self, operations: float) -> None:
        """Count floating point operations in numpy."""
        self.host_work[line_of_ours()] += operations


def line_of_ours() -> str:
    """Return the innermost line of this package that is being executed, as ``file:line``."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(OURS):
            return f"{name[len(str(ROOT)) + 1 :]}:{frame.f_lineno}"
        frame = frame.f_back
    return "none of ours"


def _work_of(func: Any, args: Any, kwargs: Any, made: Any) -> float:
    formula = flop_registry.get(func._overloadpacket)
    if formula is not None:
        return float(formula(*args, **kwargs, out_val=made))
    name = func._overloadpacket.__name__
    if name.startswith(DECOMPOSITIONS) and args and isinstance(args[0], Tensor) and args[0].dim() > 1:
        *stack, rows, columns = args[0].shape
        return float(math.prod(stack) * rows * columns * min(rows, columns))
    return float(sum(t.numel() for t in _tensors_in(made) if t.is_floating_point() or t.is_complex()))


def _tensors_in(tree: Any) -> Iterator[Tensor]:
    """Yield every tensor of nested lists and tuples."""
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from _tensors_in(part)


# --- outside of torch

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

BANDED = ("eig_banded", "eigh_tridiagonal", "eigvals_banded", "solve_triangular")

SEEN: Any = (
    (np.linalg, NAMES),
    (scipy.linalg, (*NAMES, *BANDED)),
    (ensembles, ("eigenpair", "_bisected")),  # LAPACK by its own names
    (chain, ("_nodes",)),
    (reduced, ("eigenpair",)),
)


@contextlib.contextmanager
def numpy_seen(counts: Counts) -> Iterator[None]:
    """Count every call of numpy and scipy decompositions within this context, by the calling line."""
    with contextlib.ExitStack() as stack:
        for module, names in SEEN:
            for name in names:
                if hasattr(module, name):
                    seen = _with_note(
                        getattr(module, name), lambda matrix, *_, **__: counts.decomposed_beside(matrix)
                    )
                    stack.enter_context(mock.patch.object(module, name, seen))

        def training(_: Any, theta: Any, x: Any, *__: Any, steps: int, **___: Any) -> None:
            counts.calculated_beside(6.0 * steps * len(x) * theta.numel())  # three products with every matrix

        seen = _with_note(trained.trained, training)
        stack.enter_context(mock.patch.object(trained, "trained", seen))
        yield


def _with_note(function: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
    @wraps(function)
    def noted(*args: Any, **options: Any) -> Any:
        note(*args, **options)
        return function(*args, **options)

    return noted
