"""Lines of the noise laws."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.theory.fuzz.line import Line, between, positive
from tests.theory.fuzz.strategies import (
    SOME_SIZE,
    log_uniform,
    mostly,
    orders,
    planes,
    points,
    shares,
    signed,
    sizes,
)
from theory import rmt


def compound_law(rate: float, jumps: list[float], unit: float) -> rmt.CompoundFreePoisson:
    return rmt.CompoundFreePoisson(rate=rate, jumps=unit * np.array(jumps))


compound = st.builds(
    compound_law,
    st.one_of(log_uniform(1e-2, 1e2), log_uniform(1e-5, 1e11), st.just(1.0)),
    st.lists(
        st.builds(lambda size, sign: sign * size, log_uniform(1e-2, 1e2), st.sampled_from([-1.0, 1.0])),
        min_size=1,
        max_size=4,
    ),
    st.one_of(st.just(1.0), log_uniform(1e-90, 1e90)),
)
laws_of_noise = mostly(
    compound,
    SOME_SIZE.map(lambda v: rmt.Semicircle(variance=v)),
    log_uniform(1e-270, 1e270).map(lambda v: rmt.Semicircle(variance=v)),
    st.builds(lambda v, q: rmt.MarchenkoPastur(variance=v, q=q), SOME_SIZE, SOME_SIZE),
    log_uniform(1e-270, 1e270).map(lambda v: rmt.MarchenkoPastur(variance=v, q=1.0)),
)
SCALE = {"sigma": st.one_of(st.none(), sizes), "variance": st.one_of(st.none(), sizes)}


def on_the_support(arguments: Mapping[str, Any], value: Any) -> None:
    low, high = arguments["self"].support()
    assert np.all((value >= low - 1e-15 * high) & (value <= high * (1 + 1e-15)))


ARGUMENTS = {
    **{name: {"x": points} for name in ("pdf", "logpdf", "cdf", "sf")},
    **{name: {"u": shares} for name in ("ppf", "isf")},
    "moment": {"k": orders},
    "stieltjes": {"z": planes},
    "r_transform": {"w": planes},
}
HOLDS = {"pdf": positive, "cdf": between(0, 1), "sf": between(0, 1)}


def methods(
    cls: type,
    made: st.SearchStrategy[Any],
    infinite: tuple[str, ...],
    also: tuple[str, ...] = (),
    **holds: Any,
) -> dict[str, Line]:
    """All methods and properties of a law."""
    found = {}
    for name in (name for name in dir(cls) if not name.startswith("_")):
        member = inspect.getattr_static(cls, name)
        function = member.fget if isinstance(member, property) else getattr(cls, name)
        obeys = (HOLDS | holds).get(name, lambda _, value: None)
        arguments = {"self": made, **ARGUMENTS.get(name, {})}
        found[f"rmt.{cls.__name__}.{name}"] = Line(
            function, arguments, obeys, infinite=name in infinite, also=also
        )
    return found


scales = st.one_of(SOME_SIZE, log_uniform(1e-270, 1e270))
near_one = st.sampled_from([1.0, 1 - 1e-15, 1 + 1e-12, 1e-270, 1e270])
semicircles = st.builds(lambda v: rmt.Semicircle(variance=v), scales)
pasturs = st.builds(
    lambda v, q: rmt.MarchenkoPastur(variance=v, q=q if q * v <= 1e270 else 1.0),
    scales,
    st.one_of(SOME_SIZE, near_one),
)
BULK: dict[str, Any] = {
    "also": ("variance", "sigma", "q"),
    "ppf": on_the_support,
    "isf": on_the_support,
    "moment": positive,
}
UNBOUNDED = ("logpdf", "ppf", "isf", "edges", "support")

MODULES = {
    "rmt": (),
}

TABLE: dict[str, Line] = {
    "rmt.CompoundFreePoisson": Line(
        rmt.CompoundFreePoisson, {"rate": sizes, "jumps": signed, "weights": st.one_of(st.none(), shares)}
    ),
    **methods(rmt.CompoundFreePoisson, compound, ("pdf",)),
    "rmt.TracyWidom": Line(rmt.TracyWidom, {"beta": mostly(st.sampled_from([1, 2, 2.0, 4]))}),
    **methods(
        rmt.TracyWidom,
        st.sampled_from([1, 2]).map(lambda beta: rmt.TracyWidom(beta=beta)),
        UNBOUNDED,
        pdf=between(0, 0.5),
        logpdf=between(-math.inf, 0),
    ),
    "rmt.Semicircle": Line(rmt.Semicircle, SCALE),
    "rmt.MarchenkoPastur": Line(rmt.MarchenkoPastur, {"q": sizes, **SCALE}),
    **methods(rmt.Semicircle, semicircles, ("pdf", "logpdf"), **BULK),
    **methods(rmt.MarchenkoPastur, pasturs, ("pdf", "logpdf"), **BULK),
}
