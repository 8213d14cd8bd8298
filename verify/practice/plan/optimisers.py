"""The optimiser of the user, from words or as a function, and where a walk over its rates begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn
from torch.optim import SGD, Adam, Optimizer

__all__ = ["NAMES", "Chosen", "Factory", "chosen_optimiser"]

NAMES = ("sgd", "momentum", "adam")

Factory = Callable[[Sequence[nn.Parameter], float], Optimizer]
"""From parameters and a rate to a new optimiser."""

_MOMENTUM = 0.9
_FIRST_SGD, _FIRST_ADAM = 0.1, 1e-3
"""Where the walk begins, of plain SGD and of Adam; it does not hang on it, but takes longer from afar."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """An optimiser.

    Attributes
    ----------
    name
        For people.
    plain
        Whether it is SGD without momentum and weight decay, which the linearised section is of.
    kind
        As which it was measured on hold-out networks: one of `NAMES`, None if it was not.
    rate
        Where the walk begins.
    make
        It.
    """

    name: str
    plain: bool
    kind: str | None
    rate: float
    make: Factory


def chosen_optimiser(
    optimiser: str | Factory, *, momentum: float | None = None, weight_decay: float = 0.0, rate: float | None
) -> Chosen:
    """An optimiser, checked.

    Parameters
    ----------
    optimiser
        One of `NAMES`, or a function of parameters and a rate.
    momentum
        From 0 to below 1, of SGD: 0.9 of "momentum" if None.
    weight_decay
        Not negative, as torch's optimisers take it.
    rate
        Where the walk begins, positive; a usual one if None.

    Raises
    ------
    ValueError
        If there is no such optimiser, or a number is out of its domain or does not go with the optimiser.

    Examples
    --------
    >>> found = chosen_optimiser("momentum", rate=None)
    >>> found.name, found.rate
    ('SGD, momentum 0.9', 0.01)
    """
    if momentum is not None and not 0 <= momentum < 1:
        raise ValueError(f"momentum must be from 0 to below 1, got {momentum}")
    if not 0 <= weight_decay < float("inf"):
        raise ValueError(f"weight_decay must be non-negative and finite, got {weight_decay}")
    if rate is not None and not 0 < rate < float("inf"):
        raise ValueError(f"rate must be positive and finite, got {rate}")
    if not isinstance(optimiser, str):
        return _own(optimiser, momentum, weight_decay, rate)
    if optimiser not in NAMES:
        raise ValueError(f"optimiser must be one of {', '.join(NAMES)} or a function, got {optimiser!r}")
    if optimiser == "adam":
        return _adam(momentum, weight_decay, rate)
    return _sgd(
        (_MOMENTUM if optimiser == "momentum" else 0.0) if momentum is None else momentum, weight_decay, rate
    )


def _own(optimiser: Factory, momentum: float | None, weight_decay: float, rate: float | None) -> Chosen:
    if not callable(optimiser):
        raise ValueError(f"optimiser must be one of {', '.join(NAMES)} or a function, got {optimiser!r}")
    if momentum is not None or weight_decay:
        raise ValueError(
            "momentum and weight_decay must be left to an optimiser that is a function, got both ways"
        )
    name = getattr(optimiser, "__name__", type(optimiser).__name__)
    return Chosen(name=f"optimiser {name}", plain=False, kind=None, rate=rate or _FIRST_ADAM, make=optimiser)


def _adam(momentum: float | None, weight_decay: float, rate: float | None) -> Chosen:
    if momentum is not None:
        raise ValueError(f"momentum must be left out with adam, got {momentum}")
    return Chosen(
        name=f"Adam{_decay(weight_decay)}",
        plain=False,
        kind=None if weight_decay else "adam",
        rate=rate or _FIRST_ADAM,
        make=lambda parameters, lr: Adam(parameters, lr=lr, weight_decay=weight_decay),
    )


def _sgd(momentum: float, weight_decay: float, rate: float | None) -> Chosen:
    return Chosen(
        name=f"SGD{f', momentum {momentum:g}' if momentum else ''}{_decay(weight_decay)}",
        plain=not momentum and not weight_decay,
        kind=None if weight_decay else {0.0: "sgd", _MOMENTUM: "momentum"}.get(momentum),
        rate=rate or round(_FIRST_SGD * (1 - momentum), 9),
        make=lambda parameters, lr: SGD(parameters, lr=lr, momentum=momentum, weight_decay=weight_decay),
    )


def _decay(weight_decay: float) -> str:
    return f", weight decay {weight_decay:g}" if weight_decay else ""
