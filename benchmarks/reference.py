"""Record what every claim predicts and what every experiment draws, and compare a later tree with the record.

    python -m benchmarks.reference make FILE               # --paper edge: renew one paper in FILE, keep the others
    python -m benchmarks.reference compare FILE --fast     # predictions, rivals, margins, expected verdicts
    python -m benchmarks.reference compare FILE            # the same, and every draw again

`claims` holds what a claim states: prediction, printed formula, rivals and margin at each point and component, measured
inputs at their typical values. `values` holds what is computed, column by column: the scores of the first replicates of
a report at seed 2024, the routes of identities, the violations of properties at the points that a report judges. A
column is kept as its length, its sha256, its mean and its root mean square; the last two say how far a difference goes.
A point has 96 replicates, fewer where a block begins after `SECONDS` of CPU time; a comparison draws as many.

What is missing now has to be allowed: a claim by docs/claims/table.csv, where it becomes a unit test or is deleted; a
column because no claim reads it that stays; anything else by `--allow FILE`, one key of a finding a line, with the
reason behind ` # `. A difference is allowed the same way up to 1e-12 of what was recorded. What is new is counted.
Exit status: 0 nothing differs, 1 something does, 2 bad input.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import importlib.metadata
import json
import math
import platform
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.timing import command
from simulate.monte_carlo import BLOCK, Point, Scores, fixture, one_thread, open_executor, run_block
from verify.claims import registry
from verify.claims.images import needed_images
from verify.judging.estimands import components
from verify.judging.properties import explore
from verify.model import AnyClaim, Claim, ExactProperty, Experiment, Identity, Kind, StatisticalProperty, Tier
from verify.model.domains import strategy

SEED = 2024
REPLICATES = 96
SECONDS = 30.0
"""CPU time after which a point gets no further block."""

EXAMPLES = 10
"""Points that hypothesis draws for a property in a report of the default tier."""

ROUNDING = 1e-12
TABLE = Path(__file__).parents[1] / "docs/claims/table.csv"

GRID = np.array([*np.arange(-8, 8.25, 0.25), *10 ** np.arange(-6, 7.0), *-(10 ** np.arange(-6, 7.0))])
"""Points at which a distribution function is evaluated."""

Facts = dict[str, dict[str, Any]]
"""By point, as text, and by name; what belongs to no point stands under an empty text."""

Record = dict[str, Any]
Papers = Collection[str] | None
NONE: Mapping[str, Facts] = {}
Place = Experiment | Identity | ExactProperty | StatisticalProperty


# --- what a claim states


def _stated(claim: AnyClaim) -> Facts:
    """The verdict that is expected, what is read, and every number that is known before anything is drawn."""
    known: dict[str, Any] = {"expected": str(claim.expected), "reads": _reads(claim)}
    if isinstance(claim, Identity | ExactProperty):
        return {"": known | {"tolerance": claim.tolerance}}
    if isinstance(claim, StatisticalProperty):
        one, points = claim.claim_at(claim.examples[0]), claim.examples
    else:
        one, points = claim, [p for at in claim.experiment.points for p in components(claim, at)]
    known["kind"] = [str(one.kind), one.relative, one.group, list(one.terms), one.numerical]
    return {"": known} | {point.canonical(): _formulas(one, point) for point in points}


def _formulas(claim: Claim, point: Point) -> dict[str, Any]:
    formulas = {"predicted": claim.predict, **{f"rival {name}": f for name, f in claim.rivals.items()}}
    formulas |= {"printed": claim.printed} if callable(claim.printed) else {}
    if claim.kind is Kind.DISTRIBUTION:
        values = {name: np.asarray(formula(point)(GRID)).tolist() for name, formula in formulas.items()}
    else:
        values = {name: claim.prediction(point, formula) for name, formula in formulas.items()}
    return {**values, "margin": claim.margin_at(point)}


def _reads(claim: AnyClaim) -> dict[str, list[str]]:
    """The columns that a claim reads, by what draws them; no names where it reads all of them."""
    if not isinstance(claim, Claim):
        return {claim.id: []}
    named = [claim.score] if isinstance(claim.score, str) else list(claim.score)
    named += [*claim.inputs, *([claim.printed] if isinstance(claim.printed, str) else [])]
    return {claim.experiment.id: named}


# --- what is computed


def _sources(claims: Sequence[AnyClaim], tier: Tier) -> list[str]:
    """Return the ids of the experiments, identities and properties of these claims, the longest first."""
    tiers, found = list(Tier), dict[str, float]()
    for claim in claims:
        if tiers.index(registry.tier_of(claim)) <= tiers.index(tier) and not needed_images(claim):
            place = _place(claim)
            found[place.id] = place.seconds
    return sorted(found, key=lambda name: -found[name])


def _place(claim: AnyClaim) -> Place:
    return claim.experiment if isinstance(claim, Claim) else claim


def _values(source: str, known: Mapping[str, int]) -> tuple[Facts, float]:
    """Every column of what draws or computes, and the CPU seconds; `known` are the replicates by point."""
    found, started = dict[str, dict[str, Any]](), time.process_time()
    place = next(place for place in map(_place, registry.claims()) if place.id == source)
    points = place.points if isinstance(place, Experiment | Identity) else _explored(place)
    try:
        for point in points:
            columns = _columns(place, point, known.get(point.canonical(), 0))
            found[point.canonical()] = {name: _summary(values) for name, values in columns.items()}
    except Exception as error:  # a finding like any other: the rest is computed all the same
        found = {"": {"error": f"{type(error).__name__}: {error}"}}
    return found, time.process_time() - started


def _columns(place: Place, point: Point, known: int) -> Mapping[str, Any]:
    name = f"{place.id}\n{point.canonical()}"
    if isinstance(place, Identity):
        with one_thread():
            return place.routes(fixture(SEED, name), point)
    if isinstance(place, ExactProperty):
        rivals = {f"rival {k}": f for k, f in place.rivals.items()} if point in place.examples else {}
        formulas = {"violation": place.violation, **rivals}
        return {k: float(formula(fixture(SEED, name), point)) for k, formula in formulas.items()}
    blocks, spent = list[Scores](), 0.0
    while len(blocks) < (known or REPLICATES) // BLOCK and (known or spent <= SECONDS):
        block = run_block(place.simulate, experiment=place.id, point=point, seed=SEED, index=len(blocks))
        blocks.append(block.scores)
        spent += block.seconds
    return {score: np.concatenate([scores[score] for scores in blocks]) for score in blocks[0]}


def _explored(claim: ExactProperty | StatisticalProperty) -> list[Point]:
    """The points that a report judges where each of them agrees."""
    from hypothesis import strategies as st

    class Agrees(NamedTuple):
        point: Point
        verdict: str = "agrees"

    number = int.from_bytes(hashlib.sha256(f"{claim.id}\n{SEED}".encode()).digest()[:8], "big")
    drawn = st.fixed_dictionaries({name: strategy(of) for name, of in claim.domain.items()})
    asked: dict[str, Any] = {"seed": number, "max_examples": EXAMPLES, "examples": claim.examples}
    return [outcome.point for outcome in explore(Agrees, drawn, lambda v: Point(**v), **asked)[0]]


def _summary(values: Any) -> list[Any]:
    """Length, sha256 of type, shape and bytes, mean and root mean square."""
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    told = f"{array.dtype} {array.shape}\n".encode() + np.ascontiguousarray(array).tobytes()
    with np.errstate(all="ignore"):
        mean, square = (
            float(np.sum(v, dtype=float)) / max(array.size, 1) for v in (np.real(array), np.abs(array) ** 2.0)
        )
    return [len(array) if array.ndim else 1, hashlib.sha256(told).hexdigest(), mean, math.sqrt(square)]


def recorded(
    claims: Sequence[AnyClaim],
    tier: Tier | None = Tier.FULL,
    workers: int = 1,
    known: Mapping[str, Facts] = NONE,
) -> Record:
    """Return the record of these claims, with the values of what a tier draws; without values if `tier` is None.

    `known`, the values of an earlier record, says how many replicates are drawn at its points.
    """
    record: Record = {"made on": _machine(), "claims": {c.id: _stated(c) for c in claims}, "values": {}}
    with open_executor(workers) as executor:
        names = _sources(claims, tier) if tier else []
        jobs = {executor.submit(_values, name, _counts(known.get(name, {}))): name for name in names}
        for done, job in enumerate(as_completed(jobs), 1):
            record["values"][jobs[job]], seconds = job.result()
            print(f"{done} of {len(jobs)}: {jobs[job]}, {seconds:.1f} s", file=sys.stderr, flush=True)
    return json.loads(json.dumps(record))  # as a file has it


def _counts(facts: Facts) -> dict[str, int]:
    """Replicates by point of an experiment."""
    return {point: next(iter(columns.values()))[0] for point, columns in facts.items() if point}


def _machine() -> dict[str, str]:
    """Return the versions and the processor, on which the last bit of a draw may depend."""
    found = {name: importlib.metadata.version(name) for name in ("numpy", "scipy", "torch", "hypothesis")}
    return {**found, "python": platform.python_version(), "cpu": torch.backends.cpu.get_cpu_capability()}


# --- comparison


class Finding(NamedTuple):
    """A difference from the record: its key, what differs, and whether it is allowed."""

    key: str
    what: str
    allowed: bool


def compare(before: Record, now: Record, gone: Collection[str], allowed: Collection[str]) -> list[Finding]:
    """Return what differs from what was recorded, or is missing there now.

    `gone` are claims that may be missing, `allowed` keys of findings.
    """
    staying = [facts[""]["reads"] for name, facts in before["claims"].items() if name not in gone]
    found: list[Finding] = []
    for section, owner, point, name, value in _facts(before):
        points = now[section].get(owner, {})
        place = (owner, point, name)[: 1 if not points else 2 if point not in points else 3]
        key = " ".join(place)
        if error := points.get("", {}).get("error"):
            found.append(Finding(f"{owner} error", error, False))
        elif name not in points.get(point, {}):
            free = owner in gone if section == "claims" else not _is_read(place, staying)
            found.append(Finding(key, "missing", free or key in allowed))
        elif json.dumps(value) != json.dumps(points[point][name]):
            gap, texts = _gap(value, points[point][name]), map(json.dumps, (value, points[point][name]))
            what = (
                f"{' was recorded, now '.join(text[:120] for text in texts)}, relative difference {gap:.1e}"
            )
            found.append(Finding(key, what, key in allowed and gap <= ROUNDING))
    return list(dict.fromkeys(found))


def _facts(record: Record) -> Iterator[tuple[str, str, str, str, Any]]:
    for section in ("claims", "values"):
        for owner, points in record[section].items():
            for point, facts in points.items():
                yield from ((section, owner, point, name, value) for name, value in facts.items())


def _is_read(place: tuple[str, ...], staying: Sequence[dict[str, list[str]]]) -> bool:
    """Whether a claim that stays reads a column, any of a point, or any of what draws it."""
    columns = [reads[place[0]] for reads in staying if place[0] in reads]
    return any(not named or len(place) < 3 or place[2] in named for named in columns)


def _gap(old: Any, new: Any) -> float:
    """Relative difference of numbers or lists of them; of columns that of mean and root mean square."""
    if isinstance(old, list) and len(old) == 4 and isinstance(old[1], str):
        return _gap(old[2:], new[2:]) if old[0] == new[0] else math.inf
    try:
        with np.errstate(all="ignore"):
            a, b = np.asarray(old, dtype=float), np.asarray(new, dtype=float)
            gap = float(np.abs(a - b).max() / np.abs(a).max())
    except (TypeError, ValueError):
        return math.inf
    return gap if math.isfinite(gap) else math.inf


def deleted() -> set[str]:
    """Return the claims that the table lets go."""
    with TABLE.open(encoding="utf-8", newline="") as rows:
        return {row["claim"] for row in csv.DictReader(rows) if row["decision"] in ("unit test", "delete")}


# --- the command


def main(words: Sequence[str] | None = None) -> int:
    """Make or compare a record; the exit status."""
    parser = command(
        "benchmarks.reference",
        __doc__,
        fast=(False, "compare what claims state, draw nothing"),
        workers=(2, ""),
    )
    parser.add_argument("action", choices=("make", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--paper", action="append", choices=registry.paper_ids(), help="this paper alone")
    parser.add_argument("--tier", type=Tier, default=Tier.FULL, choices=list(Tier), help="of what is drawn")
    parser.add_argument("--allow", type=Path, help="keys of findings that are allowed")
    asked, old = parser.parse_args(words), {"claims": {}, "values": {}}
    comparing = asked.action == "compare"
    try:
        if comparing or asked.file.exists():
            old = json.loads(gzip.decompress(asked.file.read_bytes()))
        lines = asked.allow.read_text(encoding="utf-8").splitlines() if asked.allow else []
    except (OSError, ValueError, EOFError) as error:
        parser.error(str(error))
    if asked.fast and not comparing:
        parser.error("--fast is for compare: a record has values")
    claims = [claim for claim in registry.claims() if _is_of(claim.id, asked.paper)]
    tier, known = None if asked.fast else asked.tier, old["values"] if comparing else NONE
    now = recorded(claims, tier, asked.workers, known)
    if comparing:
        return _told(old, now, asked.paper, {line.partition(" # ")[0].strip() for line in lines})
    return _write(asked.file, old, now, asked.paper)


def _told(old: Record, now: Record, papers: Papers, allowed: Collection[str]) -> int:
    """Compare the claims of these papers, what was computed again, and what is computed nowhere any more."""
    if now["made on"] != old["made on"]:
        print(f"recorded elsewhere, the last bits may differ: on {old['made on']}, here {now['made on']}")
    claims = {name: facts for name, facts in old["claims"].items() if _is_of(name, papers)}
    read = {source for facts in claims.values() for source in facts[""]["reads"]}
    there = {_place(claim).id for claim in registry.claims()}
    values = {n: f for n, f in old["values"].items() if n in read and (n in now["values"] or n not in there)}
    before: Record = {"claims": claims, "values": values}
    findings = compare(before, now, deleted(), allowed)
    bad = [finding for finding in findings if not finding.allowed]
    places = [{fact[:4] for fact in _facts(record)} for record in (old, now, before)]
    counts = len(places[2]), len(bad), len(findings) - len(bad), len(places[1] - places[0])
    for finding in sorted(findings, key=lambda finding: not finding.allowed):
        print(f"{'allowed' if finding.allowed else 'DIFFERS'}: {finding.key}: {finding.what}")
    print("{} facts compared: {} findings differ, {} are allowed; {} facts are new".format(*counts))
    return 1 if bad else 0


def _is_of(name: str, papers: Papers) -> bool:
    return not papers or name.partition("/")[0] in papers


def _write(file: Path, old: Record, now: Record, papers: Papers) -> int:
    if errors := {name: facts[""]["error"] for name, facts in now["values"].items() if "" in facts}:
        print("nothing is written, these cannot be computed:", errors, file=sys.stderr)
        return 1
    claims = {n: f for n, f in old["claims"].items() if not _is_of(n, papers)} | now["claims"]
    read = {source for facts in claims.values() for source in facts[""]["reads"]}
    values = {name: facts for name, facts in (old["values"] | now["values"]).items() if name in read}
    new = now | {"claims": dict(sorted(claims.items())), "values": dict(sorted(values.items()))}
    file.write_bytes(gzip.compress(json.dumps(new, separators=(",", ":")).encode(), mtime=0))
    drawn = {_place(c).id for c in registry.claims() if isinstance(c, Claim | StatisticalProperty)}
    few = [n for n, facts in values.items() if n in drawn and min(_counts(facts).values()) < REPLICATES]
    print(f"{file}: {file.stat().st_size:,} bytes; fewer replicates: {', '.join(few) or 'nowhere'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
