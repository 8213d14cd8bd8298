"""Lines that each claim executes, while its experiment draws and while it is judged.

A constant of a module or a class, or the default of an argument, is executed once, before any claim. It is counted
with the lines inside of functions that read its name.
"""

from __future__ import annotations

import ast
import functools
import gc
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("theory", "simulate")
SEED = 2024

OPTIMIZED = 0x1
"""Flag of code objects of functions, which modules and classes lack."""


Executed = dict[str, dict[str, list[int]]]
"""Lines by file, for each claim while it is ``drawn`` or ``judged``."""


class Reach:
    """Lines of files below `root` that claims execute, from the results of `record`."""

    def __init__(self, found: Executed, root: Path = ROOT) -> None:
        self._root = root
        self._found = {name: {f: set(lines) for f, lines in files.items()} for name, files in found.items()}
        self._files = sorted({file for files in found.values() for file in files})

    def at(self, file: str, line: int) -> tuple[list[str], list[str]]:
        """Return the claims that execute a line when their experiments draw, and when they are judged.

        A claim may be in both. A line without a trace of its own has the trace of its statement. A line that runs when
        its module is loaded has the traces of the lines that read what it defines.
        """
        places = self._places(file, line)
        words = [
            name.partition(" ")
            for name, files in self._found.items()
            if any(n in files.get(path, ()) for path, n in places)
        ]
        drawn, judged = (sorted(w[2] for w in words if w[0] == kind) for kind in ("drawn", "judged"))
        return drawn, judged

    @functools.cache  # noqa: B019 - a campaign has one
    def _places(self, file: str, line: int) -> list[tuple[str, int]]:
        path = self._root / file
        here = source(path)
        for place in (line, here.statement(line)):
            if place in here.inside:
                return [(file, place)]
        others = tuple(self._root / other for other in self._files)
        return [(str(f.relative_to(self._root)), n) for f, n in readers(path, line, others)]


# --- what runs when a module is loaded


class Source:
    r"""Source file: its tree, and the lines that run inside of functions.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.py"
    >>> _ = file.write_text("EDGE = 2.0\ndef f(x=1.5):\n    return (x *\n        EDGE)\n")
    >>> source = Source(file)
    >>> sorted(source.inside), source.defines(1), source.defines(2), source.named["EDGE"]
    ([3, 4], ['EDGE'], ['f'], [4])
    """

    def __init__(self, file: Path) -> None:
        text = file.read_text()
        nodes = list(ast.walk(ast.parse(text)))
        self.inside = set(_function_lines(compile(text, str(file), "exec")))
        self._statements = [node for node in nodes if isinstance(node, ast.stmt)]
        self.named: dict[str, list[int]] = defaultdict(list)
        """Lines with a name, as a variable or as an attribute; of a function of this name all those inside."""
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                self.named[node.name] += range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.named[node.id].append(node.lineno)
            elif isinstance(node, ast.Attribute):
                self.named[node.attr].append(node.lineno)

    def statement(self, line: int) -> int:
        """Return the first line of the innermost statement around a line."""
        return max((n.lineno for n in self._around(line)), default=line)

    def defines(self, line: int) -> list[str]:
        """Return the names that a line outside of all functions assigns."""
        found: list[str] = []
        for node in self._around(line):
            if isinstance(node, ast.FunctionDef):
                return [node.name]
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            found += [n.id for t in targets if t for n in ast.walk(t) if isinstance(n, ast.Name)]
        return found

    def _around(self, line: int) -> list[ast.stmt]:
        return [n for n in self._statements if n.lineno <= line <= (n.end_lineno or n.lineno)]


@functools.cache
def source(file: Path) -> Source:
    """Return a source file, read once."""
    return Source(file)


def readers(file: Path, line: int, others: tuple[Path, ...]) -> list[tuple[Path, int]]:
    """Return the lines inside of functions, in this file and `others`, that read what a line defines."""
    found: list[tuple[Path, int]] = []
    waiting, seen = list(source(file).defines(line)), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for other in [file] if name.startswith("_") else list(dict.fromkeys((file, *others))):
            for place in source(other).named.get(name, []):
                if place in source(other).inside:
                    found.append((other, place))
                else:
                    waiting += source(other).defines(place)
    return list(dict.fromkeys(found))


def _function_lines(code: CodeType) -> Iterator[int]:
    if code.co_flags & OPTIMIZED:
        own = (line for _, _, line in code.co_lines() if line is not None)
        # The line of a `def` runs when the module is loaded. A lambda or a comprehension may have no other line.
        yield from (line for line in own if line != code.co_firstlineno or code.co_name.startswith("<"))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _function_lines(constant)


# --- what claims execute


def record(part: int, parts: int, store: Path) -> Executed:
    """Trace the lines of every `parts`-th claim of the report in `store`, from `part` on.

    A claim is judged on the replicates of the report, so that no draws come in between; of each of its experiments one
    block is drawn at each point, which stands for all claims that read it. What functions remember is forgotten
    between claims.
    """
    import coverage

    follow = coverage.Coverage(
        data_file=None, include=[f"{ROOT}/{top}/*" for top in FOLDERS], config_file=False
    )
    follow.start()
    from simulate.monte_carlo import SerialExecutor, run_block
    from verify.claims import registry
    from verify.model import Claim, StatisticalProperty
    from verify.running.engine import Session
    from verify.running.settings import Settings
    from verify.running.store import Store

    def under(name: str, call: Callable[[], object]) -> None:
        # A cached result would hide the lines that it stands for.
        _clear_caches()
        follow.switch_context(name)
        call()
        follow.switch_context("between")

    rows, readers = (
        json.loads((store / "results.json").read_text())["rows"],
        defaultdict[str, list[str]](list),
    )
    for row in rows:
        if row["claim"] not in readers[row["experiment"]]:
            readers[row["experiment"]].append(row["claim"])
    judged, followed = {row["claim"] for row in rows}, set[str]()
    for claim in [claim for claim in registry.select() if claim.id in judged][part::parts]:
        with Store(store, print) as kept:
            session = Session([claim], Settings(), SerialExecutor(), alpha=registry.alpha, store=kept)
            under(f"judged {claim.id}", functools.partial(session.rows, claim))
        if isinstance(claim, Claim) and claim.experiment.id not in followed:
            place = claim.experiment
            followed.add(place.id)
            ask = functools.partial(run_block, place.simulate, experiment=place.id, seed=SEED, index=0)
            under(f"drawn {place.id}", lambda ask=ask, place=place: [ask(point=p) for p in place.points])
        elif isinstance(claim, StatisticalProperty):
            alone = Session([claim], Settings(replicates=96), SerialExecutor(), alpha=registry.alpha)
            under(f"drawn {claim.id}", functools.partial(alone.rows, claim))
    follow.stop()
    data, found = follow.get_data(), Executed()
    for file in data.measured_files():
        for line, names in data.contexts_by_lineno(file).items():
            for kind, _, place in (name.partition(" ") for name in names):
                claims = {"judged": [place], "drawn": readers.get(place, [place])}
                for claim in claims.get(kind, ()):
                    files = found.setdefault(f"{kind} {claim}", {})
                    files.setdefault(os.path.relpath(file, ROOT), []).append(line)
    return found


def _clear_caches() -> None:
    """Clear the caches of theory, simulate and the claims, but not the admissions of the registry."""
    for found in gc.get_objects():
        if type(found) is functools._lru_cache_wrapper:  # isinstance would ask lazy modules for their class
            module = str(getattr(found, "__module__", ""))
            claims = module.startswith("verify.claims") and not module.endswith(".registry")
            if module.partition(".")[0] in FOLDERS or claims:
                found.cache_clear()
