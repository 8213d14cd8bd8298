"""Edit the code of one room in many small ways, and see which edits the tests of the room notice.

    python -m benchmarks.house.room_edits theory/softmax --out before.json    # 40 edits, drawn by --seed
    python -m benchmarks.house.room_edits --again before.json --out after.json

Run it before and after the tests or the code of a room are rewritten: what was noticed has to stay noticed. An edit is
found again by its file, the qualified name of the function around it, what stood there and what took its place; where
these fit several places, by the line, then by the order. An edit whose function has left its file is looked for in the
whole room, or in another that is named beside `--again`.

The edits are those of `benchmarks.mutants`, here with refusals and tolerances too, and one more kind, `logic`: `==` for
`!=`, `and` for `or`, a `not` lost, True for False. The tests of a room are the folder and the files in tests/ that
mirror it, and its doctests; `--tests` names others. Each edit is made in a scratch copy of the tree, and the tests stop
at the first that fails.

`--count` is the number of edits, `--out` the file of the findings. Exit status: 0, 1 if an edit is no longer noticed,
2 if the tests fail without any edit.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.mutants.edits import KINDS, Edit, Finder, sample
from benchmarks.timing import command

ROOT = Path(__file__).parents[2]

LOGIC: dict[type[ast.AST], tuple[str, str]] = {
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip

HUNG = 10
"""Tests that take this many times the CPU time of the unedited run, and a minute, are stopped: they noticed."""

MEMORY = 16 << 30
"""Bytes of data that the tests of an edit may hold."""

NAMES = ("file", "function", "kind", "before", "after")
"""Fields by which an edit is found again."""


class _Logic(Finder, ast.NodeVisitor):
    """Finds what decides between two ways, beside what the finder of quantities finds."""

    def visit_Compare(self, node: ast.Compare) -> None:
        """A comparison for equality, identity or membership."""
        if len(node.ops) == 1 and type(node.ops[0]) in LOGIC:
            self._operator(node, "logic", node.left, *LOGIC[type(node.ops[0])])
        super().visit_Compare(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """The first `and` or `or` of a row."""
        if len(node.values) == 2:
            self._operator(node, "logic", node.values[0], *LOGIC[type(node.op)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """A `not`."""
        if isinstance(node.op, ast.Not):
            self._replace(node, "logic", self._text(node.operand))
        super().visit_UnaryOp(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """True or False."""
        if isinstance(node.value, bool):
            self._replace(node, "logic", str(not node.value))
        super().visit_Constant(node)


def in_room(root: Path, room: str) -> list[Edit]:
    """Return all edits of the files of a room, a folder or one file below `root`."""
    place, found = root / room, list[Edit]()
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        file = str(path.relative_to(root))
        finder = _Logic(root, file)
        found += dict.fromkeys((*finder.found, *finder.passed))
    return found


def mirror_of(root: Path, room: str) -> list[str]:
    """Return the tests that mirror a room, and the room itself, for its doctests.

    Raises
    ------
    ValueError
        If no tests mirror it.
    """
    place = Path(room).with_suffix("")
    files = (root / "tests" / place.parent).glob(f"test_{place.name.lstrip('_')}*.py")
    found = sorted(str(p.relative_to(root)) for p in (root / "tests" / place, *files) if p.exists())
    if not found:
        raise ValueError(f"no tests mirror {room}: name some with --tests")
    return [*found, room]


# --- an edit found again ---------------------------------------------------------------------------------------------


def kept(edit: Edit, root: Path, every: Sequence[Edit]) -> dict[str, Any]:
    """Return what an edit is found again by, among all edits of its room."""
    line, becomes = edit.lines(root)
    named = {name: getattr(edit, name) for name in NAMES}
    number = [e for e in every if _fits(e, named, NAMES)].index(edit)
    return {**named, "line": line, "becomes": becomes, "number": number}


def again(row: dict[str, Any], root: Path, every: Sequence[Edit]) -> Edit | None:
    """Return the edit of the room that a row of a file describes; None if there is none any more."""
    number, places = row["number"], [[e for e in every if _fits(e, row, n)] for n in (NAMES, NAMES[1:])]
    for found in places:
        if same := [edit for edit in found if edit.lines(root)[0] == row["line"]]:
            return found[number] if number < len(found) and found[number] in same else same[0]
    found = places[0] or places[1]
    return found[min(number, len(found) - 1)] if found else None


def _fits(edit: Edit, row: dict[str, Any], names: Sequence[str]) -> bool:
    return all(getattr(edit, name) == row[name] for name in names)


# --- the scratch copy ------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """Outcome of a run of tests: the one that failed first, empty if all passed, and their CPU seconds."""

    ended_by: str
    seconds: float


class Copy:
    """A copy of the tree in which edits are tried."""

    def __init__(self, root: Path, place: Path) -> None:
        words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout
        self.place = place
        for name in filter(None, listed.split("\0")):
            if (root / name).is_file():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, place / name)

    @contextlib.contextmanager
    def edited(self, edit: Edit) -> Iterator[None]:
        """The file with the edit; its bytecode, told by its second and size alone, is thrown away."""
        file = self.place / edit.file
        before = file.read_bytes()
        # An edit of the same length within the same second would leave the old bytecode valid.
        Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)
        file.write_text(edit.apply(self.place), encoding="utf-8")
        try:
            yield
        finally:
            file.write_bytes(before)

    def run(self, tests: Sequence[str], limit: float | None = None) -> Run:
        """The tests, up to the first that fails; without a limit their bytecode is kept for later runs."""

        def bounded() -> None:
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
                resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))

        words = ["-x", "-q", "--tb=no", "-rfE", "--no-header", "-p", "no:cacheprovider", *tests]
        kept = {} if limit is None else {"PYTHONDONTWRITEBYTECODE": "1"}
        environment = {**os.environ, "PYTHONPATH": str(self.place), "OMP_NUM_THREADS": "1", **kept}
        # Examples that failed under one edit would be tried first under the next.
        shutil.rmtree(self.place / ".hypothesis", ignore_errors=True)
        before = _cpu()
        with subprocess.Popen(
            [sys.executable, "-m", "pytest", *words], cwd=self.place, env=environment, text=True, preexec_fn=bounded,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        ) as pytest:  # fmt: skip
            try:
                # A test that waits for ever uses no CPU time, so the wall time is bounded too.
                told, _ = pytest.communicate(timeout=None if limit is None else 60 + 10 * limit)
            except subprocess.TimeoutExpired:
                os.killpg(pytest.pid, signal.SIGKILL)
                told, _ = pytest.communicate()
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", told, flags=re.MULTILINE)
        last = told.strip().splitlines()[-1:] or [""]
        ended_by = failed[0] if failed else f"status {pytest.returncode}: {last[0][:100]}"
        return Run("" if pytest.returncode == 0 else ended_by, round(_cpu() - before, 1))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# --- the command -----------------------------------------------------------------------------------------------------


def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Draw edits or find them again, try each, and write what came out; the exit status."""
    parser = command("benchmarks.house.room_edits", __doc__, count=40, seed=1)
    parser.add_argument("room", nargs="?")
    parser.add_argument("--again", type=Path)
    parser.add_argument("--tests", nargs="+")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(words)
    if not (asked.room or asked.again):
        parser.error("name a room or --again FILE")
    earlier: dict[str, Any] = json.loads(asked.again.read_text(encoding="utf-8")) if asked.again else {}
    room = (asked.room or earlier["room"]).rstrip("/")
    tests, every = asked.tests or mirror_of(root, room), in_room(root, room)
    if earlier:
        chosen = [(row, again(row, root, every)) for row in earlier["edits"]]
    else:
        drawn = sample(every, asked.count, asked.seed, root, (*KINDS, "logic"))
        chosen = [(kept(edit, root, every), edit) for edit in drawn]
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(root, Path(folder))
        plain = copy.run(tests)
        if plain.ended_by:
            print(f"without any edit {' '.join(tests)} end with {plain.ended_by}", file=sys.stderr)
            return 2
        rows: list[dict[str, Any]] = []
        found = {"room": room, "seed": earlier.get("seed", asked.seed), "tests": tests, "edits": rows}
        for row, edit in chosen:
            run = Run("", 0.0)
            if edit:
                with copy.edited(edit):
                    run = copy.run(tests, HUNG * plain.seconds + 60)
            # empty where no test failed, None where the edit is gone
            rows.append({**row, "killed_by": run.ended_by if edit else None, "seconds": run.seconds})
            _say("no longer there" if not edit else run.ended_by or "SURVIVES", row, sys.stderr)
            if asked.out:
                asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    pairs = zip(rows, earlier.get("edits", rows), strict=True)
    lost = [row for row, old in pairs if old["killed_by"] and row["killed_by"] == ""]
    for row in lost:
        _say("no longer noticed", row, sys.stdout)
    there = [row for row in rows if row["killed_by"] is not None]
    killed, gone = sum(bool(row["killed_by"]) for row in there), len(rows) - len(there)
    told = f"{killed} of {len(there)} edits are noticed, {gone} are gone, {len(lost)} are no longer noticed"
    print(f"{told}; {sum(row['seconds'] for row in rows):.0f} CPU s")
    return 1 if lost else 0


def _say(what: str, row: dict[str, Any], stream: Any) -> None:
    place = f"{row['file']} {row['function']}"
    print(f"{what}: {place}: {row['line']} -> {row['becomes']}", file=stream, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
