"""Ledger of what each claim declared before it was run, and of every change since: `ledger.csv` of each paper.

    python -m verify.claims.register      # add a dated line for each claim that is new or changed

A line has the date (that of the line above where it has none; those of before 2026-11-29 the commit too), the claim and
what it declares: kind, margin (in per cent where it is relative), expected verdict, a hash of the run points, the mean
of the predictions there (where nothing measured enters them), whether it is set after pilot draws or may end undecided,
and its rivals. An empty cell says *as before*, in the first line of a claim *mean*, *agrees* or nothing; `none` that
nothing is left. Lines are only added. Of claims that were withdrawn by 2026-11-28 no rivals, predictions and notes are
kept here.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import hashlib
import io
import json
import math
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from simulate.monte_carlo import Point, fixture, one_thread
from verify.claims import registry
from verify.judging.estimands import components
from verify.model import AnyClaim, Claim, Identity, Kind, StatisticalProperty

FILE = "ledger.csv"
TERMS = ("kind", "margin", "expected", "points", "prediction", "notes", "rivals")
HEAD = f"date,claim,{','.join(TERMS)}\n"
WITHDRAWN, NONE, BETWEEN = "withdrawn", "none", "|"

Terms = Mapping[str, str]


class Declaration(NamedTuple):
    """Terms that a claim declares, their history in one phrase per line, and the date if it has been withdrawn."""

    terms: Terms
    story: tuple[str, ...]
    withdrawn: str = ""


NEW = Declaration({**dict.fromkeys(TERMS, ""), "kind": Kind.MEAN.value, "expected": "agrees"}, ())

Ledger = Mapping[str, Declaration]
"""Declarations by the name of a claim in its paper."""


def rivals(claim: AnyClaim) -> list[str]:
    """Return the names of a claim's rivals; those of an identity are routes, computed at its first point.

    >>> rivals(next(claim for claim in registry.claims() if claim.id == "granziol2022/theorem-4"))[:2]
    ['B for b', 'P missing']
    """
    if not isinstance(claim, Identity):
        return sorted(claim.rivals)
    with one_thread():
        found = claim.routes(fixture(0, claim.id), claim.points[0])
    # The first two routes are what is measured and the theory.
    return sorted([name for name in found if name != claim.printed][2:])


def declared(claim: AnyClaim, against: Iterable[str]) -> Terms:
    """Return the terms that a claim declares; `against` are the names of its rivals.

    >>> from verify.judging.planted import PLANTED
    >>> terms = declared(PLANTED[0], rivals(PLANTED[0]))
    >>> terms["margin"], terms["expected"]
    ('5%', 'disagrees')
    """
    margin, relative = (
        (claim.margin, claim.relative)
        if isinstance(claim, Claim | StatisticalProperty)
        else (claim.tolerance, False)
    )
    number = f"{margin * (100 if relative else 1):.6g}" if isinstance(margin, int | float) else "by point"
    notes = (("pilot", claim.pilot), ("undecided", claim.may_be_undecided))
    return {
        "kind": claim.kind.value if isinstance(claim, Claim) else type(claim).__name__,
        "margin": number + "%" * relative,
        "expected": claim.expected.value,
        "points": hashlib.sha256(
            "\n".join(point.canonical() for point in _points(claim)).encode()
        ).hexdigest()[:6],
        "prediction": _prediction(claim),
        "notes": " ".join(name for name, holds in notes if holds),
        "rivals": BETWEEN.join(sorted(against)),
    }


def read(text: str) -> Ledger:
    r"""Read a ledger from its text.

    >>> lines = ["2026-11-20 ab12,edge,,3%,,f98f53,0.5,,half|twice", "2026-11-21,edge,,1%,,,,,twice"]
    >>> read(HEAD + "\n".join(lines))["edge"].story
    ('declared 2026-11-20 ab12', "2026-11-21: margin tightened from 3% to 1%, rivals gone: 'half'")
    """
    found, date = dict[str, Declaration](), ""
    for row in csv.DictReader(io.StringIO(text), restval=""):
        name, date = row["claim"], row["date"] or date
        before = found.get(name, NEW)
        terms = before.terms
        if row["kind"] != WITHDRAWN:
            terms = {term: "" if row[term] == NONE else row[term] or terms[term] for term in TERMS}
        event = (
            f"{date}: {change_text(before.terms, terms) or 'declared again'}"
            if before.story
            else f"declared {date}"
        )
        gone = row["kind"] == WITHDRAWN
        found[name] = Declaration(
            terms, (*before.story, f"{date}: withdrawn" if gone else event), date * gone
        )
    return found


def added(known: Ledger, listed: Iterable[AnyClaim], date: str) -> str:
    """Return the lines that bring a ledger up to date with the claims of its paper."""
    rows, left = list[list[str]](), {name for name, entry in known.items() if not entry.withdrawn}
    for claim in listed:
        name, now = _name(claim), declared(claim, rivals(claim))
        before = known.get(name, NEW).terms
        cells = ["" if _same(before[term], now[term]) else now[term] or NONE for term in TERMS]
        if any(cells) or name not in left:
            rows.append(["", name, *cells])
        left.discard(name)
    rows += [["", name, WITHDRAWN] for name in sorted(left)]
    for row in rows[:1]:
        row[0] = date
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


@cache
def ledgers(only: registry.Only = ()) -> dict[str, Ledger]:
    """Return what claims have declared, by paper, from the file of each; empty where there is none.

    Only those of the papers `only`; of all papers if it is empty.

    Raises
    ------
    ValueError
        If a file is no ledger.
    """
    return {name: _ledger(folder / FILE) for name, folder in registry.folders(only).items()}


def missing(only: registry.Only = ()) -> list[str]:
    """Registered claims that are not withdrawn and not in the registry: dropped or renamed."""
    listed = {claim.id for claim in registry.claims(only)}
    return [name for name, entry in _entries(only).items() if not entry.withdrawn and name not in listed]


def withdrawn(only: registry.Only = ()) -> dict[str, str]:
    """Return the dates of withdrawn claims, by id."""
    return {name: entry.withdrawn for name, entry in _entries(only).items() if entry.withdrawn}


def registered(claim: AnyClaim, routes: Iterable[str] | None = None) -> str:
    """Describe when a claim was declared and what has changed since, also what is not registered yet.

    Parameters
    ----------
    claim
        As the registry has it.
    routes
        Of an identity, the names of the rivals that it was run against; None if it was not run.

    Returns
    -------
    A sentence; empty where the paper keeps no ledger.
    """
    known = ledgers((claim.paper,)).get(claim.paper)
    if not known:
        return ""
    entry = known.get(_name(claim))
    if entry is None:
        return "not registered"
    # An identity that was not run is compared with the rivals that it registered.
    against = claim.rivals if not isinstance(claim, Identity) else routes
    since = change_text(
        entry.terms, declared(claim, entry.terms["rivals"].split(BETWEEN) if against is None else against)
    )
    return "; ".join([*entry.story, *([f"not registered: {since}"] if since else [])])


def change_text(before: Terms, now: Terms) -> str:
    """Describe the terms that differ; empty where none does but a prediction by rounding.

    >>> change_text({**NEW.terms, "prediction": "0.5"}, {**NEW.terms, "rivals": "twice", "prediction": "0.4"})
    "prediction from 0.5 to 0.4, rivals added: 'twice'"
    """
    pairs = ((term, before[term], now[term]) for term in TERMS)
    return ", ".join(_changed(*pair) for pair in pairs if not _same(*pair[1:]))


def digest(known: Mapping[str, Ledger]) -> str:
    """The sha256 of all that is declared."""
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def _name(claim: AnyClaim) -> str:
    return claim.id.partition("/")[2]


def _ledger(file: Path) -> Ledger:
    try:
        return read(file.read_text(encoding="utf-8")) if file.exists() else {}
    except (KeyError, ValueError) as error:
        raise ValueError(f"{file} must be a ledger of claims, got {error!r}") from None


def _entries(only: registry.Only) -> dict[str, Declaration]:
    return {
        f"{paper}/{name}": entry for paper, known in ledgers(only).items() for name, entry in known.items()
    }


def _points(claim: AnyClaim) -> tuple[Point, ...]:
    """The run points, or the examples that a property always tries."""
    if isinstance(claim, Claim):
        return claim.experiment.points
    return claim.points if isinstance(claim, Identity) else claim.examples


def _prediction(claim: AnyClaim) -> str:
    if not isinstance(claim, Claim) or claim.inputs or claim.kind is Kind.DISTRIBUTION:
        return ""
    parts = [part for point in claim.experiment.points for part in components(claim, point)]
    return f"{sum(map(claim.prediction, parts)) / len(parts):.6g}"


def _same(one: str, other: str) -> bool:
    """Whether two terms are equal; numbers up to the last digits, in which libraries differ."""
    try:
        return one == other or math.isclose(float(one), float(other), rel_tol=2e-5, abs_tol=1e-12)
    except ValueError:
        return False


def _changed(term: str, old: str, new: str) -> str:
    if term == "points":
        return "other run points"
    if term == "notes":
        sentences = {"pilot": "set after pilot draws", "undecided": "may end undecided"}
        return (
            " and ".join(sentences[note] for note in new.split()) or "neither after pilot draws nor undecided"
        )
    if term == "rivals":
        before, now = ({*text.split(BETWEEN)} - {""} for text in (old, new))
        changes = (("added", now - before), ("gone", before - now))
        quoted = ((word, map(repr, sorted(names))) for word, names in changes if names)
        return ", ".join(f"rivals {word}: {', '.join(names)}" for word, names in quoted)
    if term == "margin" and "by point" not in old + new and old.endswith("%") == new.endswith("%"):
        term += " tightened" if float(new.strip("%")) < float(old.strip("%")) else " widened"
    return f"{term} from {old or NONE} to {new or NONE}"


def _main() -> None:
    """Bring the ledgers of this package's papers up to date."""
    # Without a parser `--help` would write to the ledgers.
    argparse.ArgumentParser(description=__doc__).parse_args()
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for paper in registry.OWN:
        file = Path(__file__).parent / paper / FILE
        lines = added(_ledger(file), (c for c in registry.select() if c.paper == paper), today)
        if not file.exists():
            file.write_text(HEAD)
        with file.open("a", encoding="utf-8") as ledger:
            ledger.write(lines)
        print(lines, end="")  # noqa: T201


if __name__ == "__main__":
    try:
        _main()
    except ValueError as error:  # of a claim that is not let in
        sys.exit(str(error))
