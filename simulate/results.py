"""Results as a person reads them: a short text, a table with its picture, plain data, a data frame, a plot.

`Result` is the base of everything that a measurement returns. A subclass says what it found in one line, in columns
and in a drawing; matplotlib and pandas are imported only when they are asked for.
"""

from __future__ import annotations

import base64
import html
import io
import math
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

Columns = Mapping[str, Any]
"""A table: names of columns, and their cells, a list or an array (k,) each."""

_LINES = 12
"""Most lines of a `repr`."""

_WIDTH = 98
"""Most characters of a line of a `repr`."""

_HEAD = 3
"""Most lines of its headline."""

_ROWS = 20
"""Most rows of the table of a notebook."""

_CELL = 54
"""Most characters of a cell in text."""

_BAR = 30
"""Most characters of the name of a bar."""

_ERRORS = ("bound", "error", "residual", "truncation", "±")
"""Ends of the names of columns whose numbers are told with two digits."""

_STYLE = {
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "font.size": 9,
    "grid.color": "0.9",
    "text.parse_math": False,  # names of parameters are no formulas
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}


class Result:
    """Base of all results: what one says of itself follows from `_headline`, `_columns` and `_draw`."""

    __slots__ = ()

    _spread = False
    """Whether a table that is too long shows rows from end to end in place of the first ones."""

    def _headline(self) -> str:
        raise NotImplementedError

    def _columns(self) -> Columns:
        raise NotImplementedError

    def _draw(self, axes: Axes) -> None:
        raise NotImplementedError

    def _brief(self) -> Sequence[str]:
        """Columns that a `repr` and a notebook show, where they hold something; all if empty."""
        return ()

    def _inches(self) -> tuple[float, float]:
        """Size of the figure that `plot` makes."""
        return 5.2, 2.8

    def _record(self) -> Mapping[str, Any]:
        """Return the fields that `to_dict` holds."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        head = textwrap.wrap(_printable(f"{type(self).__name__}: {self._headline()}"), _WIDTH)[:_HEAD]
        shown, left_out = self._shown(_LINES - len(head) - 2)
        lines = [*head, *table_lines(shown)]
        lines += [f"... {left_out} more: to_frame(), to_dict()"] if left_out else []
        return "\n".join(_cut(line, _WIDTH) for line in lines)

    def summary(self) -> str:
        """Return all of the table as text."""
        return "\n".join([_printable(self._headline()), *table_lines(self._columns())]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return all that was found as plain data, which `json` writes; NaN and infinities are None."""
        return plain(self._record())

    def to_frame(self) -> Any:
        """Return the table as a `pandas.DataFrame`.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ModuleNotFoundError as error:
            if error.name != "pandas":
                raise
            raise ImportError("to_frame needs pandas: pip install pandas", name="pandas") from None
        return pandas.DataFrame({name: list(cells) for name, cells in self._columns().items()})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the result into `ax`, or into a new figure of pyplot, and return the axes.

        A notebook shows a new figure; a script shows it by ``plt.show()`` or writes it by ``ax.figure.savefig(file)``.
        """
        with _style({"text.parse_math": False} if ax is not None else _STYLE):
            if ax is None:
                from matplotlib import pyplot

                ax = pyplot.figure(figsize=self._inches(), layout="constrained").add_subplot()
            self._draw(ax)
            return ax

    def _repr_html_(self) -> str:
        """Return a table with a picture, as notebooks show it."""
        shown, left_out = self._shown(_ROWS)
        head = "".join(f"<th>{_escaped(name)}</th>" for name in shown)
        body = "".join(
            "<tr>" + "".join(f"<td>{_escaped(cell)}</td>" for cell in row) + "</tr>" for row in _cells(shown)
        )
        more = f"<p>{left_out} more rows: to_frame()</p>" if left_out else ""
        name, said = type(self).__name__, _escaped(self._headline())
        table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>" if body else ""
        return f"<div><p><b>{name}</b>: {said}</p><table>{table}</table>{more}{self._picture()}</div>"

    def _picture(self) -> str:
        with _style(_STYLE), io.BytesIO() as png:
            from matplotlib.figure import Figure

            figure = Figure(
                figsize=self._inches(), layout="constrained"
            )  # none of pyplot: a notebook would show it
            self._draw(figure.add_subplot())
            figure.savefig(png, format="png", dpi=160)
            data = base64.b64encode(png.getvalue()).decode("ascii")
        width, name = round(96 * figure.get_size_inches()[0]), type(self).__name__
        return f'<img alt="Plot of this {name}" width="{width}" src="data:image/png;base64,{data}">'

    def _shown(self, most: int) -> tuple[Columns, int]:
        """At most so many rows of the columns that are shown, and how many rows are left out."""
        columns = self._columns()
        wanted = [name for name in self._brief() if any(cell is not None for cell in columns[name])]
        columns = {name: columns[name] for name in wanted or columns}
        count = max((len(cells) for cells in columns.values()), default=0)
        if count <= most:
            return columns, 0
        places = [k * (count - 1) // (most - 1) for k in range(most)] if self._spread else range(most)
        return {name: [cells[k] for k in places] for name, cells in columns.items()}, count - most


def plain(value: Any) -> Any:
    """Return records, arrays and tensors as dictionaries, lists and numbers that `json` writes.

    NaN and infinities become None, keys of several names are joined by commas, and what is no data is its text.

    Examples
    --------
    >>> import numpy as np
    >>> plain({("weight", "bias"): np.array([1.0, np.inf]), "steps": np.int64(3)})
    {'weight, bias': [1.0, None], 'steps': 3}
    """
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Result):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    named = getattr(value, "_asdict", None)
    value = value if named is None else named()
    if isinstance(value, Mapping):
        return {
            ", ".join(map(str, key)) if isinstance(key, tuple) else str(key): plain(part)
            for key, part in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in value]
    listed = getattr(value, "tolist", None)  # arrays and numbers of numpy, tensors of torch
    return str(value) if listed is None else plain(listed())


def table_lines(columns: Columns) -> list[str]:
    r"""Return a table as lines of text: numbers to the right, words to the left.

    Examples
    --------
    >>> print(*table_lines({"layer": ["0.weight", "2.weight"], "trace": [12.5, 3.0]}), sep="\n")
    layer     trace
    0.weight   12.5
    2.weight      3
    """
    if not columns or not any(len(cells) for cells in columns.values()):
        return []
    rows = [[_cut(cell, _CELL) for cell in row] for row in _cells(columns)]
    widths = [max(map(len, cells)) for cells in zip(list(columns), *rows, strict=True)]
    words = [any(isinstance(cell, str) for cell in cells) for cells in columns.values()]
    return [
        "  ".join(
            cell.ljust(width) if word else cell.rjust(width)
            for cell, width, word in zip(row, widths, words, strict=True)
        ).rstrip()
        for row in [list(columns), *rows]
    ]


def draw_bars(
    axes: Axes, names: Sequence[str], values: Sequence[float], errors: Sequence[float] | None = None
) -> None:
    """Draw a bar for each name, the first one on top."""
    places = range(len(names))
    axes.barh(places, values, xerr=errors, height=0.6, capsize=2, color="C0", alpha=0.6)
    axes.set_yticks(places, [_cut(_printable(name), _BAR) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)


def _cells(columns: Columns) -> list[list[str]]:
    """Row by row."""
    return [list(map(_cell, columns, row)) for row in zip(*columns.values(), strict=True)]


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return _printable(value)
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (
        format(value, ".2g" if name.endswith(_ERRORS) else ".6g") if isinstance(value, float) else str(value)
    )


def _printable(text: str) -> str:
    """The text on one line: a name may hold what commands a terminal."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _escaped(text: str) -> str:
    return html.escape(_printable(text))


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 3].rstrip()}..."


@contextmanager
def _style(style: Mapping[str, Any]) -> Iterator[None]:
    from matplotlib import rc_context

    settings: Any = dict(style)
    with rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from"
        )  # a name in letters of another font
        yield
