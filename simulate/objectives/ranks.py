"""Processes that each hold some of the samples: sums over them, and one end for all where one of them fails.

Every exchange begins with a few numbers from each process: whether it has failed, what it is about to exchange, and a
digest of what must be the same everywhere. So a process that raises ends the others with its line instead of leaving
them to wait, and calls in another order, or with other vectors or parameters, are refused instead of added up.
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
"""What must be the same in all processes, and what to do where it is not."""


class LostProcessError(ValueError):
    """A process of the group that can no longer be reached."""


class Ranks:
    """The processes of a group; without a group this process alone, whose sums are its own.

    Parameters
    ----------
    group
        A process group of `torch.distributed`; None without one.

    Attributes
    ----------
    size, rank
        How many processes there are, and the number of this one among them.

    Raises
    ------
    ValueError
        If `group` is no process group, or this process is none of it.

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
        _end_in_peace()
        self.size, self.rank = distributed.get_world_size(group), distributed.get_rank(group)
        cuda = distributed.get_backend(group) == "nccl"
        self._device = torch.device("cuda", torch.cuda.current_device()) if cuda else torch.device("cpu")

    @property
    def several(self) -> bool:
        """Whether there is a group, though it may be of one."""
        return self._group is not None

    def require_reachable(self, device: torch.device) -> None:
        """Refuse numbers on a device that the group does not exchange.

        Raises
        ------
        ValueError
            If it is of NCCL and they are not on a GPU.
        """
        if self._group is not None and self._device.type == "cuda" != device.type:
            raise ValueError(
                f"parameters must be on a GPU for a group of nccl, got {device}; use a group of gloo"
            )

    @property
    def inside(self) -> bool:
        """Whether what is computed is put together by all processes."""
        return not self.several or self._depth > 0

    @contextmanager
    def together(self, what: str, **same: Iterable[Any]) -> Iterator[None]:
        """What each process does with its own samples: if one fails, all do.

        Parameters
        ----------
        what
            Of a few words, in all processes the same.
        same
            Tensors and words that must be the same to the last bit in all processes, by what they are: vectors,
            parameters or reduction.

        Raises
        ------
        ValueError
            If another process has failed, with its words; or what must be the same is not.
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
            if not _is_told(error):
                self._tell(error)
            raise
        finally:
            self._depth -= 1
        self._meet(what, digests)

    def require_same(self, **same: Iterable[Any]) -> None:
        """Refuse what is not the same in all processes, see `together`."""
        if self._group is not None:
            self._meet("a comparison", {name: _digest(values) for name, values in same.items()})

    def total(self, own: Tensor) -> Tensor:
        """Sum of a tensor over the processes, in place and to the last bit the same in all of them."""
        if self._group is not None:
            self._meet(f"the sum of {tuple(own.shape)} numbers of {own.dtype}", {})
            self._call(lambda: distributed.all_reduce(own, group=self._group))
        return own

    def sum(self, own: float) -> float:
        """Sum of a number over the processes."""
        if self._group is None:
            return own
        return float(self.total(torch.tensor([own], dtype=torch.float64, device=self._device)))

    def any(self, own: bool) -> bool:
        """Whether it is so in some process."""
        return self.sum(float(own)) > 0

    def gathered(self, what: str, own: Any) -> list[Any]:
        """Something small of every process, in the order of their numbers."""
        if self._group is None:
            return [own]
        self._meet(what, {})
        return self._objects(own)

    def rows(self, own: NDArray[Any]) -> NDArray[Any]:
        """Rows of all processes, those of the first one first."""
        return own if self._group is None else np.concatenate(self.gathered("rows", own))

    def of_one(self, what: str, chosen: int, own: Any) -> Any:
        """What the process of a number has."""
        if self._group is None:
            return own
        self._meet(what, {})
        held = [own if self.rank == chosen else None]
        source = distributed.get_global_rank(self._group, chosen)
        self._call(lambda: distributed.broadcast_object_list(held, source, self._group))
        return held[0]

    def _meet(self, what: str, digests: dict[str, int]) -> None:
        """Exchange what each is about to do; an error here is one in all processes."""
        found = self._headers([0, zlib.crc32(what.encode()), _folded(digests.values())])
        if any(failed for failed, _, _ in found):
            rank, text = next(found for found in enumerate(self._objects("")) if found[1])
            raise _told(ValueError(f"process {rank} of {self.size}: {text}"))
        if len({call for _, call, _ in found}) > 1:
            got = "; ".join(dict.fromkeys(self._objects(what)))
            raise _told(
                ValueError(f"processes of a group must make the same calls in the same order, got {got}")
            )
        if len({digest for _, _, digest in found}) > 1:
            theirs = self._objects(digests)
            name = next(n for n in digests if len({each[n] for each in theirs}) > 1)
            same = f"{name} must be the same in all processes of a group, got others: {_ADVICE[name]}"
            raise _told(ValueError(same))

    def _tell(self, error: Exception) -> None:
        """Tell the others that this process has failed, if they are there; they wait for no more."""
        with suppress(LostProcessError):
            self._headers([1, 0, 0])
            own = isinstance(error, ValueError)
            self._objects(str(error) if own else f"{type(error).__name__}: {error}")
        _told(error)

    def _headers(self, own: list[int]) -> list[list[int]]:
        held = torch.tensor(own, device=self._device)
        found = [torch.empty_like(held) for _ in range(self.size)]
        self._call(lambda: distributed.all_gather(found, held, group=self._group))
        return [each.tolist() for each in found]

    def _objects(self, own: Any) -> list[Any]:
        found: list[Any] = [None] * self.size
        self._call(lambda: distributed.all_gather_object(found, own, group=self._group))
        return found

    def _call(self, exchange: Callable[[], Any]) -> None:
        try:
            exchange()
        except RuntimeError as error:  # what a backend raises where a connection ends or nobody answers
            lost = LostProcessError(
                "processes of a group must all go on to the end, got one that no longer answers"
            )
            raise _told(lost) from error


@cache
def _end_in_peace() -> None:
    """Let threads of groups finish with their last exchange before Python ends: one of them that comes later aborts it.

    They let go of its tensors after it is over, for which they need the interpreter; `destroy_process_group` does not
    wait for them as long as anything refers to the group.
    """
    atexit.register(time.sleep, 0.3)


_TOLD = "told to all processes of the group"
"""A note on an error, so that it is told once."""


def _told(error: Exception) -> Exception:
    error.add_note(_TOLD)
    return error


def _is_told(error: BaseException | None) -> bool:
    """Whether it, or what it was made of, is known to the others."""
    while error is not None:
        if _TOLD in getattr(error, "__notes__", ()):
            return True
        error = error.__cause__ or error.__context__
    return False


def _digest(values: Iterable[Any]) -> int:
    return _folded(_bits(v) if isinstance(v, Tensor) else zlib.crc32(repr(v).encode()) for v in values)


def _folded(digests: Iterable[int]) -> int:
    """One number below 2^63 of several, in their order."""
    total = 0
    for digest in digests:
        total = (1_000_003 * total + digest) % (2**63 - 25)
    return total


def _bits(tensor: Tensor) -> int:
    """Check sum of the bytes in their order: a sum of them would see neither order nor which signs are minus.

    Examples
    --------
    >>> one, other = torch.ones(3), torch.tensor([1.0, 1.0, 1.0 + 2e-7])
    >>> _bits(one) == _bits(one.clone()), _bits(one) == _bits(other)
    (True, False)
    >>> _bits(torch.tensor([-1.0, 1.0])) == _bits(torch.tensor([1.0, -1.0]))
    False
    """
    held = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    return zlib.crc32(held.cpu().numpy().data)
