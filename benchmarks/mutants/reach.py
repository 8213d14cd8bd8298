"""Which claims execute which line, while their experiments draw and while they are judged."""

from __future__ import annotations

import functools
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.mutants.definitions import readers, source

__all__ = ["FOLDERS", "ROOT", "Reach", "joined", "record"]

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("theory", "simulate")


class Reach:
    """The lines that claims execute, and what each claim costs.

    Parameters
    ----------
    found
        As `joined` returns it.
    root
        Below it are the files.
    """

    def __init__(self, found: dict[str, Any], root: Path = ROOT) -> None:
        self._root = root
        self._lines: dict[str, dict[str, list[int]]] = found["lines"]
        self._contexts: list[str] = found["contexts"]
        self.seconds: dict[str, float] = found["seconds"]

    def at(self, file: str, line: int) -> tuple[list[str], list[str]]:
        """Claims that execute a line when their experiments draw, and those that do when they are judged.

        A claim may be among both. A line that leaves no trace of its own has that of its statement; one that runs
        when its module is loaded, those of the lines that read what it defines.
        """
        contexts = {self._contexts[i] for place in self._places(file, line) for i in self._traces(*place)}
        drawn = {name.removeprefix("drawn ") for name in contexts if name.startswith("drawn ")}
        judged = {name.removeprefix("judged ") for name in contexts if name.startswith("judged ")}
        return sorted(drawn), sorted(judged)

    def _traces(self, file: str, line: int) -> list[int]:
        return self._lines.get(file, {}).get(str(line), [])

    @functools.cache  # noqa: B019 - a campaign has one
    def _places(self, file: str, line: int) -> list[tuple[str, int]]:
        path = self._root / file
        here = source(path)
        if line in here.inside:
            return [(file, line)]
        if (first := here.statement(line)) in here.inside:
            return [(file, first)]
        beside = tuple(self._root / other for other in self._lines)
        return [(str(f.relative_to(self._root)), n) for f, n in readers(path, line, beside)]

    def files(self) -> list[str]:
        """Those of which any line is executed."""
        return sorted(self._lines)


def record(part: int, parts: int, store: Path) -> dict[str, Any]:
    """Follow every `parts`-th claim of the default tier, from `part` on, line by line.

    A claim is judged on the replicates of `store`, so that no draws come in between; of each of its experiments one
    block is drawn at each point. What functions remember is forgotten between claims.
    """
    import coverage

    follow = coverage.Coverage(
        data_file=None, include=[f"{ROOT}/{top}/*" for top in FOLDERS], config_file=False
    )
    follow.start()
    from simulate.monte_carlo import SerialExecutor, run_block
    from verify.claims import registry
    from verify.model import Claim, Identity, StatisticalProperty
    from verify.running.engine import Session
    from verify.running.settings import Settings
    from verify.running.store import Store

    seconds: dict[str, float] = {}

    def under(name: str, call: Callable[[], object]) -> None:
        _forget()
        follow.switch_context(name)
        started = time.process_time()
        call()
        seconds[name] = time.process_time() - started
        follow.switch_context("between")

    judged = {row["claim"] for row in json.loads((store / "results.json").read_text())["rows"]}
    mine = [claim for claim in registry.select() if claim.id in judged][part::parts]
    settings = Settings()
    drawn: dict[str, list[str]] = {}
    for number, claim in enumerate(mine):
        print(f"{part}: {number} of {len(mine)}: {claim.id}", file=sys.stderr, flush=True)
        with Store(store, print) as kept:
            session = Session([claim], settings, SerialExecutor(), alpha=registry.alpha, store=kept)
            under(f"judged {claim.id}", functools.partial(session.rows, claim))
        if isinstance(claim, Claim):
            readers = drawn.setdefault(claim.experiment.id, [])
            readers.append(claim.id)
            if len(readers) > 1:
                continue

            def blocks(claim: Claim = claim) -> None:
                for point in claim.experiment.points:
                    run_block(
                        claim.experiment.simulate,
                        experiment=claim.experiment.id,
                        point=point,
                        seed=2024,
                        index=0,
                    )

            under(f"drawn {claim.experiment.id}", blocks)
        elif isinstance(claim, StatisticalProperty):
            alone = Session([claim], Settings(replicates=96), SerialExecutor(), alpha=registry.alpha)
            under(f"drawn {claim.id}", functools.partial(alone.rows, claim))
        elif isinstance(claim, Identity):
            pass  # routes are computed when it is judged
    follow.stop()
    return _gathered(follow.get_data(), seconds)


def joined(
    parts: Iterable[dict[str, Any]], readers: dict[str, list[str]], judged: dict[str, float]
) -> dict[str, Any]:
    """One record of several; experiments become the claims that read them, at the cost of a whole run."""
    contexts: list[str] = []
    index: dict[str, int] = {}
    lines: dict[str, dict[str, set[int]]] = {}
    for found in parts:
        for file, rows in found["lines"].items():
            for line, numbers in rows.items():
                for number in numbers:
                    kind, _, name = found["contexts"][number].partition(" ")
                    for claim in readers.get(name, [name]):
                        words = f"{kind} {claim}"
                        place = index.setdefault(words, len(index))
                        lines.setdefault(file, {}).setdefault(line, set()).add(place)
    contexts = list(index)
    return {
        "contexts": contexts,
        "seconds": judged,
        "lines": {f: {n: sorted(s) for n, s in rows.items()} for f, rows in lines.items()},
    }


def _gathered(data: Any, seconds: dict[str, float]) -> dict[str, Any]:
    contexts: dict[str, int] = {}
    lines: dict[str, dict[str, list[int]]] = {}
    for file in data.measured_files():
        rows = {
            str(line): [
                contexts.setdefault(n, len(contexts)) for n in names if n.startswith(("drawn ", "judged "))
            ]
            for line, names in data.contexts_by_lineno(file).items()
        }
        lines[os.path.relpath(file, ROOT)] = {line: numbers for line, numbers in rows.items() if numbers}
    return {"contexts": list(contexts), "seconds": seconds, "lines": lines}


def _forget() -> None:
    """Empty what functions of theory, simulate and the claims remember; not what the registry has admitted."""
    for found in gc.get_objects():
        if type(found) is functools._lru_cache_wrapper:  # isinstance would ask lazy modules for their class
            module = str(getattr(found, "__module__", ""))
            top = module.partition(".")[0]
            if top in FOLDERS or (module.startswith("verify.claims") and not module.endswith(".registry")):
                found.cache_clear()


def main() -> None:
    """One part, for the campaign: `python -m benchmarks.mutants.reach PART PARTS STORE FILE`."""
    part, parts, store, file = sys.argv[1:]
    unfinished = Path(f"{file}.unfinished")
    unfinished.write_text(json.dumps(record(int(part), int(parts), Path(store))))
    unfinished.replace(file)


if __name__ == "__main__":
    main()
