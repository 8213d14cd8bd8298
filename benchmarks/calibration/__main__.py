r"""Does the verdict engine keep its promise? Sequences of replicates with a known truth, by the million.

| sub-table | what is measured |
|---|---|
| `miss` | chance that the interval of the mean misses it at any look, over its promise |
| `adversarial` | the same for laws made to break the promise |
| `alternatives` | the same for intervals that were not taken |
| `tails` | the same at the error of the suite itself, too rare to count: importance sampling |
| `first` | the same where the first look comes earlier or later |
| `events` | the interval of a probability, exactly: dynamic programming over the number of hits |
| `ratio` | the interval of E[A] / E[B] |
| `reports` | reports of a hundred claims each: any wrong verdict, against the promise |
| `replicates` | replicates at the decision, against margin / standard deviation |

``python -m benchmarks.calibration miss --sequences 4000000``; ``all`` runs every one of them.
The number of processes changes nothing: sequences come in chunks, each with a generator of its own.
Shares come with Clopper-Pearson intervals of 95 %.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks.calibration.laws import (
    ADVERSARIAL,
    BATCH,
    BEYOND,
    EVERY,
    LAST,
    LAWS,
    PROMISED,
    Ints,
    generator,
    half_widths,
    power_sums,
)
from benchmarks.calibration.misses import (
    ALPHAS,
    LOOKS,
    RULES,
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
from benchmarks.timing import table
from verify.judging.intervals import FEWEST, ratio_interval

CHUNK = 16 * BATCH

Rows = list[list[str]]


def chunks(total: int, size: int = CHUNK) -> list[tuple[int, int]]:
    """Numbers and sizes of the chunks of `total` sequences, the same for any number of processes."""
    return [(i, min(size, total - start)) for i, start in enumerate(range(0, total, size))]


def spread(
    label: str, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], processes: int
) -> list[Any]:
    """Results of the tasks in their order; what is done and the time left go to stderr."""
    columns = list(zip(*tasks, strict=True))
    if processes == 1:
        return _reported(label, map(function, *columns), len(tasks))
    with ProcessPoolExecutor(processes) as pool:
        return _reported(label, pool.map(function, *columns), len(tasks))


def _reported(label: str, results: Iterable[Any], total: int) -> list[Any]:
    started, found = time.monotonic(), list[Any]()
    for done, result in enumerate(results, 1):
        found.append(result)
        left = (time.monotonic() - started) * (total - done) / done
        end = "\n" * (done == total)
        print(f"\r{label}: {done}/{total}, {left:.0f} s left   ", end=end, file=sys.stderr, flush=True)
    return found


def power(alpha: float) -> str:
    """An error as it is written in the tables."""
    return "1e-3/1024" if alpha == SUITE else f"1e{round(math.log10(alpha))}"


def _told(title: str, columns: Sequence[str], rows: Rows) -> str:
    return f"### {title}\n\n{table(columns, rows)}\n"


# --- how often an interval misses


def _count(
    law: str, chunk: int, rows: int, rules: Sequence[Rule], alphas: Sequence[float], seed: int
) -> Ints:
    return misses(EVERY[law], rows, generator(seed, law, chunk), rules=rules, alphas=alphas)


def _counted(
    law: str, sequences: int, rules: Sequence[Rule], alphas: Sequence[float], args: argparse.Namespace
) -> Ints:
    tasks = [(law, *chunk, rules, alphas, args.seed) for chunk in chunks(sequences)]
    return np.sum(spread(law, _count, tasks, args.processes), axis=0)


def _over_promise(hits: int, n: int, alpha: float) -> str:
    """A share over `alpha`, with its interval."""
    lower, upper = clopper_pearson(hits, n)
    return f"{hits / n / alpha:.2g} [{lower / alpha:.2g}, {upper / alpha:.2g}]"


def _miss_table(title: str, laws: Mapping[str, int], args: argparse.Namespace) -> list[str]:
    rows: Rows = []
    for name, sequences in laws.items():
        rule = taken(EVERY[name].last, EVERY[name].first)
        missed, _, none = _counted(name, sequences, (rule,), ALPHAS, args)[:, 0]
        cells = [_over_promise(int(m), sequences, a) for m, a in zip(missed, ALPHAS, strict=True)]
        shares = [f"{s / sequences / len(rule.looks):.2g}" for s in none[[1, -1]]]
        looked = f"{rule.looks[0]} to {rule.looks[-1]}"
        rows.append([name, f"{sequences:.3g}", looked, *cells, *shares])
    undecided = [f"looks without an interval at {power(alpha)}" for alpha in (ALPHAS[1], SUITE)]
    columns = ["law", "sequences", "looks", *map(power, ALPHAS), *undecided]
    return [_told(f"{title}miss rate / promise", columns, rows)]


def miss(args: argparse.Namespace) -> list[str]:
    """Miss rates over all looks, over the promise."""
    fewer = math.ceil(args.sequences / 4)
    wanted = {law: args.sequences if law in PROMISED else fewer for law in (*PROMISED, *BEYOND)}
    return _miss_table("The interval of the mean: ", wanted, args)


def adversarial(args: argparse.Namespace) -> list[str]:
    """Miss rates for laws made to break the promise, over the promise."""
    return _miss_table("Adversarial laws: ", dict.fromkeys(ADVERSARIAL, math.ceil(args.sequences / 10)), args)


def alternatives(args: argparse.Namespace) -> list[str]:
    """Miss rates of intervals that were not taken, on the same sequences."""
    alphas, sequences, laws = ALPHAS[1:4], math.ceil(args.sequences / 4), ("normal", "lognormal(1)")
    counts = [_counted(law, sequences, RULES, alphas, args)[0] for law in laws]
    rows = [
        [
            rule.name,
            *(_over_promise(int(c[i, j]), sequences, a) for c in counts for j, a in enumerate(alphas)),
        ]
        for i, rule in enumerate(RULES)
    ]
    columns = ["interval", *(f"{law}, {power(a)}" for law in laws for a in alphas)]
    return [_told(f"Alternatives, {sequences:.3g} sequences each", columns, rows)]


TAIL_ALPHAS = (1e-3, 1e-5, SUITE)

FIRSTS = (64, 80, 96, 128)

FIRST_LAWS = ("lognormal(0.5)", "lognormal(0.7)", "lognormal(0.85)", "lognormal(1)")


def _rare(law: str, alpha: float, first: int, sequences: int, seed: int) -> tuple[float, float, float]:
    return rare_miss_rate(TAILS[law], alpha, sequences, seed, first)


def _weighted(args: argparse.Namespace, laws: Iterable[str], cells: Mapping[str, tuple[float, int]]) -> str:
    sequences = math.ceil(args.sequences / 10)
    rows = {law: [law, f"{TAILS[law].skewness:.2g}", f"{TAILS[law].law.last}"] for law in laws}
    tasks = [(law, *cell, sequences, args.seed) for law in laws for cell in cells.values()]
    for (law, alpha, *_), (rate, error, _) in zip(
        tasks, spread(args.table, _rare, tasks, args.processes), strict=True
    ):
        rows[law].append(f"{rate / alpha:.2g} ± {2 * error / alpha:.1g}")
    title = "Miss rate / promise by importance sampling, ± 2 standard errors"
    return _told(title, ["law", "skewness", "last look", *cells], [*rows.values()])


def tails(args: argparse.Namespace) -> list[str]:
    """Miss rates by importance sampling, to the error of the suite itself."""
    return [_weighted(args, TAILS, {power(alpha): (alpha, FEWEST) for alpha in TAIL_ALPHAS})]


def first(args: argparse.Namespace) -> list[str]:
    """Miss rates at the error of the suite where the first look comes earlier or later."""
    return [_weighted(args, FIRST_LAWS, {f"from {n}": (SUITE, n) for n in FIRSTS})]


def events(_args: argparse.Namespace) -> list[str]:
    """Exact miss rates of the interval of a probability, at the looks and at every n."""
    steps = {"the looks": LOOKS, "every n": tuple(range(FEWEST, LAST + 1))}
    rows = [
        [f"{p}", name, *(f"{event_miss_rate(p, alpha, steps[name]) / alpha:.2g}" for alpha in ALPHAS)]
        for p, name in product((0.5, 0.05, 0.005), steps)
    ]
    title = f"Probability, miss rate / promise, exact, {FEWEST} to {LAST} replicates"
    return [_told(title, ["p", "at", *map(power, ALPHAS)], rows)]


def ratio(args: argparse.Namespace) -> list[str]:
    """Miss rates of the set of r for which 0 may be the mean of A - r B, and whether `ratio_interval` is that set."""
    tasks = [(*chunk, args.seed) for chunk in chunks(math.ceil(args.sequences / 2000), 64)]
    same = np.sum(spread("ratio_interval itself", same_as_inverted, tasks, args.processes), axis=0)
    title = f"`ratio_interval` against the set that is inverted, {FEWEST} replicates, error 1/2"
    names = ("samples", "both miss", "`ratio_interval` alone", "the set alone")
    return [
        *_miss_table("Ratio E[A] / E[B], ", {"ratio": math.ceil(args.sequences / 4)}, args),
        _told(title, names, [[str(v) for v in same]]),
    ]


def same_as_inverted(chunk: int, rows: int, seed: int) -> Ints:
    """Samples, and those missed by `ratio_interval` and by the interval of A - r B: by both, the one, the other."""
    rng, n, alpha = generator(seed, "ratio_interval", chunk), FEWEST, 0.5
    b = rng.standard_gamma(4.0, (rows, n))
    a = 1.5 * b * rng.standard_gamma(9.0, (rows, n)) / 9
    d = a - 1.5 * b
    inverted = np.abs(d.mean(axis=1)) > half_widths(power_sums(d), n, alpha)
    found = [ratio_interval(x, y, alpha=alpha) for x, y in zip(a, b, strict=True)]
    itself = np.array([not i.lower <= 1.5 <= i.upper for i in found])
    return np.array([rows, (itself & inverted).sum(), (itself & ~inverted).sum(), (inverted & ~itself).sum()])


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


TABLES = (miss, adversarial, alternatives, tails, first, events, ratio, reports, replicates)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables asked for as markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = [make.__name__ for make in TABLES]
    parser.add_argument("table", choices=[*names, "all"])
    whole = partial(parser.add_argument, type=int, metavar="N")
    whole("--sequences", default=400_000, help="per law of `miss`; the others take a fixed part of it")
    whole("--reports", default=1000, help="synthetic reports")
    whole("--budget", default=2**14, help="most replicates of a claim in a report")
    whole("--claims", default=1000, help="claims per cell of `replicates`")
    whole("--seed", default=1, help="of all sequences")
    whole("--processes", default=2, help="drawing at the same time")
    args = parser.parse_args(argv)
    for make in TABLES:
        if args.table in ("all", make.__name__):
            print(*make(args), sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
