"""Vysogorets, Dawid and Kempe (2024): exact identities of scaled networks on real images, and what biases change."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from simulate import networks, objectives, operators
from simulate.modules import logit_derivatives, projected
from simulate.monte_carlo import Point
from simulate.perceptrons import curvature
from theory import gauss_newton, zone
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.framed_networks import network_on_images
from verify.model import OURS, Arrays, Identity, NoTheory, as_stated, misprint

NETWORKS = ("LeNet-300-100", "LeNet-5")
"""The second with max pooling."""

# --- networks and their derivatives --------------------------------------------------------------------------


class DrawnNetwork(NamedTuple):
    """A network at initialisation with images, and its weights as drawn."""

    network: Any
    theta: Any
    x: Any
    labels: Any
    depth: int

    def scaled(self, alpha: float) -> Any:
        """The network itself, its weights now alpha times those drawn."""
        from torch import nn

        nn.utils.vector_to_parameters(alpha * self.theta, self.network.parameters())
        return self.network

    def objective(self, *, alpha: float = 1.0, temperature: float = 1.0) -> Any:
        """Cross-entropy at a temperature, of scaled weights."""
        from torch.nn import functional

        def loss(logits: Any, targets: Any) -> Any:
            return functional.cross_entropy(logits / temperature, targets)

        return objectives.Objective(self.scaled(alpha), (self.x, self.labels), loss)

    def hessian(self, frame: Any, **at: Any) -> Any:
        """Second derivative of that loss along a frame, by automatic differentiation."""
        return frame.T @ (operators.hessian(self.objective(**at)) @ frame)

    def derivatives(self, frame: Any, alpha: float = 1.0) -> Any:
        """Derivatives of the logits along a frame."""
        return logit_derivatives.logit_derivatives(self.scaled(alpha), self.x, frame)

    def residuals(self, p: Any) -> Any:
        """Probabilities less the one-hot labels."""
        from torch.nn import functional

        return p - functional.one_hot(self.labels, p.shape[-1])


def drawn(rng: Generator, point: Point) -> DrawnNetwork:
    """One of the two networks of the paper, with images."""
    from torch import nn

    network, images = network_on_images(rng, point, point.network)
    theta = nn.utils.parameters_to_vector(network.parameters()).detach()
    x, labels = images.tensors()
    return DrawnNetwork(network, theta, x, labels, 3 if point.network == "LeNet-300-100" else 5)


def frame_of(rng: Generator, case: DrawnNetwork, point: Point) -> Any:
    """Orthonormal directions of all weights, (P, dim)."""
    return curvature.haar(rng, len(case.theta), point.dim)


def on_both(*settings: Arrays, **common: Any) -> tuple[Point, ...]:
    """Each setting on each of the two networks."""
    return tuple(Point(network=n, images="digits", **common, **s) for n in NETWORKS for s in settings)


_exact = partial(
    Identity,
    tolerance=1e-12,
    tolerance_reason="an exact identity in float64; sums over all weights lose three digits at most",
    data="digits",
)

_at_one_end = partial(Identity, entries=("A57",), data="digits")

# --- derivatives of the loss ---------------------------------------------------------------------------------


def latent_hessian(rng: Generator, point: Point) -> Arrays:
    """R' H R of a frame whose columns are neither unit nor orthogonal, and differences of the gradient along them."""
    import torch

    case = drawn(rng, point)
    mixing = torch.from_numpy(rng.standard_normal((point.dim, point.dim))) + 1.0
    frame = frame_of(rng, case, point) @ mixing
    curved = projected.projected(case.objective(), frame).hessian
    overlaps = torch.linalg.inv(frame.T @ frame)
    return {
        "differences of the gradient": _differences(case, frame, point.step),
        "R' H R": curved,
        "on the span of R": overlaps @ curved @ overlaps,
        "columns taken as unit": curved / torch.outer(frame.norm(dim=0), frame.norm(dim=0)),
    }


def _differences(case: DrawnNetwork, frame: Any, step: float) -> Any:
    """Central differences, along each column, of the gradient in the latent coordinates."""
    import torch

    def gradient(theta: Any) -> Any:
        return frame.T @ case._replace(theta=theta).objective().gradient()

    ends = [(gradient(case.theta + step * r), gradient(case.theta - step * r)) for r in frame.T]
    return torch.stack([(up - down) / (2 * step) for up, down in ends], dim=1)


def gradient_along_frame(rng: Generator, point: Point) -> Arrays:
    """Gradient of the loss along a frame, and Eq (3) from the gradients of the logits."""
    case = drawn(rng, point)
    frame = frame_of(rng, case, point)
    found = case.derivatives(frame)
    p = (found.logits / point.temperature).softmax(-1)
    warm = found.gradient(case.residuals(p))
    return {
        "gradient": frame.T @ case.objective(temperature=point.temperature).gradient(),
        "Eq (3)": gauss_newton.loss_gradient(
            p, case.labels, found.jacobian, temperature=point.temperature
        ).mean(0),
        "without 1/T": warm,
        "p at T = 1": found.gradient(case.residuals(found.logits.softmax(-1))) / point.temperature,
    }


def gauss_newton_split(rng: Generator, point: Point) -> Arrays:
    """Hessian of the loss along a frame, and Eq (4) from the derivatives of the logits, the mean over the images."""
    import torch

    case, heat = drawn(rng, point), point.temperature
    frame = frame_of(rng, case, point)
    found = case.derivatives(frame)
    p = (found.logits / heat).softmax(-1)
    terms = gauss_newton.hessian_terms(p, case.labels, found.jacobian, found.second, temperature=heat)
    g_term, h_term = (torch.from_numpy(m.mean(0)) for m in (terms.gauss_newton, terms.h_term))
    plain = found.g_term(torch.diag_embed(p)) / heat**2
    return {
        "Hessian": case.hessian(frame, temperature=heat),
        "G + Ht": g_term + h_term,
        "without - p p'": plain + h_term,
        "with + p p'": 2 * plain - g_term + h_term,
        "p for p - e_y": g_term + found.h_term(p) / heat,
    }


HEATED = ({"temperature": 1.7}, {"temperature": 0.6})

DERIVATIVE_CLAIMS = (
    Identity(
        id="vysogorets2024/latent-hessian",
        entries=("A5",),
        source=f"{PAPER}, section 2",
        no_theory=NoTheory.MEASURED,
        statement=r"\nabla^2_{\hat\theta}\, \ell(\theta + R\hat\theta) = R^\top H R \text{ for any } R",
        says="In coordinates along any directions, the Hessian of the loss is the full Hessian multiplied by these"
        " from both sides.",
        routes=latent_hessian,
        points=on_both({}, samples=4, dim=3, step=1e-6),
        tolerance=1e-6,
        tolerance_reason="rounding of the differences, 1e-16 over a relative step of 1e-8 to 1e-7",
        seconds=0.2,
        data="digits",
        quantity="Hessian in latent coordinates",
    ),
    _exact(
        id="vysogorets2024/loss-gradient",
        entries=("A9",),
        source=f"{PAPER}, eq. (3)",
        statement=r"\nabla\ell = \frac{1}{T}\Big[-\nabla z_y + \sum_k p_k \nabla z_k\Big]",
        says="The cross-entropy gradient is the mean logit gradient under the predicted probabilities less that of"
        " the label, over the temperature.",
        routes=gradient_along_frame,
        points=on_both(*HEATED, samples=8, dim=3),
        seconds=0.21,
        quantity="gradient of the loss",
    ),
    _exact(
        id="vysogorets2024/gauss-newton-split",
        entries=("A10",),
        source=f"{PAPER}, eq. (4)",
        statement=r"H = \overline{J^\top (\mathrm{diag}\,p - p p^\top) J}/T^2 + \overline{\textstyle\sum_k "
        r"(p - e_y)_k \nabla^2 z_k}/T",
        says="The Hessian of the loss is a Gauss-Newton term of logit gradients plus logit Hessians weighted by "
        "prediction errors.",
        routes=gauss_newton_split,
        points=on_both(*HEATED, samples=8, dim=3),
        seconds=0.81,
        quantity="projected Hessian",
    ),
)

# --- scaled weights ------------------------------------------------------------------------------------------


def matched_temperature(rng: Generator, point: Point) -> Arrays:
    """Full gradients of the network as drawn and scaled, at T = alpha^L and at the power below."""
    case, a = drawn(rng, point), point.alpha
    matched, low = (
        case.objective(alpha=a, temperature=a**power).gradient() for power in (case.depth, case.depth - 1)
    )
    factor = zone.homogeneous_factor(a, depth=case.depth, order=1, temperature=a**case.depth)
    return {
        "alpha grad'": matched / float(factor),
        "grad": case.objective().gradient(),
        "gradient itself restored": matched,
        "T = alpha^(L-1)": a * low,
    }


def one_temperature(rng: Generator, point: Point) -> Arrays:
    """Hessians along a frame at scaled weights, and at the weights as drawn with another temperature."""
    case, a, heat = drawn(rng, point), point.alpha, point.temperature
    frame = frame_of(rng, case, point)
    reduced = float(zone.reduced_temperature(a, depth=case.depth, temperature=heat))
    scaled = case.hessian(frame, alpha=a, temperature=heat)
    return {
        "alpha^2 H'(alpha, T)": a**2 * scaled,
        "H(1, T / alpha^L)": case.hessian(frame, temperature=reduced),
        "without alpha^2": scaled,
        "H(1, T / alpha^(L-1))": case.hessian(frame, temperature=a * reduced),
        "H(1, T alpha^L)": case.hessian(frame, temperature=heat**2 / reduced),
    }


def large_losses(rng: Generator, point: Point) -> Arrays:
    """Loss at 4 alpha, from the logits as drawn, and what an exponential makes of the losses at alpha and 2 alpha."""
    case = drawn(rng, point)
    one, two, four = (case.objective(alpha=a * point.alpha).value() for a in (1, 2, 4))
    z, factor = case.scaled(1.0)(case.x).detach(), 4 * point.alpha
    short = float((z.amax(1) - z.gather(1, case.labels[:, None])[:, 0]).mean())
    return {
        "loss at 4 alpha": four,
        "(4 alpha)^L c": float(zone.homogeneous_factor(factor, depth=case.depth)) * short,
        "exponential in alpha": two * (two / one) ** 2,
        "(4 alpha)^(L-1) c": factor ** (case.depth - 1) * short,
        "mean logit for the largest": factor**case.depth * (short - float((z.amax(1) - z.mean(1)).mean())),
    }


def large_curvature(rng: Generator, point: Point) -> Arrays:
    """Spectral norm of the Hessian far above the zone, and of the H-term as drawn at one-hot predictions."""
    from torch.nn import functional

    case, a = drawn(rng, point), point.alpha
    frame = frame_of(rng, case, point)
    found = case.derivatives(frame)
    sure = functional.one_hot(found.logits.argmax(-1), found.logits.shape[-1])
    h_term = curvature.spectral_norm(found.h_term(case.residuals(sure.to(found.logits))))
    return {
        "norm of H'": curvature.spectral_norm(case.hessian(frame, alpha=a)),
        "alpha^(L-2) norm of Ht": float(zone.curvature_factors(a, depth=case.depth).h_term) * h_term,
        "none": 0 * h_term,
        "norm of Ht": h_term,
        "alpha^(L-1) norm of Ht": a ** (case.depth - 1) * h_term,
        "alpha^L norm of Ht": a**case.depth * h_term,
    }


SCALED_CLAIMS = (
    _exact(
        id="vysogorets2024/temperature-gradient",
        entries=("A13",),
        source=f"{PAPER}, sections 1 and 3",
        statement=r"T = \alpha^L:\quad \alpha \nabla\ell' = \nabla\ell",
        says="At a temperature of the scale to the power of the depth, the gradient of a scaled network is the "
        "original one over the scale.",
        routes=matched_temperature,
        points=on_both({"alpha": 0.3}, {"alpha": 3.0}, samples=8),
        seconds=0.14,
        quantity="gradient of the loss",
    ),
    _exact(
        id="vysogorets2024/one-temperature",
        entries=("A15",),
        source=f"ours, sharper than section 6 and figure 1 of {PAPER}",
        passage=OURS,
        statement=r"\alpha^2 H'(\alpha, T) = H(1, T / \alpha^L)",
        says="But for a squared scale, the Hessian depends on scale and temperature only through temperature over "
        "scale to the depth.",
        routes=one_temperature,
        points=on_both(
            {"alpha": 0.4, "temperature": 3.0}, {"alpha": 1.6, "temperature": 0.7}, samples=8, dim=3
        ),
        seconds=0.62,
        quantity="projected Hessian",
    ),
    _at_one_end(
        id="vysogorets2024/loss-at-large-scale",
        source=f"{PAPER}, section 5",
        statement=r"\ell(\alpha) = \alpha^L\, \overline{\max_k z_k - z_y} \quad (\alpha \gg 1)",
        says="At large scale, the loss grows as the scale to the power of the depth, times the mean shortfall of "
        "the label's logit.",
        reads=r"\text{loss scales exponentially with } \alpha",
        routes=large_losses,
        points=on_both({}, alpha=200.0, samples=8),
        printed="exponential in alpha",
        passage=as_stated(
            "their loss remains extremely large and scales exponentially with",
            "Section 5",
        ),
        finding="Of a homogeneous network the loss at large scale grows with the logits, as the power alpha^L of the "
        "scale and not exponentially.",
        tolerance=1e-7,
        tolerance_reason="the loss is at most log K above alpha^L c, here 1e8 or more",
        seconds=0.028,
        quantity="loss",
    ),
    _at_one_end(
        id="vysogorets2024/norm-at-large-scale",
        source=f"{PAPER}, section 5; the growth is ours, from eq. (5)",
        statement=r"\|H'_d\|_2 = \alpha^{L-2} \|\tilde H_d(\text{one-hot } p)\|_2 "
        r"\quad (\alpha \gg 1)",
        says="Far above the zone, the spectral norm of the Hessian equals the norm of its remainder at "
        "one-hot predictions, times the scale to the power depth minus two.",
        reads=r"\text{the loss curvature vanishes along all directions}",
        routes=large_curvature,
        points=on_both({}, alpha=1300.0, samples=8, dim=3),
        printed="none",
        passage=as_stated("the loss curvature vanishes along all directions", "Section 5"),
        finding="The curvature vanishes along all directions below the zone; above it the norm of the Hessian grows "
        "as alpha^(L-2), and what vanishes on both sides is the excess.",
        tolerance=1e-10,
        tolerance_reason="an image would need two logits closer than 1e-8 to show",
        seconds=0.16,
        quantity="spectral norm of the projected Hessian",
    ),
)

# --- softmax with temperature --------------------------------------------------------------------------------


def heated_softmax(_: Generator, point: Point) -> Arrays:
    """Probabilities, in fifty digits from shifted or scaled logits, in float64 from plain ones."""
    z, heat, factor = np.array(point.logits), point.temperature, point.alpha**point.depth
    plain = _float_softmax(z / heat)
    return {
        "p, shifted and scaled": np.stack(
            [
                _in_digits([point.shift + value for value in point.logits], heat),
                _in_digits([factor * value for value in point.logits], factor * heat),
            ]
        ),
        "p": np.stack([plain, plain]),
        "p, times T": np.stack([_float_softmax(z * heat)] * 2),
        "p, scaled at T": np.stack([plain, _float_softmax(factor * z / heat)]),
    }


def _in_digits(logits: list[float], temperature: float) -> list[float]:
    """Eq (1) as written, with digits to spare."""
    import mpmath

    heaviest = int(max(abs(value) for value in logits) / temperature)
    with mpmath.workdps(2 * len(str(heaviest)) + 2 * int(np.ptp(logits) / temperature) + 50):
        powers = [mpmath.exp(mpmath.mpf(value) / mpmath.mpf(temperature)) for value in logits]
        return [float(power / mpmath.fsum(powers)) for power in powers]


def _float_softmax(z: Any) -> Any:
    import torch

    return torch.from_numpy(z).softmax(-1).numpy()


# --- homogeneity, the number of weights, biases, other activations ----------------------------------------------


def homogeneity(rng: Generator, point: Point) -> Arrays:
    """Logits of scaled weights, and powers of the factor times the logits as drawn."""
    import torch

    case = drawn(rng, point)
    with torch.no_grad():
        z, scaled, negative = (case.scaled(a)(case.x) for a in (1.0, point.alpha, -point.alpha))
    return {
        "logits of scaled weights": scaled,
        "alpha^L z": float(zone.homogeneous_factor(point.alpha, depth=case.depth)) * z,
        "alpha^(L-1) z": point.alpha ** (case.depth - 1) * z,
        "for negative factors too": (-1) ** case.depth * negative,
    }


def weight_counts(rng: Generator, _: Point) -> Arrays:
    """Weights of the LeNet-5 that is built, three channels and ten classes, and what the statement says."""
    layers = {
        "convolutions": ((3, 6, 25), (6, 16, 25)),
        "matrices": ((400, 120, 1), (120, 84, 1), (84, 10, 1)),
    }
    counts = [i * out * taps for each in layers.values() for i, out, taps in each]
    units = sum(out for each in layers.values() for _, out, _ in each)
    return {
        "built": sum(p.numel() for p in networks.LeNet5(rng=rng).parameters()),
        "61,770": 61_770,
        "61,170": 61_170,
        "with biases": sum(counts) + units,
        "of one channel": sum(counts) - 2 * 6 * 25,
    }


def biases_at_small_scale(rng: Generator, point: Point) -> Arrays:
    """Logits of LeNet-300-100 with all weights and biases scaled down, next to what is left of the weights."""
    import torch
    from torch import nn

    case, a = drawn(rng, point), point.alpha
    weights = [layer.weight.detach() for layer in case.network.layers]
    biases = [torch.from_numpy(rng.standard_normal(len(w))) for w in weights]
    whole = networks.Mlp((case.x[0].numel(), *map(len, weights)), bias=True, rng=rng)
    theta = torch.cat([p.flatten() for pair in zip(weights, biases, strict=True) for p in pair])
    nn.utils.vector_to_parameters(a * theta, whole.parameters())
    plain, last = networks.mlp_logits(weights, case.x), biases[-1]
    return {
        "logits / alpha, alpha small": whole(case.x).detach() / a,
        "last bias": last.expand_as(plain),
        "network without other biases": plain + last,
        "nothing": 0 * plain,
    }


def tanh_remainder(rng: Generator, point: Point) -> Arrays:
    """Logits of LeNet-300-100 with tanh over alpha^L, less those of the product of its matrices, over alpha^2."""
    case, a = drawn(rng, point), point.alpha
    weights = [layer.weight.detach() for layer in case.network.layers]
    linear = networks.mlp_logits(weights, case.x, "linear")
    scaled = networks.mlp_logits([a * w for w in weights], case.x, "tanh")

    def through(h: Any) -> Any:
        return networks.mlp_logits(weights[1:], h, "linear")

    first = case.x @ weights[0].T
    return {
        "remainder / alpha^2": (scaled / float(zone.homogeneous_factor(a, depth=case.depth)) - linear) / a**2,
        "- W .. (W_1 x)^3 / 3": zone.tanh_correction([w.numpy() for w in weights], case.x.numpy()),
        "+ W .. (W_1 x)^3 / 3": through(first**3) / 3,
        "remainder of order alpha": -through(first**3) / (3 * a),
        "cubes of the logits": -(linear**3) / 3,
    }


CLAIMS = (
    *DERIVATIVE_CLAIMS,
    Identity(
        id="vysogorets2024/softmax-temperature",
        entries=("A1",),
        source=f"{PAPER}, eq. (1)",
        no_theory=NoTheory.MEASURED,
        statement=r"p_k = \frac{e^{z_k/T}}{\sum_c e^{z_c/T}}: \text{ the same for } z + c \text{ at } T "
        r"\text{ and } \alpha^L z \text{ at } \alpha^L T",
        says="Softmax probabilities do not change when all logits are shifted alike, or logits and temperature "
        "scaled alike.",
        routes=heated_softmax,
        points=(
            Point(logits=(0.0, -1.0, -2.0), shift=1e6, temperature=1.0, alpha=1.7, depth=3),
            Point(logits=(0.625, -1.375, 2.25, -0.5), shift=1e6, temperature=0.3, alpha=0.6, depth=5),
            Point(logits=(0.0625, 0.0, 0.046875), shift=-1e6, temperature=1e-3, alpha=0.25, depth=4),
            Point(
                logits=(350.5, -800.25, 1200.75, 12.5, 3.0), shift=1e6, temperature=1e3, alpha=2.5, depth=2
            ),
        ),
        tolerance=1e-12,
        tolerance_reason="rounding of z / T, which reaches some tens",
        seconds=0.01,
        quantity="probabilities",
    ),
    _exact(
        id="vysogorets2024/homogeneity",
        entries=("A2",),
        source=f"{PAPER}, section 2",
        statement=r"z(\alpha\theta) = \alpha^L z(\theta) \quad (\alpha > 0)",
        says="Scaling all weights of a bias-free LeNet by a positive factor multiplies its logits by that factor to "
        "the power of the depth.",
        routes=homogeneity,
        points=on_both({"alpha": 0.1}, {"alpha": 10.0}, {"alpha": 1e-3}, samples=8),
        seconds=0.2,
        quantity="logits",
    ),
    Identity(
        id="vysogorets2024/parameter-count",
        entries=("A3",),
        source=f"{PAPER}, section 4 and caption of figure 5",
        no_theory=NoTheory.CONSTANT,
        statement=r"P(\text{LeNet-5}) = 450 + 2400 + 48000 + 10080 + 840 = 61770",
        says="A bias-free LeNet-5 for three channels and ten classes has 61,770 weights.",
        reads=r"d = P = \text{61,170}",
        routes=weight_counts,
        points=(Point(channels=3, classes=10),),
        printed="61,170",
        passage=misprint(
            "quite noteworthy for a 61,170-dimensional space",
            "Section 4 and caption of Figure 5",
        ),
        finding="As our copy reads, 61,170 in both places; LeNet-5 without biases has 61,770 weights for three "
        "channels and ten classes, that of the authors' published code too.",
        tolerance=1e-12,
        tolerance_reason="whole numbers",
        seconds=0.01,
        quantity="number of weights",
    ),
    _at_one_end(
        id="vysogorets2024/biases-at-small-scale",
        source=f"{PAPER}, section 2",
        no_theory=NoTheory.MEASURED,
        statement=r"\alpha \ll 1:\quad \alpha^{-1} f(\alpha\theta, \alpha b) \to b_L",
        says="As all parameters of LeNet-300-100 are scaled down, only the bias of the last layer is left in the "
        "logits.",
        routes=biases_at_small_scale,
        points=(Point(network="LeNet-300-100", images="digits", alpha=1e-9, samples=8),),
        tolerance=1e-7,
        tolerance_reason="the layer below leaves some units of alpha = 1e-9",
        seconds=0.01,
        quantity="logits over the scale",
    ),
    _at_one_end(
        id="vysogorets2024/tanh-at-small-scale",
        source=f"{PAPER}, section 2; the order is ours",
        statement=r"\alpha^{-L} f_{\tanh}(\alpha\theta) = W_L \cdots W_1 x - \tfrac{\alpha^2}{3} W_L \cdots W_2 "
        r"(W_1 x)^3 + O(\alpha^4)",
        says="Scaled down, a tanh network becomes linear, with a correction of second order that cubes the first "
        "layer's signals.",
        routes=tanh_remainder,
        points=tuple(
            Point(network="LeNet-300-100", images="digits", alpha=alpha, samples=8) for alpha in (3e-4, 1e-4)
        ),
        tolerance=1e-4,
        tolerance_reason="the next order is alpha^2 = 1e-7 times squares of signals, up to a hundred",
        seconds=0.011,
        quantity="distance from the linear network",
    ),
    *SCALED_CLAIMS,
)
