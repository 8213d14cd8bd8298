"""Lines of the noise laws."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.theory.fuzz.line import Line, between, real
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


def law(cls: type, method: str, **more: Any) -> Line:
    """A method of a law, or the law itself, with the law's parameters among the arguments."""
    scales = st.one_of(SOME_SIZE, log_uniform(1e-270, 1e270))
    near_one = st.sampled_from([1.0, 1 - 1e-15, 1 + 1e-12, 1e-270, 1e270])
    made = (
        st.builds(lambda v: rmt.Semicircle(variance=v), scales)
        if cls is rmt.Semicircle
        else st.builds(
            lambda v, q: rmt.MarchenkoPastur(variance=v, q=q if q * v <= 1e270 else 1.0),
            scales,
            st.one_of(SOME_SIZE, near_one),
        )
    )
    argument = more.pop("argument", {})
    found = getattr(cls, method)
    function = found.fget if isinstance(found, property) else found
    return Line(function, {"self": made, **argument}, **{"also": ("variance", "sigma", "q"), **more})


def laws(cls: type) -> dict[str, Line]:
    x, u = {"argument": {"x": points}}, {"argument": {"u": shares}}
    lines = {
        "pdf": law(cls, "pdf", infinite=True, holds=between(0, math.inf), **x),
        "logpdf": law(cls, "logpdf", infinite=True, **x),
        "cdf": law(cls, "cdf", holds=between(0, 1), **x),
        "sf": law(cls, "sf", holds=between(0, 1), **x),
        "ppf": law(cls, "ppf", holds=on_the_support, **u),
        "isf": law(cls, "isf", holds=on_the_support, **u),
        "moment": law(cls, "moment", argument={"k": orders}, holds=between(0, math.inf)),
        "stieltjes": law(cls, "stieltjes", argument={"z": planes}),
        "r_transform": law(cls, "r_transform", argument={"w": planes}),
    }
    plain = ("edges", "atom", "support", "mean", "var", "variance" if cls is rmt.Semicircle else "sigma")
    return {f"rmt.{cls.__name__}.{name}": line for name, line in lines.items()} | {
        f"rmt.{cls.__name__}.{name}": law(cls, name) for name in plain
    }


def compound_laws() -> dict[str, Line]:
    """Methods of the compound free Poisson law."""
    x, cls = {"x": points}, rmt.CompoundFreePoisson
    lines = {
        "pdf": Line(cls.pdf, {"self": compound, **x}, between(0, math.inf), infinite=True),
        "cdf": Line(cls.cdf, {"self": compound, **x}, between(0, 1)),
        "sf": Line(cls.sf, {"self": compound, **x}, between(0, 1)),
        "moment": Line(cls.moment, {"self": compound, "k": orders}),
        "stieltjes": Line(cls.stieltjes, {"self": compound, "z": planes}),
        "r_transform": Line(cls.r_transform, {"self": compound, "w": planes}),
    }
    for name in ("atom", "bulks", "edges", "mean", "support", "var"):
        found = getattr(cls, name)
        lines[name] = Line(found.fget if isinstance(found, property) else found, {"self": compound})
    return {f"rmt.CompoundFreePoisson.{name}": line for name, line in lines.items()}


def tracy_widom() -> dict[str, Line]:
    """Methods of the Tracy-Widom laws."""
    x, u, cls = {"x": points}, {"u": shares}, rmt.TracyWidom
    lines = {
        "pdf": (x, between(0, 0.5)),
        "logpdf": (x, between(-math.inf, 0)),
        "cdf": (x, between(0, 1)),
        "sf": (x, between(0, 1)),
        "ppf": (u, real),
        "isf": (u, real),
        "moment": ({"k": orders}, real),
        **{name: ({}, real) for name in ("atom", "edges", "mean", "support", "var")},
    }
    made = st.sampled_from([1, 2]).map(lambda beta: rmt.TracyWidom(beta=beta))
    found = {name: getattr(cls, name) for name in lines}
    return {
        f"rmt.TracyWidom.{name}": Line(
            found[name].fget if isinstance(found[name], property) else found[name],
            {"self": made, **arguments},
            holds,
            infinite=name in ("logpdf", "ppf", "isf", "edges", "support"),
        )
        for name, (arguments, holds) in lines.items()
    }


MODULES = {
    "rmt": (),
}

TABLE: dict[str, Line] = {
    "rmt.CompoundFreePoisson": Line(
        rmt.CompoundFreePoisson, {"rate": sizes, "jumps": signed, "weights": st.one_of(st.none(), shares)}
    ),
    **compound_laws(),
    "rmt.TracyWidom": Line(rmt.TracyWidom, {"beta": mostly(st.sampled_from([1, 2, 2.0, 4]))}),
    **tracy_widom(),
    "rmt.Semicircle": Line(rmt.Semicircle, SCALE),
    "rmt.MarchenkoPastur": Line(rmt.MarchenkoPastur, {"q": sizes, **SCALE}),
    **laws(rmt.Semicircle),
    **laws(rmt.MarchenkoPastur),
}
