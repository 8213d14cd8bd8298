"""Options of the commands `measure` and `plan`; their code is loaded only when they run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

Command = Callable[[Any, str, Callable[..., int], str, str], argparse.ArgumentParser]

_REQUIRED = "--model MODULE:BUILD --data FILE.npz"


def add(commands: Any, command: Command) -> None:
    """Add the commands to the parser."""
    measure = command(
        commands, "measure", _measure, "measure the curvature of the loss of your model", _REQUIRED
    )
    _add_problem(measure, "losscurv-measure")
    _put(
        measure,
        ("--top", "number of largest eigenvalues (default 10)", "N", int, 10),
        ("--layers", "measure each layer too (50 passes per layer)"),
        (
            "--batches",
            "measure the largest eigenvalue of random mini-batches of B samples too",
            "B",
            int,
            None,
        ),
        ("--tolerance", "relative standard error to aim for (default 0.05)", "SHARE", float, 0.05),
        (
            "--budget",
            "most passes, each the cost of one forward and backward pass (default: those for the largest eigenvalue,"
            " and 200)",
            "N",
            float,
            None,
        ),
    )
    plan = command(
        commands, "plan", _plan, "choose a learning rate for each batch size by trial runs", _REQUIRED
    )
    _add_problem(plan, "losscurv-plan")
    sizes = "such as 16,64 (default: that of the data loader, else 64)"
    plan.add_argument("--batch-sizes", metavar="B,B", help=sizes)
    for flag, metavar, names, text in (
        ("--optimizer", "NAME", ("sgd", "momentum", "adam", "adamw"), "sgd (default), momentum, adam or adamw"),
        ("--score", "LOSS", ("training", "held-out", "online"),
         "choose by training (default), held-out or online loss"),
    ):  # fmt: skip
        plan.add_argument(flag, metavar=metavar, choices=names, default=names[0], help=text)
    _put(
        plan,
        ("--momentum", "momentum (default 0 for sgd, 0.9 for momentum)", "BETA", float, None),
        ("--weight-decay", "weight decay as in torch (default 0; adamw 0.01)", "RATE", float, None),
        ("--clip", "largest norm of the gradient", "NORM", float, None),
        ("--rate", "learning rate around which the search begins", "RATE", float, None),
        (
            "--steps",
            "training steps for which rates are chosen (default 200, or 5 epochs of up to 5120 samples if more)",
            "N",
            int,
            None,
        ),
        ("--seconds", "most time for the trial runs", "S", float, None),
        ("--drop-last", "leave out the short last batch of each epoch"),
        ("--evaluation", "train in evaluation mode, as model.eval() sets it"),
        ("--curvature", "add stability limits of plain SGD from curvature"),
    )


def _put(parser: argparse.ArgumentParser, *options: tuple[Any, ...]) -> None:
    """Add options: flag and help, and except for switches the name of the value, its type and its default."""
    for flag, text, *value in options:
        if value:
            metavar, kind, default = value
            parser.add_argument(flag, metavar=metavar, type=kind, default=default, help=text)
        else:
            parser.add_argument(flag, action="store_true", help=text)


def _add_problem(parser: argparse.ArgumentParser, folder: str) -> None:
    """Add the options for problem and output, which `loading.from_options` reads.

    `plan` takes ``--training`` only to say why it is wrong there, so its help does not show it.
    """
    measured = folder == "losscurv-measure"
    parser.add_argument(
        "--model",
        required=True,
        metavar="MODULE:BUILD",
        help="file.py:build or pkg.module:build, which returns the torch module; or hf:config.json (transformers)",
    )
    parser.add_argument(
        "--data",
        required=True,
        metavar="FILE.npz",
        help="archive with x_train, y_train (or x, y); or digits (built in), a text FILE.txt, or pkg.module:name"
        " (data loader, data set, pair, or function that returns one)",
    )
    parser.add_argument(
        "--parameters",
        action="append",
        metavar="NAME",
        help="use only this parameter or submodule (repeatable)",
    )
    parser.add_argument(
        "--dtype",
        metavar="NAME",
        choices=("float32", "float64"),
        default="float32",
        help="float32 (default) or float64",
    )
    _put(
        parser,
        (
            "--loss",
            "cross-entropy (default for integer targets), mse (else), bce or pkg.module:function",
            "NAME",
            str,
            None,
        ),
        (
            "--checkpoint",
            "state_dict to load; code in it is never run",
            "FILE",
            str,
            None,
        ),
        (
            "--field",
            "output for the loss, name or number (default: logits)",
            "NAME",
            str,
            None,
        ),
        (
            "--tokenizer",
            "folder of the tokenizer of a text (default: that of hf:config.json), or bytes",
            "FOLDER",
            str,
            None,
        ),
        (
            "--length",
            "tokens per sequence of a text (default at most 128)",
            "N",
            int,
            None,
        ),
        ("--training", "measure in training mode, all data in one batch" if measured else argparse.SUPPRESS),
        ("--samples", "use a random subset of N data samples (default: all)", "N", int, None),
        ("--batch-size", "samples per pass; limits memory only (default 1000)", "N", int, None),
        ("--device", "cpu (default), cuda, cuda:<index> or auto", "NAME", str, "cpu"),
        ("--seed", "random seed, an integer >= 0 (default 0)", "N", int, 0),
        ("--json", "print JSON instead of the table"),
        ("--output", f"folder for page and JSON (default {folder})", "FOLDER", str, folder),
    )


def _measure(options: argparse.Namespace) -> int:
    from verify.practice.measure.command import run_measure
    from verify.practice.processes import run_together

    return run_together(options, run_measure)


def _plan(options: argparse.Namespace) -> int:
    from verify.practice import plan
    from verify.practice.processes import run_together

    return run_together(options, plan.run_plan, patience=plan.PATIENCE)
