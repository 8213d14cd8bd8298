"""Scores that leave out a term of known mean: draws whose scale or mean is wrong are told by the claims beside them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simulate.matrices import ensembles, noise, populations
from simulate.monte_carlo import Block, SerialExecutor
from verify.claims import registry
from verify.claims.granziol2022.noise import left_out
from verify.running.engine import Session, Settings

SCALES = {
    "spiked-noise-second-moment": (ensembles, "wigner"),
    "noise-of-batches-second-moment": (ensembles, "wigner"),
    "noise-of-nested-samples-second-moment": (populations, "nested_means"),
    "few-entries-second-moment": (noise, "sparse"),
    "few-projections-second-moment": (noise, "signed_projections"),
    "wishart-diagonal": (ensembles, "wishart"),
    "batch-diagonal": (ensembles, "wishart"),
    "data-set-diagonal": (ensembles, "wishart"),
}


PERCENT = {"few-entries-second-moment": 3, "few-projections-second-moment": 3}
"""By which a scale is too large, where one percent takes a minute of draws to tell."""


@contextmanager
def changed(owner: Any, name: str, change: Callable[..., Any]) -> Iterator[None]:
    """A function whose result is changed, for as long as this lasts."""
    with pytest.MonkeyPatch.context() as patch:
        drawn = getattr(owner, name)
        patch.setattr(owner, name, lambda *args, **kwargs: change(drawn(*args, **kwargs), *args))
        yield


def verdict(name: str) -> str:
    """At the first of its run points, which is harder than at all of them."""
    whole = next(c for c in registry.claims() if c.id == f"granziol2022/{name}")
    claim = replace(whole, experiment=replace(whole.experiment, points=whole.experiment.points[:1]))
    return Session((claim,), Settings(seed=3), SerialExecutor()).rows(claim)[0].verdict


@pytest.mark.parametrize("name", SCALES)
def test_draws_a_few_percent_too_large_are_told(name: str) -> None:
    owner, called = SCALES[name]
    scale = 1 + PERCENT.get(name, 1) / 100
    with changed(owner, called, lambda drawn, *_: scale * drawn):
        assert verdict(name) == "disagrees"


def test_a_mean_of_two_percent_of_the_spike_is_told() -> None:
    """Scores of the top eigenvalue leave it out, whatever it is."""

    def along(drawn: tuple[Any, Any], _: Block, point: Any) -> tuple[Any, Any]:
        matrices, v = drawn
        return matrices + 0.02 * point.eigenvalue * v[:, :, None] * v[:, None, :], v

    with changed(left_out, "batch_noise", along):
        assert verdict("noise-of-batches-first-order") == "disagrees"


def test_uneven_noise_leaves_nothing_out() -> None:
    """One sign alone would move the eigenvalue by the added noise itself."""
    from verify.claims.granziol2022.outliers import outliers

    drawn = {}
    for added in (0.4, 0.0):
        point = outliers.UNEVEN.points[0] | {"along": added}
        block = Block(tuple(np.random.default_rng(s) for s in range(16)))
        drawn[added] = float(outliers.uneven_noise(block, point)["eigenvalue"].mean())
    broadening = {k: 0.81 + 0.31**2 * 0.81 / (0.81**2 - k**2) for k in drawn}
    assert drawn == pytest.approx(broadening, rel=0.02)
