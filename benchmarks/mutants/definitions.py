"""Lines that run when a module is loaded, before any claim: where what they define is read.

A constant of a module or a class, or the default of an argument, is executed once, by nobody. The lines inside of
functions that read its name stand for it.
"""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

__all__ = ["Source", "readers"]

OPTIMIZED = 0x1
"""Flag of the code of functions, not of modules and classes."""


class Source:
    r"""One file: its tree, and the lines that run inside of functions.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.py"
    >>> _ = file.write_text("EDGE = 2.0\ndef f(x=1.5):\n    return (x *\n        EDGE)\n")
    >>> source = Source(file)
    >>> sorted(source.inside), source.defines(1), source.defines(2), source.reads("EDGE")
    ([3, 4], ['EDGE'], ['f'], [4])
    """

    def __init__(self, file: Path) -> None:
        text = file.read_text()
        self.tree = ast.parse(text)
        self.inside = set(_function_lines(compile(text, str(file), "exec")))

    def statement(self, line: int) -> int:
        """The first line of the innermost statement around a line."""
        return max((n.lineno for n in self._around(line)), default=line)

    def defines(self, line: int) -> list[str]:
        """The names that a line outside of all functions gives a value to."""
        found: list[str] = []
        for node in self._around(line):
            if isinstance(node, ast.FunctionDef):
                return [node.name]
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            found += [n.id for t in targets if t for n in ast.walk(t) if isinstance(n, ast.Name)]
        return found

    def reads(self, name: str) -> list[int]:
        """Lines with a name, as a variable or as an attribute; of a function of this name all those inside."""
        return self._named.get(name, [])

    def _around(self, line: int) -> list[ast.stmt]:
        return [n for n in self._statements if n.lineno <= line <= (n.end_lineno or n.lineno)]

    @functools.cached_property
    def _statements(self) -> list[ast.stmt]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.stmt)]

    @functools.cached_property
    def _named(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                found[node.name] += range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found[node.id].append(node.lineno)
            elif isinstance(node, ast.Attribute):
                found[node.attr].append(node.lineno)
        return found


@functools.cache
def source(file: Path) -> Source:
    """A file, read once."""
    return Source(file)


def readers(file: Path, line: int, beside: tuple[Path, ...]) -> list[tuple[Path, int]]:
    """Lines inside of functions, in this file and those `beside` it, that read what a line defines."""
    found: list[tuple[Path, int]] = []
    waiting, seen = list(source(file).defines(line)), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        private = name.startswith("_")
        for other in [file] if private else list(dict.fromkeys((file, *beside))):
            for place in source(other).reads(name):
                if place in source(other).inside:
                    found.append((other, place))
                else:
                    waiting += source(other).defines(place)
    return list(dict.fromkeys(found))


def _function_lines(code: CodeType) -> Iterator[int]:
    if code.co_flags & OPTIMIZED:
        yield from (
            line for _, _, line in code.co_lines() if line is not None and line != code.co_firstlineno
        )
        if code.co_name.startswith("<"):
            yield code.co_firstlineno
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _function_lines(constant)
