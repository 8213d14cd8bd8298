"""The commands for a network of one's own: their options; what they do is loaded when they run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

__all__ = ["add"]

Command = Callable[[Any, str, Callable[..., int], str], argparse.ArgumentParser]


def add(commands: Any, command: Command) -> None:
    """Put the commands beside the others."""
    _add_measure(commands, command)
    _add_plan(commands, command)
    _add_bench(commands, command)


def _add_measure(commands: Any, command: Command) -> None:
    command(commands, "measure", _measure, "measure the curvature of the loss of a model of your own")


def _add_plan(commands: Any, command: Command) -> None:
    command(commands, "plan", _plan, "plan the learning rate against the batch size for a model of your own")


def _add_bench(commands: Any, command: Command) -> None:
    command(
        commands, "bench", _bench, "time curvature products beside those of other libraries, if installed"
    )


def _measure(options: argparse.Namespace) -> int:
    from verify.practice import measure

    return measure.run(options)


def _plan(options: argparse.Namespace) -> int:
    from verify.practice import plan

    return plan.run(options)


def _bench(options: argparse.Namespace) -> int:
    from verify.practice import bench

    return bench.run(options)
