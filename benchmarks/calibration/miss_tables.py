"""How often an interval misses: one table or two for each sub-command."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from benchmarks.calibration.laws import ADVERSARIAL, BEYOND, LAST, LAWS, PROMISED, generator
from benchmarks.calibration.limits import Ints, event_miss_rate, half_widths, power_sums
from benchmarks.calibration.misses import ALPHAS, LOOKS, RULES, SUITE, Rule, misses, taken
from benchmarks.calibration.tables import Row, Table, chunks, over_promise, power, spread
from benchmarks.calibration.tails import TAILS, rare_miss_rate
from verify.judging.intervals import FEWEST, ratio_interval

__all__ = [
    "adversarial",
    "alternatives",
    "events",
    "first",
    "miss",
    "ratio",
    "same_as_inverted",
    "tails",
]


def _count(
    law: str, chunk: int, rows: int, rules: Sequence[Rule], alphas: Sequence[float], seed: int
) -> Ints:
    return misses({**LAWS, **ADVERSARIAL}[law], rows, generator(seed, law, chunk), rules=rules, alphas=alphas)


def _counted(
    label: str,
    law: str,
    sequences: int,
    rules: Sequence[Rule],
    alphas: Sequence[float],
    args: argparse.Namespace,
) -> Ints:
    tasks = [(law, *chunk, rules, alphas, args.seed) for chunk in chunks(sequences)]
    return np.sum(spread(f"{label}, {law}", _count, tasks, args.processes), axis=0)


def _miss_table(title: str, laws: Mapping[str, int], args: argparse.Namespace) -> Table:
    rows, data = [], []
    for name, sequences in laws.items():
        law = {**LAWS, **ADVERSARIAL}[name]
        rule = taken(law.last, law.first)
        missed, ever, none = _counted(args.table, name, sequences, (rule,), ALPHAS, args)[:, 0]
        cells = [over_promise(int(m), sequences, a) for m, a in zip(missed, ALPHAS, strict=True)]
        shares = [f"{s / sequences / len(rule.looks):.2g}" for s in none[[1, -1]]]
        looked = f"{rule.looks[0]} to {rule.looks[-1]}"
        rows.append([name, f"{sequences:.3g}", looked, *cells, *shares])
        for j, alpha in enumerate(ALPHAS):
            found = {"missed": int(missed[j]), "looks_without": int(none[j]), "ever_without": int(ever[j])}
            data.append({"law": name, "sequences": sequences, "alpha": alpha, **found})
    undecided = [f"looks without an interval at {power(alpha)}" for alpha in (ALPHAS[1], SUITE)]
    columns = ["law", "sequences", "looks", *map(power, ALPHAS), *undecided]
    return Table(title=title, columns=columns, rows=rows, data=data)


def miss(args: argparse.Namespace) -> list[Table]:
    """Miss rates over all looks, over the promise."""
    fewer = math.ceil(args.sequences / 4)
    wanted = {law: args.sequences if law in PROMISED else fewer for law in (*PROMISED, *BEYOND)}
    return [_miss_table(f"Miss rate / promise, any look from {FEWEST} on", wanted, args)]


def adversarial(args: argparse.Namespace) -> list[Table]:
    """Miss rates for laws made to break the promise, over the promise."""
    each = math.ceil(args.sequences / 10)
    wanted: dict[str, int] = dict.fromkeys(ADVERSARIAL, each)
    return [_miss_table("Adversarial laws: miss rate / promise", wanted, args)]


def alternatives(args: argparse.Namespace) -> list[Table]:
    """Miss rates of intervals that were not taken, on the same sequences."""
    alphas, sequences, rows, data = ALPHAS[1:4], math.ceil(args.sequences / 4), [], []
    laws = ("normal", "lognormal(1)")
    counts = [_counted(args.table, law, sequences, RULES, alphas, args)[0] for law in laws]
    for i, rule in enumerate(RULES):
        cells = [over_promise(int(c[i, j]), sequences, a) for c in counts for j, a in enumerate(alphas)]
        rows.append([rule.name, *cells])
        for law, count in zip(laws, counts, strict=True):
            found = {power(a): int(count[i, j]) for j, a in enumerate(alphas)}
            data.append({"rule": rule.name, "law": law, "sequences": sequences, "missed": found})
    columns = ["interval", *(f"{law}, {power(a)}" for law in laws for a in alphas)]
    return [
        Table(title=f"Alternatives, {sequences:.3g} sequences each", columns=columns, rows=rows, data=data)
    ]


TAIL_ALPHAS = (1e-3, 1e-5, SUITE)

FIRSTS = (64, 80, 96, 128)

FIRST_LAWS = ("lognormal(0.5)", "lognormal(0.7)", "lognormal(0.85)", "lognormal(1)")


def _rare(law: str, alpha: float, sequences: int, seed: int, first: int) -> tuple[float, float, float]:
    return rare_miss_rate(TAILS[law], alpha, sequences, seed, first)


def _weighted(
    args: argparse.Namespace, laws: Iterable[str], cells: Sequence[tuple[float, int]]
) -> tuple[list[list[str]], list[Row]]:
    sequences = math.ceil(args.sequences / 10)
    tasks = [(law, alpha, sequences, args.seed, first) for law in laws for alpha, first in cells]
    rows = {law: [law, f"{TAILS[law].skewness:.2g}", f"{TAILS[law].law.last}"] for law in laws}
    data = []
    for task, found in zip(tasks, spread(args.table, _rare, tasks, args.processes), strict=True):
        (law, alpha, _, _, first), (rate, error, largest) = task, found
        rows[law].append(f"{rate / alpha:.2g} ± {2 * error / alpha:.1g}")
        result = {"rate": rate, "standard_error": error, "largest_share": largest}
        data.append({"law": law, "alpha": alpha, "first": first, "sequences": sequences, **result})
    return list(rows.values()), data


def tails(args: argparse.Namespace) -> list[Table]:
    """Miss rates by importance sampling, to the error of the suite itself."""
    rows, data = _weighted(args, TAILS, [(alpha, FEWEST) for alpha in TAIL_ALPHAS])
    title = "Miss rate / promise by importance sampling, ± 2 standard errors"
    columns = ["law", "skewness", "last look", *map(power, TAIL_ALPHAS)]
    return [Table(title=title, columns=columns, rows=rows, data=data)]


def first(args: argparse.Namespace) -> list[Table]:
    """Miss rates at the error of the suite where the first look comes earlier or later."""
    rows, data = _weighted(args, FIRST_LAWS, [(SUITE, n) for n in FIRSTS])
    title = f"Miss rate / promise at {power(SUITE)} by the first look, ± 2 standard errors"
    columns = ["law", "skewness", "last look", *(f"from {n}" for n in FIRSTS)]
    return [Table(title=title, columns=columns, rows=rows, data=data)]


def events(_args: argparse.Namespace) -> list[Table]:
    """Exact miss rates of the interval of a probability, at the looks and at every n."""
    rows, data = [], []
    for p in (0.5, 0.05, 0.005):
        for name, steps in (("the looks", LOOKS), ("every n", tuple(range(FEWEST, LAST + 1)))):
            rates = {alpha: event_miss_rate(p, alpha, steps) for alpha in ALPHAS}
            rows.append([f"{p}", name, *(f"{rate / alpha:.2g}" for alpha, rate in rates.items())])
            data += [{"p": p, "at": name, "alpha": alpha, "rate": rate} for alpha, rate in rates.items()]
    title = f"Probability, miss rate / promise, exact, {FEWEST} to {LAST} replicates"
    return [Table(title=title, columns=["p", "at", *map(power, ALPHAS)], rows=rows, data=data)]


def ratio(args: argparse.Namespace) -> list[Table]:
    """Miss rates of the set of r for which 0 may be the mean of A - r B, and whether `ratio_interval` is that set."""
    wanted = {"ratio": math.ceil(args.sequences / 4)}
    table = _miss_table("Ratio E[A] / E[B], miss rate / promise of the set that is inverted", wanted, args)
    tasks = [(*chunk, args.seed) for chunk in chunks(math.ceil(args.sequences / 2000), 64)]
    same = np.sum(spread("ratio_interval itself", same_as_inverted, tasks, args.processes), axis=0)
    names = ("samples", "both miss", "`ratio_interval` alone", "the set alone")
    data: list[Row] = [{name: int(count) for name, count in zip(names, same, strict=True)}]
    title = f"`ratio_interval` against the set that is inverted, {FEWEST} replicates, error 1/2"
    return [table, Table(title=title, columns=names, rows=[[str(v) for v in same]], data=data)]


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
