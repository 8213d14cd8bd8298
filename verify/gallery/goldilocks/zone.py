"""Figures 1 and 2 of Vysogorets, Dawid and Kempe (2024): the Goldilocks zone against scale and temperature."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from simulate import data, networks
from simulate.perceptrons import curvature, full_space
from theory import gauss_newton, zone as laws
from verify.claims.vysogorets2024.framed_networks import lenet_5, lenet_300_100, uniform_norms
from verify.gallery.goldilocks.parts import (
    SECOND,
    THIRD,
    drawn_networks,
    frames_beside,
    read_off,
    scale_axis,
    shaded_median,
    small_key,
)
from verify.gallery.parts import MEASURED, Setting, curve
from verify.page.axes import decades, plain_ticks
from verify.page.drawing import Floats, Panel
from verify.page.theme import PALETTE

__all__ = ["zone_curves"]

SAMPLES, DIM, DRAWS = 30, 50, 5
ALPHAS: Floats = np.logspace(-2, 2, 61)
COARSE: Floats = np.logspace(-1.5, 1.25, 12)
SCALES = (0.4, 3.0)
"""Of the networks whose temperature is turned, beside 1."""

TINY = 1e-12


class _Network(NamedTuple):
    """Networks of one kind and what is measured of them: rows for networks, along the scales."""

    name: str
    nets: list[Any]
    excess: Floats
    matched: Floats
    gauss_newton: Floats
    naive: Floats
    h_term: Floats
    norms: tuple[Floats, Floats]
    uniform: list[tuple[float, float]]
    law: Floats | None

    @property
    def depth(self) -> int:
        return self.nets[0].depth


def zone_curves(setting: Setting) -> list[Panel]:
    """Excess of the Hessian against scale and temperature, and the norms and excesses of its two terms."""
    full = _law_of_full_space(setting)
    kinds = (
        _measured("LeNet-300-100", _drawn(setting, lenet_300_100), full),
        _measured("LeNet-5, max pooled", _drawn(setting, lenet_5), None),
    )

    def row(draw: Any) -> Any:
        def both(axes: Axes) -> None:
            parts = frames_beside(axes, [partial(draw, kind=kind) for kind in kinds], gap=0.1)
            read_off(parts[1])

        return both

    note = (
        f"lines: medians of {DRAWS} networks, {SAMPLES} images, d = {DIM}; shades: smallest to largest;\n"
        "grey: ± 2 √(2 / (d + 1)), where matrices without trace lie; upright: lower\n"
        "edge, predicted; law: norms of both terms in full space, seen in d dimensions;\n"
        "dots: the first network, diag(p) − p pᵀ formed in plain float64"
    )
    return [
        Panel(1.45, row(_excess), bottom=0.46),
        Panel(1.45, partial(_collapse, kinds=kinds), bottom=0.46),
        Panel(1.45, row(_norms), bottom=0.46, top=0.3),
        Panel(1.45, row(_terms), notes=note, top=0.12),
    ]


def _drawn(setting: Setting, build: Any) -> list[Any]:
    return drawn_networks(setting, f"zone {build.__name__}", build, DRAWS, samples=SAMPLES, dim=DIM)


def _measured(name: str, nets: list[Any], law: Floats | None) -> _Network:
    def excess(matrix: Any) -> Floats:
        return curvature.positive_excess(matrix).numpy(force=True)

    terms = [net.terms(ALPHAS) for net in nets]
    return _Network(
        name,
        nets,
        excess=np.array([excess(t.hessian) for t in terms]),
        matched=np.array([excess(net.terms(ALPHAS, ALPHAS**net.depth).hessian) for net in nets]),
        gauss_newton=np.array([excess(net.scaled_g_term(ALPHAS)[0]) for net in nets]),
        naive=np.array([_naive_excess(net, ALPHAS) for net in nets]),
        h_term=np.array([excess(t.h_term) for t in terms]),
        norms=(
            np.array([curvature.spectral_norm(t.g_term).numpy(force=True) for t in terms]),
            np.array([curvature.spectral_norm(t.h_term).numpy(force=True) for t in terms]),
        ),
        uniform=[uniform_norms(net) for net in nets],
        law=law,
    )


def _naive_excess(net: Any, alphas: Floats) -> Floats:
    """exc(G) from J' diag(p) J - (J' p)(J' p)' as it stands, NaN where all of it is lost."""
    jacobian = net.jacobian.flatten(0, 1).numpy(force=True)
    found = []
    for scale in alphas**net.depth:
        p = (float(scale) * net.logits).softmax(-1).numpy(force=True)
        means = np.einsum("nk,nki->ni", p, net.jacobian.numpy(force=True))
        matrix = jacobian.T @ (p.ravel()[:, None] * jacobian) - means.T @ means
        norm = np.linalg.norm(matrix)
        found.append(np.trace(matrix) / norm if norm > 0 else np.nan)
    return np.array(found)


def _law_of_full_space(setting: Setting) -> Floats:
    """What the projected excess has to be by the norms of both terms in full space, network by network."""
    source = data.opened(setting.data, (1, 28, 28))
    found = []
    for rng in setting.block("zone lenet_300_100", DRAWS).streams:
        images = data.sample(source, rng, SAMPLES).flat()
        weights = networks.mlp_weights(rng, (*networks.LENET_300_100[:-1], source.classes))
        weights = [w.to(setting.device) for w in weights]
        norms = [full_space.norms(weights, images.images, images.labels, float(a)) for a in COARSE]
        ratio = [min(n.norm_h_term / max(n.norm_g, 1e-200), 1e100) for n in norms]
        full = gauss_newton.hessian_excess([n.excess_g for n in norms], frobenius_ratio=ratio)
        found.append(gauss_newton.projected_excess(full, dim=DIM))
    return np.array(found)


def _floor(axes: Axes) -> None:
    width = 2 * float(gauss_newton.excess_noise_floor(DIM))
    axes.axhspan(-width, width, color=PALETTE["rule"], lw=0, zorder=1)


def _excess(axes: Axes, *, kind: _Network) -> None:
    _floor(axes)
    shaded_median(axes, ALPHAS, kind.matched, "T = αᴸ", colour=SECOND)
    shaded_median(axes, ALPHAS, kind.excess, "T = 1")
    if kind.law is not None:
        curve(axes, COARSE, np.median(kind.law, 0), "law", dash=0)
    _edges(axes, kind)
    scale_axis(axes, ALPHAS)
    axes.set_ylim(-1.0, 6.2)
    plain_ticks(axes.yaxis)
    axes.set_ylabel("exc(H)")
    axes.set_title(kind.name)
    if kind.law is not None:
        small_key(axes, "upper left")


def _edges(axes: Axes, kind: _Network) -> None:
    """The predicted lower edges of these networks."""
    found = [float(laws.lower_edge(g, h, depth=kind.depth)) for g, h in kind.uniform]
    axes.axvspan(min(found), max(found), color=PALETTE["theory"], lw=0, alpha=0.25, zorder=1)
    axes.axvline(float(np.median(found)), color=PALETTE["theory"], lw=1.0, zorder=2)


def _collapse(axes: Axes, *, kinds: tuple[_Network, ...]) -> None:
    """One network of each kind: T is turned at three scales, and the scale at T = 1."""
    reach: Floats = np.logspace(-6, 6, 121)
    for kind, colour in zip(kinds, (MEASURED, THIRD), strict=True):
        net, rest = kind.nets[0], kind.excess[0]
        at_one = curvature.positive_excess(net.terms(1.0, reach).hessian).numpy(force=True)
        axes.plot(reach, at_one, color=colour, lw=1.3, label=f"{kind.name}, α = 1", zorder=3)
        reduced = laws.reduced_temperature(ALPHAS, depth=kind.depth)
        seen = slice(None, None, 3)
        axes.plot(reduced[seen], rest[seen], "o", ms=4, mfc="none", mec=colour, mew=0.9, zorder=4)
        for alpha, mark in zip(SCALES, "+x", strict=True):
            heat = reach[4::9] * alpha**kind.depth
            values = curvature.positive_excess(net.terms(alpha, heat).hessian).numpy(force=True)
            reduced = laws.reduced_temperature(alpha, depth=kind.depth, temperature=heat)
            axes.plot(reduced, values, mark, ms=5, mew=0.9, color=colour, zorder=4)
    for mark, label in zip(
        "o+x", ("T = 1, α turned", *(f"α = {a:g}, T turned" for a in SCALES)), strict=True
    ):
        style = {"ms": 5, "mew": 0.9, "mfc": "none", "color": PALETTE["muted"]}
        axes.plot([], [], mark, label=label, **style)
    scale_axis(axes, reach, "T / αᴸ")
    axes.set_ylim(-1.0, 5.0)
    plain_ticks(axes.yaxis)
    axes.set_ylabel("exc(H)")
    axes.set_title("One network of each kind: T / αᴸ decides alone")
    small_key(axes, "upper left")


def _norms(axes: Axes, *, kind: _Network) -> None:
    g, h = kind.norms
    shaded_median(axes, ALPHAS, np.maximum(g, TINY**2), "|G|₂")
    shaded_median(axes, ALPHAS, h, "|H̃|₂", colour=SECOND)
    factors = laws.curvature_factors(ALPHAS, depth=kind.depth)
    uniform_g, uniform_h = np.median(kind.uniform, 0)
    small = ALPHAS <= 3
    curve(axes, ALPHAS[small], (uniform_g * factors.gauss_newton)[small], "α²ᴸ⁻²", dash=0)
    curve(axes, ALPHAS, uniform_h * factors.h_term, "αᴸ⁻²", dash=1)
    _edges(axes, kind)
    axes.set_yscale("log")
    scale_axis(axes, ALPHAS)
    axes.set_ylim(TINY, 1e8)
    decades(axes.yaxis, TINY, 1e8)
    axes.set_ylabel("spectral norm")
    if kind.law is not None:
        small_key(axes, "upper left")


def _terms(axes: Axes, *, kind: _Network) -> None:
    _floor(axes)
    shaded_median(axes, ALPHAS, kind.gauss_newton, "exc(G)")
    naive = np.clip(kind.naive[0], -1.0, 5.0)
    axes.plot(
        ALPHAS, naive, color=PALETTE["ink"], lw=0.9, dashes=(1.5, 1.5), label="in plain float64", zorder=4
    )
    shaded_median(axes, ALPHAS, kind.h_term, "exc(H̃)", colour=SECOND)
    axes.axhline(1.0, color=PALETTE["theory"], lw=1.2, zorder=2, label="least exc(G)")
    scale_axis(axes, ALPHAS)
    axes.set_ylim(-1.0, 6.8)
    plain_ticks(axes.yaxis)
    axes.set_ylabel("exc of both terms")
    if kind.law is not None:
        small_key(axes, "upper left", ncols=2, columnspacing=0.8)
