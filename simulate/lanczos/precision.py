"""Single precision as it is called: torch may round the factors of a product to fewer digits, by switches of its own.

Convolutions on a GPU do so unless told otherwise: factors of 11 bits (TF32), by which a product with the Hessian of a
network of the kind of VGG was off by 3 % on an H200.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import torch

_FULL = ("ieee", "none")

_ALL = (("generic", "all"), ("cuda", "all"), ("mkldnn", "all"))
"""Switches that others follow which have no value of their own."""

_PRODUCTS = (("cuda", "matmul"), ("mkldnn", "matmul"))
_ON_A_GPU = (("cuda", "matmul"), ("cuda", "conv"), ("cuda", "rnn"))
_ON_THE_CPU = (("mkldnn", "matmul"), ("mkldnn", "conv"), ("mkldnn", "rnn"))

_NEWER = hasattr(torch._C, "_get_fp32_precision_getter")
"""From torch 2.9 on there is a switch for each operation, beside two older ones that write several of them."""

Undo = list[Callable[[], Any]]


@contextmanager
def in_full_precision() -> Iterator[None]:
    """Products of the precision of their factors, whatever the switches of torch allow; these are then put back.

    They are those of the process: threads that measure at once disturb each other. One thing is not as found where a
    GPU rounds: convolutions, which followed the switch of all (`torch.backends.fp32_precision`) where nobody had set
    theirs, hold to rounding afterwards. To leave that too would make torch refuse `torch.backends.cudnn.flags` within.

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
            _switch_older(undo)
        elif not all(_value(place) in _FULL for place in _places()):
            _switch(undo)
        yield
    finally:
        for put_back in reversed(undo):
            put_back()


def _places() -> tuple[tuple[str, str], ...]:
    return _ON_THE_CPU + (_ON_A_GPU if _has_gpu() else ())


def _has_gpu() -> bool:
    """Whether there may be one; to ask whether there is would start its driver."""
    return torch.backends.cuda.is_built()


def _value(place: tuple[str, str]) -> str:
    return torch._C._get_fp32_precision_getter(*place)


def _switch(undo: Undo) -> None:
    _put_older(undo, _cudnn_rounds, _let_cudnn_round, False)
    older = "highest"
    with suppress(RuntimeError, UserWarning):  # torch refuses to tell where older and newer ones disagree
        older = torch.get_float32_matmul_precision()
    for place in _ALL:  # the switch of all first: what has a value of its own shows it then
        undo.append(partial(torch._C._set_fp32_precision_setter, *place, _value(place)))
        torch._C._set_fp32_precision_setter(*place, "none")
    if older != "highest":
        own = [(place, _value(place)) for place in _PRODUCTS]
        undo.append(partial(_put_products_back, older, own))
        torch.set_float32_matmul_precision("highest")
    torch._C._set_fp32_precision_setter(*_ALL[0], "ieee")
    for place in _ON_THE_CPU + _ON_A_GPU:
        if (found := _value(place)) not in _FULL:
            undo.append(partial(torch._C._set_fp32_precision_setter, *place, found))
            torch._C._set_fp32_precision_setter(*place, "ieee")


def _put_products_back(older: str, own: list[tuple[tuple[str, str], str]]) -> None:
    """The older switch writes those of both devices, whatever they were."""
    torch.set_float32_matmul_precision(older)
    for place, value in own:
        torch._C._set_fp32_precision_setter(*place, value)


def _switch_older(undo: Undo) -> None:
    _put_older(undo, torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest")
    _put_older(undo, _cudnn_rounds, _let_cudnn_round, False)


def _put_older(undo: Undo, get: Callable[[], Any], put: Callable[[Any], None], full: Any) -> None:
    with suppress(RuntimeError, UserWarning):  # as above; torch 2.9 warns of the older ones, once
        found = get()
        if found != full:
            undo.append(partial(put, found))
            put(full)


def _cudnn_rounds() -> bool:
    return torch.backends.cudnn.allow_tf32


def _let_cudnn_round(allowed: bool) -> None:
    torch.backends.cudnn.allow_tf32 = allowed
