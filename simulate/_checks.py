"""Argument checks that modules share: the validated value, or a ``ValueError`` that says what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:  # importing torch takes a second, too long for a mistyped name on the command line
    from torch import Tensor

Floats = NDArray[np.float64]

Seed = int | np.random.Generator
"""Source of random numbers: an integer seed, or a generator that continues from its present state."""

_NEAR = 0.65
"""Smallest similarity, as in `difflib`, of a name that is suggested for another."""

# numpy and torch hold sizes in signed 64-bit integers
_LARGEST_COUNT = 1 << 63


def did_you_mean(
    name: str, known: Iterable[str], count: int = 1, *, suggest: Mapping[str, str] | None = None
) -> str:
    """Return the end of an error message that suggests the nearest known names; empty if none is near.

    Parameters
    ----------
    name
        The unknown name.
    known
        The known names.
    count
        Most suggestions.
    suggest
        Words to suggest instead of some of the known names.

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
    # difflib compares by case, so that a name in capitals would resemble no other
    plain = {word.lower(): others.get(word, word) for word in known}
    near = [plain[word] for word in difflib.get_close_matches(name.lower(), plain, n=count, cutoff=_NEAR)]
    # two known names may lead to the same suggestion
    return f"; did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""


def positive_numbers(name: str, value: ArrayLike) -> np.ndarray:
    """Return `value` as float64; every entry must be finite and > 0."""
    array = np.asarray(value, dtype=np.float64)
    if not np.all(np.isfinite(array) & (array > 0)):
        raise ValueError(f"{name} must be finite and positive, got {value}")
    return array


def positive_number(name: str, value: Any) -> float:
    """Return one positive finite number."""
    return float(positive_numbers(name, value))


def one_of(name: str, value: Any, known: Iterable[Any]) -> None:
    """Refuse a value that is none of the known ones."""
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(str, known))}, got {value!r}")


def finite_logits(logits: Tensor, alpha: ArrayLike) -> Tensor:
    """Return `logits` of a network whose weights were multiplied by `alpha`; refuse overflow."""
    if not bool(logits.isfinite().all()):
        raise ValueError(f"alpha must keep the scaled logits finite, got {alpha}")
    return logits


def natural(name: str, value: Any) -> int:
    """Return a positive integer as a Python int, whose products never overflow."""
    if not _is_positive_integer(value):
        raise ValueError(f"{name} must be a positive integer, got {_format_value(value)}")
    if value >= _LARGEST_COUNT:
        raise ValueError(f"{name} must be less than 2**63, got a larger number")
    return int(value)


def natural_or_zero(name: str, value: Any) -> int:
    """Return an integer >= 0 as a Python int."""
    return 0 if _is_integer(value) and value == 0 else natural(name, value)


def at_least(name: str, value: Any, least: int) -> int:
    """Return an integer >= `least` as a Python int."""
    if not _is_integer(value) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {_format_value(value)}")
    return int(value)


def generator(seed: Seed) -> np.random.Generator:
    """Return a generator as it is, or a new one from an integer seed."""
    if isinstance(seed, np.random.Generator):
        return seed
    if not _is_integer(seed) or seed < 0:
        raise ValueError(f"seed must be an integer >= 0 or a numpy Generator, got {_format_value(seed)}")
    return np.random.default_rng(int(seed))


def layer_sizes(widths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Return the numbers of units before and after each layer of a perceptron."""
    if len(widths) < 2 or not all(_is_positive_integer(width) for width in widths):
        raise ValueError(f"widths must be at least two positive integers, got {_format_value(tuple(widths))}")
    return pairwise([natural("widths", width) for width in widths])


def all_positive(numbers: Tensor) -> bool:
    """Return whether every number is finite and > 0."""
    return bool(((numbers > 0) & numbers.isfinite()).all())


def require_finite(name: str, numbers: Tensor) -> None:
    """Refuse a tensor that holds NaN or infinity."""
    if not bool(numbers.isfinite().all()):
        raise ValueError(f"{name} must be finite, got NaN or infinity")


def labelled(x: Any, labels: Any, widths: Sequence[int], like: Tensor) -> tuple[Tensor, Tensor]:
    """Return inputs of a network, (N, widths[0]), in the type and on the device of `like`, and their classes, (N,)."""
    import torch  # here, since it takes a second, too long for a mistyped name on the command line

    width, classes = widths[0], widths[-1]
    inputs = torch.as_tensor(x, dtype=like.dtype, device=like.device)
    if inputs.ndim != 2 or len(inputs) == 0 or inputs.shape[1] != width:
        raise ValueError(f"x must be of shape (N, {width}) with N >= 1, got {tuple(inputs.shape)}")
    require_finite("x", inputs)
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


def _format_value(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python does not print integers of more than some thousand digits
        return "a number too long to print"


def _is_positive_integer(value: Any) -> bool:
    return _is_integer(value) and int(value) >= 1


def _is_integer(value: Any) -> bool:
    """Return whether a value is an integer: not a boolean or a duration, which are subclasses of integers."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)
