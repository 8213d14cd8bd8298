"""A plan as lines of text, which the command prints and the page shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from simulate.spectra import Estimate
from verify.escapes import escaped
from verify.page import terminal
from verify.page.wording import numeral
from verify.practice.full_gradients import full_gradient_lines
from verify.practice.plan.gradient_noise import NoiseScales
from verify.practice.plan.linearised import Linearised
from verify.practice.plan.planned import Plan, power_with_error
from verify.practice.plan.rules import BatchRates
from verify.practice.plan.state import State
from verify.practice.plan.trials import SizeTrial
from verify.practice.plan.uncertainty import hold_out

BIASES = {
    "2/E λ₁(B)": "on real networks 1.4 to 43 times too high at B = 1, up to 27 % too low at B = 16 to 64, right from"
    " 1000 on; no stability limit",
    "Theorem 4": "too high on all real networks; its eigenvalue is up to 13 times too low at small B, within 10 % from"
    " B = 256 (at the start) or 1024 (later) on",
}
"""Errors of the rules next to the bracket on real networks: claims D2, B19 and B45."""

_BIASES_IN_SHORT = "2/E λ₁(B), Theorem 4: at small B up to 43 and 13 times too high (errors: page)"
"""The same on one line, since a terminal has room for five notes."""

SHARPER = 1.1
"""Ratio of the largest eigenvalues of Hessian and Gauss-Newton matrix above which a note says so."""

_WIDTH = 80
"""Most characters of a line of a sentence."""

Table = list[list[str]]


def plan_text(made: Plan) -> str:
    """Return the text that the command prints."""
    blocks = [_wrapped([*header_lines(made), *state_lines(made.state)])]
    if made.trials:
        blocks += [_fit_table(trial_table(made)), _wrapped(trial_notes(made))]
    if section_title(made):
        table = _fit_table(batch_table(made)) if batch_table(made) else []
        blocks += [[*_wrapped([section_title(made)]), *table], _wrapped(curvature_notes(made, short=True))]
    blocks.append(_wrapped([_ending(made)]))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _wrapped(sentences: Iterable[str]) -> list[str]:
    """Wrap sentences to the width of a terminal; each keeps its indent, and its further lines have two columns more."""
    found = list[str]()
    for sentence in sentences:
        own = " " * (len(sentence) - len(sentence.lstrip()))
        found += terminal.wrapped_text(sentence.lstrip(), _WIDTH, own + "  ", own)
    return found


# --- the state ---------------------------------------------------------------------------------------------------


def header_lines(made: Plan) -> Iterator[str]:
    """Yield the line that names the problem and its size."""
    yield f"{escaped(made.name)}: N = {made.samples} samples, P = {made.parameters} parameters"


def headline(made: Plan) -> str:
    """Return the result in one line: the rate at each batch size, of many sizes at the first and the last."""
    rates = [(at.batch_size, at.start) for at in made.trials]
    said = "Start with"
    if not rates and made.linearised is not None:
        rates = [(at.batch_size, at.lower) for at in made.linearised.rates]
        said = "Plain SGD, linearised here, is stable below"
    found = [f"{_rate(rate)} at {size}" for size, rate in rates if rate is not None]
    if not found:
        return "No learning rate was found" if made.trials else "Curvature of batches"
    first = found[0].replace(" at ", " at batch size ")
    return f"{said} {', '.join([first, *found[1:]]) if len(found) < 5 else f'{first} to {found[-1]}'}"


def state_lines(state: State) -> Iterator[str]:
    """Yield lines on the state of the network, each with its meaning for the rates."""
    yield _level(state)
    yield from state.doubts
    if state.dead:
        yield f"dead ReLU units (zero for every sample): {state.dead} of {state.units}{_advice_on_dead_units(state)}"
    if state.batch_statistics:
        yield (
            "batch normalisation: trial runs and curvature use the statistics of each batch. There are no stability"
            " limits, which need single samples"
        )
    if state.dropout:
        yield "dropout: on in the trial runs, off for curvature"
    if state.near_constant:
        yield (
            f"nearly constant outputs: they vary by {numeral(state.spread, 2)} over the samples, at a scale of"
            f" {numeral(state.scale, 2)}. Curvature grows once they differ, so rates from curvature are too high here"
            " (4 to 21 times on a convolutional network)"
        )


def _level(state: State) -> str:
    ratio = state.loss / state.constant if state.constant > 0 else float("inf")
    line = f"loss {numeral(state.loss)} (best constant {numeral(state.constant)})"
    if not state.learned:
        return f"{line}: nothing is learned yet; curvature will change"
    return f"{line}, {numeral(ratio, 2)} of it: the network has learned something"


def _advice_on_dead_units(state: State) -> str:
    if state.dead_share > 0.5:
        return ". Most of the network is off, and no learning rate revives it"
    return ". They stay off until other units change"


# --- trials ------------------------------------------------------------------------------------------------------


def trial_table(made: Plan) -> Table:
    """A heading and a row for each batch size."""
    head = ["B", "start with", "within", "largest that should train", "failed", "steps", "loss"]
    return [head, *(_trial_row(made, at) for at in made.trials)]


def _trial_row(made: Plan, at: SizeTrial) -> list[str]:
    trial = at.walked.start or at.walked.best
    within = "" if at.within is None else _interval(*at.within)
    steps = f"{trial.steps}/{at.ahead if made.intended is None else made.intended}"
    loss = "diverged" if trial.loss is None else numeral(trial.loss, 3)
    return [str(at.batch_size), _rate(at.start), within, _largest(at), _failed(at), steps, loss]


def _rate(rate: float | None) -> str:
    return "none" if rate is None else numeral(rate, 3)


def _interval(low: float, high: float) -> str:
    return f"{numeral(low, 3)} to {numeral(high, 3)}"


def _largest(at: SizeTrial) -> str:
    if at.trains is None:
        return "none"
    return f"above {numeral(at.trains, 3)}" if at.fails is None else _interval(at.trains, at.fails)


def _failed(at: SizeTrial) -> str:
    trial = at.walked.failed
    if trial is None:
        return ""
    return (
        f"{numeral(trial.rate, 3)}: {'diverged' if trial.loss is None else f'loss {numeral(trial.loss, 3)}'}"
    )


def trial_notes(made: Plan) -> Iterator[str]:
    """Yield at most five notes on the rates, and one for each batch size without a rate."""
    yield from _refusals(made)
    if any(at.start is not None for at in made.trials):
        yield from uncertain(made)
    yield _steps_note(made)
    yield from _power_note(made)
    yield from _short_batch_note(made.trials)


def uncertain(made: Plan) -> Iterator[str]:
    """Yield the errors of the suggested rates on the held-out networks of the benchmark, in two notes."""
    seen, measured = hold_out(made.kind, made.state.learned)
    given, runs = seen.cells
    none = f", no rate in {runs - given}" if given < runs else ""
    yield (
        f"start with: of {runs} held-out runs, {_percent(seen.twice)} were within a factor of 2 of the best rate,"
        f" {_percent(seen.cheap)} lost at most a tenth of the gain and {_percent(seen.above)} failed{none}; 'within'"
        f" held the best rate in 80 %{'' if measured else _other_optimizer(made)}"
    )
    low, high = (numeral(end, 2) for end in seen.edge)
    yield f"largest that should train: the true limit was {low} to {high} times the first number in 80 %"


def _other_optimizer(made: Plan) -> str:
    """Return the clause on an optimiser or state that was not measured."""
    state = "after some training" if made.state.learned else "at the start"
    return f". These are errors for plain SGD {state}; {made.optimizer} was not measured there"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _power_note(made: Plan) -> Iterator[str]:
    """Yield the note on how the rate changes with the batch size, if two sizes have a rate."""
    laws, unclear = list[str](), list[str]()
    for one, other in made.segments:
        power, places = power_with_error(one, other), f"{one[0]} to {other[0]}"
        if power is None:
            unclear.append(places)
        else:
            laws.append(f"B^({numeral(power[0], 2)} ± {numeral(power[1], 2)}) from {places}")
    said = [f"{', '.join(laws)} (± from the grid of rates alone)"] if laws else []
    said += [f"no clear power from {', '.join(unclear)}"] if unclear else []
    if said:
        yield f"rate between sizes: {'; '.join(said)}"


def _refusals(made: Plan) -> Iterator[str]:
    failed = [at for at in made.trials if at.start is None]
    for at in failed:
        best = f"{numeral(at.walked.best.rate, 3)}, {at.walked.best.fate()}"
        yield f"B = {at.batch_size}: no trial {_loss_not_reached(made.state, at)}; the best was {best}"
    if failed:
        yield "no rate: check the initialisation, data and loss, or try longer trials (--steps)"


def _loss_not_reached(state: State, at: SizeTrial) -> str:
    """Return the loss below which no trial went by 1 %."""
    loss = at.walked.best.loss
    if loss is not None and loss < 0.9 * state.constant:
        return f"brings the loss below its start ({numeral(state.loss, 3)})"
    return f"beats a constant output on the same batches ({numeral(state.constant, 3)} on all data)"


def _steps_note(made: Plan) -> str:
    found = any(at.start is not None for at in made.trials)
    later = "Longer training may need another rate"
    if made.intended is not None:
        later = f"The rest of the {made.intended} intended steps was not tried"
    held_out = "; held-out runs took 200 steps or 5 epochs" * found
    return f"steps, loss: {made.optimizer} at the {'rate to start with' if found else 'best rate'}. {later}{held_out}"


def _short_batch_note(trials: Sequence[SizeTrial]) -> Iterator[str]:
    short = ", ".join(f"{at.short} at B = {at.batch_size}" for at in trials if at.short)
    if short:
        yield f"samples in the last batch, a noisy step: {short}; leave it out (drop_last)"


# --- curvature ---------------------------------------------------------------------------------------------------


def section_title(made: Plan) -> str:
    """Title of the section on curvature; empty without one."""
    if made.linearised is not None:
        return "Stability of plain SGD, linearised at these parameters: limits, not rates to use"
    if made.batch_curvature:
        return "Curvature of batches at these parameters, in training mode: not rates to use"
    return "Stability of plain SGD, linearised at these parameters" if made.not_linearised else ""


def batch_table(made: Plan) -> Table:
    """A heading and a row for each batch size; nothing where there is no such section."""
    if made.linearised is not None:
        return _bracket_table(made.linearised)
    if not made.batch_curvature:
        return []
    rows = [
        [str(at.batch_size), with_error(at.eigenvalue), numeral(at.rate, 3)] for at in made.batch_curvature
    ]
    return [["B", "E λ₁(H_B)", "2/E λ₁(H_B)"], *rows]


def _bracket_table(found: Linearised) -> Table:
    adam = ["Adam √B"] * (found.anchor is not None)
    own = ["Adam, frozen"] * found.own.scaled
    head = [
        "B",
        "stable below",
        "unstable above",
        "decided by",
        "2/E λ₁(B)",
        "λ₁(B)",
        "Theorem 4",
        *own,
        *adam,
    ]
    limits = found.own.rates if found.own.scaled else [None] * len(found.rates)
    return [head, *(_row(at, limit, found.own.scaled) for at, limit in zip(found.rates, limits, strict=True))]


def _row(at: BatchRates, limit: float | None, scaled: bool) -> list[str]:
    scatter = (
        _interval(at.batch.low, at.batch.high) if at.batch.low < at.batch.high else numeral(at.batch.low, 3)
    )
    rules = [with_error(at.sharpness), scatter, with_error(at.theorem_4)]
    own = [_rate(limit)] if scaled else []
    adam = [] if at.adam is None else [numeral(at.adam, 3)]
    return [str(at.batch_size), numeral(at.lower, 3), numeral(at.upper, 3), at.deciding, *rules, *own, *adam]


def curvature_notes(made: Plan, *, short: bool = False) -> Iterator[str]:
    """Yield what was measured, then the notes on the table; `short` leaves the errors of the rules to the page."""
    if made.linearised is not None:
        yield from _measured_lines(made.linearised)
        yield from _notes(made.linearised, made.plain, short)
    elif made.batch_curvature:
        yield (
            "2/E λ₁(H_B): H_B is the Hessian of a random batch with its own statistics; below this rate steps on that"
            " one batch are stable. Only its change with the batch size is of use"
        )
    else:
        yield f"none: {made.not_linearised}"


def _measured_lines(found: Linearised) -> Iterator[str]:
    hessian = _bounded(found.hessian, found.hessian_bound)
    gauss_newton = _bounded(found.bracket.largest, found.bracket.bound)
    yield f"Hessian λ₁(H) = {hessian}, Gauss-Newton λ₁(G) = {gauss_newton}"
    if found.hessian > SHARPER * found.bracket.largest:
        yield "λ₁(H) exceeds λ₁(G) until training shrinks the rest of H"
    yield from full_gradient_lines(found.hessian, found.bracket.largest)
    heaviest, variance = numeral(found.bracket.heaviest), with_error(found.variance)
    yield f"single samples: largest λ₁(G_i) = {heaviest}, mean |G_i − G|² = {variance}"
    yield _growth(found)
    yield _noise(found.noise)


def _notes(found: Linearised, plain: bool, short: bool) -> Iterator[str]:
    yield from _optimizer_notes(found, plain)
    yield "λ₁(B): 8 of 10 batches, by theory; mean within 3 % (small perceptrons 12 %)"
    yield from [_BIASES_IN_SHORT] if short else (f"{rule}: {bias}" for rule, bias in BIASES.items())
    if found.anchor is not None:
        yield "Adam √B: the rate that you gave times √B, not a measurement"
    yield f"± is a bound for λ₁(H), λ₁(G), else one standard error; {numeral(found.products, 3)} products"


def _optimizer_notes(found: Linearised, plain: bool) -> Iterator[str]:
    """Yield the stable rate of the given optimiser with full gradients."""
    limit = found.own.rates[-1]
    if plain:
        return
    if limit is None:
        yield f"your optimizer, full gradients: {found.own.rule}"
    elif found.own.scaled:
        yield (
            f"Adam, frozen: stable below {found.own.rule} (full gradients, their squares held fixed); falls as they"
            " shrink in training"
        )
    else:
        yield (
            f"your optimizer, full gradients: stable below {numeral(limit, 3)} = {found.own.rule} of H with weight"
            " decay"
        )


def _noise(noise: NoiseScales) -> str:
    """Return the line on the batch size beyond which larger ones help little, by the gradients."""
    said = [
        f"{name} {with_error(value)}"
        for name, value in (("simple", noise.simple), ("with the curvature", noise.curved))
        if value is not None
    ]
    if not said:
        return "gradient noise scale: none, the gradient is zero here"
    return f"gradient noise scale: {', '.join(said)} samples; it grows in training, and batches beyond it help little"


def _growth(found: Linearised) -> str:
    first, last = (numeral(size, 3) for size in found.crossover)
    if found.crossover[1] <= 1:
        return "stability limit of SGD: 2/λ₁(G) at every batch size, within a factor of 2"
    size = f"{first} to {last}" if found.crossover[0] > 1 else f"{last} at most"
    return f"stability limit of SGD: grows up to B = {size}, then stays near 2/λ₁(G)"


def _ending(made: Plan) -> str:
    steps = f"{made.trial_steps} training steps, " if made.trials else ""
    return f"{steps}{made.seconds:.1f} s, seed {made.seed}; valid at these parameters only"


# --- numbers ------------------------------------------------------------------------------------------------------


def with_error(value: Estimate) -> str:
    """A number with its standard error, if it has one."""
    return numeral(value.value, 3) + (
        f" ± {numeral(value.standard_error, 1)}" if value.standard_error else ""
    )


def _bounded(value: float, bound: float) -> str:
    return f"{numeral(value)} ± {numeral(bound, 1)}"


def _fit_table(table: Table) -> list[str]:
    head, *rows = table
    return terminal.fitted_table(head, rows, right=True)
