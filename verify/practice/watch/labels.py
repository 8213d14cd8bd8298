"""LabelledPairs of a training loop whose targets are labels that the model itself moves by one position.

A causal language model of transformers predicts the next token, and its own loss moves the labels. In a mapping with
labels an objective does so too, see `simulate.objectives.forms`. In a pair (inputs, targets) the labels may have been
moved already: the token ids among the inputs tell.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from simulate.objectives.batches import tensors
from simulate.objectives.forms import Labels, movable, picked
from simulate.objectives.losses import IGNORED, of_classes
from simulate.objectives.parameters import parametric
from simulate.objectives.restoring import preserve_state

_CLOSE = 1e-3
"""Relative difference of two losses that are the same."""


class LabelledPairs:
    """LabelledPairs for one model with its loss.

    Parameters
    ----------
    called
        The model with what is picked of its outputs.
    model
        The model itself, whose `forward` names the inputs.
    loss
        Of outputs and targets.
    """

    def __init__(self, called: nn.Module, model: nn.Module, loss: Callable[[Any, Any], Tensor]) -> None:
        self._called, self._model, self._loss = called, model, loss
        self._answer: bool | None = None

    def batch(self, inputs: Any, targets: Any) -> Any:
        """Return the pair, or a mapping with labels if the model moves them and the pair holds them as it takes them.

        Raises
        ------
        ValueError
            If the model moves labels, and nothing tells whether these were moved; or they were not and the loss is
            another than the model's own.
        """
        named = self._by_name(inputs)
        if named is None or not movable(targets):
            return inputs, targets
        in_place = _are_tokens(named, targets, 0)
        if not in_place and _are_tokens(named, targets, 1):  # moved already
            return inputs, targets
        if not self._moves(named, targets, in_place):
            return inputs, targets
        if in_place and of_classes(self._loss):
            return {**named, "labels": targets}
        raise ValueError(
            "this model shifts labels by one position itself and the loss does not, so they cannot be targets; pass"
            " a torch cross-entropy and the whole batch with its labels"
        )

    def _moves(self, named: dict[str, Any], targets: Tensor, in_place: bool) -> bool:
        """Whether the model moves labels and the loss does not, asked once."""
        if self._answer is None:
            if not all(bool(p.isfinite().all()) for p in self._called.parameters()):
                return False  # nothing will be measured
            function = parametric(self._called)
            labels = Labels(self._called, self._loss)
            try:
                moves = labels.moves(named, targets, function.call, function.parameters)
            except ValueError:
                if in_place:
                    raise
                # the targets are no labels of this model, and the loss is the one that was given
                return False
            self._answer = moves and not self._is_own_loss(named, targets)
        return self._answer

    def _by_name(self, inputs: Any) -> dict[str, Any] | None:
        """Return the inputs by their names in `forward`, or None if it has no names for them."""
        if isinstance(inputs, Mapping):
            return dict(inputs)
        try:
            signature = inspect.signature(self._model.forward)
            found = signature.bind_partial(*(inputs if isinstance(inputs, tuple) else (inputs,))).arguments
        except (TypeError, ValueError):  # written in C, or too many: the call will tell
            return None
        several = inspect.Parameter.VAR_POSITIONAL
        return None if any(signature.parameters[name].kind is several for name in found) else dict(found)

    def _is_own_loss(self, named: dict[str, Any], targets: Tensor) -> bool:
        """Return whether the given loss shifts the labels, as the loss of the model does."""
        if of_classes(self._loss):
            return False
        with preserve_state(self._called, training=False), torch.no_grad():
            own = picked(self._called(**named, labels=targets), "loss")
            given = self._loss(picked(self._called(**named)), targets)
        return (
            isinstance(given, Tensor)
            and given.numel() == 1
            and bool(abs(given.reshape(()) - own.reshape(())) <= _CLOSE * abs(own.reshape(())))
        )


def _are_tokens(named: Mapping[str, Any], targets: Tensor, ahead: int) -> bool:
    """Return whether all targets that are not ignored are the tokens `ahead` positions later.

    Examples
    --------
    >>> tokens = {"input_ids": torch.tensor([[4, 5, 6]])}
    >>> _are_tokens(tokens, torch.tensor([[4, -100, 6]]), 0), _are_tokens(tokens, torch.tensor([[5, 6, 7]]), 1)
    (True, True)
    """
    compared = targets[:, : targets.shape[1] - ahead]
    kept = compared != IGNORED
    return any(
        ids.shape == targets.shape
        and not ids.is_floating_point()
        and bool((ids[:, ahead:] == compared)[kept].all())
        for ids in tensors(dict(named))
    )
