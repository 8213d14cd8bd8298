"""Check that replicates of a block share only their stream, and that nothing is computed in single precision.

    python -m benchmarks.blocks                   every experiment that needs no images of yours, at each of its points
    python -m benchmarks.blocks --claim ID        those that a claim reads

The scores of one replicate are compared between two blocks in which all others are exchanged. What is shared by
replicates drawn together, a draw made once for all of them or a mean over the block, changes them; a verdict counts
on replicates that are independent. Every tensor of single precision that appears on the way is named, but where the
experiment says so (`single`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.pretend.trials import SAME, difference
from benchmarks.timing import command
from simulate.monte_carlo import Block, Point, one_thread, stream
from verify.claims import registry
from verify.model import Claim, Experiment

BESIDE = 3
"""Replicates drawn beside the one that is looked at."""

MADE = ("empty", "empty_like", "zeros", "detach", "uniform_")
"""Operations that only make numbers, such as the weights of a module that are replaced before anything is computed."""

SINGLE = (torch.float32, torch.complex64, torch.float16, torch.bfloat16)


class Found(NamedTuple):
    """Result of one experiment at one point.

    Attributes
    ----------
    moved
        Largest difference of a score of the replicate that stayed, over its own size; 0 if none moved.
    score
        Which one.
    single
        Operations of torch that returned numbers of less than double precision.
    """

    moved: float
    score: str
    single: frozenset[str]


class _Precisions(TorchDispatchMode):
    """Notes every operation that returns floating point numbers of less than double precision."""

    def __init__(self) -> None:
        super().__init__()
        self.single: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        tensors = made if isinstance(made, tuple | list) else (made,)
        # a scalar that is only wrapped to be moved into a tensor of double precision loses nothing
        single = any(isinstance(t, torch.Tensor) and t.dtype in SINGLE and t.numel() > 1 for t in tensors)
        if single and func.overloadpacket.__name__ not in MADE:
            self.single.add(str(func))
        return made


def swapped(experiment: Experiment, point: Point, seed: int = 1) -> Found:
    """Draw the last replicate of a small block twice, beside others each time.

    Examples
    --------
    >>> from verify.judging.planted import SUMS
    >>> swapped(SUMS, SUMS.points[0])
    Found(moved=0.0, score='', single=frozenset())
    """
    first = _drawn(experiment, point, seed, [*range(BESIDE), BESIDE])
    with _Precisions() as precisions:
        other = _drawn(experiment, point, seed, [*range(BESIDE + 1, 2 * BESIDE + 1), BESIDE])
    return Found(*difference(first, other), frozenset(precisions.single))


def _drawn(
    experiment: Experiment, point: Point, seed: int, replicates: Iterable[int]
) -> Mapping[str, np.ndarray]:
    streams = tuple(stream(seed, experiment.id, point, i) for i in replicates)
    with one_thread():
        scores = experiment.simulate(Block(streams), point)
    return {name: np.asarray(torch.as_tensor(v[-1]).detach(), dtype=float) for name, v in scores.items()}


def experiments(claims: Iterable[Any] | None = None) -> list[Experiment]:
    """Experiments that the claims read, each once; none on images that only --data has."""
    listed = registry.claims() if claims is None else claims
    found = {c.experiment.id: c.experiment for c in listed if isinstance(c, Claim)}
    return [e for e in found.values() if e.needs is None]


def main(words: list[str] | None = None) -> int:
    """Print every experiment whose replicates are not alone or not double unannounced; 1 if there is one."""
    asked = command("benchmarks.blocks", __doc__, claim="").parse_args(words)
    chosen = experiments([c for c in registry.claims() if asked.claim in ("", c.id)])
    bad = 0
    for experiment, point in [(e, point) for e in chosen for point in e.points]:
        found = swapped(experiment, point)
        told = [f"{found.score} moves by {found.moved:.2g} with what is drawn beside it"] * (
            found.moved > SAME
        )
        if found.single and not experiment.single:
            told.append(f"single precision in {', '.join(sorted(found.single))}")
        if told:
            bad += 1
            print(f"{experiment.id} at {point}: {'; '.join(told)}", flush=True)
    print(f"{len(chosen)} experiments, at {bad} points not alone or not double")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
