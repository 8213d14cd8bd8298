"""Would the report notice? Plants one-line errors in theory and simulation and judges the claims that execute them.

    python -m benchmarks.mutants --folder campaign                 # 100 edits, about 20 minutes on two cores
    python -m benchmarks.mutants --folder campaign --edits 300 --seed 7 --top theory
    python -m benchmarks.mutants.record --folder campaign          # into docs/mutants.md and the report page

The folder holds a report of the unedited code (made first if it is not there), which lines each claim executes, and
`mutants.jsonl` with a line per edit; a campaign that was stopped continues, and one that is begun again with more
patience tries anew what was unfinished.

Edits are drawn from lines that a claim executes and that state a quantity: no refusals, tolerances or texts. An edit
is caught if a claim comes out against its expected verdict or as one that no replicates would decide, crashes, never
ends, or is no longer let in. It is inert if nothing that claims read moves by more than rounding: no number of any row,
nor, of draws, of the first sixteen replicates at each point. It is unfinished if the claims that execute it take longer
than the patience.
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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from benchmarks.mutants.edits import Edit, edits, passed_by, sample
from benchmarks.mutants.reach import FOLDERS, ROOT, SEED, Reach, joined
from benchmarks.mutants.trial import CAUGHT, Row, Told, Trial, five, preload

ENOUGH = 0.9
"""Share of the runs of which the store must hold a block; some runs are never stored."""

Finding = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Run or continue a campaign and print its tables."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.mutants", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--folder", type=Path, required=True, help="of the campaign; kept and continued")
    parser.add_argument("--edits", type=int, default=100, metavar="N", help="of all folders together")
    parser.add_argument("--top", choices=FOLDERS, action="append", help="one folder only (repeatable)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the choice of edits")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="edits on trial at a time")
    parser.add_argument(
        "--patience", type=float, default=60.0, metavar="S", help="seconds of claims per edit"
    )
    asked = parser.parse_args(argv)
    folder, workers = asked.folder, asked.workers
    folder.mkdir(parents=True, exist_ok=True)
    try:
        before, costs = baseline(folder, workers)
        reach = reach_of(folder, workers)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    tops = list(dict.fromkeys(asked.top or FOLDERS))
    drawn = {top: _drawn(reach, top, asked.edits // len(tops), asked.seed) for top in tops}

    def on_trial(edit: Edit) -> Trial:
        return Trial(edit, Told(*reach.at(edit.file, edit.line), before, costs, folder, asked.patience))

    preload()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # children are ended, what they found is kept
    chosen = [edit for edits_of_top, _ in drawn.values() for edit in edits_of_top]
    found = campaign(chosen, on_trial, folder / "mutants.jsonl", workers, patience=asked.patience)
    words = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    commit = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    origin = {"seed": asked.seed, "commit": commit, "date": time.strftime("%Y-%m-%d", time.gmtime())}
    file = folder / "campaign.json"
    kept = json.loads(file.read_text())["folders"] if file.exists() else []
    by_name = {one["folder"]: one for one in kept}
    by_name |= {top: summary(counts | origin, found, ROOT) for top, (_, counts) in drawn.items()}
    made = [by_name[top] for top in FOLDERS if top in by_name]
    file.write_text(json.dumps({"folders": made}, indent=1) + "\n")
    for row in sorted(found, key=lambda row: row["outcome"]):
        if row["outcome"] not in CAUGHT:
            moved = f"{row['run']} of {row['asked']} claims, {row['margins']:.2g} margins {row['mover']}"
            print(f"{line(row)} ({moved})")
    counts = Counter(row["outcome"] for row in found)
    caught, live = sum(counts[name] for name in CAUGHT), len(found) - counts["inert"]
    print(f"{caught} of {live} caught, {caught / max(live, 1):.0%}; {dict(counts.most_common())}")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- what a campaign compares with


def baseline(folder: Path, workers: int) -> tuple[dict[str, Row], dict[str, float]]:
    """Rows by id and seconds by claim of the report in a folder, which is made if there is none.

    Raises
    ------
    ValueError
        If the report in the folder is of other code.
    """
    from verify.results import load

    if not (folder / "results.json").exists():
        _say("a report of the unedited code comes first, some minutes")
        words = ["report", "--report-dir", str(folder), "--workers", str(workers), "--seed", str(SEED)]
        subprocess.run([sys.executable, "-m", "verify.cli", *words], cwd=ROOT, check=False)
    if not is_of_this_code(folder):
        raise ValueError(
            f"{folder} must hold a report of this code, got one of other code; name an empty folder"
        )
    rows = load(folder / "results.json").rows
    before = {row.id: Row(row.verdict, five(row.points)) for row in rows}
    return before, {row.claim: row.seconds for row in rows}


def is_of_this_code(folder: Path) -> bool:
    """Whether the replicates of a folder are those that the code here would draw."""
    from verify.claims import registry
    from verify.model import Claim
    from verify.running.origin import filed_under
    from verify.running.store import Store

    places = [claim.experiment for claim in registry.claims() if isinstance(claim, Claim)]
    with Store(folder, lambda _: None) as kept:
        where = [filed_under(e.simulate, e.id, e.points[0], SEED, "cpu") for e in places]
        held = sum(one is not None and bool(kept.read(one, 1)) for one in where)
    return held >= ENOUGH * len(places)


def reach_of(folder: Path, workers: int) -> Reach:
    """Return the lines that each claim executes, from the folder or recorded there."""
    file = folder / "reach.json"
    if not file.exists():
        _say("following every claim line by line, some minutes")
        parts = [folder / f"reach-{part}-of-{workers}.json" for part in range(workers)]
        words = [sys.executable, "-m", "benchmarks.mutants.reach"]
        running = [
            subprocess.Popen([*words, str(part), str(workers), str(folder), str(place)],
                             cwd=ROOT, stderr=subprocess.DEVNULL)
            for part, place in enumerate(parts) if not place.exists()
        ]  # fmt: skip
        if [run for run in running if run.wait()]:
            raise ValueError(
                f"claims must be followed, got an error: {' '.join(words)} 0 1 {folder} FILE says which"
            )
        file.write_text(json.dumps(joined([json.loads(place.read_text()) for place in parts])))
    return Reach(json.loads(file.read_text()))


def _drawn(reach: Reach, top: str, count: int, seed: int) -> tuple[list[Edit], dict[str, Any]]:
    """Edits of lines that a claim executes, as many of each kind, and how many there were to choose from."""
    files = sorted(str(f.relative_to(ROOT)) for f in (ROOT / top).rglob("*.py"))
    found = [edit for file in files for edit in edits(ROOT, file)]
    executed = [edit for edit in found if any(reach.at(edit.file, edit.line))]
    counts = {
        "folder": top,
        "passed": sum(len(passed_by(ROOT, file)) for file in files),
        "not_executed": len(found) - len(executed),
        "executed": len(executed),
    }
    _say(f"edits: {counts}")
    return sample(executed, count, seed, ROOT), counts


# --- edits on trial


class OnTrial(Protocol):
    """An edit that is being tried; `poll` returns the finding once there is one."""

    def poll(self) -> Finding | None:
        """What was found, None as long as it is tried."""

    def stop(self) -> None:
        """End it."""


def known(file: Path) -> dict[tuple[Any, ...], Finding]:
    """What a file of findings holds, by edit; a line that a killed campaign left half written is dropped."""
    found: dict[tuple[Any, ...], Finding] = {}
    for text in file.read_text().splitlines() if file.exists() else []:
        try:
            row = json.loads(text)
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
    wait: float = 0.02,
    patience: float = 0.0,
) -> list[Finding]:
    """Try what has not been tried yet, or for want of patience not to its end, some side by side.

    One finding per edit, each filed when it is there.
    """
    found = {
        name: row
        for name, row in known(file).items()
        if row["outcome"] != "unfinished" or row.get("patience", math.inf) >= patience
    }
    waiting = [edit for edit in chosen if _name(edit._asdict()) not in found]
    if file.exists():
        file.write_text("".join(f"{json.dumps(row)}\n" for row in found.values()))
    underway, total = list[OnTrial](), len(waiting)
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
                    _say(f"{tried} of {total}: {line(row)} {row['seconds']} s")
        finally:
            for trial in underway:
                trial.stop()
    return [found[_name(edit._asdict())] for edit in chosen]


def _name(row: Finding) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("file", "line", "column", "end", "after"))


# --- what is kept


def summary(counts: dict[str, Any], found: Iterable[Finding], root: Path) -> dict[str, Any]:
    """Return the record of one folder: numbers of edits, their outcomes, and all that were not caught."""
    mine = [row for row in found if row["file"].startswith(f"{counts['folder']}/")]
    names = ("file", "line", "kind", "outcome", "mover")
    survivors = [
        {name: row[name] for name in names}
        | {"becomes": _edit(row).lines(root)[1], "margins": float(f"{row['margins']:.2g}")}
        for row in mine
        if row["outcome"] not in (*CAUGHT, "inert")
    ]
    kinds, rooms = (dict(_counted(mine, of)) for of in (lambda row: row["kind"], room))
    return {**counts, "kinds": kinds, "rooms": rooms, "survivors": survivors}


def _counted(rows: Sequence[Finding], of: Callable[[Finding], str]) -> Iterator[tuple[str, dict[str, int]]]:
    """Outcomes by what `of` says of a row."""
    for name in sorted({of(row) for row in rows}):
        yield name, dict(Counter(row["outcome"] for row in rows if of(row) == name))


def _edit(row: Finding) -> Edit:
    return Edit(**{name: row[name] for name in Edit._fields})


def room(row: Finding) -> str:
    """The topic that the file of a row belongs to.

    >>> room({"file": "theory/own_direction.py"}), room({"file": "theory/fisher/network.py"})
    ('theory/own_direction', 'theory/fisher')
    """
    top, inside = PurePosixPath(row["file"]).parts[:2]
    return f"{top}/{inside.removesuffix('.py')}"


def line(row: Finding) -> str:
    """An edit and what came of it."""
    where = f"{row['file']}:{row['line']}"
    return f"{row['outcome']:9} {row['kind']:13} {where}  {row['before']} -> {row['after']}  {row['claim']}"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    raise SystemExit(main())
