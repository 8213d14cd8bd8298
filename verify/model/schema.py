"""JSON Schema of records, from their annotations: what commands print with ``--json``, described for other programs."""

from __future__ import annotations

from dataclasses import is_dataclass
from enum import Enum
from inspect import getdoc
from typing import Any, get_args, get_origin, get_type_hints

_NAMES: dict[Any, str] = {str: "string", bool: "boolean"}


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of what `dataclasses.asdict` makes of a type.

    Parameters
    ----------
    kind
        A dataclass, an enumeration, text, a truth value, or lists and string-keyed dictionaries of these. Every value
        fits the schema of anything else, such as `Any`.

    Examples
    --------
    >>> json_schema(dict[str, list[bool]])["additionalProperties"]
    {'type': 'array', 'items': {'type': 'boolean'}}
    """
    plain, inner = get_origin(kind) or kind, get_args(kind)
    if plain is list:
        return {"type": "array", "items": json_schema(inner[0])}
    if plain is dict:
        return {"type": "object", "additionalProperties": json_schema(inner[1])}
    if is_dataclass(plain):
        fields = {name: json_schema(each) for name, each in get_type_hints(plain).items()}
        names = {"properties": fields, "required": [*fields], "additionalProperties": False}
        return {"type": "object", "description": getdoc(plain), **names}
    if issubclass(plain, Enum):
        return {"enum": [*plain]}
    return {"type": _NAMES[plain]} if plain in _NAMES else {}
