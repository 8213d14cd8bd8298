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
import multiprocessing
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch

from benchmarks.rates.cells import FULL, QUICK, Effort, Records
from benchmarks.rates.networks import NETWORKS, half
from benchmarks.rates.rules import work
from benchmarks.rates.tables import constants, judged, tables


def main(argv: Sequence[str] | None = None) -> int:
    """Run or continue a half, and print its tables."""
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
    asked = parser.parse_args(argv)
    asked.folder.mkdir(parents=True, exist_ok=True)
    if not asked.tables:
        file, setting = asked.folder / "setting.json", {n: vars(asked)[n] for n in ("half", "quick", "data")}
        before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else setting
        if before != setting:
            print(f"--folder must be one of this setting, {setting}, got one of {before}", file=sys.stderr)
            return 1
        file.write_text(json.dumps(setting), encoding="utf-8")
        _run(asked)
    known = None if asked.constants is None else constants(judged(_records(asked.constants)))
    text = tables(_records(asked.folder), known)
    (asked.folder / "tables.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def _records(folder: Path) -> list[Records]:
    return [Records(file) for file in sorted(folder.glob("*.jsonl"))]


def _run(asked: argparse.Namespace) -> None:
    names = [
        network.name
        for network in half(asked.half)
        if not (asked.quick and network.source == "images-32")  # of which runs are long
        and (asked.network is None or network.name in asked.network)
    ]
    jobs = [(name, QUICK if asked.quick else FULL, asked.folder, asked.data) for name in names]
    if asked.workers == 1:
        for job in jobs:
            _network(*job)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with ProcessPoolExecutor(asked.workers, multiprocessing.get_context("spawn")) as pool:
        try:
            list(pool.map(_network, *zip(*jobs, strict=True)))
        except BaseException:  # the pool would wait for the networks that are under way
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise


def _network(name: str, effort: Effort, folder: Path, images: str | None) -> None:
    torch.set_num_threads(1)
    network = next(network for network in NETWORKS if network.name == name)
    for told in work(network, effort, Records(folder / f"{name}.jsonl"), images):
        print(told, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
