"""What was found, a line of JSON for each piece, in a file for each network; a campaign that was stopped continues."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rates.cells import Cell
from benchmarks.rates.search import Outcome

__all__ = ["Answer", "Measured", "Records", "gathered"]


class Measured(NamedTuple):
    """What the grid has shown of a cell.

    Attributes
    ----------
    steps
        Of each run.
    untrained, constant
        Loss of the network as it was, and of the best constant output, on the batches of the last tenth.
    tried
        Outcomes by their place on the grid.
    """

    steps: int
    untrained: float
    constant: float
    tried: Mapping[int, Outcome]

    @property
    def reference(self) -> float:
        """What training has to beat."""
        return min(self.untrained, self.constant)


class Answer(NamedTuple):
    """The rate that a rule gives, None if it gives none, and what it took, in runs of the grid at this batch size."""

    rate: float | None
    cost: float


class Records:
    """The file of a network: read when it is opened, a line written for whatever is added.

    Examples
    --------
    >>> import tempfile
    >>> file, cell = Path(tempfile.mkdtemp()) / "a.jsonl", Cell("a", "start", "sgd", 0, 8)
    >>> Records(file).add_answer(cell, "fixed", Answer(0.1, 0.0))
    >>> _ = file.write_text(file.read_text() + '{"kind": "cell", "net')  # killed in the middle of a line
    >>> Records(file).answers
    {(Cell(network='a', state='start', optimiser='sgd', seed=0, batch_size=8), 'fixed'): Answer(rate=0.1, cost=0.0)}
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.cells: dict[Cell, Measured] = {}
        self.runs: dict[tuple[Cell, int], Outcome] = {}
        self.answers: dict[tuple[Cell, str], Answer] = {}
        for line in _whole_lines(file):
            self._take(json.loads(line))

    def add_cell(self, cell: Cell, measured: Measured) -> None:
        """What the grid has shown."""
        tried = [[k, *_told(seen)] for k, seen in measured.tried.items()]
        self._add({"kind": "cell", **_named(cell), **measured._asdict(), "tried": tried})

    def add_run(self, cell: Cell, place: int, outcome: Outcome) -> None:
        """A run beyond the grid, at a rate that a rule asked for."""
        self._add({"kind": "run", **_named(cell), "place": place, "seen": _told(outcome)})

    def add_answer(self, cell: Cell, rule: str, answer: Answer) -> None:
        """What a rule gives."""
        self._add({"kind": "answer", **_named(cell), "rule": rule, **answer._asdict()})

    def outcome(self, cell: Cell, place: int) -> Outcome | None:
        """Of a run that was made, for the grid or for a rule."""
        measured = self.cells.get(cell)
        if measured is not None and place in measured.tried:
            return measured.tried[place]
        return self.runs.get((cell, place))

    def _add(self, row: dict[str, Any]) -> None:
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row, allow_nan=False) + "\n")
        self._take(row)

    def _take(self, row: dict[str, Any]) -> None:
        cell = Cell(*(row[name] for name in Cell._fields))
        if row["kind"] == "cell":
            tried = {k: _outcome(loss, trains) for k, loss, trains in row["tried"]}
            self.cells[cell] = Measured(row["steps"], row["untrained"], row["constant"], tried)
        elif row["kind"] == "run":
            self.runs[cell, row["place"]] = _outcome(*row["seen"])
        else:
            self.answers[cell, row["rule"]] = Answer(row["rate"], row["cost"])


def gathered(files: Iterable[Path]) -> list[Records]:
    """Those of several networks, for reading."""
    return [Records(file) for file in sorted(files)]


def _whole_lines(file: Path) -> Iterator[str]:
    """Lines that were written to their end; the rest is cut off, so that the next one begins anew."""
    if not file.exists():
        return
    text = file.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        file.write_text(whole, encoding="utf-8")
    yield from whole.splitlines()


def _named(cell: Cell) -> dict[str, Any]:
    return cell._asdict()


def _told(seen: Outcome) -> list[Any]:
    return [seen.loss if math.isfinite(seen.loss) else None, seen.trains]


def _outcome(loss: float | None, trains: bool) -> Outcome:
    return Outcome(math.inf if loss is None else loss, trains)
