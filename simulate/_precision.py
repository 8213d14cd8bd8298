"""Single precision as it is called: torch may round the factors of a product to fewer digits, by switches of its own.

Convolutions on a GPU do so unless told otherwise: factors of 11 bits (TF32), by which a product with the Hessian of a
network of the kind of VGG was off by 3 % on an H200.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import Any

import torch

__all__ = ["in_full_precision"]

_OPERATIONS = ("cudnn.conv", "cudnn.rnn", "cuda.matmul", "mkldnn.conv", "mkldnn.rnn", "mkldnn.matmul")
"""What torch has switches for, from 2.9 on; before it has one for all products of matrices and one for cuDNN."""

_FULL = ("ieee", "none")


@contextmanager
def in_full_precision() -> Iterator[None]:
    """Products of the precision of their factors, whatever the switches of torch allow; these are then put back.

    Examples
    --------
    >>> torch.set_float32_matmul_precision("medium")
    >>> with in_full_precision():
    ...     print(torch.get_float32_matmul_precision())
    highest
    >>> torch.get_float32_matmul_precision()
    'medium'
    >>> torch.set_float32_matmul_precision("highest")
    """
    undo: list[Callable[[], None]] = []
    try:
        _switch(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest", undo)
        if _has_gpu():
            _switch(_cudnn_rounds, _let_cudnn_round, False, undo)
        for backend, operation in _operations():
            if (found := operation.fp32_precision) not in _FULL:
                operation.fp32_precision = "ieee"
                own = "none" if backend.fp32_precision == found else found
                undo.append(partial(setattr, operation, "fp32_precision", own))
        yield
    finally:
        for put_back in reversed(undo):
            put_back()


def _switch(
    get: Callable[[], Any], put: Callable[[Any], None], full: Any, undo: list[Callable[[], None]]
) -> None:
    """One of the older switches; torch refuses to read it where the newer ones say otherwise, which then decide."""
    with suppress(RuntimeError):
        found = get()
        if found != full:
            put(full)
            undo.append(partial(put, found))


def _cudnn_rounds() -> bool:
    return torch.backends.cudnn.allow_tf32


def _let_cudnn_round(allowed: bool) -> None:
    torch.backends.cudnn.allow_tf32 = allowed


@cache
def _has_gpu() -> bool:
    return torch.cuda.is_available()


@cache
def _operations() -> list[tuple[Any, Any]]:
    """The newer switches, each with that of its library, which it follows; those of a GPU only where there is one."""
    if not hasattr(torch.backends.cudnn, "conv"):
        return []
    found = []
    for name in _OPERATIONS:
        backend, operation = name.split(".")
        if _has_gpu() or backend == "mkldnn":
            library = getattr(torch.backends, backend)
            # what multiplies matrices on a GPU has no switch of its library between it and that of all
            above = library if hasattr(library, "fp32_precision") else torch.backends
            found.append((above, getattr(library, operation)))
    return found
