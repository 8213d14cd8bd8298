"""Layout of the results file: default values left out, and a line for each row, so that diffs are readable.

Records that come in their thousands are tables: a field, then its values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any

from verify.results.records import Look, ProfilePoint, Results, RivalOutcome, Spread, Violation

TABLES = (Look, ProfilePoint, RivalOutcome, Spread, Violation)
"""Records of single values that come in their thousands."""


def laid_out(value: Any) -> Any:
    """Return a run as its file has it: all fields of the run, and fields of its records that are not the default."""
    if isinstance(value, list | tuple):
        return _table(value) if value and isinstance(value[0], TABLES) else [laid_out(item) for item in value]
    if isinstance(value, dict):
        return {key: laid_out(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        defaults, values = _defaults(type(value)), ((f.name, getattr(value, f.name)) for f in fields(value))
        return {
            name: laid_out(item)
            for name, item in values
            if name not in defaults or not _same(item, defaults[name])
        }
    return value


def _table(records: Sequence[Any]) -> dict[str, list[Any]]:
    return {f.name: [getattr(record, f.name) for record in records] for f in fields(records[0])}


def _same(value: Any, default: Any) -> bool:
    """Whether a value is its default; -0.0 is not 0.0 here."""
    return value == default and repr(value) == repr(default)


@cache
def _defaults(kind: type) -> dict[str, Any]:
    """Return the default values of a record, which its file leaves out; those of the run itself are written."""
    made = {f.name: f.default if f.default_factory is MISSING else f.default_factory() for f in fields(kind)}
    return {name: value for name, value in made.items() if value is not MISSING and kind is not Results}


@cache
def needed(kind: type) -> frozenset[str]:
    """Return the fields that a file must have of a record."""
    return frozenset(f.name for f in fields(kind)) - _defaults(kind).keys()


def text(plain: Mapping[str, Any]) -> str:
    r"""Return JSON with a line for each item of its lists and for each of its other parts.

    >>> print(text({"a": [1, {"b": 2}], "c": {"d": []}}), end="")
    {
    "a":[
    1,
    {"b":2}
    ],
    "c":{"d":[]}
    }
    """
    return "{\n" + ",\n".join(f"{_line(name)}:{_lines(value)}" for name, value in plain.items()) + "\n}\n"


def _lines(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return _line(value)
    return "[\n" + ",\n".join(map(_line, value)) + "\n]"


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
