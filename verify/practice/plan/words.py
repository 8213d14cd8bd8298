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
from verify.practice.plan.planned import Plan, told_power
from verify.practice.plan.rules import BatchRates
from verify.practice.plan.state import State
from verify.practice.plan.trials import SizeTrial
from verify.practice.plan.uncertainty import hold_out
from verify.practice.plan.walk import FACTOR

BIASES = {
    "2/E λ₁(B)": "not the limit; 1.4 to 43 times too high at B = 1, up to 27 % low at B = 16 to 64, right from 1000 on",
    "Theorem 4": "too high on all real networks; its eigenvalue is up to 13 times too low at small B, within 10 % from"
    " B = 256 (at the start) or 1024 (later) on",
    "Adam": "a rule applied to the rate that you gave, not a measurement",
}
"""Errors of the rules next to the bracket on real networks: claims D2, B19 and B45."""

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
        blocks.append(_wrapped([section_title(made)]))
        blocks += [_fit_table(batch_table(made))] if batch_table(made) else []
        blocks.append(_wrapped(curvature_notes(made)))
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


def state_lines(state: State) -> Iterator[str]:
    """Yield lines on the state of the network, each with its meaning for the rates."""
    yield _level(state)
    yield from state.doubts
    if state.units:
        yield f"dead units: {state.dead} of {state.units} ReLU units respond to no sample{_dead(state)}"
    if state.batch_statistics:
        yield (
            "batch normalisation: samples of a batch affect each other. Trials and curvature use the statistics of each"
            " batch, and there is no bracket, which needs single samples"
        )
    if state.dropout:
        yield "dropout: on in the trial runs, off for curvature"
    if state.near_constant:
        yield (
            f"nearly constant outputs: they vary by {numeral(state.spread, 2)} over the samples, at a scale of"
            f" {numeral(state.scale, 2)}. Curvature is small now and grows once they differ, so rates from curvature"
            " are too high here (4 to 21 times on a convolutional network)"
        )


def _level(state: State) -> str:
    ratio = state.loss / state.constant if state.constant > 0 else float("inf")
    line = f"loss {numeral(state.loss)}, best constant output {numeral(state.constant)}"
    if not state.learned:
        return f"{line}: nothing is learned yet, and curvature will change"
    return f"{line} ({numeral(ratio, 2)} of it): the network has learned something"


def _dead(state: State) -> str:
    if state.dead_share > 0.5:
        return ": most of the network is off, and no learning rate revives it"
    return ": off until other units change" if state.dead else ""


# --- trials ------------------------------------------------------------------------------------------------------


def trial_table(made: Plan) -> Table:
    """A heading and a row for each batch size."""
    head = ["B", "start with", "within", "largest that should train", "failed", "steps", "loss"]
    return [head, *(_trial_row(made, at) for at in made.trials)]


def _trial_row(made: Plan, at: SizeTrial) -> list[str]:
    rung = at.walked.start or at.walked.best
    within = "" if at.within is None else _interval(*at.within)
    steps = f"{rung.steps}/{at.ahead if made.intended is None else made.intended}"
    loss = "diverged" if rung.loss is None else numeral(rung.loss, 3)
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
    rung = at.walked.failed
    return "" if rung is None else f"{numeral(rung.rate, 3)}: {rung.fate()}"


def trial_notes(made: Plan) -> Iterator[str]:
    """Yield the notes on the rates: what is wrong with some of them, and what they mean."""
    yield from _refusals(made)
    if any(at.start is not None for at in made.trials):
        yield from uncertain(made)
    yield _ahead(made)
    yield from _power_lines(made)
    yield from _short_batch_lines(made.trials)


def uncertain(made: Plan) -> Iterator[str]:
    """Yield the errors of such rates on the held-out networks of the benchmark."""
    seen, own = hold_out(made.kind, made.state.learned)
    given, cells = seen.cells
    none = f"; {cells - given} got no rate" if given < cells else ""
    yield (
        f"start with: on {cells} held-out runs (200 steps or 5 epochs{none}) within 2x of the best rate in"
        f" {_percent(seen.twice)}, lost at most a tenth of the gain in {_percent(seen.cheap)}, failed in"
        f" {_percent(seen.above)}; *within* held the best rate in eight of ten"
        f"{'' if own else _elsewhere(made)}"
    )
    low, high = seen.edge
    yield (
        "largest that should train: from the largest trial that trained to the next, which did not; the true rate was"
        f" {numeral(low, 2)} to {numeral(high, 2)} times the first in eight of ten held-out runs"
    )


def _elsewhere(made: Plan) -> str:
    """Return the clause on an optimiser or state that was not measured."""
    state = "after some training" if made.state.learned else "at the start"
    return f". All this is for plain SGD {state}; {made.optimizer} was not measured there"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _power_lines(made: Plan) -> Iterator[str]:
    """Yield how the rate changes with the batch size, for sizes that were not tried."""
    told, untold = list[str](), list[str]()
    for one, other in made.segments:
        places, power = f"from {one[0]} to {other[0]}", told_power(one, other)
        if power is None:
            untold.append(places)
        else:
            told.append(f"as B^({numeral(power[0], 2)} ± {numeral(power[1], 2)}) {places}")
    if told:
        yield (
            f"other batch sizes: the rate goes {', '.join(told)}, ± from the grid of rates alone; not beyond these"
            " sizes"
        )
    if untold:
        yield (
            f"{', '.join(untold)}: the rates do not follow a power of B that trials a factor of {FACTOR:.0f} apart"
            " can show"
        )


def _refusals(made: Plan) -> Iterator[str]:
    stuck = [at for at in made.trials if at.start is None]
    for at in stuck:
        best = f"{numeral(at.walked.best.rate, 3)}, {at.walked.best.fate()}"
        yield (
            f"B = {at.batch_size}: no trial {_unbeaten(made.state, at)}; the best was {best}. Check the"
            " initialisation, data and loss, or let trials look further ahead (--steps)"
        )


def _unbeaten(state: State, at: SizeTrial) -> str:
    """Return the loss that no trial went below by 1 %."""
    loss = at.walked.best.loss
    if loss is not None and loss < 0.9 * state.constant:
        return f"brings the loss below its start ({numeral(state.loss, 3)})"
    return f"beats a constant output on the same batches ({numeral(state.constant, 3)} on all data)"


def _ahead(made: Plan) -> str:
    line = f"trials with {made.optimizer}; *steps* and *loss* at *start with*, over "
    if made.intended is None:
        return f"{line}the steps looked ahead. Longer training may need another rate"
    return f"{line}the {made.intended} steps that you intend. Later steps were not seen"


def _short_batch_lines(trials: Sequence[SizeTrial]) -> Iterator[str]:
    for at in trials:
        if at.short:
            yield (
                f"B = {at.batch_size}: the last batch of an epoch has only {at.short} samples, a noisy step at the full"
                " rate; leave it out (drop_last=True in a DataLoader, --drop-last here)"
            )


# --- curvature ---------------------------------------------------------------------------------------------------


def section_title(made: Plan) -> str:
    """Title of the section on curvature; empty without one."""
    if made.linearised is not None:
        return "Dynamics of plain SGD, linearised at these parameters: a bracket, no rate to use"
    if made.batch_curvature:
        return "Curvature of batches at these parameters, in training mode: no rate to use"
    return "Dynamics of plain SGD, linearised at these parameters" if made.not_linearised else ""


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


def curvature_notes(made: Plan) -> Iterator[str]:
    """Yield the notes on the numbers of the section."""
    if made.linearised is not None:
        yield from _notes(made.linearised, made.plain)
    elif made.batch_curvature:
        yield (
            "2/E λ₁(H_B): from the mean largest Hessian eigenvalue of random batches, each with its own statistics."
            " Steps on one batch alone would be stable below it. Only its shape over batch sizes means something"
        )
    else:
        yield f"none: {made.not_linearised}"


def _notes(found: Linearised, plain: bool) -> Iterator[str]:
    first = _bounded(found.bracket.largest, found.bracket.bound)
    yield f"λ₁(G), Gauss-Newton matrix: {first}"
    yield f"λ₁(H), Hessian: {_bounded(found.hessian, found.hessian_bound)}{_sharper(found)}"
    yield f"largest λ₁(G_i) of a sample {numeral(found.bracket.heaviest)}; |G_i − G|² {with_error(found.variance)}"
    yield from full_gradient_lines(found.hessian, found.bracket.largest)
    yield _growth(found)
    yield from _optimizer_lines(found, plain)
    yield _noise(found.noise)
    yield ("λ₁(B): eight of ten batches, by theory; mean within 3 % (small perceptrons 12 %)")
    for rule, bias in BIASES.items():
        if rule != "Adam" or found.anchor is not None:
            yield f"{rule}: {bias}"
    yield f"± is one standard error; {numeral(found.products, 3)} products over all samples"


def _sharper(found: Linearised) -> str:
    if found.hessian > SHARPER * found.bracket.largest:
        return "; sharper than G until training shrinks the other part of H"
    return ""


def _optimizer_lines(found: Linearised, plain: bool) -> Iterator[str]:
    """Yield the stable rate of the given optimiser with full gradients."""
    limit = found.own.rates[-1]
    if plain:
        return
    if limit is None:
        yield f"your optimizer, full gradients: {found.own.rule}"
    elif found.own.scaled:
        yield (
            f"Adam, frozen: full gradients are stable below {found.own.rule}, with the mean squared gradients of"
            " batches held fixed. Noise between batches is left out; in training squared gradients fall, and this rate"
            " falls with them"
        )
    else:
        yield (
            f"your optimizer: full gradients are stable below {numeral(limit, 3)} = {found.own.rule}, of the Hessian"
            " with weight decay; noise between batches is left out"
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
    return f"gradient noise scale: {', '.join(said)} samples; larger batches help little per step. It grows in training"


def _growth(found: Linearised) -> str:
    first, last = (numeral(size, 3) for size in found.crossover)
    if found.crossover[1] <= 1:
        return "the stable rate of SGD is 2/λ₁(G) at every batch size, within a factor of 2"
    size = f"{first} to {last}" if found.crossover[0] > 1 else f"{last} at most"
    return f"the stable rate of SGD grows to B = {size}, then levels off at 2/λ₁(G)"


def _ending(made: Plan) -> str:
    steps = f"{made.trial_steps} training steps, " if made.trials else ""
    return f"{steps}{made.seconds:.1f} s, seed {made.seed}; every number belongs to the current parameters"


# --- numbers ------------------------------------------------------------------------------------------------------


def with_error(value: Estimate) -> str:
    """A number with its standard error, if it has one."""
    return numeral(value.value, 3) + (
        f" ± {numeral(value.standard_error, 1)}" if value.standard_error else ""
    )


def _bounded(value: float, bound: float) -> str:
    return f"{numeral(value)} (error below {numeral(bound, 1)})"


def _fit_table(table: Table) -> list[str]:
    head, *rows = table
    return terminal.fitted_table(head, rows, right=True)
