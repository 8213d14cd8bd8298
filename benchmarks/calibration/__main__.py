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

``python -m benchmarks.calibration miss --sequences 4000000 --json miss.json``; ``all`` runs every one of them.
The number of processes changes nothing: sequences come in chunks, each with a generator of its own.
Shares come with Clopper-Pearson intervals of 95 %.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.calibration.miss_tables import adversarial, alternatives, events, first, miss, ratio, tails
from benchmarks.calibration.tables import Table
from benchmarks.calibration.verdict_tables import replicates, reports

__all__ = ["main"]

TABLES: Mapping[str, Callable[[argparse.Namespace], list[Table]]] = {
    "miss": miss,
    "adversarial": adversarial,
    "alternatives": alternatives,
    "tails": tails,
    "first": first,
    "events": events,
    "ratio": ratio,
    "reports": reports,
    "replicates": replicates,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("table", choices=[*TABLES, "all"])
    whole = partial(parser.add_argument, type=int, metavar="N")
    whole("--sequences", default=400_000, help="per law of `miss`; the others take a fixed part of it")
    whole("--reports", default=1000, help="synthetic reports")
    whole("--budget", default=2**14, help="most replicates of a claim in a report")
    whole("--claims", default=1000, help="claims per cell of `replicates`")
    whole("--seed", default=1, help="of all sequences")
    whole("--processes", default=2, help="drawing at the same time")
    parser.add_argument("--json", type=Path, help="file for the counts behind the tables")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables asked for as markdown."""
    args, written = _parser().parse_args(argv), {}
    for name in TABLES if args.table == "all" else [args.table]:
        tables = TABLES[name](argparse.Namespace(**vars(args) | {"table": name}))
        print(*tables, sep="\n", flush=True)
        written[name] = [{"title": table.title, "rows": list(table.data)} for table in tables]
    if args.json:
        arguments = {key: value for key, value in vars(args).items() if key not in ("json", "table")}
        args.json.write_text(
            json.dumps({"arguments": arguments, "tables": written}, indent=1), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
