"""No formula that is one slip away from the prediction of a claim may pass at its run points.

A formula is edited in one place: a term or factor lost, a sign, a number, a power, a symbol for another, a branch.
Every such mutant must lie two margins away from the prediction at one run point, or is listed here with the reason.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.verify.claims import closed_forms, forms, unseen
from tests.verify.claims.slips import Statistical, inseparable, is_formula, plain_form, second_route
from verify.claims import registry
from verify.model import Claim, StatisticalProperty

CLAIMS = {c.id: c for c in registry.claims() if isinstance(c, Claim | StatisticalProperty)}

WRITTEN = closed_forms.FORMS | forms.merged("FORMS")
WITHOUT_FORM = forms.merged("WITHOUT_FORM")
PLAIN = {
    name: form
    for name, claim in CLAIMS.items()
    if name not in WRITTEN and name not in WITHOUT_FORM and (form := plain_form(claim)) is not None
}
"""A prediction that is plain arithmetic is a closed form itself, unless it is a bare number or one measured score."""

FORMS = WRITTEN | {name: form for name, form in PLAIN.items() if is_formula(form)}
UNSEEN = unseen.UNSEEN | forms.merged("UNSEEN")


def listed(claim: Statistical) -> list[str]:
    return [edit for edits in UNSEEN.get(claim.id, {}).values() for edit in edits]


# --- the laws ------------------------------------------------------------------------------------------------


def test_every_statistical_claim_has_a_closed_form_or_a_reason() -> None:
    missing, stale = (
        set(CLAIMS) - set(WRITTEN) - set(WITHOUT_FORM) - set(PLAIN),
        (set(WRITTEN) | set(WITHOUT_FORM)) - set(CLAIMS),
    )
    assert not missing, f"no closed form and no reason: {sorted(missing)}"
    assert not stale and not set(WRITTEN) & set(WITHOUT_FORM)
    assert all(WITHOUT_FORM.values())
    assert set(UNSEEN) <= set(FORMS)


@pytest.mark.parametrize("name", FORMS)
def test_the_prediction_is_the_closed_form(name: str) -> None:
    predicted, found = second_route(CLAIMS[name], FORMS[name])
    assert_allclose(found, predicted, rtol=1e-12, atol=0)


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
        ("karakida2019/mean-eigenvalue", {"outputs": 1}, "without factor outputs of"),
        (
            "karakida2019/backward-variance-by-layer",
            {"weight_variance": 1.0},
            "without factor weight_variance of",
        ),
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
