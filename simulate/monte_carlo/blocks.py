"""Blocks of replicates: named random streams, and the function that runs a block."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import itertools
import math
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulate._checks import Floats
from simulate.monte_carlo.devices import own_gpu
from simulate.monte_carlo.points import Point

if TYPE_CHECKING:
    import torch

BLOCK = 16
"""Replicates in a block; the sample sizes at interim looks are multiples, so a block never depends on the look."""

Scores = dict[str, Floats]
"""One array per named score, of shape (replicates,) or, for a vector, (replicates, components)."""


@dataclass(frozen=True)
class Block:
    """A block of replicates, sixteen by default: their random streams, and the device of their tensors.

    Attributes
    ----------
    keys
        Keys of the counter-based generator, `simulate.monte_carlo.philox`, one for each replicate: normal tensors are
        then drawn on the device. Without keys they are drawn from the streams on the CPU and copied.
    """

    streams: tuple[np.random.Generator, ...]
    device: str = "cpu"
    keys: tuple[tuple[int, int], ...] = ()
    _draws: Iterator[int] = field(default_factory=itertools.count, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.streams)

    def repeated(self, count: int) -> Block:
        """Repeat every replicate `count` times in a row: the copies share its stream in turn, and each has its own key.

        Examples
        --------
        >>> twice = Block((fixture(0, "a"), fixture(0, "b")), keys=((1, 2), (3, 4))).repeated(2)
        >>> len(twice), len(set(twice.keys)), twice.streams[0] is twice.streams[1]
        (4, 4, True)
        """
        draw = next(self._draws)
        streams = tuple(rng for rng in self.streams for _ in range(count))
        keys = tuple(_key(f"repeated\n{key}\n{draw}\n{i}") for key in self.keys for i in range(count))
        return Block(streams, self.device, keys)

    def stack(self, draw: Callable[[np.random.Generator], NDArray[Any]]) -> torch.Tensor:
        """Draw once per replicate, on the CPU whatever the device, stacked along the first axis."""
        import torch

        return torch.from_numpy(np.stack([draw(stream) for stream in self.streams])).to(self.device)

    def normal(self, *shape: int) -> torch.Tensor:
        """Draw a standard normal tensor of shape (replicates, *shape), float64."""
        import torch

        if not self.keys:
            drawn = np.empty((len(self), math.prod(shape)))
            for stream, own in zip(self.streams, drawn, strict=True):
                stream.standard_normal(out=own)
            return torch.from_numpy(drawn.reshape(len(self), *shape)).to(self.device)

        from simulate.monte_carlo import philox

        keys = torch.tensor(self.keys, device=self.device)
        # draws are numbered, or two draws of a replicate would give the same numbers
        return philox.counted_normal(keys, math.prod(shape), draw=next(self._draws)).view(len(self), *shape)


class BlockResult(NamedTuple):
    """Scores of one block and the seconds it took: CPU time, or wall-clock time if another device was used."""

    scores: Scores
    seconds: float


def stream(seed: int, experiment: str, point: Point, replicate: int) -> np.random.Generator:
    """Return the random generator of one replicate: Philox, seeded by a hash of the arguments.

    Examples
    --------
    >>> a, b = (stream(1, "spiked-wigner", Point(dim=2), 7).random() for _ in range(2))
    >>> a == b, a == stream(1, "spiked-wigner", Point(dim=2), 8).random()
    (True, False)
    """
    return _generator(seed, f"{experiment}\n{point.canonical()}\n{replicate}")


def counted_key(seed: int, experiment: str, point: Point, replicate: int) -> tuple[int, int]:
    """Return the key of one replicate for the counter-based generator: two words of a hash of the arguments.

    Examples
    --------
    >>> one, same, other = (counted_key(1, "spiked-wigner", Point(dim=2), i) for i in (7, 7, 8))
    >>> one == same, one == other, all(0 <= word < 2**32 for word in one)
    (True, False, True)
    """
    return _key(f"counted\n{seed}\n{experiment}\n{point.canonical()}\n{replicate}")


def fixture(seed: int, name: str) -> np.random.Generator:
    """Return the generator of an object that all replicates share (a fixed matrix, a population), by its name."""
    return _generator(seed, f"fixture\n{name}")


def run_block(
    simulate: Callable[[Block, Point], Mapping[str, Any]],
    *,
    experiment: str,
    point: Point,
    seed: int,
    index: int,
    device: str = "cpu",
    size: int = BLOCK,
    counted: bool | None = None,
) -> BlockResult:
    """Run block `index`, the `size` replicates from `size * index` on, on one thread, and check its scores.

    Normal tensors are drawn by the counter-based generator if `counted`; by default if the device is not the CPU.

    Raises
    ------
    ValueError
        If a score is not one number or one vector per replicate (NaN and infinity pass: the verdict names them).
    """
    device = own_gpu(device)
    if device != "cpu":
        importlib.import_module("torch")  # whose settings hold for this block too
    # the time of this thread stands still while a GPU computes
    clock = time.thread_time if device == "cpu" else time.perf_counter
    started = clock()
    names = [(seed, experiment, point, size * index + i) for i in range(size)]
    counted = device != "cpu" if counted is None else counted
    keys = tuple(counted_key(*name) for name in names) if counted else ()
    with one_thread():
        raw = simulate(Block(tuple(stream(*name) for name in names), device, keys), point)
    scores: Scores = {}
    for name, values in raw.items():
        array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
        whole = array.ndim in (1, 2) and len(array) == size and array.size
        if not whole or array.dtype.kind not in "buif":
            rule = f"one number or one vector per replicate, shape ({size},) or ({size}, components)"
            raise ValueError(f"score {name!r} must be {rule}, got {array.dtype} of shape {array.shape}")
        scores[name] = array.astype(np.float64)
    return BlockResult(scores, clock() - started)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Use one BLAS and one torch thread, with TF32 off: results have the same bits for any number of workers."""
    importlib.import_module("scipy.linalg")  # brings a BLAS of its own, which the limit must find loaded

    threads = 0
    # torch takes seconds to load: where it would have one thread from the start, as in workers, wait until it is needed
    if (
        "torch" in sys.modules
        or not os.environ.get("OMP_NUM_THREADS") == os.environ.get("MKL_NUM_THREADS", "1") == "1"
    ):
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    try:
        # a module imported since then may have brought another thread pool
        with _thread_pools(len(sys.modules)).limit(limits=1):
            yield
    finally:
        if threads:
            sys.modules["torch"].set_num_threads(threads)


@lru_cache(maxsize=1)
def _thread_pools(_modules: int) -> Any:
    """Return the thread pools of the loaded libraries; cached, since the search takes longer than many blocks."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _generator(seed: int, name: str) -> np.random.Generator:
    size = max(16, 4 * -(seed.bit_length() // -32))
    # what numpy makes of the seed and of words of the hash as a spawn key, in half the time
    words = np.frombuffer(seed.to_bytes(size, "little") + _digest(name), dtype="<u4")
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(words)))


def _key(name: str) -> tuple[int, int]:
    return struct.unpack_from("<2I", _digest(name))


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()
