"""A command in several processes that ``torchrun`` started: data dealt out to them, and one of them that speaks."""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path


def run_together(
    options: argparse.Namespace,
    run: Callable[[argparse.Namespace], int],
    *,
    patience: timedelta | None = None,
) -> int:
    """Run a command as one of the processes that torchrun started, or as it is if none did.

    The first process writes and prints. What goes wrong in another it tells, too. A process that no longer answers, and
    has not closed its connections, is given up after `patience`, half an hour if None.

    Examples
    --------
    >>> run_together(argparse.Namespace(), lambda options: 0)  # of one process
    0
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return run(options)
    from torch import distributed

    from simulate.objectives.ranks import Ranks

    options.device = _own_device(options.device)
    gpu = options.device.startswith("cuda")
    distributed.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo", timeout=patience)
    try:
        options.group = distributed.group.WORLD
        ranks = Ranks(options.group)
        if not ranks.rank:
            with ranks.together("a command"):
                return run(options)
        with contextlib.suppress(Exception), ranks.together("a command"), _without_output(options):
            return run(options)
        return 2  # the first process prints the error
    finally:
        distributed.destroy_process_group()


def _own_device(device: str) -> str:
    """The GPU of this process, where each machine has one for every process."""
    import torch

    if device == "cpu" or not torch.cuda.is_available():
        return device
    number = int(os.environ["LOCAL_RANK"]) if device in ("auto", "cuda") else int(device.partition(":")[2])
    torch.cuda.set_device(number)
    return f"cuda:{number}"


@contextlib.contextmanager
def _without_output(options: argparse.Namespace) -> Iterator[None]:
    """Discard what is printed and written."""
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        options.output = folder
        yield
