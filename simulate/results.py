"""Presentation of results: short text, HTML table with a picture, plain data, data frame and plot.

`Result` is the base class of everything that a measurement returns. A subclass defines a headline, the columns of a
table and a drawing; matplotlib and pandas are imported only when they are needed.
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
"""A table: from the name of each column to its cells, a list or an array (k,)."""

_LINES = 12
"""Most lines of a `repr`."""

_WIDTH = 98
"""Most characters of a line of a `repr`."""

_HEAD = 3
"""Most lines of the headline of a `repr`."""

_ROWS = 20
"""Most rows of a table in a notebook."""

_CELL = 54
"""Most characters of a cell of a text table."""

_BAR = 30
"""Most characters of the label of a bar."""

_ERRORS = ("bound", "error", "residual", "truncation", "±")
"""Endings of the names of columns whose numbers have two significant digits."""

_STYLE = {
    "axes.edgecolor": "#d9dde2",
    "axes.labelcolor": "#5a636e",
    "axes.labelsize": 9,
    "axes.prop_cycle": "cycler('color', ['1f5fa8', 'b64f08', '00776a', '6f4bb2', '87898c'])",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "font.size": 9,
    "grid.color": "0.9",
    "text.parse_math": False,  # names of parameters are not formulas
    "xtick.color": "#d9dde2",
    "xtick.labelcolor": "#5a636e",
    "xtick.labelsize": 8,
    "ytick.color": "#d9dde2",
    "ytick.labelcolor": "#5a636e",
    "ytick.labelsize": 8,
}


class Result:
    """Base of all results, presented by `_headline`, `_columns` and `_draw` of a subclass."""

    __slots__ = ()

    _evenly_spaced = False
    """Whether a table that is too long shows evenly spaced rows instead of the first ones."""

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
        named: Any = getattr(self, "_asdict", None)  # of a named tuple
        if named:
            return named()
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        head = textwrap.wrap(_printable(f"{type(self).__name__}: {self._headline()}"), _WIDTH)[:_HEAD]
        shown, left_out = self._displayed_rows(_LINES - len(head) - 2)
        lines = [*head, *table_lines(shown)]
        lines += [f"... {left_out} more: to_frame(), to_dict()"] if left_out else []
        return "\n".join(_truncate(line, _WIDTH) for line in lines)

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
        """Return a picture with a table, as notebooks show it."""
        heads, rows, left_out = self.shown_rows(_ROWS)
        head = "".join(f"<th>{_escape(name)}</th>" for name in heads)
        body = "".join(
            "<tr>" + "".join(f"<td>{_escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        more = f"<p>{left_out} more rows: to_frame()</p>" if left_out else ""
        name, said = type(self).__name__, _escape(self._headline())
        table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>" if body else ""
        return f"<div><p><b>{name}</b>: {said}</p>{self._picture(said)}<table>{table}</table>{more}</div>"

    def _picture(self, said: str) -> str:
        with _style(_STYLE), io.BytesIO() as png:
            from matplotlib.figure import Figure

            figure = Figure(
                figsize=self._inches(), layout="constrained"
            )  # not by pyplot, whose figure a notebook would show again
            self._draw(figure.add_subplot())
            figure.savefig(png, format="png", dpi=160)
            data = base64.b64encode(png.getvalue()).decode("ascii")
        width = round(96 * figure.get_size_inches()[0])
        return f'<img alt="Plot: {said}" width="{width}" style="max-width:100%" src="data:image/png;base64,{data}">'

    @property
    def headline(self) -> str:
        """The main result in one sentence."""
        return _printable(self._headline())

    def shown_rows(self, most: int) -> tuple[list[str], list[list[str]], int]:
        """Return heads and at most `most` rows of the table as text, and the number of rows left out."""
        shown, left_out = self._displayed_rows(most)
        return list(shown), _cells(shown), left_out

    def _displayed_rows(self, most: int) -> tuple[Columns, int]:
        """Return at most `most` rows of the columns to display, and the number of rows left out."""
        columns = self._columns()
        wanted = [name for name in self._brief() if any(cell is not None for cell in columns[name])]
        columns = {name: columns[name] for name in wanted or columns}
        count = max((len(cells) for cells in columns.values()), default=0)
        if count <= most:
            return columns, 0
        places = [k * (count - 1) // (most - 1) for k in range(most)] if self._evenly_spaced else range(most)
        return {name: [cells[k] for k in places] for name, cells in columns.items()}, count - most


def plain(value: Any) -> Any:
    """Return records, arrays and tensors as dictionaries, lists and numbers that `json` writes.

    NaN and infinities become None, tuples as keys are joined by commas, and other objects become their text.

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
    rows = [[_truncate(cell, _CELL) for cell in row] for row in _cells(columns)]
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
    axes.set_yticks(places, [_truncate(_printable(name), _BAR) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)


def _cells(columns: Columns) -> list[list[str]]:
    """Return the cells of a table as text, row by row."""
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
    """Return the text with unprintable characters replaced, since a name may hold terminal commands."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _escape(text: str) -> str:
    return html.escape(_printable(text))


def _truncate(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 3].rstrip()}..."


@contextmanager
def _style(style: Mapping[str, Any]) -> Iterator[None]:
    from matplotlib import rc_context

    settings: Any = dict(style)
    with rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from"
        )  # a name may have letters that the font lacks
        yield
