"""The commands for a network of one's own: their options; what they do is loaded when they run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

Command = Callable[[Any, str, Callable[..., int], str], argparse.ArgumentParser]


def add(commands: Any, command: Command) -> None:
    """Put the commands beside the others."""
    measure = command(
        commands, "measure", _measure, "measure the curvature of the loss of a model of your own"
    )
    _add_problem(measure, "losscurv-measure")
    _put(
        measure,
        ("--top", "eigenvalues from the top (default 10)", "N", int, 10),
        ("--layers", "the Hessian layer by layer too; some 80 products for each layer"),
        (
            "--factors",
            "how far KFAC and EKFAC are from the Gauss-Newton matrix; some 40 products for each layer",
        ),
        (
            "--save-vectors",
            "eigenvectors of the Hessian, by the names of the parameters",
            "FILE.npz",
            str,
            None,
        ),
        ("--probes", "random vectors that estimates begin with (default 20)", "N", int, 20),
        (
            "--tolerance",
            "standard error of traces and norms to go on to, as a share of them (default 0.05)",
            "SHARE",
            float,
            0.05,
        ),
        (
            "--budget",
            "products with a vector of the whole command, eigenvalues and densities included (default 3000); what each"
            " part takes at first, some 500 with ten eigenvalues, is spent all the same",
            "N",
            int,
            3000,
        ),
    )
    plan = command(
        commands, "plan", _plan, "plan the learning rate against the batch size for a model of your own"
    )
    _add_problem(plan, "losscurv-plan")
    plan.add_argument(
        "--batch-sizes",
        required=True,
        metavar="B,B,...",
        help="to plan for, such as 16,32,64; at most all samples",
    )
    plan.add_argument(
        "--optimizer",
        choices=("sgd", "momentum", "adam", "adamw"),
        default="sgd",
        help="yours, with which rates are tried (default sgd; momentum is sgd with momentum 0.9)",
    )
    _put(
        plan,
        ("--momentum", "of sgd (default 0; 0.9 of momentum)", "BETA", float, None),
        ("--weight-decay", "as torch takes it (default 0; 0.01 of adamw)", "RATE", float, None),
        ("--rate", "where trials begin, such as the one that you use now", "RATE", float, None),
        (
            "--steps",
            "of training that trials look ahead (default 200, or 5 epochs of at most 5120 samples if that is more)",
            "N",
            int,
            None,
        ),
        (
            "--seconds",
            "about how long trials may take: they look fewer steps ahead if they would take longer",
            "S",
            float,
            None,
        ),
        ("--intended", "steps that your training takes, to be told beside them", "N", int, None),
        ("--drop-last", "leave out the short batch at the end of an epoch"),
        ("--evaluation", "your training keeps evaluation mode: stored statistics, no dropout"),
        ("--adam-rate", "a good learning rate of Adam, to be scaled", "RATE", float, None),
        ("--adam-batch", "the batch size that it is good at", "B", int, None),
    )
    for part, told in (("trials", "curvature alone, without trial training"),
                       ("linearised", "trial training alone, without curvature")):  # fmt: skip
        plan.add_argument(f"--no-{part}", dest=part, action="store_false", help=told)


def _put(parser: argparse.ArgumentParser, *options: tuple[Any, ...]) -> None:
    """Each by its flag and what it is; all but switches with what stands for a value, its type and the default."""
    for flag, told, *value in options:
        if value:
            metavar, kind, default = value
            parser.add_argument(flag, metavar=metavar, type=kind, default=default, help=told)
        else:
            parser.add_argument(flag, action="store_true", help=told)


def _add_problem(parser: argparse.ArgumentParser, folder: str) -> None:
    """The options that say what is measured and where the results go: `loading.from_options` reads them."""
    parser.add_argument(
        "--model",
        required=True,
        metavar="MODULE:BUILD",
        help="pkg.module:build or path/file.py:build, a function or class that gives the torch module;"
        " or hf:config.json, a configuration of transformers",
    )
    parser.add_argument(
        "--data",
        required=True,
        metavar="FILE.npz",
        help="x_train, y_train (or x, y); or digits, the embedded; or a text, FILE.txt; or pkg.module:name, a loader,"
        " data set or pair, or a function that gives one",
    )
    parser.add_argument(
        "--parameters",
        action="append",
        metavar="NAME",
        help="differentiate by this parameter or submodule only (repeatable)",
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
            "a state_dict to load, code in it is never run; measure takes a pattern too",
            "FILE",
            str,
            None,
        ),
        (
            "--field",
            "what the loss takes, by name or number, where the model returns several tensors (default: logits)",
            "NAME",
            str,
            None,
        ),
        (
            "--tokenizer",
            "with the files of the tokenizer of a text, or: bytes (default: the folder of hf:config.json)",
            "FOLDER",
            str,
            None,
        ),
        (
            "--length",
            "tokens of a sequence of a text (default 128, or what the model takes)",
            "N",
            int,
            None,
        ),
        ("--training", "measure in training mode, all data one batch"),
        ("--samples", "draw so many of the samples (default: all of them)", "N", int, None),
        ("--batch-size", "most samples in one pass, for memory (default 1000)", "N", int, None),
        ("--device", "cpu (default), cuda, cuda:<index> or auto", "NAME", str, "cpu"),
        ("--seed", "of all that is drawn, an integer >= 0 (default 0)", "N", int, 0),
        ("--json", "print JSON instead of the table"),
        ("--output", f"where page and JSON go (default: {folder})", "FOLDER", str, folder),
    )


def _measure(options: argparse.Namespace) -> int:
    from verify.practice.measure.command import run_measure
    from verify.practice.processes import run_together

    return run_together(options, run_measure)


def _plan(options: argparse.Namespace) -> int:
    from verify.practice import plan
    from verify.practice.processes import run_together

    return run_together(options, plan.run_plan, patience=plan.PATIENCE)
