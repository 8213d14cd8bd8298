"""What the Fisher information of a sample is made of: derivatives of the loss in its outputs, of three kinds.

| kind | vectors | what matrix they make |
|---|---|---|
| "gauss-newton" | roots of the curvature of the loss in the outputs, as many as it has rank | `gauss_newton` |
| "sampled" | of minus the log likelihood, at targets drawn from the model's own distribution | `fisher`, in the mean |
| "empirical" | of the loss at the target that the sample has | `empirical_fisher` |
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from simulate import _checks
from simulate.modules.sample_parts import Outer, Root, roots
from simulate.objectives import Objective
from simulate.operators import Likelihood, likelihood_of

__all__ = ["Kind", "root_of"]

Kind = Literal["gauss-newton", "sampled", "empirical"]
_KINDS = ("gauss-newton", "sampled", "empirical")

_NEGLIGIBLE = 1e-3
"""Share of the positive curvature of a loss that its negative curvature may have."""

_ROUNDINGS = 10
"""In each eigenvalue of the curvature of a loss; of a softmax or a sigmoid those of numbers of the size of one."""

_SATURATING = (nn.CrossEntropyLoss, nn.BCEWithLogitsLoss)
"""Losses whose curvature may be far below that of the numbers that it is made of."""


def root_of(
    objective: Objective,
    kind: Kind,
    *,
    seed: _checks.Seed,
    draws: int,
    likelihood: Likelihood | None,
) -> Root:
    """Vectors of this kind, for `sample_parts.parts`.

    Raises
    ------
    ValueError
        If the kind is unknown, or sampled without a likelihood; from the root, if the loss is not convex in
        the outputs.
    """
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(_KINDS)}, got {kind!r}")
    if kind == "gauss-newton":
        return Root(partial(_convex, 1.0 if isinstance(objective.criterion, _SATURATING) else 0.0))
    if kind == "empirical":
        return Root(_own)
    rng = _checks.generator(seed)
    family, count = likelihood_of(objective, likelihood), _checks.natural("draws", draws)

    def drawn(_: Outer, part: slice, outputs: Tensor) -> tuple[Tensor, Tensor]:
        found = _drawn(outputs[part].detach(), count, family, rng)
        return found, torch.full((found.shape[1], count), 1 / count, dtype=torch.float64, device=found.device)

    return Root(drawn, asks=False)


def _convex(floor: float, outer: Outer, part: slice, outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Negative eigenvalues of rounding, as a saturated softmax has, stay with their signs: they are nothing in sums."""
    found, signs = roots(outer, part, outputs)
    sizes = found.reshape(*found.shape[:2], -1).square().sum(2).mT.double()
    negative, positive = (float(sizes[sign * signs > 0].sum()) for sign in (-1, 1))
    rounding = _ROUNDINGS * torch.finfo(outputs.dtype).eps * signs.numel() * max(floor, float(sizes.max()))
    if negative > _NEGLIGIBLE * positive + rounding:
        raise ValueError(
            "loss must be convex in the outputs for factors of the Gauss-Newton matrix, got negative curvature;"
            " use kind='empirical'"
        )
    return found, signs


def _own(outer: Outer, part: slice, outputs: Tensor) -> tuple[Tensor, Tensor]:
    slope = outer.slope[part]
    some = slope.abs().amax(1, keepdim=True) > 0
    return slope.reshape(1, *outputs[part].shape).to(outputs.dtype), some.double()


def _drawn(outputs: Tensor, count: int, family: str, rng: np.random.Generator) -> Tensor:
    """Derivatives of minus the log likelihood in the outputs, at targets drawn so many times: (count, *outputs)."""
    if family == "gaussian":
        return torch.from_numpy(rng.standard_normal((count, *outputs.shape))).to(outputs)
    if family == "bernoulli":
        p = outputs.sigmoid()
        return p - (torch.from_numpy(rng.random((count, *p.shape))).to(p.device) < p.double()).to(p)
    p = outputs.softmax(1)
    share = torch.from_numpy(rng.random((count, len(p), 1, *p.shape[2:]))).to(p.device)
    # classes that the share is beyond; rounding of the last sum makes no further class
    chosen = (p.double().cumsum(1)[:, :-1] <= share).sum(2, keepdim=True)
    return p - p.new_zeros(count, *p.shape).scatter_(2, chosen, 1.0)
