"""Laws of curvature: frames, and the projected routes against dense autograd."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from numpy.typing import ArrayLike
from scipy import stats
from torch import Tensor

from simulate.modules import softmax
from simulate.modules.projected_network import ProjectedNetwork
from simulate.networks import Mlp
from simulate.perceptrons import _relu, curvature
from simulate.perceptrons.confident import ConfidentMlp
from simulate.perceptrons.curvature import ProjectedMlp
from tests.simulate.dense_matrices import rng
from tests.simulate.small_perceptrons import (
    SCALES,
    WIDTHS,
    Problem,
    assert_same,
    dense,
    problem,
)

NET = problem(2)


# --- frames and scalars ---------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 5), (40, 9), (9000, 7)])
def test_haar_frame_is_the_signed_qr_factor_whichever_way_it_is_formed(rows: int, columns: int) -> None:
    """So that it is uniform."""
    orthogonal, upper = np.linalg.qr(rng().standard_normal((rows, columns)))
    frame = curvature.haar(rng(), rows, columns)
    assert_allclose(frame.numpy(), orthogonal * np.sign(np.diag(upper)), atol=1e-14)


def test_sparse_frames_have_signed_entries_of_one_size_per_column() -> None:
    source = rng()
    frames = torch.stack([curvature.sparse_frame(source, 900, 6) for _ in range(50)])
    filled = (frames != 0).sum(1)
    assert_allclose(frames.norm(dim=1).numpy(), 1, rtol=1e-14)
    assert_allclose(frames.abs().amax(1).numpy(), filled.double().rsqrt().numpy(), rtol=1e-14)
    assert abs(float(filled.double().mean()) - 30) < 5 * np.sqrt(30 / filled.numel())
    assert abs(float(frames.sign().sum())) < 5 * np.sqrt(float(filled.sum()))
    assert float((frames != 0).double().mean(0).std()) < 0.05  # no place is preferred


def test_empty_columns_are_drawn_again_not_filled() -> None:
    """1, 2, 3 or 4 of 4 entries, each there or not like a coin: 4, 6, 4 and 1 of 15."""
    source = rng()
    filled = torch.cat([(curvature.sparse_frame(source, 4, 4) != 0).sum(0) for _ in range(1000)])
    expected = 4000 * np.array([4, 6, 4, 1]) / 15
    assert stats.chisquare(torch.bincount(filled, minlength=5)[1:].numpy(), expected).pvalue > 1e-3


@pytest.mark.parametrize(("rows", "total"), [(5000, None), (5000, 9000), (20, None)])
def test_a_haar_frame_in_single_precision_is_orthonormal(rows: int, total: int | None) -> None:
    frame = curvature.haar(rng(), rows, 5, total=total, single=True)
    assert frame.dtype == torch.float32
    gram = frame.double().T @ frame.double() * (total or rows) / rows
    assert_allclose(gram, torch.eye(5), rtol=0, atol=3e-6 if total is None else 0.1)


def test_excess_and_spectral_norm_of_known_spectra() -> None:
    turn = curvature.haar(rng(), 3, 3)
    matrices = torch.stack(
        [turn @ torch.diag(torch.tensor(e).double()) @ turn.T for e in ([3, 0, -4], [1, 1, 1])]
    )
    assert_allclose(curvature.positive_excess(matrices).numpy(), [-1 / 5, np.sqrt(3)], rtol=1e-13)
    assert_allclose(curvature.positive_excess(1e-200 * matrices).numpy(), [-1 / 5, np.sqrt(3)], rtol=1e-13)
    assert_allclose(curvature.spectral_norm(matrices).numpy(), [4, 1], rtol=1e-13)


# --- projected curvature --------------------------------------------------------------------------


def of_layers(net: Problem, frame: Tensor) -> ProjectedNetwork:
    model = Mlp((net.x.shape[1], *map(len, net.weights)), rng=rng())
    for parameter, weight in zip(model.parameters(), net.weights, strict=True):
        parameter.data.copy_(weight)
    return ProjectedNetwork(model, net.x, net.labels, frame)


def along(net: Problem) -> ProjectedMlp:
    return ProjectedMlp(*net, net.frame())


ROUTES = {
    "perceptron": lambda net, frame: ProjectedMlp(*net, frame),
    "all samples near a tie": lambda net, frame: ConfidentMlp(*net, frame, near=len(net.x)),
    "any layers": of_layers,
}


each_depth = pytest.mark.parametrize("depth", WIDTHS)


@pytest.mark.parametrize("route", ROUTES)
@each_depth
@pytest.mark.parametrize(("alpha", "temperature"), SCALES)
def test_terms_in_all_coordinates_are_those_of_dense_differentiation(
    depth: int, alpha: float, temperature: float, route: str
) -> None:
    """With the identity as frame the projection is the full Hessian, split as the definition says."""
    net = problem(depth)
    found = ROUTES[route](net, torch.eye(net.size, dtype=torch.float64)).terms(alpha, temperature)
    for term, expected in zip((found.g_term, found.hessian), dense(depth, alpha, temperature), strict=True):
        assert_same(term, expected)


def test_a_frame_gives_the_matrix_along_its_columns() -> None:
    net, (_, hessian) = problem(3), dense(3, 1.3, 1.7)
    assert_same(along(net).terms(1.3, 1.7).hessian, net.frame().mT @ hessian @ net.frame())


@pytest.mark.parametrize("alpha", [0.3, 1.3, 8.0])
def test_derivatives_in_single_precision_are_right_to_a_millionth(alpha: float) -> None:
    """At every scale: the logits, which a large one makes larger still, keep their digits."""
    net = problem(3)
    single = ProjectedMlp(*net, net.frame(), dtype=torch.float32)
    whole = along(net)
    assert torch.equal(single.logits, whole.logits)
    for term, reference in zip(single.terms(alpha), whole.terms(alpha), strict=True):
        assert term.dtype == torch.float64 and not torch.equal(term, reference)
        assert_same(term, reference, 1e-6)


@pytest.mark.parametrize("signs", [-1.0, np.resize([1.0, -1.0, -1.0], WIDTHS[3][-1])])
def test_signs_of_outputs_are_those_of_the_rows_of_the_last_layer(signs: ArrayLike) -> None:
    net, sign = problem(3), torch.as_tensor(signs).expand(WIDTHS[3][-1])[:, None]
    weights, rows = (*net.weights[:-1], sign * net.weights[-1]), net.weights[-1].numel()
    frame = net.frame().clone()
    frame[-rows:] *= sign.expand_as(net.weights[-1]).reshape(-1, 1)
    whole = ProjectedMlp(weights, *net[1:], frame)
    for term, reference in zip(along(net).mirrored(signs).terms(1.3), whole.terms(1.3), strict=True):
        assert_same(term, reference)


def test_many_samples_are_taken_in_parts_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    net = problem(3)
    whole = along(net).second_derivatives
    monkeypatch.setattr(_relu, "_CHUNK_ELEMENTS", 400)
    assert_same(along(net).second_derivatives, whole, 1e-15)


@each_depth
def test_many_networks_have_the_terms_of_each_to_a_millionth_in_single_precision(depth: int) -> None:
    nets = [problem(depth)._replace(weights=problem(depth, seed=seed).weights) for seed in range(3)]
    stacks, frame = (
        [torch.stack(w) for w in zip(*(net.weights for net in nets), strict=True)],
        nets[0].frame(),
    )
    found, single = (
        curvature.projected_mlps(stacks, *nets[0][1:], frame, dtype=t) for t in (torch.float64, torch.float32)
    )
    for i, net in enumerate(nets):
        for term, other in zip(found, ProjectedMlp(*net, frame).terms(), strict=True):
            assert_allclose(term[i], other, rtol=1e-11, atol=1e-14)
    for term, reference in zip(single, found, strict=True):
        assert term.dtype == torch.float64
        assert float((term - reference).norm()) <= 1e-6 * float(reference.norm())
    assert not torch.equal(single.g_term, found.g_term)


@each_depth
@pytest.mark.parametrize("alpha", [0.25, 2.0, 8.0])
def test_scaling_by_powers_of_two_is_exact_to_the_bit(depth: int, alpha: float) -> None:
    """The path by homogeneity against a fresh pass at the scaled weights."""
    net = problem(depth)
    at_alpha = along(net).terms(alpha, 2.0)
    fresh = ProjectedMlp(*net.scaled(alpha), net.frame()).terms(1.0, 2.0)
    assert torch.equal(at_alpha.g_term, fresh.g_term)
    assert torch.equal(at_alpha.h_term, fresh.h_term)


@pytest.mark.parametrize("shift", [0.0, 30.0, 700.0])
def test_residuals_of_confident_predictions_keep_their_digits(shift: float) -> None:
    logits, labels = torch.tensor([[shift, 0.0, 0.5]]).double(), torch.tensor([0])
    residuals = softmax.residuals(logits, labels)
    others = np.exp([-shift, 0.5 - shift]) / (1 + np.exp(-shift) + np.exp(0.5 - shift))
    assert_allclose(residuals[0].numpy(), [-others.sum(), *others], rtol=1e-14)


@pytest.mark.cuda
def test_cuda_gives_the_numbers_of_the_cpu() -> None:
    net = problem(3)
    there = net._replace(weights=tuple(w.to("cuda") for w in net.weights))
    frame = curvature.haar(rng(9), net.size, 4, device="cuda")
    here = along(net).terms(1.3, 1.7).hessian
    assert_same(ProjectedMlp(*there, frame).terms(1.3, 1.7).hessian.cpu(), here)


# --- errors ---------------------------------------------------------------------------------------


def test_some_rows_of_a_frame_have_the_law_they_have_in_the_whole() -> None:
    """First two moments of R'R and of a product of entries, against slices of whole frames."""
    rows, columns, total, draws = 6, 3, 14, 800
    drawn = rng(5)

    def moments(frames: torch.Tensor) -> torch.Tensor:
        gram = frames.mT @ frames
        first, second, last = gram.diagonal(dim1=1, dim2=2).T
        return torch.stack([first, last, first**2, gram[:, 0, 1] ** 2, first * second], 1)

    part = moments(torch.stack([curvature.haar(drawn, rows, columns, total=total) for _ in range(draws)]))
    whole = moments(torch.stack([curvature.haar(drawn, total, columns)[:rows] for _ in range(draws)]))

    spread = torch.sqrt((part.var(0) + whole.var(0)) / draws)
    assert bool(((part.mean(0) - whole.mean(0)).abs() < 4 * spread).all())
    assert abs(part.mean(0)[0] - rows / total) < 4 * spread[0]
