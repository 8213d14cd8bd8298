"""Which rule finds a learning rate? Measures the rates that train on networks of a half, and judges rules by them.

    python -m benchmarks.rates --folder design --half design            # about three hours on two cores
    python -m benchmarks.rates --folder quick --half design --quick     # ten minutes on one
    python -m benchmarks.rates --folder holdout --half holdout --constants design

The folder holds a file of JSON lines for each network; a campaign that was stopped continues where it was. Tables are
printed at the end and written to `tables.md`; `--tables` makes them of what is there.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.rates.cells import FULL, QUICK
from benchmarks.rates.grid import expected
from benchmarks.rates.networks import Network, half
from benchmarks.rates.records import Records, gathered
from benchmarks.rates.tables import constants, judged, tables
from benchmarks.rates.workers import pieces

SETTING, TABLES = "setting.json", "tables.md"

_LARGE = "images-32"
"""Of the networks that a quick run leaves out."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run or continue a half, and print its tables."""
    asked = _asked(argv)
    asked.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    if not asked.tables:
        try:
            _require_same(asked)
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
        signal.signal(
            signal.SIGTERM, lambda *_: sys.exit(143)
        )  # processes are ended, what they found is kept
        _run(asked)
    known = None if asked.constants is None else constants(judged(_records(asked.constants)))
    text = tables(_records(asked.folder), known)
    (asked.folder / TABLES).write_text(text, encoding="utf-8")
    print(text)
    return 0


def _asked(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.rates", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="of the campaign; kept and continued")
    parser.add_argument("--half", choices=("design", "holdout"), required=True, help="of the networks")
    parser.add_argument("--quick", action="store_true", help="short runs of one seed, small networks")
    parser.add_argument("--data", metavar="NPZ", help="colour images with labels, in place of a stand-in")
    parser.add_argument("--network", action="append", metavar="NAME", help="only this one (repeatable)")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="networks at a time")
    parser.add_argument("--tables", action="store_true", help="run nothing, make the tables of what is there")
    parser.add_argument(
        "--constants", type=Path, metavar="FOLDER", help="of the design half, for the hold-out"
    )
    return parser.parse_args(argv)


def _records(folder: Path) -> list[Records]:
    return gathered(folder.glob("*.jsonl"))


def _require_same(asked: argparse.Namespace) -> None:
    """A folder is continued with the setting that it was begun with."""
    file, setting = asked.folder / SETTING, {"half": asked.half, "quick": asked.quick, "data": asked.data}
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else setting
    if before != setting:
        raise ValueError(f"--folder must be one of this setting, {setting}, got one of {before}")
    file.write_text(json.dumps(setting), encoding="utf-8")


def _chosen(asked: argparse.Namespace) -> list[Network]:
    networks = [n for n in half(asked.half) if not (asked.quick and n.source == _LARGE)]
    return [n for n in networks if asked.network is None or n.name in asked.network]


def _run(asked: argparse.Namespace) -> None:
    effort = QUICK if asked.quick else FULL
    prices = {n.name: expected(n, effort, asked.data) for n in _chosen(asked)}
    total, done, skipped, started = sum(prices.values()), 0.0, 0.0, time.monotonic()
    _say(f"{len(prices)} networks, about {duration(total / asked.workers)}")
    # side by side the longest go first; one after the other the shortest, so that there is soon something to look at
    order = sorted(prices, key=lambda name: prices[name], reverse=asked.workers > 1)
    for told, price in pieces(order, effort, asked.folder, asked.data, asked.workers):
        passed = time.monotonic() - started
        done += price
        if passed < _AT_ONCE * done:  # read from the records
            skipped = done
        left = (total - done) * passed / max(done - skipped, 1e-9)
        ahead = f", about {duration(left)} left" if done > skipped else ""
        _say(f"{told} [{100 * min(done / total, 1):.0f} %{ahead}]")


_AT_ONCE = 0.02
"""Of what a piece is guessed to take: faster ones were there before."""


def duration(seconds: float) -> str:
    """A time that is guessed.

    >>> duration(40), duration(600), duration(9000)
    ('1 min', '10 min', '2.5 h')
    """
    return f"{max(1, round(seconds / 60))} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
