"""Memory: what a call needs against what there is, so that an absurd size is refused before it is allocated."""

from __future__ import annotations

import math
import os
from pathlib import Path

import torch

from simulate import _limits

_UNASKED = 1 << 26
"""Bytes to be had wherever torch runs: for so few nobody is asked, since the answer costs more than the array."""

_TOLD = 1 << 80
"""Sizes beyond are not written out: their digits would fill a page."""


def require_free(
    name: str,
    needed: int,
    what: str,
    *,
    device: torch.device | str = "cpu",
    advice: str = "use smaller sizes",
) -> None:
    """Refuse the argument `name` if `what`, a plural, needs more bytes than the device has free.

    Raises
    ------
    ValueError
        Naming the argument, the need and what there is.
    """
    if needed <= _UNASKED:
        return
    free = available(device)
    if needed > free:
        raise ValueError(
            f"{name} must be small enough for memory: {what} need about {_gib(needed)}, got {_gib(free)};"
            f" {advice}"
        )


def is_free(needed: int, device: torch.device | str) -> bool:
    """Whether so many bytes can be allocated on a device now."""
    return needed <= _UNASKED or needed <= available(device)


def available(device: torch.device | str) -> float:
    """Bytes to be had on a device now, within the limits of the process; infinite where the system does not tell."""
    device = torch.device(device)
    if device.type == "cuda":
        return _available_there(device)
    return min(_free(), _limits.memory())


def bound(device: torch.device, share: float) -> None:
    """Let this process take no more than that share of the memory of a GPU."""
    torch.cuda.set_per_process_memory_fraction(share, device)
    _shares[device] = share


_shares: dict[torch.device, float] = {}
"""Of the memory of GPUs, where this process may not take all."""


def _available_there(device: torch.device) -> float:
    """What is free on a GPU, and what torch keeps of it for the next tensor."""
    free, whole = torch.cuda.mem_get_info(device)
    used = torch.cuda.memory_allocated(device)
    kept = torch.cuda.memory_reserved(device) - used
    return min(free + kept, _shares.get(device, 1.0) * whole - used)


def _free() -> float:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return _installed()


def _installed() -> float:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not told on this system: nothing to refuse by
        return math.inf


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size < _TOLD else f"more than {_TOLD / 2**30:.0e} GiB"
