"""Argument checks that modules share: the validated value, or a ``ValueError`` that says what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:  # it takes a second, and who only mistypes a name should not wait for it
    from torch import Tensor

Seed = int | np.random.Generator
"""Source of random numbers: an integer seed, or a generator that continues from its present state."""

_NEAR = 0.65
"""Share of their letters that two names have in common, from which one may stand for the other."""

_LARGEST_COUNT = 1 << 63


def did_you_mean(
    name: str, known: Iterable[str], count: int = 1, *, suggest: Mapping[str, str] | None = None
) -> str:
    """Return the end of an error message that suggests the nearest known names; empty if none is near.

    Parameters
    ----------
    name
        What was given.
    known
        What it may be.
    count
        Most suggestions.
    suggest
        What to suggest for a known name where that is another word.

    Examples
    --------
    >>> did_you_mean("crossentropy", ["mse", "cross-entropy"])
    '; did you mean cross-entropy?'
    >>> did_you_mean("SGD", ["sgd", "adam"]), did_you_mean("hinge", ["mse", "cross-entropy"])
    ('; did you mean sgd?', '')
    >>> did_you_mean("gama", ["gamma"], suggest={"gamma": "softmax.gamma"})
    '; did you mean softmax.gamma?'
    """
    others = suggest or {}
    plain = {word.lower(): others.get(word, word) for word in known}
    near = [plain[word] for word in difflib.get_close_matches(name.lower(), plain, n=count, cutoff=_NEAR)]
    return f"; did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""


def positive_numbers(name: str, value: ArrayLike) -> np.ndarray:
    """`value` as float64, every entry finite and > 0."""
    array = np.asarray(value, dtype=np.float64)
    if not np.all(np.isfinite(array) & (array > 0)):
        raise ValueError(f"{name} must be finite and positive, got {value}")
    return array


def finite_logits(logits: Tensor, alpha: ArrayLike) -> Tensor:
    """`logits` of a network whose weights were multiplied by `alpha`, unless they overflow."""
    if not bool(logits.isfinite().all()):
        raise ValueError(f"alpha must keep the scaled logits finite, got {alpha}")
    return logits


def natural(name: str, value: Any) -> int:
    """`value` as an int of Python, whose products never overflow, if it is an integer >= 1."""
    if not _counts(value):
        raise ValueError(f"{name} must be a positive integer, got {_shown(value)}")
    if value >= _LARGEST_COUNT:
        raise ValueError(f"{name} must be less than 2**63, which no memory holds, got more")
    return int(value)


def natural_or_zero(name: str, value: Any) -> int:
    """A count that may be zero."""
    return 0 if _integral(value) and value == 0 else natural(name, value)


def at_least(name: str, value: Any, least: int) -> int:
    """`value` as an int of Python, if it is an integer of at least so much."""
    if not _integral(value) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {_shown(value)}")
    return int(value)


def generator(seed: Seed) -> np.random.Generator:
    """The generator itself, or a new one from an integer."""
    if isinstance(seed, np.random.Generator):
        return seed
    if not _integral(seed) or seed < 0:
        raise ValueError(f"seed must be an integer >= 0 or a numpy Generator, got {_shown(seed)}")
    return np.random.default_rng(int(seed))


def layer_sizes(widths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Units before and after each layer of a perceptron."""
    if len(widths) < 2 or not all(_counts(width) for width in widths):
        raise ValueError(f"widths must be at least two positive integers, got {_shown(tuple(widths))}")
    return pairwise([natural("widths", width) for width in widths])


def labelled(x: Any, labels: Any, *, width: int, classes: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs (N, width), of the type and on the device of `like`, and their classes (N,)."""
    import torch  # takes a second: whoever mistypes a name on the command line need not wait for it

    inputs = torch.as_tensor(x, dtype=like.dtype, device=like.device)
    if inputs.ndim != 2 or len(inputs) == 0 or inputs.shape[1] != width:
        raise ValueError(f"x must be of shape (N, {width}) with N >= 1, got {tuple(inputs.shape)}")
    if not bool(inputs.isfinite().all()):
        raise ValueError("x must be finite, got NaN or infinity")
    if classes < 2:
        raise ValueError(f"the last width must be at least 2 classes, got {classes}")
    labels = torch.as_tensor(labels, device=like.device)
    if labels.shape != (len(inputs),) or labels.is_floating_point():
        got = f"{labels.dtype} of shape {tuple(labels.shape)}"
        raise ValueError(f"labels must be {len(inputs)} integers, got {got}")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise ValueError(f"labels must be between 0 and {classes - 1}, got {low}..{high}")
    return inputs, labels.long()


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python spells no integer of more than some thousand digits
        return "a number too long to print"


def _counts(value: Any) -> bool:
    return _integral(value) and int(value) >= 1


def _integral(value: Any) -> bool:
    """Whether it is an integer; a duration counts as one of numpy's, and a truth value as one of Python's."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)
