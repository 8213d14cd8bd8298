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
    "2/E λ₁(B)": "not the limit: on real networks 1.4 to 43 times too high at B = 1, up to 27 % low at B = 16 to 64,"
    " right from about 1000 on",
    "Theorem 4": "too high on every real network measured: its eigenvalue is 2 to 13 times low at small B,"
    " within 10 % from B = 256 (at initialisation) or 1024 (later) on",
    "Adam": "a rule from the rate that you gave, not a measurement; its size hangs on that rate alone",
}
"""What the rules beside the bracket were found to be off by on real networks: claims D2, B19 and B45."""

SHARPER = 1.1
"""Ratio of the largest eigenvalues of Hessian and Gauss-Newton matrix from which on it is said."""

_WIDTH = 80
"""Most characters of a line of a sentence."""

Table = list[list[str]]


def plan_text(made: Plan) -> str:
    """Return the text that the command prints."""
    blocks = [_wrapped([*facts(made), *state_lines(made.state)])]
    if made.trials:
        blocks += [_fitted(trial_table(made)), _wrapped(trial_notes(made))]
    if section_title(made):
        blocks.append(_wrapped([section_title(made)]))
        blocks += [_fitted(batch_table(made))] if batch_table(made) else []
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


def facts(made: Plan) -> Iterator[str]:
    """Yield the line that names the problem and its size."""
    yield f"{escaped(made.name)}: N = {made.samples}, P = {made.parameters}"


def state_lines(state: State) -> Iterator[str]:
    """Yield lines on the state of the network, each with its meaning for the rates."""
    yield _level(state)
    yield from state.doubts
    if state.units:
        yield f"dead units: {state.dead} of {state.units} of relu respond to no sample{_dead(state)}"
    if state.batch_statistics:
        yield (
            "batch normalisation: samples of a batch see each other; rates are tried, and curvature is taken, with"
            " the statistics of each batch, and there are no single samples to bracket a rate by"
        )
    if state.dropout:
        yield "dropout: on in the trials, off in what curvature says"
    if state.near_constant:
        yield (
            f"near-constant outputs: they vary by {numeral(state.spread, 2)} over the samples, beside"
            f" {numeral(state.scale, 2)}; curvature is small now and grows once they differ, so rates from it are too"
            " high here (4 to 21 times on a convolutional network)"
        )


def _level(state: State) -> str:
    ratio = state.loss / state.constant if state.constant > 0 else float("inf")
    line = f"loss {numeral(state.loss)}, that of the best constant output {numeral(state.constant)}"
    if not state.learned:
        return f"{line}: nothing is learned yet, so curvature here says little of curvature later"
    return f"{line}: {numeral(ratio, 2)} of it, some of it is learned"


def _dead(state: State) -> str:
    if state.dead_share > 0.5:
        return ": most of the network is shut off, and no rate brings it back"
    return ": shut off until others move them" if state.dead else ""


# --- trials ------------------------------------------------------------------------------------------------------


def trial_table(made: Plan) -> Table:
    """A heading and a row for each batch size."""
    head = ["B", "start with", "within", "largest that should train", "failed", "steps", "loss"]
    return [head, *(_trial_row(made, at) for at in made.trials)]


def _trial_row(made: Plan, at: SizeTrial) -> list[str]:
    rung = at.walked.start or at.walked.best
    within = "" if at.within is None else _interval(*at.within)
    steps = f"{rung.steps}/{at.ahead if made.intended is None else made.intended}"
    loss = "lost" if rung.loss is None else numeral(rung.loss, 3)
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
    yield f"tried with {made.optimizer}, from the parameters as they are"
    yield from _between(made)
    yield _ahead(made)
    yield from _short(made.trials)


def uncertain(made: Plan) -> Iterator[str]:
    """Yield the errors of such rates on the held-out networks of the benchmark."""
    seen, own = hold_out(made.kind, made.state.learned)
    given, cells = seen.cells
    none = f", and none was given in {cells - given}" if given < cells else ""
    yield (
        "start with: the best rate was in the interval *within* in eight of ten cells of eleven hold-out networks, 200"
        " steps or five epochs looked ahead,"
        f" within 2x of the rate given in {_percent(seen.twice)} of {cells}{none}; the rate given lost at most a"
        f" tenth of what training gains in {_percent(seen.cheap)}, and training failed at it in {_percent(seen.above)}"
        f"{'' if own else _elsewhere(made)}"
    )
    low, high = seen.edge
    yield (
        "largest that should train: between a rung that ended 1 % below the start and the best constant output, on the"
        " same batches, and the next one, which did not; on the hold-out networks the largest rate that trains for all"
        f" the steps looked ahead was {numeral(low, 2)} to {numeral(high, 2)} times that rung in eight of ten cells"
    )


def _elsewhere(made: Plan) -> str:
    """Return the clause on an optimiser or state that was not measured."""
    state = "after some training" if made.state.learned else "at the start"
    return f"; all that with plain SGD {state}: {made.optimizer} was not measured there"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _between(made: Plan) -> Iterator[str]:
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
            f"batch sizes between these: start with a rate that goes {', '.join(told)}, ± by the grid of rates alone;"
            " beyond them nothing is said"
        )
    if untold:
        yield (
            f"{', '.join(untold)}: the rates found do not follow a power of B that rungs of a factor of {FACTOR:.0f}"
            " can tell"
        )


def _refusals(made: Plan) -> Iterator[str]:
    stuck = [at for at in made.trials if at.start is None]
    for at in stuck:
        best = f"{numeral(at.walked.best.rate, 3)}, {at.walked.best.fate()}"
        yield (
            f"B = {at.batch_size}: no rate that was tried {_unbeaten(made.state, at)}; best was {best}. No rate"
            " is given: look at the start, the data and the loss, or let trials look further ahead (--steps)"
        )


def _unbeaten(state: State, at: SizeTrial) -> str:
    """Return the loss that no trial went below by 1 %."""
    loss = at.walked.best.loss
    if loss is not None and loss < 0.9 * state.constant:
        return f"brings the loss below that of the parameters as they are ({numeral(state.loss, 3)})"
    return f"beats a constant output on the same batches ({numeral(state.constant, 3)} on all data)"


def _ahead(made: Plan) -> str:
    line = "steps: of the rung to start with, over "
    if made.intended is None:
        return f"{line}those looked ahead; longer training may want another rate"
    return f"{line}the {made.intended} that you intend: what comes later was not seen"


def _short(trials: Sequence[SizeTrial]) -> Iterator[str]:
    for at in trials:
        if at.short:
            yield (
                f"B = {at.batch_size}: the last batch of an epoch has {at.short} samples only, a noisy step at the full"
                " rate; leave it out (drop_last=True in a DataLoader, --drop-last here)"
            )


# --- curvature ---------------------------------------------------------------------------------------------------


def section_title(made: Plan) -> str:
    """Title of the section on curvature; empty without one."""
    if made.linearised is not None:
        return "Dynamics of plain SGD, linearised at these parameters: a bracket, no advice"
    if made.batch_curvature:
        return "Curvature of batches at these parameters, in training mode: no advice"
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
            "2 over the mean largest eigenvalue of the Hessian of drawn batches, each with its own statistics: full"
            " steps on one batch alone would be stable below. It gives the shape over batch sizes, not the level"
        )
    else:
        yield f"none: {made.not_linearised}"


def _notes(found: Linearised, plain: bool) -> Iterator[str]:
    first = _bounded(found.bracket.largest, found.bracket.bound)
    yield f"λ₁ of the Gauss-Newton matrix {first}, of the Hessian {_bounded(found.hessian, found.hessian_bound)}"
    yield f"heaviest single sample {numeral(found.bracket.heaviest)}, noise |G_i − G|² {with_error(found.variance)}"
    yield from full_gradient_lines(found.hessian, found.bracket.largest)
    yield _growth(found)
    yield from _own(found, plain)
    yield _noise(found.noise)
    if found.hessian > SHARPER * found.bracket.largest:
        yield "the Hessian is sharper than its Gauss-Newton part, until training has shrunk the other part"
    yield (
        "λ₁(B): largest eigenvalue of a batch, eight of ten lie between; from the samples by the own-direction law,"
        " whose mean was within 3 % of measured batches on convolutional, residual and attention networks, and 12 %"
        " off at worst on small perceptrons"
    )
    yield "± is one standard error. Beside the bracket, for comparison:"
    for rule, bias in BIASES.items():
        if rule != "Adam" or found.anchor is not None:
            yield f"  {rule}: {bias}"
    yield f"{numeral(found.products, 3)} products with all samples"


def _own(found: Linearised, plain: bool) -> Iterator[str]:
    """Yield the stable rate of the given optimiser with full gradients."""
    limit = found.own.rates[-1]
    if plain:
        return
    if limit is None:
        yield f"your optimizer, full gradients: {found.own.rule}"
    elif found.own.scaled:
        yield (
            f"Adam, frozen: full gradients are stable below {found.own.rule}, with the mean square of the gradients of"
            " batches at these parameters held fixed; noise between the batches is left out, and in training the"
            " square of the gradients falls, and with it this rate"
        )
    else:
        yield (
            f"your optimizer: full gradients are stable below {numeral(limit, 3)} = {found.own.rule}, of the Hessian"
            " with weight decay; noise between the batches is left out"
        )


def _noise(noise: NoiseScales) -> str:
    """Beyond which batch size larger ones buy little, by the gradients as they are."""
    said = [
        f"{name} {with_error(value)}"
        for name, value in (("simple", noise.simple), ("with the curvature", noise.curved))
        if value is not None
    ]
    if not said:
        return "noise scale of the gradients: none, there is no slope here"
    return (
        f"noise scale of the gradients, {', '.join(said)} samples: a batch size beyond which larger ones buy little"
        " progress for each step, at these parameters; it grows while training goes on"
    )


def _growth(found: Linearised) -> str:
    first, last = (numeral(size, 3) for size in found.crossover)
    flat = numeral(2 / found.bracket.largest, 3)
    if found.crossover[1] <= 1:
        return f"the stable rate of SGD is 2/λ₁(G) = {flat} at every batch size, but for a factor below 2"
    size = f"{first} to {last}" if found.crossover[0] > 1 else f"{last} at most"
    return f"the stable rate of SGD grows with B up to about {size} and levels off at 2/λ₁(G) = {flat}"


def _ending(made: Plan) -> str:
    steps = f"{made.trial_steps} steps of training, " if made.trials else ""
    return f"{steps}{made.seconds:.1f} s in all, seed {made.seed}; all of it belongs to the parameters as they are now"


# --- cells -------------------------------------------------------------------------------------------------------


def with_error(value: Estimate) -> str:
    """A number with its standard error, if it has one."""
    return numeral(value.value, 3) + (
        f" ± {numeral(value.standard_error, 1)}" if value.standard_error else ""
    )


def _bounded(value: float, bound: float) -> str:
    return f"{numeral(value)} (error below {numeral(bound, 1)})"


def _fitted(table: Table) -> list[str]:
    head, *rows = table
    return terminal.fitted_table(head, rows, right=True)
