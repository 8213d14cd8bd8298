"""Processes that each hold some of the samples: sums over them, and errors that reach all of them.

Every exchange begins with a few numbers from each process: whether it has failed, what it is about to exchange, and a
digest of what must be the same everywhere. An error in one process is therefore raised in all of them, so that none
waits forever. Calls in different orders, or with different vectors or parameters, are refused instead of summed.
"""

from __future__ import annotations

import atexit
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed

_ADVICE = {
    "vectors": "draw them from generators of one seed",
    "parameters": "load one checkpoint in all of them, or broadcast parameters and buffers of one",
    "reduction": "build the same objective in all of them",
}
"""Quantities that must be the same in all processes, each with advice if it is not."""


class LostProcessError(ValueError):
    """Raised if a process of the group can no longer be reached."""


class Ranks:
    """The processes of a group; without a group, this process alone.

    Parameters
    ----------
    group
        A process group of `torch.distributed`; None without one.

    Attributes
    ----------
    size, rank
        Number of processes, and the rank of this one among them.

    Raises
    ------
    ValueError
        If `group` is not a process group, or does not contain this process.

    Examples
    --------
    >>> alone = Ranks(None)
    >>> alone.size, alone.total(torch.ones(2)), alone.gathered("a name", "here")
    (1, tensor([1., 1.]), ['here'])
    """

    def __init__(self, group: Any = None) -> None:
        self._group, self._depth = group, 0
        self.size, self.rank = 1, 0
        if group is None:
            return
        if not distributed.is_available() or not isinstance(group, distributed.ProcessGroup):
            raise ValueError(
                f"group must be a process group of torch.distributed that this process is in, got {group!r};"
                " call init_process_group, and pass torch.distributed.group.WORLD"
            )
        _wait_for_threads_at_exit()
        self.size, self.rank = distributed.get_world_size(group), distributed.get_rank(group)
        cuda = distributed.get_backend(group) == "nccl"
        # nccl exchanges tensors on GPUs only
        self._device = torch.device("cuda", torch.cuda.current_device()) if cuda else torch.device("cpu")

    @property
    def several(self) -> bool:
        """Whether there is a group, possibly of a single process."""
        return self._group is not None

    def require_reachable(self, device: torch.device) -> None:
        """Refuse a device whose tensors the group cannot exchange.

        Raises
        ------
        ValueError
            If the group uses NCCL and the device is not a GPU.
        """
        if self._group is not None and self._device.type == "cuda" != device.type:
            raise ValueError(
                f"parameters must be on a GPU for a group of nccl, got {device}; use a group of gloo"
            )

    @property
    def inside(self) -> bool:
        """Whether results are combined over all processes: within `together`, or without a group."""
        return not self.several or self._depth > 0

    @contextmanager
    def together(self, what: str, **same: Iterable[Any]) -> Iterator[None]:
        """Run a block in all processes, each on its own samples; if one fails, all do.

        Parameters
        ----------
        what
            Description in a few words, the same in all processes.
        same
            Tensors and words that must be equal to the last bit in all processes, by kind: vectors, parameters or
            reduction.

        Raises
        ------
        ValueError
            If another process has failed, with its message; or if something differs that must be the same.
        LostProcessError
            If another process has ended.
        """
        if self._group is None:
            yield
            return
        digests = {name: _digest(values) for name, values in same.items()}
        self._depth += 1
        try:
            yield
        except Exception as error:
            # the other processes wait for this one, and would wait forever
            if not _is_sent(error):
                self._send_failure(error)
            raise
        finally:
            self._depth -= 1
        self._check_agreement(what, digests)

    def require_same(self, **same: Iterable[Any]) -> None:
        """Refuse values that differ between processes, see `together`."""
        if self._group is not None:
            self._check_agreement("a comparison", {name: _digest(values) for name, values in same.items()})

    def total(self, own: Tensor) -> Tensor:
        """Sum a tensor over the processes, in place; the result is equal to the last bit in all of them."""
        if self._group is not None:
            self._check_agreement(f"the sum of {tuple(own.shape)} numbers of {own.dtype}", {})
            self._exchange(lambda: distributed.all_reduce(own, group=self._group))
        return own

    def sum(self, own: float) -> float:
        """Return the sum of a number over the processes."""
        if self._group is None:
            return own
        return float(self.total(torch.tensor([own], dtype=torch.float64, device=self._device)))

    def any(self, own: bool) -> bool:
        """Return whether a condition holds in any process."""
        return self.sum(float(own)) > 0

    def gathered(self, what: str, own: Any) -> list[Any]:
        """Return a small object of every process, in the order of their ranks."""
        if self._group is None:
            return [own]
        self._check_agreement(what, {})
        return self._objects(own)

    def rows(self, own: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of all processes, in the order of their ranks."""
        return own if self._group is None else np.concatenate(self.gathered("rows", own))

    def of_one(self, what: str, chosen: int, own: Any) -> Any:
        """Return the object of the process `chosen` in all processes."""
        if self._group is None:
            return own
        self._check_agreement(what, {})
        held = [own if self.rank == chosen else None]
        source = distributed.get_global_rank(self._group, chosen)
        self._exchange(lambda: distributed.broadcast_object_list(held, source, self._group))
        return held[0]

    def _check_agreement(self, what: str, digests: dict[str, int]) -> None:
        """Check that no process has failed and all make the same call; an error is raised in all processes."""
        found = self._headers([0, zlib.crc32(what.encode()), _combine_digests(digests.values())])
        if any(failed for failed, _, _ in found):
            rank, text = next(found for found in enumerate(self._objects("")) if found[1])
            raise _mark_as_sent(ValueError(f"process {rank} of {self.size}: {text}"))
        if len({call for _, call, _ in found}) > 1:
            got = "; ".join(dict.fromkeys(self._objects(what)))
            raise _mark_as_sent(
                ValueError(f"processes of a group must make the same calls in the same order, got {got}")
            )
        if len({digest for _, _, digest in found}) > 1:
            theirs = self._objects(digests)
            name = next(n for n in digests if len({each[n] for each in theirs}) > 1)
            same = f"{name} must be the same in all processes of a group, got others: {_ADVICE[name]}"
            raise _mark_as_sent(ValueError(same))

    def _send_failure(self, error: Exception) -> None:
        """Send the error of this process to the others, if they can be reached."""
        with suppress(LostProcessError):
            self._headers([1, 0, 0])
            own = isinstance(error, ValueError)
            self._objects(str(error) if own else f"{type(error).__name__}: {error}")
        _mark_as_sent(error)

    def _headers(self, own: list[int]) -> list[list[int]]:
        held = torch.tensor(own, device=self._device)
        found = [torch.empty_like(held) for _ in range(self.size)]
        self._exchange(lambda: distributed.all_gather(found, held, group=self._group))
        return [each.tolist() for each in found]

    def _objects(self, own: Any) -> list[Any]:
        found: list[Any] = [None] * self.size
        self._exchange(lambda: distributed.all_gather_object(found, own, group=self._group))
        return found

    def _exchange(self, exchange: Callable[[], Any]) -> None:
        try:
            exchange()
        except RuntimeError as error:  # raised by a backend if a connection ends or times out
            lost = LostProcessError(
                "processes of a group must all go on to the end, got one that no longer answers"
            )
            raise _mark_as_sent(lost) from error


@cache
def _wait_for_threads_at_exit() -> None:
    """Wait at exit for the threads of groups: one that is still running when Python ends aborts the process.

    These threads free the tensors of the last exchange after it is over, and need the interpreter for that.
    `destroy_process_group` does not wait for them while anything refers to the group.
    """
    atexit.register(time.sleep, 0.3)


_SENT_NOTE = "sent to all processes of the group"
"""Note on an error that the other processes know, so that it is sent only once."""


def _mark_as_sent(error: Exception) -> Exception:
    error.add_note(_SENT_NOTE)
    return error


def _is_sent(error: BaseException | None) -> bool:
    """Return whether the other processes know an error, or one that caused it."""
    while error is not None:
        if _SENT_NOTE in getattr(error, "__notes__", ()):
            return True
        error = error.__cause__ or error.__context__
    return False


def _digest(values: Iterable[Any]) -> int:
    return _combine_digests(
        checksum(v) if isinstance(v, Tensor) else zlib.crc32(repr(v).encode()) for v in values
    )


def _combine_digests(digests: Iterable[int]) -> int:
    """Combine several numbers, in order, into one below 2^63."""
    total = 0
    for digest in digests:
        # not a sum, which would miss vectors that changed places; the modulus is the largest prime below 2^63
        total = (1_000_003 * total + digest) % (2**63 - 25)
    return total


def checksum(tensor: Tensor) -> int:
    """Return a checksum of the bytes in order: their sum would miss the order, and which signs are minus.

    Examples
    --------
    >>> one, other = torch.ones(3), torch.tensor([1.0, 1.0, 1.0 + 2e-7])
    >>> checksum(one) == checksum(one.clone()), checksum(one) == checksum(other)
    (True, False)
    >>> checksum(torch.tensor([-1.0, 1.0])) == checksum(torch.tensor([1.0, -1.0]))
    False
    """
    held = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    return zlib.crc32(held.cpu().numpy().data)
