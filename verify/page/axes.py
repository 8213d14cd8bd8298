"""Ends and ticks of the axes of all figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from verify.page import wording
from verify.page.canvas import Scale
from verify.page.drawing import Floats, Limits, finite_values
from verify.results import PointOutcome

STEPS = {True: [1, 2, 5, 10], False: [1, 2, 2.5, 5, 10]}
"""Steps between whole numbers, and between any."""

SIDES_LINEAR = 12.0
"""Deviations up to so many margins are drawn linearly; beyond, the axis is logarithmic outside the band."""

PAD = 0.035
"""Room beside the first and the last place of an axis, as a share of its length."""

NEAR = 4.5
"""Rivals and ends of intervals up to so many margins away are inside the frame."""


def padded_ends(places: Sequence[float], *, logarithmic: bool) -> Limits:
    """Ends of a horizontal axis, with room beside its first and last place."""
    low, high = min(places), max(places)
    if logarithmic:
        pad = (high / low) ** PAD if high > low else 2.0
        return low / pad, high * pad
    pad = PAD * (high - low) or 0.5 * abs(high) or 1.0
    return low - pad, high + pad


def plain_scale(name: str, ends: Limits, *, logarithmic: bool, whole: bool = False) -> Scale:
    """An axis with a few round numbers as ticks, `whole` ones if asked for, or powers of ten."""
    found = powers(*ends) if logarithmic else []
    texts = {value: tick_text(value) for value in found}
    if not found:
        if logarithmic:
            span = range(math.floor(math.log10(ends[0])), math.floor(math.log10(ends[1])) + 1)
            found = [m * 10.0**k for k in span for m in (1, 2, 5) if ends[0] <= m * 10.0**k <= ends[1]]
        if len(found) < 2:
            values = MaxNLocator(nbins=4, steps=STEPS[whole], integer=whole).tick_values(*ends)
            found = [value for value in values if ends[0] <= value <= ends[1]]
        texts = {value: wording.numeral(round(value, 14), 6) for value in found}
    return Scale(name, ends, found, logarithmic, texts)


def powers(low: float, high: float) -> list[float]:
    """Powers of ten between two numbers, at most seven; none where there are fewer than three.

    >>> powers(0.03, 20.0), powers(2.0, 50.0)
    ([0.1, 1.0, 10.0], [])
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, math.ceil((last - first) / 6))
    return [10.0**k for k in range(first, last + 1, step)] if last - first >= 2 else []


def limits_around(core: Floats, others: Floats, *, least: float, logarithmic: bool) -> Limits:
    """Ends of an axis: all of the `core`, and of the others what stays within reach of it, `least` or more."""
    if logarithmic:
        core, others = np.log(core[core > 0]), np.log(others[others > 0])
    if not core.size:
        return (0.1, 10.0) if logarithmic else (-1.0, 1.0)
    low, high = float(core.min()), float(core.max())
    reach = max(0.35 * (high - low), least) or 0.5 * abs(high) or 1.0
    near = np.clip(others, low - reach, high + reach)
    low, high = min([low, *near]), max([high, *near])
    pad = 0.06 * (high - low) or reach
    ends = float(low - pad), float(high + pad)
    return (math.exp(ends[0]), math.exp(ends[1])) if logarithmic else ends


def margins_scale(points: Sequence[PointOutcome], name: str, *, from_zero: bool) -> Scale:
    """Axis of deviations in margins, symmetric or `from_zero`."""
    centres = finite_values([wording.deviation(p) for p in points])
    sides = [wording.deviation(p, side) for p in points for side in (p.lower, p.upper)]
    others = np.abs(finite_values(sides, [wording.deviation(p, r.value) for p in points for r in p.rivals]))
    limit = 1.12 * float(max([1.6, *np.abs(centres), *others[others <= NEAR]]))
    bent = limit > SIDES_LINEAR
    outer = [1.0, 2.0, 3.0, 4.0] if limit < 4.5 else [1.0, 4.0, 8.0, 12.0]
    if bent:
        limit = 1.6 * min(limit, 1e15)
        last = math.floor(math.log10(limit / 1.6))
        outer = [10.0**k for k in range(0, last + 1, max(1, math.ceil((last + 1) / 4)))]
    # half a margin of room for the mark at 0
    ends = (-min(0.5, 0.05 * limit) if from_zero else -limit, limit)
    shown = [v for v in (*(-v for v in outer), 0.0, *outer) if ends[0] <= v <= ends[1]]
    texts = {value: tick_text(value) for value in shown}
    return Scale(name + ", logarithmic beyond 1" * bent, ends, shown, texts=texts, bent=bent)


def differences_scale(points: Sequence[PointOutcome], name: str) -> Scale:
    """Logarithmic axis of differences in tolerances, to the farthest rival; those near 0 are beyond its left end."""
    seen = finite_values([wording.deviation(p) for p in points])
    others = finite_values([wording.deviation(p, r.value) for p in points for r in p.rivals])
    low = min(seen[seen > 1e-100].min(initial=0.01), 0.01) / 3
    return plain_scale(name, (low, 3 * max([1.0, *seen, *others])), logarithmic=True)


def decades(axis: Any, low: float, high: float) -> None:
    """Give a logarithmic axis its ticks between two numbers."""
    made = plain_scale("", (low, high), logarithmic=True)
    axis.set_major_locator(FixedLocator([*made.ticks]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: made.texts.get(float(value), "")))


def plain_ticks(axis: Any, *, whole: bool = False) -> None:
    """Give an axis a few round numbers, `whole` ones where others mean nothing, whatever its ends will be."""
    axis.set_major_locator(MaxNLocator(nbins=5, steps=STEPS[whole], integer=whole))
    axis.set_major_formatter(FuncFormatter(lambda value, _: wording.numeral(round(value, 14), 6)))


def tick_text(value: float) -> str:
    """A tick as all other numbers of the report are written, far powers of ten as such."""
    power = round(math.log10(abs(value))) if value else 0
    if not -3 < power < 4 and math.isclose(abs(value), 10.0**power):
        return ("−" if value < 0 else "") + wording.power_of_ten(power)
    return wording.numeral(value, 3)
