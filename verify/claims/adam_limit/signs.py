"""One step of sign descent on a quadratic: the best rate against the batch size (Li et al.)."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from simulate.monte_carlo import Block, Point, fixture
from theory.learning_rates import adam
from verify.claims import Floats
from verify.claims.noise_scale.quadratics import best_step
from verify.model import Arrays, Claim, Experiment, Verdict, as_stated, out_of_scope

LI = "Li et al. (2024), arXiv 2405.14578"


class Coupled(NamedTuple):
    """Weights w of a loss w' H w / 2, H, and the standard deviation of a sample's gradient by each weight."""

    weights: Floats
    hessian: Floats
    noise: Floats


@cache
def coupled_quadratic(dim: int, coupling: float, size: float) -> Coupled:
    """Quadratic that all replicates of a point share: coupled weights, gradients `size` times as large as noise."""
    rng = fixture(0, f"adam_limit/coupled {dim} {coupling} {size}")
    hessian: Any = np.diag(rng.uniform(0.7, 1.3, dim)) + coupling
    weights = rng.uniform(0.4, 1.6, dim)
    gradient = hessian @ weights
    return Coupled(weights, hessian, gradient / size * rng.uniform(0.7, 1.4, dim))


def sign_steps(block: Block, point: Point) -> Arrays:
    """Rate at which the mean loss after a step along the signs of batch gradients is least, by trying rates."""
    import torch

    found = coupled_quadratic(point.dim, point.coupling, point.size)
    w, h, sigma = (torch.from_numpy(part).to(block.device) for part in found)
    noise = block.normal(point.draws, point.dim) * (sigma / point.batch_size**0.5)
    signs = (h @ w + noise).sign()
    scale = float(w.abs().mean()) / 8  # rates are tried about one that moves weights by as much as they are
    return {"rate": scale * best_step(h, w, scale * signs).rate}


SMALL = {"dim": 48, "coupling": 0.6, "size": 0.022, "draws": 256}
LARGE = {"dim": 12, "coupling": 0.03, "size": 0.3, "draws": 256}

STEPS, BEYOND = (
    Experiment(
        id=f"adam_limit/{name}",
        replicate="256 steps along the signs of batch gradients, and the rate of least mean loss",
        simulate=sign_steps,
        points=tuple(Point(batch_size=batch, **setting) for batch in batches),
        budget=512,
        seconds=0.1,
    )
    for name, setting, batches in (
        ("sign-steps", SMALL, (31, 150, 650)),
        ("sign-steps-of-large-gradients", LARGE, (5, 31, 90)),
    )
)


def _setting(p: Any) -> dict[str, Any]:
    found = coupled_quadratic(p.dim, p.coupling, p.size)
    return {"gradient": found.hessian @ found.weights, "hessian": found.hessian, "noise": found.noise}


def _exact(p: Any, **changes: Any) -> Any:
    return adam.sign_rate(**{**_setting(p), "batch_size": p.batch_size, **changes})


def _surge(p: Any) -> Any:
    return adam.surge_rate(**_setting(p), batch_size=p.batch_size)


def _monotone(p: Any) -> Any:
    """Square root of the batch size, without a fall."""
    scale = adam.surge_scale(**_setting(p))
    return 2 * adam.surge_rate(**_setting(p), batch_size=scale) * (p.batch_size / scale) ** 0.5


def _as_plain(p: Any) -> Any:
    """The form of plain descent, through the same largest rate."""
    scale = adam.surge_scale(**_setting(p))
    return adam.surge_rate(**_setting(p), batch_size=scale) / (1 + scale / p.batch_size)


SURGE = (
    r"\mathrm{argmin}_\eta \mathbb{E}\, L(w - \eta\, \mathrm{sign}\, g_B) = \frac{2 \eta_{\max}}{\sqrt{B_{\rm s}/B} + "
    r"\sqrt{B/B_{\rm s}}},\quad B_{\rm s} = \frac{\pi}{2} \frac{\mathrm{tr} H}{\sum_{i \ne j} H_{ij} g_i g_j / "
    r"(\sigma_i \sigma_j)}"
)

BEST_RATE = {
    "entries": ("I3",),
    "score": "rate",
    "axis": "batch_size",
    "quantity": "best rate of one step",
}

CLAIMS = (
    Claim(
        id="adam_limit/sign-rate",
        **BEST_RATE,
        source=f"{LI}, before the error function is expanded",
        statement=r"\mathrm{argmin}_\eta \mathbb{E}\, L(w - \eta\, \mathrm{sign}\, g_B) = "
        r"\frac{\sum_i g_i e_i}{\sum_i H_{ii} + \sum_{i \ne j} H_{ij} e_i e_j},\quad "
        r"e_i = \mathrm{erf}\Big(\sqrt{\tfrac{B}{2}}\, \frac{g_i}{\sigma_i}\Big)",
        says="On a quadratic with independent normal noise, the best rate of one step of sign descent follows from "
        "error functions, at any batch size.",
        experiment=BEYOND,
        predict=_exact,
        margin=0.01,
        margin_reason="exact; the rate found is a quotient of means over 256 steps, biased by their variance",
        rivals={
            "small gradients": _surge,
            "signs without noise": lambda p: _exact(p, batch_size=1e9),
            "batch size without its root": lambda p: _exact(p, batch_size=p.batch_size**2),
        },
    ),
    Claim(
        id="adam_limit/surge",
        **BEST_RATE,
        source=LI,
        passage=as_stated(
            "the optimal learning rate first rises and then falls as the batch size increases", "abstract"
        ),
        statement=SURGE + r"\quad (\sqrt{B}\, g_i \ll \sigma_i)",
        says="While gradients are small against their batch's noise, the best rate of one sign-descent step rises "
        "with the batch size, then falls.",
        experiment=STEPS,
        predict=_surge,
        margin=0.05,
        margin_reason="what the expansion leaves out, which grows with the batch size: 3 % at the largest",
        rivals={
            "square root, without a fall": _monotone,
            "as plain descent": _as_plain,
            "no coupling of the signs": lambda p: _exact(p, hessian=np.diag(np.diag(_setting(p)["hessian"]))),
        },
    ),
    Claim(
        id="adam_limit/surge-of-large-gradients",
        **BEST_RATE,
        source=LI,
        passage=out_of_scope(
            "converge to a non-zero value when the batch size is large enough",
            "caption of Figure 1, as an account of the paper has it",
        ),
        statement=SURGE,
        says="The best rate of one step of sign descent falls beyond the noise scale also where gradients are not "
        "small against their batch's noise.",
        experiment=BEYOND,
        predict=_surge,
        margin=0.05,
        margin_reason="as where gradients are small",
        rivals={"square root, without a fall": _monotone, "as plain descent": _as_plain},
        expected=Verdict.DISAGREES,
        finding="The rate settles where the batch is large enough for the signs to be sure, as the paper says too. "
        "Where few or weakly coupled weights put the noise scale beyond that size, it settles at that of full "
        "gradients and never falls.",
    ),
)
