"""Campaign: for each setting the best rate of a grid, and the rates of rules, trained by the judge on other batches.

A file holds everything of a setting: `reference`, `losses` by batch size and place of the grid, one for each order of
the batches, `rules` with their rates and steps, and `replaced`, the losses of optimisers that need no rate. What is
missing is added.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.rates.rate_free import RATE_FREE
from benchmarks.rates.task import OPTIMISERS, SIZES, Ground, Rule

MOST = 10
"""Largest number of rates in a search."""

_FAR, _NEAR = 4, 2
"""Stride in places of the grid at the first batch size, and from the best rate of another one."""

_PLACES = -50, 24
"""Lowest and highest place at which a rate is run."""


def rate(place: int) -> float:
    """Return the rate at a place of the grid, 2^(place/2).

    >>> rate(-4), rate(0)
    (0.25, 1.0)
    """
    return 2.0 ** (place / 2)


def place(wanted: float) -> int:
    """Return the place whose rate has the smallest ratio to a given rate, within the grid.

    >>> place(0.25), place(0.3), place(1.6)
    (-4, -3, 1)
    """
    return min(max(round(2 * math.log2(wanted)), _PLACES[0]), _PLACES[1])


def best(losses: Mapping[int, float]) -> int:
    """Return the place with the smallest loss, and of equal ones the smallest rate."""
    return min(losses, key=lambda k: (losses[k], k))


def searched(loss: Callable[[int], float], first: int, stride: int) -> dict[int, float]:
    """Return losses by place: outwards by strides, until the best place has both neighbours.

    Examples
    --------
    >>> seen = searched(lambda k: math.inf if k > 5 else abs(k - 3), 0, 4)
    >>> list(seen), best(seen)
    ([0, 4, 8, 6, 2, 3, 5, 1], 3)
    """
    seen = {first: loss(first)}
    while len(seen) < MOST:
        least = best(seen)
        if least == max(seen) and seen[least] < math.inf:
            at = least + stride
        elif least == min(seen):
            at = least - stride
        else:
            near = [least + step for width in (2, 1) for step in (width, -width) if least + step not in seen]
            if not near:
                break
            at = near[0]
        seen[at] = loss(at)
    return seen


@dataclass
class Result:
    """Everything of a setting; see the module. Batch sizes and places are strings, as in the file."""

    kind: list[str]
    reference: float
    losses: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    replaced: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def grid(self, size: str) -> dict[int, float]:
        """Return the mean loss over the orders by place, of the places with most orders."""
        most = max(map(len, self.losses[size].values()))
        return {int(k): sum(runs) / most for k, runs in self.losses[size].items() if len(runs) == most}


def save(file: Path, result: Result) -> None:
    """Write a result."""
    file.write_text(json.dumps(asdict(result)), encoding="utf-8")


def load(file: Path) -> Result:
    """Read a result.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.json"
    >>> result = Result(["a", "start", "sgd"], 2.3, {"8": {"-1": [math.inf]}}, {"b": {"rates": {"8": 0.1}, "steps": 9}})
    >>> save(file, result)
    >>> load(file) == result
    True
    """
    return Result(**json.loads(file.read_text(encoding="utf-8")))


def work(ground: Ground, rules: Mapping[str, Rule], folder: Path, orders: int = 1) -> Iterator[str]:
    """Measure what the file of a setting lacks, with so many orders of the judge's batches; yield lines to print."""
    kind = [ground.network.name, ground.state, ground.optimiser]
    make, usual = OPTIMISERS[ground.optimiser]
    file = folder / f"{'+'.join(kind)}.json"
    result = load(file) if file.exists() else Result(kind, ground.reference)

    def judged(size: int, at: int, most: int = 1) -> float:
        runs = result.losses.setdefault(str(size), {}).setdefault(str(at), [])
        while len(runs) < most:
            runs.append(ground.judge(size, len(runs), lambda own: make(own, rate(at))))
        return runs[0]

    if not result.losses:
        first, stride = place(usual), _FAR
        for size in reversed(SIZES):
            first, stride = best(searched(lambda at, b=size: judged(size=b, at=at), first, stride)), _NEAR
        save(file, result)
        yield f"{', '.join(kind)}: best rates {[rate(best(result.grid(size))) for size in result.losses]}"
    for name in (name for name in rules if name not in result.rules):
        task = ground.task()
        found = rules[name](task)
        result.rules[name] = {"rates": {str(size): found.get(size) for size in SIZES}, "steps": task.spent}
        save(file, result)
        yield f"{', '.join(kind)}, {name}: {result.rules[name]}"
    for size in SIZES:
        answers = [answer["rates"][str(size)] for answer in result.rules.values()]
        for at in {*map(int, result.losses[str(size)]), *(place(given) for given in answers if given)}:
            judged(size, at, orders)
        for name, (free, instead_of) in RATE_FREE.items():
            if ground.optimiser in instead_of:
                runs = result.replaced.setdefault(name, {}).setdefault(str(size), [])
                runs.extend(ground.judge(size, order, free) for order in range(len(runs), orders))
        save(file, result)
