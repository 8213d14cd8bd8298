"""Warnings about models and data that look like mistakes, shown with the numbers and never an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from simulate.objectives.restoring import preserve_state
from verify.practice.loading import BATCH, Problem

_ROUNDING = 1e-4
"""Tolerance of the sum of probabilities, for many classes in single precision."""


def setup_warnings(problem: Problem) -> tuple[str, ...]:
    """Return a line for each likely mistake: a softmax before the loss, equal targets, equal inputs.

    Examples
    --------
    >>> from verify.practice.loading import problem
    >>> x, y = torch.eye(3), torch.zeros(3, dtype=torch.int64)
    >>> setup_warnings(problem(nn.Linear(3, 2), (x, y)))
    ('all targets are class 0: there is nothing to tell apart, and a constant output fits them all',)
    """
    return tuple(_lines(problem))


def _lines(problem: Problem) -> Iterator[str]:
    if _probabilities(problem):
        yield (
            "outputs look like probabilities (none is negative, and they sum to 1), but CrossEntropyLoss takes logits:"
            " drop the softmax"
        )
    if problem.samples < 2:
        return
    targets = _labelled(problem) if isinstance(problem.targets, Tensor) else None
    if targets is not None and len(targets) and _equal(targets):
        single = not targets.is_floating_point() and targets[:1].numel() == 1 and problem.classes is not None
        yield (
            f"all targets are {f'class {int(targets[0])}: there is nothing to tell apart, and' if single else 'equal:'}"
            " a constant output fits them all"
        )
    if _equal(problem.inputs):
        yield "all inputs are equal: no output can depend on the sample"


def _probabilities(problem: Problem) -> bool:
    """Return whether the model ends with a softmax although the loss applies one, judged by a few outputs."""
    own = isinstance(problem.loss, nn.CrossEntropyLoss) or problem.loss is functional.cross_entropy
    if not own or not problem.outputs or problem.outputs[0] < 2:
        return False
    objective = problem.objective
    few = objective.few()
    with (
        objective.ranks.together("outputs"),
        preserve_state(objective.model, objective.training),
        torch.no_grad(),
    ):
        outputs = objective.outputs(objective.leaves(), few.inputs)
    return bool((outputs >= 0).all() and ((outputs.double().sum(1) - 1).abs() < _ROUNDING).all())


def _labelled(problem: Problem) -> Tensor:
    """Return the targets without those that the loss ignores."""
    targets, ignored = problem.targets, getattr(problem.loss, "ignore_index", None)
    if ignored is None or targets.is_floating_point() or not bool((targets == ignored).any()):
        return targets
    return targets[targets != ignored]


def _equal(part: Any) -> bool:
    """Return whether all samples of a structure of tensors are equal."""
    if isinstance(part, Mapping):
        return all(_equal(value) for value in part.values())
    if isinstance(part, tuple | list):
        return all(_equal(value) for value in part)
    if not isinstance(part, Tensor):  # a batch that only the model knows how to part
        return False
    return all(bool((rows == part[:1]).all()) for rows in part.split(BATCH))
