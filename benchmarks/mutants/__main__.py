"""Would the report notice? Plants one-line errors in theory and simulation and judges the claims that execute them.

    python -m benchmarks.mutants --folder campaign                 # 100 edits, about 20 minutes on two cores
    python -m benchmarks.mutants --folder campaign --edits 300 --seed 7 --top theory
    python -m benchmarks.mutants.record --folder campaign          # into docs/mutants.md and the report page

The folder holds a report of the unedited code (made first if it is not there), which lines each claim executes, and
`mutants.jsonl` with a line per edit; a campaign that was stopped continues, and one that is begun again with more
patience tries anew what was unfinished.

Edits are drawn from lines that a claim executes and that state a quantity: no refusals, tolerances or texts. An edit
is caught if a claim comes out against its expected verdict or as one that no replicates would decide, crashes, never
ends, or is no longer let in. It is inert if
nothing that claims read moves by more than rounding: no number of any row, nor, of draws, of the first sixteen
replicates at each point. It is unfinished if the claims that execute it take longer than the patience.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.mutants import tables
from benchmarks.mutants.baseline import baseline, reach_of
from benchmarks.mutants.edits import Edit, edits, passed_by, sample
from benchmarks.mutants.reach import FOLDERS, ROOT, Reach
from benchmarks.mutants.trial import Told, Trial, preload

FOUND, AGAIN, CAMPAIGN = "mutants.jsonl", "again.jsonl", "campaign.json"

Findings = dict[tuple[Any, ...], dict[str, Any]]


def main(argv: Sequence[str] | None = None) -> int:
    """Run or continue a campaign and print its tables."""
    asked = _asked(argv)
    asked.folder.mkdir(parents=True, exist_ok=True)
    try:
        before, costs = baseline(asked.folder, asked.workers)
        reach = reach_of(asked.folder, asked.workers)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    origin = _origin(asked)
    drawn = [_drawn(reach, top, asked) for top in asked.top]
    chosen = _survivors(asked.again) if asked.again else [edit for one in drawn for edit in one.chosen]

    def on_trial(edit: Edit) -> Trial:
        told = Told(*reach.at(edit.file, edit.line), before, costs, asked.folder, asked.patience)
        return Trial(edit, told)

    preload()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # children are ended, what they found is kept
    found = campaign(
        chosen,
        on_trial,
        asked.folder / (AGAIN if asked.again else FOUND),
        asked.workers,
        say=_say,
        patience=asked.patience,
    )
    if not asked.again:
        _file(
            asked.folder / CAMPAIGN,
            [tables.summary(one.counts, found, origin, ROOT) for one in drawn],
        )
    print(tables.told(found))
    return 0


def _asked(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.mutants", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--folder", type=Path, required=True, help="of the campaign; kept and continued")
    parser.add_argument("--edits", type=int, default=100, metavar="N", help="of all folders together")
    parser.add_argument("--top", choices=FOLDERS, action="append", help="one folder only (repeatable)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the choice of edits")
    parser.add_argument(
        "--patience", type=float, default=60.0, metavar="S", help="seconds of claims per edit"
    )
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="edits on trial at a time")
    parser.add_argument(
        "--again", type=Path, metavar="FILE", help="the survivors of this campaign's file instead"
    )
    asked = parser.parse_args(argv)
    asked.top = list(dict.fromkeys(asked.top or FOLDERS))
    return asked


@dataclass(frozen=True)
class Drawn:
    """The edits of a folder that are tried, and how many there were to choose from."""

    chosen: list[Edit]
    counts: dict[str, Any]


def _drawn(reach: Reach, top: str, asked: argparse.Namespace) -> Drawn:
    """Edits of lines that a claim executes, as many of each kind."""
    files = sorted(str(f.relative_to(ROOT)) for f in (ROOT / top).rglob("*.py"))
    found = [edit for file in files for edit in edits(ROOT, file)]
    passed = sum(len(passed_by(ROOT, file)) for file in files)
    executed = [edit for edit in found if any(reach.at(edit.file, edit.line))]
    counts = {
        "folder": top,
        "passed": passed,
        "not_executed": len(found) - len(executed),
        "executed": len(executed),
    }
    _say(
        f"{top}: {passed} edits of refusals, tolerances and texts left out, {counts['not_executed']} in code that no"
        f" claim executes, {len(executed)} in code that one does"
    )
    return Drawn(sample(executed, asked.edits // len(asked.top), asked.seed, ROOT), counts)


def _survivors(file: Path) -> list[Edit]:
    kept = known(file).values()
    fields = Edit.__dataclass_fields__
    return [
        Edit(**{n: row[n] for n in fields}) for row in kept if row["outcome"] not in (*tables.CAUGHT, "inert")
    ]


class OnTrial(Protocol):
    """An edit that is being tried; `poll` returns the finding once there is one."""

    def poll(self) -> dict[str, Any] | None:
        """What was found, None as long as it is tried."""

    def stop(self) -> None:
        """End it."""


def known(file: Path) -> Findings:
    """What a file of findings holds, by edit; a line that a killed campaign left half written is dropped."""
    found: Findings = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        found[_name(row)] = row
    return found


def campaign(
    chosen: Sequence[Edit],
    on_trial: Callable[[Edit], OnTrial],
    file: Path,
    workers: int,
    *,
    say: Callable[[str], None],
    wait: float = 0.02,
    patience: float = 0.0,
) -> list[dict[str, Any]]:
    """Try what has not been tried yet, or for want of patience not to its end, some side by side.

    One finding per edit, each filed when it is there.
    """
    found = {name: row for name, row in known(file).items() if not _left(row, patience)}
    waiting = [edit for edit in chosen if _name(edit.json()) not in found]
    if file.exists():
        file.write_text("".join(f"{json.dumps(row)}\n" for row in found.values()))
    underway: list[OnTrial] = []
    started, total = time.monotonic(), len(waiting)
    with file.open("a") as log:
        try:
            while waiting or underway:
                while waiting and len(underway) < workers:
                    underway.append(on_trial(waiting.pop(0)))
                time.sleep(wait)
                for trial, row in [(t, r) for t in underway if (r := t.poll()) is not None]:
                    underway.remove(trial)
                    found[_name(row)] = row
                    log.write(json.dumps(row) + "\n")
                    log.flush()
                    tried = total - len(waiting) - len(underway)
                    left = (time.monotonic() - started) / tried * (total - tried)
                    say(f"{tried} of {total}, {left:.0f} s left: {tables.line(row)} {row['seconds']} s")
        finally:
            for trial in underway:
                trial.stop()
    return [found[_name(edit.json())] for edit in chosen]


def _left(row: dict[str, Any], patience: float) -> bool:
    return row["outcome"] == "unfinished" and row.get("patience", math.inf) < patience


def _name(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["file"], row["line"], row["column"], row["end"], row["after"])


def _origin(asked: argparse.Namespace) -> dict[str, Any]:
    """Seed, commit and day of a campaign."""
    words = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    commit = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return {"seed": asked.seed, "commit": commit, "date": time.strftime("%Y-%m-%d", time.gmtime())}


def _file(file: Path, made: Sequence[dict[str, Any]]) -> None:
    """Put campaigns of folders into the file, in the place of earlier ones of the same folders."""
    kept = json.loads(file.read_text())["folders"] if file.exists() else []
    by_name = {one["folder"]: one for one in (*kept, *made)}
    file.write_text(json.dumps({"folders": list(_in_order(by_name))}, indent=1) + "\n")


def _in_order(by_name: dict[str, Any]) -> Iterator[Any]:
    return (by_name[top] for top in FOLDERS if top in by_name)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    raise SystemExit(main())
