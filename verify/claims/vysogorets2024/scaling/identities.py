"""Vysogorets, Dawid and Kempe (2024): exact identities of scaled networks on real images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from simulate import data, networks, objectives, operators
from simulate.modules import logit_derivatives, projected
from simulate.monte_carlo import Point
from simulate.perceptrons import curvature
from theory import gauss_newton
from verify.claims.vysogorets2024 import PAPER
from verify.model import AnyClaim, Identity, NoTheory

__all__ = [
    "CLAIMS",
    "EXACT",
    "NETWORKS",
    "DrawnNetwork",
    "drawn",
    "frame_of",
    "on_both",
]

NETWORKS = ("LeNet-300-100", "LeNet-5")
"""The second with max pooling."""

EXACT = "an exact identity in float64; sums over all weights lose three digits at most"

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
        """Those of the logits along a frame."""
        return logit_derivatives.logit_derivatives(self.scaled(alpha), self.x, frame)

    def residuals(self, p: Any) -> Any:
        """Probabilities less the one-hot labels."""
        from torch.nn import functional

        return p - functional.one_hot(self.labels, p.shape[-1])


def drawn(rng: np.random.Generator, point: Point) -> DrawnNetwork:
    """One of the two networks of the paper, bias-free, with images of the size it wants."""
    from torch import nn

    perceptron = point.network == "LeNet-300-100"
    source = data.opened(point.images, (1, 28, 28) if perceptron else (3, 32, 32))
    images = data.sample(source, rng, point.samples)
    x, labels = (images.flat() if perceptron else images).tensors()
    widths = (*networks.LENET_300_100[:-1], source.classes)
    network = (
        networks.Mlp(widths, rng=rng) if perceptron else networks.LeNet5(classes=source.classes, rng=rng)
    )
    theta = nn.utils.parameters_to_vector(network.parameters()).detach()
    return DrawnNetwork(network, theta, x, labels, 3 if perceptron else 5)


def frame_of(rng: np.random.Generator, case: DrawnNetwork, point: Point) -> Any:
    """Orthonormal directions of all weights, (P, dim)."""
    return curvature.haar(rng, len(case.theta), point.dim)


def on_both(*settings: Mapping[str, Any], **common: Any) -> tuple[Point, ...]:
    """Each setting on each of the two networks."""
    return tuple(Point(network=n, images="digits", **common, **s) for n in NETWORKS for s in settings)


# --- derivatives of the loss ---------------------------------------------------------------------------------


def latent_hessian(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """R' H R of a frame whose columns are neither unit nor orthogonal, and differences of the gradient along them."""
    import torch

    case = drawn(rng, point)
    mixing = torch.from_numpy(rng.standard_normal((point.dim, point.dim))) + 1.0
    frame = frame_of(rng, case, point) @ mixing
    curved = projected.projected_terms(case.objective(), frame).hessian
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


def gradient_along_frame(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
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


def gauss_newton_split(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Hessian of the loss along a frame, and Eq (4) from the derivatives of the logits."""
    import torch

    case, heat = drawn(rng, point), point.temperature
    frame = frame_of(rng, case, point)
    found = case.derivatives(frame)
    p = (found.logits / heat).softmax(-1)
    g_term, h_term = _terms(p, case.labels, found.jacobian, found.second, temperature=heat)
    plain = found.g_term(torch.diag_embed(p)) / heat**2
    return {
        "Hessian": case.hessian(frame, temperature=heat),
        "G + Ht": g_term + h_term,
        "without - p p'": plain + h_term,
        "with + p p'": 2 * plain - g_term + h_term,
        "p for p - e_y": g_term + found.h_term(p) / heat,
    }


def _terms(p: Any, labels: Any, jacobian: Any, second: Any, *, temperature: float = 1.0) -> tuple[Any, Any]:
    """Both parts of the Hessian by Eq (4), the mean over the images."""
    import torch

    terms = gauss_newton.hessian_terms(p, labels, jacobian, second, temperature=temperature)
    return torch.from_numpy(terms.gauss_newton.mean(0)), torch.from_numpy(terms.h_term.mean(0))


# --- Euler ---------------------------------------------------------------------------------------------------


HEATED = ({"temperature": 1.7}, {"temperature": 0.6})

CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="vysogorets2024/latent-hessian",
        entries=("A5",),
        source=f"{PAPER}, section 2",
        no_theory=NoTheory.MEASURED,
        statement=r"\nabla^2_{\hat\theta}\, \ell(\theta + R\hat\theta) = R^\top H R \text{ for any } R",
        says="In coordinates along any set of directions, orthonormal or not, the Hessian of the loss is the full "
        "Hessian multiplied by these directions from both sides.",
        routes=latent_hessian,
        points=on_both({}, samples=4, dim=3, step=1e-6),
        tolerance=1e-6,
        tolerance_reason="rounding of the differences, 1e-16 over a relative step of 1e-8 to 1e-7",
        seconds=0.2,
        data="digits",
        quantity="Hessian in latent coordinates",
    ),
    Identity(
        id="vysogorets2024/loss-gradient",
        entries=("A9",),
        source=f"{PAPER}, eq. (3)",
        statement=r"\nabla\ell = \frac{1}{T}\Big[-\nabla z_y + \sum_k p_k \nabla z_k\Big]",
        says="At any temperature, the cross-entropy gradient is the mean logit gradient under the predicted "
        "probabilities less that of the label, over the temperature.",
        routes=gradient_along_frame,
        points=on_both(*HEATED, samples=8, dim=3),
        tolerance=1e-12,
        tolerance_reason=EXACT,
        seconds=0.21,
        data="digits",
        quantity="gradient of the loss",
    ),
    Identity(
        id="vysogorets2024/gauss-newton-split",
        entries=("A10",),
        source=f"{PAPER}, eq. (4)",
        statement=r"H = \overline{J^\top (\mathrm{diag}\,p - p p^\top) J}/T^2 + \overline{\textstyle\sum_k "
        r"(p - e_y)_k \nabla^2 z_k}/T",
        says="At any temperature, the Hessian of the loss is a Gauss-Newton term of logit gradients plus logit "
        "Hessians weighted by prediction errors.",
        routes=gauss_newton_split,
        points=on_both(*HEATED, samples=8, dim=3),
        tolerance=1e-12,
        tolerance_reason=EXACT,
        seconds=0.81,
        data="digits",
        quantity="projected Hessian",
    ),
)
