"""How inputs go into a model, and which tensor of what comes out the loss takes.

| inputs | given to `forward` as |
|---|---|
| a mapping whose names it takes | keywords |
| another mapping, if it takes one argument | that argument |
| a tuple | positional arguments |
| anything else | the first argument |

| outputs | taken |
|---|---|
| a tensor | as it is |
| a mapping, dataclass or tuple | the tensor under the name or number asked for, else `logits`, else the only tensor |

Language models give logits (N, T, V) for targets (N, T), where losses of torch want (N, V, T): see `classes_last`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from simulate.objectives.losses import of_classes

__all__ = ["Form", "arguments", "asked_form", "classes_last", "picked", "returned_parts"]

LOGITS = "logits"
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Form(NamedTuple):
    """What the loss takes of a model.

    Attributes
    ----------
    field
        Name or number of the tensor; `logits` or the only one if None.
    last
        Whether classes lie along the last axis of it, and are moved to axis 1.

    Examples
    --------
    >>> import torch
    >>> head = nn.Linear(3, 7)
    >>> tuple(Form(last=True).outputs(head, head, torch.ones(2, 5, 3)).shape)
    (2, 7, 5)
    """

    field: str | int | None = None
    last: bool = False

    def outputs(self, model: nn.Module, call: Callable[..., Any], inputs: Any) -> Tensor:
        """Those that the loss takes, of a model that is called by `call`.

        Raises
        ------
        ValueError
            As `arguments` and `picked`.
        """
        args, keywords = arguments(model, inputs)
        return self.read(call(*args, **keywords))

    def read(self, found: Any) -> Tensor:
        """The tensor of what a model has returned, with the classes along axis 1."""
        return self.turned(picked(found, self.field))

    def turned(self, outputs: Tensor) -> Tensor:
        """The tensor that the loss takes with the classes along axis 1."""
        return outputs.movedim(-1, 1) if self.last and outputs.ndim > 2 else outputs


def arguments(model: nn.Module, inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Inputs as the arguments of `forward`, by place and by name.

    Raises
    ------
    ValueError
        If they are a mapping that `forward` takes neither by its names nor as a whole.

    Examples
    --------
    >>> arguments(nn.Identity(), {"input": 1})
    ((), {'input': 1})
    >>> arguments(nn.Identity(), {"left": 1, "right": 2})
    (({'left': 1, 'right': 2},), {})
    >>> arguments(nn.Bilinear(1, 1, 1), {"input1": 1, "third": 2})
    Traceback (most recent call last):
    ValueError: inputs must be what forward takes, input1, input2, got third too and no input2; leave out ...
    """
    if not isinstance(inputs, Mapping):
        return (inputs if isinstance(inputs, tuple) else (inputs,)), {}
    given = dict(inputs)
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):  # written in C, say: the call will tell
        return (), given
    own = [p for p in parameters if p.kind in _NAMED]
    needed = [p for p in parameters if p.kind in (*_NAMED, *_PLACED) and p.default is p.empty]
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
    unknown = [] if anything else [name for name in given if name not in [p.name for p in own]]
    missing = [p.name for p in needed if p.name not in given or p.kind is p.POSITIONAL_ONLY]
    if not unknown and not missing:
        return (), given
    if len(needed) <= 1 and not any(p.name in given for p in own) and _takes_one(parameters):
        return (given,), {}
    got = " and ".join(
        part
        for part in (
            f"{', '.join(map(str, unknown))} too" if unknown else "",
            f"no {', '.join(missing)}" if missing else "",
        )
        if part
    )
    takes = ", ".join(p.name for p in parameters if p.kind in (*_NAMED, *_PLACED))
    raise ValueError(
        f"inputs must be what forward takes, {takes}, got {got}; leave out or add what differs, or wrap the model"
    )


def _takes_one(parameters: list[inspect.Parameter]) -> bool:
    return any(p.kind in _PLACED or p.kind is p.VAR_POSITIONAL for p in parameters)


def picked(found: Any, field: str | int | None = None) -> Tensor:
    """The tensor that the loss takes of what a model returned.

    Raises
    ------
    ValueError
        If it has none under this name, or several and nothing tells which.

    Examples
    --------
    >>> import torch
    >>> picked({"logits": torch.ones(1), "hidden": torch.zeros(1)}), picked((torch.ones(1), None))
    (tensor([1.]), tensor([1.]))
    >>> picked((torch.ones(1), torch.zeros(1)), 1)
    tensor([0.])
    >>> picked((torch.ones(1), torch.zeros(1)))
    Traceback (most recent call last):
    ValueError: model must return one tensor, or one as logits, got tuple of 0, 1; say which by field
    """
    if isinstance(found, Tensor) and field is None:
        return found
    parts = returned_parts(found)
    held = {name: part for name, part in parts.items() if isinstance(part, Tensor)}
    if field is not None:
        if field not in held:
            raise ValueError(
                f"field must name a tensor that the model returns, {_told(found, held)}, got {field!r}"
            )
        return held[field]
    if LOGITS in held:
        return held[LOGITS]
    if len(held) == 1:
        return next(iter(held.values()))
    if not held:
        raise ValueError(
            f"model must return one tensor, got {type(found).__name__}; wrap it in a function that picks one"
        )
    raise ValueError(
        f"model must return one tensor, or one as {LOGITS}, got {_told(found, held)}; say which by field"
    )


def _told(found: Any, held: Mapping[Any, Tensor]) -> str:
    return f"{type(found).__name__} of {', '.join(map(str, held)) or 'none'}"


def returned_parts(found: Any) -> dict[Any, Any]:
    """Outputs of a model that returns several, by name or number; none of one that returns a tensor."""
    if isinstance(found, Mapping):
        return dict(found)
    if dataclasses.is_dataclass(found):
        return {f.name: getattr(found, f.name) for f in dataclasses.fields(found)}
    names: Any = getattr(found, "_fields", None)
    if names is not None:
        return dict(zip(names, found, strict=True))
    return dict(enumerate(found)) if isinstance(found, tuple | list) else {}


def asked_form(
    call: Callable[[Any], Any], inputs: Any, targets: Any, *, loss: Any, field: str | int | None = None
) -> Form:
    """Where the classes lie, by what a model returns for a sample: asked only where they may lie elsewhere.

    Parameters
    ----------
    call
        Gives what the model returns for inputs.
    inputs, targets
        Of one sample, or of a batch that cannot be cut.
    loss
        Only those of classes know of an axis for them.
    field
        As in `Form`.
    """
    form = Form(field)
    if not of_classes(loss) or not _many_classes(targets):
        return form
    with torch.no_grad(), suppress(Exception):  # whatever code of others raises shows where it is used
        found = call(inputs)
        return form._replace(last=classes_last(found, form.read(found), targets))
    return form


def _many_classes(targets: Any) -> bool:
    """Whether they are whole numbers, several for each sample."""
    return isinstance(targets, Tensor) and not targets.is_floating_point() and targets.ndim > 1


def classes_last(found: Any, outputs: Tensor, targets: Any) -> bool:
    """Whether whole numbers (N, ...) are classes along the last axis of outputs (N, ..., V), not along axis 1.

    Parameters
    ----------
    found
        What the model returned. If both are possible, as for (N, T, T), a tensor is taken as losses of torch want it,
        and a field of something larger as language models give it.
    outputs
        The tensor that the loss takes of it.
    targets
        Of the same samples.

    Examples
    --------
    >>> import torch
    >>> targets, by_axis, by_last = torch.zeros(2, 5).long(), torch.zeros(2, 7, 5), torch.zeros(2, 5, 7)
    >>> [classes_last(z, z, targets) for z in (by_axis, by_last)]
    [False, True]
    """
    if outputs.ndim < 3 or not _many_classes(targets):
        return False
    by_axis = (*outputs.shape[:1], *outputs.shape[2:]) == tuple(targets.shape)
    return outputs.shape[:-1] == targets.shape and not (by_axis and isinstance(found, Tensor))
