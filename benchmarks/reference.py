"""Record what every claim predicts and what every experiment draws, and compare a later tree with the record.

    python -m benchmarks.reference make FILE               # --paper edge: renew one paper in FILE, keep the others
    python -m benchmarks.reference compare FILE --fast     # predictions, rivals, margins, expected verdicts
    python -m benchmarks.reference compare FILE            # the same, and every draw again

`claims` holds what a claim states: prediction, printed formula, rivals and margin at each point and component, measured
inputs at their typical values. `values` holds what is computed, column by column: the scores of the first replicates of
a report at seed 2024, the routes of identities, the violations of properties at the points that a report judges. A
column is kept as its length, its sha256, its mean and its root mean square; the last two say how far a difference goes.
A point has 96 replicates, fewer where a block begins after `SECONDS` of CPU time; a comparison draws as many.

What is missing now is a difference too; what is new is counted. After an intended change the paper is recorded anew.
Exit status: 0 nothing differs, 1 something does, 2 bad input.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
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

from benchmarks.timing import command, version
from simulate.monte_carlo import BLOCK, Point, Scores, fixture, one_thread, open_executor, run_block
from verify.claims import registry
from verify.claims.images import needed_images
from verify.judging.estimands import components
from verify.judging.properties import explore
from verify.model import AnyClaim, Claim, ExactProperty, Experiment, Identity, Kind, StatisticalProperty
from verify.model.domains import strategy

SEED = 2024
REPLICATES = 96
SECONDS = 30.0
"""CPU time after which a point gets no further block."""

EXAMPLES = 10
"""Points that hypothesis draws for a property in a report of the default tier."""

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
    known["kind"] = [str(one.kind), one.relative, list(one.terms), one.numerical]
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


def _sources(claims: Sequence[AnyClaim]) -> list[str]:
    """Return the ids of the experiments, identities and properties of these claims, the longest first."""
    found = {_place(claim).id: _place(claim).seconds for claim in claims if not needed_images(claim)}
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

    # As `verify.judging.properties` seeds the search.
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
    claims: Sequence[AnyClaim], workers: int = 1, known: Mapping[str, Facts] = NONE, *, fast: bool = False
) -> Record:
    """Return the record of these claims; without values if `fast`.

    `known`, the values of an earlier record, says how many replicates are drawn at its points.
    """
    record: Record = {"made on": _machine(), "claims": {c.id: _stated(c) for c in claims}, "values": {}}
    with open_executor(workers) as executor:
        names = [] if fast else _sources(claims)
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
    found = {name: version(name) for name in ("numpy", "scipy", "torch", "hypothesis")}
    return {**found, "python": platform.python_version(), "cpu": torch.backends.cpu.get_cpu_capability()}


# --- comparison


class Finding(NamedTuple):
    """A difference from the record: its key, and what differs."""

    key: str
    what: str


def compare(before: Record, now: Record) -> list[Finding]:
    """Return what differs from what was recorded, or is missing now."""
    found: list[Finding] = []
    for section, owner, point, name, value in _facts(before):
        points = now[section].get(owner, {})
        place = (owner, point, name)[: 1 if not points else 2 if point not in points else 3]
        if error := points.get("", {}).get("error"):
            found.append(Finding(f"{owner} error", error))
        elif name not in points.get(point, {}):
            found.append(Finding(" ".join(place), "missing"))
        elif json.dumps(value) != json.dumps(points[point][name]):
            gap, texts = _gap(value, points[point][name]), map(json.dumps, (value, points[point][name]))
            was = " was recorded, now ".join(text[:120] for text in texts)
            found.append(Finding(" ".join(place), f"{was}, relative difference {gap:.1e}"))
    return list(dict.fromkeys(found))


def _facts(record: Record) -> Iterator[tuple[str, str, str, str, Any]]:
    for section in ("claims", "values"):
        for owner, points in record[section].items():
            for point, facts in points.items():
                yield from ((section, owner, point, name, value) for name, value in facts.items())


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


# --- the command


def main(words: Sequence[str] | None = None) -> int:
    """Make or compare a record; the exit status."""
    parser = command("benchmarks.reference", __doc__, fast=False, workers=2)
    parser.add_argument("action", choices=("make", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--paper", action="append", choices=registry.paper_ids())
    asked, old = parser.parse_args(words), {"claims": {}, "values": {}}
    comparing = asked.action == "compare"
    try:
        if comparing or asked.file.exists():
            old = json.loads(gzip.decompress(asked.file.read_bytes()))
    except (OSError, ValueError, EOFError) as error:
        parser.error(str(error))
    if asked.fast and not comparing:
        parser.error("--fast is for compare: a record has values")
    claims = [claim for claim in registry.claims() if _is_of(claim.id, asked.paper)]
    now = recorded(claims, asked.workers, old["values"] if comparing else NONE, fast=asked.fast)
    return _told(old, now, asked) if comparing else _write(asked.file, old, now, asked.paper)


def _told(old: Record, now: Record, asked: argparse.Namespace) -> int:
    """Compare the claims of some papers, and what they read where it was computed again."""
    if now["made on"] != old["made on"]:
        print(f"recorded elsewhere, the last bits may differ: on {old['made on']}, here {now['made on']}")
    claims = {name: facts for name, facts in old["claims"].items() if _is_of(name, asked.paper)}
    read = {source for facts in claims.values() for source in facts[""]["reads"]}
    values = {} if asked.fast else {name: facts for name, facts in old["values"].items() if name in read}
    before: Record = {"claims": claims, "values": values}
    findings = compare(before, now)
    there, known = ({fact[:4] for fact in _facts(record)} for record in (now, old))
    for finding in findings:
        print(f"DIFFERS: {finding.key}: {finding.what}")
    count = len(list(_facts(before)))
    print(f"{count} facts compared: {len(findings)} findings differ; {len(there - known)} facts are new")
    return 1 if findings else 0


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
    # Without a time, so that the same record gives the same bytes.
    file.write_bytes(gzip.compress(json.dumps(new, separators=(",", ":")).encode(), mtime=0))
    drawn = {_place(c).id for c in registry.claims() if isinstance(c, Claim | StatisticalProperty)}
    few = [n for n, facts in values.items() if n in drawn and min(_counts(facts).values()) < REPLICATES]
    print(f"{file}: {file.stat().st_size:,} bytes; fewer replicates: {', '.join(few) or 'nowhere'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
