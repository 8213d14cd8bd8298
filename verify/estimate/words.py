"""Arguments of a function from words of a shell."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from simulate._checks import did_you_mean
from theory._checks import shown

_LONGEST = 500  # characters of a message that repeats what was typed


def bind(name: str, parameters: Mapping[str, inspect.Parameter], words: Sequence[str]) -> dict[str, Any]:
    """Return arguments from words: by option name, or in the order of the signature where it has an order."""
    bound: dict[str, Any] = {}
    places = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    for option, word in _pairs(parameters, words):
        target = option or next((place for place in places if place not in bound), "")
        if not target:
            free = f"only {' '.join(places).upper()} can" if places else "no argument can"
            raise ValueError(
                f"unexpected argument {shown(word)}: {free} be given without a name; options: {_options(parameters)}"
            )
        if target in bound:
            raise ValueError(f"{option_name(target)} is given twice")
        # Annotations are text in a module with `from __future__ import annotations`.
        switch = parameters[target].annotation in ("bool", bool)
        bound[target] = _switch(target, word) if switch else _value(target, word)
    missing = [p.name for p in parameters.values() if p.default is p.empty and p.name not in bound]
    if missing:
        listed = ", ".join(place.upper() if place in places else option_name(place) for place in missing)
        raise ValueError(f"{name} needs {listed}; see losscurv estimate {name} --help")
    return bound


def _pairs(parameters: Mapping[str, inspect.Parameter], words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each word with the option it belongs to, if any; a switch needs no value."""
    rest = iter(words)
    for word in rest:
        # A negative number is a value, and so are -inf and -nan.
        if not re.match(r"--?[A-Za-z]", word) or re.match(r"-(inf|nan)", word, re.IGNORECASE):
            yield "", word
            continue
        flag, equals, value = word.partition("=")
        target = flag.lstrip("-").replace("-", "_")
        if target not in parameters:
            near = did_you_mean(target, parameters, suggest={n: option_name(n) for n in parameters})
            hint = near or f"; options: {_options(parameters)}"
            raise ValueError(f"unknown option {flag if flag.isprintable() else shown(flag)}{hint}"[:_LONGEST])
        if isinstance(parameters[target].default, bool) and not equals:
            yield target, "true"
        elif (found := value if equals else next(rest, None)) is None:
            raise ValueError(f"{flag} needs a value")
        else:
            yield target, found


def _options(parameters: Iterable[str]) -> str:
    return ", ".join(map(option_name, parameters))


def option_name(name: str) -> str:
    """Spell an argument as a shell option."""
    return f"--{name.replace('_', '-')}"


def _value(name: str, word: str) -> Any:
    """Return a number, a list for commas, a list of lists for semicolons, or a name.

    >>> [_value("x", word) for word in ("64", "0.2,0.3,0.5", "1,2;3,4", "relu", "-inf", "1,")]
    [64, [0.2, 0.3, 0.5], [[1, 2], [3, 4]], 'relu', -inf, [1]]
    """
    if ";" in word:
        rows = [_row(part) for part in word.split(";") if part.strip()]
        if len({len(row) for row in rows}) != 1:
            raise ValueError(f"{option_name(name)} must have rows of one length, got {shown(word)}")
        return rows
    return _row(word) if "," in word else _scalar(word.strip())


def _switch(name: str, word: str) -> bool:
    if word.lower() not in ("true", "false"):
        raise ValueError(f"{option_name(name)} takes no value but true or false, got {shown(word)}")
    return word.lower() == "true"


def _row(word: str) -> list[Any]:
    return [_scalar(part.strip()) for part in word.split(",") if part.strip()]


def _scalar(word: str) -> Any:
    """Return a number that a float can hold, infinity where it is spelled out, else the word.

    >>> [_scalar(word) for word in ("7", "-inf", "1e400")]
    [7, -inf, '1e400']
    """
    # `int` first, for sizes must be whole numbers.
    for kind in (int, float):
        try:
            found = kind(word)
        except ValueError:
            continue
        too_large = kind is float and math.isinf(found) and not word.strip("+-").lower().startswith("inf")
        return word if too_large else found
    return word
