"""Results files to be spoiled, place by place."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.verify.results.sample_results import sample
from verify.results import Results, dumps, load

RAW = json.loads(dumps(sample()))


def text_of(raw: Any) -> str:
    return json.dumps(raw)


def small(row: int = 0) -> Any:
    """A results file with one row, its points and looks few, a table of few rows, and one of everything else."""
    first, table = RAW["rows"][row], RAW["observations"][0]
    few = {name: RAW[name][:1] for name in ("runs", "inventory", "planted")}
    few["rows"] = [{**first, "points": first["points"][:2]}]
    groups = [{**group, "rows": group["rows"][:2]} for group in table["groups"][:2]]
    few["observations"] = [{**table, "groups": groups}]
    return json.loads(json.dumps(RAW | few))


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value that is no list or record, with the way to it."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else None
    if items is None:
        yield path, node
    else:
        for key, value in items:
            yield from leaves(value, (*path, key))


def found(raw: Any, path: str | tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the container of the last part of a path (words with dots, or a tuple), and that part."""
    words = path.split(".") if isinstance(path, str) else path
    *way, last = [int(word) if isinstance(word, str) and word.isdigit() else word for word in words]
    for step in way:
        raw = raw[step]
    return raw, last


def place(raw: Any, path: str | tuple[Any, ...], value: Any) -> None:
    node, last = found(raw, path)
    node[last] = value


def read(folder: Path, content: Any) -> Results:
    path = folder / "results.json"
    path.write_bytes(content if isinstance(content, bytes) else text_of(content).encode())
    return load(path)


def refused(folder: Path, content: Any, match: str = "", *, most: int = 500) -> None:
    with pytest.raises(ValueError, match=match) as caught:
        read(folder, content)
    told = str(caught.value)
    assert str(folder / "results.json") in told and len(told) < most and told.isprintable()
    assert caught.value.__suppress_context__ or caught.value.__context__ is None  # one error, not a chain
