"""Verdicts on anybody's formula: a prediction against a simulation, judged as the suite's own claims are.

| name | what it is |
|---|---|
| `check` | agrees, disagrees or undecided, with a known chance that any verdict is ever wrong |
| `Checked` | the result: verdict, points, rivals, table, plot |
| `CheckedPoint` | what came out at one point, for one component of an array |

Intervals, looks, rivals and guards are those of `verify.judging`; streams are those of `simulate.monte_carlo`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from simulate._checks import at_least, did_you_mean
from simulate.monte_carlo import Point, open_executor
from verify.checking.replicates import (
    Floats,
    Place,
    Replicates,
    call_function,
    require_call,
    require_processes,
    returned_numbers,
)
from verify.checking.results import Checked, CheckedPoint, Formula
from verify.judging.admission import rival_problems, size_problems
from verify.judging.guards import STILL
from verify.judging.intervals import FEWEST
from verify.judging.judge import Judgement, combine, judge, looks, outcome, readings, replicates_fixed
from verify.judging.properties import SHRINKS, explore
from verify.model import (
    ABSOLUTE,
    BOUNDS_EVERY_REPLICATE,
    MODEL_BASED,
    ONE_SIDED,
    Claim,
    Experiment,
    Kind,
    Verdict,
)

__all__ = ["Checked", "CheckedPoint", "check"]


BUDGET = 100_000
"""Most replicates of a point: enough for a margin of a fiftieth of a standard deviation at an error of 1e-3."""

FIXED = 1024
"""Replicates of a point for an exponent, which is judged once: more of them would resolve terms left out."""

EXAMPLES = 10
"""Examples that each strategy draws."""

CORRECTION = (1.0,)
"""Powers of 1/size by which local exponents may differ from the exponent at infinite size."""

KINDS: Mapping[str, Kind] = {
    "mean": Kind.MEAN,
    "probability": Kind.PROPORTION,
    "bound": Kind.AT_MOST,
    "upper bound": Kind.AT_MOST,
    "lower bound": Kind.AT_LEAST,
    "distribution": Kind.DISTRIBUTION,
    "exponent": Kind.EXPONENT,
    **{str(kind): kind for kind in (*ONE_SIDED, *BOUNDS_EVERY_REPLICATE, Kind.EXPONENT)},
}
"""Kinds by name: short ones first, then those of the suite."""


def check(
    predict: Formula,
    simulate: Formula,
    points: Any = ({},),
    *,
    margin: float,
    relative: bool = True,
    rivals: Mapping[str, Formula] | None = None,
    kind: str = "mean",
    error: float = 1e-3,
    budget: int | None = None,
    vectorised: bool = False,
    workers: int = 1,
    seed: int = 0,
) -> Checked:
    """Return a verdict on a formula: whether what it predicts agrees with what a simulation shows.

    Replicates are drawn until every verdict is clear, or until the budget ends. No variance is needed.

    Parameters
    ----------
    predict
        ``predict(**point)`` returns a number or an array; for a distribution, the distribution function (of arrays),
        or an object with a method `cdf`.
    simulate
        ``simulate(rng, **point)`` returns one replicate, of the same shape; with `vectorised`,
        ``simulate(rng, size, **point)`` returns `size` of them, stacked along the first axis. `rng` is a
        `numpy.random.Generator`. Results may be of numpy or torch. Every component of an array is judged.
    points
        Mappings from the names of parameters to their values. Or hypothesis strategies: a strategy of mappings, or a
        mapping that holds strategies; then examples are drawn, and one that disagrees is made simpler.
    margin
        Largest difference at which the formula still counts as right: a fraction of the prediction, at most 1, or in
        its own unit if not `relative`. For a distribution the largest difference of distribution functions, and for a
        bound on every replicate the share of violations that would be seen, never relative.
    rivals
        Other formulas by name, called as `predict` is. Each must differ by two margins at one point at least.
    kind
        ``"mean"``, ``"probability"`` (replicates are 0 or 1), ``"upper bound"`` (also ``"bound"``) or
        ``"lower bound"`` of a mean, ``"upper bound on every replicate"``, ``"lower bound on every replicate"``,
        ``"distribution"``, or ``"exponent"``: of a power law in sizes, which are the one parameter that is a sequence,
        each twice the one before; a replicate holds a value at each.
    error
        Chance that any verdict of this call is ever wrong, rejections of rivals included.
    budget
        Most replicates of a point, 100,000 by default. An exponent is judged once, after 1024 by default.
    workers
        Processes that draw.
    seed
        Replicate i depends on the seed, the point and i, and on nothing else.

    Returns
    -------
    The verdict with all points and rivals; ``result.agrees`` is the truth value. It can be pickled: the functions are
    then left out, and their names are kept.

    Raises
    ------
    ValueError, TypeError
        If an argument or a number that a function returns cannot be used.
    RuntimeError
        If a function raises an exception, which is the cause.

    Examples
    --------
    >>> import math
    >>> def harmonic(n): return sum(1 / k for k in range(1, n + 1))
    >>> def largest(rng, n): return rng.exponential(size=n).max()
    >>> check(harmonic, largest, [{"n": 10}, {"n": 30}], margin=0.02, rivals={"log n": lambda n: math.log(n)})
    agrees at 2 of 2 points, within 2 % (chance of a wrong verdict at most 0.1 %; ... draws)
      n = 10   predicted 2.929   measured 2.9... +- 0.0...   log n: rejected
      n = 30   predicted 3.995   measured ... +- 0.0...   log n: rejected
      not seen: an event rarer than 1 in ... of the replicates
    """
    of = _kind(kind)
    _require_numbers(margin, error, budget, workers, seed, absolute=of in ABSOLUTE)
    if relative and of not in ABSOLUTE and margin > 1:
        raise ValueError(f"margin must be a fraction, 0.05 for 5 %, or give relative=False; got {margin!r}")
    margin, error, named = float(margin), float(error), _rivals_by_name(rivals)
    fixed, strategies = _split(points)
    places = [Place(parameters) for parameters in fixed]
    if workers > 1:
        require_processes(simulate, workers)
    most = budget or (FIXED if of in MODEL_BASED else BUDGET)
    # Hypothesis may judge this many examples of each strategy, and the error is that of all of them.
    share = error / (len(places) + len(strategies) * (EXAMPLES + SHRINKS))
    with open_executor(workers) as executor:
        task = _Task(
            predict, simulate, named, of, margin, relative and of not in ABSOLUTE, most, share,
            vectorised, workers, seed, executor,
        )  # fmt: skip
        questions = [task.question(place) for place in places]
        if not strategies:
            _require_rivals_apart(questions)  # before anything is drawn
        found = [task.answer(question) for question in questions]
        failing = None
        for strategy in strategies:
            judged, simplest = explore(
                task.safe_answer, strategy, _drawn_place, seed=seed, max_examples=EXAMPLES
            )
            if simplest and simplest.error:
                raise simplest.error
            found += judged
            failing = failing or simplest
    if strategies:
        _require_rivals_apart([judged.question for judged in found if judged.question])
    draws = sum(judged.draws for judged in found)
    if failing:  # of all that failed on the way only the simplest is shown, last, where a reader looks for it
        found = [one for one in found if one.verdict is not Verdict.DISAGREES or one.question in questions]
        found.append(failing)
    options = {"margin": margin, "relative": relative, "kind": kind, "error": share, "budget": budget}
    options |= {"vectorised": vectorised, "seed": seed}
    # No call has the seed None, so `reproduce` always names the seed.
    defaults = {**(check.__kwdefaults__ or {}), "seed": None}
    return Checked(
        points=tuple(point for judged in found for point in judged.points),
        kind=str(of),
        margin=margin,
        relative=task.relative,
        error=error,
        draws=draws,
        seed=seed,
        failing=failing.question.place.parameters if failing and failing.question else None,
        call=(predict, simulate, named, {k: v for k, v in options.items() if v != defaults.get(k)}),
    )


class _Question(NamedTuple):
    """Claim that is judged at one point."""

    place: Place
    claim: Claim
    shape: tuple[int, ...]


class _Judged(NamedTuple):
    """Outcome at one point, or the error there."""

    verdict: Verdict
    points: list[CheckedPoint]
    draws: int
    question: _Question | None
    error: Exception | None = None


@dataclass(frozen=True)
class _Task:
    """A call of `check`, for one point after the other; `share` is the error of each."""

    predict: Formula
    simulate: Formula
    rivals: Mapping[str, Formula]
    kind: Kind
    margin: float
    relative: bool
    budget: int
    share: float
    vectorised: bool
    workers: int
    seed: int
    executor: Executor

    def question(self, place: Place) -> _Question:
        """Call the formulas and refuse what cannot be judged, before anything is drawn."""
        require_call(self.simulate, "simulate", place, *(("rng", "size") if self.vectorised else ("rng",)))
        predicted = self._formula(self.predict, "predict", place)
        others = {name: self._formula(f, f"rival {name!r}", place) for name, f in self.rivals.items()}
        shape: tuple[int, ...] = ()
        if self.kind is not Kind.DISTRIBUTION:
            shape = predicted.shape
            if self.relative and not predicted.all():
                raise ValueError(
                    f"predict returns 0{place.at}, where no margin is relative: give relative=False"
                )
            for name, other in others.items():
                if other.shape not in ((), shape):
                    raise ValueError(
                        f"rival {name!r} must return shape {shape} as predict does, got {other.shape}"
                    )
        spans = {"sizes": self._sizes(place)} if self.kind in MODEL_BASED else {}
        claim = Claim(
            id="check", entries=(), source="", statement="", margin_reason="", score="value",
            experiment=Experiment(
                id="check", replicate="", simulate=self.simulate, points=(Point(component=0, **spans),),
                budget=self.budget,
            ),
            predict=partial(_component, predicted),
            rivals={name: partial(_component, other) for name, other in others.items()},
            kind=self.kind, margin=self.margin, relative=self.relative,
            along=next(iter(spans), ""), terms=CORRECTION if spans else (),
        )  # fmt: skip
        return _Question(place, claim, shape)

    def answer(self, question: _Question, *, drawn: bool = False) -> _Judged:
        """Draw until every component is decided, or until the budget ends."""
        place, claim, shape = question
        replicates = Replicates(
            self.simulate, place, self.seed, self.executor,
            workers=self.workers, vectorised=self.vectorised, events=self.kind is Kind.PROPORTION,
        )  # fmt: skip
        spans = self.kind in MODEL_BASED
        trials: list[_Trial] = []
        for n in self._looks(claim):
            values = replicates.up_to(n)
            if not trials:
                shape = self._shape(question, values.shape[1:])
                count = 1 if spans else math.prod(shape)
                trials = [_Trial(claim, j, self.share / count) for j in range(count)]
            columns = values[:, None] if spans else values.reshape(n, -1).T
            for trial in trials:
                trial.look(values if spans else columns[trial.component])
            still = self.kind in (Kind.MEAN, *ONE_SIDED) and all(trial.still for trial in trials)
            # At a point that was asked for this is an error. Hypothesis often draws corners where nothing is
            # random: there it is undecided.
            if still and not drawn:
                raise ValueError(
                    f"simulate must vary, got {values.flat[0]:.6g} in all of {n} replicates{place.at}: use rng, or "
                    "kind='probability' for the rate of a rare event"
                )
            # a component that never varies stays undecided, however many replicates the others take
            if still or all(trial.decided or trial.still for trial in trials):
                break
        points = [trial.point(place, shape) for trial in trials]
        return _Judged(combine([point.verdict for point in points]), points, len(replicates.values), question)

    def safe_answer(self, place: Place | Exception) -> _Judged:
        """Judge a point chosen by hypothesis; an exception is an outcome, so that it is simplified too."""
        try:
            if isinstance(place, Exception):
                raise place
            return self.answer(self.question(place), drawn=True)
        except Exception as error:  # raised again once the simplest point is known
            return _Judged(Verdict.BROKEN, [], 0, None, error)

    def _looks(self, claim: Claim) -> list[int]:
        if fixed := replicates_fixed(claim):
            return [fixed]
        if self.kind is Kind.DISTRIBUTION:  # its interval looks at doublings only
            return [FEWEST * 2**k for k in range((self.budget // FEWEST).bit_length())]
        return looks(self.budget)

    def _formula(self, function: Formula, what: str, place: Place) -> Any:
        """Return the prediction of a formula: an array of finite numbers, or a distribution function."""
        require_call(function, what, place)
        value = call_function(function, what, place.at, place.parameters)
        if self.kind is Kind.DISTRIBUTION:
            law = getattr(value, "cdf", value)
            if not callable(law):
                raise ValueError(f"{what} must return a distribution function, got {value!r}{place.at}")
            return _Law(law, what, place)
        numbers = returned_numbers(value, what, place.at)
        if not np.isfinite(numbers).all():
            raise ValueError(f"{what} must be finite, got {numbers[~np.isfinite(numbers)][0]}{place.at}")
        if self.kind in MODEL_BASED and numbers.ndim:
            raise ValueError(
                f"{what} must return one number, the exponent, got shape {numbers.shape}{place.at}"
            )
        return numbers

    def _sizes(self, place: Place) -> tuple[float, ...]:
        """The one parameter that is a sequence of numbers."""
        found = {
            name: tuple(np.asarray(value).tolist())
            for name, value in place.parameters.items()
            if isinstance(value, list | tuple | np.ndarray) and np.asarray(value).dtype.kind in "iuf"
        }
        if len(found) != 1:
            raise ValueError(
                f"points must have one parameter that is a sequence of sizes, such as sizes=(10, 20, 40, 80), for "
                f"kind='exponent'; got {place}"
            )
        for name, sizes in found.items():
            for problem in size_problems(sizes, len(CORRECTION)):
                raise ValueError(f"points must {problem} for kind='exponent', got {name} = {sizes}")
        return next(iter(found.values()))

    def _shape(self, question: _Question, drawn: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of what is judged, once a replicate is known."""
        place, claim, shape = question
        if self.kind in MODEL_BASED:
            sizes = claim.experiment.points[0].sizes
            if drawn != (len(sizes),):
                raise ValueError(
                    f"simulate must return one value at each of {len(sizes)} sizes, got shape {drawn}{place.at}"
                )
            return ()
        if self.kind is Kind.DISTRIBUTION and drawn:
            raise ValueError(
                f"simulate must return single numbers for a distribution, got shape {drawn}{place.at}"
            )
        if shape not in ((), drawn):
            raise ValueError(f"predict returns shape {shape}, but simulate returns shape {drawn}{place.at}")
        return drawn


class _Law:
    """A distribution function that is checked whenever it is called."""

    def __init__(self, law: Formula, what: str, place: Place) -> None:
        self._law, self._what, self._place = law, what, place

    def __call__(self, x: Floats) -> Floats:
        at, what = self._place.at, f"the distribution function of {self._what}"
        found = returned_numbers(call_function(self._law, what, f" on an array{at}", {}, x), what, at)
        # Rounding may leave a distribution function a little outside of [0, 1].
        if found.shape != np.shape(x) or not ((found >= -1e-9) & (found <= 1 + 1e-9)).all():
            raise ValueError(
                f"{what} must return a number in [0, 1] for each entry of an array, got {found}{at}"
            )
        return found


class _Trial:
    """One component at one point, until it is decided."""

    def __init__(self, claim: Claim, component: int, alpha: float) -> None:
        self.claim, self.component, self.alpha = claim, component, alpha
        self._at = claim.experiment.points[0] | {"component": component}
        self._judgement: Judgement | None = None
        self._values: Floats = np.empty(0)

    @property
    def decided(self) -> bool:
        return self._judgement is not None and self._judgement.verdict is not Verdict.UNDECIDED

    @property
    def still(self) -> bool:
        """Whether all replicates were the same."""
        return self._judgement is not None and self._judgement.interval.obstacle == STILL

    def look(self, values: Floats) -> None:
        """Judge on these replicates, unless an earlier look has decided."""
        if not self.decided:
            self._values = np.ascontiguousarray(values)
            scores = {"value": self._values}
            self._judgement = judge(self.claim, readings(self.claim)[0], self._at, scores, self.alpha)

    def point(self, place: Place, shape: tuple[int, ...]) -> CheckedPoint:
        """The record of the last look."""
        if self._judgement is None:
            raise RuntimeError("nothing has been drawn")
        scores, reading = {"value": self._values}, readings(self.claim)[0]
        found = outcome(self.claim, reading, self._at, self._judgement, scores, [], self.alpha)
        own = {**vars(found), "parameters": place.parameters}
        index = tuple(int(i) for i in np.unravel_index(self.component, shape)) if shape else ()
        return CheckedPoint(**own, component=index, error=self.alpha)


def _component(values: Any, at: Any) -> Any:
    """Return the prediction for one component: a number, or the distribution function itself."""
    if isinstance(values, _Law):
        return values
    return float(values.flat[at.component] if values.ndim else values)


def _drawn_place(drawn: Any) -> Place | Exception:
    try:
        if not isinstance(drawn, Mapping):
            raise TypeError(f"points must be strategies that draw mappings of parameters, got {drawn!r}")
        return Place(drawn)
    except (TypeError, ValueError) as error:  # hypothesis would add to it what it has drawn
        return error


def _split(points: Any) -> tuple[list[Mapping[str, Any]], list[Any]]:
    """Plain points, and strategies that draw others."""
    single = isinstance(points, Mapping) or _is_strategy(points)
    if not single and (isinstance(points, str) or not isinstance(points, Iterable)):
        raise TypeError(
            f"points must be mappings of parameters, such as [{{'n': 10}}, {{'n': 30}}], got {points!r}"
        )
    plain, strategies = list[Mapping[str, Any]](), list[Any]()
    for one in [points] if single else points:
        if _is_strategy(one):
            strategies.append(one)
        elif not isinstance(one, Mapping):
            raise TypeError(f"points must be mappings of parameters, such as {{'n': 10}}, got {one!r}")
        elif any(map(_is_strategy, one.values())):
            from hypothesis import strategies as st

            fixed = {name: value if _is_strategy(value) else st.just(value) for name, value in one.items()}
            names = list(one)  # hypothesis draws them in an order of its own
            strategies.append(st.fixed_dictionaries(fixed).map(partial(_in_order, names)))
        else:
            plain.append(one)
    if strategies:
        _require_own_search()
    if not plain and not strategies:
        raise ValueError("points must not be empty; leave them out for a formula without parameters")
    return plain, strategies


def _require_own_search() -> None:
    """Refuse a search inside of one, which hypothesis does not allow unless it is told to."""
    from hypothesis import HealthCheck, currently_in_test_context, settings

    allowed: Any = settings().suppress_health_check
    if currently_in_test_context() and HealthCheck.nested_given not in allowed:
        raise ValueError(
            "points must be plain inside a test that hypothesis repeats, got strategies: let @given draw the point, "
            "and pass it as a mapping; or allow HealthCheck.nested_given in the settings of the test"
        )


def _in_order(names: Sequence[str], drawn: Mapping[str, Any]) -> dict[str, Any]:
    return {name: drawn[name] for name in names}


def _is_strategy(value: Any) -> bool:
    loaded = sys.modules.get("hypothesis.strategies")  # without it nobody has made one
    return loaded is not None and isinstance(value, loaded.SearchStrategy)


def _kind(name: Any) -> Kind:
    if not isinstance(name, str) or name not in KINDS:
        hint = did_you_mean(name, KINDS) if isinstance(name, str) else ""
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {name!r}{hint}")
    return KINDS[name]


def _rivals_by_name(rivals: Any) -> Mapping[str, Formula]:
    if rivals is not None and not isinstance(rivals, Mapping):
        raise TypeError(
            f"rivals must be formulas by name, such as {{'log n': lambda n: ...}}, got {rivals!r}"
        )
    return dict(rivals or {})


def _require_numbers(
    margin: Any, error: Any, budget: Any, workers: Any, seed: Any, *, absolute: bool
) -> None:
    for name, value, most in (("margin", margin, 1 if absolute else math.inf), ("error", error, 1)):
        real = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not (real and 0 < value < most):
            rule = "finite and positive" if most == math.inf else "greater than 0 and less than 1"
            rule = "a number, 0.05 for 5 %" if isinstance(value, str) else rule
            raise ValueError(f"{name} must be {rule}, got {value!r}")
    at_least("budget", FEWEST if budget is None else budget, FEWEST)
    at_least("workers", workers, 1)
    at_least("seed", seed, 0)


def _require_rivals_apart(questions: Sequence[_Question]) -> None:
    """Refuse rivals that could not be told from the formula at any point."""

    def problems(question: _Question) -> Iterator[str]:
        count = max(1, math.prod(question.shape))
        at = [question.claim.experiment.points[0] | {"component": j} for j in range(count)]
        return rival_problems(question.claim, at)

    # A rival must be far at one point only, so what counts is a problem that every point has.
    for problem in set.intersection(*(set(problems(question)) for question in questions)):
        raise ValueError(
            f"points must {problem}, or nothing could tell it from predict; take a smaller margin or others"
        )
