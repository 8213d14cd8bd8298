"""Quick estimates: any theory function from the shell, without torch.

``losscurv estimate batch_hessian.batch_eigenvalue 0.56 --sigma 0.06 --dim 226 --batch-size 64 --dataset-size 1797``
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
import math
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from theory._checks import shown
from verify.estimate import docstrings

__all__ = ["FUNCTIONS", "estimate", "evaluate", "run"]

NETWORK = "relu --depth 3 --weight-variance 2 --bias-variance 0.1"
BATCH = "--sigma 0.06 --dim 226 --batch-size 64 --dataset-size 1797"

FUNCTIONS: dict[str, str] = {
    "softmax.eigenvalues": "0.7,0.2,0.1",
    "softmax.gamma": "0.7,0.2,0.1",
    "softmax.gamma_from_logits": "3.1,-0.4,-1.2 --temperature 0.5",
    "softmax.collapse_limit": "3,2,1",
    "softmax.batch_gammas": "0.7,0.2,0.1;0.3,0.3,0.4",
    "softmax.batch_gammas_from_logits": "3.1,-0.4;1.2,0.9 --temperature 0.5",
    "softmax.equal_tail_gamma": "0.01,0.2 --members 5",
    "softmax.equal_tail_eigenvalues": "0.01 --members 5 --classes 10",
    "gauss_newton.expected_eigenvalues": "0.7,0.2,0.1 --dim 6 --sigma-c 1.1 --sigma-e 0.7",
    "gauss_newton.expected_excess": "1.3 --dim 50 --sigma-c 1.1 --sigma-e 0.7",
    "gauss_newton.expected_gradient_norm": "0.7,0.2,0.1 0.5,0.3,0.2 --dim 50 --sigma-c 1.1",
    "gauss_newton.projected_excess": "-12.5 --dim 50",
    "gauss_newton.hessian_excess": "3.1 --frobenius-ratio 0.7",
    "gauss_newton.excess_noise_floor": "50",
    "gauss_newton.finite_sample_excess": "1.3 4.2 --dim 50 --sigma-c 1.1 --sigma-e 0.7",
    "gauss_newton.squared_gradient_norm": (
        "0.7,0.2,0.1 0.5,0.3,0.2 --squared-error 0.5 --dim 50 --sigma-c 1.1 --sigma-e 0.7 --samples 100"
    ),
    "gauss_newton.haar_moments": "3 2 --dim 50 --parameters 1000",
    "gauss_newton.sparse_moments": "3 2 --squared-diagonal 0.5 --dim 50 --parameters 1000",
    "gauss_newton.frame_overlap": "50 --parameters 1000",
    "zone.curvature_factors": "0.5,2 --depth 3",
    "zone.reduced_temperature": "0.5,2 --depth 3",
    "zone.matched_rate": "0.02 --alpha 0.5,2 --depth 3",
    "zone.lower_edge": "0.3 0.05 --depth 3",
    "zone.upper_edge": "1797 --gap-density 0.4 --depth 3",
    "zone.near_tie_weight": "6 --gap-density 0.4 --depth 3",
    "zone.largest_base_rate": "0.5,2 --sharpness 4.2 --depth 5",
    "zone.bulk_outlier": "1.7 --bulk-norm 1.2",
    "zone.spiked_excess": "1.7 --rank 9 --bulk-norm 1.2 --dim 50,5000",
    "initial_loss.jensen_bound": "0.7,0.2,0.1 0.5,0.3,0.2",
    "initial_loss.prior_entropy": "0.5,0.3,0.2",
    "outliers.additive_wigner": "1.7,-1.7 --sigma 0.6",
    "outliers.additive_wishart": "1.7 --q 0.4 --variance 0.6",
    "outliers.information_plus_noise": "1.7 --q 0.4 --variance 0.6",
    "outliers.spiked_covariance": "1.7 --q 0.4 --variance 0.6",
    "finite_size.wigner_edge": "226 --sigma 0.6",
    "finite_size.wishart_edge": "120 300 --variance 0.6 --lower",
    "finite_size.additive_wigner_sd": "1.7 --sigma 0.6 --dim 226",
    "finite_size.additive_wishart_sd": "1.7 --dim 120 --samples 300 --variance 0.6",
    "finite_size.information_plus_noise_sd": "1.7 --dim 120 --samples 300 --variance 0.6",
    "finite_size.spiked_covariance_sd": "1.7 --dim 120 --samples 300 --variance 0.6",
    "batch_hessian.effective_batch_size": "64 1797",
    "batch_hessian.batch_eigenvalue": f"0.56 {BATCH}",
    "batch_hessian.batch_overlap": f"0.56 {BATCH}",
    "batch_hessian.batch_ggn_eigenvalue": "1.4 --variance 0.3 --dim 226 --batch-size 64 --dataset-size inf",
    "batch_hessian.second_order_eigenvalue": "0.56 --coefficient 2.4 --batch-size 64 --dataset-size 1797",
    "batch_hessian.element_variance": "0.81 --dim 226",
    "batch_hessian.element_fluctuation": "--variance 0.0036 --batch-size 64 --dataset-size 1797",
    "batch_hessian.batch_ggn_factor_eigenvalue": (
        "1.4 --variance 0.3 --dim 226 --batch-size 64 --dataset-size inf"
    ),
    "batch_hessian.noise_free_eigenvalue": "0.56 --sigma 0.06 --dim 226 --dataset-size 1797",
    "batch_hessian.composed_batch_eigenvalue": f"0.56 {BATCH}",
    "batch_hessian.second_order_coefficient": "2.0,0.5,-1.0 0.3,0.6,0.9",
    "batch_hessian.finite_population_fluctuation": (
        "--variance 0.0036 --batch-size 64 --dataset-size 1797 --replacement"
    ),
    "batch_hessian.element_skewness": "2.0 --batch-size 64 --dataset-size 1797",
    "batch_hessian.noise_bound": "1.2 --batch-size 64 --dataset-size 1797",
    "batch_hessian.ggn_rank_bound": "64 10 226",
    "batch_hessian.sample_rank_bound": "24,2 --biases=false",
    "batch_hessian.sample_rank_bound_of_paths": "24 24,2",
    "batch_hessian.dataset_rank_bound": "48 --samples 1797 --dim 624 --symmetries 24",
    "batch_hessian.crossover_batch_size": "0.56 --sigma 0.06 --dim 226 --dataset-size 1797",
    "lanczos_bounds.ritz_value_bound": "2.0 1.0 -1.0 --angle 1.3 --steps 8",
    "learning_rates.stability_limit": "4.2",
    "learning_rates.sgd_limit": f"0.56 {BATCH}",
    "learning_rates.mean_square_limit": "0.56 --noise 0.3 --batch-size 64 --dataset-size 1797",
    "learning_rates.heavy_ball": "4.2 0.3",
    "learning_rates.nesterov": "4.2 0.3",
    "learning_rates.best_nesterov": "4.2 0.3",
    "learning_rates.heavy_ball_contraction": "0.3 0.5 --largest 4.2 --smallest 0.3",
    "learning_rates.nesterov_contraction": "0.3 0.5 --largest 4.2 --smallest 0.3",
    "learning_rates.sgd_exponent": f"0.56 {BATCH}",
    "learning_rates.marchenko_pastur_exponent": "3.5",
    "learning_rates.linear_then_flat": "0.02 --known 32 --batch-size 8,64,512 --crossover 40 --dataset-size 1797",
    "learning_rates.square_root": "0.02 --known 32 --batch-size 8,64,512 --dataset-size 1797",
    "learning_rates.mean_square_exponent": "0.56 --noise 0.3 --batch-size 64 --dataset-size 1797",
    "learning_rates.mean_square_crossover": "0.56 --noise 0.3 --dataset-size 1797",
    "learning_rates.mean_square_bracket": "0.5,0.4 0.3,0.9 --square 3.1 --batch-size 4 --dataset-size 1797",
    "learning_rates.gaussian_least_squares_limit": "4 20",
    "learning_rates.gaussian_least_squares_growth": "0.2 --batch-size 4 --dim 20",
    "adaptive_rates.outlier_over_edge": f"0.56 {BATCH}",
    "adaptive_rates.adaptive_limit": f"0.7 {BATCH}",
    "loss_change.quadratic_change": "0.1 1,2 4,1;1,3 --preconditioner 2,0;0,5",
    "loss_change.sign_averaged_change": "0.1 1,2 4,1;1,3 --preconditioner 2,0;0,5",
    "loss_change.descent_bound": "0.1 --squared-gradient 5 --sharpness 4.2",
    "loss_change.squared_gradient_mean": "5 --trace 3.1 --batch-size 4",
    "loss_change.squared_gradient_variance": "3.1 --trace-of-square 8 --batch-size 4",
    "order_parameters.order_parameters": f"{NETWORK} --input-overlap -0.3",
    "fisher.kappas": NETWORK,
    "fisher.eigenvalue_statistics": f"{NETWORK} --width 1000 --samples 100 --outputs 10",
    "fisher.mean_subtracted_statistics": f"{NETWORK} --width 1000 --samples 1000 --outputs 10",
    "fisher.fluctuation_constants": f"{NETWORK} --outputs 10",
    "fisher.mean_subtracted_largest": f"{NETWORK} --width 1000 --samples 4",
    "fisher.output_variance": f"{NETWORK} --samples 100",
    "fisher.batch_normalised_statistics": (
        f"{NETWORK} --width 1000 --samples 1000 --outputs 3 --q1 2.9 --q2 2.9"
    ),
    "fisher.batch_normalised_constants": f"{NETWORK} --outputs 3 --q1 2.9 --q2 2.9",
    "fisher.deviation_share": f"{NETWORK} --width 1000 --samples 1000",
    "fisher.batch_norm_moments": "relu --samples 10",
    "fisher.batch_norm_bound": "relu --width 1000 --samples 100 --width-ratio 1.5",
    "fisher.batch_norm_largest": "relu --width 1000 --samples 1000",
    "fisher.batch_norm_largest_odd": "tanh --width 1000 --samples 1000",
    "fisher.layer_norm_kappas": NETWORK,
    "fisher.layer_norm_statistics": (
        f"{NETWORK} --width 1000 --samples 100 --outputs 10 --eta1 1.1 --eta2 2.1 --eta3 0.8"
    ),
    "fisher.layer_norm_rayleigh": f"{NETWORK} --width 1000 --samples 100 --outputs 10 --eta1 1.1 --overlap 7.6",
    "fisher.layer_norm_largest": (
        "relu 0.3,-1.2,0.4;-0.8,0.2,0.9 --depth 3 --width 1000 --weight-variance 2 --bias-variance 0.1"
    ),
    "fisher.realised_etas": "0.3,-1.2,0.4;-0.8,0.2,0.9",
    "fisher.expected_etas": f"{NETWORK} --samples 100 --outputs 10",
    "fisher.inverse_variance_cdf": "2.5 relu --depth 3 --outputs 10 --weight-variance 2 --bias-variance 0.1",
    "fisher.tangent_kernel": f"{NETWORK} --input-overlap -0.3",
    "fisher.tangent_kernel_statistics": f"{NETWORK} --width 1000 --samples 100 --outputs 10",
    "fisher.cross_entropy_statistics": f"{NETWORK} --width 1000 --probabilities 0.7,0.2,0.1;0.3,0.3,0.4",
    "fisher.cross_entropy_outliers": f"{NETWORK} --width 1000 --probabilities 0.7,0.2,0.1;0.3,0.3,0.4",
    "criticality.variance_fixed_point": "tanh --weight-variance 1.5 --bias-variance 0.1",
    "criticality.depth_scales": "tanh --weight-variance 1.5 --bias-variance 0.1",
    "criticality.critical_weight_variance": "tanh 0.05",
    "linear_network.linear_network_edge": "0.5 --weight-variance 1.3",
    "linear_network.linear_network_largest": "--width 1000 --samples 500 --weight-variance 1.3",
    "fisher.parameter_count": "--depth 3 --width 100 --outputs 10 --width-ratios 7.84,1,1",
}
"""The functions a shell can call (numbers, lists and names in, numbers out), each with arguments to try."""

USAGE = """\
usage: losscurv estimate [MODULE.FUNCTION [ARGUMENT ...]] [--json] [--help]

Evaluate a theory function. Without one, all are listed; a module lists its own.

ARGUMENTS are values in the order of the function's signature, or options by name (--sigma 0.6).
  numbers    1.7  -2  1e-3  inf
  lists      0.7,0.2,0.1        matrices  "0.7,0.3;0.4,0.6"
  names      relu  tanh  erf    one per hidden layer: relu,tanh

options:
  --json      print as JSON; NaN and infinity are strings there
  -h, --help  this text, or that of a function"""

WIDTH = 100
_LONGEST = 500  # characters of a message that repeats what was typed


def run(words: Sequence[str]) -> int:
    """List the functions, explain one, or evaluate one and print what it returns."""
    as_json, asked = "--json" in words, {"-h", "--help"} & set(words)
    name, *rest = [word for word in words if word not in ("--json", "-h", "--help")] or [""]
    if not name and asked:
        print(USAGE)
    elif not rest and (not name or name in _modules()):
        _print_list(name, as_json)
    elif asked:
        print(_help(_known(name)))
    else:
        result = evaluate(name, rest)
        print(json.dumps(_plain(result), indent=1) if as_json else _text(result))
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
    return _function(_known(name))(*arguments, **options)


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
    name = _known(name)
    function = _function(name)
    arguments = _bind(name, inspect.signature(function).parameters, words)
    try:
        return _spelled(function(**arguments), arguments.get("digits"))
    except ValueError as error:
        raise ValueError(f"{str(error).rstrip('.')}; see losscurv estimate {name} --help") from None
    except (ArithmeticError, TypeError, MemoryError) as error:
        raise ValueError(f"{name} cannot be computed: {error or type(error).__name__}") from None


def _known(name: str) -> str:
    """The full name, which may be given without its module; the nearest ones are suggested."""
    asked = name.removeprefix("theory.").replace("-", "_")
    same = [known for known in FUNCTIONS if asked in (known, known.partition(".")[2])]
    if len(same) == 1:
        return same[0]
    short = {known.partition(".")[2]: known for known in FUNCTIONS}
    near = [*difflib.get_close_matches(asked, FUNCTIONS, n=3), *_nearest(asked.rpartition(".")[2], short)]
    hint = f"did you mean {' or '.join(dict.fromkeys(short.get(n, n) for n in near))}?" if near else ""
    raise ValueError(f"no function {shown(name)}; {hint or 'losscurv estimate lists all'}")


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"theory.{module}"), function)


def _modules() -> list[str]:
    return list(dict.fromkeys(name.partition(".")[0] for name in FUNCTIONS))


def _bind(name: str, parameters: Mapping[str, inspect.Parameter], words: Sequence[str]) -> dict[str, Any]:
    """Words to arguments: by option name, or in the order of the signature where it has an order."""
    given: dict[str, Any] = {}
    places = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    for option, word in _pairs(parameters, words):
        target = option or next((place for place in places if place not in given), "")
        if not target:
            free = f"only {' '.join(places).upper()} may" if places else "nothing may"
            raise ValueError(
                f"no place for {shown(word)}: {free} stand without an option, see {_options(parameters)}"
            )
        if target in given:
            raise ValueError(f"{_flag(target)} must be given once")
        switch = isinstance(parameters[target].default, bool)
        given[target] = _switch(target, word) if switch else _value(target, word)
    missing = [p.name for p in parameters.values() if p.default is p.empty and p.name not in given]
    if missing:
        listed = ", ".join(place.upper() if place in places else _flag(place) for place in missing)
        raise ValueError(f"{name} needs {listed}; see losscurv estimate {name} --help")
    return given


def _pairs(parameters: Mapping[str, inspect.Parameter], words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each word with the option it belongs to, if any; a switch may stand alone."""
    rest = iter(words)
    for word in rest:
        if not re.match(r"--?[A-Za-z]", word) or re.match(r"-(inf|nan)", word, re.IGNORECASE):
            yield "", word
            continue
        flag, equals, value = word.partition("=")
        target = flag.lstrip("-").replace("-", "_")
        if target not in parameters:
            near = [_flag(found) for found in _nearest(target, parameters)]
            hint = f"did you mean {near[0]}?" if near else f"there are {_options(parameters)}"
            raise ValueError(f"no option {flag if flag.isprintable() else shown(flag)}; {hint}"[:_LONGEST])
        if isinstance(parameters[target].default, bool) and not equals:
            yield target, "true"
        elif (found := value if equals else next(rest, None)) is None:
            raise ValueError(f"{flag} needs a value")
        else:
            yield target, found


def _options(parameters: Iterable[str]) -> str:
    return ", ".join(map(_flag, parameters))


def _nearest(name: str, known: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(name, list(known), n=1)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _value(name: str, word: str) -> Any:
    """A number, a list with commas, a list of lists with semicolons, or a name.

    >>> [_value("x", word) for word in ("64", "0.2,0.3,0.5", "1,2;3,4", "relu", "-inf", "1,")]
    [64, [0.2, 0.3, 0.5], [[1, 2], [3, 4]], 'relu', -inf, [1]]
    """
    if ";" in word:
        rows = [_row(part) for part in word.split(";") if part.strip()]
        if len({len(row) for row in rows}) != 1:
            raise ValueError(f"{_flag(name)} must have rows of one length, got {shown(word)}")
        return rows
    return _row(word) if "," in word else _scalar(word.strip())


def _switch(name: str, word: str) -> bool:
    if word.lower() not in ("true", "false"):
        raise ValueError(f"{_flag(name)} must stand alone or be true or false, got {shown(word)}")
    return word.lower() == "true"


def _row(word: str) -> list[Any]:
    return [_scalar(part.strip()) for part in word.split(",") if part.strip()]


def _scalar(word: str) -> Any:
    """A number where it is one that a float can hold, infinity where it is spelled out, else the word.

    >>> [_scalar(word) for word in ("7", "-inf", "1e400")]
    [7, -inf, '1e400']
    """
    for kind in (int, float):
        try:
            found = kind(word)
        except ValueError:
            continue
        too_large = kind is float and math.isinf(found) and not word.strip("+-").lower().startswith("inf")
        return word if too_large else found
    return word


def _print_list(module: str, as_json: bool) -> None:
    listed = {
        name: docstrings.summary(_function(name))
        for name in FUNCTIONS
        if not module or name.partition(".")[0] == module
    }
    if as_json:
        print(json.dumps(listed, indent=1, ensure_ascii=False))
        return
    width = max(map(len, listed))
    for name, summary in listed.items():
        print(f"{name:{width}}  {summary}")
    print("\nArguments and an example: losscurv estimate FUNCTION --help")


def _help(name: str) -> str:
    function = _function(name)
    parameters = inspect.signature(function).parameters.values()
    usage = f"usage: losscurv estimate {name} {' '.join(_usage(p) for p in parameters)} [--json]"
    lines = [*_wrapped(usage, "", " " * 7), "", docstrings.description(function), "", "Arguments:"]
    for text, sharing in groupby(parameters, lambda p: _explained(function, p)):
        lines += [f"  {', '.join(_usage(p, short=True) for p in sharing)}", *_wrapped(text, " " * 6, " " * 6)]
    return "\n".join([*lines, "", "Example:", f"  losscurv estimate {name} {FUNCTIONS[name]}"])


def _explained(function: Callable[..., Any], p: inspect.Parameter) -> str:
    default = "" if p.default in (p.empty, None, False) else f" Default {p.default}."
    return docstrings.parameter(function, p.name) + default


def _usage(p: inspect.Parameter, *, short: bool = False) -> str:
    if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty:
        return p.name.upper()
    text = _flag(p.name) if isinstance(p.default, bool) else f"{_flag(p.name)} VALUE"
    return text if p.default is p.empty or short else f"[{text}]"


def _wrapped(text: str, first: str, later: str) -> list[str]:
    width = max(40, min(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH))
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def _spelled(result: Any, digits: int | None) -> Any:
    """Numbers of mpmath as text, to the digits asked for: printed plainly they would show fifteen."""
    if digits is None:
        return result
    from mpmath import nstr

    return {
        name: [nstr(value, int(digits)) for value in values]
        for name, values in (_fields(result) or {}).items()
    }


def _text(result: Any) -> str:
    fields = _fields(result)
    if fields is None:
        return _numbers(result)
    width = max(map(len, fields))
    indent = "\n" + " " * (width + 2)
    return "\n".join(
        f"{name:{width}}  {_numbers(value).replace(chr(10), indent)}" for name, value in fields.items()
    )


def _fields(result: Any) -> dict[str, Any] | None:
    if isinstance(result, dict):
        return result
    if hasattr(result, "_asdict"):
        return result._asdict()
    if hasattr(result, "__dataclass_fields__"):
        return {name: getattr(result, name) for name in result.__dataclass_fields__}
    return None


def _numbers(value: Any) -> str:
    """Twelve digits of floats, all digits of what was asked for with more."""
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{array.item():.12g}" if array.dtype.kind == "f" else str(array.item())
    texts = np.vectorize(_numbers, otypes=[object])(array) if array.size else array
    return np.array2string(
        texts, separator=", ", threshold=array.size + 1, max_line_width=WIDTH, formatter={"object": str}
    )


def _plain(value: Any) -> Any:
    """What JSON can hold: NaN and infinity, and numbers of more digits than a float has, as strings."""
    fields = _fields(value)
    if fields is not None:
        return {name: _plain(item) for name, item in fields.items()}
    if isinstance(value, list | tuple | np.ndarray) and np.ndim(value):
        return [_plain(item) for item in value]
    plain = value.item() if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(plain, bool | int) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    return str(plain)
