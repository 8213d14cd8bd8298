"""Where each entry of the papers stands in the code: the claims that judge it, and the functions of theory they read.

python -m verify.claims.places > docs/equations.md      # a test keeps the two together
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from verify.claims import registry, unread
from verify.model import AnyClaim, Claim, ExactProperty, Identity
from verify.model.inventory import Status

__all__ = ["attributes_read", "equations", "simulators_read", "theory_read"]

ROOT = Path(__file__).parents[2]
HEAD = """# Where each equation stands

Entry by entry of the [pages of the papers](claims/granziol2022.md): the claims that judge it, in the file where they
stand, and the functions of `theory` that they read. An identity or inequality between measured quantities reads none.

Made from the claims by `python -m verify.claims.places`.
"""
UNREAD_HEAD = """## What no claim reads

Every public function of `theory`, and every method and field of its classes, is read by a claim, but for these:
"""


def theory_read(claim: AnyClaim) -> list[str]:
    """The functions and classes of theory that a claim names, by itself or through functions beside it.

    >>> from verify.claims import registry
    >>> theory_read(next(c for c in registry.claims() if c.id == "vysogorets2024/eq-8"))
    ['theory.gauss_newton.expected_excess', 'theory.softmax.gamma']
    """
    return sorted(_followed(claim)[0])


def simulators_read(claim: AnyClaim) -> list[str]:
    """Return the functions and classes of simulate that a claim names, by itself or through functions beside it.

    >>> from verify.claims import registry
    >>> simulators_read(next(c for c in registry.claims() if c.id == "granziol2022/any-outlier"))[0]
    'simulate.matrices.ensembles.goe_top_eigenvalue'
    """
    return sorted(_followed(claim, "simulate")[0])


def attributes_read(claim: AnyClaim) -> set[str]:
    """The names of attributes in the code of a claim and of functions beside it."""
    return {name for function in _followed(claim)[1] for name in _all_names(function.__code__)}


def _followed(claim: AnyClaim, package: str = "theory") -> tuple[set[str], set[FunctionType]]:
    """What a claim names of a package, and the functions in whose code it was looked for."""
    found: set[str] = set()
    seen: set[FunctionType] = set()
    for function in _functions(claim):
        _follow(function, found, seen, package)
    return found, seen


def equations() -> str:
    """The page."""
    lines = [HEAD]
    claims = registry.claims()
    for paper in registry.papers():
        listed = registry.entries()[paper.id]
        lines += [f"## {paper.id}", "", "| entry | in the paper | judged by | theory |", "|---|---|---|---|"]
        for entry in listed:
            mine = [c for c in claims if _names(c, paper.id, entry.id)]
            cells = (f"{entry.id} {entry.title}", _sources(mine), _judged(mine, entry.status), _theory(mine))
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    lines += [UNREAD_HEAD, "| of theory | why |", "|---|---|"]
    lines += [f"| `{name.removeprefix('theory.')}` | {why} |" for name, why in unread.UNREAD.items()]
    lines.append("")
    return "\n".join(lines)


def _names(claim: AnyClaim, paper: str, entry: str) -> bool:
    return any(
        (name if "/" in name else f"{claim.paper}/{name}") == f"{paper}/{entry}" for name in claim.entries
    )


def _sources(claims: Iterable[AnyClaim]) -> str:
    """Where the paper says it: what the sources of the claims add to its name."""
    authors = [str(paper) for paper in registry.papers()]
    told = [claim.source.removeprefix(f"{name}, ") for claim in claims for name in authors
            if claim.source.startswith(f"{name}, ")]  # fmt: skip
    return "; ".join(dict.fromkeys(told))


def _judged(claims: Iterable[AnyClaim], status: Status | str) -> str:
    by_file: dict[str, list[str]] = {}
    for claim in claims:
        by_file.setdefault(_file(claim), []).append(claim.id.partition("/")[2])
    cells = [
        f"`{file.removeprefix('verify/claims/')}`: {', '.join(names)}" for file, names in by_file.items()
    ]
    return "<br>".join(cells) or f"*{getattr(status, 'value', status)}*"


def _theory(claims: Iterable[AnyClaim]) -> str:
    read = sorted({name for claim in claims for name in theory_read(claim)})
    return ", ".join(f"`{name.removeprefix('theory.')}`" for name in read)


def _file(claim: AnyClaim) -> str:
    """The file in whose CLAIMS it is listed."""
    return _files()[claim.id]


@functools.cache
def _files() -> dict[str, str]:
    found: dict[str, str] = {}
    for module in registry._modules():
        for claim in getattr(module, "CLAIMS", ()):
            found.setdefault(claim.id, str(Path(str(module.__file__)).relative_to(ROOT)))
    return found


def _functions(claim: AnyClaim) -> Iterator[Callable[..., Any]]:
    """All that a claim computes with, its rivals apart."""
    if isinstance(claim, Claim):
        yield claim.predict
        yield claim.experiment.simulate
    elif isinstance(claim, Identity):
        yield claim.routes
    elif isinstance(claim, ExactProperty):
        yield claim.violation
    else:
        yield claim.predict
        yield claim.simulate


def _follow(function: Any, found: set[str], seen: set[FunctionType], package: str) -> None:
    """What the names in the code of a function stand for: the package is noted, functions of claims are followed."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType) or function in seen:
        return
    seen.add(function)
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    for thing in (*_named(function, package), *closed, *(function.__defaults__ or ())):
        _note(thing, found, seen, package)


def _named(function: FunctionType, package: str) -> Iterator[Any]:
    names = list(_all_names(function.__code__))
    for name in names:
        thing = function.__globals__.get(name)
        yield thing
        if isinstance(thing, ModuleType) and thing.__name__.partition(".")[0] == package:
            yield from (getattr(thing, other, None) for other in names if not other.startswith("__"))


def _all_names(code: CodeType) -> Iterator[str]:
    """Of the code and of the functions and comprehensions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_names(constant)


def _note(thing: Any, found: set[str], seen: set[FunctionType], package: str) -> None:
    module = str(getattr(thing, "__module__", ""))
    if callable(thing) and module.partition(".")[0] == package:
        if not getattr(thing, "__qualname__", "_").startswith("_"):
            found.add(f"{module}.{thing.__qualname__}")
    elif callable(thing) and module.startswith("verify.claims"):
        _follow(thing, found, seen, package)
    elif isinstance(thing, Mapping | tuple):  # of cases by name, or what belongs to one
        for each in thing.values() if isinstance(thing, Mapping) else thing:
            _note(each, found, seen, package)
    elif isinstance(thing, Claim):
        for function in _functions(thing):
            _follow(function, found, seen, package)


if __name__ == "__main__":
    print(equations())  # noqa: T201
