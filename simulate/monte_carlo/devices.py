"""Devices by name, and the assignment of GPUs to workers."""

from __future__ import annotations

import multiprocessing
import re
from functools import lru_cache
from typing import NamedTuple


def resolve_device(name: str, *, here: bool = True) -> str:
    """Resolve ``auto``, ``cpu`` or ``cuda[:index]`` to a device of this machine, or of another one if not `here`.

    Raises
    ------
    ValueError
        If the device is unknown or absent.
    """
    if name == "cpu":  # always there, and torch takes a second or two to be imported
        return name
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch(r"cpu|cuda(:[0-9]+)?", name):
        raise ValueError(f"device must be auto, cpu, cuda or cuda:<index>, got {name!r}")
    kind, _, index = name.partition(":")
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if here and kind == "cuda" and int(index or 0) >= there:
        raise ValueError(
            f"device {name!r} not found, GPUs on this machine: {there}; use --device cpu or auto"
        )
    return name


class Share(NamedTuple):
    """GPU of a worker, and the share of its memory that the worker may take."""

    device: str
    memory: float


def dealt_out(worker: int, workers: int, gpus: int) -> Share:
    """Return the GPU of worker `worker`, counted from 0, and its share: one over the number of workers on that GPU.

    Examples
    --------
    >>> [dealt_out(i, 3, 2) for i in range(3)]
    [Share(device='cuda:0', memory=0.5), Share(device='cuda:1', memory=1.0), Share(device='cuda:0', memory=0.5)]
    """
    own = worker % gpus
    return Share(f"cuda:{own}", 1 / len(range(own, max(workers, own + 1), gpus)))


def free_memory(device: str, workers: int = 1) -> float:
    """Return the free bytes for each of `workers` local workers; with several GPUs, on the one with the least.

    Examples
    --------
    >>> round(free_memory("cpu") / free_memory("cpu", 2))  # what is free changes from one call to the next
    2
    """
    import torch

    from simulate import _memory

    if device != "cuda":
        return _memory.available(device) / workers
    gpus = max(1, torch.cuda.device_count())
    shares = [dealt_out(worker, workers, gpus) for worker in range(workers)]
    return min(share.memory * _memory.available(share.device) for share in shares)


_pool_size = 1
"""Number of workers in the pool of this process."""


def join_pool(workers: int) -> None:
    """Set the number of workers in the pool of this process, at its start."""
    global _pool_size
    _pool_size = workers


def own_gpu(device: str) -> str:
    """Return the GPU assigned to this local worker for ``cuda``; the first call limits its memory."""
    place = getattr(multiprocessing.current_process(), "_identity", ())  # of a child its number
    if device != "cuda" or not place:
        return device
    import torch

    own = dealt_out(place[-1] - 1, _pool_size, max(1, torch.cuda.device_count()))
    _bound_memory(own)
    return own.device


@lru_cache(maxsize=1)
def _bound_memory(own: Share) -> None:
    import torch

    from simulate import _memory

    _memory.bound(torch.device(own.device), own.memory)
