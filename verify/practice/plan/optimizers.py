"""The optimizer with which rates are tried: by name, a class, a function, or one that is in use already."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from simulate._checks import did_you_mean

NAMES = ("sgd", "momentum", "adam", "adamw")

Factory = Callable[[Sequence[nn.Parameter], float], Optimizer]
"""From parameters and a learning rate to a new optimizer."""

_MOMENTUM = 0.9
_FIRST_SGD, _FIRST_ADAM = 0.1, 1e-3
"""Learning rates that are tried first, of plain SGD and of others; from afar trials take longer."""

_ADAM = {"betas": (0.9, 0.999), "eps": 1e-8, "amsgrad": False}
"""Settings of Adam as it was measured on the held-out networks."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """An optimizer.

    Attributes
    ----------
    name
        For people.
    plain
        Whether it is SGD without momentum and weight decay, which the linearised section is of.
    kind
        As which it was measured on held-out networks: "sgd", "momentum" or "adam"; None if it was not.
    rate
        Learning rate that is tried first.
    make
        From parameters and a learning rate to a new one.
    """

    name: str
    plain: bool
    kind: str | None
    rate: float
    make: Factory


def chosen_optimizer(
    optimizer: str | type[Optimizer] | Factory | Optimizer,
    *,
    momentum: float | None = None,
    weight_decay: float | None = None,
    rate: float | None = None,
    places: Mapping[int, int] | None = None,
) -> Chosen:
    """An optimizer, checked.

    Parameters
    ----------
    optimizer
        One of `NAMES`; a class of torch's optimizers; a function of parameters and a learning rate; or an optimizer,
        whose class, parameter groups and settings are taken, not its state. Groups keep the ratios of their rates.
    momentum
        From 0 to below 1, of SGD: 0.9 of "momentum" if None.
    weight_decay
        Not negative, as torch's optimizers take it; 0 if None, and 0.01 of "adamw".
    rate
        Learning rate that is tried first, positive; that of an optimizer in use, or a usual one, if None.
    places
        For an optimizer in use: the place of each parameter, by its id, among those that are trained.

    Raises
    ------
    ValueError
        If there is no such optimizer, or a number is out of its domain or does not go with the optimizer.

    Examples
    --------
    >>> found = chosen_optimizer("momentum")
    >>> found.name, found.rate
    ('SGD, momentum 0.9', 0.01)
    >>> line = nn.Linear(2, 1)
    >>> own = AdamW([{"params": [line.bias], "lr": 1e-2}, {"params": [line.weight]}], lr=1e-3)
    >>> found = chosen_optimizer(own, places={id(p): i for i, p in enumerate(line.parameters())})
    >>> found.name, [group["lr"] for group in found.make(list(line.parameters()), 1.0).param_groups]
    ('AdamW, weight decay 0.01, 2 groups of parameters', [1.0, 0.1])
    """
    if momentum is not None and not 0 <= momentum < 1:
        raise ValueError(f"momentum must be from 0 to below 1, got {momentum}")
    if weight_decay is not None and not 0 <= weight_decay < float("inf"):
        raise ValueError(f"weight_decay must be non-negative and finite, got {weight_decay}")
    if rate is not None and not 0 < rate < float("inf"):
        raise ValueError(f"rate must be positive and finite, got {rate}")
    if isinstance(optimizer, str):
        return _named(optimizer, momentum, weight_decay, rate)
    if momentum is not None or weight_decay:
        raise ValueError(
            "momentum and weight_decay apply to an optimizer given by name only; set them in the optimizer itself"
        )
    if isinstance(optimizer, Optimizer):
        return _in_use(optimizer, rate, places or {})
    if inspect.isclass(optimizer) and issubclass(optimizer, Optimizer):
        return _of_class(optimizer, {}, rate)
    if isinstance(optimizer, list | tuple | int | float | nn.Module) or not callable(optimizer):
        sizes = isinstance(optimizer, list | tuple | int)
        hint = f"; batch sizes go by name, batch_sizes={optimizer!r}" if sizes else ""
        hint = f"; a loss goes by name, loss={optimizer!r}" if isinstance(optimizer, nn.Module) else hint
        raise ValueError(f"optimizer must be {_RULE}, got {optimizer!r}{hint}")
    name = getattr(optimizer, "__name__", type(optimizer).__name__)
    make: Any = optimizer
    return Chosen(name=f"optimizer {name}", plain=False, kind=None, rate=rate or _FIRST_ADAM, make=make)


_RULE = (
    f"one of {', '.join(NAMES)}, an optimizer of torch, or its class, or a function of parameters and rate"
)


def _named(name: str, momentum: float | None, weight_decay: float | None, rate: float | None) -> Chosen:
    if name not in NAMES:
        raise ValueError(f"optimizer must be {_RULE}, got {name!r}{did_you_mean(name, NAMES)}")
    if name in ("sgd", "momentum"):
        inertia = (_MOMENTUM if name == "momentum" else 0.0) if momentum is None else momentum
        return _of_class(SGD, {"momentum": inertia, "weight_decay": weight_decay or 0.0}, rate)
    if momentum is not None:
        raise ValueError(f"{name} takes no momentum, got {momentum}; leave it out")
    settings = {} if weight_decay is None else {"weight_decay": weight_decay}
    return _of_class(Adam if name == "adam" else AdamW, settings, rate)


def _of_class(kind: type[Optimizer], settings: Mapping[str, Any], rate: float | None) -> Chosen:
    # the settings that a class has by default show in an optimizer alone
    defaults = kind([nn.Parameter()], lr=1.0, **settings).defaults if kind in (SGD, Adam, AdamW) else settings

    def make(parameters: Sequence[nn.Parameter], lr: float) -> Optimizer:
        return kind(parameters, lr=lr, **settings)  # type: ignore[call-arg]

    return Chosen(
        name=_words(kind, defaults),
        plain=_hold_out_kind(kind, defaults) == "sgd",
        kind=_hold_out_kind(kind, defaults),
        rate=rate or _first(kind, defaults),
        make=make,
    )


def _in_use(optimizer: Optimizer, rate: float | None, places: Mapping[int, int]) -> Chosen:
    """A new one of the class, with the groups and settings of one that is in use."""
    kind, first = type(optimizer), optimizer.param_groups[0]
    taken = _taken(kind)
    groups = [
        ([places[id(p)] for p in group["params"] if id(p) in places], group)
        for group in optimizer.param_groups
    ]
    held = {place for chosen, _ in groups for place in chosen}
    if not held:
        raise ValueError("optimizer holds no parameters of the model; build it from model.parameters()")
    if len(held) < len(set(places.values())):
        raise ValueError(
            f"optimizer holds {len(held)} of the {len(set(places.values()))} measured parameters; list those that it"
            " moves in parameters="
        )
    rates = _rates(optimizer, rate)
    lead = next(each for each in rates if each)

    def make(parameters: Sequence[nn.Parameter], lr: float) -> Optimizer:
        made = [
            {
                "params": [parameters[place] for place in chosen],
                "lr": lr * each / lead,
                **_settings(group, taken),
            }
            for (chosen, group), each in zip(groups, rates, strict=True)
            if chosen
        ]
        # the groups have all that is theirs: a class that hands on what it is given may set some of it itself
        own = set(inspect.signature(kind).parameters) & taken
        return kind(made, lr=lr, **_settings({**vars(optimizer), **optimizer.defaults}, own))  # type: ignore[call-arg]

    alike = all(_settings(group, taken) == _settings(first, taken) for _, group in groups)
    one = alike and all(each == lead for each in rates)
    measured = _hold_out_kind(kind, first) if one else None
    return Chosen(
        name=_words(kind, first) + ("" if one else f", {len(groups)} groups of parameters"),
        plain=measured == "sgd",
        kind=measured,
        rate=rate or lead,
        make=make,
    )


def _taken(kind: type[Optimizer]) -> set[str]:
    """Settings that the class takes by name; one that hands on what it is given takes those of its base too."""
    taken = set[str]()
    for each in kind.__mro__:
        if "__init__" not in vars(each):
            continue
        parameters = inspect.signature(each.__init__).parameters.values()
        taken |= {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return taken - {"self", "params", "lr", "defaults"}


def _rates(optimizer: Optimizer, rate: float | None) -> list[float]:
    """Learning rates of the groups: those from which a scheduler starts where it has them at zero as yet."""
    for name in ("lr", "initial_lr"):
        rates = [float(group.get(name, 0.0)) for group in optimizer.param_groups]
        if any(each > 0 for each in rates):
            return rates
    if rate is None:
        raise ValueError("optimizer must have a positive learning rate, got 0; give rate=")
    return [rate] * len(optimizer.param_groups)


def _settings(group: Mapping[str, Any], taken: Iterable[str]) -> dict[str, Any]:
    return {name: group[name] for name in taken if name in group}


def _first(kind: type[Optimizer], settings: Mapping[str, Any]) -> float:
    return round(_FIRST_SGD * (1 - settings.get("momentum", 0.0)), 9) if kind is SGD else _FIRST_ADAM


def _hold_out_kind(kind: type[Optimizer], settings: Mapping[str, Any]) -> str | None:
    """As which of the optimizers on the held-out networks one was measured; None with any other setting."""
    if settings.get("weight_decay") or settings.get("maximize"):
        return None
    if kind is SGD:
        plain = not settings.get("nesterov") and not settings.get("dampening")
        return {0.0: "sgd", _MOMENTUM: "momentum"}.get(settings.get("momentum", 0.0)) if plain else None
    return "adam" if kind is Adam and all(settings.get(k) == value for k, value in _ADAM.items()) else None


def _words(kind: type[Optimizer], settings: Mapping[str, Any]) -> str:
    momentum, decay = settings.get("momentum"), settings.get("weight_decay")
    nesterov = " (Nesterov)" if settings.get("nesterov") else ""
    parts = [
        kind.__name__,
        f"momentum {momentum:g}{nesterov}" if isinstance(momentum, float | int) and momentum else "",
        f"weight decay {decay:g}" if isinstance(decay, float | int) and decay else "",
    ]
    return ", ".join(part for part in parts if part)
