"""Warnings about models and data that look like mistakes, shown with the numbers and never an error."""

from __future__ import annotations

from torch import nn
from torch.nn import functional

from verify.practice.loading import Problem
from verify.practice.loading.foreign import forward_passes

_ROUNDING = 1e-4
"""Tolerance of the sum of probabilities, for many classes in single precision."""


def setup_warnings(problem: Problem) -> tuple[str, ...]:
    """Return a line for each likely mistake: a softmax before the loss.

    Examples
    --------
    >>> import torch
    >>> from verify.practice.loading import problem
    >>> x, y = torch.eye(3), torch.arange(3)
    >>> [line[-16:] for line in setup_warnings(problem(nn.Sequential(nn.Linear(3, 3), nn.Softmax(1)), (x, y)))]
    ['drop the softmax']
    """
    line = (
        "outputs look like probabilities (none is negative, and they sum to 1), but CrossEntropyLoss takes logits:"
        " drop the softmax"
    )
    return (line,) if _probabilities(problem) else ()


def _probabilities(problem: Problem) -> bool:
    """Return whether the model ends with a softmax although the loss applies one, judged by a few outputs."""
    own = isinstance(problem.loss, nn.CrossEntropyLoss) or problem.loss is functional.cross_entropy
    if not own or not problem.outputs or problem.outputs[0] < 2:
        return False
    objective = problem.objective
    few = objective.few()
    with forward_passes(objective, "outputs"):
        outputs = objective.outputs(objective.leaves, few.inputs)
    return bool((outputs >= 0).all() and ((outputs.double().sum(1) - 1).abs() < _ROUNDING).all())
