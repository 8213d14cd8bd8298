"""Rules for learning rates. Each is a function of a `Task` that returns a rate, or None, for each batch size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch.optim import Optimizer

import losscurv
from benchmarks.rates.task import Rule, Task
from simulate.training.trial_training import CommonBatches, Training, TrialRun

Rates = dict[int, float | None]


def trial(task: Task, size: int, rates: Sequence[float], steps: int) -> TrialRun:
    """Return a trial run of some steps from the state of a task, in training mode; all have the same batches.

    `rates` are the learning rates of the steps; the last one stays.
    """

    def make(first: float) -> Optimizer:
        made, each = task.optimizer(task.model.parameters(), first), iter(rates)
        made.register_step_pre_hook(lambda own, *_: own.param_groups[0].update(lr=next(each, rates[-1])))
        return made

    batches = CommonBatches(samples=len(task.inputs), size=size, seed=task.seed)
    given = {"model": task.model, "loss": task.loss, "inputs": task.inputs, "targets": task.targets}
    return TrialRun(Training(**given, batches=batches, optimiser=make), rates[0]).until(steps)


def score(run: TrialRun) -> float:
    """Return the loss of all data in evaluation mode at the end of a run; infinite if it diverged."""
    if run.lost:
        return math.inf
    of = run.training
    with run.trained() as model, torch.no_grad():
        loss = float(of.loss(model.eval()(of.inputs), of.targets))
    return loss if math.isfinite(loss) else math.inf


def usual(task: Task) -> Rates:
    """Return the usual default rate of the optimiser."""
    return dict.fromkeys(task.sizes, task.usual)


def grid(task: Task, *, places: range, ratio: float = 4.0, short: int, leaders: int = 0) -> Rates:
    """Return the best of rates around the usual one after a few steps, or the best of some leaders at the horizon.

    With `leaders` this is one round of successive halving (Jamieson and Talwalkar 2016, arXiv 1502.07943).
    """
    found: Rates = {}
    for size in task.sizes:
        runs = sorted((trial(task, size, [task.usual * ratio**k], short) for k in places), key=score)
        if leaders:
            runs = sorted((run.until(task.steps) for run in runs[:leaders]), key=score)
        found[size] = None if runs[0].lost else runs[0].rate
    return found


def range_test(task: Task, *, read: Callable[[np.ndarray, np.ndarray], float]) -> Rates:
    """Return a reading of the learning-rate range test (Smith 2017, arXiv 1506.01186) as in torch-lr-finder.

    The rate grows from 1e-7 to 10 in 100 steps, unless the smoothed loss exceeds 5 times its minimum before.
    """
    rates = np.geomspace(1e-7, 10.0, 100).tolist()
    found: Rates = {}
    for size in task.sizes:
        smooth = trial(task, size, rates, len(rates)).losses
        for step in range(1, len(smooth)):
            smooth[step] = 0.05 * smooth[step] + 0.95 * smooth[step - 1]
        seen = np.array(smooth)
        ends = ~(seen <= 5 * np.minimum.accumulate(seen))
        seen = seen[: ends.argmax() if ends.any() else None]
        found[size] = read(np.array(rates[: len(seen)]), seen)
    return found


def plan(task: Task, *, steps: int | None = None) -> Rates:
    """Return the rates that `losscurv.plan` suggests, if asked for a number of steps."""
    found = losscurv.plan(
        task.model,
        (task.inputs, task.targets),
        task.optimizer,
        loss=task.loss,
        batch_sizes=task.sizes,
        rate=task.usual,
        steps=steps or task.steps,
        seed=task.seed,
    )
    return {trial.batch_size: trial.start for trial in found.trials}


RULES: Mapping[str, Rule] = {
    "usual default": usual,
    "six rates x 50": partial(grid, places=range(-2, 4), short=50),
    "six rates x 50, two x 200": partial(grid, places=range(-2, 4), short=50, leaders=2),
    "range test, steepest": partial(range_test, read=lambda r, x: float(r[np.gradient(x).argmin()])),
    "range test, minimum / 10": partial(range_test, read=lambda r, x: float(r[x.argmin()] / 10)),
    "plan": plan,
    "plan, 100 steps": partial(plan, steps=100),
}
