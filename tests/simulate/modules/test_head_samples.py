"""Curvature of single sequences whose logits come by chunks of positions: that of all logits at once."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.nn import functional

from simulate.modules.hessian_variance import (
    Matrix,
    bilinear_forms,
    quadratic_forms,
    total_variance,
    variance_along,
)
from tests.simulate.objectives.language import CausalModel, N, T, V
from tests.simulate.objectives.test_heads import PLACES, both, vectors

KINDS = {
    name: PLACES[name]
    for name in ("all", "the body alone", "the sum", "weighed classes", "chunks of samples")
}


@pytest.mark.parametrize(
    ("kind", "matrix"), [*((kind, "hessian") for kind in KINDS), ("the body alone", "gauss_newton")]
)
def test_chunks_of_positions_are_no_matter(
    kind: str, matrix: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the sequences has nothing to predict."""
    plain, chunked = both(CausalModel(tied=False, bias=True), monkeypatch, 4 * V, **KINDS[kind])
    columns = vectors(plain)

    asks = [
        lambda o: quadratic_forms(o, columns, matrix=matrix),
        lambda o: bilinear_forms(o, columns, columns[:, 0], matrix=matrix),
        lambda o: variance_along(o, columns[:, 0], matrix=matrix),
    ]
    for ask in asks:
        assert_allclose(ask(chunked), ask(plain), rtol=1e-10, atol=1e-12)
    found = asks[0](chunked)
    assert found.shape == (N, 2) and not found[3].any() and found[[0, 1, 2, 4]].all()


def test_the_whole_variance_is_the_mean_over_probes_of_that_along_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever number of them go through a sample together."""
    _, chunked = both(CausalModel(), monkeypatch, 4 * V)
    signs = 2.0 * np.random.default_rng(0).integers(0, 2, (5, chunked.dim)) - 1.0
    each = [variance_along(chunked, s) for s in signs]

    for size in (1, 2, 5):
        monkeypatch.setattr("simulate.modules.hessian_variance._HELD", size * 24 * chunked.dim)
        found = total_variance(chunked, np.random.default_rng(0), probes=5)
        assert_allclose(found, (np.mean(each), np.std(each, ddof=1) / 5**0.5), rtol=1e-10)


def test_no_chunk_is_larger_than_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are all logits of a sample there at once."""
    _, chunked = both(CausalModel(), monkeypatch, 2 * V)
    _ = variance_along(chunked, torch.ones(chunked.dim))  # puts its questions to a few
    seen = []
    linear = functional.linear

    def noted(x: Any, weight: Any, *rest: Any) -> Any:
        if len(weight) == V:
            seen.append(x.numel() // x.shape[-1])
        return linear(x, weight, *rest)

    monkeypatch.setattr(functional, "linear", noted)
    _ = variance_along(chunked, torch.ones(chunked.dim)), quadratic_forms(chunked, vectors(chunked))
    assert seen and max(seen) <= 2 < T
