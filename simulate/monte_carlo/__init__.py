"""Replicates: independent streams, blocks of sixteen as the unit of work, and the executors that run them.

Replicate ``i`` of an experiment depends on (suite seed, experiment, parameters, ``i``) and on nothing else,
so more replicates only append, the number of workers does not matter, and one replicate can be rerun alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import itertools
import json
import logging
import math
import multiprocessing
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulate import _limits

if TYPE_CHECKING:
    import torch

__all__ = [
    "BLOCK",
    "Block",
    "BlockResult",
    "DaskExecutor",
    "Point",
    "Scores",
    "SerialExecutor",
    "Share",
    "counted_key",
    "dealt_out",
    "default_workers",
    "fixture",
    "one_thread",
    "open_executor",
    "resolve_device",
    "run_block",
    "stream",
]

BLOCK = 16
"""Replicates drawn and decomposed together; looks are rounded to it, so a block never depends on the look."""

Scores = dict[str, NDArray[np.float64]]
"""One array per named score, of shape (replicates,) or, for a vector, (replicates, components)."""


class Point(Mapping[str, Any]):
    """The parameters of one run of an experiment: immutable, hashable, read as attributes.

    Values are numbers, strings, booleans, or tuples of these, so that a point has one JSON form on every
    machine.

    Raises
    ------
    ValueError
        If a value is anything else, or a name would hide a method (``keys``, ``get``, ...).

    Examples
    --------
    >>> p = Point(dim=200, spike=1.7)
    >>> p.spike, p | {"spike": 2.5}
    (1.7, Point(dim=200, spike=2.5))
    """

    __slots__ = ("_values",)
    _values: dict[str, Any]

    def __init__(self, **values: Any) -> None:
        for name in values:
            if hasattr(Point, name):
                raise ValueError(f"parameter must be named other than the methods of a point, got {name!r}")
        object.__setattr__(self, "_values", {name: _frozen(name, value) for name, value in values.items()})

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "_values")[name]
        except KeyError:
            raise AttributeError(f"no parameter {name!r}; this point has {', '.join(self._values)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a point is immutable; write point | {{{name!r}: value}}")

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __or__(self, other: Mapping[str, Any]) -> Point:
        return Point(**{**self._values, **other})

    def __hash__(self) -> int:
        return hash(self.canonical())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.canonical() == other.canonical()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self._values,))

    def __repr__(self) -> str:
        return f"Point({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"

    def canonical(self) -> str:
        """The JSON form, keys sorted: what streams and results are filed under."""
        return json.dumps(self._values, sort_keys=True)


@dataclass(frozen=True)
class Block:
    """Replicates at work, sixteen or what a run asks for: their streams, and the device their tensors live on.

    Attributes
    ----------
    keys
        Of the generator that counts, `simulate.monte_carlo.philox`, one for each replicate: normal tensors are then
        drawn where they live. Without keys they come from the streams, and are sent.
    """

    streams: tuple[np.random.Generator, ...]
    device: str = "cpu"
    keys: tuple[tuple[int, int], ...] = ()
    _draws: Iterator[int] = field(default_factory=itertools.count, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.streams)

    def repeated(self, count: int) -> Block:
        """Every replicate `count` times in a row: its stream goes on from one to the next, and each has its own key.

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
        """Standard normal tensor of shape (replicates, *shape), float64."""
        if not self.keys:
            return self.stack(lambda rng: rng.standard_normal(shape))
        import torch

        from simulate.monte_carlo import philox

        keys = torch.tensor(self.keys, device=self.device)
        return philox.counted_normal(keys, math.prod(shape), draw=next(self._draws)).view(len(self), *shape)


class BlockResult(NamedTuple):
    """Scores of one block and the seconds it took: of one core, or on the clock where another device has worked."""

    scores: Scores
    seconds: float


def stream(seed: int, experiment: str, point: Point, replicate: int) -> np.random.Generator:
    """The random generator of one replicate: Philox, seeded by a hash of all that names the replicate.

    Examples
    --------
    >>> a, b = (stream(1, "spiked-wigner", Point(dim=2), 7).random() for _ in range(2))
    >>> a == b, a == stream(1, "spiked-wigner", Point(dim=2), 8).random()
    (True, False)
    """
    return _generator(seed, f"{experiment}\n{point.canonical()}\n{replicate}")


def counted_key(seed: int, experiment: str, point: Point, replicate: int) -> tuple[int, int]:
    """The key of one replicate for the generator that counts: two words of a hash of all that names it.

    Examples
    --------
    >>> one, same, other = (counted_key(1, "spiked-wigner", Point(dim=2), i) for i in (7, 7, 8))
    >>> one == same, one == other, all(0 <= word < 2**32 for word in one)
    (True, False, True)
    """
    return _key(f"counted\n{seed}\n{experiment}\n{point.canonical()}\n{replicate}")


def fixture(seed: int, name: str) -> np.random.Generator:
    """The generator of something that all replicates share (a fixed matrix, a population), by its name."""
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
    """Run block `index` (replicates `size` index and on, `size` of them) on one thread and check what it returns.

    Normal tensors are drawn by the generator that counts if `counted`; by default where the device is not the CPU.

    Raises
    ------
    ValueError
        If a score is not one number or one vector per replicate (NaN and infinity pass: the verdict names them).
    """
    device = _own_gpu(device)
    clock = time.thread_time if device == "cpu" else time.perf_counter
    started = clock()
    names = [(seed, experiment, point, size * index + i) for i in range(size)]
    counted = device != "cpu" if counted is None else counted
    keys = tuple(counted_key(*name) for name in names) if counted else ()
    with one_thread():
        raw = simulate(Block(tuple(stream(*name) for name in names), device, keys), point)
    return BlockResult({name: _column(name, values, size) for name, values in raw.items()}, clock() - started)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One BLAS and one torch thread, TF32 off: the same bits for any number of workers."""
    import torch

    importlib.import_module("scipy.linalg")  # brings a BLAS of its own, which the limit must find loaded

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    try:
        with _thread_pools(len(sys.modules)).limit(limits=1):
            yield
    finally:
        torch.set_num_threads(threads)


@lru_cache(maxsize=1)
def _thread_pools(_modules: int) -> Any:
    """The thread pools of the libraries loaded so far; finding them takes longer than many a block."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class SerialExecutor(Executor):
    """Runs each call at once, in this process: one worker without a second interpreter."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` now and return its finished future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # handed to the caller through the future, as any executor does
            future.set_exception(error)
        return future


class DaskExecutor(Executor):
    """Runs each call on a Dask cluster, and knows how the cluster is.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    """

    CORES_FOR = 2.0
    """Seconds for which the number of cores is believed."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._cores, self._counted = 0, -math.inf

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` on a worker; if that dies, the cluster chooses another."""
        found: Future[Any] = Future()
        remote = self._client.submit(fn, *args, **kwargs, pure=False)
        remote.add_done_callback(lambda done: _hand_over(done, found))
        return found

    @property
    def cores(self) -> int:
        """Cores of the cluster, 0 while none is there."""
        if time.monotonic() - self._counted > self.CORES_FOR and not self.lost:
            with contextlib.suppress(OSError, TimeoutError):  # a scheduler about to be lost
                self._cores = sum(
                    self._client.sync(self._client.scheduler.ncores, callback_timeout=5).values()
                )
            self._counted = time.monotonic()
        return self._cores

    @property
    def lost(self) -> str:
        """Why nothing more can come from the cluster; empty while all is well."""
        return "" if self._client.status == "running" else "the connection to the Dask scheduler was lost"

    def deaths(self, error: BaseException) -> int:
        """How many workers died of a call that ended in this error, 0 if it ended otherwise."""
        from distributed import KilledWorker

        return error.allowed_failures + 1 if isinstance(error, KilledWorker) else 0


@contextlib.contextmanager
def open_executor(workers: int, address: str | None = None) -> Iterator[Executor]:
    """An executor: this process (1 worker), local processes, or a Dask cluster at ``dask://host:port``.

    Raises
    ------
    ValueError
        If `address` is not a Dask address, the cluster extra is not installed, or nobody answers there.
    """
    if address is not None:
        with _dask_client(address) as client:
            yield DaskExecutor(client)
    elif workers == 1:
        yield SerialExecutor()
    else:
        # spawn: torch and BLAS threads do not survive a fork
        spawn = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_begin_worker, initargs=(workers,))
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def resolve_device(name: str, *, here: bool = True) -> str:
    """``auto``, ``cpu`` or ``cuda[:index]`` to a device that is there, or if not `here` may be elsewhere.

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
    if (
        here
        and kind == "cuda"
        and (not torch.cuda.is_available() or int(index or 0) >= torch.cuda.device_count())
    ):
        raise ValueError(f"device must be present on this machine, got {name!r}; use --device cpu or auto")
    return name


class Share(NamedTuple):
    """The GPU of a worker, and the part of its memory that it may take."""

    device: str
    memory: float


def dealt_out(worker: int, workers: int, gpus: int) -> Share:
    """Of several GPUs the one that worker `worker`, counted from 0, works on, and its share: one over those beside it.

    Examples
    --------
    >>> [dealt_out(i, 3, 2) for i in range(3)]
    [Share(device='cuda:0', memory=0.5), Share(device='cuda:1', memory=1.0), Share(device='cuda:0', memory=0.5)]
    """
    own = worker % gpus
    return Share(f"cuda:{own}", 1 / len(range(own, max(workers, own + 1), gpus)))


def default_workers(device: str = "cpu") -> int:
    """One worker per core this process may use, no more than its control group grants the time of; or one per GPU."""
    if device == "cuda":
        import torch

        return max(1, torch.cuda.device_count())
    if device != "cpu":
        return 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return math.ceil(min(allowed, _limits.cores()))


@contextlib.contextmanager
def _dask_client(address: str) -> Iterator[Any]:
    host = address.removeprefix("dask://")
    if host == address or not re.fullmatch(r"\S+:[0-9]+", host):
        raise ValueError(f"executor must be dask://host:port, got {address!r}")
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(
            "executor dask:// needs the cluster extra: pip install 'losscurv[cluster]'"
        ) from None
    try:
        client = Client(f"tcp://{host}", timeout="10s")
    except (OSError, TimeoutError) as error:
        raise ValueError(f"executor {address} must be a running Dask scheduler, got {error}") from None
    log = logging.getLogger("distributed.client")
    before = log.level
    log.setLevel(logging.CRITICAL)  # a lost scheduler is said by us in a line, there in a page of traceback
    try:
        yield client
    finally:
        client.close()
        log.setLevel(before)


def _hand_over(remote: Any, local: Future[Any]) -> None:
    try:
        local.set_result(remote.result())
    except BaseException as error:  # a cancellation among them, which is no plain exception here
        local.set_exception(error)


_beside = 1
"""Workers of the pool that this process belongs to."""


def _own_gpu(device: str) -> str:
    """Of ``cuda`` in a local worker the GPU that is dealt to it; the first time its memory is bounded."""
    place = getattr(multiprocessing.current_process(), "_identity", ())  # of a child its number
    if device != "cuda" or not place:
        return device
    import torch

    own = dealt_out(place[-1] - 1, _beside, max(1, torch.cuda.device_count()))
    _bound_memory(own)
    return own.device


@lru_cache(maxsize=1)
def _bound_memory(own: Share) -> None:
    import torch

    torch.cuda.set_per_process_memory_fraction(own.memory, torch.device(own.device))


_MMAP_MAX, _TRIM_THRESHOLD = -4, -1
"""Names of mallopt(3), from malloc.h."""

_KEPT_BYTES = 1 << 29
"""Of memory no longer used that a worker keeps for its next block."""


def _begin_worker(workers: int) -> None:
    global _beside
    _beside = workers
    _end_with_parent()
    _keep_freed_memory()


def _keep_freed_memory() -> None:
    """Large arrays handed back to the system and taken anew are cleared page by page: up to a third of a block."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # where the C library is another
        tune = ctypes.CDLL(None).mallopt
        tune(_MMAP_MAX, 0)
        tune(_TRIM_THRESHOLD, _KEPT_BYTES)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _generator(seed: int, name: str) -> np.random.Generator:
    words = np.frombuffer(hashlib.sha256(name.encode()).digest(), dtype="<u4")
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=words.tolist())))


def _key(name: str) -> tuple[int, int]:
    first, second = np.frombuffer(hashlib.sha256(name.encode()).digest()[:8], dtype="<u4").tolist()
    return first, second


def _frozen(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_frozen(name, v) for v in value)
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, bool | int | float | str):
        raise ValueError(f"{name} must be a number, a string, a boolean or a tuple of these, got {value!r}")
    return plain


def _rebuild(values: dict[str, Any]) -> Point:
    return Point(**values)


def _column(name: str, values: Any, size: int) -> NDArray[np.float64]:
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    whole = array.ndim in (1, 2) and len(array) == size and array.size
    if not whole or array.dtype.kind not in "buif":
        rule = f"one number or one vector per replicate, shape ({size},) or ({size}, components)"
        raise ValueError(f"score {name!r} must be {rule}, got {array.dtype} of shape {array.shape}")
    return array.astype(np.float64)
