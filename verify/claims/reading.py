"""Which outputs of theory a claim reads: functions, methods and fields of records, found by running its prediction.

An output that no claim reads could be wrong and no verdict would tell: `verify.claims.unread` lists those that may
stay so, each with its reason, and a test keeps the two together.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

import numpy as np

import theory
from simulate.monte_carlo import fixture
from verify.claims.places import attributes_read, theory_read
from verify.judging.estimands import components
from verify.model import AnyClaim, Claim, ExactProperty, Identity, Kind, StatisticalProperty

__all__ = ["Reads", "reading", "theory_outputs"]

CHEAP = 0.3
"""Seconds that an identity or property may take, by its own word, to be run here; of others the names are read."""

WHOLE = "_asdict"
"""What makes a dictionary of a record: all its fields are read then."""


@functools.cache
def theory_outputs() -> dict[str, Any]:
    """Every public output of theory by its name: functions, methods and properties of classes, fields of records.

    >>> [name for name in theory_outputs() if name.startswith("theory.zone.CurvatureFactors.")]
    ['theory.zone.CurvatureFactors.gauss_newton', 'theory.zone.CurvatureFactors.h_term']
    """
    found: dict[str, Any] = {}
    for module in _modules():
        for thing in (getattr(module, name) for name in getattr(module, "__all__", ())):
            if inspect.isfunction(thing):
                found[_name(thing)] = thing
            elif _is_record(thing):
                found |= {f"{_name(thing)}.{own}": thing for own in _members(thing)}
    return found


class Reads(NamedTuple):
    """What a claim reads of theory.

    Attributes
    ----------
    predicted
        Whether its prediction runs any of theory, private functions too; of routes that are not run, whether they
        name any.
    any
        Whether it does, or its score is made with theory: a ratio to what is predicted, say.
    outputs
        The public outputs among it, by the names of `outputs`.
    """

    predicted: bool
    any: bool
    outputs: frozenset[str]


def reading(claim: AnyClaim) -> Reads:
    """What a claim reads of theory: run by its prediction, or named by what makes its score.

    >>> from verify.claims import registry
    >>> found = reading(next(c for c in registry.claims() if c.id == "vysogorets2024/eq-8"))
    >>> found.any, sorted(found.outputs)
    (True, ['theory.gauss_newton.expected_excess', 'theory.softmax.gamma'])
    """
    with _traced() as run:
        for predict in _predictions(claim):
            predict()
    named = {_public(name) for name in theory_read(claim)}
    returned = [
        record for record in _records() if any(_returns(theory_outputs().get(f), record) for f in named)
    ]
    names = attributes_read(claim) if returned else set[str]()
    fields = {
        f"{_name(record)}.{field}"
        for record in returned
        for field in (_fields(record) if WHOLE in names else names)
    }
    routes = isinstance(claim, Identity | ExactProperty)
    return Reads(
        predicted=bool(run or (routes and named)),
        any=bool(run or named),
        outputs=frozenset((run | named | fields) & theory_outputs().keys()),
    )


def _predictions(claim: AnyClaim) -> Iterator[Callable[[], Any]]:
    """What has to be called for all of a claim's predictions."""
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
        route = claim.violation if isinstance(claim, ExactProperty) else claim.routes
        yield lambda: route(fixture(0, claim.id), point)


@contextmanager
def _traced() -> Iterator[set[str]]:
    """Notes every function of theory that is called and every field of its records that is read."""
    found: set[str] = set()
    seen: dict[int, CodeType] = {}

    def note(frame: FrameType, _event: str, _: Any) -> None:
        """Of each call, and of no line in it: nothing is returned."""
        if id(frame.f_code) in seen:
            return
        seen[id(frame.f_code)] = frame.f_code  # kept: no other code has its number meanwhile
        if _of_theory(frame.f_globals.get("__name__")):
            found.add(_public(f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}"))

    for clear in _caches():
        clear()
    before = sys.gettrace()
    with ExitStack() as stack:
        for record in _records():
            stack.enter_context(_noted(record, found))
        sys.settrace(note)
        stack.callback(sys.settrace, before)
        yield found


@contextmanager
def _noted(record: Any, found: set[str]) -> Iterator[None]:
    """While it lasts, names that are looked up on instances of a class are noted, but for those its topic looks up.

    A record that is unpacked, or made a dictionary, has all its fields read.
    """
    name, plain, whole = _name(record), record.__getattribute__, getattr(record, "__iter__", None)
    topic = _topic(record.__module__)

    def note(*attributes: str) -> None:
        if _topic(sys._getframe(2).f_globals.get("__name__")) != topic:
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


@functools.cache
def _records() -> tuple[type, ...]:
    return tuple(dict.fromkeys(thing for thing in theory_outputs().values() if _is_record(thing)))


@functools.cache
def _caches() -> list[Callable[[], None]]:
    """What empties the caches of theory and of the claims: a value that is kept would run nothing."""
    modules = [m for name, m in sys.modules.items() if _of_theory(name) or name.startswith("verify.claims.")]
    kept = {id(t): t for m in modules for t in vars(m).values() if hasattr(t, "cache_clear")}
    own = ("verify.claims.registry", "verify.claims.places", __name__)
    return [t.cache_clear for t in kept.values() if getattr(t, "__module__", "") not in own]


def _modules() -> list[ModuleType]:
    names = [found.name for found in pkgutil.walk_packages(theory.__path__, "theory.")]
    return [importlib.import_module(name) for name in names if not name.rpartition(".")[2].startswith("_")]


def _of_theory(module: Any) -> bool:
    return str(module).partition(".")[0] == "theory"


def _topic(module: Any) -> list[str]:
    return str(module).split(".")[:2]


def _is_record(thing: Any) -> bool:
    return isinstance(thing, type) and _of_theory(thing.__module__) and not issubclass(thing, BaseException)


def _name(thing: Any) -> str:
    return _public(f"{thing.__module__}.{thing.__qualname__}")


def _public(name: str) -> str:
    """Without the private modules on its way."""
    return ".".join(part for part in name.split(".") if not part.startswith("_"))


def _members(record: type) -> list[str]:
    """Public methods and properties of a class; of a record that has none, the fields. Other fields are arguments."""
    bases = [base for base in record.__mro__ if _of_theory(base.__module__)]
    own = {name: thing for base in bases for name, thing in vars(base).items() if not name.startswith("_")}
    made = [name for name, thing in own.items() if inspect.isroutine(thing) or isinstance(thing, property)]
    fields = {name for base in bases for name in getattr(base, "__annotations__", ()) if name[0] != "_"}
    return sorted(set(made) - fields or fields)


def _fields(record: Any) -> tuple[str, ...]:
    return getattr(record, "_fields", ())


def _returns(function: Any, record: type) -> bool:
    """Whether a function says that it returns a record."""
    told = getattr(function, "__annotations__", {}).get("return", "")
    return record.__name__ in str(told)
