"""Puts a campaign on record: `verify/judging/campaign.json`, which the report page shows, and docs/mutants.md.

python -m benchmarks.mutants.record --folder campaign     # both files, from the campaign in this folder
python -m benchmarks.mutants.record                       # docs/mutants.md anew from campaign.json

Why no claim can catch a survivor is written by hand at the end of its line in `campaign.json`, where the next record of
the same edit finds it. A reason begins with its class. What cancels because two sides of a claim share the code is no
reason: such a claim assumes what it judges, and is to be mended.

| class | it says |
|---|---|
| identity | the edited code gives the same number wherever it is defined, or by a symmetry that holds exactly |
| accuracy | a start, a step or an end of an iteration, a node of a quadrature: the number is the same |
| margin | what is judged moves by less than its margin; both stand there in per cent |
| route | the line chooses between two routes to one number, or cuts work in parts |
| reported | the number stands in a table that nothing judges |
| setting | another network, matrix or start is drawn, and what is claimed is claimed of that one too |
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.mutants.edits import KINDS
from benchmarks.mutants.reach import FOLDERS, ROOT
from benchmarks.mutants.trial import CAUGHT
from verify.judging.campaign import FILE, Campaign, Outcomes, Survivor, campaigns

CRASHED = ("broken", "refused", "hung")
"""Outcomes caught without a verdict: a check crashed, a claim was no longer admitted, or one never ended."""

PAGE = ROOT / "docs/mutants.md"

HEAD = """# One-line errors

Would the report notice an error in its own code? A campaign plants one-line errors in `theory` and `simulate`, and
judges every claim that executes the line, as a report does. Errors are constants 5 % larger, whole numbers one larger,
changed signs, swapped operands, lost squares, factors of 1 to 10 %, draws 2 % larger, other estimators, other
normalisations and inverted comparisons.

- *Not tried*: refusals, tolerances, memory estimates and texts, and code that no claim executes.
- *Inert*: no number that a claim reads moves by more than rounding.
- *Caught*: a claim comes out against its expected verdict, or undecided though it must not be; or (counted apart) a
  check crashes, never ends, or is refused because it could no longer fail.
- *Survivors*: all others, with the largest change of measured minus predicted, in margins of a claim. One that no claim
  can catch has a reason and stays in the rate.

Repeat with `python -m benchmarks.mutants` and `python -m benchmarks.mutants.record`.
"""


def document(made: Iterable[Campaign]) -> str:
    """Return the page."""
    return "\n".join([HEAD, *(line for one in made for line in _folder_section(one))])


def _folder_section(one: Campaign) -> Iterator[str]:
    total = one.all
    yield f"## {one.folder}\n"
    yield (
        f"{total.tried} of {one.executed} edits, seed {one.seed}, commit `{one.commit}`, {one.date}. {total.inert} were"
        f" inert. Of the {total.live} others {total.caught} were caught ({total.rate:.0%}), {total.crashed} of them by"
        f" a crash or a refusal. Not tried: {one.passed} refusals, tolerances and texts; {one.not_executed} in code"
        " that no claim executes.\n"
    )
    head = ("kind", "tried", "inert", "caught", "rate")
    yield from _table(head, ((kind, *_numbers(tally)) for kind, tally in one.kinds.items()))
    yield f"Survivors: {len(one.survivors)}, {one.unexplained} of them without a reason.\n"
    rows = [_cells(s) for s in sorted(one.survivors, key=lambda s: (bool(s.reason), s.place))]
    yield from _table(("where", "edit", "line", "moved by, in margins", "reason"), rows) if rows else ()


def _numbers(t: Outcomes) -> tuple[str, ...]:
    return (*map(str, (t.tried, t.inert, t.caught)), f"{t.rate:.0%}")


def _cells(s: Survivor) -> tuple[str, ...]:
    moved, bar = (
        f"{s.margins:g} of {s.mover}" if s.mover else "nothing read",
        s.becomes.replace("|", "\\|"),
    )
    code = f"`` {bar} ``" if "`" in s.becomes else f"`{bar}`"
    kind = s.kind if s.outcome == "survived" else f"{s.kind} ({s.outcome})"
    return s.place, kind, code, moved, s.reason


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield from (f"| {' | '.join(head)} |", "|---" * len(head) + "|")
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def merged(file: Path, new: Path) -> tuple[Campaign, ...]:
    """Return the campaigns of the record, with those of the file `new` replacing campaigns of the same folder."""
    made = {one.folder: one for one in campaigns(file)}
    reasons = {_edit_key(s): s.reason for one in made.values() for s in one.survivors}
    made |= {raw["folder"]: _campaign_record(raw, reasons) for raw in json.loads(new.read_text())["folders"]}
    return tuple(made[top] for top in FOLDERS if top in made)


def _campaign_record(raw: Mapping[str, Any], reasons: Mapping[Any, str]) -> Campaign:
    """Return the record of a campaign; a survivor without a reason takes that of the same edit in an earlier one."""
    survivors: list[Survivor] = []
    for s in raw["survivors"]:
        named = (s[name] for name in ("kind", "becomes", "outcome", "margins", "mover"))
        one = Survivor(f"{s['file']}:{s['line']}", *named, s.get("reason", ""))
        survivors.append(one._replace(reason=one.reason or reasons.get(_edit_key(one), "")))
    kinds, rooms = ({n: _tally(outcomes) for n, outcomes in raw[part].items()} for part in ("kinds", "rooms"))
    return Campaign(
        **{name: raw[name] for name in Campaign._fields[:7]},
        kinds={name: kinds[name] for name in KINDS if name in kinds},
        rooms=rooms,
        survivors=survivors,
    )


def _edit_key(survivor: Survivor) -> tuple[str, str]:
    """Return file and text, which do not depend on line numbers."""
    return survivor.place.partition(":")[0], survivor.becomes


def _tally(outcomes: Mapping[str, int]) -> Outcomes:
    """Sum up the numbers of edits by outcome.

    >>> _tally({"disagrees": 5, "undecidable": 1, "broken": 2, "survived": 1, "unfinished": 1, "inert": 5})
    Outcomes(tried=15, inert=5, caught=8, crashed=2)
    """
    caught, crashed = (sum(outcomes.get(name, 0) for name in names) for names in (CAUGHT, CRASHED))
    return Outcomes(sum(outcomes.values()), outcomes.get("inert", 0), caught, crashed)


def written(value: Any) -> str:
    """Return the campaigns as JSON, one line for each row of a table.

    >>> print(written([{"date": "2026-11-23", "kinds": {"sign": Outcomes(15, 5, 8, 2)}}]))
    [
    {"date": "2026-11-23",
    "kinds": {"sign": [15, 5, 8, 2]}}
    ]
    """
    if isinstance(value, dict):
        return "{" + ",\n".join(f"{json.dumps(name)}: {written(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(written, value)) + "\n]"
    return json.dumps(value)


def main(argv: Sequence[str] | None = None) -> int:
    """Write both files."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.mutants.record", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--folder", type=Path, action="append", default=[], help="of a campaign (repeatable)")
    for folder in parser.parse_args(argv).folder:
        if not (folder / "campaign.json").exists():
            parser.error(f"{folder} holds no campaign that ran to its end")
        made = merged(FILE, folder / "campaign.json")
        FILE.write_text(written([one._asdict() for one in made]) + "\n")
    PAGE.write_text(document(campaigns()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
