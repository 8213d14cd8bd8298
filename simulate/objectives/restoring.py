"""Context managers that preserve the modes of a model and the states of the random generators."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from simulate.lanczos.precision import in_full_precision


@contextmanager
def preserve_state(model: nn.Module | None, training: bool) -> Iterator[None]:
    """Put a model into a mode; afterwards restore the modes of its parts and the states of the random generators.

    Meanwhile products have full precision, whatever rounding torch is set to, see `in_mode`.
    """
    states = _random_states()
    try:
        with in_mode(model, training):
            yield
    finally:
        for restore, state in states:
            restore(state)


@contextmanager
def in_mode(model: nn.Module | None, training: bool) -> Iterator[None]:
    """Put a model into a mode and products into full precision; afterwards restore the precision and all modes.

    Raises
    ------
    ValueError
        If derivatives cannot be recorded.
    """
    if torch.is_inference_mode_enabled():
        raise ValueError(
            "model must be measured outside of torch.inference_mode, which records no derivatives"
        )
    if parametrize._cache_enabled:
        raise ValueError("model must be measured outside of parametrize.cached, which keeps old parameters")
    modes = [] if model is None else [(module, module.training) for module in model.modules()]
    try:
        for module, mode in modes:
            if mode != training:
                _set_mode(module, training)
        with in_full_precision():
            yield
    finally:
        for module, mode in modes:
            if module.training != mode:
                _set_mode(module, mode)


def _set_mode(module: nn.Module, training: bool) -> None:
    """Set the mode of a module directly: its own assignment searches its parameters first, at ten times the cost."""
    if type(module).__setattr__ is nn.Module.__setattr__ and "training" in vars(module):
        vars(module)["training"] = training
    else:  # the class has its own way to set attributes
        module.training = training


@contextmanager
def drawing_once() -> Iterator[None]:
    """Restore the random generators after an error, so that another try draws the same."""
    states = _random_states()
    try:
        yield
    except BaseException:
        for restore, state in states:
            restore(state)
        raise


def seed_generators(seed: int) -> None:
    """Seed the global generators of torch, Python and numpy, from which user code draws.

    Nothing in this package draws from them. Call it only within `preserve_state`, which restores them.

    Examples
    --------
    >>> with preserve_state(None, training=False):
    ...     seed_generators(3)
    ...     first = torch.rand(())
    ...     seed_generators(3)
    ...     bool(torch.rand(()) == first)
    True
    """
    below = seed % 2**32  # numpy's old generators take 32 bits
    torch.default_generator.manual_seed(below)
    # not torch.manual_seed, which records the whole stack for a later device if there is none
    for gpu in _gpus_in_use():
        torch.cuda.default_generators[gpu].manual_seed(below)
    random.seed(seed)
    np.random.seed(below)  # noqa: NPY002 (what modules of others draw from)


def draws(call: Callable[[], Any]) -> bool:
    """Return whether a call draws from a generator that `preserve_state` restores.

    Examples
    --------
    >>> draws(lambda: torch.rand(1)), draws(lambda: torch.ones(1))
    (True, False)
    """

    def snapshot() -> list[bytes]:
        states = (state for _, state in _random_states())
        return [pickle.dumps(s.cpu().numpy() if isinstance(s, Tensor) else s) for s in states]

    before = snapshot()
    call()
    return snapshot() != before


def _random_states() -> list[tuple[Callable[[Any], Any], Any]]:
    """Return the state of each generator that data loaders and dropout use, with the call that restores it."""
    states: list[tuple[Callable[[Any], Any], Any]] = [
        (torch.set_rng_state, torch.get_rng_state()),
        (np.random.set_state, np.random.get_state()),  # noqa: NPY002 (kept and put back, never drawn from)
        (random.setstate, random.getstate()),
    ]
    for gpu in _gpus_in_use():
        generator = torch.cuda.default_generators[gpu]
        states.append((generator.set_state, generator.get_state()))
    return states


def _gpus_in_use() -> list[int]:
    """Return the GPUs on which this process holds memory; nothing has been drawn on the others."""
    if not torch.cuda.is_initialized():
        return []
    return [gpu for gpu in range(torch.cuda.device_count()) if torch.cuda.memory_reserved(gpu)]
