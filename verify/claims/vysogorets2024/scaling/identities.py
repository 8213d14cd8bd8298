"""Vysogorets, Dawid and Kempe (2024): exact identities of scaled networks on real images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from simulate.monte_carlo import Point
from verify.model import OURS, AnyClaim, Identity

__all__ = ["CLAIMS", "EXACT", "NETWORKS", "PAPER", "Drawn", "covariance", "drawn", "frame_of", "on_both"]

PAPER = "Vysogorets, Dawid and Kempe (2024)"

NETWORKS = ("LeNet-300-100", "LeNet-5")
"""The second with max pooling."""

EXACT = "an exact identity in float64; sums over all weights lose three digits at most"

# --- networks and their derivatives --------------------------------------------------------------------------


class Drawn(NamedTuple):
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

        from simulate.objectives import Objective

        def loss(logits: Any, targets: Any) -> Any:
            return functional.cross_entropy(logits / temperature, targets)

        return Objective(self.scaled(alpha), loss, (self.x, self.labels))

    def hessian(self, frame: Any, **at: Any) -> Any:
        """Second derivative of that loss along a frame, by automatic differentiation."""
        from simulate import operators

        return frame.T @ (operators.hessian(self.objective(**at)) @ frame)

    def derivatives(self, frame: Any, alpha: float = 1.0) -> Any:
        """Those of the logits along a frame."""
        from simulate.modules.logit_derivatives import logit_derivatives

        return logit_derivatives(self.scaled(alpha), self.x, frame)

    def residuals(self, p: Any) -> Any:
        """Probabilities less the one-hot labels."""
        from torch.nn import functional

        return p - functional.one_hot(self.labels, p.shape[-1])


def drawn(rng: np.random.Generator, point: Point) -> Drawn:
    """One of the two networks of the paper, bias-free, with images of the size it wants."""
    from torch import nn

    from simulate import data, networks

    perceptron = point.network == "LeNet-300-100"
    source = data.opened(point.images, (1, 28, 28) if perceptron else (3, 32, 32))
    images = data.sample(source, rng, point.samples)
    x, labels = (images.flat() if perceptron else images).tensors()
    widths = (*networks.LENET_300_100[:-1], source.classes)
    network = (
        networks.Mlp(widths, rng=rng) if perceptron else networks.LeNet5(classes=source.classes, rng=rng)
    )
    theta = nn.utils.parameters_to_vector(network.parameters()).detach()
    return Drawn(network, theta, x, labels, 3 if perceptron else 5)


def frame_of(rng: np.random.Generator, case: Drawn, point: Point) -> Any:
    """Orthonormal directions of all weights, (P, dim)."""
    from simulate.perceptrons import curvature

    return curvature.haar(rng, len(case.theta), point.dim)


def covariance(p: Any) -> Any:
    """diag(p) - p p' of every image."""
    import torch

    return torch.diag_embed(p) - p[:, :, None] * p[:, None, :]


def on_both(*settings: Mapping[str, Any], **common: Any) -> tuple[Point, ...]:
    """Each setting on each of the two networks."""
    return tuple(Point(network=n, images="digits", **common, **s) for n in NETWORKS for s in settings)


# --- derivatives of the loss ---------------------------------------------------------------------------------


def latent_hessian(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """R' H R of a frame whose columns are neither unit nor orthogonal, and differences of the gradient along them."""
    import torch

    from simulate.modules.projected import projected_terms

    case = drawn(rng, point)
    mixing = torch.from_numpy(rng.standard_normal((point.dim, point.dim))) + 1.0
    frame = frame_of(rng, case, point) @ mixing
    curved = projected_terms(case.objective(), frame).hessian
    overlaps = torch.linalg.inv(frame.T @ frame)
    return {
        "differences of the gradient": _differences(case, frame, point.step),
        "R' H R": curved,
        "on the span of R": overlaps @ curved @ overlaps,
        "columns taken as unit": curved / torch.outer(frame.norm(dim=0), frame.norm(dim=0)),
    }


def _differences(case: Drawn, frame: Any, step: float) -> Any:
    """Central differences, along each column, of the gradient in the latent coordinates."""
    import torch

    def gradient(theta: Any) -> Any:
        return frame.T @ case._replace(theta=theta).objective().gradient()

    ends = [(gradient(case.theta + step * r), gradient(case.theta - step * r)) for r in frame.T]
    return torch.stack([(up - down) / (2 * step) for up, down in ends], dim=1)


def loss_gradient(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Gradient of the loss along a frame, and Eq (3) from the gradients of the logits."""
    case = drawn(rng, point)
    frame = frame_of(rng, case, point)
    found = case.derivatives(frame)
    warm = found.gradient(case.residuals((found.logits / point.temperature).softmax(-1)))
    return {
        "gradient": frame.T @ case.objective(temperature=point.temperature).gradient(),
        "Eq (3)": warm / point.temperature,
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
    g_term, h_term = found.g_term(covariance(p)) / heat**2, found.h_term(case.residuals(p)) / heat
    plain = found.g_term(torch.diag_embed(p)) / heat**2
    return {
        "Hessian": case.hessian(frame, temperature=heat),
        "G + Ht": g_term + h_term,
        "without - p p'": plain + h_term,
        "with + p p'": 2 * plain - g_term + h_term,
        "p for p - e_y": g_term + found.h_term(p) / heat,
    }


def permuted_labels(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """G-term, and what is left of H less Ht with the labels moved by one image, or with those of one of them only."""
    from simulate.modules.projected import projected_terms

    case = drawn(rng, point)
    frame = frame_of(rng, case, point)
    moved = case._replace(labels=case.labels.roll(1))
    found, hessian = case.derivatives(frame), moved.hessian(frame)
    p = found.logits.softmax(-1)
    return {
        "H - Ht, labels permuted": hessian - found.h_term(moved.residuals(p)),
        "G": projected_terms(case.objective(), frame).g_term,
        "Ht as it was": hessian - found.h_term(case.residuals(p)),
        "H as it was": case.hessian(frame) - found.h_term(moved.residuals(p)),
    }


# --- Euler ---------------------------------------------------------------------------------------------------


def along_the_weights(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """First and second derivatives along theta itself, of the logits and of the loss of each image."""
    import torch

    case = drawn(rng, point)
    own, heat, depth = case.theta[:, None], point.temperature, case.depth
    found = case.derivatives(own)
    z = found.logits
    weighted = (case.residuals((z / heat).softmax(-1)) * z).sum(-1)
    images = zip(case.x.split(1), case.labels.split(1), strict=True)
    alone = [case._replace(x=x, labels=y).objective(temperature=heat).gradient() for x, y in images]
    return {
        "theta . grad z": found.jacobian[..., 0],
        "L z": depth * z,
        "(L-1) z": (depth - 1) * z,
        "theta' Hess z theta": found.second[..., 0, 0],
        "L (L-1) z": depth * (depth - 1) * z,
        "L^2 z": depth**2 * z,
        "(L-1) (L-2) z": (depth - 1) * (depth - 2) * z,
        "theta . grad loss": torch.stack(alone) @ case.theta,
        "L/T (p - e_y) . z": depth / heat * weighted,
        "(L-1)/T (p - e_y) . z": (depth - 1) / heat * weighted,
        "L (p - e_y) . z": depth * weighted,
    }


def _euler(name: str, statement: str, measured: str, theory: str, *rivals: str) -> Identity:
    return Identity(
        id=f"vysogorets2024/{name}",
        entries=("A11",),
        source=f"ours, from the homogeneity of section 2 of {PAPER}",
        passage=OURS,
        statement=statement,
        routes=along_the_weights,
        points=on_both({"temperature": 1.7}, samples=8),
        measured=measured,
        theory=theory,
        tolerance=1e-12,
        tolerance_reason=EXACT,
        rivals=rivals,
        seconds=0.2,
        data="digits",
        quantity="derivative along the weights",
    )


HEATED = ({"temperature": 1.7}, {"temperature": 0.6})

CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="vysogorets2024/latent-hessian",
        entries=("A5",),
        source=f"{PAPER}, section 2",
        statement=r"\nabla^2_{\hat\theta}\, \ell(\theta + R\hat\theta) = R^\top H R \text{ for any } R",
        routes=latent_hessian,
        points=on_both({}, samples=4, dim=3, step=1e-6),
        measured="differences of the gradient",
        theory="R' H R",
        tolerance=1e-6,
        tolerance_reason="rounding of the differences, 1e-16 over a relative step of 1e-8 to 1e-7",
        rivals=("on the span of R", "columns taken as unit"),
        seconds=0.3,
        data="digits",
        quantity="Hessian in latent coordinates",
    ),
    Identity(
        id="vysogorets2024/loss-gradient",
        entries=("A9",),
        source=f"{PAPER}, eq. (3)",
        statement=r"\nabla\ell = \frac{1}{T}\Big[-\nabla z_y + \sum_k p_k \nabla z_k\Big]",
        routes=loss_gradient,
        points=on_both(*HEATED, samples=8, dim=3),
        measured="gradient",
        theory="Eq (3)",
        tolerance=1e-12,
        tolerance_reason=EXACT,
        rivals=("without 1/T", "p at T = 1"),
        seconds=0.6,
        data="digits",
        quantity="gradient of the loss",
    ),
    Identity(
        id="vysogorets2024/gauss-newton-split",
        entries=("A10",),
        source=f"{PAPER}, eq. (4)",
        statement=r"H = \overline{J^\top (\mathrm{diag}\,p - p p^\top) J}/T^2 + \overline{\textstyle\sum_k "
        r"(p - e_y)_k \nabla^2 z_k}/T",
        routes=gauss_newton_split,
        points=on_both(*HEATED, samples=8, dim=3),
        measured="Hessian",
        theory="G + Ht",
        tolerance=1e-12,
        tolerance_reason=EXACT,
        rivals=("without - p p'", "with + p p'", "p for p - e_y"),
        seconds=0.7,
        data="digits",
        quantity="projected Hessian",
    ),
    Identity(
        id="vysogorets2024/permuted-labels",
        entries=("A10",),
        source=f"{PAPER}, eq. (4)",
        statement=r"G \text{ does not depend on the labels, } \tilde H \text{ does}",
        routes=permuted_labels,
        points=on_both({}, samples=8, dim=3),
        measured="H - Ht, labels permuted",
        theory="G",
        tolerance=1e-12,
        tolerance_reason=EXACT,
        rivals=("Ht as it was", "H as it was"),
        seconds=0.2,
        data="digits",
        quantity="projected G-term",
    ),
    _euler("euler-gradient", r"\theta \cdot \nabla z = L z", "theta . grad z", "L z", "(L-1) z"),
    _euler(
        "euler-hessian",
        r"\theta^\top \nabla^2 z\, \theta = L (L - 1) z",
        "theta' Hess z theta",
        "L (L-1) z",
        "L^2 z",
        "(L-1) (L-2) z",
    ),
    _euler(
        "euler-loss",
        r"\theta \cdot \nabla\ell = \frac{L}{T}\, (p - e_y) \cdot z \text{ on each image}",
        "theta . grad loss",
        "L/T (p - e_y) . z",
        "(L-1)/T (p - e_y) . z",
        "L (p - e_y) . z",
    ),
)
