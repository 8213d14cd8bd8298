"""Outputs of theory that no claim reads, each with the reason why it may stay so.

`tests/verify/claims/test_reading.py` holds the table to what the claims read: what is neither read nor listed fails
there, and so does what is listed and read.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["UNREAD", "listed", "reason"]

DERIVATION = "a derivation in sympy: tests hold the function that it derives to it"
SECOND_ROUTE = "the same by mpmath, to many digits: tests hold the function that claims read to it"

OTHER_FORM = (
    "another form of the distribution function, density or moments that claims read: tests hold it to them"
)
CONSTANT = "a constant of the law: tests hold it to the density"
REARRANGED = "a rearrangement of a formula that claims read: tests hold it to that formula"
PART = "a part of what claims read: tests hold the part to the whole"
INSIDE = "a part of which theory makes the mean, the largest and the second moment that claims read"
FORM = "another form of a law that kept claims read, or a known moment: unit tests hold it"
TAKEN = "where claims take their points: tests hold it to the formula that they read"

UNREAD: dict[str, str] = {
    "theory.derivations": DERIVATION,
    "theory.activations.precise_kernels": SECOND_ROUTE,
    "theory.fisher.mean_subtraction.BatchNormalisedConstants": PART,
    "theory.fisher.mean_subtraction.batch_normalised_constants": PART,
    "theory.fisher.layer_normalisation.inverse_variance_cdf": OTHER_FORM,
    "theory.fisher.TangentKernel.difference": PART,
    "theory.fisher.TangentKernel.kappa1": INSIDE,
    "theory.fisher.TangentKernel.kappa2": INSIDE,
    "theory.learning_rates.mean_square.mean_square_crossover": REARRANGED,
    "theory.learning_rates.sgd_exponent": REARRANGED,
    "theory.gauss_newton.gradient_scatter": FORM,
    "theory.linear_network.linear_network_edge": PART,
    "theory.batch_hessian.crossover_batch_size": TAKEN,
    "theory.batch_hessian.noise_free_eigenvalue": REARRANGED,
    "theory.learning_rates.marchenko_pastur_exponent": REARRANGED,
    "theory.rmt.finite_moments.wishart_third_moment": FORM,
    "theory.softmax.collapse.gamma_of_pairs": "a second formula for gamma: unit tests hold both to each other",
    "theory.rmt.free_poisson.CompoundFreePoisson.pdf": OTHER_FORM,
    "theory.rmt.marchenko_pastur.MarchenkoPastur.isf": OTHER_FORM,
    "theory.rmt.marchenko_pastur.MarchenkoPastur.logpdf": OTHER_FORM,
    "theory.rmt.marchenko_pastur.MarchenkoPastur.ppf": OTHER_FORM,
    "theory.rmt.marchenko_pastur.MarchenkoPastur.sf": OTHER_FORM,
    "theory.rmt.marchenko_pastur.MarchenkoPastur.sigma": OTHER_FORM,
    "theory.rmt.semicircle.Semicircle.isf": OTHER_FORM,
    "theory.rmt.semicircle.Semicircle.logpdf": OTHER_FORM,
    "theory.rmt.semicircle.Semicircle.mean": OTHER_FORM,
    "theory.rmt.semicircle.Semicircle.ppf": OTHER_FORM,
    "theory.rmt.semicircle.Semicircle.sf": OTHER_FORM,
    "theory.rmt.tracy_widom.TracyWidom.isf": OTHER_FORM,
    "theory.rmt.tracy_widom.TracyWidom.logpdf": OTHER_FORM,
    "theory.rmt.tracy_widom.TracyWidom.pdf": OTHER_FORM,
    "theory.rmt.tracy_widom.TracyWidom.ppf": OTHER_FORM,
    "theory.rmt.tracy_widom.TracyWidom.sf": OTHER_FORM,
    "theory.rmt.marchenko_pastur.MarchenkoPastur.support": CONSTANT,
    "theory.rmt.semicircle.Semicircle.support": CONSTANT,
    "theory.rmt.tracy_widom.TracyWidom.atom": CONSTANT,
    "theory.rmt.tracy_widom.TracyWidom.edges": CONSTANT,
    "theory.rmt.tracy_widom.TracyWidom.support": CONSTANT,
}
"""The reason by the name of an output, or of a module or class whose outputs share it."""


def reason(output: str) -> str:
    """Why an output may go unread; empty where there is no reason.

    >>> reason("theory.derivations.spectra.marchenko_pastur_density")
    'a derivation in sympy: tests hold the function that it derives to it'
    >>> reason("theory.softmax.gamma")
    ''
    """
    return next((why for name, why in UNREAD.items() if f"{output}.".startswith(f"{name}.")), "")


def listed() -> dict[str, str]:
    """What goes unread by its reason, names apart by commas.

    >>> listed()[SECOND_ROUTE]
    'activations.precise_kernels'
    """
    return {why: _names(n for n, told in UNREAD.items() if told == why) for why in UNREAD.values()}


def _names(listed: Iterable[str]) -> str:
    return ", ".join(sorted(name.removeprefix("theory.") for name in listed))
