"""A plan as lines of text, which the command prints and the page shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from simulate.spectra import Estimate
from verify.escapes import escaped
from verify.page import terminal
from verify.page.wording import numeral
from verify.practice.full_gradients import full_gradient_lines
from verify.practice.limits import BatchRates
from verify.practice.plan.hold_out import HOLD_OUT
from verify.practice.plan.planned import Plan
from verify.practice.plan.trials import SizeTrial

CURVATURE = "Stability limits of plain SGD from curvature (not rates to train with)"

_WIDTH = 80
"""Most characters of a line of a sentence."""

Table = list[list[str]]


def plan_text(made: Plan) -> str:
    """Return the text that the command prints."""
    blocks = [_wrapped(header_lines(made)), [*_fitted(trial_table(made)), "", *_wrapped(trial_notes(made))]]
    if made.linearised:
        blocks.append([f"{CURVATURE}:", *_fitted(curvature_table(made))])
    blocks.append(_wrapped(curvature_notes(made)))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _wrapped(sentences: Iterable[str]) -> list[str]:
    """Wrap sentences to the width of a terminal; further lines are indented."""
    return [line for sentence in sentences for line in terminal.wrapped_text(sentence, _WIDTH, "  ", "")]


def _fitted(table: Table) -> list[str]:
    return terminal.fitted_table(table[0], table[1:], right=True)


def header_lines(made: Plan) -> Iterator[str]:
    """Yield lines on the problem and the state of the network, and on likely mistakes."""
    yield f"{escaped(made.name)}: N = {made.samples} samples, P = {made.parameters} parameters"
    state = made.state
    constant = f"; best constant output {numeral(state.constant)}" * math.isfinite(state.constant)
    yield f"{made.optimizer}; {made.score} loss {numeral(state.loss)} before training{constant}"
    yield from state.doubts


def headline(made: Plan) -> str:
    """Return the result in one line: the rate at each batch size, of many sizes at the first and the last."""
    found = [f"{numeral(at.start, 3)} at B = {at.batch_size}" for at in made.trials if at.start is not None]
    rates = ", ".join(found) if len(found) < 5 else f"{found[0]} to {found[-1]}"
    return f"Learning rate {rates}" if found else "No learning rate was found"


# --- trial runs -----------------------------------------------------------------------------------------------------


def trial_table(made: Plan) -> Table:
    """Return a heading and a row for each batch size."""
    head = (
        "batch size",
        "suggested rate",
        "best rate in 8 of 10 cases",
        "largest that trained",
        "first that failed",
    )
    return [[*head], *map(_trial_row, made.trials)]


def _trial_row(at: SizeTrial) -> list[str]:
    start, *ends = (_with_steps(at, rate) for rate in (at.start, at.trains, at.fails))
    return [str(at.batch_size), start or "none", _interval(*at.within) if at.within else "", *ends]


def _with_steps(at: SizeTrial, rate: float | None) -> str:
    """Return a trial rate, with the steps of its run if these are fewer than the rate is chosen for."""
    found = [f" ({run.steps} steps)" * (run.steps < at.ahead) for run in at.runs if run.rate == rate]
    return numeral(rate, 3) + found[0] if rate else ""


def _interval(low: float, high: float) -> str:
    return f"{numeral(low, 3)} to {numeral(high, 3)}"


def trial_notes(made: Plan) -> Iterator[str]:
    """Yield at most five notes on the rates."""
    failed = [str(at.batch_size) for at in made.trials if at.start is None]
    if failed:
        yield (
            f"no rate at B = {', '.join(failed)}: none of the longest trial runs ended 1 % below the start and the best"
            " constant output; check initialisation, data and loss, raise --steps, or lower --rate if they diverged"
        )
    if len(failed) < len(made.trials):
        yield from _rate_notes(made)
    short = ", ".join(f"{at.short} at B = {at.batch_size}" for at in made.trials if at.short)
    if short:
        yield f"samples in the last batch, a noisy step: {short}; leave it out (drop_last)"
    ended = {"time": " (ended by the time limit)", "interrupted": " (interrupted)"}.get(made.stopped, "")
    yield f"{made.trial_steps} training steps, {made.seconds:.1f} s, seed {made.seed}{ended}"


def _rate_notes(made: Plan) -> Iterator[str]:
    ahead = [at.ahead for at in made.trials if at.start is not None]
    steps = f"{min(ahead)} to {max(ahead)}" if min(ahead) < max(ahead) else f"{ahead[0]}"
    yield f"suggested for {steps} training steps, by the {made.score} loss; longer training may need another rate"
    seen = HOLD_OUT.get((made.kind, made.state.learned))
    state = "from a checkpoint" if made.state.learned else "untrained"
    tests = f"tests on other networks, {made.optimizer}, {made.score} loss, {state}"
    if seen is None:
        yield f"{tests}: none, so there is no range"
    else:
        good = f"{100 * seen.good:.0f} % of {seen.cases} cases"
        yield f"{tests}: in {good} the suggested rate kept at least 90 % of the best rate's loss reduction"


# --- curvature ------------------------------------------------------------------------------------------------------


def curvature_table(made: Plan) -> Table:
    """Return a heading and a row for each batch size; nothing without limits."""
    head = ["B", "stable below", "unstable above", "decided by", "2/E λ₁(B)", "λ₁(B)", "Theorem 4"]
    return [head, *map(_curvature_row, made.linearised.rates)] if made.linearised else []


def _curvature_row(at: BatchRates) -> list[str]:
    limits = [numeral(at.lower, 3), numeral(at.upper, 3), at.deciding]
    scatter = _interval(at.batch.low, at.batch.high)
    return [str(at.batch_size), *limits, with_error(at.sharpness), scatter, with_error(at.theorem_4)]


def curvature_notes(made: Plan) -> Iterator[str]:
    """Yield notes on the limits, or the reason why they are missing."""
    found = made.linearised
    if made.not_linearised:
        yield f"no limits from curvature: {made.not_linearised}"
    if found is None:
        return
    yield "for small displacements in evaluation mode: training changes the curvature, so larger rates may train"
    yield from full_gradient_lines(found.hessian, found.bracket.largest)
    yield (
        "λ₁(B): 8 of 10 batches, by theory; on real networks 2/E λ₁(B) and Theorem 4 are up to 43 and 13 times too"
        " high at small B (± one standard error)"
    )


def with_error(value: Estimate) -> str:
    """Return a number with its standard error, if it has one."""
    return numeral(value.value, 3) + f" ± {numeral(value.standard_error, 1)}" * (value.standard_error > 0)
