"""The file of a run: records as JSON with a digest over them, read back with every number in its range or refused."""

from __future__ import annotations

import hashlib
import json
import math
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from verify.files import replace_files
from verify.results.layout import TABLES, laid_out, needed, text
from verify.results.records import (
    SCHEMA,
    WORDS,
    Curve,
    Observed,
    ObservedGroup,
    Results,
    Suite,
)

NOT_FINITE = ("nan", "inf", "-inf")
"""Numbers that JSON lacks, written as strings."""

LARGEST_FILE = 1 << 26
"""Bytes; a run of every claim writes less than a twentieth of this."""

MOST_ITEMS, DEEPEST = 10_000, 16
"""Limits of one list or dictionary, and of the nesting in a free field: no run comes near them."""

SMALLEST_PLACE = 1e-100
"""Smallest position of a curve or an observation: the arithmetic of a drawing fails beyond this and its inverse."""

_MOST_CHARACTERS = 60
"""Most characters of an unknown word in a message."""

_MOST_FIELDS = 12
"""Most fields of a record that a message names; a row has four times as many."""

INTEGERS = 1 << 128
"""Integers of a results file are counts and seeds, at least 0 and below this."""


def save(results: Results, path: Path) -> None:
    """Write the results as JSON, in one step: a reader sees the old file or the new one, never half of one.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    replace_files({path: dumps(results)})


def dumps(results: Results) -> str:
    """Return the results as JSON text, with their digest; NaN and infinity are strings there."""
    # The digest of the run stays: a file that was edited and written again must still show it.
    return text(_json_value(laid_out(results)) | {"sha256": results.sha256 or _digest(results)})


def edited(results: Results) -> bool:
    """Whether the results have been changed since the run wrote them."""
    return bool(results.sha256) and results.sha256 != _digest(results)


def _digest(results: Results) -> str:
    """Return the sha256 of a file's content, whatever its layout."""
    return hashlib.sha256(canonical(laid_out(replace(results, sha256=""))).encode()).hexdigest()


def canonical(value: Any) -> str:
    """Return the canonical text of a record, or of a value of one: 1 and 1.0 have the same text.

    >>> canonical({"b": (1.0, float("nan")), "a": 2**70}), canonical(0.5)
    ('{"a":1180591620717411303424,"b":[1,"nan"]}', '0.5')
    """
    return json.dumps(_json_value(value, whole=True), sort_keys=True, separators=(",", ":"), allow_nan=False)


def load(path: Path) -> Results:
    """Read what `save` wrote.

    Raises
    ------
    ValueError
        If there is no such file, or it is not a results file of this version.
    """
    content = _read_bytes(path)
    try:
        raw = json.loads(content.decode("utf-8"), object_pairs_hook=_object)
    except (ValueError, RecursionError):
        raise ValueError(f"results file {path} is corrupt: not JSON; run losscurv report again") from None
    except TypeError as error:
        raise ValueError(f"results file {path} is corrupt: {error}; run losscurv report again") from None
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise ValueError(f"results file {path} must have schema {SCHEMA}; run losscurv report again")
    try:
        return _decode(Results, raw, "results")
    except (TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"results file {path} is corrupt: {error}; run losscurv report again") from None


def _read_bytes(path: Path) -> bytes:
    try:
        status = path.stat()
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):  # a pipe may never end
            raise ValueError(f"results file {path} must be a plain file, got a pipe or a device")
        if status.st_size > LARGEST_FILE:
            got = f"{status.st_size / 2**20:.0f} MiB"
            raise ValueError(f"results file {path} must have at most {LARGEST_FILE >> 20} MiB, got {got}")
        return path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"results file not found: {path}") from None
    except OSError as error:
        raise ValueError(f"results file {path} cannot be read: {error.strerror}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    # `dict` keeps the last of two equal names, so the other would vanish silently.
    if len(made) < len(pairs):
        raise TypeError(f"a name occurs twice among {', '.join(list(made)[:4])}")
    return made


def _decode(kind: Any, value: Any, where: str) -> Any:
    """Decode a JSON value as its annotation says, checked all the way down."""
    plain, inner = _parts(kind)
    if plain is float:
        value = float(value) if type(value) is int or value in NOT_FINITE else value
    # Nearly all values end here.
    if plain in (float, str, bool) and type(value) is plain:
        return value
    # The only unions of these records are `X | None`.
    if plain is UnionType:
        return None if value is None else _decode(inner[0], value, where)
    if is_dataclass(plain):
        return _record(plain, value, where)
    # Of no records the file has an empty list.
    if plain is list and inner[0] in TABLES and isinstance(value, dict):
        value = _records_of_table(inner[0], value, where)
    if plain is Any:
        return _restore_non_finite(value, where)
    # Not `isinstance`: `true` is no number here.
    if type(value) is not plain:
        raise TypeError(f"{where} must be a {plain.__name__}, got a {type(value).__name__}")
    if plain is int and not 0 <= value < INTEGERS:
        raise TypeError(f"{where} must be at least 0 and below 2**128")
    _require_few(value, where)
    if plain is dict:
        return {key: _decode(inner[1], item, f"{where}.{key}") for key, item in value.items()}
    return (
        [_decode(inner[0], item, f"{where}[{i}]") for i, item in enumerate(value)] if plain is list else value
    )


def _records_of_table(kind: Any, table: dict[str, Any], where: str) -> list[dict[str, Any]]:
    """Return a table of the file as one record per line."""
    types = _types(kind)
    if table.keys() != types.keys():
        raise TypeError(f"{where} must have the fields {_list_names(types)}")
    for name, column in table.items():
        if not isinstance(column, list):
            raise TypeError(f"{where}.{name} must be a list, got a {type(column).__name__}")
        _require_few(column, f"{where}.{name}")
    if len({len(column) for column in table.values()}) > 1:
        raise TypeError(f"{where} must have as many values of each field")
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


def _list_names(names: Mapping[str, Any]) -> str:
    """List the first of many names, so that a message fits a few lines."""
    shown = list(names)[:_MOST_FIELDS]
    return ", ".join(shown) + (f" and {len(names) - _MOST_FIELDS} more" if len(names) > _MOST_FIELDS else "")


def _record(kind: Any, value: Any, where: str) -> Any:
    types = _types(kind)
    if not isinstance(value, dict) or not needed(kind) <= value.keys() <= types.keys():
        raise TypeError(f"{where} must have the fields {_list_names(types)}")
    made = kind(**{name: _decode(types[name], item, f"{where}.{name}") for name, item in value.items()})
    for problem in _problems(made):
        raise TypeError(f"{where} must {problem}")
    return made


def _problems(made: Any) -> Iterator[str]:
    """Yield the rules that a record breaks beyond its types, which the page relies on."""
    for (kind, name), words in WORDS.items():
        if isinstance(made, kind) and getattr(made, name) not in words:
            yield f"have one of {', '.join(words)} as {name}, got {getattr(made, name)[:_MOST_CHARACTERS]!a}"
    if isinstance(made, Curve):
        if not made.x or not all(map(_drawable, made.x)):
            yield "have places on its axis, all of a size that can be drawn"
        if any(len(values) != len(made.x) for values in (made.predicted, *made.rivals.values())):
            yield "have one value for each place on its axis"
    if isinstance(made, ObservedGroup):
        places = [row.at for row in made.rows]
        if any(x is not None for x in places) and not all(x is not None and _drawable(x) for x in places):
            yield "have a place for each of its rows or for none, all of a size that can be drawn"
    if isinstance(made, Observed) and any(
        len(r.cells) != len(made.columns) for g in made.groups for r in g.rows
    ):
        yield "have one cell for each of its columns in every row"
    if isinstance(made, Suite):
        kinds = {
            "wall_seconds": int | float,
            "packages": dict,
            "commit": str,
            "beside_the_device": dict,
            "for_a_gpu": list,
            "again_on_the_cpu": str,
            "off_the_cpu": list,
        }
        for name, kind in kinds.items():
            if name in made.host and not isinstance(made.host[name], kind):
                yield f"have a host with another sort of {name}"
    if isinstance(made, Results):
        if not all({"name", "statement"} <= d.keys() for d in made.derivations):
            yield "have a name and a statement in each of its derivations"
        if len({row.id for row in made.rows}) < len(made.rows):
            yield "have rows with different ids"
        names = [o.id for o in made.observations]
        if len({*names, *(row.id for row in made.rows)}) < len(names) + len(made.rows):
            yield "have observations with ids of their own"


def _drawable(place: float) -> bool:
    return place == 0 or SMALLEST_PLACE < abs(place) < 1 / SMALLEST_PLACE


def _require_few(value: Any, where: str) -> None:
    if isinstance(value, list | dict) and len(value) > MOST_ITEMS:
        raise TypeError(f"{where} must have at most {MOST_ITEMS} items, got {len(value)}")


@cache
def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(kind) or kind, get_args(kind)


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _json_value(value: Any, *, whole: bool = False) -> Any:
    """Return a value for JSON, with NaN and infinity, which it lacks, as strings; `whole`: 1.0 as 1."""
    if isinstance(value, dict):
        return {key: _json_value(item, whole=whole) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item, whole=whole) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return repr(value)
        return int(value) if whole and value.is_integer() else value
    return _json_value(asdict(value), whole=whole) if is_dataclass(type(value)) else value


def _restore_non_finite(value: Any, where: str, depth: int = 0) -> Any:
    """Return a JSON value with its NaN and infinities as numbers again."""
    _require_few(value, where)
    if depth > DEEPEST:
        raise TypeError(f"{where} must be nested at most {DEEPEST} deep")
    if isinstance(value, dict):
        return {key: _restore_non_finite(item, where, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_restore_non_finite(item, where, depth + 1) for item in value]
    if isinstance(value, int) and not -INTEGERS < value < INTEGERS:
        raise TypeError(f"{where} must have integers below 2**128")
    return float(value) if value in NOT_FINITE else value
