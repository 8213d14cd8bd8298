"""Functions of theory that a claim uses: those its prediction runs, and those its score names."""

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

import theory
from simulate.monte_carlo import fixture
from verify.claims import registry
from verify.claims.places import UNREAD, _collect_names, _functions, _names
from verify.judging.estimands import components
from verify.model import AnyClaim, Claim, ExactProperty, Identity, Kind, StatisticalProperty


def reason(output: str) -> str:
    """Return why no claim needs to read an output; empty where there is no reason."""
    inside = f"{output.removeprefix('theory.')}."
    return next((why for why, names in UNREAD.items() for n in names if inside.startswith(f"{n}.")), "")


CHEAP = 0.06
"""Seconds that an identity or property may take, by its own word, to be run here; of others the names are read."""

WHOLE = "_asdict"
"""Method that makes a dictionary of a record, and so reads all its fields."""


@functools.cache
def theory_outputs() -> dict[str, Any]:
    """Every public output of theory by its name: functions, methods and properties of classes, fields of records.

    >>> [name for name in theory_outputs() if name.startswith("theory.zone.CurvatureFactors.")]
    ['theory.zone.CurvatureFactors.gauss_newton', 'theory.zone.CurvatureFactors.h_term']
    """
    found: dict[str, Any] = {}
    for place in pkgutil.walk_packages(theory.__path__, "theory."):
        if place.name.rpartition(".")[2].startswith("_"):
            continue
        module = importlib.import_module(place.name)
        for thing in (getattr(module, name) for name in getattr(module, "__all__", ())):
            if inspect.isfunction(thing):
                found[_name(thing)] = thing
            elif (
                isinstance(thing, type)
                and _of_theory(thing.__module__)
                and not issubclass(thing, BaseException)
            ):
                found |= {f"{_name(thing)}.{own}": thing for own in _members(thing)}
    return found


class Reads(NamedTuple):
    """Outputs of theory that a claim reads.

    Attributes
    ----------
    predicted
        Whether its prediction runs any function of theory, also a private one; for routes that are not run, whether
        they name one.
    any
        Whether `predicted`, or its score is made with theory: a ratio to a prediction, say.
    outputs
        The public outputs that it reads, by their names in `theory_outputs`.
    """

    predicted: bool
    any: bool
    outputs: frozenset[str]


def reading(claim: AnyClaim) -> Reads:
    """Return what a claim reads of theory: run by its prediction, or named by what makes its score.

    >>> found = reading(next(c for c in registry.claims() if c.id == "vysogorets2024/eq-8"))
    >>> found.any, sorted(found.outputs)
    (True, ['theory.gauss_newton.expected_excess', 'theory.softmax.gamma'])
    """
    with _tracing_calls() as run:
        for predict in _predictions(claim):
            predict()
    names, functions = _collect_names(claim)
    found = {name.replace(":", ".") for name in names}
    named = {_public(name) for name in found}
    # fields of records: a record that a named function returns, a field whose name is in the code of the claim
    returns = [str(getattr(theory_outputs().get(n), "__annotations__", {}).get("return", "")) for n in named]
    names = {name for function in functions for name in _names(function.__code__)} if returns else set[str]()
    fields = {
        f"{_name(record)}.{field}"
        for record in _records()
        if any(record.__name__ in said for said in returns)
        for field in (_fields(record) if WHOLE in names else names)
    }
    routes = isinstance(claim, Identity | ExactProperty)
    return Reads(
        predicted=bool(run or (routes and named)),
        any=bool(run or named),
        outputs=frozenset((run | named | fields) & theory_outputs().keys()),
    )


def _predictions(claim: AnyClaim) -> Iterator[Callable[[], Any]]:
    """Yield the calls that make all predictions of a claim."""
    if isinstance(claim, Claim):
        for point in claim.experiment.points:
            part = next(iter(components(claim, point)))
            for formula in filter(None, (claim.predict, claim.offset)):
                if claim.kind is Kind.DISTRIBUTION:
                    yield lambda formula=formula, part=part: formula(part)(np.float64(1.5))
                else:
                    yield functools.partial(claim.prediction, part, formula)
    elif isinstance(claim, StatisticalProperty):
        yield from (functools.partial(claim.predict, point) for point in claim.examples)
    elif claim.seconds <= CHEAP:
        point = claim.examples[0] if isinstance(claim, ExactProperty) else claim.points[0]
        yield functools.partial(_functions(claim)[0], fixture(0, claim.id), point)


@contextmanager
def _tracing_calls() -> Iterator[set[str]]:
    """Note every function of theory that is called and every field of its records that is read."""
    found: set[str] = set()
    codes: dict[int, CodeType] = {}

    def note(frame: FrameType, _event: str, _: Any) -> None:
        """Note the function of each call; nothing is returned, so its lines are not traced."""
        if id(frame.f_code) in codes:
            return
        codes[id(frame.f_code)] = frame.f_code  # kept: no other code has its number meanwhile
        if _of_theory(frame.f_globals.get("__name__")):
            found.add(_public(f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}"))

    _forget()
    before = sys.gettrace()
    with ExitStack() as stack:
        for record in _records():
            stack.enter_context(_noting_attributes(record, found))
        sys.settrace(note)
        stack.callback(sys.settrace, before)
        yield found


def _forget() -> None:
    """Empty the caches of theory, of claims and of their model: a value that is kept would run nothing."""
    ours = ("theory", "verify.claims.", "verify.model")
    for thing in _caches(tuple(name for name in sys.modules if name.startswith(ours))):
        thing.cache_clear()


@functools.cache
def _caches(modules: tuple[str, ...]) -> list[Any]:
    """The caches of these modules; those of the registry stay."""
    found = (t for name in modules for t in vars(sys.modules[name]).values())
    return [t for t in found if hasattr(t, "cache_clear") and t.__module__ != registry.__name__]


@contextmanager
def _noting_attributes(record: Any, found: set[str]) -> Iterator[None]:
    """Note attributes looked up on instances of a class, except look-ups by the class's own topic.

    Unpacking a record, or making a dictionary of it, reads all its fields.
    """
    name, plain, whole = _name(record), record.__getattribute__, getattr(record, "__iter__", None)
    topic = _topic(record.__module__)

    def note(*attributes: str) -> None:
        caller = sys._getframe(2).f_globals.get("__name__")
        if caller != "theory._checks" and _topic(caller) != topic:  # that looks at every field for overflow
            found.update(f"{name}.{attribute}" for attribute in attributes)

    def noting(self: Any, attribute: str) -> Any:
        note(*(_fields(record) if attribute == WHOLE else (attribute,)))
        return plain(self, attribute)

    def unpacking(self: Any) -> Iterator[Any]:
        note(*_fields(record))
        return whole(self)  # pyright: ignore[reportOptionalCall]

    record.__getattribute__ = noting
    if issubclass(record, tuple):
        record.__iter__ = unpacking
    try:
        yield
    finally:
        del record.__getattribute__
        if issubclass(record, tuple):
            del record.__iter__


def _records() -> list[type]:
    return [thing for thing in dict.fromkeys(theory_outputs().values()) if isinstance(thing, type)]


def _members(record: type) -> list[str]:
    """Public methods and properties of a class; of a record that has none, the fields. Other fields are arguments."""
    bases = [base for base in record.__mro__ if _of_theory(base.__module__)]
    own = {name: thing for base in bases for name, thing in vars(base).items() if not name.startswith("_")}
    made = [name for name, thing in own.items() if inspect.isroutine(thing) or isinstance(thing, property)]
    fields = {name for base in bases for name in getattr(base, "__annotations__", ()) if name[0] != "_"}
    return sorted(set(made) - fields or fields)


def _fields(record: Any) -> tuple[str, ...]:
    return getattr(record, "_fields", ())


def _of_theory(module: Any) -> bool:
    return str(module).partition(".")[0] == "theory"


def _topic(module: Any) -> list[str]:
    return str(module).split(".")[:2]


def _name(thing: Any) -> str:
    return _public(f"{thing.__module__}.{thing.__qualname__}")


def _public(name: str) -> str:
    """Name without the private modules in it."""
    return ".".join(part for part in name.split(".") if not part.startswith("_"))
