"""What each claim declared before it was run, and every change since: `registered.json` beside each paper's claims.

    python -m verify.claims.register      # after a claim was added or changed: enters it, with the date

A claim declares its kind, run points, predictions there (where nothing measured enters them), margin, rivals, the
verdict that is expected, why it may end undecided, and what of its bound or margin pilot draws set. Entries are only
added: what changes is listed with its date and commit, and stays. Each entry carries a seal, a hash of all else in it:
one that was edited by hand is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from simulate.monte_carlo import fixture, one_thread
from verify.judging.estimands import components
from verify.model import AnyClaim, Claim, Identity, Kind, StatisticalProperty

__all__ = [
    "FILE",
    "Ledger",
    "changes",
    "declared",
    "digest",
    "entered",
    "history",
    "ledger",
    "retold",
    "rivals",
    "sealed",
    "when",
]

FILE = "registered.json"
DIGITS = 6
"""Of a prediction: libraries differ in the last ones."""

Terms = dict[str, Any]
Ledger = dict[str, dict[str, Any]]


def rivals(claim: AnyClaim) -> list[str]:
    """The names of what a claim must reject; those of an identity are routes, which are taken at its first point.

    >>> from verify.claims import registry
    >>> rivals(next(claim for claim in registry.claims() if claim.id == "granziol2022/theorem-4"))[:2]
    ['B for b', 'P missing']
    """
    if not isinstance(claim, Identity):
        return sorted(claim.rivals)
    with one_thread():
        found = claim.routes(fixture(0, claim.id), claim.points[0])
    return sorted([name for name in found if name != claim.printed][2:])


def declared(claim: AnyClaim, against: Iterable[str]) -> Terms:
    """What a claim declares; `against` are the names of its rivals.

    >>> from verify.judging.planted import PLANTED
    >>> terms = declared(PLANTED[0], rivals(PLANTED[0]))
    >>> terms["margin"], terms["expected"]
    (0.05, 'disagrees')
    """
    statistical = isinstance(claim, Claim | StatisticalProperty)
    margin = claim.margin if statistical else claim.tolerance
    found: Terms = {
        "kind": claim.kind.value if isinstance(claim, Claim) else type(claim).__name__,
        "points": _points(claim),
        "margin": margin if isinstance(margin, int | float) else "by point",
        "relative": statistical and claim.relative,
        "rivals": sorted(against),
        "expected": claim.expected.value,
    }
    for name in ("pilot", "may_be_undecided"):
        if told := getattr(claim, name):
            found[name] = told
    if isinstance(claim, Claim) and not claim.inputs and claim.kind is not Kind.DISTRIBUTION:
        parts = [part for point in claim.experiment.points for part in components(claim, point)]
        found["predicted"] = [float(f"{claim.prediction(part):.{DIGITS}g}") for part in parts]
    return found


def changes(before: Terms, after: Terms) -> dict[str, list[Any]]:
    """The terms that differ, old and new; predictions that differ by rounding do not."""
    names = [name for name in {**before, **after} if not _same(before.get(name), after.get(name))]
    return {name: [before.get(name), after.get(name)] for name in names}


def ledger(folder: Path, *, unsealed: bool = False) -> Ledger:
    """The entries of a paper's folder, by claim; empty where there is none.

    Entries without a seal, as they were written at first, are taken where `unsealed`.

    Raises
    ------
    ValueError
        If the file is no ledger, or an entry was edited by hand.
    """
    file = folder / FILE
    if not file.exists():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} must be a ledger of claims, got {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{file} must be a ledger of claims, got {type(found).__name__}")
    for name, entry in found.items():
        if flaw := _flaw(name, entry, unsealed=unsealed):
            raise ValueError(
                f"{file} must be as `python -m verify.claims.register` wrote it, got {name} {flaw}"
            )
    return found


def sealed(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with its seal."""
    return {**entry, "seal": _seal(name, entry)}


def entered(known: Mapping[str, Any], listed: Iterable[AnyClaim], date: str, commit: str = "") -> Ledger:
    """A ledger with the claims as they are now: new ones declared, changed ones with their changes, gone ones kept."""
    found: Ledger = {name: dict(entry) for name, entry in known.items()}
    listed = list(listed)
    for claim in listed:
        now = declared(claim, rivals(claim))
        entry = found.setdefault(claim.id, {"declared": [date, commit], "terms": now, "changes": []})
        if changed := changes(entry["terms"], now):
            entry["changes"] = [*entry["changes"], {"when": [date, commit], **changed}]
            entry["terms"] = now
        entry.pop("withdrawn", None)
    for name in found.keys() - {claim.id for claim in listed}:
        found[name].setdefault("withdrawn", [date, commit])
    return {name: sealed(name, entry) for name, entry in sorted(found.items())}


def history(entry: Mapping[str, Any]) -> str:
    """An entry in words.

    >>> change = {"when": ["2026-11-21", "cd34"], "margin": [0.03, 0.01]}
    >>> history({"declared": ["2026-11-20", "ab12"], "changes": [change]})
    'declared 2026-11-20 (ab12); 2026-11-21 (cd34): margin tightened from 0.03 to 0.01'
    """
    parts = [f"declared {when(entry['declared'])}"]
    parts += [f"{when(change['when'])}: {retold(change)}" for change in entry["changes"]]
    return "; ".join(parts)


def retold(change: Mapping[str, Any]) -> str:
    """The terms that changed, in words.

    >>> retold({"rivals": [["half"], ["half", "twice"]], "predicted": [[0.5], [0.4]]})
    "rivals added: 'twice', prediction from 0.5 to 0.4"
    """
    return ", ".join(_changed(name, *pair) for name, pair in change.items() if name != "when")


def when(mark: Sequence[str]) -> str:
    """A date, and the commit where it is known.

    >>> when(["2026-11-20", "ab12"]), when(["2026-11-20", ""])
    ('2026-11-20 (ab12)', '2026-11-20')
    """
    date, commit = mark
    return f"{date} ({commit})" if commit else date


def digest(ledgers: Iterable[Mapping[str, Any]]) -> str:
    """The sha256 of all that is declared."""
    whole = json.dumps([dict(one) for one in ledgers], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def _seal(name: str, entry: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in entry.items() if key != "seal"}
    return hashlib.sha256(json.dumps([name, rest], sort_keys=True).encode()).hexdigest()[:16]


def _flaw(name: str, entry: Any, *, unsealed: bool) -> str:
    """How an entry shows that it was not written by `entered`; empty where it does not."""
    if not isinstance(entry, dict) or not {"declared", "terms", "changes"} <= entry.keys():
        return "without what was declared, when, and its changes"
    last: dict[str, Any] = {}
    for change in entry["changes"]:
        for term, (old, new) in ((key, pair) for key, pair in change.items() if key != "when"):
            if term in last and not _same(last[term], old):
                return f"with changes of {term} that do not follow one another"
            last[term] = new
    for term, value in last.items():
        if not _same(entry["terms"].get(term), value):
            return f"with another {term} than its last change says"
    whole = entry.get("seal", _seal(name, entry) if unsealed else "") == _seal(name, entry)
    return "" if whole else "edited by hand: its seal does not fit"


def _points(claim: AnyClaim) -> str:
    """A hash of the run points, or of the examples that a property always tries."""
    points = claim.experiment.points if isinstance(claim, Claim) else (
        claim.points if isinstance(claim, Identity) else claim.examples
    )  # fmt: skip
    words = "\n".join(point.canonical() for point in points)
    return hashlib.sha256(words.encode()).hexdigest()[:12]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=10.0 ** (1 - DIGITS), abs_tol=1e-300)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def _changed(name: str, old: Any, new: Any) -> str:
    if name == "rivals":
        return _rivals(old, new)
    if name == "points":
        return "other run points"
    if name == "predicted":  # what a claim of another kind lacks is null
        single = old and new and len(set(old)) == len(set(new)) == 1
        return f"prediction from {old[0]:g} to {new[0]:g}" if single else "other predictions"
    if name == "pilot":
        return f"set after pilot draws: {new}" if new else "no longer said to be set after pilot draws"
    if name == "may_be_undecided":
        return f"may end undecided: {new}" if new else "must be decided"
    if name == "margin" and isinstance(old, float) and isinstance(new, float):
        return f"margin {'tightened' if new < old else 'widened'} from {old:g} to {new:g}"
    return f"{name} {old} before, now {new}"


def _rivals(old: Sequence[str], new: Sequence[str]) -> str:
    more, less = sorted({*new} - {*old}), sorted({*old} - {*new})
    parts = [f"{word} {', '.join(map(repr, names))}" for word, names in (("rivals added:", more), ("gone:", less))
             if names]  # fmt: skip
    return " ".join(parts)
