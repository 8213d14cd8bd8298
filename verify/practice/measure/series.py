"""Curvature through training: the checkpoints that a pattern names, one after the other."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verify.escapes import escaped
from verify.page import terminal, wording
from verify.page.markup import template
from verify.practice.measure import plots
from verify.practice.measure.measurement import Measurement
from verify.practice.measure.pages import VERSION, rounded, value, write_both
from verify.practice.page_plots import plots_html

_WILD = set("*?[")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint, where it stands in training, and the curvature there.

    `at` is the number in its name, or its place among all where names have none that differs.
    """

    file: str
    at: float
    found: Measurement


def checkpoint_files(pattern: str) -> list[Path]:
    """Files in the order of the numbers in their names; the pattern itself if that is a file.

    Raises
    ------
    ValueError
        If there is none.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for step in (9, 100, 20):
    ...     (folder / f"step-{step}.pt").touch()
    >>> [file.name for file in checkpoint_files(f"{folder}/step-*.pt")]
    ['step-9.pt', 'step-20.pt', 'step-100.pt']
    """
    path = Path(pattern)
    # The name of a file may have such characters too.
    if path.exists() or not set(pattern) & _WILD:
        return [path]
    # `glob` takes no absolute pattern.
    found = [file for file in Path(path.anchor).glob(str(path.relative_to(path.anchor))) if file.is_file()]
    if not found:
        raise ValueError(f"no file matches --checkpoint {pattern!r}")
    return sorted(found, key=_order)


def _order(file: Path) -> list[Any]:
    """Text as text and digits as numbers."""
    parts = re.split(r"(\d+)", str(file))
    # As pairs text and numbers can be compared.
    return [(int(part), "") if k % 2 else (0, part) for k, part in enumerate(parts)]


def places(files: Sequence[Path]) -> list[float]:
    """The one number in the names that differs from file to file, or 1, 2, ...

    >>> places([Path("a/run2-step-5.pt"), Path("a/run2-step-10.pt")]), places([Path("a.pt"), Path("b.pt")])
    ([5.0, 10.0], [1.0, 2.0])
    """
    numbers = [[float(part) for part in re.findall(r"\d+", file.stem)] for file in files]
    if len({len(each) for each in numbers}) == 1:
        columns = [column for column in zip(*numbers, strict=True) if len(set(column)) == len(files)]
        if len(columns) == 1:
            return list(columns[0])
    return [float(k) for k in range(1, len(files) + 1)]


def with_checkpoint(options: argparse.Namespace, file: Path) -> argparse.Namespace:
    """Return the options with this checkpoint."""
    return argparse.Namespace(**{**vars(options), "checkpoint": str(file)})


def series_json(found: Sequence[Checkpoint]) -> str:
    """All of it as JSON."""
    rows = [{"file": each.file, "at": each.at, **each.found.to_dict()} for each in found]
    return json.dumps({"version": VERSION, "checkpoints": rows}, indent=1, allow_nan=False) + "\n"


def series_text(found: Sequence[Checkpoint]) -> str:
    """A table, one line for each checkpoint."""
    head = ("checkpoint", "loss", "eigenvalue 1 of H", "of G", "lowest of H", "trace / Frobenius", "zone")
    rows = [(escaped(each.file), *_cells(each.found)) for each in found]
    lines = [*terminal.fitted_table(head, rows), *_setup_warnings(found)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _setup_warnings(found: Sequence[Checkpoint]) -> list[str]:
    """Return the setup warnings of all checkpoints, each once."""
    return list(dict.fromkeys(line for each in found for line in each.found.doubts))


def _cells(found: Measurement) -> Iterator[str]:
    yield wording.numeral(found.loss.value, 5, plain=True)
    lowest = found.hessian.lowest
    for each in (found.hessian.top[0], found.gauss_newton.top[0], lowest):
        yield "none" if each is None else _bounded(each.value, each.bound)
    yield value(found.hessian.excess)
    yield "no curvature" if found.zone is None else found.zone.verdict


def _bounded(number: float, bound: float) -> str:
    return f"{wording.numeral(number, 5, plain=True)} ± {wording.numeral(bound, 2, plain=True)}"


def write_series(found: Sequence[Checkpoint], folder: Path) -> Path:
    """Write ``measure.html`` and ``measure.json``, both or none; returns the page.

    Raises
    ------
    ValueError
        If the folder cannot be written.
    """
    at, made = [each.at for each in found], [each.found for each in found]
    html = template("series.html.j2", rounded=rounded).render(
        name=escaped(made[0].name.replace(f" from {found[0].file}", "")),
        doubts=_setup_warnings(found),
        rows=[(escaped(each.file), each.found) for each in found],
        pictures=plots_html(plots.series_plots(at, made)),
    )
    return write_both(folder, series_json(found), html)
