"""Text, JSON and page of a measurement."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from verify.escapes import escaped
from verify.files import replace_files, writing
from verify.page import terminal, wording
from verify.page.markup import template
from verify.practice.full_gradients import full_gradient_lines
from verify.practice.measure import plots
from verify.practice.measure.measurement import Eigenvalue, Matrix, Measurement, Number
from verify.practice.page_plots import plots_html

VERSION = 1
"""Version of the JSON."""

_WIDTH = 80
"""Most characters of a line outside tables."""

_NAME = 21
"""Characters of the name of a value."""


def measurement_json(found: Measurement) -> str:
    """Return the measurement as JSON."""
    return json.dumps({"version": VERSION, **found.to_dict()}, indent=1, allow_nan=False) + "\n"


def measurement_page(found: Measurement) -> str:
    """Return the measurement as one self-contained page."""
    return template("measure.html.j2", rounded=rounded).render(
        m=found,
        zone=found.zone,
        name=escaped(found.name),
        full_gradients=list(_full_gradients(found)),
        pictures=plots_html(plots.measurement_plots(found)),
        layers=plots_html(plots.layer_plots(found)) if found.layers else "",
        between=share_between_layers(found),
        promise=promise(found),
    )


def rounded(value: float, error: float) -> str:
    """Return a value with the digits that its error leaves, at most six.

    >>> rounded(46.4158, 0.17), rounded(10.0719, 2.2e-5), rounded(0.866, 0.046)
    ('46.42', '10.0719', '0.866')
    """
    if not (value and 0 < error < math.inf):
        return wording.numeral(value, 6)
    known = math.floor(math.log10(abs(value))) - math.floor(math.log10(error)) + 2
    return wording.numeral(value, min(max(known, 1), 6))


def write_measurement(found: Measurement, folder: Path) -> Path:
    """Write ``measure.html`` and ``measure.json``, both or neither, and return the path of the page.

    Raises
    ------
    ValueError
        If the folder cannot be written.
    """
    place = folder / "measure.html"
    with writing("page", folder):
        folder.mkdir(parents=True, exist_ok=True)
        replace_files({folder / "measure.json": measurement_json(found), place: measurement_page(found)})
    return place


def measurement_text(found: Measurement) -> str:
    """Return the measurement as text for a terminal."""
    lines = [*_wrapped(_heading(found)), "", *_table(found), "", *_layers(found)]
    lines += _wrapped(_rest(found))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _wrapped(lines: Iterable[str]) -> Iterator[str]:
    """Wrap lines to the width of a terminal; further lines of a named value are indented like the value."""
    for line in lines:
        named = "  " in line.strip()
        yield from terminal.wrapped_text(line, _WIDTH, " " * (_NAME if named else 2), "")


def _heading(found: Measurement) -> Iterator[str]:
    classes = "" if found.classes is None else f", K = {found.classes} classes"
    yield escaped(found.name)
    yield f"P = {found.parameters} parameters, N = {found.samples} samples{classes}, {found.dtype} on {found.device}"
    yield f"loss {_plain(found.loss.value)}, gradient norm {_plain(found.gradient_norm.value)}"
    yield from found.doubts


def _table(found: Measurement) -> Iterator[str]:
    columns = [_column("Hessian", found.hessian), _column("Gauss-Newton matrix", found.gauss_newton)]
    ranks = [f"eigenvalue {k + 1}" for k in range(len(found.hessian.top))]
    names = ["", *ranks, "lowest eigenvalue", "trace", "Frobenius norm", "trace / Frobenius"]
    width = max(map(len, columns[0]))
    for name, first, second in zip(names, *columns, strict=True):
        yield f"{name:<20}{first:<{width}}   {second}"


def _column(name: str, matrix: Matrix) -> list[str]:
    eigenvalues = [_eigenvalue(each) for each in (*matrix.top, matrix.lowest)]
    return [name, *eigenvalues, *map(value, (matrix.trace, matrix.frobenius, matrix.excess))]


def _layers(found: Measurement) -> Iterator[str]:
    if not found.layers:
        return
    head = ("layer", "P", "share", "eigenvalue 1", "trace", "trace / Frobenius")
    rows = [
        (
            escaped(layer.name),
            str(layer.parameters),
            f"{100 * layer.share.value:.1f} %",
            _eigenvalue(layer.largest),
            value(layer.trace),
            value(layer.excess),
        )
        for layer in found.layers
    ]
    yield from terminal.fitted_table(head, rows)
    rest = f"{100 * share_between_layers(found):.1f} %"
    yield f"share: of the squared Frobenius norm; {rest} of it lies between layers"
    yield ""


def share_between_layers(found: Measurement) -> float:
    """Share of the squared Frobenius norm of the Hessian outside its diagonal blocks."""
    return max(0.0, 1 - sum(layer.share.value for layer in found.layers))


def _rest(found: Measurement) -> Iterator[str]:
    if found.short:
        yield f"left open within the budget: {found.short}; raise --budget"
    yield from _zone_lines(found)
    yield from _noise_lines(found)
    yield from _batch_lines(found)
    yield from _full_gradients(found)
    yield f"±: {promise(found)}; {found.passes:.0f} passes in {found.seconds:.0f} s"


def promise(found: Measurement) -> str:
    """Return what the errors mean, in words."""
    ceiling = found.hessian.ceiling
    # rounded up, or the statement might be wrong
    unit = 10.0 ** (math.floor(math.log10(abs(ceiling))) - 3) if ceiling else 1.0
    highest = _plain(math.ceil(ceiling / unit) * unit, 4)
    return (
        f"an eigenvalue lies within it, and with probability 0.99 none of H is above {highest};"
        " of any other number, one standard error"
    )


def _full_gradients(found: Measurement) -> Iterator[str]:
    return full_gradient_lines(found.hessian.top[0].value, found.gauss_newton.top[0].value)


def _zone_lines(found: Measurement) -> Iterator[str]:
    zone = found.zone
    if zone is None:
        yield "Goldilocks zone      the Hessian is zero"
        return
    yield f"Goldilocks zone      {zone.verdict}: {zone.reason}"
    seen = f"{_plain(zone.excess.value)} ± {_plain(zone.excess.standard_error, 2)}"
    yield f"  excess, {zone.dim} dim.    {seen} by theory; noise {_plain(zone.floor, 3)}"
    if zone.predicted is not None and found.hessian.excess is not None:
        whole = value(found.hessian.excess)
        yield f"  excess, whole      {whole}, {_plain(zone.predicted, 4)} by theory from the excess of G"
    if zone.softmax is not None:
        yield f"  softmax            confidence {_plain(zone.softmax.confidence, 3)}, entropy " + (
            f"{_plain(zone.softmax.entropy, 3)} of log K"
        )


def _noise_lines(found: Measurement) -> Iterator[str]:
    noise = found.noise
    if found.coupling:
        yield f"no variance over samples, since they depend on each other: {found.coupling}"
    if noise is None:
        return
    rows = (
        ("Hessian variance", noise.total, "mean of |H_i - H|^2 over samples"),
        ("  of one element", noise.element, "standard deviation"),
        ("  along v_1", noise.along_top, "variance of v_1' H_i v_1 over samples"),
        ("  of row v_1", noise.row, "mean of |(H_i - H) v_1|^2"),
    )
    yield from (
        f"{name:<{_NAME}}{value(number)}, {text}" for name, number, text in rows if number is not None
    )


def _batch_lines(found: Measurement) -> Iterator[str]:
    drawn = found.batches
    if drawn is None:
        return
    yield f"{len(drawn.pairs)} mini-batches of {drawn.size}: mean of λ₁, and ends of 8 of 10 of them"
    for name, batch in {"H": drawn.hessian, "G": drawn.gauss_newton, "G by theory": drawn.law}.items():
        said = f"none: {drawn.not_predicted}"
        if batch:
            said = f"{value(Number.estimated(batch.mean))}, {_plain(batch.low, 4)} to {_plain(batch.high, 4)}"
        yield f"  {name:<{_NAME - 2}}{said}"


def value(number: Number | None) -> str:
    """Return a number with its error, for a terminal.

    >>> from verify.practice.measure.measurement import Number
    >>> value(Number(value=1.23456, error=0.0123, kind="bound")), value(Number.exact(2.0))
    ('1.23456 ± 0.012', '2 exact')
    """
    if number is None:
        return "none"
    if number.kind == "exact":
        return f"{_plain(number.value, 6)} exact"
    return f"{_plain(number.value, 6)} ± {_plain(number.error, 2)}"


def _eigenvalue(found: Eigenvalue | None) -> str:
    if found is None:
        return ""
    return f"{_plain(found.value, 6)} ± {_plain(found.bound, 2)}{'' if found.converged else ' not converged'}"


def _plain(number: float, digits: int = 5) -> str:
    return wording.numeral(number, digits, plain=True)
