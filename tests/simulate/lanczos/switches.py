"""Torch's switches of precision before, within and after `in_full_precision`, from each state they may be in."""

import multiprocessing
from collections.abc import Callable
from typing import Any

import torch

from simulate.lanczos import precision
from simulate.lanczos.precision import in_full_precision

NEWER = hasattr(torch._C, "_get_fp32_precision_getter")

PLACES = [(b, o) for b in ("cuda", "mkldnn") for o in ("matmul", "conv", "rnn")]
FREED = [("cuda", "conv"), ("cuda", "rnn")]  # see the docstring of in_full_precision
ALL = [("generic", "all"), ("cuda", "all"), ("mkldnn", "all")]


def seen(states: dict[str, str]) -> dict[str, Any]:
    """Look at each in a process of its own: torch cannot be led back to the state it begins with."""
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        return dict(zip(states, pool.map(_look, states.values(), chunksize=1), strict=True))


def _look(code: str) -> tuple[bool, list[bool], bool]:
    """Whether products may be rounded before and at times within, and whether all is as before at the end."""
    precision._has_gpu = lambda: True
    exec(code)
    mixed = _ask(lambda: torch.backends.cudnn.allow_tf32) == "refused"
    before, first = _state(), _rounds()
    with in_full_precision():
        within = [_rounds()]
        with in_full_precision():
            within.append(_rounds())
        if not mixed:  # else torch refuses these flags with or without us
            with torch.backends.cudnn.flags(enabled=False, allow_tf32=False):
                within.append(_rounds())
        within.append(_rounds())
    return first, within, _state() == before


def _ask(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except RuntimeError:
        return "refused"


def _values(places: list[tuple[str, str]] = PLACES) -> list[str]:
    return [torch._C._get_fp32_precision_getter(*p) for p in places] if NEWER else []


def _state() -> list[Any]:
    found = [
        _ask(torch.get_float32_matmul_precision),
        _ask(lambda: torch.backends.cudnn.allow_tf32),
        _values(),
    ]
    kept = _values(ALL)
    # own values show under each value of the switch of all
    for value in ("none", "ieee", "tf32") if NEWER else ():
        for p in ALL:
            torch._C._set_fp32_precision_setter(*p, value)
        found.append(_values([p for p in PLACES if p not in FREED]))
    for p, value in zip(ALL, kept, strict=False):
        torch._C._set_fp32_precision_setter(*p, value)
    return found + kept


def _rounds() -> bool:
    if NEWER:
        return any(v not in ("ieee", "none") for v in _values())
    return torch.backends.cudnn.allow_tf32 or torch.get_float32_matmul_precision() != "highest"
