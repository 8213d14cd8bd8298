"""JSON Schema of records, from their annotations: what commands print with ``--json``, described for other programs."""

from __future__ import annotations

from dataclasses import is_dataclass
from enum import Enum
from inspect import getdoc
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

_NAMES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of what `dataclasses.asdict` makes of a type.

    Parameters
    ----------
    kind
        A dataclass, an enumeration, a plain type, or lists, string-keyed dictionaries and unions of these. `Any`, and
        whatever else, has the schema that every value fits.

    Examples
    --------
    >>> json_schema(dict[str, list[float] | None])["additionalProperties"]
    {'anyOf': [{'type': 'array', 'items': {'type': 'number'}}, {'type': 'null'}]}
    """
    plain, inner = get_origin(kind) or kind, get_args(kind)
    if plain is UnionType:
        return {"anyOf": [json_schema(each) for each in inner]}
    if plain is list:
        return {"type": "array", "items": json_schema(inner[0])}
    if plain is dict:
        return {"type": "object", "additionalProperties": json_schema(inner[1])}
    if is_dataclass(plain):
        fields = {name: json_schema(each) for name, each in get_type_hints(plain).items()}
        return {
            "type": "object",
            "description": getdoc(plain),
            "properties": fields,
            "required": [*fields],
            "additionalProperties": False,
        }
    if isinstance(plain, type) and issubclass(plain, Enum):
        return {"enum": [each.value for each in plain]}
    return {"type": _NAMES[plain]} if plain in _NAMES else {}
