"""Checkpoints: parameters and buffers by name, read without running what else a file may hold."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from verify.practice.foreign import called

__all__ = ["restore"]

_SHOWN = 4
"""Names in a message."""

_KEYS = ("state_dict", "model")
"""Under which a checkpoint may hold its state_dict."""

_WRAPPERS = ("module.", "_orig_mod.")
"""Before every name of a model that was trained in parallel, or compiled."""


def restore(net: nn.Module, path: str) -> None:
    """Load the parameters and buffers of a checkpoint, all of them, by name."""
    state = _state(path)
    for prefix in _WRAPPERS:
        if state and all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): value for name, value in state.items()}
    own = net.state_dict()
    missing = [name for name in own if name not in state]
    unexpected = [name for name in state if name not in own]
    if missing or unexpected:
        got = [
            f"{word} {_few(names)}"
            for word, names in (("none of", missing), ("too much:", unexpected))
            if names
        ]
        raise ValueError(f"checkpoint {path} must hold what the model has, got {'; '.join(got)}")
    for name, value in state.items():
        if tuple(value.shape) != tuple(own[name].shape):
            rule = f"checkpoint {path} must hold {name} of shape {tuple(own[name].shape)}"
            raise ValueError(f"{rule}, got {tuple(value.shape)}")
    with called(f"checkpoint {path}", "load into the model"):
        net.load_state_dict(state)


def _state(path: str) -> dict[str, Tensor]:
    if not Path(path).is_file():
        raise ValueError(f"checkpoint {path} must be an existing file, got none")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong is told below
            found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        rule = f"checkpoint {path} must hold tensors by name and no other objects, whose code is never run"
        raise ValueError(f"{rule}; save it with torch.save(model.state_dict(), path)") from None
    except Exception as error:
        got = type(error).__name__
        raise ValueError(
            f"checkpoint {path} must be a file of torch.save that can be read, got {got}"
        ) from None
    for key in _KEYS:
        if isinstance(found, Mapping) and isinstance(found.get(key), Mapping):
            found = found[key]
    if not isinstance(found, Mapping) or not all(isinstance(value, Tensor) for value in found.values()):
        raise ValueError(f"checkpoint {path} must hold a state_dict, got {_content(found)}")
    return dict(found)


def _content(found: Any) -> str:
    return (
        f"a dictionary of {_few(list(map(str, found)))}"
        if isinstance(found, Mapping)
        else type(found).__name__
    )


def _few(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + f" and {len(names) - _SHOWN} more" * (len(names) > _SHOWN)
