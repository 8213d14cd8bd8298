"""Puts a campaign on record: `verify/judging/campaign.json`, which the report page shows, and docs/mutants.md.

python -m benchmarks.mutants.record --folder campaign     # both files, from the campaign in this folder
python -m benchmarks.mutants.record                       # docs/mutants.md anew from campaign.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.mutants.edits import KINDS
from benchmarks.mutants.reach import FOLDERS, ROOT
from verify.judging.campaign import FILE, Campaign, Outcomes, Survivor, campaigns

__all__ = ["PAGE", "document", "merged"]

PAGE = ROOT / "docs/mutants.md"

HEAD = """# One-line errors

Would the report notice an error in its own code? A campaign plants them one at a time, as a careless author would make
them, in `theory` and in `simulate`, and judges every claim that executes the line, at the budget and with the verdicts
of a report: constants 5 % larger, whole numbers one larger, signs, swaps, lost squares, factors of 1 to 10 %, draws 2 %
larger, sums for means, other normalisations, comparisons the other way round.

- *Not tried*: edits of refusals, tolerances, estimates of memory and texts, and those in code that no claim executes.
- *Inert*: nothing that a claim reads moves by more than rounding: no number of any row, nor, of draws, of the first
  sixteen replicates at each point. Branches for other arguments, routes to the same number, steps of iterations.
- *Caught*: a claim comes out against its expected verdict, or undecided though it must not be (before 2026-11-28 only
  where no number of replicates would decide it), with which a report ends as with a surprise; or, counted apart too, a
  check crashes, never ends, or is no longer let in since it could not fail.
- *Survivors*: all others, the undecided and those that the patience of a campaign did not suffice for among them. Those
  that no claim can catch have their reason in `benchmarks/mutants/equivalent.json`; they stay in the rate. What cancels
  because both sides of a claim share the code is no reason.

Made by `python -m benchmarks.mutants` and `python -m benchmarks.mutants.record`; the number of margins is the most by
which measured minus predicted moved, and where.
"""


def document(made: Iterable[Campaign]) -> str:
    """The page."""
    return "\n".join([HEAD, *(line for one in made for line in _chapter(one))])


def _chapter(one: Campaign) -> Iterator[str]:
    told = one.all
    yield f"## {one.folder}"
    yield ""
    yield (
        f"{told.tried} edits, seed {one.seed}, commit `{one.commit}`, {one.date}: {told.caught} of the {told.live} that"
        f" change a number were caught, {told.rate:.0%} ({told.crashed} of them by a crash or a refusal); {told.inert}"
        f" were inert. They were sampled from {one.executed}; not tried were {one.passed} of refusals, tolerances and"
        f" texts, and {one.not_executed} in code that no claim executes."
    )
    yield ""
    yield from _table("kind", {kind: one.kinds[kind] for kind in KINDS if kind in one.kinds})
    yield from _table("code", one.rooms)
    yield f"Survivors: {len(one.survivors)}, {one.unexplained} of them without a reason."
    yield ""
    yield from _survivors(one.survivors)


def _table(name: str, tallies: Mapping[str, Outcomes]) -> Iterator[str]:
    yield f"| {name} | tried | inert | caught | by a crash | survived | rate |"
    yield "|---|---|---|---|---|---|---|"
    for key, t in tallies.items():
        yield f"| {key} | {t.tried} | {t.inert} | {t.caught} | {t.crashed} | {t.live - t.caught} | {t.rate:.0%} |"
    yield ""


def _survivors(found: Sequence[Survivor]) -> Iterator[str]:
    if not found:
        return
    yield "| where | stands | becomes | outcome | moved by | reason |"
    yield "|---|---|---|---|---|---|"
    for s in sorted(found, key=lambda s: (bool(s.reason), s.file, s.line)):
        moved = f"{s.margins:g} margins of {s.mover}" if s.mover else "nothing read"
        cells = (
            f"{s.file}:{s.line}",
            _code(s.stands),
            _code(s.becomes),
            s.outcome,
            moved,
            s.reason or "**none**",
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def _code(text: str) -> str:
    """Source in a cell of a table."""
    bar = text.replace("|", "\\|")
    return f"`` {bar} ``" if "`" in text else f"`{bar}`"


def merged(file: Path, new: Path) -> str:
    """The record with the campaigns of `new` in the place of those of the same folders."""
    parts = [json.loads(place.read_text())["folders"] for place in (file, new) if place.exists()]
    by_name = {one["folder"]: one for part in parts for one in part}
    return json.dumps({"folders": [by_name[top] for top in FOLDERS if top in by_name]}, indent=1) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Write both files."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.mutants.record", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--folder", type=Path, action="append", default=[], help="of a campaign (repeatable)")
    for folder in parser.parse_args(argv).folder:
        if not (folder / "campaign.json").exists():
            parser.error(f"{folder} holds no campaign that ran to its end")
        FILE.write_text(merged(FILE, folder / "campaign.json"))
    PAGE.write_text(document(campaigns()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
