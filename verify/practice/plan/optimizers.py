"""The optimizer of trial runs, with its scheduler and clipping: by name, a class, a function, or one in use."""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau

from simulate._checks import did_you_mean

NAMES = ("sgd", "momentum", "adam", "adamw")

Factory = Callable[[Sequence[nn.Parameter], float], Optimizer]
"""Function of parameters and a learning rate to a new optimizer."""

_MOMENTUM, _DECAY = 0.9, 0.01
_FIRST_SGD, _FIRST_ADAM = 0.1, 1e-3
"""Learning rates around which the search begins, of SGD without momentum and of others."""

_HELD_OUT_SETTINGS = {
    SGD: {"dampening": 0.0, "nesterov": False, "weight_decay": 0.0},
    Adam: {"betas": (0.9, 0.999), "eps": 1e-8, "amsgrad": False, "weight_decay": 0.0},
    AdamW: {"betas": (0.9, 0.999), "eps": 1e-8, "amsgrad": False, "weight_decay": _DECAY},
}
"""Settings with which optimizers were tested on the held-out networks."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Optimizer.

    Attributes
    ----------
    name
        Name with its settings, for people.
    kind
        Name in `hold_out.HOLD_OUT`: "sgd", "momentum", "adam" or "adamw"; None with other settings.
    rate
        Learning rate around which the search begins.
    make
        Function of parameters and a learning rate to a new optimizer.
    clip
        Largest norm of the gradient; None if gradients are not clipped.
    schedule
        Function of an optimizer to its scheduler; None for a constant rate.
    """

    name: str
    kind: str | None
    rate: float
    make: Factory
    clip: float | None = None
    schedule: Callable[[Optimizer], Any] | None = None


def chosen_optimizer(
    optimizer: str | type[Optimizer] | Factory | Optimizer,
    *,
    momentum: float | None = None,
    weight_decay: float | None = None,
    rate: float | None = None,
    places: Mapping[int, int] | None = None,
) -> Chosen:
    """Return an optimizer, checked.

    Parameters
    ----------
    optimizer
        One of `NAMES`; a class of torch's optimizers; a function of parameters and a learning rate; or an optimizer in
        use, which is copied with its settings and state. Parameter groups keep the ratios of their rates.
    momentum
        From 0 to below 1, of SGD: 0.9 of "momentum" if None.
    weight_decay
        Not negative, as torch's optimizers take it; 0 if None, and 0.01 of "adamw".
    rate
        Learning rate around which the search begins, positive; that of an optimizer in use, or a usual one, if None.
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
    if weight_decay is not None and not 0 <= weight_decay < math.inf:
        raise ValueError(f"weight_decay must be non-negative and finite, got {weight_decay}")
    if rate is not None and not 0 < rate < math.inf:
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
        name = "loss" if isinstance(optimizer, nn.Module) else "batch_sizes"
        raise ValueError(
            f"optimizer must be {_RULE}, got {optimizer!r}; {name.replace('_', ' ')} by name: {name}={optimizer!r}"
        )
    name = getattr(optimizer, "__name__", type(optimizer).__name__)
    make: Any = optimizer
    return Chosen(name=f"optimizer {name}", kind=None, rate=rate or _FIRST_ADAM, make=make)


_RULE = f"one of {', '.join(NAMES)}, an optimizer of torch or its class, or a function of parameters and rate"


def with_schedule(chosen: Chosen, scheduler: Any, clip: float | None, steps: int) -> Chosen:
    """Return the optimizer with a scheduler and clipping; it was not tested with these on held-out networks.

    Parameters
    ----------
    chosen
        Optimizer.
    scheduler
        Scheduler of torch that steps after each training step, or a function of an optimizer to one; or None. Only its
        ratios to the given learning rate are taken (for OneCycleLR, to the largest rate).
    clip
        Largest norm of the gradient, positive; or None.
    steps
        Number of steps that the scheduler is asked for.

    Raises
    ------
    ValueError
        If it is no scheduler, needs a metric or ends before so many steps; or `clip` is not positive.

    Examples
    --------
    >>> warm_up = lambda optimizer: LambdaLR(optimizer, lambda step: min(1, (step + 1) / 4))
    >>> found = with_schedule(chosen_optimizer("sgd"), warm_up, None, steps=6)
    >>> made = found.make([nn.Parameter(torch.ones(1))], 0.8)
    >>> schedule = found.schedule(made)
    >>> made.param_groups[0]["lr"]
    0.2
    """
    if clip is not None and not clip > 0:
        raise ValueError(f"clip must be positive, got {clip}")
    if clip is not None:
        chosen = replace(chosen, name=f"{chosen.name}, clipped at {clip:g}", kind=None, clip=clip)
    if scheduler is None:
        return chosen
    ratios = _ratios(scheduler, steps)

    def schedule(optimizer: Optimizer) -> LambdaLR:
        return LambdaLR(optimizer, lambda step: ratios[min(step, steps)])

    name = getattr(scheduler, "__name__", type(scheduler).__name__)
    return replace(chosen, name=f"{chosen.name}, scheduler {name}", kind=None, schedule=schedule)


def _ratios(scheduler: Any, steps: int) -> list[float]:
    """Return the learning rate before and after each step, over the given one."""
    given = scheduler.optimizer.param_groups if isinstance(scheduler, LRScheduler) else [{}]
    groups = [{**group, "params": [nn.Parameter(torch.zeros(1))]} for group in given]
    optimizer = SGD(groups, lr=1.0)  # stands in for the user's, which is not stepped
    stepped: Any
    if isinstance(scheduler, LRScheduler):
        stepped = copy.deepcopy(scheduler, {id(scheduler.optimizer): optimizer})
    elif callable(scheduler):
        stepped = scheduler(optimizer)
    else:
        raise ValueError(
            f"scheduler must be a scheduler of torch or a function of an optimizer to one, got {scheduler!r}"
        )
    if isinstance(stepped, ReduceLROnPlateau):
        raise ValueError("scheduler must not need a metric, got ReduceLROnPlateau")
    found = list[float]()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch takes the stand-in for an optimizer that was changed
            for step in range(steps + 1):
                if step:
                    optimizer.step()
                    stepped.step()
                ratios = [g["lr"] / (g.get("max_lr") or g["initial_lr"]) for g in optimizer.param_groups]
                found.append(ratios[0])
                if not all(math.isclose(ratio, ratios[0]) for ratio in ratios):
                    raise ValueError("it changes the ratios between the rates of parameter groups")
    except (AttributeError, ValueError, ZeroDivisionError) as error:
        raise ValueError(f"scheduler cannot take {steps} steps of a trial run: {error}") from error
    return found


def _named(name: str, momentum: float | None, weight_decay: float | None, rate: float | None) -> Chosen:
    kinds = {"sgd": SGD, "momentum": SGD, "adam": Adam, "adamw": AdamW}
    if name not in kinds:
        raise ValueError(f"optimizer must be {_RULE}, got {name!r}{did_you_mean(name, NAMES)}")
    if momentum is not None and kinds[name] is not SGD:
        raise ValueError(f"{name} takes no momentum, got {momentum}; leave it out")
    usual = _MOMENTUM if name == "momentum" else None
    given = {"momentum": usual if momentum is None else momentum, "weight_decay": weight_decay}
    return _of_class(kinds[name], {k: value for k, value in given.items() if value is not None}, rate)


def _of_class(kind: type[Optimizer], settings: Mapping[str, Any], rate: float | None) -> Chosen:
    build: Any = kind
    # the settings that a class has by default show in an optimizer alone
    defaults = (
        build([nn.Parameter()], lr=1.0, **settings).defaults if kind in _HELD_OUT_SETTINGS else settings
    )
    return Chosen(
        name=_words(kind, defaults),
        kind=_held_out_kind(kind, defaults),
        rate=rate or _first(kind, defaults),
        make=lambda parameters, lr: build(parameters, lr=lr, **settings),
    )


def _in_use(optimizer: Optimizer, rate: float | None, places: Mapping[int, int]) -> Chosen:
    kind, held = type(optimizer), {id(p) for group in optimizer.param_groups for p in group["params"]}
    # of a model that was copied, both the copy's and the user's parameters have a place
    count, missing = (
        len(set(places.values())),
        set(places.values()) - {places[key] for key in held & set(places)},
    )
    if count == len(missing):
        raise ValueError("optimizer holds no parameters of the model; build it from model.parameters()")
    if missing:
        raise ValueError(
            f"optimizer holds {count - len(missing)} of the {count} measured parameters; list those that it"
            " moves in parameters="
        )
    groups = [g for g in optimizer.param_groups if any(id(p) in places for p in g["params"])]
    # a scheduler changes "lr" and keeps the rate that the user gave
    rates = [float(group.get("max_lr") or group.get("initial_lr", group["lr"])) for group in groups]
    lead = next((each for each in rates if each > 0), rate)
    if lead is None:
        raise ValueError("optimizer must have a positive learning rate, got 0; give rate=")
    ratios = [each / lead if any(rates) else 1.0 for each in rates]

    def make(parameters: Sequence[nn.Parameter], lr: float) -> Optimizer:
        memo = {id(p): p for group in optimizer.param_groups for p in group["params"]}
        memo |= {key: parameters[place] for key, place in places.items()}
        # a scheduler binds step to the user's optimizer; torch's own copying would lose attributes of other classes
        own = {name: value for name, value in vars(optimizer).items() if name != "step"}
        made = object.__new__(kind)
        made.__dict__.update(copy.deepcopy(own, {**memo}))
        trained = {id(p) for p in parameters}
        for group in made.param_groups:
            group["params"] = [p for p in group["params"] if id(p) in trained]
            group.pop("initial_lr", None)
        made.param_groups[:] = [group for group in made.param_groups if group["params"]]
        for group, ratio in zip(made.param_groups, ratios, strict=True):
            group["lr"] = lr * ratio
        return made

    settings = [{k: v for k, v in group.items() if k not in _CHANGED} for group in groups]
    one = all(each == settings[0] for each in settings) and len(set(ratios)) == 1
    return Chosen(
        name=_words(kind, groups[0]) + ("" if one else f", {len(groups)} groups of parameters"),
        kind=_held_out_kind(kind, groups[0]) if one else None,
        rate=rate or lead,
        make=make,
    )


_CHANGED = ("params", "lr", "initial_lr")


def _first(kind: type[Optimizer], settings: Mapping[str, Any]) -> float:
    return round(_FIRST_SGD * (1 - settings.get("momentum", 0.0)), 9) if kind is SGD else _FIRST_ADAM


def _held_out_kind(kind: type[Optimizer], settings: Mapping[str, Any]) -> str | None:
    """Return the name under which an optimizer was tested on the held-out networks; None with other settings."""
    tested = _HELD_OUT_SETTINGS.get(kind, {"": None}) | {"maximize": False}
    if any(settings.get(name) != value for name, value in tested.items()):
        return None
    return {0.0: "sgd", _MOMENTUM: "momentum", None: kind.__name__.lower()}.get(settings.get("momentum"))


def _words(kind: type[Optimizer], settings: Mapping[str, Any]) -> str:
    said = {name: settings.get(name) for name in ("momentum", "weight_decay")}
    numbers = [f"{name.replace('_', ' ')} {value:g}" for name, value in said.items() if value]
    return ", ".join([kind.__name__, *numbers])
