"""Every public function of the theory, fed with anything: a right value, or a ValueError that names the argument.

Infinity counts as a value where the docstring promises it, NaN never does. Each argument of a right call gets what is
hostile and what is extreme, then numbers of many sizes get all at once; results obey the bounds of their kind, and are
the same, to the last bit, for the same numbers in other types and memory, and alone as in an array.
"""

import functools
import importlib
import inspect
import itertools
import math
import pkgutil
import random
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import theory
from tests.theory.calls import CALLS, EXTREMES, HOSTILE, SINE, function
from theory import activations, outliers, rmt
from theory.activations import gaussian
from theory.activations.gaussian import ConvergenceError

INFINITE = (
    "effective_batch_size outlier_over_edge adaptive_limit critical_batch_size depth_scales expected_etas"
    " jensen_bound moment pdf logpdf ppf isf edges support curvature propagate preactivation_moment bulks"
    " value derivative fluctuations"
)
"""Functions whose docstrings promise infinities."""
POOLED = (
    "second_order_coefficient mean_descent_limit spectrum_excess collapse_limit confident_log_trace"
    " expected_eigenvalue"
)
"""Functions to which an array is one thing, not several."""
SLOW = (
    "fluctuation_constants gram_entry_variances adam_moments final_product hidden_ratio output_ratio"
    " mean_square_distances value derivative fluctuations"
)
"""Double integrals and equations that take longer than all the rest."""
SHARES = (
    "batch_overlap overlap_cdf subspace_share sgd_exponent marchenko_pastur_exponent mean_square_exponent"
    " excess_noise_floor entropy_discordance inverse_variance_cdf same_half_life cdf sf"
)
"""What lies between 0 and 1."""
SIGNED = (
    "eigenvalue batch_eigenvalues second_order_coefficient element_skewness ritz_value_bound"
    " quadratic_change descent_bound sign_averaged_change sign_rate surge_rate expected_gradient_weights"
    " spectrum_excess hessian_excess projected_excess additive_wigner additive outlier sd moment stieltjes"
    " inverse expansion r_transform logpdf ppf isf mean edges support bulks loss_gradient hessian_terms"
    " tanh_correction confident_log_trace gaussian_loss prior_entropy low_rank mean_square_descent kernel"
    " kernels value derivative curvature fluctuations gap step drop product growth_steps realised_etas"
    " covariance edge ray_slope propagate order_parameters equal_tail_gamma sensitivity moments"
    " depth_scales batch_norm_bound squared batch_bounds equal_tail_eigenvalues"
)
"""What may be negative."""


@functools.cache
def told(name: str, names: str) -> bool:
    """Whether the function is one of the names, or ends with one of them."""
    last = name.rpartition(".")[2]
    return any(last == word or last.endswith(f"_{word}") for word in names.split())


LAWS = [
    rmt.Semicircle(sigma=0.6),
    rmt.Semicircle(variance=1e-70),
    *(
        rmt.MarchenkoPastur(q=q, variance=v)
        for q, v in [(0.4, 0.6), (1.0, 1e-70), (1e12, 1e-9), (1 - 1e-15, 1.0)]
    ),
    rmt.CompoundFreePoisson(rate=0.7, jumps=[1.3, -0.8, 0.25], weights=[0.2, 0.5, 0.3]),
    rmt.CompoundFreePoisson(rate=6.3, jumps=[1e-90, -1e-92]),
    rmt.TracyWidom(beta=1),
]
POINT = {"x": 0.7, "u": 0.3, "k": 3, "z": 7.1, "w": 0.2}
BENT = gaussian.KinkedQuadrature("bent", np.abs, np.sign, np.zeros_like, (0.0, 0.3))
KERNELS = [
    *(gaussian.PiecewiseLinear(slope) for slope in (0.0, -1.0, 1e75, -1e-200)),
    activations.erf.kernels,
    activations.gaussian_kernels(SINE),
    BENT,
]


def methods(made: Any) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    for name in (name for name in dir(made) if not name.startswith("_")):
        member = inspect.getattr_static(type(made), name, None)
        if isinstance(member, property):
            yield f"{made!r}.{name}", lambda name=name: getattr(made, name), {}
        elif inspect.isfunction(member):
            arguments = {a: POINT[a] for a in inspect.signature(getattr(made, name)).parameters}
            yield f"{made!r}.{name}", getattr(made, name), arguments


TABLE = {name: (function(name), arguments) for name, arguments in CALLS.items()}
TABLE |= {name: (method, arguments) for law in LAWS for name, method, arguments in methods(law)}
NETWORK = ("activation", "derivative", "second_derivative")
OF_LAWS = ("variance", "sigma", "q", "beta", "k", "rate")


# --- what every call obeys

signature = functools.cache(inspect.signature)


def check(name: str, call: Callable[..., Any], arguments: Mapping[str, Any], formed: bool = True) -> str:
    """Call once, and again with the same numbers in other forms; "value", "refused" or "unsettled" if all is well."""
    before = _state(arguments)
    found = outcome(call, arguments)
    assert _state(arguments) == before, "an argument was changed"
    if isinstance(found, ConvergenceError):
        return "unsettled"
    if isinstance(found, ValueError):
        _names_an_argument({*signature(call).parameters, *NETWORK, *OF_LAWS}, str(found))
        return "refused"
    for numbers in _leaves(found):
        assert not np.isnan(numbers).any(), f"not a number in {found!r}"
        assert told(name, INFINITE) or np.isfinite(numbers).all(), f"infinite: {found!r}"
        if numbers.dtype.kind == "f" and not told(name, SIGNED):
            assert np.all(numbers >= 0), f"negative: {found!r}"
            assert not told(name, SHARES) or np.all(numbers <= 1), f"above 1: {found!r}"
    for forms in _forms(arguments) if formed else ():
        again = outcome(call, {**arguments, **forms})
        same = not isinstance(again, Exception) and _same(found, again)
        assert same, f"{name}: {found!r} became {again!r} with {forms!r}"
    if not told(name, POOLED):
        _alone_as_beside_another(name, call, arguments, found)
    return "value"


def _alone_as_beside_another(
    name: str, call: Callable[..., Any], arguments: Mapping[str, Any], found: Any
) -> None:
    """Where arrays are taken, a number in one has the result that it has alone."""
    pairs = {
        key: np.array([value, value], dtype=np.float64)
        for key, value in arguments.items()
        if type(value) in (int, float) and abs(value) < 1e308
    }
    if not pairs or any(np.shape(x) for x in _leaves(found)):
        return
    together = outcome(call, {**arguments, **pairs})
    if isinstance(together, ValueError) and re.search(
        "scalar|integer|list|sequence|vector|matri|shape|number", str(together)
    ):
        return
    alone = [np.stack([x, x]) for x in _leaves(found)]
    assert _same(alone, together, within=1e-12), f"{name}: {found!r} became {together!r} in an array"


def outcome(call: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """The value, or the error that the contract knows; warnings and all other errors are raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return call(**arguments)
    except (ValueError, ConvergenceError) as error:
        return error


def _names_an_argument(known: set[str], text: str) -> None:
    subject, must, _ = text.partition(" must ")
    assert must, f"no rule in {text!r}"
    words = re.findall(r"[A-Za-z_]\w*", re.sub(r"'[^']*'", "", subject))
    assert words and words[0] in known, f"no argument at the head of {text!r}"
    assert len(text) < 1500, f"{len(text)} characters"


def _leaves(value: Any) -> Iterator[np.ndarray]:
    """The arrays of numbers in a result."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, outliers.Outlier):
        yield from _leaves(list(vars(value).values()))
    elif isinstance(value, np.ndarray) and value.dtype == object:
        yield from _leaves(value.tolist())
    elif isinstance(value, np.ndarray | np.generic | float):
        yield np.asarray(value)
    elif type(value).__name__ == "mpf":
        yield np.asarray(0.0 if value - value == 0 else math.nan)


def _state(value: Any) -> Any:
    """Return what a call could change in its arguments."""
    if isinstance(value, np.ndarray) and value.dtype != object and value is not np.ma.masked:
        return value.dtype.str, value.shape, value.flags.writeable, value.tobytes()
    if isinstance(value, Mapping):
        return {key: _state(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [id(item) if isinstance(item, list | tuple) else _state(item) for item in value]
    return id(value)


def _forms(arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the same numbers in other types and memory: the first form of each argument, the second, the third."""
    forms = [[(name, form) for form in _other_forms(value)] for name, value in arguments.items()]
    for found in itertools.zip_longest(*forms):
        yield dict(filter(None, found))


def _other_forms(value: Any) -> list[Any]:
    if type(value) in (float, np.float64):
        with np.errstate(over="ignore"):
            single = np.float32(value)
        return [np.array(value), np.longdouble(value), *([single] if float(single) == value else [])]
    if type(value) is int and abs(value) < 2**62:
        return [np.int64(value)]
    if isinstance(value, list) and value and all(type(x) is float for x in value):
        return [tuple(value), np.repeat(value, 2)[::2], np.ma.array(value)]
    if type(value) is np.ndarray and value.dtype == np.float64 and value.ndim > 1:
        read_only = np.broadcast_to(value, value.shape)
        return [np.asfortranarray(value), read_only, value[::-1].copy()[::-1]]
    return []


def _same(one: Any, other: Any, within: float = 0.0) -> bool:
    """Whether two results hold the same numbers: to the last bit, or `within` a share of them."""
    pairs = list(_leaves(one)), list(_leaves(other))
    return len(pairs[0]) == len(pairs[1]) and all(
        x.shape == y.shape and ((x == y).all() or (within and np.allclose(x, y, rtol=within, atol=1e-300)))
        for x, y in zip(*pairs, strict=True)
    )


# --- the laws


def test_every_public_function_has_a_call() -> None:
    names = set[str]()
    for module in pkgutil.walk_packages(theory.__path__, "theory."):
        loaded = importlib.import_module(module.name)
        made = ((name, getattr(loaded, name)) for name in getattr(loaded, "__all__", ()))
        names |= {
            f"{module.name}.{name}".removeprefix("theory.")
            for name, found in made
            if inspect.isfunction(found) and name != "real_values" and inspect.signature(found).parameters
        }
    assert names <= CALLS.keys()


@pytest.mark.parametrize("name", TABLE)
def test_a_right_call_has_a_value_in_every_form(name: str) -> None:
    assert check(name, *TABLE[name]) == "value"


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_any_argument_gives_a_right_value_or_a_message_that_names_it(name: str) -> None:
    """One hostile or extreme argument at a time, then numbers of all sizes at once."""
    call, right = TABLE[name]
    for number, argument in enumerate(right):
        if told(name, SLOW) and argument == "steps":
            continue  # so many that each takes long
        for value in (*EXTREMES, *HOSTILE[number % 8 :: 8])[:: 8 if told(name, SLOW) else 1]:
            # one that float32 holds and whose int64 cube overflows; others get other forms below
            formed = type(value) in (int, float) and value in (0.5, 2**31)
            check(name, call, {**right, argument: value}, formed)
    rng = random.Random(name)
    for _ in range(0 if told(name, SLOW) else 8):
        check(name, call, {argument: varied(rng, value) for argument, value in right.items()})


def varied(rng: random.Random, value: Any) -> Any:
    """A number of some other size, or a list of them; what is no number stays."""
    if isinstance(value, list) and all(type(x) is float for x in value):
        return np.multiply(value, 10.0 ** rng.choice([0, -1, 1, 150, -150])).tolist()
    if type(value) is int:
        return rng.choice([1, 2, 3, value, 7 * value])
    if type(value) is float:
        return rng.choice([value, value, rng.uniform(-1, 3), value * 10.0 ** rng.uniform(-300, 300)])
    return value


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=map(str, range(len(KERNELS))))
@pytest.mark.parametrize("method", ["value", "derivative", "curvature", "fluctuations"])
def test_kernels_of_any_pair(kernel: gaussian.Kernels, method: str) -> None:
    for a, share in itertools.product([0.0, 1e-308, 0.7, 1e300], [1.0, -1.0, 1 - 1e-9, 0.3]):
        if kernel is BENT and a > 1 and abs(share) == 1:
            continue  # so many panels that each takes long
        pair = {"covariance": abs(a * share), "gap": a * (1 - share)}
        if method != "fluctuations":
            pair |= {"variance": a, "covariance": a * share}
        check(method, getattr(kernel, method), pair, share == 0.3)
