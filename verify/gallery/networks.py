"""Real networks and wide random ones: curvature and learning rates against batch size, Fisher eigenvalues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from simulate import perceptrons
from simulate.matrices import ensembles
from simulate.monte_carlo import Point
from simulate.wide import batch_normed, fisher_gram, last_layer, layer_normed, signals
from theory import fisher, learning_rates, own_direction
from theory.fisher import batch_normalised_statistics
from theory.fisher.layer_normalisation import layer_norm_largest
from theory.fisher.middle_normalisation import batch_norm_bound
from verify.claims.beyond.networks import formulas, law_of, noise_of, small_perceptron
from verify.claims.granziol2022.training.perceptrons import drawn_setting, ladder, rule_of, steps_of, tried
from verify.gallery.parts import OTHER, Setting, batch_axis, curve, inches, legend, log_axes, mean_points
from verify.page.drawing import Floats, Panel
from verify.page.theme import PALETTE

SAMPLES = 512

# --- the Hessian of a batch --------------------------------------------------------------------------------------

DIRECTIONS, DRAWS = 10, 32
SIZES = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
STATES = (("at initialisation", 0), ("trained", 800))


def network(setting: Setting) -> list[Panel]:
    """Hessian of a tanh network 16-8-10, and what theory makes of its per-sample curvature."""
    return [_state(setting, name, steps, last=(name, steps) == STATES[-1]) for name, steps in STATES]


def _state(setting: Setting, name: str, steps: int, *, last: bool) -> Panel:
    (rng,) = setting.block("network", 1).streams
    point = Point(images=setting.data, samples=SAMPLES, steps=steps, matrix="hessian")
    samples = small_perceptron(rng, point)
    sizes = SIZES[samples.size // 2 >= SIZES]
    grid = np.geomspace(1, sizes[-1], 200)
    measured, own, value, said = _measured(samples, rng, sizes, grid)

    def draw(axes: Axes) -> None:
        curve(axes, grid, said["theorem_4"], "theorem 4")
        curve(axes, grid, said["second_order"], "second order, true variances", dash=0, colour=OTHER)
        axes.plot(
            sizes, own, color=PALETTE["ink"], lw=1.0, label=f"own directions, k = {DIRECTIONS}", zorder=3
        )
        mean_points(axes, sizes, measured, "batches")
        axes.set_ylim(0.75 * value, 6.0 * float(np.max([d.mean() for d in measured])))
        batch_axis(axes, sizes.astype(float), label="top eigenvalue")
        axes.set_title(f"Hessian of a batch, network {name}")
        legend(axes, "upper right")

    note = (
        f"{samples.size} images, tanh network with P = {samples.dim}; "
        f"points: means of {DRAWS} batches, bars of two standard errors"
    )
    return inches(2.1, draw, notes=note if last else "")


def _measured(samples: Any, rng: np.random.Generator, sizes: Any, grid: Any) -> Any:
    """Top eigenvalues of batches, the own-direction law for them, lambda_1, and the formulas on a grid."""
    vectors = perceptrons.own_direction.top_eigenvectors(samples, DIRECTIONS)
    pairs = perceptrons.own_direction.sample_pairs(samples, tolerance=1e-6)
    noise = noise_of(samples, rng, vectors)
    law = law_of(perceptrons.own_direction.statistics(samples, vectors, pairs, rng))
    batches = [
        perceptrons.own_direction.partitions(rng, samples.size, int(size), DRAWS)[:DRAWS] for size in sizes
    ]
    found = [perceptrons.own_direction.batch_tops(samples, b, tolerance=1e-3) for b in batches]
    own = [float(own_direction.batch_eigenvalues(law, b).mean()) for b in batches]
    return found, own, noise.eigenvalue, formulas(noise, samples.dim, grid, samples.size)


# --- learning rates in training ----------------------------------------------------------------------------------

NOISE, NETWORKS = 0.6, 4
RATE_SIZES = np.array([1, 4, 16, 64, 256])
MIDDLES = {"sgd": (0.13, 0.45, 1.3, 2.3, 2.8), "adam": (0.0155, 0.03, 0.07, 0.15, 0.3)}
RUNGS, EPOCHS, LEAST = 4, 5, 200


def rates_in_training(setting: Setting) -> list[Panel]:
    """Largest rates at which perceptrons train on labels that are mostly noise, by SGD and by Adam."""
    found = {rule: _largest_rates(setting, rule) for rule in MIDDLES}
    grid = np.geomspace(RATE_SIZES[0], RATE_SIZES[-1], 200)
    ends = [float(np.exp(np.log(found["sgd"][i]).mean())) for i in (0, -1)]
    ratio, inverse = ends[1] / ends[0], 1 / RATE_SIZES[-1] - 1 / SAMPLES
    effective = (ratio - 1) / (1 - 1 / SAMPLES - ratio * inverse)
    crossover = effective / (1 + effective / SAMPLES)
    flat = learning_rates.linear_then_flat(
        ends[0], known=1, batch_size=grid, crossover=crossover, dataset_size=SAMPLES
    )
    root = float(np.exp(np.log(found["adam"][0]).mean())) * grid**0.5

    def draw(axes: Axes) -> None:
        curve(axes, grid, flat, "linear, then flat, through both ends")
        curve(axes, grid, root, "square root", dash=0, colour=OTHER)
        mean_points(axes, RATE_SIZES, found["sgd"], "SGD")
        mean_points(axes, RATE_SIZES, found["adam"], "Adam", mark="s", colour=OTHER)
        batch_axis(axes, RATE_SIZES.astype(float), label="largest rate that trains")
        axes.set_title("Largest learning rate against batch size, in training")
        legend(axes, "lower right")

    note = (
        f"ReLU networks 64-32-10 on {SAMPLES} images, six labels in ten drawn anew; "
        f"{EPOCHS} epochs or {LEAST} steps; points: means of {NETWORKS} networks, bars of two standard errors"
    )
    return [inches(2.4, draw, notes=note)]


def _largest_rates(setting: Setting, rule: str) -> list[Floats]:
    block = setting.block(f"rates of {rule}", NETWORKS)
    drawn = drawn_setting(block, Point(images=setting.data, samples=SAMPLES, noise=NOISE))
    return [
        tried(
            drawn,
            ladder(block, centre, RUNGS, RUNGS),
            size=int(size),
            steps=steps_of(int(size), samples=SAMPLES, epochs=EPOCHS, least=LEAST),
            rule=rule_of(rule),
        ).largest
        for size, centre in zip(RATE_SIZES, MIDDLES[rule], strict=True)
    ]


# --- the largest Fisher eigenvalue against the width -------------------------------------------------------------

LAWS: tuple[dict[str, Any], ...] = (
    {"activation": "relu", "weight_variance": 2.0, "bias_variance": 0.0},
    {"activation": "tanh", "weight_variance": 3.0, "bias_variance": 0.64},
)
"""The two of figure 1."""

DEPTH, TOP_DRAWS = 3, 6
WIDTHS = np.array([20, 40, 80, 160])
OUTPUTS, LAYER_OUTPUTS = 2, 6
"""Outputs; more with layer normalisation, which leaves nothing of two."""

LOOKS: dict[str, tuple[str, str, int | None]] = {
    "no normalisation": ("o", "ink", None),
    "batch norm, middle layers": ("s", "disagrees", 3),
    "layer norm": ("^", "broken", 2),
    "mean subtraction": ("D", "theory", 0),
    "batch norm, last layer": ("v", "agrees", 1),
}
"""Marker, colour and dashes of each normalisation."""


def fisher_width(setting: Setting) -> list[Panel]:
    """Largest eigenvalue against the width, T = M, with every normalisation of the paper."""
    return [_largest(setting, law, last=law is LAWS[-1]) for law in LAWS]


def _largest(setting: Setting, law: Mapping[str, Any], *, last: bool) -> Panel:
    found = [_by_normalisation(setting, law, int(width)) for width in WIDTHS]

    def draw(axes: Axes) -> None:
        for name, (mark, colour, dash) in LOOKS.items():
            drawn, theory = zip(*(at[name] for at in found), strict=True)
            curve(axes, WIDTHS, theory, "", colour=PALETTE[colour], dash=dash)
            mean_points(axes, WIDTHS, drawn, name, mark=mark, colour=PALETTE[colour])
        axes.set_ylim(*_limits([pair for at in found for pair in at.values()], room=not last))
        log_axes(axes, WIDTHS, "width M = T" if last else "", "largest eigenvalue")
        variances = f"{law['weight_variance']:g}, {law['bias_variance']:g}"
        axes.set_title(f"Largest Fisher eigenvalue, {law['activation']} ({variances})")
        if not last:
            legend(axes, "upper left", columns=2)

    note = (
        f"points: means of {TOP_DRAWS} networks with {OUTPUTS} outputs, {LAYER_OUTPUTS} with layer norm, bars of "
        "two standard errors; lines: eq. (10); lower bounds of eqs. (18) and (19), with the "
        "constants that our copy leaves open, and of eq. (22), for tanh below the frame; "
        "with layer norm the largest eigenvalue of wide networks with these outputs"
    )
    return inches(2.2, draw, bottom=0.5 if last else 0.3, notes=note if last else "")


def _limits(found: Any, *, room: bool) -> tuple[float, float]:
    """Around points and the lines near them, with a third of the height free for the legend if there is one."""
    means = [np.mean(drawn) for drawn, _ in found]
    near = [theory for _, theory in found if theory > min(means) / 5]
    low, high = min(means + near) / 1.6, max(means + near) * 1.4
    return low, high * (high / low) ** 0.42 if room else high


def _by_normalisation(
    setting: Setting, law: Mapping[str, Any], width: int
) -> dict[str, tuple[Floats, float]]:
    """Largest eigenvalues of networks of one width and what theory says of them, by normalisation.

    All but layer normalisation are of the same networks.
    """
    activation, variances = law["activation"], {k: law[k] for k in ("weight_variance", "bias_variance")}

    def drawn(name: str, outputs: int) -> Any:
        block = setting.block(f"largest {name} {activation} {width}", TOP_DRAWS)
        return signals.wide_network(block, widths=(width,) * DEPTH + (outputs,), samples=width, **variances)

    plain, layers = drawn("plain", OUTPUTS), drawn("layers", LAYER_OUTPUTS)
    gram = fisher_gram.gram(plain, activation)
    last = last_layer.batch_normalisation(last_layer.outputs_of(plain, activation))
    passed = layer_normed.layer_normed_signals(layers, activation)
    before = (passed.normalised[-1] / passed.inverses[-1][..., None]).cpu().numpy()
    by_layer = [layer_norm_largest(preactivations=u, depth=DEPTH, width=width, **law) for u in before]
    size: Any = {**law, "depth": DEPTH, "width": width, "samples": width, "outputs": OUTPUTS}
    found = {
        "no normalisation": (gram, fisher.eigenvalue_statistics(**size).largest),
        "batch norm, middle layers": (
            batch_normed.batch_normed_gram(plain, activation),
            batch_norm_bound(activation, width=width, samples=width),
        ),
        "layer norm": (layer_normed.layer_normed_gram(layers, activation), np.mean(by_layer)),
        "mean subtraction": (fisher_gram.centred(gram), fisher.mean_subtracted_statistics(**size).lower),
        "batch norm, last layer": (
            last_layer.projected_gram(gram, last),
            batch_normalised_statistics(**size).lower,
        ),
    }
    return {name: (_top(matrix), float(theory)) for name, (matrix, theory) in found.items()}


def _top(gram: Any) -> Floats:
    n, outputs, _, samples, _ = gram.shape
    flat = gram.transpose(2, 3).reshape(n, outputs * samples, outputs * samples)
    return (ensembles.top_eigenvalue(flat) / samples).cpu().numpy()
