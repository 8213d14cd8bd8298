"""Edits that no claim could catch, each with the reason: `equivalent.json`, written by hand.

A reason begins with its class. What cancels because two sides of a claim share the code is no reason: such a claim
assumes what it judges, and is to be mended.

| class | it says |
|---|---|
| identity | the edited code gives the same number wherever it is defined, or by a symmetry that holds exactly |
| accuracy | a start, a step or an end of an iteration, a node of a quadrature: the number is the same |
| margin | what is judged moves by less than its margin; both stand there in per cent |
| route | the line chooses between two routes to one number, or cuts work in parts |
| reported | the number stands in a table that nothing judges |
| setting | another network, matrix or start is drawn, and what is claimed is claimed of that one too |
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.mutants.edits import Edit

__all__ = ["CLASSES", "FILE", "listed", "problems", "reason"]

FILE = Path(__file__).with_name("equivalent.json")
CLASSES = ("identity", "accuracy", "margin", "route", "reported", "setting")

Listed = list[dict[str, str]]


def listed() -> Listed:
    """The entries: file, function, line as it stands, what becomes of it, and reason."""
    return json.loads(FILE.read_text())


def problems(entry: dict[str, str]) -> list[str]:
    """What an entry must be and is not.

    >>> problems({"file": "a.py", "function": "f", "line": "x", "becomes": "y", "reason": "margin: it is small"})
    ['say by how many per cent it moves, and of what margin']
    """
    found: list[str] = []
    if entry.keys() != {"file", "function", "line", "becomes", "reason"}:
        found.append("have file, function, line, becomes and reason")
    kind, _, why = entry.get("reason", "").partition(": ")
    if kind not in CLASSES or not why:
        found.append(f"give a reason that begins with one of {', '.join(CLASSES)}")
    if kind == "margin" and why.count("%") < 2:
        found.append("say by how many per cent it moves, and of what margin")
    if "cancel" in why or "control variate" in why:
        found.append("not rest on two sides that share the code")
    return found


def reason(edit: Edit, root: Path, known: Listed) -> str:
    """Why no claim can catch an edit; empty if nobody has said so."""
    line, becomes = edit.lines(root)
    for entry in known:
        place = (entry["file"], entry["function"], entry["line"], entry["becomes"])
        if place == (edit.file, edit.function, line, becomes):
            return entry["reason"]
    return ""


def is_in_code(entry: dict[str, Any], found: list[Edit], root: Path) -> bool:
    """Whether an entry names one of the edits of its file."""
    return any(reason(edit, root, [entry]) for edit in found if edit.function == entry["function"])
