"""Puts a campaign on record: `verify/judging/campaign.json`, which the report page shows, and docs/mutants.md.

python -m benchmarks.mutants.record --folder campaign     # both files, from the campaign in this folder (repeatable)
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

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.mutants.edits import KINDS, Edit
from benchmarks.mutants.reach import FOLDERS, ROOT
from benchmarks.mutants.trial import CAUGHT
from benchmarks.timing import command
from verify.judging.campaign import FILE, Campaign, Outcomes, Survivor, campaigns

CRASHED = ("broken", "refused", "hung")
"""Outcomes caught without a verdict: a check crashed, a claim was no longer admitted, or one never ended."""

PAGE = ROOT / "docs/mutants.md"

LISTED = 8
"""Survivors of a folder in the page; `campaign.json` has all of them."""

Finding = dict[str, Any]


def document(made: Iterable[Campaign]) -> str:
    """Return the page: its own head, written by hand, and a section for each campaign."""
    head = PAGE.read_text().partition("\n## ")[0]
    return "\n".join([head, *(line for one in made for line in _folder_section(one))])


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
    yield (
        f"Survivors: {len(one.survivors)}, {one.unexplained} of them without a reason. Those that moved a claim most"
        " (all are in `verify/judging/campaign.json`):\n"
    )
    rows = [_cells(s) for s in sorted(one.survivors, key=lambda s: -s.margins)[:LISTED]]
    yield from _table(("where", "edit", "line", "moved by, in margins", "reason"), rows) if rows else ()


def _numbers(t: Outcomes) -> tuple[str, ...]:
    return (*map(str, (t.tried, t.inert, t.caught)), f"{t.rate:.0%}")


def _cells(s: Survivor) -> tuple[str, ...]:
    moved, bar = (f"{s.margins:g} of {s.mover}" if s.mover else "nothing read", s.becomes.replace("|", "\\|"))
    code = f"`` {bar} ``" if "`" in s.becomes else f"`{bar}`"
    kind = s.kind if s.outcome == "survived" else f"{s.kind} ({s.outcome})"
    return s.place, kind, code, moved, s.reason


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield from (f"| {' | '.join(head)} |", "|---" * len(head) + "|")
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def summary(counts: dict[str, Any], rows: Iterable[Finding], root: Path) -> Campaign:
    """Return the record of one folder: numbers of edits, their outcomes, and all that were not caught."""
    mine = [row for row in rows if row["file"].startswith(f"{counts['folder']}/")]
    survivors = [
        Survivor(
            place=f"{row['file']}:{row['line']}",
            becomes=Edit(**{name: row[name] for name in Edit._fields}).lines(root)[1],
            margins=float(f"{row['margins']:.2g}"),
            reason="",
            **{name: row[name] for name in ("kind", "outcome", "mover")},
        )
        for row in mine
        if row["outcome"] not in (*CAUGHT, "inert")
    ]
    found = {kind: [row["outcome"] for row in mine if row["kind"] == kind] for kind in KINDS}
    kinds = {kind: tally(outcomes) for kind, outcomes in found.items() if outcomes}
    return Campaign(**counts, kinds=kinds, survivors=survivors)


def tally(outcomes: Sequence[str]) -> Outcomes:
    """Sum up the outcomes.

    >>> tally(["disagrees"] * 5 + ["undecidable"] + ["broken"] * 2 + ["survived", "unfinished"] + ["inert"] * 5)
    Outcomes(tried=15, inert=5, caught=8, crashed=2)
    """
    caught, crashed = (sum(one in names for one in outcomes) for names in (CAUGHT, CRASHED))
    return Outcomes(len(outcomes), outcomes.count("inert"), caught, crashed)


def merged(before: Sequence[Campaign], new: Sequence[Campaign]) -> list[Campaign]:
    """Return the campaigns of a record, with new ones in place of those of the same folder.

    A survivor takes the reason of the same edit before: the same text in the same file, whatever the line.
    """

    def key(survivor: Survivor) -> tuple[str, str]:
        return survivor.place.partition(":")[0], survivor.becomes

    reasons = {key(s): s.reason for one in before for s in one.survivors}
    made = {one.folder: one for one in before}
    for one in new:
        survivors = [s._replace(reason=reasons.get(key(s), "")) for s in one.survivors]
        made[one.folder] = one._replace(survivors=survivors)
    return [made[top] for top in FOLDERS if top in made]


def written(value: Any) -> str:
    """Return campaigns as JSON, one line for each row of a table.

    >>> print(written([{"date": "2026-11-23", "kinds": {"sign": Outcomes(15, 5, 8, 2)}}]))
    [
    {"date": "2026-11-23",
    "kinds": {"sign": [15, 5, 8, 2]}}
    ]
    """
    if isinstance(value, Campaign):
        return written(value._asdict())
    if isinstance(value, dict):
        return "{" + ",\n".join(f"{json.dumps(name)}: {written(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(written, value)) + "\n]"
    return json.dumps(value)


def main(argv: Sequence[str] | None = None) -> int:
    """Write both files."""
    parser = command("benchmarks.mutants.record", __doc__)
    parser.add_argument("--folder", type=Path, action="append", default=[])
    for folder in parser.parse_args(argv).folder:
        new = [one for file in folder.glob("campaign-*.json") for one in campaigns(file)]
        if not new:
            parser.error(f"{folder} holds no campaign that ran to its end")
        FILE.write_text(written(merged(campaigns(), new)) + "\n")
    PAGE.write_text(document(campaigns()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
