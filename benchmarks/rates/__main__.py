"""Measure the learning rates that train on half of the networks, and compare rules for learning rates with them.

    python -m benchmarks.rates --folder design --half design            # about three hours on two cores
    python -m benchmarks.rates --folder quick --half design --quick     # ten minutes on one
    python -m benchmarks.rates --folder holdout --half holdout --constants design

The folder holds a file of JSON lines for each network; a campaign that was stopped continues there. Tables are printed
at the end and written to `tables.md`; `--tables` makes them from the existing files.
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
    parser.add_argument(
        "--folder", type=Path, required=True, help="folder of the campaign, which is continued"
    )
    parser.add_argument("--half", choices=("design", "holdout"), required=True, help="half of the networks")
    parser.add_argument("--quick", action="store_true", help="short runs of one seed, small networks")
    parser.add_argument("--data", metavar="NPZ", help="colour images with labels, instead of generated ones")
    parser.add_argument("--network", action="append", metavar="NAME", help="only this network (repeatable)")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="networks at a time")
    parser.add_argument("--tables", action="store_true", help="run nothing, only make the tables")
    parser.add_argument(
        "--constants",
        type=Path,
        metavar="FOLDER",
        help="folder of the design half, whose constants apply to the hold-out",
    )
    options = parser.parse_args(argv)
    options.folder.mkdir(parents=True, exist_ok=True)
    if not options.tables:
        file, setting = (
            options.folder / "setting.json",
            {n: vars(options)[n] for n in ("half", "quick", "data")},
        )
        before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else setting
        if before != setting:
            print(
                f"--folder must be of this setting, {setting}, got {before}; name an empty folder",
                file=sys.stderr,
            )
            return 1
        file.write_text(json.dumps(setting), encoding="utf-8")
        _run_campaign(options)
    known = None if options.constants is None else constants(judged(_records(options.constants)))
    text = tables(_records(options.folder), known)
    (options.folder / "tables.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def _records(folder: Path) -> list[Records]:
    return [Records(file) for file in sorted(folder.glob("*.jsonl"))]


def _run_campaign(options: argparse.Namespace) -> None:
    names = [
        network.name
        for network in half(options.half)
        if not (options.quick and network.source == "images-32")  # these runs are long
        and (options.network is None or network.name in options.network)
    ]
    jobs = [(name, QUICK if options.quick else FULL, options.folder, options.data) for name in names]
    if options.workers == 1:
        for job in jobs:
            _run_network(*job)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn")) as pool:
        try:
            list(pool.map(_run_network, *zip(*jobs, strict=True)))
        except BaseException:  # otherwise the pool would wait for running networks
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise


def _run_network(name: str, effort: Effort, folder: Path, images: str | None) -> None:
    torch.set_num_threads(1)
    network = next(network for network in NETWORKS if network.name == name)
    for line in work(network, effort, Records(folder / f"{name}.jsonl"), images):
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
