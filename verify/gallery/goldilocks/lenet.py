"""One LeNet-300-100 on real images: its curvature in full space, in random frames, and by random probes."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulate import data, networks, objectives, operators
from simulate.modules import logit_kernel
from simulate.perceptrons import curvature, full_space
from verify.gallery.parts import Setting
from verify.page.drawing import Floats

__all__ = ["Lenet"]


class Lenet:
    """LeNet-300-100 as drawn, in the coordinates that its images see.

    Directions of the first layer that no image sees move neither logits nor curvature.
    """

    def __init__(self, rng: np.random.Generator, setting: Setting, samples: int) -> None:
        import torch

        source = data.opened(setting.data, (1, 28, 28))
        widths = (*networks.LENET_300_100[:-1], source.classes)
        images = data.sample(source, rng, samples).flat()
        first, *others = (w.to(setting.device) for w in networks.mlp_weights(rng, widths))
        span, coordinates = torch.linalg.qr(images.tensors(setting.device)[0].T)
        self.weights, self.x, self.labels = (first @ span, *others), coordinates.T, images.labels
        self.parameters, self.device = networks.weight_count(widths), setting.device
        self.logits = networks.mlp_logits(self.weights, self.x).numpy(force=True)

    def norms(self, alpha: float = 1.0) -> Any:
        """Traces and norms of the Hessian and its terms in full space."""
        return full_space.norms(self.weights, self.x, self.labels, alpha)

    def scales(self) -> Any:
        """Standard deviations of means and residuals of the gradients of logits."""
        kernel = logit_kernel.logit_kernel(self.objective().model, self.x)
        return kernel._replace(dim=self.parameters).scales()

    def frame(self, rng: np.random.Generator, dim: int) -> Any:
        """Those rows of a random frame of the full space that the images see."""
        seen = sum(w.numel() for w in self.weights)
        return curvature.haar(rng, seen, dim, total=self.parameters, device=self.device)

    def logit_gradients(self, frame: Any) -> Any:
        """Gradients of the logits in the coordinates of a frame, (N, K, d): all directions in one pass."""
        signal, change = self.x, self.x.new_zeros(len(self.x), frame.shape[1], self.x.shape[1])
        parts = frame.split([w.numel() for w in self.weights])
        for weight, part in zip(self.weights, parts, strict=True):
            turned = part.view(*weight.shape, -1).permute(1, 2, 0).flatten(1)  # (in, d out)
            change = change @ weight.T + (signal @ turned).view(len(signal), frame.shape[1], -1)
            signal = signal @ weight.T
            if weight is not self.weights[-1]:
                on = signal > 0
                signal, change = signal * on, change * on[:, None]
        return change.mT

    def frame_excess(self, rng: np.random.Generator, dim: int, alphas: Floats) -> Floats:
        """Excess of the Hessian in one random frame at these scales."""
        net = curvature.ProjectedMlp(self.weights, self.x, self.labels, self.frame(rng, dim))
        return curvature.positive_excess(net.terms(alphas).hessian).numpy(force=True)

    def probe_excess(self, rng: np.random.Generator, probes: int, groups: int, alpha: float) -> Floats:
        """Hutchinson's estimates of the excess of the Hessian, each of so many sign vectors."""
        hessian = operators.hessian(self.objective(alpha))
        signs = 2.0 * rng.integers(0, 2, (sum(w.numel() for w in self.weights), probes * groups)) - 1.0
        vectors = self.weights[0].new_tensor(signs)
        products = hessian @ vectors
        traces = (vectors * products).sum(0).view(groups, probes).mean(1)
        squares = products.square().sum(0).view(groups, probes).mean(1)
        return (traces / squares.sqrt()).numpy(force=True)

    def objective(self, alpha: float = 1.0) -> Any:
        """Cross-entropy of the network with all weights scaled."""
        import torch
        from torch import nn

        widths = (self.x.shape[1], *(len(w) for w in self.weights))
        model = networks.Mlp(widths, rng=np.random.default_rng(0)).to(self.device)
        flat = torch.cat([alpha * w.flatten() for w in self.weights])
        nn.utils.vector_to_parameters(flat, model.parameters())
        return objectives.Objective(model, (self.x, self.labels), nn.CrossEntropyLoss())
