"""Verdict whether a loss lies in the Goldilocks zone: its positive curvature against chance.

The excess of positive curvature of a matrix is its trace over its Frobenius norm. Vysogorets, Dawid and Kempe (2024)
look at it in a random subspace of 50 dimensions, where a balanced spectrum scatters about 0 by sqrt(2/51). Here it is
known in the full space, so that the excess in that subspace follows without a draw; one draw is shown with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.nn import functional

from simulate.objectives import Batch, Objective
from simulate.objectives.heads import rows_of
from simulate.objectives.losses import IGNORED
from simulate.spectra import Estimate
from theory.gauss_newton import excess_noise_floor, hessian_excess, projected_excess
from verify.practice.loading import Problem
from verify.practice.loading.foreign import forward_passes

SUBSPACE = 50
"""Dimensions of the paper's subspace."""

WELL, BARELY = 5.0, 2.0
"""Noise floors above which an excess is well above the noise, and below which it is none."""

_SIGMAS = 2
"""Standard errors either side within which all places are named."""

_AT_ONCE = 1 << 20
"""Numbers that are converted to double precision at a time."""

_PLACES = ("outside", "at the edge", "inside")

_UNIFORM, _SATURATED = 0.9, 0.95
"""Share of the largest entropy, and mean largest probability, beyond which outputs count as such."""


@dataclass(frozen=True, kw_only=True)
class Softmax:
    """Confidence of a classifier: means over its outputs of the largest probability, and of entropy over log K."""

    confidence: float
    entropy: float


@dataclass(frozen=True, kw_only=True)
class Zone:
    """Verdict on the Goldilocks zone, with its reasons.

    Attributes
    ----------
    verdict
        "inside", "at the edge" or "outside" the zone, or several of them where the error does not tell them apart.
    reason
        Reason of the verdict, in words.
    excess
        In a random subspace of `dim` dimensions, by theory from that in the full space.
    floor
        Standard deviation there of the excess of a balanced spectrum.
    predicted
        Excess of the Hessian by theory, from that of G and the ratio of the Frobenius norms; None unless the H-term
        is known to have no trace, as with ReLU.
    ratio
        Frobenius norm of the H-term over that of G.
    """

    verdict: str
    reason: str
    dim: int
    excess: Estimate
    floor: float
    predicted: float | None
    ratio: float | None
    softmax: Softmax | None


def excess_ratio(trace: Estimate, frobenius: Estimate) -> Estimate | None:
    """Trace over Frobenius norm; None of a matrix that is zero.

    Examples
    --------
    >>> excess_ratio(Estimate(6.0, 0.3), Estimate(2.0, 0.0))
    Estimate: 3 ± 0.15
    """
    if frobenius.value == 0:
        return None
    ratio = trace.value / frobenius.value
    errors = math.hypot(trace.standard_error, ratio * frobenius.standard_error)
    return Estimate(ratio, errors / frobenius.value)


def zone_of(
    hessian: Estimate, gauss_newton: Estimate | None, ratio: float | None, sure: Softmax | None
) -> Zone:
    """Return the verdict from the excess of the Hessian.

    Parameters
    ----------
    hessian
        Excess of the Hessian in the full space.
    gauss_newton
        Excess of G; None if G is zero, or if its trace is not the whole trace of the Hessian.
    ratio
        Frobenius norm of the H-term over that of G, None where G is zero.
    sure
        Confidence of a classifier.

    Examples
    --------
    >>> zone_of(Estimate(3.0, 0.1), Estimate(3.1, 0.1), 0.2, None).verdict
    'inside'
    >>> zone_of(Estimate(0.1, 0.05), Estimate(3.1, 0.1), 20.0, None).verdict
    'outside'
    """
    seen, floor = _excess_in_subspace(hessian), float(excess_noise_floor(SUBSPACE))
    predicted = None
    if gauss_newton is not None and gauss_newton.value >= 0 and ratio is not None:
        predicted = float(hessian_excess(gauss_newton.value, frobenius_ratio=ratio))
    low, high = (_place(seen.value + side * seen.standard_error, floor) for side in (-_SIGMAS, _SIGMAS))
    height = f"the positive curvature is {seen.value / floor:.1f} times the noise of a random subspace"
    return Zone(
        verdict=" or ".join(_PLACES[low : high + 1]),
        reason=height if seen.value > WELL * floor else f"{height}; {_cause(ratio, sure)}",
        dim=SUBSPACE,
        excess=seen,
        floor=floor,
        predicted=predicted,
        ratio=ratio,
        softmax=sure,
    )


def off_place(hessian: Estimate) -> float:
    """Squared error of the excess over the largest one that leaves a single verdict; at most 1 if it is single.

    Examples
    --------
    >>> off_place(Estimate(3.0, 0.1)) < 1 < off_place(Estimate(1.1, 0.2))
    True
    """
    seen, floor = _excess_in_subspace(hessian), float(excess_noise_floor(SUBSPACE))
    nearest = min(abs(seen.value - edge * floor) for edge in (BARELY, WELL))
    return (_SIGMAS * seen.standard_error / nearest) ** 2 if nearest else math.inf


def _excess_in_subspace(hessian: Estimate) -> Estimate:
    """Return the excess in a random subspace, computed from the excess in the full space."""
    inside = float(projected_excess(hessian.value, dim=SUBSPACE))
    # the derivative of r sqrt(d / (d + 1 + r^2)) in r
    slope = math.sqrt(SUBSPACE) * (SUBSPACE + 1) / (SUBSPACE + 1 + hessian.value**2) ** 1.5
    return Estimate(inside, slope * hessian.standard_error)


def softmax(problem: Problem) -> Softmax | None:
    """Return the confidence of a classifier over all outputs that the loss uses; None for other problems."""
    classes = problem.classes
    if classes is None or classes < 2:
        return None
    objective, ignored = problem.objective, getattr(problem.loss, "ignore_index", IGNORED)
    top, entropy, count = 0.0, 0.0, 0
    with forward_passes(objective, "outputs"):
        for batch in objective.batches():
            for outputs, targets in _places(objective, batch):
                # labels, not a share for each class
                labels = not targets.is_floating_point() and targets.shape == outputs.shape[:-1]
                kept = outputs[targets != ignored] if labels else outputs.flatten(0, -2)
                for part in kept.split(max(1, _AT_ONCE // classes)):
                    logarithms = part.double().log_softmax(1)
                    top += float(logarithms.amax(1).exp().sum())
                    entropy -= float((logarithms.exp() * logarithms).sum())
                count += len(kept)
    top, entropy, count = (objective.ranks.sum(each) for each in (top, entropy, count))
    return Softmax(confidence=top / count, entropy=entropy / count / math.log(classes))


def _places(objective: Objective, batch: Batch) -> Iterator[tuple[Tensor, Any]]:
    """Outputs with the classes last, and targets: of all samples, or a few positions where a head gives the logits."""
    leaves, head = objective.leaves, objective.head_of(batch)
    if head is None:
        yield objective.outputs(leaves, batch.inputs).movedim(1, -1), batch.targets
        return
    hidden = head.hidden(objective, leaves, batch.inputs)
    for rows in rows_of(objective, head, hidden, batch.targets):
        yield functional.linear(rows.hidden, *head.own(objective, leaves)), rows.batch.targets


def _place(value: float, floor: float) -> int:
    return (value > BARELY * floor) + (value > WELL * floor)


def _cause(ratio: float | None, sure: Softmax | None) -> str:
    outweighed = "the H-term, H − G, outweighs the Gauss-Newton matrix G" + (
        f" {ratio:.3g} times" if ratio else ""
    )
    if ratio is None:
        return "the Gauss-Newton matrix is zero"
    if ratio <= 1:
        return "few directions are curved, or the Gauss-Newton matrix too has negative curvature"
    if sure is not None and sure.entropy > _UNIFORM:
        return f"{outweighed}: outputs are near uniform, the weights are small or the temperature is high"
    if sure is not None and sure.confidence > _SATURATED:
        return f"{outweighed}: the softmax is saturated, the weights are large or the temperature is low"
    return outweighed
