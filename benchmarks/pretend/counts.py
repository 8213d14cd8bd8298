"""What happened while a device was pretended: how much of it there, how much on the CPU, and on which lines.

What no mode of torch sees is work of the CPU on any device: decompositions by numpy and scipy, training in numpy.
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

from simulate.matrices import ensembles, reduced
from simulate.perceptrons import trained

ROOT = Path(__file__).parents[2]

OURS = tuple(f"{ROOT / top}/" for top in ("losscurv", "theory", "simulate", "verify"))

DECOMPOSITIONS = ("_linalg_", "linalg_", "triangular_solve", "cholesky", "geqrf", "ormqr", "svd", "qr")
"""What the names of operations begin with that take the cube of a size."""

MADE = frozenset(
    "aten::" + name
    for name in (
        "arange",
        "empty",
        "empty_like",
        "empty_strided",
        "eye",
        "full",
        "full_like",
        "new_empty",
        "new_zeros",
        "ones",
        "ones_like",
        "scalar_tensor",
        "zeros",
        "zeros_like",
        "zero_",
        "fill_",
        "copy_",
        "_to_copy",
        "clone",
        "stack",
        "cat",
        "uniform_",
        "normal_",
        "lift_fresh",
    )
)
"""Operations that only make, draw, copy or lay out numbers: of what is sent to a device they are the way there."""


class EnoughLaunches(BaseException):
    """As many operations as were asked for have been seen: no error, so that nothing catches it on the way."""


@dataclass
class Counts:
    """What was done on the device and beside it.

    Attributes
    ----------
    most
        Launches after which the next call of torch by Python raises `EnoughLaunches`.
    launches
        Operations there that are no views: a kernel, a copy, or a few of them each.
    waits
        How often the CPU waited for the device.
    sent
        Bytes copied to the device.
    device_work, host_work
        Floating point operations of products and decompositions, elements of the results of all else that is no
        integer. That of the CPU by line.
    """

    most: float = math.inf
    launches: int = 0
    waits: int = 0
    sent: int = 0
    device_work: float = 0.0
    host_work: Counter[str] = field(default_factory=Counter)

    @property
    def host_share(self) -> float:
        """Share of all torch work that the CPU did; one if there was none."""
        beside = sum(self.host_work.values())
        return beside / (beside + self.device_work) if self.device_work else 1.0

    def launched(self, func: Any, args: Any, kwargs: Any, made: Any) -> None:
        """Note an operation on the device, of which arguments and result are those of its arithmetic."""
        self.launches += 1
        self.device_work += _work(func, args, kwargs, made)

    def worked_beside(self, func: Any, args: Any, kwargs: Any, made: Any) -> None:
        """Note an operation on tensors of the CPU."""
        if func._schema.name not in MADE:
            self.host_work[line_of_ours()] += _work(func, args, kwargs, made)

    def decomposed_beside(self, array: Any) -> None:
        """Note a decomposition of matrices (..., n, n) by numpy or scipy, or of a tridiagonal one of diagonal (n,).

        What theory predicts is made of numbers, on the CPU, wherever they were measured.
        """
        line = line_of_ours()
        if line.startswith("theory/"):
            return
        *stack, rows, columns = shape if len(shape := np.shape(array)) > 1 else (1, *shape)
        self.calculated_beside(math.prod(stack) * rows * columns * max(min(rows, columns), 1))

    def calculated_beside(self, operations: float) -> None:
        """Note so many floating point operations in numpy."""
        self.host_work[line_of_ours()] += operations


def line_of_ours() -> str:
    """The innermost line of this package that is being executed, as ``file:line``."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(OURS):
            return f"{name[len(str(ROOT)) + 1 :]}:{frame.f_lineno}"
        frame = frame.f_back
    return "none of ours"


def _work(func: Any, args: Any, kwargs: Any, made: Any) -> float:
    formula = flop_registry.get(func._overloadpacket)
    if formula is not None:
        return float(formula(*args, **kwargs, out_val=made))
    name = func._overloadpacket.__name__
    if name.startswith(DECOMPOSITIONS) and args and isinstance(args[0], Tensor) and args[0].dim() > 1:
        *stack, rows, columns = args[0].shape
        return float(math.prod(stack) * rows * columns * min(rows, columns))
    return float(sum(t.numel() for t in _tensors_in(made) if t.is_floating_point() or t.is_complex()))


def _tensors_in(tree: Any) -> Iterator[Tensor]:
    """Every tensor of nested lists and tuples."""
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from _tensors_in(part)


# --- beside torch

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
                    seen = _noted(
                        getattr(module, name), lambda matrix, *_, **__: counts.decomposed_beside(matrix)
                    )
                    stack.enter_context(mock.patch.object(module, name, seen))

        def training(_: Any, theta: Any, x: Any, *__: Any, steps: int, **___: Any) -> None:
            counts.calculated_beside(6.0 * steps * len(x) * theta.numel())  # three products with every matrix

        seen = _noted(trained.trained, training)
        stack.enter_context(mock.patch.object(trained, "trained", seen))
        yield


def _noted(function: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
    @wraps(function)
    def noted(*args: Any, **options: Any) -> Any:
        note(*args, **options)
        return function(*args, **options)

    return noted
