"""The commands for a network of one's own: their options; what they do is loaded when they run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

Command = Callable[[Any, str, Callable[..., int], str], argparse.ArgumentParser]


def add(commands: Any, command: Command) -> None:
    """Put the commands beside the others."""
    _add_measure(commands, command)
    _add_plan(commands, command)


def _add_measure(commands: Any, command: Command) -> None:
    measure = command(
        commands, "measure", _measure, "measure the curvature of the loss of a model of your own"
    )
    _add_problem(measure, "losscurv-measure")
    measure.add_argument(
        "--top", type=int, metavar="N", default=10, help="eigenvalues from the top (default 10)"
    )
    measure.add_argument(
        "--layers",
        action="store_true",
        help="the Hessian layer by layer too; some 80 products for each layer",
    )
    measure.add_argument(
        "--factors",
        action="store_true",
        help="how far KFAC and EKFAC are from the Gauss-Newton matrix; some 40 products for each layer",
    )
    measure.add_argument(
        "--save-vectors",
        metavar="FILE.npz",
        help="eigenvectors of the Hessian, by the names of the parameters",
    )
    measure.add_argument(
        "--probes",
        type=int,
        metavar="N",
        default=20,
        help="random vectors that estimates begin with (default 20)",
    )
    measure.add_argument(
        "--tolerance",
        type=float,
        metavar="SHARE",
        default=0.05,
        help="standard error of traces and norms to go on to, as a share of them (default 0.05)",
    )
    measure.add_argument(
        "--budget",
        type=int,
        metavar="N",
        default=3000,
        help="products with a vector of the whole command, eigenvalues and densities included (default 3000); what"
        " each part takes at first, some 500 with ten eigenvalues, is spent all the same",
    )


def _add_plan(commands: Any, command: Command) -> None:
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
    plan.add_argument("--momentum", type=float, metavar="BETA", help="of sgd (default 0; 0.9 of momentum)")
    plan.add_argument(
        "--weight-decay", type=float, metavar="RATE", help="as torch takes it (default 0; 0.01 of adamw)"
    )
    plan.add_argument(
        "--rate", type=float, metavar="RATE", help="where trials begin, such as the one that you use now"
    )
    plan.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="of training that trials look ahead (default 200, or 5 epochs of at most 5120 samples if that is more)",
    )
    plan.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help="about how long trials may take: they look fewer steps ahead if they would take longer",
    )
    plan.add_argument(
        "--intended", type=int, metavar="N", help="steps that your training takes, to be told beside them"
    )
    plan.add_argument(
        "--drop-last", action="store_true", help="leave out the short batch at the end of an epoch"
    )
    plan.add_argument(
        "--evaluation",
        action="store_true",
        help="your training keeps evaluation mode: stored statistics, no dropout",
    )
    plan.add_argument(
        "--no-trials", dest="trials", action="store_false", help="curvature alone, without trial training"
    )
    plan.add_argument(
        "--no-linearised",
        dest="linearised",
        action="store_false",
        help="trial training alone, without curvature",
    )
    plan.add_argument(
        "--adam-rate", type=float, metavar="RATE", help="a good learning rate of Adam, to be scaled"
    )
    plan.add_argument("--adam-batch", type=int, metavar="B", help="the batch size that it is good at")


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
        "--loss",
        metavar="NAME",
        help="cross-entropy, mse, bce or pkg.module:function (default: cross-entropy for integer targets, else mse)",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="FILE",
        help="a state_dict to load, code in it is never run; measure takes a pattern too",
    )
    parser.add_argument(
        "--parameters",
        action="append",
        metavar="NAME",
        help="differentiate by this parameter or submodule only (repeatable)",
    )
    parser.add_argument(
        "--field",
        metavar="NAME",
        help="what the loss takes, by name or number, where the model returns several tensors (default: logits)",
    )
    parser.add_argument(
        "--tokenizer",
        metavar="FOLDER",
        help="with the files of the tokenizer of a text, or: bytes (default: the folder of hf:config.json)",
    )
    parser.add_argument(
        "--length",
        type=int,
        metavar="N",
        help="tokens of a sequence of a text (default 128, or what the model takes)",
    )
    parser.add_argument(
        "--training", action="store_true", help="measure in training mode, all data one batch"
    )
    parser.add_argument(
        "--samples", type=int, metavar="N", help="draw so many of the samples (default: all of them)"
    )
    parser.add_argument(
        "--batch-size", type=int, metavar="N", help="most samples in one pass, for memory (default 1000)"
    )
    parser.add_argument(
        "--dtype", choices=("float32", "float64"), default="float32", help="precision (default float32)"
    )
    parser.add_argument(
        "--device", metavar="NAME", default="cpu", help="cpu (default), cuda, cuda:<index> or auto"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", default=0, help="of all that is drawn, an integer >= 0 (default 0)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument(
        "--output", metavar="FOLDER", default=folder, help=f"where page and JSON go (default: {folder})"
    )


def _measure(options: argparse.Namespace) -> int:
    from verify.practice.measure.command import run_measure
    from verify.practice.processes import run_together

    return run_together(options, run_measure)


def _plan(options: argparse.Namespace) -> int:
    from verify.practice import plan
    from verify.practice.processes import run_together

    return run_together(options, plan.run_plan, patience=plan.PATIENCE)
