r"""Does the verdict engine keep its promise? Sequences of replicates with a known truth, by the million.

| table | what is measured |
|---|---|
| `miss` | chance that the interval of the mean misses it at any look, over its promise |
| `tails` | the same at the error of the suite, too rare to count: importance sampling |
| `events` | the interval of a probability, exactly: dynamic programming over the number of hits |
| `reports` | reports of a hundred claims each: any wrong verdict, against the promise |
| `replicates` | replicates at the decision, against margin / standard deviation |

``python -m benchmarks.calibration miss --sequences 4000000``; ``all`` makes every table.

| option | meaning |
|---|---|
| `--sequences` | per law of `miss`; other tables take a fixed part of it |
| `--first` | replicates at the first look of `tails` |
| `--reports`, `--budget` | synthetic reports, and most replicates of a claim in one |
| `--claims` | claims per cell of `replicates` |
| `--seed`, `--processes` | of all sequences; drawing at the same time |

The number of processes changes nothing: sequences come in chunks, each with a generator of its own.
Shares come with Clopper-Pearson intervals of 95 %.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any

import numpy as np

from benchmarks.calibration.laws import BATCH, EVERY, LAST, LAWS, PROMISED, Ints, generator
from benchmarks.calibration.misses import (
    ALPHAS,
    LOOKS,
    SUITE,
    Rule,
    clopper_pearson,
    event_miss_rate,
    misses,
    taken,
)
from benchmarks.calibration.tails import TAILS, rare_miss_rate
from benchmarks.calibration.verdicts import (
    CLAIMS,
    OFFSETS,
    REPORT_ALPHAS,
    Claims,
    Verdicts,
    judge_reports,
    judged,
    wrong,
)
from benchmarks.timing import command, table
from verify.judging.intervals import FEWEST

CHUNK = 16 * BATCH

Rows = list[list[str]]


def chunks(total: int, size: int = CHUNK) -> list[tuple[int, int]]:
    """Numbers and sizes of the chunks of `total` sequences, the same for any number of processes."""
    return [(i, min(size, total - start)) for i, start in enumerate(range(0, total, size))]


def spread(
    label: str, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], processes: int
) -> list[Any]:
    """Results of the tasks in their order; the number of finished ones goes to stderr."""
    found = list[Any]()
    with ProcessPoolExecutor(processes) as pool:
        each = pool.map if processes > 1 else map
        for result in each(function, *zip(*tasks, strict=True)):
            found.append(result)
            print(f"\r{label}: {len(found)}/{len(tasks)} ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def power(alpha: float) -> str:
    """An error as it is written in the tables."""
    return "1e-3/1024" if alpha == SUITE else f"1e{round(math.log10(alpha))}"


def _told(title: str, columns: Sequence[str], rows: Rows) -> str:
    return f"### {title}\n\n{table(columns, rows)}\n"


# --- how often an interval misses


def _count(law: str, chunk: int, rows: int, rule: Rule, seed: int) -> Ints:
    return misses(EVERY[law], rows, generator(seed, law, chunk), rules=(rule,))


def _over_promise(hits: int, n: int, alpha: float) -> str:
    """A share over `alpha`, with its interval."""
    lower, upper = clopper_pearson(hits, n)
    return f"{hits / n / alpha:.2g} [{lower / alpha:.2g}, {upper / alpha:.2g}]"


def miss(args: argparse.Namespace) -> list[str]:
    """Miss rates over all looks, over the promise."""
    rows: Rows = []
    for name, law in EVERY.items():
        sequences, rule = args.sequences // (1 if name in PROMISED else 4), taken(law.last, law.first)
        tasks = [(name, *chunk, rule, args.seed) for chunk in chunks(sequences)]
        missed, none = np.sum(spread(name, _count, tasks, args.processes), axis=0)[:, 0]
        cells = [_over_promise(int(m), sequences, a) for m, a in zip(missed, ALPHAS, strict=True)]
        share = f"{none[-1] / sequences / len(rule.looks):.2g}"
        rows.append([name, f"{sequences:.3g}", f"{rule.looks[0]} to {rule.looks[-1]}", *cells, share])
    undecided = f"looks without an interval at {power(SUITE)}"
    columns = ["law", "sequences", "looks", *map(power, ALPHAS), undecided]
    return [_told("The interval of the mean: miss rate / promise", columns, rows)]


def _rare(law: str, first: int, sequences: int, seed: int) -> tuple[float, float, float]:
    return rare_miss_rate(TAILS[law], SUITE, sequences, seed, first)


def tails(args: argparse.Namespace) -> list[str]:
    """Miss rates at the error of the suite by importance sampling."""
    tasks = [(law, args.first, math.ceil(args.sequences / 10), args.seed) for law in TAILS]
    found = spread("tails", _rare, tasks, args.processes)
    rows = [
        [law, f"{tail.skewness:.2g}", f"{tail.law.last}", f"{rate / SUITE:.2g} ± {2 * error / SUITE:.1g}"]
        for (law, tail), (rate, error, _) in zip(TAILS.items(), found, strict=True)
    ]
    title = f"Miss rate / promise by importance sampling, ± 2 standard errors, first look at {args.first}"
    return [_told(title, ["law", "skewness", "last look", power(SUITE)], rows)]


def events(_args: argparse.Namespace) -> list[str]:
    """Exact miss rates of the interval of a probability, at the looks and at every n."""
    steps = {"the looks": LOOKS, "every n": tuple(range(FEWEST, LAST + 1))}
    rows = [
        [f"{p}", name, *(f"{event_miss_rate(p, alpha, steps[name]) / alpha:.2g}" for alpha in ALPHAS)]
        for p, name in product((0.5, 0.05, 0.005), steps)
    ]
    title = f"Probability, miss rate / promise, exact, {FEWEST} to {LAST} replicates"
    return [_told(title, ["p", "at", *map(power, ALPHAS)], rows)]


# --- verdicts: wrong ones in synthetic reports, and the replicates that they take


def _reports(chunk: int, reports: int, budget: int, seed: int) -> tuple[Claims, Verdicts]:
    return judge_reports(reports, budget, generator(seed, "reports", chunk))


def reports(args: argparse.Namespace) -> list[str]:
    """Synthetic reports: any wrong verdict, and what stays undecided."""
    tasks = [(*chunk, args.budget, args.seed) for chunk in chunks(args.reports, 50)]
    parts = spread("reports", _reports, tasks, args.processes)
    claims = Claims(*(np.concatenate(columns) for columns in zip(*(c for c, _ in parts), strict=True)))
    verdict = np.concatenate([v.verdict for _, v in parts], axis=1)
    bad, rows = wrong(verdict, claims.theta, claims.delta), Rows()
    for alpha, v, b in zip(REPORT_ALPHAS, verdict, bad, strict=True):
        any_wrong, total = int(b.reshape(-1, CLAIMS).any(axis=1).sum()), len(b) // CLAIMS
        share = f"{any_wrong} of {total}: {_over_promise(any_wrong, total, 1.0)}"
        rows.append([f"{alpha:.3g}", f"{CLAIMS * alpha:.2g}", share, f"{b.sum()}", f"{(v == 0).mean():.3f}"])
    columns = ["error per interval", "promise", "reports with any wrong verdict", "wrong", "undecided"]
    whole, rows = _told(f"Reports of {CLAIMS} claims", columns, rows), Rows()
    for offset in OFFSETS:
        at = claims.offset == offset
        shares = [f"{(v[at] == 0).mean():.3f}, {b[at].sum()}" for v, b in zip(verdict, bad, strict=True)]
        rows.append([f"{offset:g}", f"{at.sum()}", *shares])
    columns = ["offset / margin", "claims", *(f"{a:.2g}" for a in REPORT_ALPHAS)]
    return [whole, _told("Undecided (share), wrong (number), by offset", columns, rows)]


RATIOS = (1, 1 / 2, 1 / 4, 1 / 10, 1 / 20)

SITUATIONS = {"right": 0.0, "off by 1/2 margin": 0.5, "off by 2 margins": 2.0}

CAP = 2**17


def _replicates(law: str, fraction: float, offset: float, chunk: int, rows: int, seed: int) -> Verdicts:
    rng, delta = generator(seed, law, round(1 / fraction), round(2 * offset), chunk), np.full(rows, fraction)
    theta, sd = rng.choice([-1.0, 1.0], rows) * offset * delta, LAWS[law].sd
    return judged(LAWS[law], sd * theta, sd * delta, alphas=(SUITE,), budget=CAP, rng=rng)


def replicates(args: argparse.Namespace) -> list[str]:
    """Replicates at the decision at the suite's own error."""
    lines, each = list(product(("normal", "lognormal(1)"), RATIOS)), chunks(args.claims, 250)
    tasks = [(*line, o, *e, args.seed) for line in lines for o in SITUATIONS.values() for e in each]
    found = iter(spread("replicates", _replicates, tasks, args.processes))
    rows: Rows = []
    for law, fraction in lines:
        cells = [_median_and_ninety([next(found) for _ in each]) for _ in SITUATIONS]
        rows.append([law, f"1/{1 / fraction:g}", *cells])
    title = f"Replicates at the decision, median (90 % quantile), {args.claims} claims each, at most {CAP}"
    return [_told(title, ["law", "margin / sd", *SITUATIONS], rows)]


def _median_and_ninety(parts: Sequence[Verdicts]) -> str:
    took = np.concatenate([part.replicates[0] for part in parts])
    undecided = sum(int((part.verdict == 0).sum()) for part in parts)
    left = f", {undecided} undecided" if undecided else ""
    return f"{np.median(took):.0f} ({np.quantile(took, 0.9):.0f}){left}"


TABLES = (miss, tails, events, reports, replicates)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables asked for as markdown."""
    parser = command(
        "benchmarks.calibration",
        __doc__,
        sequences=400_000,
        first=FEWEST,
        reports=1000,
        budget=2**14,
        claims=1000,
        seed=1,
        processes=2,
    )
    parser.add_argument("table", choices=[*(make.__name__ for make in TABLES), "all"])
    args = parser.parse_args(argv)
    for make in TABLES:
        if args.table in ("all", make.__name__):
            print(*make(args), sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
