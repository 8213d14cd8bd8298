"""One step of SGD on a quadratic: the rate that lowers the mean loss most, and by how much (McCandlish et al.)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simulate.monte_carlo import Block, Point, fixture
from theory.learning_rates import noise_scale
from verify.claims import Floats
from verify.model import Arrays, Claim, Experiment

if TYPE_CHECKING:
    from torch import Tensor

COARSE = 2.0 ** np.arange(-7, 5)
"""Rates tried first, a factor of two apart."""

FINE = 2.0 ** np.linspace(-1, 1, 9)
"""Factors about the best of these, tried next."""


class Lowest(NamedTuple):
    """The rate (n,) at which a mean loss is least, and that loss (n,)."""

    rate: Tensor
    loss: Tensor


def lowest(losses: Callable[[Tensor], Tensor], device: str = "cpu") -> Lowest:
    """Return the rate at which each mean loss is least, given losses (n, R) at rates (n, R), or (R,) the same for all.

    All tensors are on the device. The last step is the parabola through the best of the fine rates and its neighbours.

    Examples
    --------
    >>> import torch
    >>> lowest(lambda rates: 0.25 * rates**2 - torch.tensor([[0.1], [0.3]]) * rates)
    Lowest(rate=tensor([0.2000, 0.6000], dtype=torch.float64), loss=tensor([-0.0100, -0.0900], dtype=torch.float64))
    """
    import torch

    coarse, fine = (torch.from_numpy(tried).to(device) for tried in (COARSE, FINE))
    centre = coarse[losses(coarse).argmin(1)]
    rates = centre[:, None] * fine
    found = losses(rates)
    middle = found.argmin(1).clamp(1, len(FINE) - 2)
    x0, x1, x2 = (rates.gather(1, (middle + shift)[:, None])[:, 0] for shift in (-1, 0, 1))
    y0, y1, y2 = (found.gather(1, (middle + shift)[:, None])[:, 0] for shift in (-1, 0, 1))
    left, right = (y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1)
    bend = (right - left) / (x2 - x0)
    rate = (x0 + x1) / 2 - left / (2 * bend)
    return Lowest(rate, y1 + (rate - x1) * left + (rate - x1) * (rate - x0) * bend)


def best_step(hessian: Tensor, weights: Tensor, steps: Tensor) -> Lowest:
    """Rate (R,) at which the mean of w' H w / 2 after steps (R, k, P) from weights (P,) is least, by trying rates."""
    import torch

    def losses(rates: Tensor) -> Tensor:
        after = [
            weights - rate[:, None, None] * steps for rate in rates.expand(len(steps), -1).unbind(1)
        ]  # a rate at a time
        return torch.stack([((w @ hessian) * w).sum(2).mean(1) / 2 for w in after], 1)

    return lowest(losses, str(steps.device))


MCCANDLISH = "McCandlish, Kaplan and Amodei (2018), arXiv 1812.06162"


class Quadratic(NamedTuple):
    """A loss w' H w / 2 at weights w, with gradients of N samples there, whose mean is H w: (P, P), (P,), (N, P)."""

    hessian: Floats
    weights: Floats
    gradients: Floats


@cache
def noisy_quadratic(samples: int, dim: int, isotropic: bool) -> Quadratic:
    """Quadratic that all replicates of a point share; noise and gradient lie along different eigenvectors."""
    rng = fixture(0, f"noise_scale/quadratic {samples} {dim} {isotropic}")
    basis = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    values = np.full(dim, 0.7) if isotropic else 3.0 * 0.6 ** np.arange(dim)
    hessian: Any = (basis * values) @ basis.T
    weights = basis @ (rng.standard_normal(dim) / np.sqrt(values))
    noise = rng.standard_normal((samples, dim)) * (1.9 * 1.2 ** np.arange(dim)) @ basis.T
    return Quadratic(hessian, weights, hessian @ weights + noise - noise.mean(0))


def one_step(block: Block, point: Point) -> Arrays:
    """Rate and decrease where the mean loss over many batches is least, by trying rates."""
    import torch

    loss = noisy_quadratic(point.samples, point.dim, point.isotropic)
    hessian, weights, gradients = (torch.from_numpy(part).to(block.device) for part in loss)
    chosen = np.stack([
        np.argsort(rng.random((point.draws, point.samples)), axis=1)[:, : point.batch_size] for rng in block.streams
    ])  # fmt: skip
    found = best_step(hessian, weights, gradients[torch.from_numpy(chosen).to(block.device)].mean(2))
    return {"rate": found.rate, "decrease": weights @ hessian @ weights / 2 - found.loss}


def _setting(p: Any) -> dict[str, Any]:
    """Arguments of the formulas, from the population of a point."""
    loss = noisy_quadratic(p.samples, p.dim, p.isotropic)
    g = loss.gradients.mean(0)
    return {
        "squared_gradient": g @ g,
        "curvature": g @ loss.hessian @ g,
        "noise": np.trace(loss.hessian @ np.cov(loss.gradients.T)),
        "batch_size": p.batch_size,
        "dataset_size": p.samples,
    }


def _trace(p: Any) -> float:
    return float(np.trace(np.cov(noisy_quadratic(p.samples, p.dim, p.isotropic).gradients.T)))


def _simple(p: Any) -> Any:
    """The formula with the simple scale in place of the noise scale."""
    setting = _setting(p)
    scale = noise_scale.simple_noise_scale(_trace(p), squared_gradient=setting["squared_gradient"])
    return noise_scale.best_step_rate(**setting | {"noise": scale * setting["curvature"]})


def _rate(p: Any, **changes: Any) -> Any:
    return noise_scale.best_step_rate(**_setting(p) | changes)


def _decrease(p: Any, **changes: Any) -> Any:
    return noise_scale.best_step_decrease(**_setting(p) | changes)


ONE_STEP, ISOTROPIC = (
    Experiment(
        id=f"noise_scale/{name}",
        replicate="1024 batches of a fixed quadratic, and the rate of least mean loss",
        simulate=one_step,
        points=tuple(
            Point(samples=samples, dim=dim, batch_size=size, draws=1024, isotropic=isotropic)
            for samples, dim, size in points
        ),
        budget=512,
        seconds=0.3,
    )
    for name, isotropic, points in (
        ("one-step", False, ((23, 6, 2), (23, 6, 5), (41, 9, 13))),
        ("one-step-isotropic", True, ((23, 6, 3), (41, 9, 7))),
    )
)

BEST_RATE = {
    "source": f"{MCCANDLISH}, section 2.2",
    "score": "rate",
    "margin": 0.01,
    "margin_reason": "exact; the rate found is a quotient of means over 1024 batches, biased by their variance",
    "axis": "batch_size",
    "quantity": "best rate of one step",
}

CLAIMS = (
    Claim(
        id="noise_scale/one-step-rate",
        **BEST_RATE,
        entries=("H1",),
        statement=r"\mathrm{argmin}_\epsilon \mathbb{E}\, L(w - \epsilon g_B) = "
        r"\frac{|g|^2 / g^\top H g}{1 + B_{\rm noise} (1/B - 1/N)},\quad "
        r"B_{\rm noise} = \frac{\mathrm{tr}\, H S}{g^\top H g}",
        says="On a quadratic, the best rate of one step grows with the batch size as one over one plus the noise "
        "scale over it.",
        experiment=ONE_STEP,
        predict=_rate,
        rivals={
            "no noise": lambda p: _rate(p, noise=0.0),
            "batches with replacement": lambda p: _rate(p, dataset_size=np.inf),
            "the simple scale": _simple,
            "square root of the batch size": lambda p: _rate(p, batch_size=p.batch_size**0.5),
        },
    ),
    Claim(
        id="noise_scale/one-step-decrease",
        entries=("H2",),
        source=f"{MCCANDLISH}, section 2.2",
        statement=r"L(w) - \min_\epsilon \mathbb{E}\, L(w - \epsilon g_B) = "
        r"\frac{|g|^4 / (2 g^\top H g)}{1 + B_{\rm noise} (1/B - 1/N)}",
        says="On a quadratic, the best step lowers the mean loss by the same share of a full gradient's decrease.",
        experiment=ONE_STEP,
        score="decrease",
        predict=_decrease,
        margin=0.01,
        margin_reason="exact; a least value over rates of a mean over 1024 batches, biased by their variance",
        rivals={
            "no noise": lambda p: _decrease(p, noise=0.0),
            "batches with replacement": lambda p: _decrease(p, dataset_size=np.inf),
            "share squared": lambda p: _decrease(p) ** 2 / _decrease(p, noise=0.0),
            "without the half": lambda p: 2 * _decrease(p),
        },
        axis="batch_size",
        quantity="decrease of the mean loss",
    ),
    Claim(
        id="noise_scale/simple-scale",
        **BEST_RATE,
        entries=("H3",),
        statement=r"\mathrm{argmin}_\epsilon \mathbb{E}\, L(w - \epsilon g_B) = "
        r"\frac{|g|^2 / g^\top H g}{1 + B_{\rm simple} (1/B - 1/N)},\quad "
        r"B_{\rm simple} = \frac{\mathrm{tr}\, S}{|g|^2}\quad (H \propto I)",
        says="Where the Hessian is a multiple of the identity, the trace of the gradient's covariance over its "
        "squared length is the noise scale.",
        experiment=ISOTROPIC,
        predict=_simple,
        rivals={
            "no noise": lambda p: _rate(p, noise=0.0),
            "batches with replacement": lambda p: _rate(p, dataset_size=np.inf),
            "largest eigenvalue in place of the trace": lambda p: _rate(
                p, noise=_setting(p)["noise"] / p.dim
            ),
        },
    ),
)
