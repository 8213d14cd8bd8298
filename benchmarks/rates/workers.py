"""Networks side by side, each in a process of its own; what was done is told as it is done."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

import torch

from benchmarks.rates.cells import Effort, named
from benchmarks.rates.grid import work
from benchmarks.rates.records import Records

__all__ = ["pieces"]

_found: Any = None
"""Of a worker: where it puts what was done."""


def pieces(
    names: Sequence[str], effort: Effort, folder: Path, images: str | None, workers: int
) -> Iterator[tuple[str, float]]:
    """Work on networks, in this process if there is one worker.

    Yields
    ------
    tuple[str, float]
        What was done, and guessed seconds of it.

    Raises
    ------
    BrokenProcessPool
        If a worker dies.
    """
    if workers == 1:
        for name in names:
            yield from work(named(name), effort, Records(folder / f"{name}.jsonl"), images)
        return
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    with ProcessPoolExecutor(workers, context, _prepare, (queue,)) as pool:
        waiting = [pool.submit(_network, name, effort, folder, images) for name in names]
        try:
            while not all(one.done() for one in waiting) or not queue.empty():
                with suppress(Empty):
                    yield queue.get(timeout=1.0)
        except BaseException:  # the pool would wait for the networks that are under way
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise
        for one in waiting:
            one.result()


def _prepare(queue: Any) -> None:
    global _found
    _found = queue
    torch.set_num_threads(1)


def _network(name: str, effort: Effort, folder: Path, images: str | None) -> None:
    for piece in work(named(name), effort, Records(folder / f"{name}.jsonl"), images):
        _found.put(piece)
