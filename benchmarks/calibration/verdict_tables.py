"""Verdicts: wrong ones in synthetic reports, and the replicates that they take."""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.laws import LAWS, generator
from benchmarks.calibration.limits import Ints
from benchmarks.calibration.misses import SUITE, clopper_pearson
from benchmarks.calibration.tables import Row, Table, chunks, over_promise, spread
from benchmarks.calibration.verdicts import (
    AGREES,
    CLAIMS,
    DISAGREES,
    OFFSETS,
    REPORT_ALPHAS,
    REPORT_LAWS,
    Claims,
    Verdicts,
    judge_reports,
    judged,
    wrong,
)

__all__ = ["replicates", "reports"]


def _report_task(chunk: int, reports: int, budget: int, seed: int) -> tuple[Claims, Verdicts]:
    return judge_reports(reports, budget, generator(seed, "reports", chunk))


def reports(args: argparse.Namespace) -> list[Table]:
    """Synthetic reports: any wrong verdict, and what stays undecided."""
    tasks = [(*chunk, args.budget, args.seed) for chunk in chunks(args.reports, 50)]
    parts = spread("reports", _report_task, tasks, args.processes)
    claims = Claims(*(np.concatenate(columns) for columns in zip(*(c for c, _ in parts), strict=True)))
    verdict = np.concatenate([v.verdict for _, v in parts], axis=1)
    bad = wrong(verdict, claims.theta, claims.delta)
    return [_whole_reports(verdict, bad), _by_offset(claims, verdict, bad), _by_law(claims, verdict, bad)]


def _whole_reports(verdict: Ints, bad: NDArray[np.bool_]) -> Table:
    rows, data = [], []
    for alpha, v, b in zip(REPORT_ALPHAS, verdict, bad, strict=True):
        any_wrong, total = int(b.reshape(-1, CLAIMS).any(axis=1).sum()), len(b) // CLAIMS
        lower, upper = clopper_pearson(any_wrong, total)
        share = f"{any_wrong} of {total}: {any_wrong / total:.2g} [{lower:.2g}, {upper:.2g}]"
        rows.append([f"{alpha:.3g}", f"{CLAIMS * alpha:.2g}", share, f"{b.sum()}", f"{(v == 0).mean():.3f}"])
        found = {
            "wrong_reports": any_wrong,
            "wrong_claims": int(b.sum()),
            "undecided": float((v == 0).mean()),
        }
        data.append({"alpha": alpha, "reports": total, **found})
    columns = ["error per interval", "promise", "reports with any wrong verdict", "wrong", "undecided"]
    return Table(title=f"Reports of {CLAIMS} claims", columns=columns, rows=rows, data=data)


def _by_offset(claims: Claims, verdict: Ints, bad: NDArray[np.bool_]) -> Table:
    rows, data = [], []
    for offset in OFFSETS:
        at = claims.offset == offset
        shares = [(float((v[at] == 0).mean()), int(b[at].sum())) for v, b in zip(verdict, bad, strict=True)]
        rows.append([f"{offset:g}", f"{at.sum()}", *(f"{u:.3f}, {w}" for u, w in shares)])
        data.append({"offset": offset, "claims": int(at.sum()), "undecided_wrong": shares})
    columns = ["offset / margin", "claims", *(f"{a:.2g}" for a in REPORT_ALPHAS)]
    return Table(title="Undecided (share), wrong (number), by offset", columns=columns, rows=rows, data=data)


def _by_law(claims: Claims, verdict: Ints, bad: NDArray[np.bool_]) -> Table:
    rows, data, edge = [], [], claims.offset == 1.0
    for i, law in enumerate(REPORT_LAWS):
        at = (claims.law == i) & edge
        hits = [int(b[at].sum()) for b in bad]
        undecided = [float((v[claims.law == i] == 0).mean()) for v in verdict]
        cells = [over_promise(h, int(at.sum()), a) for h, a in zip(hits, REPORT_ALPHAS, strict=True)]
        rows.append([law.name, f"{at.sum()}", *cells, f"{undecided[-1]:.3f}"])
        data.append({"law": law.name, "at_the_margin": int(at.sum()), "wrong": hits, "undecided": undecided})
    columns = ["law", "claims", *(f"{a:.2g}" for a in REPORT_ALPHAS), "undecided, all offsets, suite"]
    title = "Theory exactly one margin off: wrong / promise, by law"
    return Table(title=title, columns=columns, rows=rows, data=data)


RATIOS = (1, 1 / 2, 1 / 4, 1 / 10, 1 / 20)

SITUATIONS = {"right": 0.0, "off by 1/2 margin": 0.5, "off by 2 margins": 2.0}

CAP = 2**17


def _replicates_task(law: str, fraction: float, offset: float, chunk: int, rows: int, seed: int) -> Verdicts:
    rng, delta = generator(seed, law, round(1 / fraction), round(2 * offset), chunk), np.full(rows, fraction)
    theta, sd = rng.choice([-1.0, 1.0], rows) * offset * delta, LAWS[law].sd
    return judged(LAWS[law], sd * theta, sd * delta, alphas=(SUITE,), budget=CAP, rng=rng)


def replicates(args: argparse.Namespace) -> list[Table]:
    """Replicates at the decision at the suite's own error."""
    cells = [(law, f, o) for law in ("normal", "lognormal(1)") for f in RATIOS for o in SITUATIONS.values()]
    each = chunks(args.claims, 250)
    found = spread(
        "replicates", _replicates_task, [(*c, *e, args.seed) for c in cells for e in each], args.processes
    )
    data = []
    for i, (law, fraction, offset) in enumerate(cells):
        parts = found[i * len(each) : (i + 1) * len(each)]
        took = np.concatenate([part.replicates[0] for part in parts])
        undecided = int(sum((part.verdict == 0).sum() for part in parts))
        wrongly = int(sum((part.verdict == (AGREES if offset > 1 else DISAGREES)).sum() for part in parts))
        quantiles = {"median": float(np.median(took)), "ninety": float(np.quantile(took, 0.9))}
        row = {"law": law, "fraction": fraction, "offset": offset, "claims": args.claims}
        data.append({**row, **quantiles, "undecided": undecided, "wrong": wrongly})
    per_line = len(SITUATIONS)
    lines = [data[i : i + per_line] for i in range(0, len(data), per_line)]
    rows = [[d[0]["law"], f"1/{1 / d[0]['fraction']:g}", *map(_median_and_ninety, d)] for d in lines]
    title = f"Replicates at the decision, median (90 % quantile), {args.claims} claims each, at most {CAP}"
    return [Table(title=title, columns=["law", "margin / sd", *SITUATIONS], rows=rows, data=data)]


def _median_and_ninety(row: Row) -> str:
    open_ = f", {row['undecided']} undecided" if row["undecided"] else ""
    return f"{row['median']:.0f} ({row['ninety']:.0f}){open_}"
