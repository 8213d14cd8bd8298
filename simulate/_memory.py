"""Checks of free memory, so that an absurd size is refused before it is allocated."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

import torch

from simulate import _limits

_UNCHECKED = 1 << 26
"""Bytes that are allocated without a check, which would cost more than the array."""

_PRINTABLE = 1 << 80
"""Largest size, in bytes, that is written out: the digits of larger ones would fill a page."""


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
        If so, naming the argument, the bytes needed and those free.
    """
    if needed <= _UNCHECKED:
        return
    free = available(device)
    if needed > free:
        raise ValueError(
            f"{name} must be small enough for memory: {what} need about {_gib(needed)}, got {_gib(free)};"
            f" {advice}"
        )


def is_free(needed: int, device: torch.device | str) -> bool:
    """Return whether `needed` bytes can be allocated on a device now."""
    return needed <= _UNCHECKED or needed <= available(device)


def available(device: torch.device | str) -> float:
    """Return the free bytes of a device within the limits of the process; infinite if the system does not tell."""
    device = torch.device(device)
    if device.type == "cuda":
        return _free_on_gpu(device)
    return min(_free(), _limits.memory())


def bound(device: torch.device, share: float) -> None:
    """Limit this process to a share of the memory of a GPU."""
    torch.cuda.set_per_process_memory_fraction(share, device)
    _shares[device] = share


_shares: dict[torch.device, float] = {}
"""Share of the memory of each GPU to which this process is limited."""


def _free_on_gpu(device: torch.device) -> float:
    """Return the bytes free on a GPU, including those that torch has reserved for new tensors."""
    free, whole = torch.cuda.mem_get_info(device)
    used = torch.cuda.memory_allocated(device)
    cached = torch.cuda.memory_reserved(device) - used
    # the driver counts the blocks that torch caches as used, and knows nothing of this process's share
    return min(free + cached, _shares.get(device, 1.0) * whole - used)


def _free() -> float:
    with suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        # not MemFree, which leaves out the caches that the kernel gives up on demand
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # all memory, used or not
    return math.inf  # unknown on this system: nothing is refused


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size < _PRINTABLE else f"more than {_PRINTABLE / 2**30:.0e} GiB"
