"""Measure the learning rates that train on half of the networks, and compare rules for learning rates with them.

    python -m benchmarks.rates --folder design --half design --data cifar10.npz --workers 2     # about three hours

The folder gets a file for each network, state, optimiser and seed; a campaign that was stopped continues there. Tables
are printed at the end; `--tables` makes them from the existing files. `--data` names an archive of colour images with
labels, for networks that take them; `--workers` networks run at a time, or only those named by `--network`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import torch

from benchmarks.rates.cells import Results, load
from benchmarks.rates.networks import NETWORKS, Network
from benchmarks.rates.rules import work
from benchmarks.rates.tables import tables
from benchmarks.timing import command


def main(argv: Sequence[str] | None = None) -> int:
    """Run or continue a half, and print its tables."""
    parser = command("benchmarks.rates", __doc__, data="", workers=1, tables=False)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--half", choices=("design", "holdout"), required=True)
    parser.add_argument("--network", action="append")
    options = parser.parse_args(argv)
    options.folder.mkdir(parents=True, exist_ok=True)
    if not options.tables:
        chosen = [
            network
            for network in NETWORKS
            if network.half == options.half and network.name in (options.network or [network.name])
        ]
        if not options.data and (lacking := [n.name for n in chosen if n.source.startswith("images")]):
            parser.error(f"--data must name an archive of colour images for {', '.join(lacking)}")
        with ProcessPoolExecutor(options.workers) as pool:
            run = partial(_run_network, folder=options.folder, images=options.data)
            list(pool.map(run, [network.name for network in chosen]))
    results: Results = {}
    for file in sorted(options.folder.glob("*.json")):
        results |= load(file)
    print(tables(results))
    return 0


def _run_network(name: str, *, folder: Path, images: str | None) -> None:
    torch.set_num_threads(1)
    network: Network = next(network for network in NETWORKS if network.name == name)
    for line in work(network, folder, images):
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
