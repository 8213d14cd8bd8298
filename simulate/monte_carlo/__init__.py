"""Replicates: independent streams, blocks of sixteen as the unit of work, and the executors that run them.

Replicate ``i`` of an experiment depends on (suite seed, experiment, parameters, ``i``) and on nothing else,
so more replicates only append, the number of workers does not matter, and one replicate can be rerun alone.
"""

from __future__ import annotations

from simulate.monte_carlo.blocks import (
    BLOCK,
    Block,
    BlockResult,
    Scores,
    counted_key,
    fixture,
    one_thread,
    run_block,
    stream,
)
from simulate.monte_carlo.devices import free_memory, resolve_device
from simulate.monte_carlo.executors import DaskExecutor, SerialExecutor, default_workers, open_executor
from simulate.monte_carlo.points import Point

__all__ = [
    "BLOCK",
    "Block",
    "BlockResult",
    "DaskExecutor",
    "Point",
    "Scores",
    "SerialExecutor",
    "counted_key",
    "default_workers",
    "fixture",
    "free_memory",
    "one_thread",
    "open_executor",
    "resolve_device",
    "run_block",
    "stream",
]
