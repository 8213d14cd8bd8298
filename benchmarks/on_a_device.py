"""Every experiment on a real device beside the CPU: the same block on both, how far apart, how long, how much memory.

    python -m benchmarks.on_a_device --device cuda --workers 8

What `benchmarks.pretend` says of a device that is not there, this says of one that is. A row for each: largest
difference of a score, seconds on the CPU and on the device, and what torch held there at most. Several workers share
the device and the cores, so that seconds are of a busy machine; one worker times each by itself.
"""

from __future__ import annotations

import argparse
import multiprocessing
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, NoReturn

from benchmarks.pretend.trials import CLOSE, Drawn, difference, drawn, failure
from simulate.monte_carlo import BlockResult, resolve_device, run_block

HEAD = """| what | difference | seconds on the CPU | on the device | MiB there | what, or what is wrong |
|---|---|---|---|---|---|"""


class TooLong(BaseException):
    """A block took longer than it may: no error, so that nothing catches it on the way."""


@dataclass
class Trial:
    """One block on both.

    Attributes
    ----------
    gap
        Largest difference of a score, relative to its largest entry; None where one of the two gave none.
    here, there
        Seconds on the CPU and on the device; None where the block was given up.
    memory
        Bytes of tensors on the device at the peak.
    """

    name: str
    failure: str = ""
    gap: float | None = None
    score: str = ""
    here: float | None = None
    there: float | None = None
    memory: int = 0
    note: str = ""


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; 1 if something failed or, in double precision, differs."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.on_a_device", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--device", metavar="NAME", default="auto", help="cpu, cuda, cuda:<index> or auto (auto)"
    )
    parser.add_argument("--only", metavar="TEXT", default="", help="those with this in their name")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="give a block up after (60)")
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes that share the device (1)"
    )
    asked = parser.parse_args(words)
    device, started = resolve_device(asked.device), time.perf_counter()
    jobs = [(one.name, 2, device, asked.seconds) for one in drawn() if asked.only in one.name]
    print(HEAD, flush=True)
    with ProcessPoolExecutor(asked.workers, multiprocessing.get_context("spawn")) as pool:
        each = map if asked.workers == 1 else pool.map
        trials = each(tried, *zip(*jobs, strict=True))
        wrong = [bool(_told(trial)) for trial in trials]
    took = time.perf_counter() - started
    print(f"{len(wrong)} blocks, {sum(wrong)} of them wrong, {took:.0f} s", file=sys.stderr)
    return int(any(wrong))


def _told(t: Trial) -> str:
    """Print the row of a block; what is wrong with it."""
    wrong = complaint(t)
    gap = "not compared" if t.gap is None else f"{t.gap:.1g}"
    here, there = ("given up" if seconds is None else f"{seconds:.2f}" for seconds in (t.here, t.there))
    print(f"| {t.name} | {gap} | {here} | {there} | {t.memory >> 20} | {wrong or t.note} |", flush=True)
    return wrong


def complaint(trial: Trial) -> str:
    """Return the problem of a trial; empty if there is none, or if that is not known."""
    if trial.failure:
        return trial.failure
    if trial.gap is not None and trial.gap > CLOSE and not trial.note:
        return f"{trial.score} differs by {trial.gap:.2g}"
    return ""


_all: dict[str, Drawn] = {}


def tried(name: str, size: int, device: str, seconds: float) -> Trial:
    """One block, first on the device, where it warms up with a replicate, then on the CPU."""
    import torch

    warnings.simplefilter("ignore")
    if not _all:
        _all.update((one.name, one) for one in drawn())
        _warm_up(device)
    one = _all[name]
    point = one.points[0]
    ask: dict[str, Any] = {
        "experiment": name, "point": point, "seed": 7, "index": 0, "counted": True,
        "size": 1 if one.kind == "observation" else size,
    }  # fmt: skip
    trial = Trial(name, note=one.single)
    gpu = device.startswith("cuda")
    if gpu:
        torch.cuda.reset_peak_memory_stats(device)
    there = _block(trial, one, ask, device, seconds)
    if gpu:
        trial.memory = torch.cuda.max_memory_allocated(device)
        torch.cuda.empty_cache()
    here = _block(trial, one, ask, "cpu", seconds)
    trial.there, trial.here = (result and result.seconds for result in (there, here))
    if there and here:
        trial.gap, trial.score = difference(here.scores, there.scores, one.rounding)
    return trial


def _warm_up(device: str) -> None:
    """Libraries of a device load when they are first asked, which is no block's time."""
    import torch

    x = torch.eye(8, dtype=torch.float64, device=device).repeat(2, 1, 1)
    torch.linalg.eigh(x @ x)
    torch.linalg.qr(x)
    torch.linalg.cholesky(x)
    torch.linalg.svdvals(x)
    x.float() @ x.float()


def _block(trial: Trial, one: Drawn, ask: dict[str, Any], device: str, seconds: float) -> BlockResult | None:
    signal.signal(signal.SIGALRM, _enough)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return run_block(one.simulate, **ask, device=device)
    except TooLong:
        return None
    except Exception as error:  # what a device refuses is what is looked for
        trial.failure = f"on {device}: {failure(error)}"
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _enough(*_: object) -> NoReturn:
    raise TooLong


if __name__ == "__main__":
    sys.exit(main())
