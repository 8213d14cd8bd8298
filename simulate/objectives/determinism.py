"""Whether the loss of a model on data is one function at all: found out by asking twice, with the cause by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler

from simulate.objectives import Objective, OtherDataError

__all__ = ["require_deterministic"]

_RULE = "data and model must give the same loss twice"

_ROUNDINGS = 1e4
"""A change of more than so many roundings of the largest entry is no other order of the same sums."""


def require_deterministic(objective: Objective) -> None:
    """Go through all data twice in a row and refuse what does not repeat.

    A loader that shuffles is no cause by itself: the sum over all samples is the same in any order. It is one where
    it drops the last samples, or where the samples of a batch see each other.

    Raises
    ------
    ValueError
        If loss or gradient differ by more than rounding, naming what draws at random.

    Examples
    --------
    >>> from torch import nn
    >>> model = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2))
    >>> data = (torch.ones(4, 3), torch.tensor([0, 1, 1, 0]))
    >>> require_deterministic(Objective(model, data, nn.CrossEntropyLoss()))
    >>> require_deterministic(Objective(model, data, nn.CrossEntropyLoss(), training=True))
    Traceback (most recent call last):
    ValueError: data and model must give the same loss twice, got ...: dropout in training mode ('0')
    """
    try:
        (value, gradient), (again, other) = objective.twice()
    except OtherDataError:
        raise ValueError(f"{_RULE}, got others at the second pass: {_cause(objective)}") from None
    rounding = _ROUNDINGS * torch.finfo(objective.dtype).eps
    same = abs(value - again) <= rounding * abs(value)
    if same and float((gradient - other).abs().max()) <= rounding * float(gradient.abs().max()):
        return
    raise ValueError(f"{_RULE}, got {value!r} and {again!r}: {_cause(objective)}")


def _cause(objective: Objective) -> str:
    return "; ".join(_causes(objective)) or "the model or the data draw random numbers of their own"


def _causes(objective: Objective) -> Iterator[str]:
    dropping = _modules(objective, _DropoutNd)
    if dropping:
        yield f"dropout in training mode ({dropping})"
    loader = objective.data
    if not isinstance(loader, DataLoader) or isinstance(loader.sampler, SequentialSampler):
        return
    normalising = _modules(objective, _BatchNorm)
    if normalising:
        yield f"a loader that shuffles under batch normalisation in training mode ({normalising})"
    if loader.drop_last:
        yield "a loader that shuffles and drops the last samples (drop_last=True)"
    if _chooses(loader.sampler):
        yield "a sampler that chooses samples at random"


def _modules(objective: Objective, kind: Any) -> str:
    """Names of the modules of a kind, if they are in training mode."""
    if objective.model is None or not objective.training:
        return ""
    return ", ".join(
        repr(name) for name, module in objective.model.named_modules() if isinstance(module, kind)
    )


def _chooses(sampler: Any) -> bool:
    """Whether it does more than shuffle."""
    if isinstance(sampler, RandomSampler):
        return sampler.replacement or sampler.num_samples < len(sampler.data_source)
    return True
