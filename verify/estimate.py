"""Quick estimates: any theory function from the shell, without torch.

``losscurv estimate batch_hessian.batch_eigenvalue 0.56 --sigma 0.06 --dim 226 --batch-size 64 --dataset-size 1797``
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FUNCTIONS", "add_arguments", "evaluate", "run"]

FUNCTIONS: dict[str, tuple[str, ...]] = {
    "softmax": ("eigenvalues", "gamma", "gamma_from_logits", "collapse_limit"),
    "gauss_newton": (
        "expected_eigenvalues",
        "expected_excess",
        "expected_gradient_norm",
        "projected_excess",
        "hessian_excess",
        "excess_noise_floor",
    ),
    "outliers": ("additive_wigner", "additive_wishart", "information_plus_noise", "spiked_covariance"),
    "batch_hessian": (
        "effective_batch_size",
        "batch_eigenvalue",
        "batch_overlap",
        "batch_ggn_eigenvalue",
        "second_order_eigenvalue",
        "element_variance",
        "element_fluctuation",
        "crossover_batch_size",
    ),
    "learning_rates": ("stability_limit", "sgd_limit", "mean_square_limit", "heavy_ball", "nesterov"),
    "order_parameters": ("order_parameters",),
    "fisher": ("kappas", "eigenvalue_statistics", "mean_subtracted_statistics", "parameter_count"),
}
"""Module of theory to the functions a shell can call: numbers, lists and names in, numbers out."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments; those of the function itself are read from its signature."""
    parser.add_argument("function", nargs="?", metavar="MODULE.FUNCTION", help="which; without it, all are listed")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="the function's arguments; see losscurv estimate FUNCTION --help"
    )


def run(options: argparse.Namespace) -> int:
    """List the functions, or evaluate one and print what it returns."""
    if options.function is None:
        _print_list(options.json)
        return 0
    words = [word for word in options.arguments if word != "--json"]
    result = evaluate(options.function, words)
    as_json = options.json or "--json" in options.arguments
    print(json.dumps(_plain(result), indent=1) if as_json else _text(result))
    return 0


def evaluate(name: str, words: list[str]) -> Any:
    """Call a theory function with shell words as arguments.

    Raises
    ------
    ValueError
        If the function is unknown or an argument is out of its domain.

    Examples
    --------
    >>> evaluate("learning_rates.stability_limit", ["4"])
    array(0.5)
    """
    function = _function(name)
    options = _function_parser(name, function).parse_args(words)
    return function(**{key: value for key, value in vars(options).items() if value is not None})


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.rpartition(".")
    if function not in FUNCTIONS.get(module, ()):
        known = [f"{m}.{f}" for m, functions in FUNCTIONS.items() for f in functions]
        raise ValueError(f"function must be one of {', '.join(known)}, got {name!r}")
    return getattr(importlib.import_module(f"theory.{module}"), function)


def _function_parser(name: str, function: Callable[..., Any]) -> argparse.ArgumentParser:
    """Positional parameters may be given in order or by option, keyword-only ones by option."""
    summary = inspect.getdoc(function) or ""
    parser = argparse.ArgumentParser(
        prog=f"losscurv estimate {name}",
        description=summary,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for parameter in inspect.signature(function).parameters.values():
        positional = parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        required = parameter.default is inspect.Parameter.empty
        if positional and required:
            parser.add_argument(parameter.name, type=_value, metavar=parameter.name.upper())
        elif isinstance(parameter.default, bool):
            parser.add_argument(f"--{_flag(parameter)}", action="store_true", default=None, dest=parameter.name)
        else:
            parser.add_argument(
                f"--{_flag(parameter)}",
                type=_value,
                required=required,
                metavar="VALUE",
                dest=parameter.name,
                help="" if required else f"default {parameter.default}",
            )
    return parser


def _flag(parameter: inspect.Parameter) -> str:
    return parameter.name.replace("_", "-")


def _value(word: str) -> Any:
    """A number, a list with commas, a list of lists with semicolons, or a name.

    >>> _value("64"), _value("0.2,0.3,0.5"), _value("relu"), _value("inf")
    (64, [0.2, 0.3, 0.5], 'relu', inf)
    """
    if ";" in word:
        return [_value(part) for part in word.split(";")]
    if "," in word:
        return [_value(part) for part in word.split(",") if part]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def _print_list(as_json: bool) -> None:
    listed = {
        f"{module}.{function}": (inspect.getdoc(_function(f"{module}.{function}")) or "").partition("\n")[0]
        for module, functions in FUNCTIONS.items()
        for function in functions
    }
    if as_json:
        print(json.dumps(listed, indent=1))
        return
    width = max(map(len, listed))
    for name, summary in listed.items():
        print(f"{name:{width}}  {summary}")


def _text(result: Any) -> str:
    fields = _fields(result)
    if fields is None:
        return _number(result)
    width = max(map(len, fields))
    return "\n".join(f"{name:{width}}  {_number(value)}" for name, value in fields.items())


def _fields(result: Any) -> dict[str, Any] | None:
    if hasattr(result, "_asdict"):
        return result._asdict()
    if hasattr(result, "__dataclass_fields__"):
        return {name: getattr(result, name) for name in result.__dataclass_fields__}
    return None


def _number(value: Any) -> str:
    return np.array2string(np.asarray(value), precision=10, separator=", ", threshold=10_000)


def _plain(value: Any) -> Any:
    fields = _fields(value)
    if fields is not None:
        return {name: _plain(item) for name, item in fields.items()}
    listed = np.asarray(value).tolist()
    return _finite(listed)


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value
