"""Compare rules for learning rates on half of the networks.

    python -m benchmarks.rates --folder holdout --half holdout --data cifar10.npz   # about 40 minutes of one core
    python -m benchmarks.rates --folder quick --half holdout --quick                # digits, SGD and AdamW: 5 minutes

The folder gets a file for each network, state and optimiser; a campaign that was stopped continues there, and rules or
orders of the judge's batches that were not run are added. Tables are printed at the end. `--data` names an archive of
colour images with labels. Letters are those of pages in docs/: another version of these pages gives other samples.
`--network` runs one network, such as attention-text-torch. `--rule` runs one rule, by its name or as `module:function`:
a function of a `Task` that returns a rate for each batch size.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.rates.campaign import load, work
from benchmarks.rates.networks import NETWORKS
from benchmarks.rates.rules import RULES
from benchmarks.rates.tables import tables
from benchmarks.rates.task import OPTIMISERS, STATES, Ground
from benchmarks.timing import command


def main(argv: Sequence[str] | None = None) -> int:
    """Run or continue a half, and print its tables."""
    parser = command("benchmarks.rates", __doc__, data="", orders=1, quick=False)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--half", choices=("design", "holdout"), required=True)
    parser.add_argument("--network", action="append", help="default: all of the half")
    parser.add_argument("--rule", action="append", help=f"default: {'; '.join(RULES)}")
    options = parser.parse_args(argv)
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    rules = dict(RULES)
    for given in options.rule or ():
        if given not in RULES:
            module, function = given.split(":")
            rules[given] = getattr(importlib.import_module(module), function)
    rules = {name: rules[name] for name in options.rule or RULES}
    names = options.network or [network.name for network in NETWORKS]
    chosen = [network for network in NETWORKS if network.half == options.half and network.name in names]
    if options.quick:
        chosen = [n for n in chosen if n.source == "digits-8"]
    if not options.data and any(network.source.startswith("images") for network in chosen):
        parser.error("--data must name an archive of colour images")
    for network in chosen:
        for state in STATES:
            for optimiser in ("sgd", "adamw") if options.quick else OPTIMISERS:
                ground = Ground(network, state, optimiser, options.data or None)
                for line in work(ground, rules, options.folder, options.orders):
                    print(line, file=sys.stderr, flush=True)
    print(tables([load(file) for file in sorted(options.folder.glob("*.json"))]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
