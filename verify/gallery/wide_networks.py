"""Wide random networks: what flows through them, the constants of their Fisher matrix, its spectrum and its top."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from simulate.matrices import ensembles
from simulate.monte_carlo import Block
from simulate.wide import batch_normed, fisher_gram, last_layer, layer_normed, signals
from theory import criticality, fisher
from theory.fisher import batch_normalised_statistics
from theory.fisher.layer_normalisation import layer_norm_largest
from theory.fisher.middle_normalisation import batch_norm_bound
from theory.order_parameters import order_parameters
from verify.gallery.parts import MEASURED, Setting, curve, heat, legend, log_axes, mean_points
from verify.page.axes import decades, plain_ticks
from verify.page.drawing import Floats, Panel
from verify.page.theme import PALETTE

__all__ = ["constants", "fisher_spectrum", "largest", "second_moments"]

RELU: dict[str, Any] = {"activation": "relu", "weight_variance": 2.0, "bias_variance": 0.0}
TANH: dict[str, Any] = {"activation": "tanh", "weight_variance": 3.0, "bias_variance": 0.64}
"""The two of figure 1."""

DEPTH = 3
DRAWS = 12


def _titled(title: str, law: Mapping[str, Any]) -> str:
    return f"{title}, {law['activation']} ({law['weight_variance']:g}, {law['bias_variance']:g})"


def _networks(
    block: Block, law: Mapping[str, Any], *, width: int, samples: int, outputs: int, depth: int
) -> Any:
    variances = {name: law[name] for name in ("weight_variance", "bias_variance")}
    return signals.wide_network(block, widths=(width,) * depth + (outputs,), samples=samples, **variances)


# --- order parameters -------------------------------------------------------------------------------------------

LAYERS, SIGNAL_WIDTH, SIGNAL_SAMPLES = 7, 200, 12


def second_moments(setting: Setting) -> list[Panel]:
    """Forward and backward second moments by layer, of one sample and of two."""
    return [_signals(setting, law, last=law is TANH) for law in (RELU, TANH)]


def _signals(setting: Setting, law: Mapping[str, Any], *, last: bool) -> Panel:
    block = setting.block(f"signals {law['activation']}", DRAWS)
    size = {"width": SIGNAL_WIDTH, "samples": SIGNAL_SAMPLES, "outputs": 4, "depth": LAYERS}
    measured = signals.measured_order_parameters(_networks(block, law, **size), law["activation"])
    theory = order_parameters(depth=LAYERS, **law)
    shown = (
        ("q_hat_t", "activations of a sample", "theory", 0, "o"),
        ("q_hat_st", "of two samples", "theory", None, "o"),
        ("q_tilde_t", "gradients of a sample", "rival", 0, "s"),
        ("q_tilde_st", "of two samples", "rival", None, "s"),
    )

    def draw(axes: Axes) -> None:
        for name, label, role, dash, mark in shown:
            layers = np.arange(LAYERS) + ("tilde" in name)
            curve(axes, layers, getattr(theory, name), label, role=role, dash=dash)
            values = measured[name].cpu().numpy()
            axes.errorbar(
                layers + (0.08 if "tilde" in name else -0.08), values.mean(0), yerr=values.std(0, ddof=1),
                ls="", marker=mark, ms=3.5, mew=0, elinewidth=1.0, color=MEASURED, zorder=4,
            )  # fmt: skip
        axes.set_ylim(0.0, 1.55)
        plain_ticks(axes.yaxis)
        axes.set_xlim(-0.3, LAYERS + 0.3)
        axes.set_xticks(range(LAYERS + 1))
        axes.grid(axis="y")
        axes.set_ylabel("second moment")
        axes.set_xlabel("layer" if last else "")
        axes.set_title(_titled("Signals by layer", law))
        legend(axes, "upper center", columns=2)

    note = (
        f"circles and squares: {DRAWS} networks of width {SIGNAL_WIDTH}, bars of one standard deviation\n"
        f"between them; solid: product of two samples, dashes: square of one"
    )
    return Panel(1.8, draw, bottom=0.5 if last else 0.3, notes=note if last else "")


# --- constants of the Fisher matrix -----------------------------------------------------------------------------

GRID, LINE = (25, 17), 41
CUT = 0.64
CUT_WIDTH, CUT_SAMPLES = 200, 6


def constants(setting: Setting) -> list[Panel]:
    """kappa1, kappa2 and their difference over both variances, for tanh; a cut with measured values."""
    weights, biases = np.linspace(0.2, 4.0, GRID[0]), np.linspace(0.0, 1.6, GRID[1])
    found = [[_kappas("tanh", w, b) for w in weights] for b in biases]
    heights = biases[-1] * np.linspace(0, 1, LINE) ** 3  # the line is steep where the biases are small
    line = [criticality.critical_weight_variance("tanh", b) for b in heights]
    named = (("kappa1", "κ₁"), ("kappa2", "κ₂"), ("difference", "κ₁ − κ₂"))
    levels = 10.0 ** np.arange(-2.0, 0.51, 0.25)

    def field(name: str, symbol: str) -> Callable[[Axes], None]:
        values = np.array([[getattr(k, name) for k in row] for row in found])

        def draw(axes: Axes) -> None:
            heat(axes, weights, biases, values, levels=levels)
            axes.plot(line, heights, color=PALETTE["disagrees"], lw=1.6, zorder=4)
            axes.axhline(CUT, color=PALETTE["ink"], lw=0.8, dashes=(4, 3), zorder=3)
            axes.set_xlim(weights[0], weights[-1])
            axes.set_ylim(biases[0], biases[-1])
            plain_ticks(axes.xaxis)
            plain_ticks(axes.yaxis)
            axes.set_ylabel("σ_b²")
            axes.set_title(f"{symbol}, tanh, L = {DEPTH}")

        return draw

    panels = [Panel(1.15, field(*pair), bottom=0.2) for pair in named]
    return [*panels, _cut(setting, named)]


def _kappas(activation: str, weight_variance: float, bias_variance: float) -> fisher.Kappas:
    return fisher.kappas(
        activation, depth=DEPTH, weight_variance=weight_variance, bias_variance=bias_variance
    )


def _cut(setting: Setting, named: Any) -> Panel:
    grid, places = np.linspace(0.2, 4.0, 60), np.array([0.4, 1.0, 1.6, 2.2, 2.8, 3.4, 4.0])
    lines = [_kappas("tanh", w, CUT) for w in grid]
    drawn = [_measured_kappas(setting, float(w)) for w in places]
    styles = {"kappa1": (None, "o"), "kappa2": (0, "s"), "difference": (1, "^")}

    def draw(axes: Axes) -> None:
        for name, symbol in named:
            dash, mark = styles[name]
            curve(axes, grid, [getattr(k, name) for k in lines], symbol, dash=dash)
            mean_points(axes, places, [d[name] for d in drawn], "", mark=mark)
        axes.set_yscale("log")
        decades(axes.yaxis, *axes.get_ylim())
        axes.set_xlim(grid[0], grid[-1] * 1.01)
        plain_ticks(axes.xaxis)
        axes.grid(axis="y")
        axes.set_xlabel("σ_w²")
        axes.set_title(f"The cut σ_b² = {CUT:g}")
        legend(axes, "lower right", columns=3)

    note = (
        f"orange: critical line, ordered to its left; points: {DRAWS} networks of width {CUT_WIDTH},\n"
        f"{CUT_SAMPLES} samples, less the gradients of the biases; bars of two standard errors"
    )
    return Panel(1.7, draw, notes=note)


def _measured_kappas(setting: Setting, weight_variance: float) -> dict[str, Floats]:
    """From the diagonal of the Gram matrix of the weights, and from what is off it."""
    law = {"activation": "tanh", "weight_variance": weight_variance, "bias_variance": CUT}
    block = setting.block(f"constants {weight_variance:g}", DRAWS)
    network = _networks(block, law, width=CUT_WIDTH, samples=CUT_SAMPLES, outputs=1, depth=DEPTH)
    gram = fisher_gram.gram(network, "tanh", biases=False)
    scale = (DEPTH - 1) * CUT_WIDTH
    own = (fisher_gram.fisher_trace(gram) / scale).cpu().numpy()
    together = (fisher_gram.rayleigh(gram) * CUT_SAMPLES / scale).cpu().numpy()
    shared = (together - own) / (CUT_SAMPLES - 1)
    return {"kappa1": own, "kappa2": shared, "difference": own - shared}


# --- spectra ----------------------------------------------------------------------------------------------------

SPECTRUM_WIDTH, SPECTRUM_OUTPUTS = 240, 4


def fisher_spectrum(setting: Setting) -> list[Panel]:
    """All eigenvalues of one network before and after mean subtraction, and what theory says of the top."""
    size: dict[str, Any] = {"width": SPECTRUM_WIDTH, "samples": SPECTRUM_WIDTH, "outputs": SPECTRUM_OUTPUTS}
    network = _networks(setting.block("spectrum", 1), RELU, depth=DEPTH, **size)
    gram = fisher_gram.gram(network, RELU["activation"])
    before, after = (
        fisher_gram.fisher_eigenvalues(g)[0].cpu().numpy() for g in (gram, fisher_gram.centred(gram))
    )
    top = float(fisher.eigenvalue_statistics(depth=DEPTH, **RELU, **size).largest)
    bounds = fisher.mean_subtracted_statistics(depth=DEPTH, **RELU, **size)
    limits = (0.02, 2 * before[-1])

    def panel(axes: Axes, values: Floats, title: str) -> None:
        bins = np.geomspace(*limits, 56)
        axes.hist(values, bins, color=PALETTE["agrees"], alpha=0.3, label="eigenvalues of one network")
        axes.plot(
            values[-SPECTRUM_OUTPUTS:], np.full(SPECTRUM_OUTPUTS, 0.8), "D", ms=4, color=MEASURED,
            clip_on=False, zorder=5, label=f"the {SPECTRUM_OUTPUTS} largest",
        )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(*limits)
        axes.set_ylim(0.8, 3e3)
        decades(axes.xaxis, *limits)
        decades(axes.yaxis, *axes.get_ylim())
        axes.set_ylabel("count")
        axes.set_title(title)

    def with_mean(axes: Axes) -> None:
        panel(axes, before, _titled("Fisher eigenvalues", RELU))
        axes.axvline(top, color=PALETTE["theory"], lw=1.8, label=f"theorem 2.2, {SPECTRUM_OUTPUTS} times")
        legend(axes, "upper left")

    def without_mean(axes: Axes) -> None:
        panel(axes, after, "The same, outputs less their mean over the samples")
        label = "theorem 3.3, bounds"
        axes.axvspan(bounds.lower, bounds.upper, color=PALETTE["band"], linewidth=0, zorder=0.5, label=label)
        axes.axvline(top, color=PALETTE["theory"], lw=1.2, dashes=(2, 2))
        axes.set_xlabel("eigenvalue")
        legend(axes, "upper left")

    note = (
        f"M = T = {SPECTRUM_WIDTH}, L = {DEPTH}, C = {SPECTRUM_OUTPUTS}; shade: from the lower bound of the largest\n"
        "eigenvalue to the upper one; dashes: theorem 2.2 again; zeros are left out"
    )
    return [Panel(1.6, with_mean, bottom=0.3), Panel(1.6, without_mean, notes=note)]


# --- the largest eigenvalue against the width -------------------------------------------------------------------

WIDTHS = np.array([20, 40, 80, 160])
TOP_DRAWS = 6
OUTPUTS, LAYER_OUTPUTS = 2, 6
"""Outputs; more with layer normalisation, which leaves nothing of two."""


class _Kind(NamedTuple):
    """A normalisation: its name, marker, colour and dashes, and its largest eigenvalues at one width."""

    name: str
    mark: str
    colour: str
    dash: int | None
    measured: Callable[[Setting, Mapping[str, Any], int], tuple[Floats, float]]


def largest(setting: Setting) -> list[Panel]:
    """Largest eigenvalue against the width, T = M, with every normalisation of the paper."""
    return [_largest(setting, law, last=law is TANH) for law in (RELU, TANH)]


def _largest(setting: Setting, law: Mapping[str, Any], *, last: bool) -> Panel:
    found: dict[str, list[tuple[Floats, float]]] = {kind.name: [] for kind in KINDS}
    for width in WIDTHS:  # one after the other: what the normalisations share is kept for one width
        for kind in KINDS:
            found[kind.name].append(kind.measured(setting, law, int(width)))

    def draw(axes: Axes) -> None:
        for kind in KINDS:
            drawn, theory = zip(*found[kind.name], strict=True)
            curve(axes, WIDTHS, theory, "", colour=kind.colour, dash=kind.dash)
            mean_points(axes, WIDTHS, drawn, kind.name, mark=kind.mark, colour=kind.colour)
        axes.set_ylim(*_limits([d for ds in found.values() for d in ds], room=not last))
        log_axes(axes, WIDTHS, "width M = T" if last else "", "largest eigenvalue")
        axes.set_title(_titled("Largest Fisher eigenvalue", law))
        if not last:
            legend(axes, "upper left", columns=2)

    note = (
        f"points: means of {TOP_DRAWS} networks with {OUTPUTS} outputs, {LAYER_OUTPUTS} with layer norm, bars of\n"
        "two standard errors; lines: eq. (10); lower bounds of eqs. (18) and (19), with the\n"
        "constants that our copy leaves open, and of eq. (22), for tanh below the frame;\n"
        "with layer norm the largest eigenvalue of wide networks with these outputs"
    )
    return Panel(2.2, draw, bottom=0.5 if last else 0.3, notes=note if last else "")


def _limits(found: Any, *, room: bool) -> tuple[float, float]:
    """Around points and the lines near them, with a third of the height free for the legend if there is one."""
    means = [np.mean(drawn) for drawn, _ in found]
    near = [theory for _, theory in found if theory > min(means) / 5]
    low, high = min(means + near) / 1.6, max(means + near) * 1.4
    return low, high * (high / low) ** 0.42 if room else high


def _drawn(setting: Setting, law: Mapping[str, Any], width: int, name: str, outputs: int) -> Any:
    block = setting.block(f"largest {name} {law['activation']} {width}", TOP_DRAWS)
    return _networks(block, law, width=width, samples=width, outputs=outputs, depth=DEPTH)


def _size(law: Mapping[str, Any], width: int) -> dict[str, Any]:
    return {**law, "depth": DEPTH, "width": width, "samples": width, "outputs": OUTPUTS}


def _top(gram: Any) -> Floats:
    n, outputs, _, samples, _ = gram.shape
    flat = gram.transpose(2, 3).reshape(n, outputs * samples, outputs * samples)
    return (ensembles.top_eigenvalue(flat) / samples).cpu().numpy()


def _plain_gram(setting: Setting, law: Mapping[str, Any], width: int) -> tuple[Any, Any]:
    """The networks without normalisation, and their Gram matrices."""
    return _kept_gram(setting, tuple(law.items()), width, TOP_DRAWS, OUTPUTS, DEPTH)


@lru_cache(maxsize=1)
def _kept_gram(setting: Setting, law: tuple[tuple[str, Any], ...], width: int, *_: int) -> tuple[Any, Any]:
    known = dict(law)
    network = _drawn(setting, known, width, "plain", OUTPUTS)
    return network, fisher_gram.gram(network, known["activation"])


def _plain(setting: Setting, law: Mapping[str, Any], width: int) -> tuple[Floats, float]:
    _, gram = _plain_gram(setting, law, width)
    theory = fisher.eigenvalue_statistics(**_size(law, width)).largest
    return _top(gram), float(theory)


def _subtracted(setting: Setting, law: Mapping[str, Any], width: int) -> tuple[Floats, float]:
    _, gram = _plain_gram(setting, law, width)
    theory = fisher.mean_subtracted_statistics(**_size(law, width)).lower
    return _top(fisher_gram.centred(gram)), float(theory)


def _last_layer(setting: Setting, law: Mapping[str, Any], width: int) -> tuple[Floats, float]:
    network, gram = _plain_gram(setting, law, width)
    normalisation = last_layer.batch_normalisation(last_layer.outputs_of(network, law["activation"]))
    theory = batch_normalised_statistics(**_size(law, width)).lower
    return _top(last_layer.projected_gram(gram, normalisation)), float(theory)


def _middle_layers(setting: Setting, law: Mapping[str, Any], width: int) -> tuple[Floats, float]:
    network = _drawn(setting, law, width, "plain", OUTPUTS)
    theory = batch_norm_bound(law["activation"], width=width, samples=width)
    return _top(batch_normed.batch_normed_gram(network, law["activation"])), float(theory)


def _layers(setting: Setting, law: Mapping[str, Any], width: int) -> tuple[Floats, float]:
    network = _drawn(setting, law, width, "layers", LAYER_OUTPUTS)
    passed = layer_normed.layer_normed_signals(network, law["activation"])
    before = (passed.normalised[-1] / passed.inverses[-1][..., None]).cpu().numpy()
    theory = [layer_norm_largest(preactivations=u, depth=DEPTH, width=width, **law) for u in before]
    return _top(layer_normed.layer_normed_gram(network, law["activation"])), float(np.mean(theory))


KINDS = (
    _Kind("no normalisation", "o", PALETTE["ink"], None, _plain),
    _Kind("batch norm, middle layers", "s", PALETTE["disagrees"], 3, _middle_layers),
    _Kind("layer norm", "^", PALETTE["broken"], 2, _layers),
    _Kind("mean subtraction", "D", PALETTE["theory"], 0, _subtracted),
    _Kind("batch norm, last layer", "v", PALETTE["agrees"], 1, _last_layer),
)
