"""Karakida, Akaho and Amari (2019): the Fisher information when every layer is normalised over its units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory import fisher, layer_normalisation
from verify.claims.wide_networks import wide_network
from verify.model import AnyClaim, Claim, ExactProperty, Experiment, Kind

__all__ = ["CLAIMS"]

PAPER = "Karakida, Akaho and Amari (2019)"

# --- linear statistics and bounds ----------------------------------------------------------------------------


def normed_fisher(block: Block, point: Point) -> Mapping[str, Any]:
    """Fisher statistics of the normalised outputs, and the averages of 1/sigma^2 that the theorem reads."""
    from simulate import fisher_gram, layer_normed

    network = wide_network(block, point)
    signals = layer_normed.forward(network, point.activation)
    gram = layer_normed.gram(network, point.activation)
    values = fisher_gram.eigenvalues(gram)
    squares, trace = values.square().sum(1), fisher_gram.trace(gram)
    count = sum(w[0].numel() for w in network.weights) + sum(b[0].numel() for b in network.biases)
    return {
        "mean": trace / count,
        "rayleigh": fisher_gram.rayleigh(gram) * point.outputs,
        "largest": values[:, -1],
        "root_of_squares": squares.sqrt(),
        "squares_over_trace": squares / trace,
        **layer_normed.etas(signals),
    }


NORMED = Experiment(
    id="karakida2019/layer-norm",
    replicate="one network with its inputs",
    simulate=normed_fisher,
    points=(
        Point(
            activation="relu",
            weight_variance=0.65,
            bias_variance=0.1,
            depth=3,
            outputs=7,
            samples=6,
            width=240,
        ),
        Point(
            activation="tanh",
            weight_variance=0.7,
            bias_variance=0.15,
            depth=3,
            outputs=5,
            samples=9,
            width=240,
        ),
        Point(
            activation="erf",
            weight_variance=0.45,
            bias_variance=0.3,
            depth=3,
            outputs=6,
            samples=11,
            width=240,
        ),
    ),
    budget=2048,
    seconds=1.3,
)


def _setting(p: Any) -> dict[str, Any]:
    names = ("depth", "weight_variance", "bias_variance")
    return {name: getattr(p, name) for name in names}


@cache
def _cached_kappas(
    activation: str, depth: int, weight_variance: float, bias_variance: float
) -> fisher.Kappas:
    return layer_normalisation.layer_norm_kappas(
        activation, depth=depth, weight_variance=weight_variance, bias_variance=bias_variance
    )


def _kappas(p: Any) -> fisher.Kappas:
    return _cached_kappas(p.activation, **_setting(p))


def _statistics(p: Any, **changed: Any) -> layer_normalisation.LayerNormStatistics:
    """Theorem 4.1 with the etas of each network."""
    names = {"width", "samples", "outputs", "eta1", "eta2", "eta3"} - changed.keys()
    given = {name: getattr(p, name) for name in names}
    return layer_normalisation.layer_norm_statistics(p.activation, **_setting(p), **given, **changed)


def _mean(p: Any) -> Any:
    return _statistics(p, eta2=1.0, eta3=1.0, finite_width=True).mean


def _without_normalisation(p: Any) -> Any:
    """The constant kappa1 of the same network without normalisation."""
    plain = fisher.kappas(p.activation, **_setting(p))
    return _mean(p) * plain.kappa1 / _kappas(p).kappa1


def _rayleigh(p: Any, **changed: Any) -> Any:
    names = {"width", "samples", "outputs", "eta1", "overlap"} - changed.keys()
    given = {name: getattr(p, name) for name in names}
    return layer_normalisation.layer_norm_rayleigh(
        p.activation, **_setting(p), **given, **changed, finite_width=True
    )


def _single(p: Any) -> Any:
    """The part of the Rayleigh quotients from the diagonal of K."""
    return _rayleigh(p, overlap=0.0)


def _times_kappa(p: Any, value: Any) -> Any:
    """As if one kappa stood for the other."""
    return value * _kappas(p).kappa2 / _kappas(p).kappa1


# What is typical of each point, only to tell rivals apart before a run.
TYPICAL = {
    "relu": {"eta1": 3.8, "eta2": 16.0, "eta3": 2.8, "overlap": 13.0, "lower": 300.0, "upper": 1290.0},
    "tanh": {"eta1": 4.8, "eta2": 30.0, "eta3": 3.4, "overlap": 9.2, "lower": 210.0, "upper": 840.0},
    "erf": {"eta1": 2.9, "eta2": 9.4, "eta3": 2.4, "overlap": 9.2, "lower": 170.0, "upper": 630.0},
}


def _typical(*names: str) -> dict[str, Callable[[Point], float]]:
    return {name: lambda p, n=name: TYPICAL[p.activation][n] for name in names}


LINEAR = "linear in the Gram matrix: unbiased up to O(1/M), 1.3 % at M = 240; at most 3 % for wide networks"
ETAS = ("eta1", "eta2", "eta3")

NORMED_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/layer-norm-mean",
        entries=("C49", "C50"),
        source=f"{PAPER}, theorem 4.1, eq. (26)",
        statement=r"m_\lambda = \frac{(C - 2)\, \eta_1}{P} \Big(\alpha M \kappa_1' + \sum_l \tilde q_t^l\Big),\quad "
        r"\eta_1 = \frac1T \sum_t \frac{1}{\sigma(t)^2}",
        experiment=NORMED,
        score="mean",
        inputs=_typical("eta1"),
        predict=_mean,
        margin=0.03,
        margin_reason=LINEAR,
        rivals={
            "C for C - 2": lambda p: _mean(p) * p.outputs / (p.outputs - 2),
            "C - 1 for C - 2": lambda p: _mean(p) * (p.outputs - 1) / (p.outputs - 2),
            "kappa2' for kappa1'": lambda p: _times_kappa(p, _mean(p)),
            "kappa1 without normalisation": _without_normalisation,
        },
        quantity="mean eigenvalue with layer normalisation",
    ),
    Claim(
        id="karakida2019/layer-norm-rayleigh",
        entries=("C49", "C51"),
        source=f"ours, beside theorem 4.1 of {PAPER}",
        statement=r"\frac{1}{T^2} \sum_k \mathbf 1^\top K_{kk} \mathbf 1 = \alpha M \Big[(C - 2) \frac{\eta_1}{T} "
        r"\kappa_1' + \frac{\kappa_2'}{T^2} \sum_{s \ne t} "
        r"\frac{C - 3 + (f(s) \cdot f(t)/C)^2}{\sigma(s)\, \sigma(t)}\Big] + \text{biases}",
        experiment=NORMED,
        score="rayleigh",
        inputs=_typical("eta1", "overlap"),
        predict=_rayleigh,
        margin=0.03,
        margin_reason=LINEAR,
        rivals={
            "pairs only": lambda p: _rayleigh(p) - _single(p),
            "single samples only": lambda p: _single(p),
            "kappa2' for kappa1'": lambda p: _rayleigh(p) - _single(p) + _times_kappa(p, _single(p)),
            "C - 3 for C - 2": lambda p: _rayleigh(p, eta1=p.eta1 * (p.outputs - 3) / (p.outputs - 2)),
        },
        quantity="Rayleigh quotients at equal weights, summed over the outputs",
    ),
    Claim(
        id="karakida2019/layer-norm-lower-bound",
        entries=("C52",),
        source=f"{PAPER}, theorem 4.1, eq. (26)",
        statement=r"\mathbb{E}\,\lambda_{\max} \ge \frac{\alpha M}{(C - 2)\, \eta_1 \kappa_1'} "
        r"\Big[\big((C - 3)\, \eta_1^2 + \eta_3^2\big) \kappa_2'^2 "
        r"+ (C - 2) \frac{\eta_2}{T} (\kappa_1'^2 - \kappa_2'^2)\Big]",
        experiment=NORMED,
        kind=Kind.AT_LEAST,
        score="largest",
        inputs=_typical(*ETAS),
        predict=lambda p: _statistics(p).lower,
        margin=0.03,
        margin_reason="at most 3 % for wide networks",
        rivals={
            "upper bound": lambda p: _statistics(p).upper,
            "kappa2' for kappa1' in the trace": lambda p: (
                _statistics(p).lower * _kappas(p).kappa1 / _kappas(p).kappa2
            ),
        },
        quantity="largest eigenvalue with layer normalisation",
    ),
    Claim(
        id="karakida2019/layer-norm-upper-bound",
        entries=("C52",),
        source=f"{PAPER}, theorem 4.1, eq. (26)",
        statement=r"\mathbb{E}\,\lambda_{\max} \le \alpha M \sqrt{\big((C - 3)\, \eta_1^2 + \eta_3^2\big) \kappa_2'^2 "
        r"+ (C - 2) \frac{\eta_2}{T} (\kappa_1'^2 - \kappa_2'^2)}",
        experiment=NORMED,
        kind=Kind.AT_MOST,
        score="largest",
        inputs=_typical(*ETAS),
        predict=lambda p: _statistics(p).upper,
        margin=0.03,
        margin_reason="at most 3 % for wide networks",
        rivals={
            "lower bound": lambda p: _statistics(p).lower,
            "no alpha": lambda p: _statistics(p).upper / _kappas(p).alpha,
        },
        quantity="largest eigenvalue with layer normalisation",
    ),
    Claim(
        id="karakida2019/layer-norm-largest-over-mean-square",
        entries=("C52",),
        source=f"{PAPER}, theorem 4.1, in its proof",
        statement=r"\lambda_{\max} \ge \mathrm{Tr}\, F^2 / \mathrm{Tr}\, F",
        experiment=NORMED,
        kind=Kind.NEVER_BELOW,
        score="largest",
        inputs={
            "squares_over_trace": lambda p: TYPICAL[p.activation]["lower"],
            "root_of_squares": lambda p: TYPICAL[p.activation]["upper"],
        },
        predict=lambda p: p.squares_over_trace,
        margin=0.05,
        relative=False,
        margin_reason="an inequality of matrices: violations in 5 % of the networks would be seen",
        numerical=1e-9,
        rivals={
            "root of the trace of F^2": lambda p: p.root_of_squares,
            "twice": lambda p: 2 * p.squares_over_trace,
        },
        quantity="largest eigenvalue with layer normalisation",
    ),
    Claim(
        id="karakida2019/layer-norm-largest-over-root",
        entries=("C52",),
        source=f"{PAPER}, theorem 4.1, in its proof",
        statement=r"\lambda_{\max} \le \sqrt{\mathrm{Tr}\, F^2}",
        experiment=NORMED,
        kind=Kind.NEVER_ABOVE,
        score="largest",
        inputs={
            "squares_over_trace": lambda p: TYPICAL[p.activation]["lower"],
            "root_of_squares": lambda p: TYPICAL[p.activation]["upper"],
        },
        predict=lambda p: p.root_of_squares,
        margin=0.05,
        relative=False,
        margin_reason="an inequality of matrices: violations in 5 % of the networks would be seen",
        numerical=1e-9,
        rivals={
            "trace of F^2 over trace of F": lambda p: p.squares_over_trace,
            "over the root of C - 2": lambda p: p.root_of_squares / (p.outputs - 2) ** 0.5,
        },
        quantity="largest eigenvalue with layer normalisation",
    ),
)

# --- the Gram matrix -----------------------------------------------------------------------------------------


def _architectures() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {
        "activation": st.sampled_from(["tanh", "erf", "linear", "sigmoid", "softplus", "gelu"]),
        "hidden": st.lists(st.integers(4, 9), min_size=1, max_size=3),
        "outputs": st.integers(3, 7),
        "samples": st.integers(1, 5),
        "weight_variance": st.floats(0.1, 4.0),
        "bias_variance": st.floats(0.0, 2.0),
    }


def _small_network(rng: np.random.Generator, point: Any) -> Any:
    from simulate import signals

    return signals.wide_network(
        Block((rng,)),
        widths=(*point.hidden, point.outputs),
        samples=point.samples,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )


def _gram_difference(
    rng: np.random.Generator, point: Point, *, fixed_deviation: bool = False, **options: Any
) -> float:
    """Largest difference of the layer-wise Gram matrix and J J' by automatic differentiation, relative."""
    import torch

    from simulate import layer_normed
    from simulate.activations import named

    network = _small_network(rng, point)
    parameters = [t[0] for pair in zip(network.weights, network.biases, strict=True) for t in pair]
    phi = named(point.activation).function

    def outputs(*theta: torch.Tensor) -> torch.Tensor:
        h = network.inputs[0]
        for layer, (w, b) in enumerate(zip(theta[::2], theta[1::2], strict=True)):
            u = h @ w.mT + b
            deviation = u.std(-1, correction=0, keepdim=True)
            f = (u - u.mean(-1, keepdim=True)) / (deviation.detach() if fixed_deviation else deviation)
            h = f if layer == network.depth - 1 else phi(f)
        return h.T

    jacobian = torch.func.jacrev(outputs, argnums=tuple(range(len(parameters))))(*parameters)
    flat = torch.cat([j.flatten(2) for j in jacobian], dim=2)
    expected = torch.einsum("ksp,mtp->kmst", flat, flat)
    found = layer_normed.gram(network, point.activation, **options)[0]
    return float((found - expected).abs().max() / expected.abs().max())


def _rank_difference(rng: np.random.Generator, point: Point, *, lost: int = 2) -> float:
    """By how much the rank of some sample's block differs if normalisation takes so many dimensions from it."""
    import torch

    from simulate import layer_normed

    gram = layer_normed.gram(_small_network(rng, point), point.activation)[0]
    own = torch.linalg.eigvalsh(gram.diagonal(dim1=2, dim2=3).movedim(2, 0))
    rank = (own > 1e-9 * own[:, -1:]).sum(1)
    return float((rank - (point.outputs - lost)).abs().max())


def _of_two_outputs(rng: np.random.Generator, point: Point, *, eps: float = 0.0, outputs: int = 2) -> float:
    """Largest entry of K over that of the last layer's part if its mean alone were subtracted."""
    from simulate import layer_normed

    network = _small_network(rng, point | {"outputs": outputs})
    found = layer_normed.forward(network, point.activation)
    scale = found.inverses[-1].square() * found.activations[-1].square().sum(-1) / 2
    gram = layer_normed.gram(network, point.activation, eps=eps)
    return float(gram.abs().max() / scale.max())


SMALL = (
    Point(activation="tanh", hidden=(4, 6, 5), outputs=4, samples=3, weight_variance=1.7, bias_variance=0.3),
    Point(activation="softplus", hidden=(5, 8), outputs=6, samples=4, weight_variance=2.1, bias_variance=0.7),
)

EXACT: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="karakida2019/layer-norm-gram",
        entries=("C48", "C50"),
        source=f"{PAPER}, eqs. (24) and (25)",
        statement=r"\frac{\partial f(t)}{\partial \theta} = \frac{1}{\sigma(t)} "
        r"\Big(I - \frac{\mathbf 1 \mathbf 1^\top}{C} - \frac{f f^\top}{C}\Big) "
        r"\frac{\partial u^L(t)}{\partial \theta}, \text{ and so in every layer}",
        strategies=_architectures,
        violation=_gram_difference,
        examples=SMALL,
        tolerance=1e-9,
        tolerance_reason="an exact identity; rounding grows where the units of a sample nearly agree",
        rivals={
            "deviations held fixed": lambda rng, p: _gram_difference(rng, p, fixed_deviation=True),
            "no gradient of the biases": lambda rng, p: _gram_difference(rng, p, biases=False),
        },
        seconds=2.0,
    ),
    ExactProperty(
        id="karakida2019/layer-norm-rank",
        entries=("C50",),
        source=f"{PAPER}, theorem 4.1",
        statement=r"\mathrm{rank}\, K_{tt} = C - 2",
        strategies=_architectures,
        violation=_rank_difference,
        examples=SMALL,
        tolerance=1e-9,
        tolerance_reason="an exact count, eigenvalues below 1e-9 of the largest being zero in float64",
        rivals={
            "C - 3": lambda rng, p: _rank_difference(rng, p, lost=3),
            "C - 1": lambda rng, p: _rank_difference(rng, p, lost=1),
        },
        seconds=0.5,
    ),
    ExactProperty(
        id="karakida2019/layer-norm-two-outputs",
        entries=("C53",),
        source=f"{PAPER}, theorem 4.1",
        statement=r"K = 0 \quad (C = 2)",
        strategies=_architectures,
        violation=_of_two_outputs,
        examples=SMALL,
        tolerance=1e-20,
        tolerance_reason="exactly zero up to the square of rounding: two normalised outputs are 1 and -1",
        rivals={
            "with 0.00001 added to the variance": lambda rng, p: _of_two_outputs(rng, p, eps=1e-5),
            "three outputs": lambda rng, p: _of_two_outputs(rng, p, outputs=3),
        },
        seconds=0.5,
    ),
)

# --- the wide limit, given the outputs -----------------------------------------------------------------------


def _outputs() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {
        "activation": st.sampled_from(["relu", "erf", "linear"]),
        "depth": st.integers(2, 5),
        "outputs": st.integers(3, 8),
        "samples": st.integers(1, 12),
        "weight_variance": st.floats(0.1, 4.0),
        "bias_variance": st.floats(0.0, 2.0),
        "shared": st.floats(0.0, 3.0),
    }


def _blocks(rng: np.random.Generator, p: Any) -> tuple[Any, Any, float]:
    """Outputs drawn before their normalisation, the blocks of K over alpha M, and the largest 1/sigma^2."""
    u = rng.standard_normal((p.samples, p.outputs)) + p.shared * rng.standard_normal(p.outputs)
    centred = u - u.mean(1, keepdims=True)
    deviation = centred.std(1)
    f = centred / deviation[:, None]
    projectors = np.eye(p.outputs) - 1 / p.outputs - f[:, :, None] * f[:, None, :] / p.outputs
    scaled = (projectors / deviation[:, None, None]).reshape(-1, p.outputs)
    kappas = np.where(np.eye(p.samples, dtype=bool), _kappas(p).kappa1, _kappas(p).kappa2)
    k = scaled @ scaled.T * np.kron(kappas, np.ones((p.outputs, p.outputs)))
    return u, k, float((deviation**-2).max())


def _squares_difference(rng: np.random.Generator, p: Point, **changes: Callable[[Any], Any]) -> float:
    """Trace of the squared blocks and its formula in the etas, relative difference."""
    u, k, _ = _blocks(rng, p)
    etas = layer_normalisation.realised_etas(u)
    found = _statistics(_with(p, etas), **{name: change(etas) for name, change in changes.items()}).upper
    expected = _kappas(p).alpha * WIDTH / p.samples * np.linalg.norm(k)
    return float(abs(found / expected - 1))


WIDTH = 100


def _with(p: Point, etas: layer_normalisation.Etas) -> Point:
    return p | {name: float(value) for name, value in etas._asdict().items()} | {"width": WIDTH}


def _largest_difference(rng: np.random.Generator, p: Point, *, diagonal: float = 1.0) -> float:
    """Largest eigenvalue of the blocks and the root of C x C matrices, relative difference."""
    u, k, top = _blocks(rng, p)
    found = layer_normalisation.layer_norm_largest(p.activation, u, **_setting(p), width=WIDTH)
    expected = np.linalg.eigvalsh(k)[-1] + (diagonal - 1) * top * _kappas(p).difference
    return float(abs(found / (_kappas(p).alpha * WIDTH / p.samples * expected) - 1))


def _beyond_the_outliers(rng: np.random.Generator, p: Point, *, outliers: int = 1) -> float:
    """By how much eigenvalue number C - `outliers` + 1 of the blocks exceeds the rest, relative."""
    _, k, top = _blocks(rng, p)
    values, rest = np.linalg.eigvalsh(k)[::-1], top * _kappas(p).difference
    place = p.outputs - outliers
    return float(max(0.0, values[place] - rest) / values[0]) if place < len(values) else 0.0


DRAWN = (
    Point(
        activation="relu", depth=3, outputs=5, samples=11, weight_variance=1.7, bias_variance=0.3, shared=0.7
    ),
    Point(
        activation="erf", depth=4, outputs=3, samples=7, weight_variance=2.3, bias_variance=0.4, shared=1.3
    ),
)

GIVEN_OUTPUTS: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="karakida2019/layer-norm-etas",
        entries=("C51",),
        source=f"{PAPER}, theorem 4.1, eq. (27); the etas are our reading",
        statement=r"\frac{\|K\|_F^2}{(\alpha M)^2 T^2} = \big((C - 3)\, \eta_1^2 + \eta_3^2\big) \kappa_2'^2 "
        r"+ (C - 2) \frac{\eta_2}{T} (\kappa_1'^2 - \kappa_2'^2),\quad "
        r"K_{st} = \alpha M \kappa_{st}' \frac{P(s) P(t)}{\sigma(s)\, \sigma(t)}",
        strategies=_outputs,
        violation=_squares_difference,
        examples=DRAWN,
        tolerance=1e-9,
        tolerance_reason="an exact identity in float64",
        rivals={
            "eta1 for eta3": lambda rng, p: _squares_difference(rng, p, eta3=lambda e: e.eta1),
            "the square of eta1 for eta2": lambda rng, p: _squares_difference(
                rng, p, eta2=lambda e: e.eta1**2
            ),
            "eta3 for its square": lambda rng, p: _squares_difference(rng, p, eta3=lambda e: e.eta3**0.5),
        },
        seconds=0.5,
    ),
    ExactProperty(
        id="karakida2019/layer-norm-secular",
        entries=("C52",),
        source=f"ours, beside theorem 4.1 of {PAPER}",
        statement=r"\lambda = \lambda_{\max}\Big(\kappa_{st}' \frac{P(s) P(t)}{\sigma(s)\, \sigma(t)}\Big) \iff "
        r"\kappa_2'\, \lambda_{\max}\Big(\sum_t \frac{P(t)}{\lambda \sigma(t)^2 - (\kappa_1' - \kappa_2')}\Big) = 1 "
        r"\quad \big(\lambda > (\kappa_1' - \kappa_2') \max_t \sigma(t)^{-2},\ \kappa_2' > 0\big)",
        strategies=_outputs,
        violation=_largest_difference,
        examples=DRAWN,
        tolerance=1e-9,
        tolerance_reason="an exact identity in float64",
        rivals={"kappa2' alone": lambda rng, p: _largest_difference(rng, p, diagonal=0.0)},
        seconds=0.5,
    ),
    ExactProperty(
        id="karakida2019/layer-norm-outliers",
        entries=("C52",),
        source=f"ours, beside theorem 4.1 of {PAPER}",
        statement=r"\#\{\lambda_i > (\kappa_1' - \kappa_2') \max_t \sigma(t)^{-2}\} \le C - 1",
        strategies=_outputs,
        violation=_beyond_the_outliers,
        examples=DRAWN,
        tolerance=1e-9,
        tolerance_reason="an exact inequality in float64",
        rivals={"C - 2": lambda rng, p: _beyond_the_outliers(rng, p, outliers=2)},
        seconds=0.5,
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*EXACT, *GIVEN_OUTPUTS, *NORMED_CLAIMS)
