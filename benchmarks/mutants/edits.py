"""One-line edits of a source file, as a careless author would make them, found in its syntax tree.

| kind | edit |
|---|---|
| `constant` | a number 5 % larger |
| `off by one` | a whole number one larger |
| `sign` | plus for minus, minus for plus, a minus lost |
| `swap` | times for divided by and back, the two sides of a difference, the larger for the smaller |
| `square` | a square or a square root lost, a power one higher |
| `factor` | an expression 1 to 10 % larger |
| `draw` | a random draw 2 % larger |
| `estimator` | mean for median, sum for mean, the last for the first, one degree of freedom |
| `normalisation` | divided by one more, or not at all |
| `branch` | a comparison the other way round |

Left out are what states no quantity: docstrings and annotations, the texts and conditions of refusals, tolerances and
limits of iterations (numbers below 1e-6 or from 1e6 on), and modules that only check arguments.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.mutants.finder import Finder

__all__ = ["KINDS", "Edit", "edits", "passed_by", "sample"]

KINDS = (
    "constant", "off by one", "sign", "swap", "square", "factor", "draw", "estimator", "normalisation", "branch"
)  # fmt: skip

ELSEWHERE = ("_checks.py", "_limits.py", "_memory.py", "__main__.py")
"""Modules that state no quantity at all."""


@dataclass(frozen=True, kw_only=True)
class Edit:
    """An edit of one line: what stood there, what stands there now, and where.

    `function` is the innermost one around it, with its class; empty for a line of the module itself.
    """

    file: str
    line: int
    column: int
    end: int
    kind: str
    before: str
    after: str
    function: str = ""

    def apply(self, root: Path) -> str:
        """The source of the edited file.

        Raises
        ------
        ValueError
            If the file does not hold at this place what the edit replaces.
        """
        lines = (root / self.file).read_bytes().splitlines(keepends=True)
        old = lines[self.line - 1]
        if old[self.column : self.end].decode() != self.before:
            raise ValueError(
                f"{self.file}:{self.line} must hold {self.before!r}; the campaign is of other code"
            )
        lines[self.line - 1] = old[: self.column] + self.after.encode() + old[self.end :]
        return b"".join(lines).decode()

    def becomes(self, root: Path) -> str:
        """The line as it is to stand."""
        return self.apply(root).splitlines()[self.line - 1].strip()

    def json(self) -> dict[str, Any]:
        """As it is kept."""
        return asdict(self)


def edits(root: Path, file: str) -> list[Edit]:
    r"""All edits of a file below `root`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.py").write_text("def f(x, n):\n    return 2 * x**2 / n\n")
    >>> sorted({e.kind for e in edits(folder, "a.py")})
    ['factor', 'normalisation', 'off by one', 'square', 'swap']
    """
    return _found(root, file)[0]


def passed_by(root: Path, file: str) -> list[Edit]:
    r"""What could be edited in a file but states no quantity: refusals, checks, tolerances, texts.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.py").write_text("def f(x):\n    if x < 0:\n        raise ValueError(x)\n    return x\n")
    >>> [e.after for e in passed_by(folder, "a.py")], edits(folder, "a.py")
    (['x > 0', '1'], [])
    """
    return _found(root, file)[1]


def _found(root: Path, file: str) -> tuple[list[Edit], list[Edit]]:
    source = (root / file).read_text()
    finder = Finder(source)
    finder.visit(ast.parse(source))
    found, passed = (
        list(dict.fromkeys(Edit(file=file, **place._asdict()) for place in places))
        for places in (finder.found, finder.passed)
    )
    return ([], found + passed) if Path(file).name in ELSEWHERE else (found, passed)


def sample(found: list[Edit], count: int, seed: int, root: Path, kinds: Sequence[str] = KINDS) -> list[Edit]:
    """So many edits, the kinds as evenly as there are edits of each; more of one seed begin with the same ones.

    Those after which the file does not parse are passed over.
    """
    rng = random.Random(seed)
    piles = {kind: sorted((e for e in found if e.kind == kind), key=_place) for kind in kinds}
    for pile in piles.values():
        rng.shuffle(pile)
    order: list[Edit] = []
    while len(order) < count and any(piles.values()):
        order += [edit for pile in piles.values() if pile and _parses(edit := pile.pop(), root)]
    return order[:count]


def _place(edit: Edit) -> tuple[Any, ...]:
    return (edit.file, edit.line, edit.column, edit.after)


def _parses(edit: Edit, root: Path) -> bool:
    try:
        ast.parse(edit.apply(root))
    except SyntaxError:
        return False
    return True
