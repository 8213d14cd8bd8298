"""Plant one-line errors in theory and simulation, and judge whether the claims that execute them notice.

    python -m benchmarks.mutants --folder campaign                 # 100 edits, about 20 minutes on two cores
    python -m benchmarks.mutants --folder campaign --edits 300 --seed 7 --top theory
    python -m benchmarks.mutants.record --folder campaign          # into docs/mutants.md and the report page

`--edits` counts those of all folders together, or of one folder with `--top`; `--seed` chooses them, `--workers` are
tried at a time, and claims are judged for `--patience` seconds of each.

The folder holds a report of the unedited code (made first if it is not there), which lines each claim executes, and
`mutants.jsonl` with a line per edit. A campaign that was stopped continues; with more patience it repeats unfinished
edits.

Edits are drawn from lines that a claim executes and that state a quantity: no refusals, tolerances or texts. An edit
is caught if a claim comes out against its expected verdict or as undecidable, crashes, never ends, or is no longer
admitted. It is inert if no number that claims read moves by more than rounding: no number of any row, and no score of
the first sixteen replicates at each point. It is unfinished if the claims that execute it take longer than the
patience.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.mutants.edits import Edit, edits, passed_by, sample
from benchmarks.mutants.reach import FOLDERS, ROOT, SEED, Executed, Reach, record
from benchmarks.mutants.record import Finding, summary, written
from benchmarks.mutants.trial import CAUGHT, Row, Told, Trial, five, preload
from benchmarks.timing import command

ENOUGH = 0.9
"""Share of the runs that must have a block in the store; some runs are never stored."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run or continue a campaign and print its tables."""
    parser = command("benchmarks.mutants", __doc__, edits=100, seed=1, workers=2, patience=60.0)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--top", choices=FOLDERS, action="append")
    options = parser.parse_args(argv)
    folder, workers = options.folder, options.workers
    folder.mkdir(parents=True, exist_ok=True)
    try:
        before, costs = baseline(folder, workers)
        reach = reach_of(folder, workers)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    tops = list(dict.fromkeys(options.top or FOLDERS))
    drawn = {top: _sample_executed(reach, top, options.edits // len(tops), options.seed) for top in tops}

    def on_trial(edit: Edit) -> Trial:
        return Trial(edit, Told(*reach.at(edit.file, edit.line), before, costs, folder, options.patience))

    preload()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that children are ended and findings kept
    chosen = [edit for edits_of_top, _ in drawn.values() for edit in edits_of_top]
    found = campaign(chosen, on_trial, folder / "mutants.jsonl", workers, patience=options.patience)
    words = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    commit = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    origin = {"seed": options.seed, "commit": commit, "date": time.strftime("%Y-%m-%d", time.gmtime())}
    for top, (_, counts) in drawn.items():
        made = written([summary(counts | origin, found, ROOT)])
        (folder / f"campaign-{top}.json").write_text(made + "\n")
    for row in sorted(found, key=lambda row: row["outcome"]):
        if row["outcome"] not in CAUGHT:
            moved = f"{row['run']} of {row['asked']} claims, {row['margins']:.2g} margins {row['mover']}"
            print(f"{line(row)} ({moved})")
    counts = Counter(row["outcome"] for row in found)
    caught, live = sum(counts[name] for name in CAUGHT), len(found) - counts["inert"]
    print(f"{caught} of {live} caught, {caught / max(live, 1):.0%}; {dict(counts.most_common())}")
    return 0


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- the unedited code


def baseline(folder: Path, workers: int) -> tuple[dict[str, Row], dict[str, float]]:
    """Return rows by id and seconds by claim of the report in a folder; make the report if there is none.

    Raises
    ------
    ValueError
        If the report in the folder is of other code.
    """
    from verify.results import load

    if not (folder / "results.json").exists():
        _log("making a report of the unedited code, some minutes")
        words = ["report", "--report-dir", str(folder), "--workers", str(workers), "--seed", str(SEED)]
        subprocess.run([sys.executable, "-m", "verify.cli", *words], cwd=ROOT, check=False)
    if not is_of_this_code(folder):
        raise ValueError(f"{folder} holds a report of other code; name an empty folder")
    rows = load(folder / "results.json").rows
    before = {row.id: Row(row.verdict, five(row.points)) for row in rows}
    return before, {row.claim: row.seconds for row in rows}


def is_of_this_code(folder: Path) -> bool:
    """Whether the code here would draw the replicates of a folder."""
    from verify.claims import registry
    from verify.model import Claim
    from verify.results import load
    from verify.running.origin import filed_under
    from verify.running.store import Store

    judged = {row.claim for row in load(folder / "results.json").rows}  # the others have no block
    places = [c.experiment for c in registry.claims() if isinstance(c, Claim) and c.id in judged]
    filed = [filed_under(e.simulate, e.id, e.points[0], SEED, "cpu") for e in places]
    where = [one for one in filed if one is not None]  # code that cannot be hashed is never stored
    with Store(folder, lambda _: None) as kept:
        held = sum(bool(kept.read(one, 1)) for one in where)
    return held >= ENOUGH * len(where)


def reach_of(folder: Path, workers: int) -> Reach:
    """Return the lines that each claim executes, from the folder or recorded there."""
    file = folder / "reach.json"
    if not file.exists():
        _log("tracing the lines of every claim, some minutes")
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            found: Executed = {}
            for part in pool.map(partial(record, parts=workers, store=folder), range(workers)):
                found |= part
        file.write_text(json.dumps(found))
    return Reach(json.loads(file.read_text()))


def _sample_executed(reach: Reach, top: str, count: int, seed: int) -> tuple[list[Edit], dict[str, Any]]:
    """Sample edits of lines that a claim executes, evenly by kind; also return the numbers of edits."""
    files = sorted(str(f.relative_to(ROOT)) for f in (ROOT / top).rglob("*.py"))
    found = [edit for file in files for edit in edits(ROOT, file)]
    executed = [edit for edit in found if any(reach.at(edit.file, edit.line))]
    counts = {
        "folder": top,
        "passed": sum(len(passed_by(ROOT, file)) for file in files),
        "not_executed": len(found) - len(executed),
        "executed": len(executed),
    }
    _log(f"edits: {counts}")
    return sample(executed, count, seed, ROOT), counts


# --- edits on trial


def known(file: Path) -> dict[tuple[Any, ...], Finding]:
    """Return the findings of a file by edit, without an incomplete line of a killed campaign."""
    found: dict[tuple[Any, ...], Finding] = {}
    for text in file.read_text().splitlines() if file.exists() else []:
        try:
            row = json.loads(text)
        except ValueError:
            continue
        found[_edit_key(row)] = row
    return found


def campaign(
    chosen: Sequence[Edit],
    on_trial: Callable[[Edit], Any],
    file: Path,
    workers: int,
    *,
    wait: float = 0.02,
    patience: float = 0.0,
) -> list[Finding]:
    """Try the edits without a finding, or unfinished with less patience, several at a time.

    Returns one finding per edit; each is written to the file at once.
    """
    found = {
        name: row
        for name, row in known(file).items()
        if row["outcome"] != "unfinished" or row.get("patience", math.inf) >= patience
    }
    waiting = [edit for edit in chosen if _edit_key(edit._asdict()) not in found]
    # A killed campaign may have left half a line, to which the next one would be appended.
    if file.exists():
        file.write_text("".join(f"{json.dumps(row)}\n" for row in found.values()))
    underway, total = list[Any](), len(waiting)
    with file.open("a") as log:
        try:
            while waiting or underway:
                while waiting and len(underway) < workers:
                    underway.append(on_trial(waiting.pop(0)))
                time.sleep(wait)
                for trial, row in [(t, r) for t in underway if (r := t.poll()) is not None]:
                    underway.remove(trial)
                    found[_edit_key(row)] = row
                    log.write(json.dumps(row) + "\n")
                    log.flush()
                    tried = total - len(waiting) - len(underway)
                    _log(f"{tried} of {total}: {line(row)} {row['seconds']} s")
        finally:
            for trial in underway:
                trial.stop()
    return [found[_edit_key(edit._asdict())] for edit in chosen]


def _edit_key(row: Finding) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("file", "line", "column", "end", "after"))


def line(row: Finding) -> str:
    """Return a line about an edit and its outcome."""
    where = f"{row['file']}:{row['line']}"
    return f"{row['outcome']:9} {row['kind']:13} {where}  {row['before']} -> {row['after']}  {row['claim']}"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    raise SystemExit(main())
