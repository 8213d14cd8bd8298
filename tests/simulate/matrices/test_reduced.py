"""Smaller matrices with the extreme eigenvalues of larger ones: the same law as the dense ones, rows enough."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats

from simulate.matrices import ensembles, noise, reduced
from simulate.matrices.reduced import Extreme, Floats
from simulate.monte_carlo import Block, Point, stream

DRAWS = 480


def block_of(count: int = DRAWS, name: str = "reduced") -> Block:
    return Block(tuple(stream(0, name, Point(), i) for i in range(count)))


def assert_same_law(
    found: Extreme, matrices: torch.Tensor, *, position: int = -1, direction: int = 0
) -> None:
    """Compare with an eigenvalue of dense matrices and its overlap with a unit vector, by Kolmogorov-Smirnov tests."""
    values, vectors = np.linalg.eigh(matrices.numpy())
    for a, b in zip(found, (values[:, position], vectors[:, direction, position] ** 2), strict=True):
        assert stats.ks_2samp(a.numpy(), b).pvalue > 1e-3
        assert (
            stats.ks_2samp(a.numpy() + 0.4 * b.std(), b).pvalue < 1e-3 or not b.std()
        )  # another place is seen


def plus(matrices: torch.Tensor, *spikes: float) -> torch.Tensor:
    matrices[:, range(len(spikes)), range(len(spikes))] += torch.tensor(spikes, dtype=torch.float64)
    return matrices


@pytest.mark.parametrize(("dim", "spike"), [(1, 0.7), (2, -1.3), (9, 0.2), (25, 1.6)])
def test_spiked_wigner_has_the_law_of_the_dense_matrix(dim: int, spike: float) -> None:
    matrices = plus(ensembles.wigner(block_of(name="dense"), dim), spike)
    for bottom in (False, True):
        found = reduced.wigner_extreme(block_of(), dim, spike=spike, bottom=bottom)
        assert_same_law(found, matrices, position=0 if bottom else -1)


def square(x: torch.Tensor, samples: int) -> torch.Tensor:
    return x @ x.mT / samples


MODELS = {
    "additive": (reduced.additive_wishart_top, lambda x, n, spike: plus(square(x, n), spike)),
    "information": (
        reduced.information_plus_noise_top,
        lambda x, n, spike: square(plus(x, math.sqrt(spike * n)), n),
    ),
    "covariance": (
        reduced.spiked_covariance_top,
        lambda x, n, spike: square(
            torch.cat([math.sqrt(1 + spike) * x[:, :1], x[:, 1:]], 1), n
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("dim", "samples", "spike"), [(6, 17, 0.9), (15, 4, 3.1), (5, 5, 0.4)])
def test_rectangular_models_have_the_law_of_the_dense_matrix(
    model: str, dim: int, samples: int, spike: float
) -> None:
    draw, build = MODELS[model]
    matrices = build(block_of(name="dense").normal(dim, samples), samples, spike)
    assert_same_law(draw(block_of(), dim, samples, spike=spike), matrices)


@pytest.mark.parametrize(
    ("dim", "spikes", "positions"),
    [(14, (-1.5, 2.9, 1.6, -2.4), (1, -1, -2, 0)), (2, (2.5, 40.0), (0, 1)), (9, (-2.2,), (0,))],
)
def test_several_spikes_have_the_law_of_the_dense_matrix(dim: int, spikes: Any, positions: Any) -> None:
    matrices = plus(ensembles.wigner(block_of(name="dense"), dim), *spikes)
    found = reduced.wigner_outliers(block_of(), dim, spikes=spikes)

    assert found.eigenvalue.shape == found.overlap.shape == (DRAWS, len(spikes))
    for k, position in enumerate(positions):
        one = Extreme(found.eigenvalue[:, k], found.overlap[:, k])
        assert_same_law(one, matrices, position=position, direction=k)


@pytest.mark.parametrize("scale", [1.7, -1.7])
def test_signed_projections_have_the_law_of_the_dense_matrix(scale: float) -> None:
    sizes, block = {"samples": 3, "rank": 2}, block_of(name="dense")
    matrices = plus(scale * noise.signed_projections(block, 7, **sizes), 0.8)
    assert_same_law(reduced.signed_projections_top(block_of(), 7, **sizes, spike=0.8, scale=scale), matrices)


ROWS = {
    "edge": lambda b: reduced.wigner_extreme(b, 5000, spike=0.4),
    "threshold": lambda b: reduced.wigner_extreme(b, 5000, spike=1.0),
    "bottom": lambda b: reduced.wigner_extreme(b, 5000, spike=0.4, bottom=True),
    "outlier": lambda b: reduced.wigner_extreme(b, 5000, spike=1.3),
    "wide": lambda b: reduced.additive_wishart_top(b, 900, 40000, spike=0.05),
    "tall": lambda b: reduced.additive_wishart_top(b, 40000, 900, spike=3.0),
    "square": lambda b: reduced.information_plus_noise_top(b, 3000, 3000, spike=0.9),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_further_down_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three quarters of the rows have the same extreme pair, to what bisection is good for."""
    whole, pairs = reduced.eigenpair, list[tuple[float, float]]()

    def recorded(diagonal: Floats, beside: Floats, place: int) -> tuple[float, float]:
        rows = 3 * len(diagonal) // 4
        pairs.append(whole(diagonal[:rows], beside[: rows - 1], min(place, rows - 1)))
        return whole(diagonal, beside, place)

    monkeypatch.setattr(reduced, "eigenpair", recorded)
    found = ROWS[name](block_of(6))
    values, overlaps = zip(*pairs, strict=True)
    assert_allclose(values, found.eigenvalue, rtol=1e-11)
    assert_allclose(overlaps, found.overlap, rtol=1e-7, atol=1e-10)


def test_blocks_further_down_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, shorter = reduced._outliers, list[Floats]()

    def recorded(band: Floats, spikes: Floats) -> tuple[Floats, Floats]:
        shorter.append(whole(band[:, : 3 * band.shape[1] // 4], spikes)[0])
        return whole(band, spikes)

    monkeypatch.setattr(reduced, "_outliers", recorded)
    found = reduced.wigner_outliers(block_of(2), 10**6, spikes=(1.4, -3.0))
    assert_allclose(shorter, found.eigenvalue, rtol=1e-11)


ALONE = {
    "wigner": lambda b, spike: reduced.wigner_extreme(b, 700, spike=spike),
    "wishart": lambda b, spike: reduced.additive_wishart_top(b, 30, 80, spike=spike),
    "information": lambda b, spike: reduced.information_plus_noise_top(b, 30, 80, spike=spike),
    "projections": lambda b, spike: reduced.signed_projections_top(b, 30, samples=4, rank=2, spike=spike),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_reduced_replicate_is_the_same_alone_with_a_spike_of_its_own(name: str) -> None:
    spikes, block = np.array([1.3, 2.6, 0.4]), block_of(3)
    together = ALONE[name](block, spikes)
    singles = [
        ALONE[name](Block((rng,)), float(s)) for rng, s in zip(block_of(3).streams, spikes, strict=True)
    ]
    for whole, each in zip(together, zip(*singles, strict=True), strict=True):
        assert_allclose(whole, torch.cat(each), rtol=1e-9)
