"""Gamma of many softmax outputs from their logits, beside one plain softmax over the same rows.

    python -m benchmarks.softmax

Both go through the rows in blocks; the plain softmax is fastest where a block fits the
cache. Times are CPU seconds, the best of three.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from benchmarks.laws import table
from theory import softmax

ROWS, CLASSES, BLOCK = 100_000, 1000, 16
LIMIT = 5.0
"""What Gamma may cost, in units of the plain softmax."""


def plain(z: np.ndarray) -> np.ndarray:
    """The textbook softmax."""
    w = np.exp(z - z.max(axis=-1, keepdims=True))
    return w / w.sum(axis=-1, keepdims=True)


def seconds(function: Callable[[np.ndarray], object], z: np.ndarray, block: int) -> float:
    """CPU seconds over all rows, in blocks."""
    return min(_once(function, z, block) for _ in range(3))


def _once(function: Callable[[np.ndarray], object], z: np.ndarray, block: int) -> float:
    start = time.process_time()
    for row in range(0, len(z), block):
        function(z[row : row + block])
    return time.process_time() - start


def rows(z: np.ndarray, blocks: tuple[int, ...]) -> list[list[str]]:
    """One row of the table for each size of a block."""
    found: list[list[str]] = []
    for block in blocks:
        own, other = (seconds(function, z, block) for function in (softmax.gamma_from_logits, plain))
        found.append([str(block), f"{own:.3g}", f"{other:.3g}", f"{own / other:.2f}"])
    return found


def main(words: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.softmax", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS, help=f"rows of {CLASSES} logits (default: {ROWS})")
    z = 3 * np.random.default_rng(0).normal(size=(parser.parse_args(words).rows, CLASSES))
    print(f"{len(z)} rows of {CLASSES} logits\n")
    print(table(["rows of a block", "gamma_from_logits", "softmax", "ratio"], rows(z, (BLOCK, 64, 1000))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
