"""Replicates at one set of parameters: which blocks to draw next, what came back, and its record."""

from __future__ import annotations

import hashlib
import traceback
from abc import ABC, abstractmethod

import numpy as np

from simulate.monte_carlo import BlockResult, Point, Scores
from verify.model import Simulator
from verify.results import RunRecord
from verify.running.origin import Key, OtherCodeError, origin
from verify.running.workers import WorkerLostError

__all__ = ["Draws", "traceback_of"]


class Draws(ABC):
    """Blocks of one simulator at one point; what is made of them is up to those who ask.

    Parameters
    ----------
    name
        What streams and blocks are filed under.
    simulate, point, device
        What is drawn.
    size
        Replicates of one block.
    """

    def __init__(self, name: str, simulate: Simulator, point: Point, device: str, size: int) -> None:
        self.name, self.simulate, self.point, self.size = name, simulate, point, size
        self.blocks: dict[int, Scores] = {}
        self.stored: dict[int, BlockResult] = {}
        self.seconds = 0.0
        self.error = ""
        self.key: Key | None = None
        self.origin = origin(simulate, point, device)
        self._submitted = 0

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether no more blocks are wanted."""

    @property
    @abstractmethod
    def wanted(self) -> int:
        """Replicates that are asked for now."""

    @property
    @abstractmethod
    def most_blocks(self) -> int:
        """Blocks of the whole budget."""

    @abstractmethod
    def seconds_left(self) -> float:
        """An estimate of what one core still has to do."""

    @property
    def replicates(self) -> int:
        """Replicates so far."""
        return self.size * len(self.blocks)

    def next_block(self) -> int | None:
        """The next block that is wanted now; what an earlier run has left is taken in at once."""
        while not self.done and self.size * self._submitted < self.wanted:
            index = self._submitted
            self._submitted += 1
            if index not in self.stored:
                return index
            self.receive(index, self.stored.pop(index))
        return None

    def receive(self, index: int, result: BlockResult) -> None:
        """Take a finished block."""
        first = next(iter(self.blocks.values()), result.scores)
        if result.scores.keys() != first.keys():
            raise ValueError(
                f"scores must be {', '.join(first)} in every block, got {', '.join(result.scores)}"
            )
        for name, values in result.scores.items():
            if values.shape[1:] != first[name].shape[1:]:
                raise ValueError(f"score {name!r} must have as many components in every block")
        self.blocks[index] = result.scores
        self.seconds += result.seconds

    def fail(self, error: BaseException) -> None:
        """Nothing more will come of this."""
        one_line = isinstance(error, WorkerLostError | OtherCodeError)
        self.error = f"{error}\n" if one_line else traceback_of(error)

    def scores(self) -> Scores:
        """All replicates so far, in order."""
        blocks = [self.blocks[i] for i in sorted(self.blocks)]
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    def record(self) -> RunRecord:
        """What a replay must find again."""
        return RunRecord(
            experiment=self.name,
            parameters=dict(self.point),
            replicates=self.replicates,
            seconds=round(self.seconds, 3),
            sha256=_digest(self.scores()) if self.blocks else "",
        )


def traceback_of(error: BaseException) -> str:
    """An exception as Python prints it."""
    return "".join(traceback.format_exception(error))


def _digest(scores: Scores) -> str:
    digest = hashlib.sha256()
    for name in sorted(scores):
        width = f"[{scores[name].shape[1]}]" if scores[name].ndim == 2 else ""
        digest.update(
            f"{name}{width}".encode() + b"\0" + np.ascontiguousarray(scores[name], dtype="<f8").tobytes()
        )
    return digest.hexdigest()
