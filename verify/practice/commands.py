"""Options of the commands `measure` and `plan`, whose code is loaded when they run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

Command = Callable[[Any, str, Callable[..., int], str], argparse.ArgumentParser]


def add(commands: Any, command: Command) -> None:
    """Add the commands to the parser."""
    measure = command(commands, "measure", _measure, "measure the curvature of the loss of your model")
    _add_problem(measure, "losscurv-measure")
    _put(
        measure,
        ("--top", "number of largest eigenvalues (default 10)", "N", int, 10),
        ("--layers", "measure each layer too (some 80 products per layer)"),
        (
            "--factors",
            "distance of KFAC and EKFAC from the Gauss-Newton matrix (some 40 products per layer)",
        ),
        (
            "--save-vectors",
            "save eigenvectors of the Hessian, by parameter name",
            "FILE.npz",
            str,
            None,
        ),
        ("--probes", "random vectors that estimates start with (default 20)", "N", int, 20),
        (
            "--tolerance",
            "target for the standard error of traces and norms, relative (default 0.05)",
            "SHARE",
            float,
            0.05,
        ),
        (
            "--budget",
            "most matrix-vector products in all (default 3000); the first estimates, some 500 with ten eigenvalues,"
            " are always made",
            "N",
            int,
            3000,
        ),
    )
    plan = command(commands, "plan", _plan, "find learning rates for your model, one for each batch size")
    _add_problem(plan, "losscurv-plan")
    plan.add_argument(
        "--batch-sizes",
        required=True,
        metavar="B,B,...",
        help="batch sizes to plan for, such as 16,32,64; at most all samples",
    )
    plan.add_argument(
        "--optimizer",
        choices=("sgd", "momentum", "adam", "adamw"),
        default="sgd",
        help="optimizer of the trial runs (default sgd; momentum is sgd with momentum 0.9)",
    )
    _put(
        plan,
        ("--momentum", "momentum of sgd (default 0; with momentum 0.9)", "BETA", float, None),
        ("--weight-decay", "weight decay as in torch (default 0; adamw 0.01)", "RATE", float, None),
        ("--rate", "rate of the first trial, such as the one that you use now", "RATE", float, None),
        (
            "--steps",
            "training steps that trials look ahead (default 200, or 5 epochs of at most 5120 samples if more)",
            "N",
            int,
            None,
        ),
        (
            "--seconds",
            "about how long trials may take; they look fewer steps ahead if they would take longer",
            "S",
            float,
            None,
        ),
        ("--intended", "steps of your whole training, shown with the steps of the trials", "N", int, None),
        ("--drop-last", "leave out the short batch at the end of an epoch"),
        ("--evaluation", "train in evaluation mode: stored statistics, no dropout"),
        ("--adam-rate", "a good learning rate of Adam, scaled to each batch size", "RATE", float, None),
        ("--adam-batch", "batch size of --adam-rate", "B", int, None),
    )
    for part, told in (("trials", "curvature alone, without trial training"),
                       ("linearised", "trial training alone, without curvature")):  # fmt: skip
        plan.add_argument(f"--no-{part}", dest=part, action="store_false", help=told)


def _put(parser: argparse.ArgumentParser, *options: tuple[Any, ...]) -> None:
    """Add options: flag and help, and except for switches the name of the value, its type and its default."""
    for flag, told, *value in options:
        if value:
            metavar, kind, default = value
            parser.add_argument(flag, metavar=metavar, type=kind, default=default, help=told)
        else:
            parser.add_argument(flag, action="store_true", help=told)


def _add_problem(parser: argparse.ArgumentParser, folder: str) -> None:
    """Add the options for problem and output, which `loading.from_options` reads."""
    parser.add_argument(
        "--model",
        required=True,
        metavar="MODULE:BUILD",
        help="pkg.module:build or path/file.py:build, a function or class that returns the torch module;"
        " or hf:config.json, a configuration of transformers",
    )
    parser.add_argument(
        "--data",
        required=True,
        metavar="FILE.npz",
        help="archive with x_train, y_train (or x, y); or digits (built in); or a text, FILE.txt; or"
        " pkg.module:name, a loader, data set or pair, or a function that returns one",
    )
    parser.add_argument(
        "--parameters",
        action="append",
        metavar="NAME",
        help="only this parameter or submodule (repeatable)",
    )
    parser.add_argument(
        "--dtype", choices=("float32", "float64"), default="float32", help="precision (default float32)"
    )
    _put(
        parser,
        (
            "--loss",
            "cross-entropy, mse, bce or pkg.module:function (default: cross-entropy for integer targets, else mse)",
            "NAME",
            str,
            None,
        ),
        (
            "--checkpoint",
            "state_dict to load; code in it is never run (measure: or a quoted pattern of files)",
            "FILE",
            str,
            None,
        ),
        (
            "--field",
            "output that the loss takes, by name or number, if the model returns several (default: logits)",
            "NAME",
            str,
            None,
        ),
        (
            "--tokenizer",
            "folder with the tokenizer of a text, or bytes (default: the folder of hf:config.json)",
            "FOLDER",
            str,
            None,
        ),
        (
            "--length",
            "tokens in each sequence of a text (default 128, or the most that the model takes)",
            "N",
            int,
            None,
        ),
        ("--training", "measure in training mode, with all data in one batch"),
        ("--samples", "measure a random subset of this size (default: all samples)", "N", int, None),
        ("--batch-size", "most samples in one pass, to limit memory (default 1000)", "N", int, None),
        ("--device", "cpu (default), cuda, cuda:<index> or auto", "NAME", str, "cpu"),
        ("--seed", "random seed, an integer >= 0 (default 0)", "N", int, 0),
        ("--json", "print JSON instead of the table"),
        ("--output", f"folder for page and JSON (default: {folder})", "FOLDER", str, folder),
    )


def _measure(options: argparse.Namespace) -> int:
    from verify.practice.measure.command import run_measure
    from verify.practice.processes import run_together

    return run_together(options, run_measure)


def _plan(options: argparse.Namespace) -> int:
    from verify.practice import plan
    from verify.practice.processes import run_together

    return run_together(options, plan.run_plan, patience=plan.PATIENCE)
