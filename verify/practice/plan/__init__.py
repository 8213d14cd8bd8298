"""Learning rates by batch size for your network, from trial runs and from curvature.

The state of the network comes first. Then the rates of a walk over short runs of training, with the user's own
optimizer in the mode in which the network trains. The dynamics linearised at the parameters as they are have a
section of their own.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from simulate.lanczos.precision import in_full_precision
from simulate.objectives import Objective
from simulate.objectives.batches import rows
from simulate.objectives.ranks import LostProcessError
from simulate.objectives.restoring import preserve_state
from simulate.training.constant_outputs import constant_loss, constant_output
from verify.escapes import escaped
from verify.practice.loading import Problem, asked_problem, from_options
from verify.practice.loading.foreign import measured, output_apart
from verify.practice.moved import moved_groups
from verify.practice.plan.batch_curvature import BatchCurvature, batch_curvature as of_batches
from verify.practice.plan.batch_law import SECONDS
from verify.practice.plan.linearised import (
    BY_THEORY,
    Effort,
    Linearised,
    batch_cost,
    costs,
    linearised as linearise,
    require_effort,
)
from verify.practice.plan.optimizers import Chosen, Factory, chosen_optimizer
from verify.practice.plan.planned import Plan
from verify.practice.plan.rules import Anchor, BatchRates, anchored
from verify.practice.plan.state import State, seen_before
from verify.practice.plan.trials import SizeTrial, Trials, looked_ahead
from verify.practice.plan.words import plan_text
from verify.practice.work import Tell, Work, on_terminal, progress
from verify.running.options import require_seed, require_writable

__all__ = ["Anchor", "BatchRates", "Plan", "plan", "plan_problem", "run_plan"]

DIRECTIONS, HEAVY, BATCHES = 10, 20, 8

PATIENCE = timedelta(days=2)
"""Time that a process waits for another, whose trial runs may take hours."""

_PRODUCT = 5.0
"""Time of a product with the curvature over that of a forward pass, about."""

_TRIALS, _BATCHES = "trial training", "curvature of batches"

Announce = Callable[[str], object]


def plan(
    model: nn.Module | Objective,
    data: Any = None,
    optimizer: str | type[Optimizer] | Factory | Optimizer = "sgd",
    *,
    loss: Any = None,
    batch_sizes: int | Sequence[int] | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    rate: float | None = None,
    momentum: float | None = None,
    weight_decay: float | None = None,
    drop_last: bool = False,
    evaluation: bool = False,
    intended: int | None = None,
    trials: bool = True,
    linearised: bool = True,
    seed: int = 0,
    samples: int | None = None,
    parameters: Sequence[str] | str | None = None,
    field: str | int | None = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
) -> Plan:
    """Find learning rates by short runs of training: one to start with for each batch size, and what trains.

    Parameters
    ----------
    model, data, loss
        As in `verify.practice.measure.measure`. Copies of the model are trained, never the model.
    optimizer
        "sgd", "momentum", "adam" or "adamw"; a class such as ``torch.optim.AdamW``; a function of parameters and rate;
        or the optimizer of a training script, whose class, parameter groups and settings are taken, not its state.
    batch_sizes
        One or several, each from 1 to the number of samples; that of a `DataLoader`, else 64, if None.
    steps
        Steps of training that trials look ahead; 200, or five epochs of at most 5120 samples if these are more, if
        None.
    seconds
        About how long the trials may take: they look fewer steps ahead if they would take longer.
    rate
        Learning rate that is tried first; that of an optimizer in use, or a usual one, if None.
    momentum, weight_decay
        Of an optimizer that is given by name.
    drop_last
        Whether trials leave out the short batch at the end of an epoch.
    evaluation
        Whether the network trains in evaluation mode, as when stored statistics of a normalisation are kept.
    intended
        Steps of training that are planned in all, printed with those that were tried.
    trials, linearised
        Whether to train, and whether to add what curvature at these parameters says.
    seed
        Of the order of the samples in trials, and of all random vectors.
    samples, parameters, field, device, dtype
        As in `measure`; parameters are those that the optimizer moves, if that is one in use.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or model, data and loss do not go together.

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
        "plan",
        model,
        data,
        loss,
        seed=seed,
        samples=samples,
        parameters=parameters,
        field=field,
        device=device,
        dtype=dtype,
    )
    usual = min(getattr(data, "batch_size", None) or _USUAL_SIZE, problem.samples)
    given = usual if batch_sizes is None else batch_sizes
    sizes = [int(given)] if isinstance(given, int | np.integer) else given
    with progress("plan") as tell:
        return plan_problem(
            problem,
            sizes,
            optimizer=optimizer,
            steps=steps,
            seconds=seconds,
            rate=rate,
            momentum=momentum,
            weight_decay=weight_decay,
            trials=trials,
            linearised=linearised,
            drop_last=drop_last,
            evaluation=evaluation,
            intended=intended,
            seed=seed,
            tell=tell,
        )


_USUAL_SIZE = 64
"""Batch size where neither the caller nor a loader names one."""


def plan_problem(
    problem: Problem,
    batch_sizes: Sequence[int],
    *,
    seed: int = 0,
    optimizer: str | type[Optimizer] | Factory | Optimizer = "sgd",
    momentum: float | None = None,
    weight_decay: float | None = None,
    rate: float | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    intended: int | None = None,
    drop_last: bool = False,
    evaluation: bool = False,
    trials: bool = True,
    linearised: bool = True,
    directions: int = DIRECTIONS,
    heavy: int = HEAVY,
    batches: int = BATCHES,
    adam: tuple[float, int] | None = None,
    tell: Tell | None = None,
    announce: Announce | None = None,
) -> Plan:
    """Find learning rates for a model whose data and loss have been put together.

    Parameters
    ----------
    problem
        Of `verify.practice.loading.problem`: a loss that is a mean over the samples of a batch. With a group its
        processes share the work, see docs/larger.md: one waits for another while that trains, so the group needs a
        timeout longer than this takes.
    batch_sizes
        Different ones, each from 1 to the number of samples.
    seed, optimizer, momentum, weight_decay, rate, seconds, trials, linearised
        As in `plan`.
    steps
        That trials look ahead: a trial run has half of them, a continued one 0.6, one on a plateau up to twice as many.
        If None 200, or five epochs, of 5120 samples at most, where these are more: see `trials.looked_ahead`.
    intended
        Steps that training is to take in all; printed with those that were tried.
    drop_last
        Whether trials leave out the short batch at the end of an epoch.
    evaluation
        Whether the network trains in evaluation mode, as when stored statistics of a normalisation are kept.
    directions, heavy
        Trial directions of its bracket: eigenvectors of all samples, and of single samples with large eigenvalues.
    batches
        Random batches of each size whose largest eigenvalue is measured, at least 2: of networks with batch
        normalisation, others have the law of `verify.practice.plan.batch_law`.
    adam
        A good rate of Adam and its batch size, for the square-root rule.
    tell
        Called with what is being done and the share of all work that is done.
    announce
        Called before the start with what it will cost, in words.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the problem is of another kind. What the linearised section alone
        needs is no reason if there are trials: see `Plan.not_linearised`.
    """
    started = time.monotonic()
    sizes, anchor = _sizes(batch_sizes, problem.samples), anchored(adam)
    objective = problem.objective
    own = chosen_optimizer(
        optimizer,
        momentum=momentum,
        weight_decay=weight_decay,
        rate=rate,
        places={id(p): objective.names.index(name) for name, p in objective.originals},
    )
    effort = Effort(directions, heavy, batches)
    _require_asked(effort, steps, seconds, intended, trials, linearised)
    rng = np.random.default_rng(require_seed(seed))
    _require_plain(problem)
    with problem.objective.ranks.together("a plan"), in_full_precision():
        constant, level = _constant(problem)
        state = seen_before(problem, constant, training=not evaluation, seed=seed)
        ahead = {size: steps or looked_ahead(size, problem.samples) for size in sizes}
        asked = Trials(
            problem, own, sizes, constant, level, ahead, seed, drop_last, not evaluation, state.learned
        )
        if seconds is not None and trials:
            asked = asked.within(seconds)
        tried = asked if trials else None
        product = _PRODUCT * _pass_seconds(problem)
        parts = _parts(problem, own, state, tried, product, sizes, effort if linearised else None)
        if announce is not None:
            announce(_cost(tried, parts))
        work = Work(parts, tell)
        found = _run_trials(tried, work)
        section = _Section(problem, own, sizes, effort, rng, work, anchor)
        curvature, of_batches, why = section.measured(state, linearised, must=not trials)
        return Plan(
            name=problem.name,
            samples=problem.samples,
            parameters=problem.objective.dim,
            state=state,
            optimizer=own.name,
            plain=own.plain,
            kind=own.kind,
            intended=intended,
            trials=found,
            linearised=curvature,
            batch_curvature=of_batches,
            not_linearised=why,
            seconds=time.monotonic() - started,
            seed=seed,
        )


def _constant(problem: Problem) -> tuple[float, Tensor]:
    """Loss of the best constant output, and that output."""
    objective, few = problem.objective, problem.objective.few()

    def outputs_of(count: int) -> Tensor:
        some = few.part(slice(0, count)) if count < rows(few.targets) else few
        return objective.outputs(objective.leaves(), some.inputs).detach()

    with preserve_state(problem.module, False):
        outputs = outputs_of(count := rows(few.targets))
        if (
            count > 1
            and count in outputs.shape[1:]
            and (fewer := outputs_of(count - 1)).shape[1:] != outputs.shape[1:]
        ):
            raise ValueError(
                "a plan compares samples, so a model must give each of them as many outputs in batches of any size, got"
                f" shapes {tuple(outputs.shape)} and {tuple(fewer.shape)}"
            )
    given = problem.loss, outputs, problem.targets
    return constant_loss(*given), constant_output(*given).to(objective.dtype)


def _pass_seconds(problem: Problem) -> float:
    started = time.monotonic()
    problem.objective.value()
    return time.monotonic() - started


def _run_trials(trials: Trials | None, work: Work) -> tuple[SizeTrial, ...]:
    if trials is None:
        return ()
    with work.part(_TRIALS) as done:
        return trials.run(done)


class _Section:
    """Section of a plan on curvature."""

    def __init__(
        self,
        problem: Problem,
        own: Chosen,
        sizes: Sequence[int],
        effort: Effort,
        rng: np.random.Generator,
        work: Work,
        anchor: Anchor | None,
    ) -> None:
        self.problem, self.own, self.sizes, self.effort = problem, own, sizes, effort
        self.rng, self.work, self.anchor = rng, work, anchor

    def measured(
        self, state: State, asked: bool, *, must: bool
    ) -> tuple[Linearised | None, tuple[BatchCurvature, ...], str]:
        """The section, or that of batches, or why there is none; with `must` that is an error."""
        if not asked:
            return None, (), ""
        try:
            with self.problem.objective.ranks.together("curvature"):
                if state.batch_statistics:
                    return None, self._of_batches(), ""
                return self._linearised(), (), ""
        except ValueError as error:
            if must or isinstance(error, LostProcessError):
                raise
            return None, (), str(error)

    def _linearised(self) -> Linearised:
        return linearise(self.problem, self.own, self.sizes, self.effort, self.rng, self.work, self.anchor)

    def _of_batches(self) -> tuple[BatchCurvature, ...]:
        with self.work.part(_BATCHES) as done:
            return of_batches(self.problem, self.sizes, self.effort.batches, self.rng, done)


def _parts(
    problem: Problem,
    own: Chosen,
    state: State,
    trials: Trials | None,
    product: float,
    sizes: Sequence[int],
    effort: Effort | None,
) -> dict[str, float]:
    """Guesses of seconds."""
    parts = {} if trials is None else {_TRIALS: trials.cost()}
    if effort is None:
        return parts
    of_batches = {_BATCHES: 2 * batch_cost(problem, sizes, effort)}
    units = of_batches if state.batch_statistics else costs(own, sizes, effort)
    law = {} if state.batch_statistics else {BY_THEORY: SECONDS * len(sizes)}
    return parts | law | {name: product * count for name, count in units.items()}


def _cost(trials: Trials | None, parts: Mapping[str, float]) -> str:
    curvature = sum(seconds for name, seconds in parts.items() if name != _TRIALS)
    words = [] if trials is None else [_training(trials)]
    words += [f"{_span(curvature)} for curvature"] if len(parts) > (trials is not None) else []
    return f"about {'; '.join(words)}"


def _training(trials: Trials) -> str:
    (least, most), (short, long) = trials.span()
    took = f"{short:.0f} to {long:.0f} s" if short < 120 else f"{short / 60:.0f} to {long / 60:.0f} minutes"
    return f"{least} to {most} training steps, {took}, or more"


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _sizes(batch_sizes: Sequence[int], samples: int) -> tuple[int, ...]:
    given = list(batch_sizes)
    if not given:
        raise ValueError("a plan needs at least one batch size, got none")
    for size in given:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ValueError(f"batch sizes must be integers of at least 1, got {size!r}")
        if size > samples:
            raise ValueError(f"batch sizes must be at most the number of samples, {samples}, got {size}")
        if given.count(size) > 1:
            raise ValueError(f"batch sizes must be different, got {size} more than once")
    return tuple(sorted(int(size) for size in given))


def _require_asked(
    effort: Effort,
    steps: int | None,
    seconds: float | None,
    intended: int | None,
    trials: bool,
    linearised: bool,
) -> None:
    require_effort(effort)
    if seconds is not None and not 0 < seconds < math.inf:
        raise ValueError(f"seconds must be positive and finite, got {seconds}")
    if steps is not None and steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    if intended is not None and intended < 1:
        raise ValueError(f"intended must be at least 1, got {intended}")
    if not trials and not linearised:
        raise ValueError("nothing to plan: both trials and linearised are switched off")


def _require_plain(problem: Problem) -> None:
    """Rates are those of steps on the mean over a batch."""
    if problem.objective.reduction != "mean":
        raise ValueError("loss must be a mean over the samples, got a sum: divide it by their number")
    if problem.samples < 2:
        raise ValueError("data must hold at least two samples for a plan, got one")
    if problem.objective.training:
        raise ValueError("a plan needs evaluation mode; its trial runs switch to training mode themselves")


def run_plan(options: argparse.Namespace) -> int:
    """The command: plan, print, write."""
    from verify.practice.plan import pages as plan_pages

    sizes = _words(options.batch_sizes)
    if (options.adam_rate is None) != (options.adam_batch is None):
        raise ValueError("--adam-rate and --adam-batch must be given together")
    adam = None if options.adam_rate is None else (options.adam_rate, options.adam_batch)
    folder = Path(options.output)
    with output_apart() as output:
        problem = from_options(options)
        _sizes(sizes, problem.samples)
        require_writable(folder, "--output")
        with on_terminal("plan") as tell, measured():
            made = plan_problem(
                problem,
                sizes,
                seed=options.seed,
                optimizer=options.optimizer,
                momentum=options.momentum,
                weight_decay=options.weight_decay,
                rate=options.rate,
                steps=options.steps,
                seconds=options.seconds,
                intended=options.intended,
                drop_last=options.drop_last,
                evaluation=options.evaluation,
                trials=options.trials,
                linearised=options.linearised,
                adam=adam,
                tell=tell,
                announce=lambda line: sys.stderr.write(f"losscurv: {line}\n"),
            )
        try:
            page = plan_pages.write_plan(made, folder)
        finally:  # a full disk does not take away what was found
            output.write(plan_pages.plan_json(made) if options.json else plan_text(made))
        if not options.json:
            output.write(f"page: {escaped(str(page))}\n")
    return 0


def _words(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--batch-sizes must be integers with commas between them, such as 16,32,64, got {text!r}"
        ) from None
