"""No formula that is one slip away from the prediction of a claim may pass at its run points.

A formula is edited in one place: a term or factor lost, a sign, a number, a power, a symbol for another, a branch.
Every such mutant must lie two margins away from the prediction at one run point, or is listed here with the reason.
"""

import dataclasses
import importlib
import pkgutil
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose

from simulate.monte_carlo import Point
from tests.verify.claims import closed_forms, forms
from tests.verify.claims.mutation import ClosedForm, Sample, evaluate, expression, mutants, quantities
from verify import claims
from verify.claims import registry
from verify.judging.estimands import components
from verify.judging.judge import SEPARATION
from verify.model import Claim, Experiment, Kind, StatisticalProperty

Statistical = Claim | StatisticalProperty


def statistical_claims() -> dict[str, Statistical]:
    """Those of the registry, and of every module of claims: listed there or not yet."""
    modules = [m.name for m in pkgutil.walk_packages(claims.__path__, f"{claims.__name__}.") if not m.ispkg]
    written = [c for name in modules for c in getattr(importlib.import_module(name), "CLAIMS", ())]
    return {c.id: c for c in (*registry.claims(), *written) if isinstance(c, Statistical)}


CLAIMS = statistical_claims()


class Runs(NamedTuple):
    """Where a formula is compared with the prediction, and how far is far enough."""

    predicted: np.ndarray
    margins: np.ndarray
    sample: Sample


def runs(claim: Statistical, form: ClosedForm) -> Runs:
    """A claim at its points, a property at the examples that are always tried; measured inputs at typical values."""
    points = claim.examples if isinstance(claim, StatisticalProperty) else claim.experiment.points
    judged = claim.claim_at(points[0]) if isinstance(claim, StatisticalProperty) else claim
    rows = [row for point in points for part in components(judged, point) for row in _rows(judged, part)]
    predicted, margins, joined = (list(column) for column in zip(*rows, strict=True))
    sample = Sample.at([quantities(form, point) for point in joined], joined)
    return Runs(np.array(predicted), np.array(margins), sample)


def _rows(claim: Claim, point: Point) -> list[tuple[float, float, Point]]:
    """Prediction, margin and point with all that the formula reads; of a distribution function at many `x`."""
    if claim.kind is Kind.DISTRIBUTION:
        cdf = claim.predict(point)
        return [(float(cdf(x)), claim.margin, point | {"x": float(x)}) for x in _quantiles(cdf)]
    typical = {name: v(point) if callable(v) else v for name, v in claim.inputs.items()}
    margin = ROUNDING if claim.kind.bounds_every_replicate else claim.margin_at(point)
    return [(claim.prediction(point), margin, point | typical)]


def _quantiles(cdf: Any) -> np.ndarray:
    decades = np.logspace(-5, 5, 2001)
    scale = np.concatenate([-decades[::-1], decades])
    mass = np.asarray(cdf(scale))
    inside = scale[(mass > 1e-3) & (mass < 1 - 1e-3)]
    return np.linspace(inside[0], inside[-1], 33)


def second_route(claim: Statistical, form: ClosedForm) -> tuple[np.ndarray, np.ndarray]:
    """The predictions of a claim and the values of its closed form."""
    at = runs(claim, form)
    return at.predicted, evaluate(expression(form), at.sample, {}) + np.zeros_like(at.predicted)


def inseparable(claim: Statistical, form: ClosedForm) -> tuple[int, list[str]]:
    """How many mutants a formula has, and those that lie within two margins of the prediction at every point."""
    formula, at = expression(form), runs(claim, form)
    wide, memo, wide_memo = at.sample.scattered(np.random.default_rng(3), 24), {}, {}
    with np.errstate(all="ignore"):
        whole = evaluate(formula, wide, wide_memo) + np.zeros(len(wide.points))
        stated = np.isfinite(whole)
        alike = [whole[stated]]
        apart, found = set(), []
        for edit, mutant in mutants(formula):
            value = evaluate(mutant, at.sample, memo) + np.zeros_like(at.predicted)
            distance = stronger_by(claim, value - at.predicted)
            if not (distance < SEPARATION * at.margins).all():  # far, or no number
                apart.add(tuple(f"{v:.9e}" for v in value))
                continue
            elsewhere = (evaluate(mutant, wide, wide_memo) + np.zeros(len(stated)))[stated]
            binds = (distance >= -ROUNDING * np.abs(at.predicted)).any()
            if binds and not any(same(elsewhere, known) for known in alike):
                alike.append(elsewhere)
                found.append(edit)
    return len(apart) + len(found), numbered(found)


STRONGER = {Kind.AT_LEAST: 1, Kind.NEVER_BELOW: 1, Kind.AT_MOST: -1, Kind.NEVER_ABOVE: -1}

ROUNDING = 1e-9
"""A bound that is stronger by more may be broken by a single replicate; by less, the two routes may differ."""


def stronger_by(claim: Statistical, difference: np.ndarray) -> np.ndarray:
    """Distance from the prediction; of a bound only upwards, since a weaker one holds too."""
    kind = claim.kind if isinstance(claim, Claim) else Kind.MEAN
    return STRONGER[kind] * difference if kind in STRONGER else np.abs(difference)


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.isclose(one, other, rtol=1e-9, atol=0, equal_nan=True).all())


def numbered(edits: list[str]) -> list[str]:
    """The same edit at several places: the second is called (2)."""
    seen: Counter[str] = Counter()
    named = []
    for edit in edits:
        seen[edit] += 1
        named.append(edit if seen[edit] == 1 else f"{edit} ({seen[edit]})")
    return named


# --- what the run points cannot see --------------------------------------------------------------------------

STRICTER = "a domain too small for other points, but not for these, which lie inside of either"
SMALL_TERM = "all that the formula adds to 2/3 is 0.022, less than two margins"
BROADENING = (
    "the term in 1/N is too small against 1/B, or the broadening against the eigenvalue, at these points"
)
ONE_SAMPLE = "the bound is attained by batches of one sample only"
ONE_OUTPUT = "one output is drawn, C = 1: the largest of C nearly equal eigenvalues would be biased"
LARGE = "in more than ten dimensions the law of one component hardly depends on their number"
BIASES = "derivatives by the biases are at most 3 % of the whole at this width, less than two margins"
KAPPA1_IS_ALPHA = "kappa1 is 1.81, near alpha = 2, and the bound is flat where the spike is near sqrt(c2)"


FORMS = closed_forms.FORMS | forms.merged("FORMS")
WITHOUT_FORM = closed_forms.WITHOUT_FORM | forms.merged("WITHOUT_FORM")


def _edits_of_small(name: str, *others: str, place: str = "") -> tuple[str, ...]:
    """What can be done to a term that is too small to be seen."""
    swaps = (f"{name} -> {other}{place}" for other in others)
    return (*swaps, *(f"{power} of {name}{place}" for power in ("square root", "inverse", "square")))


def _edits_of_one(name: str, place: str) -> tuple[str, ...]:
    """What can be done to a factor of 1."""
    powers = (f"{power} of {name} in {place}" for power in ("square root", "inverse", "square"))
    return (f"without factor {name} of {place}", *powers)


def _edits_of_term(term: str) -> tuple[str, ...]:
    return (f"without term {term}", *(f"{factor} times {term}" for factor in ("-1", "2", "1/2")))


UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "granziol2022/capped-eigenvalues": {
        SMALL_TERM: (
            "without term (16 - 9*sqrt(3))/((6*pi))",
            "2 times (16 - 9*sqrt(3))/((6*pi))",
            "1/2 times (16 - 9*sqrt(3))/((6*pi))",
            "square root of 16 - 9*sqrt(3)",
            "square of 16 - 9*sqrt(3)",
            "-1 -> -2 in 1/(6*pi)",
            "6 -> 5 in 6*pi",
            "6 -> 7 in 6*pi",
        ),
    },
    "granziol2022/lemma-1": {
        ONE_SAMPLE: _edits_of_one("batch_size", "-batch_size/dataset_size"),
    },
    "granziol2022/probe-overlap": {
        LARGE: (
            "square root of dim in squared_component(x, dim)",
            "square of dim in squared_component(x, dim)",
        ),
    },
    "granziol2022/theorem-4": {
        STRICTER: (
            "domain: inverse of eigenvalue in eigenvalue > threshold",
            "domain: threshold -> sigma in eigenvalue > threshold",
        ),
    },
    "granziol2022/theorem-10": {
        STRICTER: (
            "domain: inverse of eigenvalue in eigenvalue > threshold",
            "domain: threshold -> sigma in eigenvalue > threshold",
        ),
    },
    "granziol2022/theorem-7-outlier": {
        STRICTER: (
            "domain: square root of spike in spike > threshold",
            "domain: square of spike in spike > threshold",
            "domain: threshold -> variance in spike > threshold",
            "domain: inverse of threshold in spike > threshold",
        ),
    },
    "granziol2022/theorem-7": {
        BROADENING: (
            "square root of variance in -dim*variance*(-1/dataset_size + 1/batch_size)",
            *_edits_of_term("-1/dataset_size"),
            "-1 -> -2 in 1/dataset_size",
        ),
    },
    "karakida2019/mean-eigenvalue": {
        BIASES: (
            *_edits_of_term("bias1"),
            *_edits_of_small("bias1", "alpha", "back1", "back2", "fore1", "fore2", "outputs"),
        ),
    },
    "karakida2019/rayleigh-quotient": {
        BIASES: (
            *_edits_of_term("bias1"),
            *_edits_of_small("bias1", "alpha", "bias2", "kappa1", "kappa2", "samples"),
            *_edits_of_term("bias2"),
            *_edits_of_small("bias2", "alpha", "bias1", "kappa1", "kappa2", "samples"),
        ),
    },
    "karakida2019/mean-subtraction": {
        BIASES: (
            *_edits_of_term("bias1"),
            *_edits_of_small("bias1", "alpha", "bias2", "kappa1", "kappa2", "outputs"),
            *_edits_of_term("-bias2"),
            "without factor bias2 of -bias2",
            *_edits_of_small("bias2", "alpha", "kappa1", "kappa2", "outputs", place=" in -bias2"),
        ),
    },
    "karakida2019/lower-bound-with-c1": {
        ONE_OUTPUT: _edits_of_one("outputs", "outputs*(alpha*(kappa1 - kappa2))"),
        KAPPA1_IS_ALPHA: ("everywhere: kappa1 -> alpha",),
    },
    "karakida2019/upper-bound": {
        ONE_OUTPUT: _edits_of_one("outputs", "alpha**2*outputs*(kappa1 - kappa2)**2"),
    },
}
UNSEEN |= forms.merged("UNSEEN")
"""Per claim and reason: mutants that no run point tells from the prediction."""


def listed(claim: Statistical) -> list[str]:
    return [edit for edits in UNSEEN.get(claim.id, {}).values() for edit in edits]


# --- the laws ------------------------------------------------------------------------------------------------


def test_every_statistical_claim_has_a_closed_form_or_a_reason() -> None:
    missing, stale = (
        set(CLAIMS) - set(FORMS) - set(WITHOUT_FORM),
        (set(FORMS) | set(WITHOUT_FORM)) - set(CLAIMS),
    )
    assert not missing, f"no closed form and no reason: {sorted(missing)}"
    assert not stale and not set(FORMS) & set(WITHOUT_FORM)
    assert all(WITHOUT_FORM.values())
    assert set(UNSEEN) <= set(FORMS)


@pytest.mark.parametrize("name", FORMS)
def test_the_prediction_is_the_closed_form(name: str) -> None:
    predicted, found = second_route(CLAIMS[name], FORMS[name])
    assert_allclose(found, predicted, rtol=1e-12, atol=0)


def test_mean_of_the_capped_eigenvalues_by_quadrature() -> None:
    """A formula without symbols has one value: the integral of min(2 |cos a|, 1) over the semicircle at angle a."""
    corner = np.pi / 3  # the eigenvalue 1
    nodes, weights = np.polynomial.legendre.leggauss(32)
    pieces = [(0, corner), (corner, np.pi / 2)]
    angles = np.concatenate([a + (b - a) * (1 + nodes) / 2 for a, b in pieces])
    steps = np.concatenate([(b - a) / 2 * weights for a, b in pieces])
    mean = 4 / np.pi * (np.minimum(2 * np.cos(angles), 1) * np.sin(angles) ** 2) @ steps
    claim = CLAIMS["granziol2022/capped-eigenvalues"]
    assert_allclose(mean, second_route(claim, FORMS[claim.id]), rtol=1e-13)


@pytest.mark.parametrize("name", FORMS)
def test_run_points_tell_every_mutant_from_the_prediction(name: str) -> None:
    count, unseen = inseparable(CLAIMS[name], FORMS[name])
    assert sorted(unseen) == sorted(listed(CLAIMS[name]))
    assert count > 5


# --- planted errors ------------------------------------------------------------------------------------------


def slightly_more_than(predict: Any) -> Any:
    def wrong(p: Any) -> Any:
        value: Any = predict(p)
        cdf: Any = value
        return (lambda x: cdf(x) * (1 + 1e-9)) if callable(value) else value * (1 + 1e-9)

    return wrong


@pytest.mark.parametrize("name", FORMS)
def test_a_wrong_prediction_is_not_the_closed_form(name: str) -> None:
    wrong = dataclasses.replace(CLAIMS[name], predict=slightly_more_than(CLAIMS[name].predict))
    predicted, found = second_route(wrong, FORMS[name])
    assert (np.abs(found / predicted - 1) > 1e-10).all()


@pytest.mark.parametrize(
    ("name", "changes", "edit"),
    [
        ("granziol2022/theorem-4", {"sigma": 1.0, "eigenvalue": 7.1}, "2 -> 1 in sigma**2"),
        (
            "granziol2022/theorem-10",
            {"dataset_size": 10**6},
            "without term -1/dataset_size",
        ),
        ("granziol2022/outlier-map", {"relative_spike": 1.0}, "inverse of relative_spike"),
        (
            "karakida2019/rayleigh-quotient",
            {"samples": 2},
            "without factor samples - 1 of",
        ),
        (
            "karakida2019/mean-subtraction",
            {"outputs": 1},
            "without factor outputs of outputs*(1 - 1/samples)",
        ),
        ("karakida2019/backward-variance", {"weight_variance": 1.0}, "without factor weight_variance of"),
        ("vysogorets2024/bulk", {"sigma_e": 1.0}, "without factor sigma_e**2 of sigma_e**2*(1 - norm**2)"),
        ("vysogorets2024/eq-8", {"sigma_c": 0.9, "sigma_e": 0.9}, "sigma_c -> sigma_e in sigma_c**4"),
    ],
)
def test_a_degenerate_point_leaves_mutants_unseen(name: str, changes: Mapping[str, Any], edit: str) -> None:
    _, unseen = inseparable(at_points(CLAIMS[name], changes), FORMS[name])
    assert any(found.startswith(edit) for found in set(unseen) - set(listed(CLAIMS[name])))


def at_points(claim: Statistical, changes: Mapping[str, Any]) -> Statistical:
    if isinstance(claim, StatisticalProperty):
        return dataclasses.replace(claim, examples=tuple(p | changes for p in claim.examples))
    points = tuple(p | changes for p in claim.experiment.points)
    return dataclasses.replace(claim, experiment=dataclasses.replace(claim.experiment, points=points))


# --- the kinds of claims -------------------------------------------------------------------------------------


def toy(predict: Any, *points: Point, **changes: Any) -> Claim:
    plain = {
        "id": "paper/toy",
        "entries": ("A1",),
        "source": "a paper",
        "statement": "x",
        "experiment": Experiment(id="paper/toy", replicate="one x", simulate=never, points=points),
        "score": "x",
        "predict": predict,
        "margin": 0.03,
        "margin_reason": "a test",
    }
    return Claim(**{**plain, **changes})


def never(block: Any, point: Any) -> Any:
    raise AssertionError("nothing is simulated here")


def test_an_edit_that_changes_nothing_is_no_mutant() -> None:
    same_twice = ClosedForm(lambda a: (1 * a) ** 1)
    _, unseen = inseparable(toy(lambda p: p.a, Point(a=3.7)), same_twice)
    assert unseen == []


def test_an_edit_that_changes_nothing_at_the_run_points_is_unseen() -> None:
    once = toy(lambda p: p.a**2 + p.b, Point(a=3.7, b=0.01))
    _, unseen = inseparable(once, ClosedForm(lambda a, b: a**2 + b))
    assert unseen == [
        "without term b",
        "-1 times b",
        "2 times b",
        "1/2 times b",
        "square root of b",
        "square of b",
    ]


def test_a_mutant_without_a_value_is_told_apart() -> None:
    wide = toy(lambda p: (p.a - p.b) ** 0.5, Point(a=3.7, b=1.3), margin=0.5)
    _, unseen = inseparable(wide, ClosedForm(lambda a, b: sympy.sqrt(a - b)))
    assert "2 times a" in unseen
    assert "-1 times a" not in unseen


def test_a_vector_is_compared_component_by_component() -> None:
    point = Point(a=3.7, x=(1.0, 1.3))
    form = ClosedForm(lambda a, x: a * x)
    whole = toy(lambda p: p.a * p.x, point, along="x")
    assert_allclose(runs(whole, form).predicted, [3.7, 3.7 * 1.3])
    assert inseparable(whole, form)[1] == []
    assert "without factor x of a*x" in inseparable(toy(lambda p: p.a * p.x, Point(a=3.7, x=1.0)), form)[1]


def test_a_distribution_is_compared_along_its_argument() -> None:
    claim = toy(
        lambda p: lambda x: np.where(np.asarray(x) > 0, 1 - np.exp(-np.maximum(x, 0) / p.scale), 0.0),
        Point(scale=1.7),
        kind=Kind.DISTRIBUTION,
        relative=False,
    )
    form = ClosedForm(lambda x, scale: 1 - sympy.exp(-x / scale))
    assert_allclose(*second_route(claim, form), rtol=1e-12)
    assert inseparable(claim, form)[1] == []


@pytest.mark.parametrize(
    ("kind", "unseen"),
    [
        (Kind.AT_LEAST, ["without factor b of a*b", "square root of b in a*b", "inverse of b in a*b"]),
        (Kind.AT_MOST, ["square of b in a*b"]),
        (Kind.NEVER_BELOW, []),
        (Kind.NEVER_ABOVE, []),
    ],
)
def test_only_a_stronger_bound_can_be_told_apart(kind: Kind, unseen: list[str]) -> None:
    """A weaker one holds as well; of a bound on every replicate the run may break any that is stronger."""
    claim = toy(lambda p: p.a * p.b, Point(a=3.7, b=0.999), kind=kind, relative=False)
    assert inseparable(claim, ClosedForm(lambda a, b: a * b))[1] == unseen


def test_a_bound_without_a_factor_of_one_is_unseen_whatever_the_rounding() -> None:
    for nudge in (1 - 1e-15, 1 + 1e-15):
        claim = toy(lambda p, n=nudge: p.a * p.b * n, Point(a=3.7, b=1.0), kind=Kind.AT_MOST)
        assert "without factor b of a*b" in inseparable(claim, ClosedForm(lambda a, b: a * b))[1]
