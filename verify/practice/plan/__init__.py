"""Learning rates by batch size for your network, from trial runs with your own optimizer."""

from __future__ import annotations

import argparse
import inspect
import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from simulate import _checks
from simulate.lanczos.precision import in_full_precision
from simulate.objectives import Objective
from simulate.objectives.ranks import LostProcessError
from verify.endings import INTERRUPTED
from verify.escapes import escaped
from verify.practice.limits import Linearised, linearised
from verify.practice.loading import Problem, asked_problem, from_options
from verify.practice.loading.foreign import measured, output_apart
from verify.practice.moved import moved_groups
from verify.practice.plan.optimizers import Factory, chosen_optimizer, with_schedule
from verify.practice.plan.planned import Plan, State
from verify.practice.plan.trials import SCORES, Trials, looked_ahead
from verify.practice.plan.words import plan_text
from verify.practice.setup_warnings import setup_warnings
from verify.practice.work import Tell, on_terminal, progress, silent
from verify.running.options import require_seed, require_writable
from verify.signals import Interrupted

__all__ = ["InterruptedPlanError", "Plan", "plan", "plan_problem", "run_plan"]

PATIENCE = timedelta(days=2)
"""Time that a process waits for another, whose trial runs may take hours."""

_USUAL_SIZE = 64
"""Batch size if neither the caller nor a loader names one."""


class InterruptedPlanError(Interrupted):
    """Ctrl-C during trial runs.

    Attributes
    ----------
    plan
        Result of the trial runs until then.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan


def plan(
    model: nn.Module | Objective,
    data: Any = None,
    optimizer: str | type[Optimizer] | Factory | Optimizer = "sgd",
    *,
    loss: Any = None,
    batch_sizes: int | Sequence[int] | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    score: str = "training",
    rate: float | None = None,
    momentum: float | None = None,
    weight_decay: float | None = None,
    scheduler: Any = None,
    clip: float | None = None,
    drop_last: bool | None = None,
    evaluation: bool = False,
    curvature: bool = False,
    seed: int = 0,
    samples: int | None = None,
    parameters: Sequence[str] | str | None = None,
    field: str | int | None = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
) -> Plan:
    """Find a learning rate for each batch size by trial runs, a learning-rate range test with successive halving.

    Parameters
    ----------
    model, data, loss
        As in `verify.practice.measure.measure`; the loss may also have a penalty on the weights. The model is trained
        and restored.
    optimizer
        "sgd", "momentum", "adam" or "adamw"; a class such as ``torch.optim.AdamW``; a function of parameters and rate;
        or the optimizer of a training script: each trial run starts with a copy of it, settings and state included.
    batch_sizes
        One or several, each from 1 to the number of samples; that of a `DataLoader`, else 64, if None.
    steps
        Number of training steps for which rates are chosen; 200, or five epochs of at most 5120 samples if these are
        more, if None.
    seconds
        Most time for the trial runs; they take fewer steps, or end early, to keep it.
    score
        Loss by which rates are chosen: "training" and "held-out" after the last step, of at most 1000 samples, the
        latter of samples that are not trained on and in evaluation mode; "online" of the last tenth of the batches,
        each before its step.
    rate
        Learning rate around which the search begins; that of an optimizer in use, or a usual one, if None.
    momentum, weight_decay
        Of an optimizer that is given by name.
    scheduler
        Scheduler of torch that steps after each training step, or a function of an optimizer to one; for groups of
        parameters it must keep the ratios of their rates.
    clip
        Largest norm of the gradient; larger gradients are scaled to it.
    drop_last
        Whether trials leave out the short batch at the end of an epoch; as a `DataLoader` does if None.
    evaluation
        Whether the network trains in evaluation mode, as when stored statistics of a normalisation are kept.
    curvature
        Whether to add the stability limits of plain SGD from the curvature at the current parameters.
    seed
        Seed of the order of the samples in trials, and of all random vectors.
    samples, parameters, field, device, dtype
        As in `measure`; parameters are those that the optimizer moves, if that is one in use.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or model, data and loss do not go together.
    InterruptedPlanError
        On Ctrl-C after the first trial run; its `plan` has the results until then.

    References
    ----------
    Jamieson and Talwalkar (2016), successive halving; docs/trials.md.

    Examples
    --------
    >>> model = nn.utils.skip_init(nn.Linear, 3, 3)
    >>> for parameter in model.parameters():
    ...     _ = parameter.data.zero_()
    >>> x, y = torch.eye(3).repeat(4, 1), torch.tensor([0, 1, 2]).repeat(4)
    >>> found = plan(model, (x, y), batch_sizes=[1, 12], steps=40)
    >>> [at.batch_size for at in found.trials], all(at.start < at.fails for at in found.trials if at.fails)
    ([1, 12], True)
    """
    if parameters is None and isinstance(optimizer, Optimizer) and isinstance(model, nn.Module):
        parameters = list(moved_groups(optimizer, model))
    problem = asked_problem(
        "plan", model, data, loss, seed=seed, samples=samples, parameters=parameters, field=field, device=device,
        dtype=dtype, in_place=not isinstance(model, Objective),
    )  # fmt: skip
    with progress("plan") as tell:
        return plan_problem(
            problem,
            batch_sizes,
            optimizer=optimizer,
            steps=steps,
            seconds=seconds,
            score=score,
            rate=rate,
            momentum=momentum,
            weight_decay=weight_decay,
            scheduler=scheduler,
            clip=clip,
            drop_last=drop_last,
            evaluation=evaluation,
            curvature=curvature,
            seed=seed,
            tell=tell,
        )


def plan_problem(
    problem: Problem,
    batch_sizes: int | Sequence[int] | None = None,
    *,
    seed: int = 0,
    optimizer: str | type[Optimizer] | Factory | Optimizer = "sgd",
    momentum: float | None = None,
    weight_decay: float | None = None,
    scheduler: Any = None,
    clip: float | None = None,
    rate: float | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    score: str = "training",
    drop_last: bool | None = None,
    evaluation: bool = False,
    curvature: bool = False,
    tell: Tell = silent,
    announce: Callable[[str], object] = lambda _: None,
) -> Plan:
    """Find learning rates for a model whose data and loss have been put together.

    Parameters
    ----------
    problem
        Of `verify.practice.loading.problem`: a loss that is a mean over the samples of a batch. The processes of a
        group share the trial runs, see docs/larger.md; each waits for the others, so the group needs a long timeout.
    tell
        Called with what is being done and the share of all work that is done.
    announce
        Called before the start with the expected cost, in words.
    batch_sizes, seed, optimizer, momentum, weight_decay, scheduler, clip, rate, steps, seconds, score, drop_last,
    evaluation, curvature
        As in `plan`.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the problem is of another kind. What curvature alone needs is no
        reason, see `Plan.not_linearised`.
    InterruptedPlanError
        As `plan`.
    """
    started, loader, objective = time.monotonic(), problem.loader, problem.objective
    sizes = _sizes(batch_sizes, problem)
    _checks.natural("steps", 1 if steps is None else steps)
    _checks.positive_numbers("seconds", 1 if seconds is None else seconds)
    _checks.one_of("score", score, SCORES)
    if objective.training:
        raise ValueError("a plan needs evaluation mode; its trial runs switch to training mode themselves")
    own = chosen_optimizer(
        optimizer,
        momentum=momentum,
        weight_decay=weight_decay,
        rate=rate,
        places={id(p): objective.names.index(name) for name, p in objective.originals},
    )
    ahead = {size: steps or looked_ahead(size, problem.samples) for size in sizes}
    own = with_schedule(own, scheduler, clip, max(ahead.values()))
    rng = np.random.default_rng(require_seed(seed))
    with objective.ranks.together("a plan"), in_full_precision():
        dropped = loader is not None and loader.drop_last if drop_last is None else drop_last
        trials = Trials(
            problem, own, ahead, score=score, seed=seed, drop_last=dropped, training=not evaluation
        )
        if seconds is not None:
            trials.shorten(seconds)
        cost = trials.cost()
        took = f"{cost:.0f} s" if cost < 120 else f"{cost / 60:.0f} minutes"
        announce(f"about {trials.expected_steps()} training steps, {took}")
        stopped, limits = "", (None, "")
        part = 1 / (1 + curvature)  # curvature takes about as long as the trial runs

        def watch(share: float) -> None:
            tell("trial runs", part * min(share, 1.0))

        try:
            watch(0.0)
            if not trials.run(watch, deadline=started + (math.inf if seconds is None else seconds)):
                stopped = "time"
            if curvature and trials.found:
                tell("curvature", part)
                limits = _limits(problem, sizes, rng, training=not evaluation)
        except KeyboardInterrupt:
            if not trials.found:
                raise
            stopped = "interrupted"
        if not trials.found:
            raise ValueError(f"seconds must be more, got {seconds}: no trial run could end")
        made = Plan(
            name=problem.name,
            samples=problem.samples,
            parameters=objective.dim,
            state=State(loss=trials.first, constant=trials.constant, doubts=setup_warnings(problem)),
            optimizer=own.name,
            kind=trials.kind,
            score=score,
            trials=tuple(trials.found[::-1]),
            stopped=stopped,
            linearised=limits[0],
            not_linearised=limits[1],
            seconds=time.monotonic() - started,
            seed=seed,
        )
    if stopped == "interrupted":
        raise InterruptedPlanError(made)
    return made


def _limits(
    problem: Problem, sizes: Sequence[int], rng: np.random.Generator, *, training: bool
) -> tuple[Linearised | None, str]:
    """Return the limits from curvature, or the reason why there are none."""
    if training and any("BatchNorm" in type(part).__name__ for part in problem.module.modules()):
        return None, "batch normalisation uses the statistics of each batch; the limits need single samples"
    try:
        with problem.objective.ranks.together("curvature"), measured():
            return linearised(problem, sizes, rng), ""
    except LostProcessError:
        raise
    except ValueError as error:
        return None, str(error)


def _sizes(given: int | Sequence[int] | None, problem: Problem) -> list[int]:
    if problem.objective.reduction != "mean":
        raise ValueError("loss must be a mean over the samples, got a sum: divide it by their number")
    if problem.samples < 2:
        raise ValueError("data must hold at least two samples for a plan, got one")
    # a loader of a stream has no truth value
    usual = min(getattr(problem.loader, "batch_size", None) or _USUAL_SIZE, problem.samples)
    asked: Any = usual if given is None else given
    if isinstance(asked, str) or not isinstance(asked, int | np.integer | Iterable):
        raise ValueError(f"batch_sizes must be an integer or a sequence of integers, got {asked!r}")
    listed = [asked] if isinstance(asked, int | np.integer) else list(asked)
    sizes = [_checks.natural("each batch size", size) for size in listed]
    if not sizes or len(set(sizes)) < len(sizes):
        raise ValueError(f"batch sizes must be different, and one at least, got {sizes}")
    if max(sizes) > problem.samples:
        raise ValueError(f"batch sizes must be at most the {problem.samples} samples, got {max(sizes)}")
    return sorted(sizes)


def run_plan(options: argparse.Namespace) -> int:
    """Run the command: plan, print, write."""
    from verify.practice.plan import pages as plan_pages

    options.batch_sizes = options.batch_sizes and _integers(options.batch_sizes)
    options.drop_last = options.drop_last or None  # as the data loader does
    folder, status = Path(options.output), 0
    with output_apart() as output:

        def begin(line: str) -> None:
            require_writable(folder, "--output")
            sys.stderr.write(f"losscurv: {line}\n")

        problem = from_options(options, in_place=True)
        try:
            with on_terminal("plan") as tell, measured():
                asked = inspect.signature(plan_problem).parameters
                given = {name: value for name, value in vars(options).items() if name in asked}
                made = plan_problem(problem, tell=tell, announce=begin, **given)
        except InterruptedPlanError as error:
            made, status = error.plan, INTERRUPTED
        try:
            page = plan_pages.write_plan(made, folder)
        finally:  # a full disk does not take away what was found
            output.write(plan_pages.plan_json(made) if options.json else plan_text(made))
        if not options.json:
            output.write(f"page: {escaped(str(page))}\n")
    return status


def _integers(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--batch-sizes must be integers with commas between them, such as 16,32,64, got {text!r}"
        ) from None
