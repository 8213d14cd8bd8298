"""A whole run made by hand: every kind, reading and verdict, and the numbers that break a careless page."""

from dataclasses import replace
from typing import Any

from tests.verify.results.sample_kinds import bound_rows, model_based_rows, spectrum
from tests.verify.results.sample_observations import observations
from tests.verify.results.sample_rows import point, row
from tests.verify.results.sample_statistics import exact_rows, statistical_rows, surprises
from verify.claims import registry
from verify.results import (
    InventoryRow,
    JudgedCounts,
    PaperRow,
    PointOutcome,
    Promise,
    Results,
    Row,
    RunRecord,
    Suite,
)


def _planted() -> list[Row]:
    return [
        row(
            f"planted/{name}",
            kind=kind,
            expected="disagrees",
            verdict="disagrees",
            source="planted error",
            margin_reason="planted: three margins away from the truth",
            points=[point({"scale": 1.7}, 1.955, 0.098, 1.702, 0.02)],
        )
        for name, kind in (("mean", "mean"), ("ratio", "ratio of means"))
    ]


def _inventory(rows: list[Row]) -> list[InventoryRow]:
    covered = {}
    for item in rows:
        for entry in item.entries:
            covered.setdefault((item.paper, entry), []).append(item.claim)
    judged = [
        InventoryRow(
            paper=paper,
            id=entry,
            title=f"Statement {entry}",
            status="judged",
            reason="",
            claims=sorted(set(claims)),
            observations=["granziol2022/batches"] if entry == "B17" else [],
        )
        for (paper, entry), claims in sorted(covered.items())
    ]
    rest = [
        ("vysogorets2024", "A1", "definition", ""),
        ("karakida2019", "C59", "not checkable here", "needs a cluster"),
    ]
    return judged + [
        InventoryRow(paper=p, id=e, title="Loss <L> & notation", status=s, reason=r, claims=[])
        for p, e, s, r in rest
    ]


def sample() -> Results:
    """The run."""
    rows = [*statistical_rows(), *exact_rows(), *surprises()]
    return Results(
        suite=Suite(
            version="0.1.0",
            seed=20240501,
            tier="default",
            device="cpu",
            alpha=1e-3 / 1024,
            family_error=1e-3,
            intervals=212,
            intervals_allowed=1024,
            selection="all",
            ledger="0123456789abcdef" * 4,
            census=JudgedCounts(
                known=14,
                asked=12,
                judged=12,
                left_out={"--paper": 2},
                missing=["beyond/<lost>"],
                withdrawn={"beyond/<old>": "2026-01-01 (ab12)"},
            ),
            promises=[Promise(paper="", error=1e-3, decided=11, undecided=1)],
            replicates=None,
            data="digits",
            papers=[
                PaperRow(
                    id=p.id,
                    authors=p.authors,
                    title=p.title,
                    family_error=0.0,
                    intervals=0,
                    intervals_allowed=0,
                )
                for p in registry.papers()
            ],
            host={
                "finished": "2026-01-02 03:04 UTC",
                "wall_seconds": 431.2,
                "workers": 2,
                "executor": "local",
                "commit": "0123456789ab",
                "platform": "Linux-6.1-x86_64",
                "machine": "x86_64",
                "python": "3.11.2",
                "packages": {"numpy": "2.1.0", "torch": "2.13.0"},
            },
        ),
        rows=rows,
        runs=[
            RunRecord(
                experiment=r.experiment,
                parameters=p.parameters,
                replicates=p.replicates,
                seconds=0.7 + 3 * k,
                sha256="0" * 64,
            )
            for k, r in enumerate(rows)
            for p in r.points[:2]
        ],
        inventory=_inventory(rows),
        planted=_planted(),
        derivations=[
            {
                "name": "excess of the softmax",
                "statement": r"\gamma = \frac{\operatorname{Tr} H}{\|H\|_F}",
                "expression": r"\frac{1 - \sum_k p_k^2}{\sqrt{\sum_k p_k^2 - 2\sum_k p_k^3}}",
                "steps": "expand the square\ncollect powers",
            }
        ],
        observations=observations(),
    )


def sample_of_kinds() -> Results:
    """A run of what rests on sizes, of bounds, distributions and vector scores."""
    rows = [*model_based_rows(), *bound_rows()]
    runs = [
        RunRecord(
            experiment="beyond/spectrum",
            parameters={"x": [p.parameters["x"] for p in spectrum()[0]], "dim": 200},
            replicates=768,
            seconds=1.5,
            sha256="0" * 64,
        )
    ]
    bare = {"planted": [], "derivations": [], "observations": []}
    return replace(sample(), rows=rows, runs=runs, inventory=_inventory(rows), **bare)


def outcome(**changes: Any) -> PointOutcome:
    """A point where nothing is said that need not be."""
    plain = {"parameters": {}, "verdict": "agrees", "predicted": 0.1, "margin": 0.1, "measured": 0.1}
    return PointOutcome(**{**plain, "lower": 0.1, "upper": 0.1, **changes})


def with_point(only: PointOutcome) -> Results:
    """Results of one row with one point."""
    base = sample()
    short = replace(base.rows[0], points=[only], curves=[])
    return Results(suite=base.suite, rows=[short], runs=base.runs[:1], inventory=base.inventory[:1])
