"""CPU seconds, the machine they were taken on, tables of them, and options of the scripts."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """CPU seconds of a call, the best of several."""
    spent: list[float] = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        spent.append(time.process_time() - start)
    return min(spent)


def version(name: str) -> str:
    """Version of an installed distribution; empty if it is not there."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def machine(*libraries: str) -> str:
    """Versions and cores, for the line above a table."""
    told = ", ".join(f"{name} {version(name)}" for name in libraries)
    return f"Python {platform.python_version()}, {told}; {os.cpu_count()} cores"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown that reads well as text."""
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in lines)
    return "\n".join(f"| {' | '.join(row)} |" for row in padded)


def command(module: str, document: str | None, **options: Any) -> argparse.ArgumentParser:
    """Parser of a script, which is described by its docstring, with options by their defaults.

    An option whose default is False is a switch.

    >>> command("benchmarks.laws", "Speed.", points=9, fast=False).parse_args(["--fast"])
    Namespace(points=9, fast=True)
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}", description=document, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in options.items():
        how: dict[str, Any] = {"action": "store_true"} if default is False else {"type": type(default)}
        parser.add_argument(f"--{name}", default=default, help=f"default: {default}", **how)
    return parser
