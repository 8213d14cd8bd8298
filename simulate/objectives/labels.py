"""Labels that come with the inputs in one mapping, as a batch of transformers: what of them the loss is taken of.

A causal language model predicts at each position the label of the next one, and its own loss moves the labels. Here
the loss is a function of outputs and targets, so that the labels are moved instead: by one position to the left, with
what the loss ignores at the end. Whether a model does so is asked of itself: it is called with the labels of one
sample, and its own loss compared with the cross-entropy of its logits with the labels moved and as they stand. Where
the first batch keeps no label after the first position, which both ways treat alike or one of them ignores, it is asked
with labels of our own: all batches are treated the same, so that of one whose labels are moved nothing is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from simulate.objectives.batches import window
from simulate.objectives.derivatives import normal
from simulate.objectives.forms import Form, arguments
from simulate.objectives.losses import IGNORED, of_classes
from simulate.objectives.restoring import as_found

__all__ = ["Labels", "movable"]

Call = Callable[[Sequence[Tensor], Any], Any]

_AWAY = 0.05
"""How far from the parameters a model is asked, as a share of them: where all logits are zero, both losses agree."""

_CLOSE = 1e-3
"""Relative difference of two losses that are the same, in single precision and a sum in another order."""

_CLOSER = 0.1
"""Of two that are the same within this, the one that is closer by this factor."""

_SAME = 1e-6
"""Relative difference of two losses below which rounding decides which is closer."""


class Labels:
    """Inputs and targets of a mapping with labels, for one model with its loss.

    Attributes
    ----------
    shifted
        Whether labels are moved by one position; None as long as there were none to move.
    """

    def __init__(self, model: nn.Module | None, loss: Any, field: str | int | None = None) -> None:
        self._model, self._loss, self._form = model, loss, Form(field)
        self.shifted: bool | None = None

    def parted(
        self, inputs: Mapping[str, Any], labels: Any, call: Call, leaves: Sequence[Tensor]
    ) -> tuple[dict[str, Any], Any]:
        """What the model and the loss get; `call` gives what the model returns at some parameters for inputs.

        Raises
        ------
        ValueError
            If the model's own loss is no cross-entropy of its logits with the labels, moved or not, it moves them
            and the loss is no cross-entropy, or it takes labels and fails with them.
        """
        inputs = self._completed(dict(inputs), labels)
        if not movable(labels):
            return inputs, labels
        if self.shifted is None:
            self.shifted = self.moves(inputs, labels, call, leaves)
        return inputs, _moved(labels, self._ignored()) if self.shifted else labels

    def _completed(self, inputs: dict[str, Any], labels: Any) -> dict[str, Any]:
        """What an encoder and decoder makes of the labels if it is given them."""
        started = getattr(self._model, "prepare_decoder_input_ids_from_labels", None)
        if started is not None and not any(name.startswith("decoder_input") for name in inputs):
            inputs["decoder_input_ids"] = started(labels)
        return inputs

    def _ignored(self) -> int:
        if not of_classes(self._loss):
            raise ValueError(
                f"loss must be a cross-entropy of torch where the model moves labels by one position, got"
                f" {getattr(self._loss, '__name__', type(self._loss).__name__)}; give pairs (inputs, targets), moved"
            )
        return getattr(self._loss, "ignore_index", IGNORED)

    def moves(self, inputs: dict[str, Any], labels: Tensor, call: Call, leaves: Sequence[Tensor]) -> bool:
        """Whether the model moves labels (N, T); False if they are not those of its positions.

        Raises
        ------
        ValueError
            If the model's own loss is no cross-entropy of its logits with them, or it takes labels and fails with them.
        """
        kept = (labels[:, 1:] != IGNORED).any(1).nonzero()
        place = int(kept[0]) if len(kept) else 0
        one = slice(place, place + 1)
        inputs, labels = window(inputs, one), labels[one]
        away = [p.detach() + _AWAY * _size(p) * normal(p, seed=1) for p in leaves]
        with as_found(self._model, training=False), torch.no_grad():
            logits = self._form.read(call(away, inputs))
            if logits.shape[:-1] != labels.shape:
                return False
            if not len(kept):
                labels = torch.arange(labels.numel(), device=labels.device).view_as(labels) % logits.shape[-1]
            own = self._own_loss(call, away, {**inputs, "labels": labels})
            if own is None:
                return False
            losses = [_cross_entropy(logits, each) for each in (_moved(labels, IGNORED), labels)]
        found = _fitting(own, losses)
        if sum(found) != 1:
            raise ValueError(
                "labels must be those of a model whose own loss is the cross-entropy of its logits with them, moved"
                f" by one position or as they stand, got {'both' if found[0] else 'neither'}: {own:.6g};"
                " give pairs (inputs, targets) as the loss takes them"
            )
        return found[0]

    def _own_loss(self, call: Call, leaves: Sequence[Tensor], given: dict[str, Any]) -> float | None:
        """None of a model that takes no labels, or gives no loss for them."""
        if self._model is not None:
            try:
                arguments(self._model, given)
            except ValueError:  # its forward has no such name
                return None
        try:
            found = call(leaves, given)
        except Exception as error:  # code of others
            if isinstance(error, TypeError) and _UNKNOWN in str(error):  # of a part that it hands them on to
                return None
            raise ValueError(
                f"model must give its own loss with labels among its inputs, got {type(error).__name__}: {error};"
                " give pairs (inputs, targets) as the loss takes them"
            ) from error
        loss = found.get("loss") if isinstance(found, Mapping) else getattr(found, "loss", None)
        return float(loss) if isinstance(loss, Tensor) and loss.numel() == 1 else None


_UNKNOWN = "unexpected keyword argument 'labels'"


def _size(parameter: Tensor) -> float:
    """Typical entry, and 1 of one that is zero."""
    return float(parameter.detach().square().mean().sqrt()) or 1.0


def movable(labels: Any) -> bool:
    """Whether they are whole numbers (N, T), one of each position of a sequence."""
    return (
        isinstance(labels, Tensor)
        and labels.ndim == 2
        and not labels.is_floating_point()
        and bool(len(labels))
    )


def _moved(labels: Tensor, ignored: int) -> Tensor:
    """One position to the left.

    Examples
    --------
    >>> _moved(torch.tensor([[1, 2, 3]]), -100)
    tensor([[   2,    3, -100]])
    """
    return functional.pad(labels[:, 1:], (0, 1), value=ignored)


def _cross_entropy(logits: Tensor, labels: Tensor) -> float:
    return float(
        functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED)
    )


def _fitting(own: float, losses: Sequence[float]) -> list[bool]:
    """Which of two losses are a model's own: of two that hardly differ, as in a fresh network, the much closer one.

    The mean over nothing is no number, as of a single position that is moved away.

    Examples
    --------
    >>> _fitting(4.0, [4.0, 5.0]), _fitting(4.0, [4.001, 4.0]), _fitting(4.0, [4.0, 4.0]), _fitting(4.0, [5.0, 6.0])
    ([True, False], [False, True], [True, True], [False, False])
    >>> _fitting(math.nan, [math.nan, 4.0])
    [True, False]
    """
    if math.isnan(own):
        return [math.isnan(loss) for loss in losses]
    apart = _CLOSER * abs(losses[0] - losses[1])
    close = [abs(own - loss) <= _CLOSE * abs(own) for loss in losses]
    return [abs(own - loss) <= apart for loss in losses] if all(close) and apart > _SAME * abs(own) else close
