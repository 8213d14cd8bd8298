"""Compare every experiment on a real device with the CPU: difference of the scores, seconds and memory.

    python -m benchmarks.on_a_device --device cuda --workers 8

`benchmarks.pretend` does so for a device that is not there. Workers share the device and the cores, so that seconds are
those of a busy machine; with one worker each block runs alone.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple, NoReturn

import torch

from benchmarks.pretend.trials import CLOSE, Drawn, difference, drawn, failure
from simulate.monte_carlo import resolve_device, run_block

HEAD = """| what | difference | seconds on the CPU | on the device | MiB there | what, or what is wrong |
|---|---|---|---|---|---|"""


class TooLong(BaseException):
    """A block took longer than it may: no error, so that nothing catches it on the way."""


class Trial(NamedTuple):
    """Row of the table, and whether something failed or, in double precision, differs."""

    row: str
    wrong: bool


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; 1 if something is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.on_a_device", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--device", metavar="NAME", default="auto", help="cpu, cuda, cuda:<index> or auto")
    parser.add_argument("--only", metavar="TEXT", default="", help="only names that contain this text")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="longest time of a block")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes that share the device")
    asked = parser.parse_args(words)
    run = partial(_tried_by_name, device=resolve_device(asked.device), seconds=asked.seconds)
    names, wrong = [one.name for one in drawn() if asked.only in one.name], 0
    print(HEAD, flush=True)
    with ProcessPoolExecutor(asked.workers, multiprocessing.get_context("spawn")) as pool:
        for trial in pool.map(run, names):
            print(trial.row, flush=True)
            wrong += trial.wrong
    print(f"{len(names)} blocks, {wrong} of them wrong", file=sys.stderr)
    return int(wrong > 0)


def _tried_by_name(name: str, *, device: str, seconds: float) -> Trial:
    warnings.simplefilter("ignore")
    return tried(next(one for one in drawn() if one.name == name), device, seconds)


def tried(one: Drawn, device: str, seconds: float) -> Trial:
    """Run one block on the device and on the CPU; the table says which of them took longer than `seconds`."""
    gpu, blocks = device.startswith("cuda"), []
    if gpu:
        torch.cuda.reset_peak_memory_stats(device)
    for where in (device, "cpu"):
        try:
            with _limited(seconds):
                blocks.append(
                    run_block(
                        one.simulate, experiment=one.name, point=one.points[0], seed=7, index=0, size=one.size,
                        counted=True, device=where,
                    )
                )  # fmt: skip
        except TooLong:
            return Trial(f"| {one.name} | | | | | given up on {where} |", wrong=False)
        except Exception as error:  # what a device refuses is what is looked for
            return Trial(f"| {one.name} | | | | | on {where}: {failure(error)} |", wrong=True)
    there, here = blocks
    gap, score = difference(here.scores, there.scores, one.rounding)
    wrong = gap > CLOSE and not one.single
    note = f"{score} differs by {gap:.2g}" if wrong else one.single
    memory = torch.cuda.max_memory_allocated(device) >> 20 if gpu else 0
    numbers = f"{gap:.1g} | {here.seconds:.2f} | {there.seconds:.2f} | {memory}"
    return Trial(f"| {one.name} | {numbers} | {note} |", wrong)


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    signal.signal(signal.SIGALRM, _raise_too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _raise_too_long(*_: object) -> NoReturn:
    raise TooLong


if __name__ == "__main__":
    sys.exit(main())
