"""Smaller matrices with the extreme eigenvalues of larger ones: the same law as the dense ones, rows enough."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy import stats

from simulate.matrices import ensembles, noise, reduced
from simulate.matrices.reduced import Extreme
from simulate.monte_carlo import Block, Point, stream

Floats = NDArray[np.float64]

DRAWS = 480


def block_of(count: int = DRAWS, *, name: str = "reduced") -> Block:
    return Block(tuple(stream(0, name, Point(), i) for i in range(count)))


def dense(matrices: torch.Tensor, *, position: int = -1, direction: int = 0) -> tuple[Floats, Floats]:
    """An eigenvalue of each, and its overlap with a unit vector."""
    values, vectors = np.linalg.eigh(matrices.numpy())
    return values[:, position], vectors[:, direction, position] ** 2


def agreement(one: Floats, other: Floats) -> float:
    """The p-value of a common law, by Kolmogorov and Smirnov."""
    found: Any = stats.ks_2samp(one, other)
    return float(found.pvalue)


def assert_same_law(found: Extreme, expected: tuple[Floats, Floats]) -> None:
    for a, b in zip(found, expected, strict=True):
        assert agreement(a.numpy(), b) > 1e-3
        assert agreement(a.numpy() + 0.4 * b.std(), b) < 1e-3  # another place is seen


def at_first(block: Block, dim: int, spike: float) -> torch.Tensor:
    unit = torch.zeros(len(block), dim, dtype=torch.float64)
    unit[:, 0] = math.sqrt(abs(spike))
    return math.copysign(1.0, spike) * unit[:, :, None] * unit[:, None, :]


@pytest.mark.parametrize(("dim", "spike"), [(2, -1.3), (9, 0.2), (25, 1.6)])
def test_spiked_wigner_has_the_law_of_the_dense_matrix(dim: int, spike: float) -> None:
    block = block_of(name="dense")
    matrices = ensembles.wigner(block, dim) + at_first(block, dim, spike)
    for bottom in (False, True):
        found = reduced.wigner_extreme(block_of(), dim, spike=spike, bottom=bottom)
        assert_same_law(found, dense(matrices, position=0 if bottom else -1))


def test_one_row_is_the_spike_and_its_noise() -> None:
    found = reduced.wigner_extreme(block_of(), 1, spike=0.7)
    expected = 0.7 + math.sqrt(2) * block_of(name="dense").normal(1)[:, 0].numpy()

    assert_same_law(Extreme(found.eigenvalue, found.eigenvalue), (expected, expected))
    assert_allclose(found.overlap, 1.0)


def additive(x: torch.Tensor, spike: float, block: Block) -> torch.Tensor:
    return x @ x.mT / x.shape[2] + at_first(block, x.shape[1], spike)


def information(x: torch.Tensor, spike: float, _: Block) -> torch.Tensor:
    factor = x / math.sqrt(x.shape[2])
    factor[:, 0, 0] += math.sqrt(spike)
    return factor @ factor.mT


def covariance(x: torch.Tensor, spike: float, _: Block) -> torch.Tensor:
    samples = x.clone()
    samples[:, 0] *= math.sqrt(1 + spike)
    return samples @ samples.mT / x.shape[2]


MODELS: dict[str, tuple[Callable[..., Extreme], Callable[..., torch.Tensor]]] = {
    "additive": (reduced.additive_wishart_top, additive),
    "information": (reduced.information_plus_noise_top, information),
    "covariance": (reduced.spiked_covariance_top, covariance),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("dim", "samples", "spike"), [(6, 17, 0.9), (15, 4, 3.1), (5, 5, 0.4)])
def test_rectangular_models_have_the_law_of_the_dense_matrix(
    model: str, dim: int, samples: int, spike: float
) -> None:
    draw, build = MODELS[model]
    block = block_of(name="dense")
    expected = dense(build(block.normal(dim, samples), spike, block))

    assert_same_law(draw(block_of(), dim, samples, spike=spike), expected)


def test_several_spikes_have_the_law_of_the_dense_matrix() -> None:
    spikes, dim = (-1.5, 2.9, 1.6, -2.4), 14
    block = block_of(name="dense")
    matrices = ensembles.wigner(block, dim)
    matrices[:, range(4), range(4)] += torch.tensor(spikes, dtype=torch.float64)
    found = reduced.wigner_outliers(block_of(), dim, spikes=spikes)

    assert found.eigenvalue.shape == found.overlap.shape == (DRAWS, 4)
    for k, position in enumerate((1, -1, -2, 0)):
        one = Extreme(found.eigenvalue[:, k], found.overlap[:, k])
        assert_same_law(one, dense(matrices, position=position, direction=k))


def test_several_spikes_of_one_sign_and_of_as_many_dimensions() -> None:
    alone = reduced.wigner_outliers(block_of(4), 3000, spikes=[-2.2])
    assert_allclose(alone.eigenvalue, -2.2 - 1 / 2.2, rtol=0.1)
    full = reduced.wigner_outliers(block_of(4), 2, spikes=[2.5, 40.0])
    assert (full.eigenvalue[:, 1] > 30).all() and (full.overlap[:, 1] > 0.9).all()


@pytest.mark.parametrize("scale", [1.7, -1.7])
def test_signed_projections_have_the_law_of_the_dense_matrix(scale: float) -> None:
    dim, sizes, spike = 7, {"samples": 3, "rank": 2}, 0.8
    block = block_of(name="dense")
    matrices = scale * noise.signed_projections(block, dim, **sizes) + at_first(block, dim, spike)
    found = reduced.signed_projections_top(block_of(), dim, **sizes, spike=spike, scale=scale)

    assert_same_law(found, dense(matrices))


ROWS: dict[str, Callable[[Block], Any]] = {
    "edge": lambda b: reduced.wigner_extreme(b, 5000, spike=0.4),
    "threshold": lambda b: reduced.wigner_extreme(b, 5000, spike=1.0),
    "bottom": lambda b: reduced.wigner_extreme(b, 5000, spike=0.4, bottom=True),
    "outlier": lambda b: reduced.wigner_extreme(b, 5000, spike=1.3),
    "wide": lambda b: reduced.additive_wishart_top(b, 900, 40000, spike=0.05),
    "tall": lambda b: reduced.additive_wishart_top(b, 40000, 900, spike=3.0),
    "square": lambda b: reduced.information_plus_noise_top(b, 3000, 3000, spike=0.9),
}


@pytest.mark.parametrize("draw", ROWS.values(), ids=ROWS)
def test_rows_further_down_change_nothing(
    draw: Callable[[Block], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three quarters of the rows have the same extreme pair, to what bisection is good for."""
    whole = reduced.eigenpair
    pairs: list[tuple[float, float]] = []

    def recorded(diagonal: Floats, beside: Floats, place: int) -> tuple[float, float]:
        rows = 3 * len(diagonal) // 4
        pairs.append(whole(diagonal[:rows], beside[: rows - 1], min(place, rows - 1)))
        return whole(diagonal, beside, place)

    monkeypatch.setattr(reduced, "eigenpair", recorded)
    found = draw(block_of(6))
    values, overlaps = zip(*pairs, strict=True)

    assert_allclose(values, found.eigenvalue, rtol=1e-11)
    assert_allclose(overlaps, found.overlap, rtol=1e-7, atol=1e-10)


def test_blocks_further_down_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = reduced._outliers
    shorter: list[Floats] = []

    def recorded(band: Floats, spikes: Floats) -> tuple[Floats, Floats]:
        shorter.append(whole(band[:, : 3 * band.shape[1] // 4], spikes)[0])
        return whole(band, spikes)

    monkeypatch.setattr(reduced, "_outliers", recorded)
    found = reduced.wigner_outliers(block_of(2), 10**6, spikes=(1.4, -3.0))

    assert_allclose(shorter, found.eigenvalue, rtol=1e-11)


ALONE: dict[str, Callable[..., Extreme]] = {
    "wigner": lambda b, spike: reduced.wigner_extreme(b, 700, spike=spike),
    "wishart": lambda b, spike: reduced.additive_wishart_top(b, 30, 80, spike=spike),
    "information": lambda b, spike: reduced.information_plus_noise_top(b, 30, 80, spike=spike),
    "projections": lambda b, spike: reduced.signed_projections_top(b, 30, samples=4, rank=2, spike=spike),
}


@pytest.mark.parametrize("draw", ALONE.values(), ids=ALONE)
def test_a_reduced_replicate_is_the_same_alone_with_a_spike_of_its_own(draw: Callable[..., Extreme]) -> None:
    spikes = np.array([1.3, 2.6, 0.4])
    together = draw(block_of(3), spikes)
    singles = [draw(Block((stream(0, "reduced", Point(), i),)), float(spikes[i])) for i in range(3)]

    assert_allclose(together.eigenvalue, [float(s.eigenvalue) for s in singles], rtol=1e-12)
    assert_allclose(together.overlap, [float(s.overlap) for s in singles], rtol=1e-9)


def test_reduced_matrices_out_of_domain_are_refused() -> None:
    block = block_of(2)
    for spikes in ([1.5, 1.5], [2.0, 1.3], [2.0, math.nan]):
        with pytest.raises(ValueError, match=r"spikes must be different, and at least 1\.4 in size, got"):
            reduced.wigner_outliers(block, 5, spikes=spikes)
    with pytest.raises(ValueError, match="dim must be more than samples times rank, got 6 for 6 projections"):
        reduced.signed_projections_top(block, 6, samples=3, rank=2, spike=1.0)
