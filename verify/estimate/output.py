"""Results of theory functions as text for a shell and as JSON values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

WIDTH = 80
"""Columns of a text."""


def to_digits(result: Any, digits: int | None) -> Any:
    """Return numbers of mpmath as text with `digits` digits, where print would show fifteen."""
    if digits is None:
        return result
    from mpmath import nstr

    return {
        name: [nstr(value, int(digits)) for value in values]
        for name, values in (fields_of(result) or {}).items()
    }


def as_text(result: Any) -> str:
    """Return a line for each field of a record, or the numbers alone."""
    fields = fields_of(result)
    if fields is None:
        return _numbers(result)
    width = max(map(len, fields))
    indent = "\n" + " " * (width + 2)
    return "\n".join(
        f"{name:{width}}  {_numbers(value).replace(chr(10), indent)}" for name, value in fields.items()
    )


def fields_of(result: Any) -> dict[str, Any] | None:
    """Return the fields of a record by name; None for anything else."""
    if isinstance(result, dict):
        return result
    if hasattr(result, "_asdict"):
        return result._asdict()
    if hasattr(result, "__dataclass_fields__"):
        return {name: getattr(result, name) for name in result.__dataclass_fields__}
    return None


def _numbers(value: Any) -> str:
    """Format floats to twelve digits; values that are text already keep all their digits."""
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{array.item():.12g}" if array.dtype.kind == "f" else str(array.item())
    texts = np.vectorize(_numbers, otypes=[object])(array) if array.size else array
    return np.array2string(
        texts, separator=", ", threshold=array.size + 1, max_line_width=WIDTH, formatter={"object": str}
    )


def as_json(value: Any) -> Any:
    """Return JSON values: NaN, infinity and numbers of more digits than a float has become strings."""
    fields = fields_of(value)
    if fields is not None:
        return {name: as_json(item) for name, item in fields.items()}
    if isinstance(value, list | tuple | np.ndarray) and np.ndim(value):
        return [as_json(item) for item in value]
    plain = value.item() if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(plain, bool | int) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    return str(plain)
