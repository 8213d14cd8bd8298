"""Calling conventions of models: from inputs to the arguments of a model, and from its outputs to those of a loss.

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

A causal language model predicts at each position the label of the next one, and its own loss shifts the labels. Here
the loss is a function of outputs and targets, so the labels are shifted instead: by one position to the left, with an
ignored label at the end. To tell whether a model shifts labels, it is called with the labels of one sample, and its own
loss is compared with the cross-entropy of its logits with shifted and with unshifted labels. If no label of the first
batch after the first position counts, the two cannot be told apart, and artificial labels are used. The answer holds
for all batches, so one in which only the first label counts adds nothing once labels are shifted.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from simulate.objectives.batches import window
from simulate.objectives.derivatives import normal
from simulate.objectives.losses import IGNORED, of_classes
from simulate.objectives.restoring import preserve_state

LOGITS = "logits"
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Form(NamedTuple):
    """Choice of the output tensor that the loss takes, and its axes.

    Attributes
    ----------
    field
        Name or number of the tensor; `logits` or the only one if None.
    last
        Whether its last axis is that of the classes, which is then moved to axis 1.

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
        """Call a model by `call` and return the tensor that the loss takes.

        Raises
        ------
        ValueError
            As `arguments` and `picked`.
        """
        args, keywords = arguments(model, inputs)
        return self.read(call(*args, **keywords))

    def read(self, found: Any) -> Tensor:
        """Return the tensor that the loss takes of what a model returned, with the classes along axis 1."""
        return self.turned(picked(found, self.field))

    def turned(self, outputs: Tensor) -> Tensor:
        """Return an output tensor with the classes along axis 1."""
        return outputs.movedim(-1, 1) if self.last and outputs.ndim > 2 else outputs


def arguments(model: nn.Module, inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return inputs as positional and keyword arguments of `forward`.

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
    ValueError: inputs must be the arguments of forward, input1, input2, got third too and no input2; leave out ...
    """
    if not isinstance(inputs, Mapping):
        return (inputs if isinstance(inputs, tuple) else (inputs,)), {}
    by_name = dict(inputs)
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):  # written in C, say: a wrong call fails by itself
        return (), by_name
    own = [p for p in parameters if p.kind in _NAMED]
    needed = [p for p in parameters if p.kind in (*_NAMED, *_PLACED) and p.default is p.empty]
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
    unknown = [] if anything else [name for name in by_name if name not in [p.name for p in own]]
    missing = [p.name for p in needed if p.name not in by_name or p.kind is p.POSITIONAL_ONLY]
    if not unknown and not missing:
        return (), by_name
    takes_one = any(p.kind in _PLACED or p.kind is p.VAR_POSITIONAL for p in parameters)
    if takes_one and len(needed) <= 1 and not any(p.name in by_name for p in own):
        return (by_name,), {}
    got = [f"{', '.join(map(str, unknown))} too"] if unknown else []
    got = " and ".join([*got, f"no {', '.join(missing)}"] if missing else got)
    takes = ", ".join(p.name for p in parameters if p.kind in (*_NAMED, *_PLACED))
    raise ValueError(
        f"inputs must be the arguments of forward, {takes}, got {got}; leave out or add what differs, or wrap the model"
    )


def picked(found: Any, field: str | int | None = None) -> Tensor:
    """Return the tensor that the loss takes of what a model returned.

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
    held = {name: part for name, part in returned_parts(found).items() if isinstance(part, Tensor)}
    if field is not None:
        if field not in held:
            raise ValueError(
                f"field {field!r} not found: the model returns {_list_tensors(found, held)}; change field or omit it"
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
        f"model must return one tensor, or one as {LOGITS}, got {_list_tensors(found, held)}; say which by field"
    )


def _list_tensors(found: Any, held: Mapping[Any, Tensor]) -> str:
    if isinstance(found, Tensor):
        return "a single tensor"
    return f"{type(found).__name__} of {', '.join(map(str, held)) or 'no tensors'}"


def returned_parts(found: Any) -> dict[Any, Any]:
    """Return the outputs of a model by name or number; empty if it returned a tensor."""
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
    """Call a model on one sample to find the axis of the classes, if the targets leave it open.

    Parameters
    ----------
    call
        Returns the outputs of the model for inputs.
    inputs, targets
        One sample, or a batch that cannot be cut.
    loss
        Only losses of classes have an axis of classes.
    field
        As in `Form`.
    """
    form = Form(field)
    if not of_classes(loss) or not _many_classes(targets):
        return form
    with (
        torch.no_grad(),
        suppress(Exception),
    ):  # an error of user code is raised again where the model is used
        found = call(inputs)
        return form._replace(last=classes_last(found, form.read(found), targets))
    return form


def _many_classes(targets: Any) -> bool:
    """Return whether targets are whole numbers, several for each sample."""
    return isinstance(targets, Tensor) and not targets.is_floating_point() and targets.ndim > 1


def classes_last(found: Any, outputs: Tensor, targets: Any) -> bool:
    """Return whether targets (N, ...) are classes along the last axis of outputs (N, ..., V), not along axis 1.

    Parameters
    ----------
    found
        What the model returned. If both are possible, as for (N, T, T), a bare tensor is taken in torch's order, and a
        field of a larger structure in that of language models.
    outputs
        The tensor of it that the loss takes.
    targets
        Targets of the same samples.

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


# --- labels that come with the inputs in one mapping, as a batch of transformers -------------------------------

Call = Callable[[Sequence[Tensor], Any], Any]

_DISTANCE = 0.05
"""Relative distance from the parameters at which losses are compared: with all logits zero, both would agree."""

_CLOSE = 1e-3
"""Largest relative difference of two losses that count as equal: rounding of single precision in another order."""

_CLOSER = 0.1
"""If both losses count as equal, the closer one is taken if its distance is at most this share of their gap."""

_SAME = 1e-6
"""Relative gap of two losses below which rounding decides which is closer."""


class Labels:
    """Splits mappings with labels into inputs and targets, for one model with its loss.

    Attributes
    ----------
    shifted
        Whether labels are shifted by one position; None until a batch has labels to shift.
    """

    def __init__(self, model: nn.Module | None, loss: Any, field: str | int | None = None) -> None:
        self._model, self._loss, self._form = model, loss, Form(field)
        self.shifted: bool | None = None

    def parted(
        self, inputs: Mapping[str, Any], labels: Any, call: Call, leaves: Sequence[Tensor]
    ) -> tuple[dict[str, Any], Any]:
        """Return inputs of the model and targets of the loss; `call` runs the model at some parameters.

        Raises
        ------
        ValueError
            If the model's own loss is no cross-entropy of its logits with the labels, moved or not, it moves them
            and the loss is no cross-entropy, or it takes labels and fails with them.
        """
        inputs = dict(inputs)
        # an encoder-decoder model makes these from the labels if it gets them
        started = getattr(self._model, "prepare_decoder_input_ids_from_labels", None)
        if started is not None and not any(name.startswith("decoder_input") for name in inputs):
            inputs["decoder_input_ids"] = started(labels)
        classes = isinstance(labels, Tensor) and not labels.is_floating_point()
        if not (classes and labels.ndim == 2 and len(labels)):  # one for each position of a sequence
            return inputs, labels
        if self.shifted is None:
            self.shifted = self.moves(inputs, labels, call, leaves)
        if not self.shifted:
            return inputs, labels
        if not of_classes(self._loss):
            name = getattr(self._loss, "__name__", type(self._loss).__name__)
            raise ValueError(
                f"loss must be a cross-entropy of torch where the model moves labels by one position, got {name};"
                " give pairs (inputs, targets), moved"
            )
        return inputs, _shift_left(labels, getattr(self._loss, "ignore_index", IGNORED))

    def moves(self, inputs: dict[str, Any], labels: Tensor, call: Call, leaves: Sequence[Tensor]) -> bool:
        """Return whether the model shifts labels (N, T); False if they are not one for each position.

        Raises
        ------
        ValueError
            If the model's own loss is no cross-entropy of its logits with them, or it takes labels and fails with them.
        """
        predicted = (labels[:, 1:] != IGNORED).any(1).nonzero()
        place = int(predicted[0]) if len(predicted) else 0
        one = slice(place, place + 1)
        inputs, labels = window(inputs, one), labels[one]
        away = list[Tensor]()
        for p in leaves:
            size = float(p.detach().square().mean().sqrt()) or 1.0  # typical entry, or 1 if all are zero
            away.append(p.detach() + _DISTANCE * size * normal(p, seed=1))
        with preserve_state(self._model, training=False), torch.no_grad():
            logits = self._form.read(call(away, inputs))
            if logits.shape[:-1] != labels.shape:
                return False
            if not len(predicted):
                labels = torch.arange(labels.numel(), device=labels.device).view_as(labels) % logits.shape[-1]
            own = self._own_loss(call, away, {**inputs, "labels": labels})
            if own is None:
                return False
            flat = logits.flatten(0, 1).float()
            both = (_shift_left(labels, IGNORED).flatten(), labels.flatten())
            losses = [float(functional.cross_entropy(flat, each, ignore_index=IGNORED)) for each in both]
        found = _matching_losses(own, losses)
        if sum(found) != 1:
            raise ValueError(
                "the model's own loss must be the cross-entropy of its logits with the labels either shifted by one"
                f" position or unshifted, got {'both' if found[0] else 'neither'}: {own:.6g};"
                " give pairs (inputs, targets)"
            )
        return found[0]

    def _own_loss(self, call: Call, leaves: Sequence[Tensor], given: dict[str, Any]) -> float | None:
        """Return the model's own loss; None if it takes no labels or returns no loss."""
        if self._model is not None:
            try:
                arguments(self._model, given)
            except ValueError:  # its forward has no such name
                return None
        try:
            found = call(leaves, given)
        except Exception as error:
            # a part that the model passes its keywords to may not take labels
            if isinstance(error, TypeError) and "unexpected keyword argument 'labels'" in str(error):
                return None
            raise ValueError(
                f"model must give its own loss with labels among its inputs, got {type(error).__name__}: {error};"
                " give pairs (inputs, targets)"
            ) from error
        loss = found.get("loss") if isinstance(found, Mapping) else getattr(found, "loss", None)
        return float(loss) if isinstance(loss, Tensor) and loss.numel() == 1 else None


def _shift_left(labels: Tensor, ignored: int) -> Tensor:
    """Shift labels by one position to the left.

    Examples
    --------
    >>> _shift_left(torch.tensor([[1, 2, 3]]), -100)
    tensor([[   2,    3, -100]])
    """
    return functional.pad(labels[:, 1:], (0, 1), value=ignored)


def _matching_losses(own: float, losses: Sequence[float]) -> list[bool]:
    """Return which of two losses equal a model's own; if they hardly differ, as in a fresh network, the closer one.

    A mean over no positions is NaN, as with a single label that is shifted away.

    Examples
    --------
    >>> [_matching_losses(4.0, pair) for pair in ([4.0, 5.0], [4.001, 4.0], [4.0, 4.0], [5.0, 6.0])]
    [[True, False], [False, True], [True, True], [False, False]]
    >>> _matching_losses(math.nan, [math.nan, 4.0])
    [True, False]
    """
    if math.isnan(own):
        return [math.isnan(loss) for loss in losses]
    apart = _CLOSER * abs(losses[0] - losses[1])
    close = [abs(own - loss) <= _CLOSE * abs(own) for loss in losses]
    return [abs(own - loss) <= apart for loss in losses] if all(close) and apart > _SAME * abs(own) else close
