"""The result of a check: verdict, points and rivals, as text, table and plot."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simulate.results import Columns, Result
from verify.checking.replicates import Place, function_name
from verify.judging.guards import unseen_rate
from verify.judging.judge import combine
from verify.model import ABSOLUTE, MODEL_BASED, Kind, Verdict
from verify.page import wording
from verify.page.theme import PALETTE, STYLE
from verify.results import PointOutcome, RivalOutcome
from verify.results.lines import spans_decades

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Formula = Callable[..., Any]

LINES = 8
"""Points that a `repr` shows."""

RIVALS = 3
"""Rivals that a line names."""

COLUMNS = ("verdict", "predicted", "margin", "measured", "lower", "upper", "replicates")

WORST_FIRST = (Verdict.DISAGREES, Verdict.UNDECIDED, Verdict.AGREES)

CURVE = 200
"""Places at which a formula is drawn."""

_WIDTH, _HEIGHT, _LEFT, _RIGHT = 440.0, 230.0, 44.0, 90.0
"""Points of a saved picture, and of the room next to its axes for ticks and names of lines."""


@dataclass(frozen=True, kw_only=True, repr=False)
class CheckedPoint(PointOutcome):
    """Outcome at one point.

    The fields that matter are `point`, `predicted`, `margin`, `measured`, `lower`, `upper`, `replicates`, `verdict`,
    `reason` (why it is undecided), `needed` (replicates it would take) and `rivals` (name, value, distance in margins,
    whether rejected). `component` is the index in an array, empty for a number; `error` is the chance that the
    interval ever misses.
    """

    component: tuple[int, ...] = ()
    error: float = 0.0

    @property
    def point(self) -> dict[str, Any]:
        """The parameters by name."""
        return self.parameters

    @property
    def label(self) -> str:
        """Parameters and component as text."""
        index = f"[{', '.join(map(str, self.component))}]" if self.component else ""
        return " ".join(part for part in (str(Place(self.parameters)), index) if part)

    @property
    def why(self) -> str:
        """Why there is no verdict, and how many replicates it would take; empty where there is one."""
        if self.verdict != Verdict.UNDECIDED:
            return ""
        budget = self.reason == "budget"
        why = f"the budget of {self.replicates:,} replicates ended" if budget else self.reason
        if self.needed is None:
            return why
        if math.isinf(self.needed):
            return f"{why}; the measured value is at the edge of the margin, where no number of replicates decides"
        return f"{why}; it would take about {self.needed:,.0f} at the present estimate"

    def __repr__(self) -> str:
        return f"CheckedPoint({self.label or 'no parameters'}: {self.verdict}, measured {_measured(self)})"


@dataclass(frozen=True, kw_only=True, repr=False)
class Checked(Result):
    """The verdict on a formula; see `losscurv.check`.

    Attributes
    ----------
    points
        What came out at each point and component.
    kind, margin, relative, error, seed
        As they were asked for.
    draws
        Replicates drawn in all.
    failing
        The simplest example that disagrees, where hypothesis drew the points.
    """

    points: tuple[CheckedPoint, ...]
    kind: str
    margin: float
    relative: bool
    error: float
    draws: int
    seed: int
    failing: Mapping[str, Any] | None = None
    call: tuple[Formula | str, Formula | str, Mapping[str, Formula | str], Mapping[str, Any]] = field(
        compare=False
    )

    @property
    def verdict(self) -> Verdict:
        """Disagrees if one point does, agrees if all do, else undecided."""
        return combine([point.verdict for point in self.points])

    @property
    def agrees(self) -> bool:
        """Whether every point agrees."""
        return self.verdict is Verdict.AGREES

    @property
    def rivals(self) -> dict[str, bool]:
        """Whether each rival is rejected, at one point at least."""
        names = self.call[2]
        hit = {rival.name for point in self.points for rival in point.rivals if rival.rejected}
        return {name: name in hit for name in names}

    @property
    def reproduce(self) -> str:
        """The call that shows the simplest failing example again; empty where hypothesis found none."""
        if self.failing is None:
            return ""
        predict, simulate, _, options = self.call
        functions = function_name(predict, "predict"), function_name(simulate, "simulate")
        settings = [f"{name}={value!r}" for name, value in options.items()]
        return f"losscurv.check({', '.join([*functions, repr([dict(self.failing)]), *settings])})"

    def __getstate__(self) -> dict[str, Any]:
        # other processes may be unable to load the functions: names and numbers say what was found
        predict, simulate, rivals, options = self.call
        names = function_name(predict, "predict"), function_name(simulate, "simulate")
        return {**vars(self), "call": (*names, dict.fromkeys(rivals, ""), options)}

    def __bool__(self) -> bool:
        raise TypeError("a check has three outcomes: use result.agrees (or result.verdict)")

    def __repr__(self) -> str:
        shown = self.points
        if len(shown) > LINES:  # then what needs a look comes first
            shown = sorted(shown, key=lambda point: WORST_FIRST.index(Verdict(point.verdict)))[:LINES]
        more = len(self.points) - len(shown)
        return "\n".join(
            [
                self._headline(),
                *self._lines(shown),
                *([f"  ... {more:,} more: summary()"] if more else []),
                *([f"  reproduce: {self.reproduce}"] if self.reproduce else []),
                self._unseen().partition(", nor")[0],
            ]
        )

    def summary(self) -> str:
        """Return a line of text for each point, and what to do where there is no verdict."""
        helps = dict.fromkeys(wording.undecided(p) for p in self.points if p.reason not in ("", "budget"))
        lines = [self._headline(), *self._lines(self.points), *(f"  {text}" for text in helps)]
        lines += [f"  reproduce: {self.reproduce}"] if self.reproduce else []
        return "\n".join([*lines, self._unseen()]) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a page with picture and table as html, or the picture as png, svg or pdf, as the name ends.

        Raises
        ------
        ValueError
            If the format is another, or the file cannot be written.
        """
        import matplotlib as mpl

        from verify.page.canvas import frame
        from verify.page.markup import themed
        from verify.page.plots import save_as
        from verify.page.result_page import write_result

        path = Path(path)
        with mpl.rc_context(STYLE):
            figure, axes = frame(
                f"Plot: {self._headline()}", left=_LEFT, right=_RIGHT, width=_WIDTH, height=_HEIGHT
            )
            self._draw(axes)
        if path.suffix != ".html":
            save_as(figure, path)
            return
        reproduce = [f"Reproduce: {self.reproduce}"] if self.reproduce else []
        axes.set_title("", loc="left")  # it is that of the page
        write_result(self, path, themed(figure), [*reproduce, self._unseen().strip().capitalize() + "."])

    def _headline(self) -> str:
        several = any(point.component for point in self.points)
        count = sum(point.verdict == self.verdict for point in self.points)
        at = f" at {count:,} of {len(self.points):,} {'components' if several else 'points'}"
        at = at if len(self.points) > 1 or any(point.parameters for point in self.points) else ""
        margin = f"{100 * self.margin:.6g} %" if self.relative else f"{self.margin:.6g}"
        within = {Verdict.AGREES: "within", Verdict.DISAGREES: "by more than"}.get(self.verdict, "margin")
        kind = "" if self.kind == Kind.MEAN else f"{self.kind}; "
        chance = f"chance of a wrong verdict at most {100 * self.error:.2g} %"
        if self.kind in MODEL_BASED:
            chance += " if its correction falls as 1/size"
        return f"{self.verdict}{at}, {within} {margin} ({kind}{chance}; {self.draws:,} draws)"

    def _lines(self, points: Sequence[CheckedPoint]) -> list[str]:
        width = max((len(point.label) for point in points), default=0)
        return [f"  {f'{point.label:{width}}   ' if width else ''}{self._line(point)}" for point in points]

    def _line(self, point: CheckedPoint) -> str:
        verdict = [str(point.verdict)] if point.verdict != Verdict.AGREES else []
        return "   ".join(
            [*verdict, *self._numbers(point), *_rivals(point), *([point.why] if point.why else [])]
        )

    def _numbers(self, point: CheckedPoint) -> list[str]:
        measured = wording.headings(self.kind).measured
        if self.kind in ABSOLUTE:  # what is predicted is that there is none
            return [f"{measured} {_measured(point)}"]
        predicted = wording.prediction(point, plain=True).partition(" ±")[0]
        return [f"predicted {predicted}".replace("−", "-"), f"{measured} {_measured(point)}"]

    def _unseen(self) -> str:
        """Return the line on rare events that no interval can see, at the point where most of them escape."""
        most = max(self.points, key=lambda point: unseen_rate(point.replicates, point.error))
        return f"  not seen: {wording.unseen([most], most.error).replace(' would not be seen', '')}"

    def _columns(self) -> Columns:
        columns: dict[str, list[Any]] = {}
        for name in dict.fromkeys(name for point in self.points for name in point.parameters):
            # A parameter may have the name of a column.
            title = f"parameter {name}" if name in COLUMNS else name
            columns[title] = [_cell(point.parameters.get(name)) for point in self.points]
        if any(point.component for point in self.points):
            columns["component"] = [", ".join(map(str, point.component)) for point in self.points]
        for name in COLUMNS:
            columns[name] = [_cell(getattr(point, name)) for point in self.points]
        for rival in self.call[2]:
            words = ["rejected" if _rival(point, rival).rejected else "not rejected" for point in self.points]
            columns[f"rival {rival}"] = words
        if any(point.why for point in self.points):
            columns["reason"] = [point.why for point in self.points]
        return columns

    def _record(self) -> Mapping[str, Any]:
        points = [
            {name: getattr(p, name) for name in ("point", "component", *COLUMNS, "why", "needed", "rivals")}
            for p in self.points
        ]
        for point in points:
            point["reason"] = point.pop("why")
        own = (
            "verdict",
            "kind",
            "margin",
            "relative",
            "error",
            "draws",
            "seed",
            "rivals",
            "failing",
            "reproduce",
        )
        return {**{name: getattr(self, name) for name in own}, "points": points}

    def _draw(self, axes: Axes) -> None:
        from verify.page.axes import decades
        from verify.page.canvas import name_lines
        from verify.page.drawing import draw_mark

        axis = self._axis()
        x = [float(point.parameters[axis]) if axis else float(i) for i, point in enumerate(self.points)]
        if self.kind in ABSOLUTE:
            axes.axhline(self.margin, color=PALETTE["muted"], linewidth=0.8, label="margin")
        else:
            self._draw_formulas(axes, axis, x)
        for point, place in zip(self.points, x, strict=True):
            colour = PALETTE[point.verdict]
            if math.isfinite(point.upper - point.lower):  # without an interval there is only the point
                axes.plot([place, place], [point.lower, point.upper], color=colour, linewidth=1.1)
            draw_mark(axes, place, point.measured, point, size=4.5)
        if axis and spans_decades(x):
            axes.set_xscale("log")
            decades(axes.xaxis, min(x), max(x))
        if not axis:
            few = range(0, len(x), max(1, len(x) // 8))
            axes.set_xticks([x[i] for i in few], [self.points[i].label for i in few])
        axes.set(xlabel=axis, title=self._headline().partition(" (")[0])
        name_lines(axes)

    def _axis(self) -> str:
        """The one parameter that varies, if it is a number."""
        points = [point.parameters for point in self.points]
        varying = [
            name for name in points[0] if any(str(p.get(name)) != str(points[0][name]) for p in points)
        ]
        if len(varying) != 1 or any(point.component for point in self.points):
            return ""
        return (
            varying[0] if all(isinstance(p.get(varying[0]), int | float | np.number) for p in points) else ""
        )

    def _draw_formulas(self, axes: Axes, axis: str, x: Sequence[float]) -> None:
        """Lines between the points, at whole numbers only where the points are whole; else a mark at each point."""
        predict, _, rivals, _ = self.call
        grid = np.linspace(min(x), max(x), CURVE)
        if axis and all(isinstance(point.parameters[axis], int | np.integer) for point in self.points):
            grid = np.unique(np.round(grid)).astype(int)
        for k, (name, formula) in enumerate({"predicted": predict, **rivals}.items()):
            style: dict[str, Any] = {"color": PALETTE["rival" if k else "theory"], "label": name}
            if axis and callable(formula):
                drawn = [_value(formula, {**self.points[0].parameters, axis: at.item()}) for at in grid]
                axes.plot(grid, drawn, "--" if k else "-", linewidth=1.3 if k else 1.9, **style)
            else:
                marks = [_rival(point, name).value if k else point.predicted for point in self.points]
                axes.plot(x, marks, "_", ms=14, **style)


def _value(formula: Formula, parameters: Mapping[str, Any]) -> float:
    """A formula between the points; NaN, which is not drawn, where it has no value there."""
    try:
        return float(formula(**parameters))
    except Exception:  # it need not be defined between the points that were asked for
        return math.nan


def _rival(point: CheckedPoint, name: str) -> RivalOutcome:
    return next(rival for rival in point.rivals if rival.name == name)


def _rivals(point: CheckedPoint) -> list[str]:
    if len(point.rivals) > RIVALS:
        return [f"{sum(rival.rejected for rival in point.rivals)} of {len(point.rivals)} rivals rejected"]
    return [f"{rival.name}: {'rejected' if rival.rejected else 'not rejected'}" for rival in point.rivals]


def _measured(point: CheckedPoint) -> str:
    """The measured value with its interval, in letters of the keyboard; alone where there is no interval."""
    if not math.isfinite(point.lower) and not math.isfinite(point.upper):
        point = replace(point, lower=point.measured, upper=point.measured)
    return wording.measurement(point, plain=True).replace("±", "+-").replace("−", "-")


def _cell(value: Any) -> Any:
    return value if isinstance(value, int | float) else str(value)
