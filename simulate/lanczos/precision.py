"""Full single precision: torch has settings that round the factors of a product to fewer digits.

Convolutions on a GPU do so by default: with factors of 11 bits (TF32), a product with the Hessian of a VGG network was
off by 3 % on an H200.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import torch

_FULL = ("ieee", "none")

_ALL = (("generic", "all"), ("cuda", "all"), ("mkldnn", "all"))
"""Settings that apply to all operations without a setting of their own."""

_PRODUCTS = (("cuda", "matmul"), ("mkldnn", "matmul"))
_ON_A_GPU = (("cuda", "matmul"), ("cuda", "conv"), ("cuda", "rnn"))
_ON_THE_CPU = (("mkldnn", "matmul"), ("mkldnn", "conv"), ("mkldnn", "rnn"))

_NEWER = hasattr(torch._C, "_get_fp32_precision_getter")
"""Whether torch is 2.9 or newer: it has a setting for each operation, and two older ones that write several."""

Undo = list[Callable[[], Any]]


@contextmanager
def in_full_precision() -> Iterator[None]:
    """Compute products in the precision of their factors, whatever torch's settings; restore the settings afterwards.

    The settings are global, so threads that measure at the same time disturb each other. One setting is not restored if
    a GPU rounds: convolutions that followed the global setting (`torch.backends.fp32_precision`) keep rounding
    explicitly afterwards. Restoring this too would make torch refuse `torch.backends.cudnn.flags` in between.

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
    undo: Undo = []
    try:
        if not _NEWER:
            _put_older(
                undo, torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest"
            )
            _put_older(undo, _cudnn_rounds, _let_cudnn_round, False)
        elif not all(_value(place) in _FULL for place in _ON_THE_CPU + (_ON_A_GPU if _has_gpu() else ())):
            _switch(undo)
        yield
    finally:
        for put_back in reversed(undo):
            put_back()


def _has_gpu() -> bool:
    """Return whether there may be a GPU, without starting its driver."""
    return torch.backends.cuda.is_built()


def _value(place: tuple[str, str]) -> str:
    return torch._C._get_fp32_precision_getter(*place)


def _switch(undo: Undo) -> None:
    _put_older(undo, _cudnn_rounds, _let_cudnn_round, False)
    older = "highest"
    with suppress(RuntimeError, UserWarning):  # torch raises if older and newer settings disagree
        older = torch.get_float32_matmul_precision()
    for place in _ALL:  # the global setting first, so that the others show their own values
        undo.append(partial(torch._C._set_fp32_precision_setter, *place, _value(place)))
        torch._C._set_fp32_precision_setter(*place, "none")
    if older != "highest":
        undo.append(partial(_restore_products, older, [(place, _value(place)) for place in _PRODUCTS]))
        torch.set_float32_matmul_precision("highest")
    torch._C._set_fp32_precision_setter(*_ALL[0], "ieee")
    for place in _ON_THE_CPU + _ON_A_GPU:
        if (found := _value(place)) not in _FULL:
            undo.append(partial(torch._C._set_fp32_precision_setter, *place, found))
            torch._C._set_fp32_precision_setter(*place, "ieee")


def _restore_products(older: str, own: list[tuple[tuple[str, str], str]]) -> None:
    """Restore the older setting, then those of both devices, which it overwrites."""
    torch.set_float32_matmul_precision(older)
    for place, value in own:
        torch._C._set_fp32_precision_setter(*place, value)


def _put_older(undo: Undo, get: Callable[[], Any], put: Callable[[Any], None], full: Any) -> None:
    with suppress(RuntimeError, UserWarning):  # as above; torch 2.9 warns once about the older settings
        found = get()
        if found != full:
            undo.append(partial(put, found))
            put(full)


def _cudnn_rounds() -> bool:
    return torch.backends.cudnn.allow_tf32


def _let_cudnn_round(allowed: bool) -> None:
    torch.backends.cudnn.allow_tf32 = allowed
