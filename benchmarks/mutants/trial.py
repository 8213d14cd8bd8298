"""One edit on trial: a forked process imports the edited code and judges the claims that execute it."""

from __future__ import annotations

import importlib.util
import json
import os
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from benchmarks.mutants.child import Finding, Row, judge
from benchmarks.mutants.edits import Edit
from benchmarks.mutants.reach import ROOT

__all__ = ["Told", "Trial", "preload"]

OWN = ("losscurv", "theory", "simulate", "verify")

HUNG = 10.0
"""A claim that takes this many times as long as without the edit, and thrice the patience, never ends."""


class Told(NamedTuple):
    """What a child is told: see `benchmarks.mutants.child.judge`."""

    drawn: Sequence[str]
    judged: Sequence[str]
    before: Mapping[str, Row]
    costs: Mapping[str, float]
    store: Path
    seconds: float


class Trial:
    """A child that tries one edit; what it found comes through a pipe.

    Parameters
    ----------
    edit
        Of a file of `theory` or `simulate`.
    told
        What it is judged by.
    """

    def __init__(self, edit: Edit, told: Told) -> None:
        self.edit, self._told = edit, told
        self._last = time.monotonic()
        self._read, write = os.pipe()
        self._heard, self._killed = b"", False
        self.pid = os.fork()
        if self.pid == 0:
            _child(write, edit, told)
        os.close(write)

    def poll(self) -> dict[str, Any] | None:
        """What came out, or None while the child runs."""
        while select.select([self._read], [], [], 0)[0]:
            chunk = os.read(self._read, 1 << 16)
            if not chunk:
                _, _, used = os.wait4(self.pid, 0)
                os.close(self._read)
                return self._outcome(used.ru_utime + used.ru_stime)
            self._heard += chunk
            self._last = time.monotonic()
        doing = self._finding().get("doing_seconds", 0.0)
        if not self._killed and time.monotonic() - self._last > 3 * self._told.seconds + HUNG * doing:
            self._killed = True
            os.kill(self.pid, signal.SIGKILL)
        return None

    def stop(self) -> None:
        """End the child."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _finding(self) -> dict[str, Any]:
        lines = [line for line in self._heard.decode().splitlines() if line.endswith("}")]
        return json.loads(lines[-1]) if lines else asdict(Finding())

    def _outcome(self, cpu: float) -> dict[str, Any]:
        found = self._finding()
        if found["doing"]:  # the child has not said its last word
            found |= {"outcome": "hung" if self._killed else "broken", "claim": found["doing"]}
            found["error"] = "" if self._killed else "the process died"
        asked = len({*self._told.drawn, *self._told.judged})
        kept = {name: value for name, value in found.items() if not name.startswith("doing")}
        return {
            **self.edit.json(),
            **kept,
            "asked": asked,
            "seconds": round(cpu, 1),
            "patience": self._told.seconds,
        }


def preload() -> None:
    """Import the libraries once, before any fork; each child imports the code on trial anew."""
    from verify.claims import registry

    for module in ("torch.func", "torch._dynamo", "torch.fx.experimental.symbolic_shapes", "scipy.stats",
                   "scipy.special", "scipy.optimize", "scipy.integrate", "sympy", "hypothesis.strategies",
                   "mpmath"):  # fmt: skip
        importlib.import_module(module)
    registry.papers()


def _forget_own_code() -> None:
    """The next import of our own modules reads them anew: for a child alone, since two copies of a module go wrong."""
    for name in [n for n in sys.modules if n.partition(".")[0] in OWN]:
        del sys.modules[name]


class _Edited(MetaPathFinder, SourceFileLoader):
    """Finds one module, with the edited source."""

    def __init__(self, edit: Edit) -> None:
        self._edit = edit
        parts = Path(edit.file).with_suffix("").parts
        self._package = parts[-1] == "__init__"
        super().__init__(".".join(parts[:-1] if self._package else parts), str(ROOT / edit.file))

    def find_spec(self, fullname: str, _path: Any, _target: Any = None) -> ModuleSpec | None:
        """The edited module and no other."""
        if fullname != self.name:
            return None
        inside = [str(Path(self.path).parent)] if self._package else None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=self, submodule_search_locations=inside
        )

    def get_code(self, _fullname: str) -> CodeType:
        """Never the bytecode of the file on disk."""
        return compile(self._edit.apply(ROOT), self.path, "exec", dont_inherit=True)


def _child(write: int, edit: Edit, told: Told) -> None:
    """Judge the edit in this process; never return."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    try:
        _forget_own_code()
        sys.meta_path.insert(0, _Edited(edit))
        judge(*told, tell=lambda found: os.write(write, (json.dumps(found) + "\n").encode()) and None)
    finally:
        os._exit(0)
