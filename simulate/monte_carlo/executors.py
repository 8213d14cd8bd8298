"""Executors of blocks: this process, local processes, or a Dask cluster."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import math
import multiprocessing
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any

from simulate import _limits
from simulate.monte_carlo.devices import join_pool


def default_workers(device: str = "cpu") -> int:
    """Return one worker per core that this process may use, within its control group's quota; or one per GPU."""
    if device == "cuda":
        import torch

        return max(1, torch.cuda.device_count())
    if device != "cpu":
        return 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return math.ceil(min(allowed, _limits.cores()))


@contextlib.contextmanager
def open_executor(workers: int, address: str | None = None) -> Iterator[Executor]:
    """Open an executor: this process (1 worker), local processes, or a Dask cluster at ``dask://host:port``.

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
    """Runs each call on a Dask cluster, and reports the state of the cluster.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    """

    CORES_FOR = 2.0
    """Seconds for which the number of cores is cached."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._cores, self._counted = 0, -math.inf

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` on a worker; if that dies, the cluster chooses another."""
        found: Future[Any] = Future()
        remote = self._client.submit(fn, *args, **kwargs, pure=False)

        def hand_over(done: Any) -> None:
            try:
                found.set_result(done.result())
            except BaseException as error:  # a cancellation among them, which is no plain exception here
                found.set_exception(error)

        remote.add_done_callback(hand_over)
        return found

    @property
    def cores(self) -> int:
        """Number of cores of the cluster, 0 while it has no workers."""
        if time.monotonic() - self._counted > self.CORES_FOR and not self.lost:
            with contextlib.suppress(OSError, TimeoutError):  # a scheduler about to be lost
                self._cores = sum(
                    self._client.sync(self._client.scheduler.ncores, callback_timeout=5).values()
                )
            self._counted = time.monotonic()
        return self._cores

    @property
    def lost(self) -> str:
        """Reason why the cluster can return nothing more; empty if it can."""
        return "" if self._client.status == "running" else "the connection to the Dask scheduler was lost"

    def deaths(self, error: BaseException) -> int:
        """Return the number of workers that died in a call that ended in this error; 0 for another error."""
        from distributed import KilledWorker

        return error.allowed_failures + 1 if isinstance(error, KilledWorker) else 0


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


def _begin_worker(workers: int) -> None:
    join_pool(workers)
    # for torch, if it is loaded later: one thread, and no TF32 on a GPU
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NVIDIA_TF32_OVERRIDE": "0"}
    parent = multiprocessing.parent_process()

    def follow() -> None:  # a worker whose parent was killed would wait for work forever
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    # large arrays handed back to the system and taken anew are cleared page by page: up to a third of a block
    with contextlib.suppress(OSError, AttributeError, TypeError):  # where the C library is another
        for name, value in (
            (-4, 0),
            (-1, 1 << 29),
        ):  # M_MMAP_MAX and M_TRIM_THRESHOLD of malloc.h: keep 512 MiB
            ctypes.CDLL(None).mallopt(name, value)
