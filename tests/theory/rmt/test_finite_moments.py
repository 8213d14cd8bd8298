"""Moments at finite dimension over all draws and in the limit; matrices of rank one by their eigenvalues."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from theory import batch_hessian, finite_size, learning_rates, loss_change, rmt


def symmetric(dim: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(dim) for j in range(i, dim)]


def over_all(dim: int, values: list[float], weights: list[float], power: int) -> float:
    """Mean of tr eps^power / P over symmetric matrices whose elements take a few values."""
    places, total = symmetric(dim), 0.0
    for drawn in itertools.product(range(len(values)), repeat=len(places)):
        eps = np.zeros((dim, dim))
        for (i, j), which in zip(places, drawn, strict=True):
            eps[i, j] = eps[j, i] = values[which]
        chance = np.prod([weights[which] for which in drawn])
        total += chance * np.trace(np.linalg.matrix_power(eps, power)) / dim
    return float(total)


NORMAL = [-(3**0.5), 0.0, 3**0.5], [1 / 6, 2 / 3, 1 / 6]
"""Points of the Gauss-Hermite rule of order 3: the first five moments are those of the normal law."""


def test_second_and_fourth_moments_over_all_matrices_of_signs() -> None:
    dim, k, sigma = 3, 2.0, 1.3
    values, weights = [-sigma / k**0.5, 0.0, sigma / k**0.5], [k / dim / 2, 1 - k / dim, k / dim / 2]
    assert_allclose(rmt.wigner_second_moment(sigma=sigma, dim=dim), over_all(dim, values, weights, 2))
    found = rmt.sparse_fourth_moment(sigma=sigma, per_row=k, dim=dim)
    assert_allclose(found, over_all(dim, values, weights, 4))


def test_profiled_moment_over_the_nodes_of_normal_elements() -> None:
    dim, contrast = 2, 0.4
    rows, total = np.array([1 + contrast, 1 - contrast]), 0.0
    for drawn in itertools.product(range(3), repeat=3):
        a, b, c = (NORMAL[0][i] for i in drawn)
        eps = np.array([[a, b], [b, c]]) * np.sqrt(np.outer(rows, rows) / dim)
        total += np.prod([NORMAL[1][i] for i in drawn]) * np.trace(np.linalg.matrix_power(eps, 4)) / dim
    assert_allclose(rmt.profiled_fourth_moment(sigma=1.0, contrast=contrast, dim=dim), total)


@pytest.mark.parametrize("dim", [2, 3])
def test_alternating_moment_over_the_nodes_of_normal_elements(dim: int) -> None:
    """Elements of A^2 and B^2 in pairs: their means over A and B apart make the mean of tr A^2 B^2 A^2 B^2."""
    places = symmetric(dim)
    chosen = np.array(list(itertools.product(range(3), repeat=len(places))))
    drawn = np.zeros((len(chosen), dim, dim))
    for which, (i, j) in zip(chosen.T, places, strict=True):
        drawn[:, i, j] = drawn[:, j, i] = np.array(NORMAL[0])[which] * math.sqrt((1 + (i == j)) / dim)
    squares, chances = drawn @ drawn, np.array(NORMAL[1])[chosen].prod(axis=1)
    pairs = np.einsum("n,nij,nkl->ijkl", chances, squares, squares)
    word = np.einsum("ijkl,jkli->", pairs, pairs) / dim
    found = rmt.alternating_moment(sigma_a=1.1, sigma_b=0.8, dim=dim)
    assert_allclose(found, (1.1 * 0.8) ** 4 * word)


@pytest.mark.parametrize(("dim", "batch"), [(2, 3), (3, 2)])
def test_wishart_third_moment_over_the_nodes_of_normal_elements(dim: int, batch: int) -> None:
    """Every element of X at the nodes of a Gauss-Hermite rule that is exact to the seventh power."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(4)
    chosen = np.array(list(itertools.product(range(4), repeat=dim * batch)))
    x = nodes[chosen].reshape(-1, dim, batch)
    noise = 0.7 * (x @ x.swapaxes(1, 2) / batch - np.eye(dim))
    thirds = np.trace(np.linalg.matrix_power(noise, 3), axis1=1, axis2=2) / dim
    chances = (weights / weights.sum())[chosen].prod(axis=1)
    assert_allclose(rmt.wishart_third_moment(variance=0.7, dim=dim, batch_size=batch), chances @ thirds)


@pytest.mark.parametrize(("rank", "batch"), [(1, 2), (2, 1), (1, 3), (3, 1)])
def test_low_rank_fourth_moment_over_directions_of_the_plane(rank: int, batch: int) -> None:
    """All signs, and all directions on a grid of angles, of which the means of polynomials are exact."""
    terms, angles = rank * batch, np.arange(12) * math.pi / 12
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    projections = 2 * 0.3 * directions[:, :, None] * directions[:, None, :]
    signed = np.concatenate([projections, -projections])
    found = [
        np.trace(np.linalg.matrix_power(signed[list(chosen)].sum(axis=0) / batch, 4)) / 2
        for chosen in itertools.product(range(len(signed)), repeat=terms)
    ]
    expected = rmt.low_rank_fourth_moment(rank=rank, variance=0.3, dim=2, batch_size=batch)
    assert_allclose(np.mean(found), expected)


def test_a_spike_adds_its_square() -> None:
    found = rmt.wigner_second_moment(sigma=0.7, dim=5, diagonal=2.0, spike=-3.0)
    assert_allclose(found, 0.49 * 6 / 5 + 9 / 5)


@pytest.mark.parametrize("u", [2.3, -0.4, 0.3 + 0.7j])
def test_rank_one_transform_is_that_of_its_eigenvalues(u: complex) -> None:
    eigenvalues = np.array([1.7, 0, 0, 0, 0])
    assert_allclose(rmt.rank_one_stieltjes(u, spike=1.7, dim=5), np.mean(1 / (u - eigenvalues)))


@pytest.mark.parametrize(("s", "spike"), [(-0.3, 0.52), (0.45, 1.02)])
def test_the_inverse_solves_and_the_expansion_is_its_first_order(s: float, spike: float) -> None:
    z = rmt.rank_one_inverse(s, spike=spike, dim=120)
    assert_allclose(-rmt.rank_one_stieltjes(float(z), spike=spike, dim=120), s, rtol=1e-10)
    errors = [
        float(rmt.rank_one_inverse(s, spike=spike, dim=n) - rmt.rank_one_expansion(s, spike=spike, dim=n))
        for n in (200, 400)
    ]
    assert_allclose(errors[0] / errors[1], 4.0, rtol=0.02)


def test_overlap_is_the_integral_of_its_density() -> None:
    density = stats.beta(0.5, 5.5).pdf
    for x in (0.3, 1.0, 4.0):
        assert_allclose(rmt.overlap_cdf(x, dim=12), integrate.quad(density, 0, x / 12)[0], rtol=1e-7)
    assert_allclose(rmt.subspace_share(1, dim=12), stats.beta(0.5, 5.5).mean())


def test_axis_scatter_is_the_universal_one_for_gaussian_noise_and_first_order_far_away() -> None:
    args = {"sigma": 0.7, "dim": 90}
    assert_allclose(finite_size.axis_wigner_sd(1.1, **args), finite_size.additive_wigner_sd(1.1, **args))
    far = finite_size.axis_wigner_sd(1e6, diagonal=1.0, fourth_cumulant=-2.0, **args)
    assert_allclose(far, 0.7 / 90**0.5, rtol=1e-6)


@pytest.mark.slow
def test_axis_scatter_in_noise_of_signs_by_drawing_it() -> None:
    """Less than the universal one: an element on the spike has variance 1, others a fourth cumulant of -2."""
    rng, dim, draws = np.random.default_rng(5), 40, 3000
    signs = np.triu(rng.choice([-1.0, 1.0], size=(draws, dim, dim)))
    noise = 0.31 / dim**0.5 * (signs + np.triu(signs, 1).swapaxes(1, 2))
    noise[:, 0, 0] += 0.51
    found = np.linalg.eigvalsh(noise)[:, -1].std(ddof=1)
    law = {"sigma": 0.31, "dim": dim}
    assert_allclose(
        found, finite_size.axis_wigner_sd(0.51, diagonal=1.0, fourth_cumulant=-2.0, **law), rtol=0.05
    )
    assert found < 0.9 * finite_size.additive_wigner_sd(0.51, **law)


def test_rates() -> None:
    assert learning_rates.mean_square_descent(0.3, limit=0.3) == 0.0
    squares, tops = np.array([1.0, 3.0, 0.5]), np.array([2.0, 5.0, 1.0])
    rate = loss_change.mean_descent_limit(squares, tops)
    steps = loss_change.descent_bound(rate, squared_gradient=squares, sharpness=tops)
    assert_allclose(steps.mean(), 0.0, atol=1e-12)


def test_two_layer_bound_is_nearly_attained_where_the_parameters_are_many() -> None:
    assert batch_hessian.two_layer_rank_bound(1, 1, 2) == 3

    import torch

    rng, (inputs, hidden, classes) = np.random.default_rng(5), (9, 5, 2)
    weights = torch.from_numpy(rng.standard_normal(hidden * (inputs + classes)))
    x, labels = torch.from_numpy(rng.standard_normal((8, inputs))), torch.arange(8) % 2

    def loss(flat: torch.Tensor) -> torch.Tensor:
        first, last = (
            flat[: hidden * inputs].view(hidden, inputs),
            flat[hidden * inputs :].view(classes, hidden),
        )
        return torch.nn.functional.cross_entropy((x @ first.T).relu() @ last.T, labels)

    values = torch.linalg.eigvalsh(torch.autograd.functional.hessian(loss, weights)).abs()
    rank = int((values > 1e-10 * values.max()).sum())
    bound = batch_hessian.two_layer_rank_bound(8, hidden, classes)
    assert bound - 1 <= rank <= bound
