r"""The curvature above which an optimiser is unstable on a quadratic, at the rates that it has now.

With full gradients, rate :math:`\eta` and momentum :math:`\rho`, along an eigenvector of eigenvalue h:

==========================  =====================================  =========================================
optimiser                   unstable above h                       source
==========================  =====================================  =========================================
SGD                         :math:`2/\eta`                         Cohen et al. (2021, arXiv 2103.00065)
momentum                    :math:`2(1+\rho)/\eta`                 the same
Nesterov's momentum         :math:`2(1+\rho)/((1+2\rho)\eta)`      the same
Adam, AdamW                 :math:`2(1+\beta_1)/((1-\beta_1)\eta)` Cohen et al. (2022, arXiv 2207.14484)
==========================  =====================================  =========================================

Those of SGD are where the contraction of `theory.learning_rates` is 1. Dampening d of torch's momentum makes
the rate :math:`(1-d)\eta`. That of Adam is for the eigenvalue of :math:`P^{-1/2} H P^{-1/2}` with
:math:`P = \mathrm{diag}(\sqrt{\hat v} + \epsilon)`, held fixed, without the bias correction of the first moment: 38
over the rate at :math:`\beta_1 = 0.9`. Weight decay that the optimiser adds to the gradient is curvature, and belongs
to H; the decoupled one of AdamW is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD, Adam, AdamW, Optimizer

from simulate.lanczos import Operator

Group = Mapping[str, Any]
Moved = Sequence[tuple[Tensor, Group]]


@dataclass(frozen=True, kw_only=True)
class StepLimit:
    """The limit of an optimiser at this step.

    Attributes
    ----------
    value
        Largest stable eigenvalue, None if there is none to be had.
    note
        Its formula, or why there is none.
    decay
        Weight decay that is part of the gradient, of each parameter.
    scaling
        D of each parameter, shaped like it or a single number: what the eigenvalue of D^(1/2) H D^(1/2) is to be
        measured with. None if the limit is for H.
    """

    value: float | None
    note: str
    decay: tuple[float, ...]
    scaling: tuple[Tensor, ...] | None = None


def with_decay(matrix: Operator, shapes: Sequence[torch.Size], decay: Sequence[float]) -> Operator:
    """The curvature of weight decay added, which is diagonal."""
    if not any(decay):
        return matrix
    sizes = torch.tensor([shape.numel() for shape in shapes])
    diagonal = torch.tensor(decay, dtype=matrix.dtype).repeat_interleave(sizes).to(matrix.device)
    return replace(matrix, product=lambda vectors: matrix(vectors) + diagonal * vectors)


def scaled(matrix: Operator, shapes: Sequence[torch.Size], scaling: Sequence[Tensor]) -> Operator:
    """D^(1/2) A D^(1/2), with the diagonal D of each parameter shaped like it, or one number."""
    parts = [
        part.to(matrix.device).expand(shape).flatten() for part, shape in zip(scaling, shapes, strict=True)
    ]
    root = torch.cat(parts).to(matrix.dtype).sqrt()
    return replace(matrix, product=lambda vectors: root * matrix(root * vectors))


def step_limit(optimizer: Optimizer, moved: Moved) -> StepLimit:
    """The limit of an optimiser for the parameters that it moves.

    Examples
    --------
    >>> p = torch.nn.Parameter(torch.ones(2))
    >>> optimizer = SGD([p], lr=0.1, momentum=0.9)
    >>> found = step_limit(optimizer, [(p, optimizer.param_groups[0])])
    >>> round(found.value, 9), found.note
    (38.0, '2 (1 + momentum) / rate')
    """
    groups = [group for _, group in moved]
    adam = isinstance(optimizer, Adam | AdamW)
    decay = tuple(
        0.0
        if isinstance(optimizer, AdamW) or group.get("decoupled_weight_decay")
        else float(group.get("weight_decay", 0))
        for group in groups
    )
    name = type(optimizer).__name__
    if not (adam or isinstance(optimizer, SGD)):
        return StepLimit(value=None, note=f"no limit is known here for {name}", decay=decay)
    kinds = {_constants(group, adam=adam) for group in groups}
    largest = max(float(group["lr"]) for group in groups)
    why = ""
    if any(group.get("maximize") for group in groups):
        why = "the optimiser maximises the loss"
    elif len(kinds) > 1:
        why = "parameter groups have different momenta"
    elif not largest > 0:
        why = "the rate is 0"
    elif adam and not any("exp_avg_sq" in optimizer.state.get(p, {}) for p, _ in moved):
        why = f"{name} has taken no step yet"
    if why:
        return StepLimit(value=None, note=f"no limit: {why}", decay=decay)
    factor, note = _adam(*kinds.pop()) if adam else _sgd(*kinds.pop())
    if factor is None:
        return StepLimit(value=None, note=note, decay=decay)
    shares = [float(group["lr"]) / largest for group in groups]
    if adam:
        scaling = [
            share * _inverse_root(optimizer, p, group)
            for share, (p, group) in zip(shares, moved, strict=True)
        ]
    else:
        scaling = [torch.tensor(share) for share in shares]
    plain = not adam and min(shares) == 1
    return StepLimit(
        value=factor / largest,
        note=note + ("" if min(shares) == 1 else ", the largest"),
        decay=decay,
        scaling=None if plain else tuple(scaling),
    )


def _constants(group: Group, *, adam: bool) -> tuple[float, ...]:
    """Return the constants that all groups must share, since the recursion along an eigenvector has one pair."""
    if adam:
        return (float(group["betas"][0]),)
    return float(group["momentum"]), float(group["dampening"]), float(group["nesterov"])


def _sgd(momentum: float, dampening: float, nesterov: float) -> tuple[float | None, str]:
    if momentum == 0:
        return 2.0, "2 / rate"
    if nesterov:
        return 2 * (1 + momentum) / (1 + 2 * momentum), "2 (1 + momentum) / (1 + 2 momentum) / rate"
    if dampening >= 1:
        return None, "no limit: dampening leaves no gradient"
    if dampening:
        return 2 * (1 + momentum) / (1 - dampening), "2 (1 + momentum) / (1 - dampening) / rate"
    return 2 * (1 + momentum), "2 (1 + momentum) / rate"


def _adam(first: float) -> tuple[float, str]:
    return 2 * (1 + first) / (1 - first), "2 (1 + beta1) / (1 - beta1) / rate, preconditioned"


def _inverse_root(optimizer: Optimizer, parameter: Tensor, group: Group) -> Tensor:
    """1 / (sqrt(v) + eps), v without its bias; 0 of a parameter that has had no gradient, and does not move."""
    state = optimizer.state.get(parameter, {})
    if "exp_avg_sq" not in state:
        return torch.zeros((), dtype=parameter.dtype, device=parameter.device)
    second = state["max_exp_avg_sq" if group.get("amsgrad") else "exp_avg_sq"]
    bias = 1 - float(group["betas"][1]) ** float(state["step"])
    return 1 / ((second / bias).sqrt() + float(group["eps"]))
