"""Errors that claims on inequalities or on means alone let pass, planted in simulators and theory: each is seen now."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from simulate.matrices import ensembles, populations
from simulate.monte_carlo import fixture
from simulate.training import wide_training
from tests.verify.running.engine_runs import judge_claim
from verify.claims import registry
from verify.model import Verdict
from verify.running.engine import Settings

CLAIMS = {claim.id: claim for claim in registry.claims()}

BUDGET = 512


def _judged(name: str, places: slice) -> list[str]:
    claim = CLAIMS[name]
    experiment = claim.experiment
    fewer = replace(experiment, points=experiment.points[places], budget=BUDGET)
    return [row.verdict for row in judge_claim(replace(claim, experiment=fewer), Settings(seed=3))]


def _halved_residuals(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, sigma_e, **more: right(*args, sigma_e=sigma_e / 2, **more)


def _small_frobenius(right: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*args: Any) -> Any:
        frobenius, spectral = right(*args)
        return 0.9 * frobenius, spectral

    return wrong


def _some_subtraction(right: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*args: Any, subtracted: bool) -> Any:
        return (0.8 if subtracted else 1.0) * right(*args, subtracted=subtracted)

    return wrong


def _same_twice(right: Callable[..., Any]) -> Callable[..., Any]:
    """The samples of a data set come in equal pairs."""

    def wrong(*args: Any) -> Any:
        drawn = right(*args)
        drawn[1::2] = drawn[: 2 * (len(drawn) // 2) : 2]
        return drawn

    return wrong


@pytest.mark.parametrize(
    ("name", "places", "module", "function", "planted"),
    [
        ("vysogorets2024/mean-gradient", slice(0, 1), ensembles, "logit_gradients", _halved_residuals),
        ("granziol2022/frobenius-step", slice(0, 1), ensembles, "goe_norms", _small_frobenius),
        ("granziol2022/adaptive-limit", slice(0, 1), populations, "symmetric_matrices", _same_twice),
    ],
)
def test_an_error_of_a_simulator_is_seen(
    name: str,
    places: slice,
    module: Any,
    function: str,
    planted: Callable[[Callable[..., Any]], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, function, planted(getattr(module, function)))
    assert Verdict.DISAGREES in _judged(name, places)


def test_an_error_of_the_sharpness_after_subtraction_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    claim: Any = CLAIMS["karakida2019/contraction"]
    monkeypatch.setattr(wide_training, "sharpness", _some_subtraction(wide_training.sharpness))
    for point in claim.points:
        found = claim.routes(fixture(0, claim.id), point)
        off = abs(found["formula"] / found["training"] - 1).max()
        assert (off > 1e3 * claim.tolerance) == point.subtracted
