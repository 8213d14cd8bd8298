"""Tables in markdown, and work spread over processes."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from benchmarks.calibration.laws import BATCH
from benchmarks.calibration.misses import SUITE, clopper_pearson

__all__ = [
    "Row",
    "Table",
    "chunks",
    "over_promise",
    "power",
    "spread",
]

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A heading, the columns, and the rows as they are printed; `data` for the file."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    data: Sequence[Row]

    def __str__(self) -> str:
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join([f"### {self.title}", "", *(f"| {' | '.join(line)} |" for line in lines), ""])


CHUNK = 16 * BATCH


def chunks(total: int, size: int = CHUNK) -> list[tuple[int, int]]:
    """Numbers and sizes of the chunks of `total` sequences, the same for any number of processes."""
    return [(i, min(size, total - start)) for i, start in enumerate(range(0, total, size))]


def spread(
    label: str, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], processes: int
) -> list[Any]:
    """Results of the tasks in their order; what is done and the time left go to stderr."""
    columns = list(zip(*tasks, strict=True))
    if processes == 1:
        return _reported(label, map(function, *columns), len(tasks))
    with ProcessPoolExecutor(processes) as pool:
        return _reported(label, pool.map(function, *columns), len(tasks))


def _reported(label: str, results: Iterable[Any], total: int) -> list[Any]:
    started, found = time.monotonic(), []
    for done, result in enumerate(results, 1):
        found.append(result)
        left = (time.monotonic() - started) * (total - done) / done
        end = "\n" if done == total else ""
        print(f"\r{label}: {done}/{total}, {left:.0f} s left   ", end=end, file=sys.stderr, flush=True)
    return found


def over_promise(hits: int, n: int, alpha: float) -> str:
    """A share over `alpha`, with its interval."""
    lower, upper = clopper_pearson(hits, n)
    return f"{hits / n / alpha:.2g} [{lower / alpha:.2g}, {upper / alpha:.2g}]"


def power(alpha: float) -> str:
    """An error as it is written in the tables."""
    return "1e-3/1024" if alpha == SUITE else f"1e{round(math.log10(alpha))}"
