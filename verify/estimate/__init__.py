"""Quick estimates: any theory function from the shell, without torch.

``losscurv estimate batch_hessian.batch_eigenvalue 0.56 --sigma 0.06 --dim 226 --batch-size 64 --dataset-size 1797``
"""

from __future__ import annotations

import inspect
import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from simulate._checks import did_you_mean
from theory._checks import shown
from verify.estimate import docstrings
from verify.estimate.catalogue import FUNCTIONS, full_name, theory_function, topics
from verify.estimate.output import WIDTH, as_json, as_text, to_digits
from verify.estimate.words import bind, option_name
from verify.model.schema import json_schema

__all__ = ["FUNCTIONS", "estimate", "evaluate", "run"]

USAGE = """\
usage: losscurv estimate [TOPIC.FUNCTION [ARGUMENT ...]] [OPTIONS]

Evaluate a theory function. Without a function, list the topics; with a topic
alone, list its functions.

Arguments are values in the order of the signature, or named (--sigma 0.6):
  numbers    1.7  -2  1e-3  inf
  lists      0.7,0.2,0.1        matrices  "0.7,0.3;0.4,0.6"
  names      relu  tanh  erf    one per hidden layer: relu,tanh

options:
  --list      list the functions of all topics, or of one
  --json      print JSON, in which NaN and infinity are strings; without
              arguments formulas, domains, sources, code and claims
  --schema    print the JSON Schema of these
  -h, --help  show this help, or the help of a function"""


Readers = Callable[[], Mapping[str, dict[str, str]]]
"""Returns the claims that read each function of theory, with their registered verdicts, by module:function."""


def run(words: Sequence[str], readers: Readers = dict) -> int:
    """List the functions, explain one, or evaluate one and print what it returns; `readers` are in the JSON list."""
    options = {"--json", "--list", "--schema", "-h", "--help"}
    printed, listed, help_wanted = "--json" in words, "--list" in words, {"-h", "--help"} & set(words)
    name, *rest = [word for word in words if word not in options] or [""]
    if help_wanted and not name:
        print(USAGE)
    elif "--schema" in words:
        print(json.dumps(json_schema(dict[str, docstrings.FunctionRecord]), indent=1))
    elif not (name or listed or printed):
        _print_topics()
    elif listed or (not rest and (not name or name in topics())):
        _print_list(name, readers if printed else None)
    elif help_wanted:
        print(_help(full_name(name)))
    else:
        result = evaluate(name, rest)
        print(json.dumps(as_json(result), indent=1) if printed else as_text(result))
    return 0


def estimate(name: str, /, *arguments: Any, **options: Any) -> Any:
    """Call a theory function by its name, which may be given without its topic.

    Raises
    ------
    ValueError
        If there is no such function, or an argument is out of its domain.
    TypeError
        If an argument is missing or unknown.

    Examples
    --------
    >>> float(estimate("stability_limit", 4.0))
    0.5
    >>> float(estimate("outliers.additive_wigner", -2.0, sigma=1.0).eigenvalue)
    -2.5
    """
    return theory_function(full_name(name))(*arguments, **options)


def evaluate(name: str, words: Sequence[str]) -> Any:
    """Call a theory function with shell words as arguments.

    Raises
    ------
    ValueError
        If the function or an option is unknown, an argument is missing or out of its domain, or the function
        cannot compute it.

    Examples
    --------
    >>> float(evaluate("learning_rates.stability_limit", ["4"]))
    0.5
    >>> float(evaluate("outliers.additive_wigner", ["-2", "--sigma", "1"]).eigenvalue)
    -2.5
    """
    name = full_name(name)
    function = theory_function(name)
    arguments = bind(name, inspect.signature(function).parameters, words)
    try:
        return to_digits(function(**arguments), arguments.get("digits"))
    except ValueError as error:
        raise ValueError(f"{str(error).rstrip('.')}; see losscurv estimate {name} --help") from None
    except (ArithmeticError, TypeError, MemoryError) as error:
        raise ValueError(f"{name} cannot be computed: {error or type(error).__name__}") from None


def _print_topics() -> None:
    """Print the topics alone, since all functions fill five screens."""
    width = max(map(len, topics()))
    for topic, line in topics().items():
        print(textwrap.fill(f"{topic:{width}}  {line}", WIDTH, subsequent_indent=" " * (width + 2)))
    print("\nFunctions of a topic: losscurv estimate TOPIC; of all: losscurv estimate --list")


def _print_list(topic: str, readers: Readers | None) -> None:
    if topic and topic not in topics():
        near = did_you_mean(topic, topics())
        raise ValueError(f"topic must be one of {', '.join(topics())}, got {shown(topic)}{near}")
    functions = {
        name: theory_function(name) for name in FUNCTIONS if not topic or name.partition(".")[0] == topic
    }
    if readers:
        known = readers()
        records = {name: asdict(docstrings.function_record(f, known)) for name, f in functions.items()}
        print(json.dumps(records, indent=1, ensure_ascii=False))
        return
    listed = {name: docstrings.summary(function) for name, function in functions.items()}
    for heading, group in groupby(listed, lambda name: name.partition(".")[0]):
        names = list(group)
        width = max(map(len, names))
        print(_on_one_line(f"{heading}: {topics()[heading]}".rstrip(": ")))
        for name in names:
            print(_on_one_line(f"  {name:{width}}  {listed[name]}"))
        print()
    print("Arguments and an example: losscurv estimate FUNCTION --help")


def _on_one_line(text: str) -> str:
    """Return a text cut to the width of the terminal, if it is printed on one."""
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    return text if len(text) <= width or not sys.stdout.isatty() else f"{text[: width - 1]}…"


def _help(name: str) -> str:
    function = theory_function(name)
    words = " ".join(map(_usage, inspect.signature(function).parameters.values()))
    usage = textwrap.fill(
        f"usage: losscurv estimate {name} {words} [--json]",
        max(40, min(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH)),
        subsequent_indent=" " * 7,
        break_on_hyphens=False,
    )
    example = f"Example\n-------\nlosscurv estimate {name} {FUNCTIONS[name]}"
    return "\n\n".join([usage, docstrings.description(function), example])


def _usage(p: inspect.Parameter) -> str:
    if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty:
        return p.name.upper()
    value = (
        "" if isinstance(p.default, bool) else f" {'VALUE' if p.default in (p.empty, None) else p.default}"
    )
    return f"{option_name(p.name)}{value}" if p.default is p.empty else f"[{option_name(p.name)}{value}]"
