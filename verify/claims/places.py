"""Index of claims: the module of each, what it reads of theory, and where its score is made.

An output that no claim reads could be wrong and no verdict would tell: `UNREAD` lists those that may stay so, each with
its reason. In `tests/verify/claims/test_reading.py` fails what is neither read nor listed, and what is both.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from verify.claims import registry
from verify.model import AnyClaim, Claim, ExactProperty, Identity

UNREAD: dict[str, tuple[str, ...]] = {
    "a derivation in sympy: tests hold the function that it derives to it": ("derivations",),
    "the same by mpmath, to many digits: tests hold the function that claims read to it": (
        "activations.precise_kernels",
    ),
    "a part of what claims read: tests hold the part to the whole": (
        "fisher.mean_subtraction.BatchNormalisedConstants",
        "fisher.mean_subtraction.batch_normalised_constants",
        "fisher.TangentKernel.difference",
        "fisher.mean_subtraction.FluctuationConstants",
        "fisher.mean_subtraction.fluctuation_constants",
        "fisher.EntryVariances",
        "fisher.mean_subtraction.gram_entry_variances",
        "fisher.layer_normalisation.layer_norm_kappas",
        "outliers.Outlier.edge",
        "outliers.Outlier.visible",
    ),
    "another form of the distribution function, density or moments that claims read: tests hold it to them": (
        "fisher.layer_normalisation.inverse_variance_cdf",
        "rmt.free_poisson.CompoundFreePoisson.atom",
        "rmt.free_poisson.CompoundFreePoisson.bulks",
        "rmt.free_poisson.CompoundFreePoisson.cdf",
        "rmt.free_poisson.CompoundFreePoisson.moment",
        "rmt.free_poisson.CompoundFreePoisson.pdf",
        "rmt.free_poisson.CompoundFreePoisson.r_transform",
        "rmt.free_poisson.CompoundFreePoisson.sf",
        "rmt.free_poisson.CompoundFreePoisson.stieltjes",
        "rmt.free_poisson.CompoundFreePoisson.support",
        "rmt.free_poisson.CompoundFreePoisson.var",
        "rmt.marchenko_pastur.MarchenkoPastur.isf",
        "rmt.marchenko_pastur.MarchenkoPastur.logpdf",
        "rmt.marchenko_pastur.MarchenkoPastur.mean",
        "rmt.marchenko_pastur.MarchenkoPastur.moment",
        "rmt.marchenko_pastur.MarchenkoPastur.ppf",
        "rmt.marchenko_pastur.MarchenkoPastur.sf",
        "rmt.marchenko_pastur.MarchenkoPastur.sigma",
        "rmt.marchenko_pastur.MarchenkoPastur.var",
        "rmt.semicircle.Semicircle.isf",
        "rmt.semicircle.Semicircle.logpdf",
        "rmt.semicircle.Semicircle.mean",
        "rmt.semicircle.Semicircle.moment",
        "rmt.semicircle.Semicircle.ppf",
        "rmt.semicircle.Semicircle.sf",
    ),
    "a part of which theory makes the mean, the largest and the second moment that claims read": (
        "fisher.TangentKernel.kappa1",
        "fisher.TangentKernel.kappa2",
    ),
    "a rearrangement of a formula that claims read: tests hold it to that formula": (
        "batch_hessian.noise_free_eigenvalue",
        "learning_rates.marchenko_pastur_exponent",
        "learning_rates.mean_square.gaussian_least_squares_limit",
        "learning_rates.mean_square.mean_square_crossover",
        "learning_rates.mean_square.mean_square_exponent",
        "learning_rates.sgd_exponent",
        "learning_rates.square_root",
    ),
    "another form of a law that kept claims read, or a known moment: unit tests hold it": (
        "fisher.layer_normalisation.Etas",
        "fisher.layer_normalisation.realised_etas",
        "gauss_newton.gradient_scatter",
        "initial_loss.prior_entropy",
        "rmt.finite_moments.subspace_share",
        "rmt.finite_moments.wishart_third_moment",
    ),
    "a law that no paper here states: unit tests hold it by a second route": (
        "batch_hessian.ranks.two_layer_rank_bound",
        "batch_hessian.sampling.element_skewness",
        "batch_hessian.sampling.second_order_coefficient",
        "criticality",
        "finite_size.EdgeFluctuation.sd",
        "finite_size.additive_wigner_sd",
        "finite_size.additive_wishart_sd",
        "finite_size.axis_wigner_sd",
        "finite_size.information_plus_noise_sd",
        "finite_size.spiked_covariance_sd",
        "fisher.CrossEntropyStatistics.second_moment",
        "fisher.TangentKernelStatistics.second_moment",
        "fisher.layer_normalisation.ExpectedEtas",
        "fisher.layer_normalisation.expected_etas",
        "fisher.layer_normalisation.layer_norm_largest",
        "fisher.layer_normalisation.layer_norm_rank",
        "fisher.mean_subtraction.deviation_share",
        "fisher.middle_normalisation.batch_norm_largest_odd",
        "gauss_newton.projection.ProjectedMoments.excess",
        "gauss_newton.projection.frame_overlap",
        "gauss_newton.split.gauss_newton_trace",
        "gauss_newton.split.normal_probe_variance",
        "initial_loss.gaussian_loss",
        "linear_network",
        "loss_change.mean_descent_limit",
        "order_parameters.input_derivative",
        "softmax.collapse.ray_slope",
        "zone.bulk_outlier",
        "zone.confident_log_trace",
        "zone.near_tie_weight",
        "zone.spiked_excess",
        "rmt.tracy_widom.TracyWidom.cdf",
        "rmt.tracy_widom.TracyWidom.isf",
        "rmt.tracy_widom.TracyWidom.logpdf",
        "rmt.tracy_widom.TracyWidom.pdf",
        "rmt.tracy_widom.TracyWidom.ppf",
        "rmt.tracy_widom.TracyWidom.sf",
    ),
    "where claims take their points: tests hold it to the formula that they read": (
        "batch_hessian.crossover_batch_size",
    ),
    "a second formula for gamma: unit tests hold both to each other": ("softmax.collapse.gamma_of_pairs",),
    "a constant of the law: tests hold it to the density": (
        "rmt.marchenko_pastur.MarchenkoPastur.support",
        "rmt.semicircle.Semicircle.support",
        "rmt.tracy_widom.TracyWidom.atom",
        "rmt.tracy_widom.TracyWidom.edges",
        "rmt.tracy_widom.TracyWidom.support",
    ),
}
"""Outputs of theory that no claim reads, or their modules and classes, by reason."""


@functools.cache
def modules() -> dict[str, str]:
    """Return the module in whose CLAIMS each claim is listed, by the id of the claim."""
    rooms = (module for _, module in registry.rooms())
    return {claim.id: module.__name__ for module in rooms for claim in getattr(module, "CLAIMS", ())}


# --- what a claim names


def functions_read(claim: AnyClaim, package: str = "theory") -> list[str]:
    """The functions and classes of a package that a claim names, directly or through functions that it calls.

    Each as module:name.

    >>> functions_read(next(c for c in registry.claims() if c.id == "vysogorets2024/eq-8"))
    ['theory.gauss_newton:expected_excess', 'theory.softmax:gamma']
    """
    return sorted(_collect_names(claim, package)[0])


def _collect_names(claim: AnyClaim, package: str = "theory") -> tuple[set[str], set[FunctionType]]:
    """Names that a claim uses of a package, and the functions in whose code they were looked for."""
    found, visited = set[str](), set[FunctionType]()

    def follow(function: Any) -> None:
        """Collect what the names in the code of a function refer to, following functions of claims."""
        function = _plain(function)
        if not isinstance(function, FunctionType) or function in visited:
            return
        visited.add(function)
        names = list(_names(function.__code__))
        for name in names:
            note(thing := function.__globals__.get(name))
            # The names in a piece of code include attributes, without what they belong to: try each of them.
            if isinstance(thing, ModuleType) and _top(thing.__name__) == package:
                for other in names:
                    if not other.startswith("__"):
                        note(getattr(thing, other, None))
        for cell in function.__closure__ or ():
            note(cell.cell_contents)
        for default in function.__defaults__ or ():
            note(default)

    def note(thing: Any) -> None:
        module = str(getattr(thing, "__module__", ""))
        if callable(thing) and _top(module) == package:
            if not getattr(thing, "__qualname__", "_").startswith("_"):
                found.add(f"{module}:{thing.__qualname__}")
        elif callable(thing) and module.startswith("verify.claims"):
            follow(thing)
        elif isinstance(thing, Mapping | tuple):  # of cases by name, or what belongs to one
            for each in thing.values() if isinstance(thing, Mapping) else thing:
                note(each)
        elif isinstance(thing, Claim):
            for function in _functions(thing):
                follow(function)

    for function in _functions(claim):
        follow(function)
    return found, visited


def _functions(claim: AnyClaim) -> tuple[Callable[..., Any], ...]:
    """Return the functions that a claim computes with, except its rivals."""
    if isinstance(claim, Identity):
        return (claim.routes,)
    if isinstance(claim, ExactProperty):
        return (claim.violation,)
    return claim.predict, (claim.experiment if isinstance(claim, Claim) else claim).simulate


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names in a piece of code and in the functions and comprehensions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def code_of(claim: AnyClaim) -> str:
    """Return file and line of the function that draws or computes what is judged; empty where it has no source."""
    return _line(_functions(claim)[-1])


def _line(function: Callable[..., Any]) -> str:
    function = _plain(function)
    code = getattr(function, "__code__", None)
    home = getattr(sys.modules.get(getattr(function, "__module__", "")), "__file__", None)
    if code is None or home is None:
        return ""
    parts = str(function.__module__).split(".")
    name = "/".join(parts) + ("/__init__.py" if Path(home).name == "__init__.py" else ".py")
    return f"{name}:{code.co_firstlineno}"


def _plain(function: Any) -> Any:
    """Return a function without what is bound to it or wrapped around it."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.unwrap(function)


def _top(module: str) -> str:
    return module.partition(".")[0]
