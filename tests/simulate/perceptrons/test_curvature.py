"""Laws of curvature: frames, and the projected route against dense autograd and high precision."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats
from torch import Tensor

from simulate.modules import softmax
from simulate.perceptrons import _relu, curvature
from simulate.perceptrons.curvature import ProjectedMlp
from tests.simulate.small_perceptrons import (
    SCALES,
    WIDTHS,
    Problem,
    assert_same,
    dense_g_term,
    dense_hessian,
    flat,
    problem,
)

NET = problem(2)


# --- frames and scalars ---------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 5), (40, 9), (80, 10), (9000, 7)])
def test_haar_frames_are_orthonormal(rows: int, columns: int) -> None:
    frame = curvature.haar(np.random.default_rng(0), rows, columns)
    assert frame.shape == (rows, columns) and frame.dtype == torch.float64
    assert_allclose((frame.T @ frame).numpy(), np.eye(columns), atol=5e-15)


def test_haar_frame_is_the_signed_qr_factor_whichever_way_it_is_formed() -> None:
    normal = np.random.default_rng(0).standard_normal((400, 12))
    orthogonal, upper = np.linalg.qr(normal)
    frame = curvature.haar(np.random.default_rng(0), 400, 12)
    assert_allclose(frame.numpy(), orthogonal * np.sign(np.diag(upper)), atol=1e-14)


@pytest.mark.parametrize(("rows", "columns"), [(4, 2), (16, 2)])
def test_haar_frames_are_uniform(rows: int, columns: int) -> None:
    """E R = 0, E R R' = (d/P) I and E R_ij^4 = 3/(P (P + 2)), each within 5 standard errors."""
    rng = np.random.default_rng(0)
    frames = np.stack([curvature.haar(rng, rows, columns).numpy() for _ in range(3000)])

    def within(samples: np.ndarray, expected: Any) -> bool:
        error = samples.std(0) / np.sqrt(len(samples))
        return bool(np.all(np.abs(samples.mean(0) - expected) < 5 * error))

    assert within(frames, 0)
    assert within(frames @ frames.transpose(0, 2, 1), columns / rows * np.eye(rows))
    assert within(frames**4, 3 / rows / (rows + 2))


def test_sparse_frames_have_signed_entries_of_one_size_per_column() -> None:
    rng = np.random.default_rng(0)
    frames = torch.stack([curvature.sparse_frame(rng, 900, 6) for _ in range(50)])
    filled = (frames != 0).sum(1)
    assert_allclose(frames.norm(dim=1).numpy(), 1, rtol=1e-14)
    assert_allclose(frames.abs().amax(1).numpy(), filled.double().rsqrt().numpy(), rtol=1e-14)
    assert abs(float(filled.double().mean()) - 30) < 5 * np.sqrt(30 / filled.numel())
    assert abs(float(frames.sign().sum())) < 5 * np.sqrt(float(filled.sum()))
    assert float((frames != 0).double().mean(0).std()) < 0.05  # no place is preferred


def test_sparse_columns_are_never_empty() -> None:
    rng = np.random.default_rng(0)
    assert all(float(curvature.sparse_frame(rng, 2, 2).norm(dim=0).min()) > 0.99 for _ in range(100))


def test_empty_columns_are_drawn_again_not_filled() -> None:
    """1, 2, 3 or 4 of 4 entries, each there or not like a coin: 4, 6, 4 and 1 of 15."""
    rng = np.random.default_rng(0)
    filled = torch.cat([(curvature.sparse_frame(rng, 4, 4) != 0).sum(0) for _ in range(1000)])
    expected = 4000 * np.array([4, 6, 4, 1]) / 15
    assert stats.chisquare(torch.bincount(filled, minlength=5)[1:].numpy(), expected).pvalue > 1e-3


@pytest.mark.parametrize(("rows", "columns", "total"), [(5000, 12, None), (5000, 12, 9000), (20, 5, None)])
def test_a_haar_frame_in_single_precision_is_the_same(rows: int, columns: int, total: int | None) -> None:
    single, whole = (
        curvature.haar(np.random.default_rng(0), rows, columns, total=total, single=single)
        for single in (True, False)
    )
    assert single.dtype == torch.float32
    assert_allclose(single, whole, rtol=0, atol=1e-6)


@pytest.mark.parametrize("draw", [curvature.haar, curvature.sparse_frame])
def test_frames_need_at_least_as_many_rows_as_columns(draw: Any) -> None:
    with pytest.raises(ValueError, match="columns must be between 1 and rows = 3, got 4"):
        draw(np.random.default_rng(0), 3, 4)


def test_excess_and_spectral_norm_of_known_spectra() -> None:
    turn = curvature.haar(np.random.default_rng(0), 3, 3)
    matrices = torch.stack(
        [turn @ torch.diag(torch.tensor(e).double()) @ turn.T for e in ([3, 0, -4], [1, 1, 1])]
    )
    assert_allclose(curvature.positive_excess(matrices).numpy(), [-1 / 5, np.sqrt(3)], rtol=1e-13)
    assert_allclose(curvature.positive_excess(1e-200 * matrices).numpy(), [-1 / 5, np.sqrt(3)], rtol=1e-13)
    assert_allclose(curvature.spectral_norm(matrices).numpy(), [4, 1], rtol=1e-13)


@pytest.mark.parametrize("entry", [0.0, np.inf, np.nan])
def test_excess_of_a_matrix_without_scale_is_an_error(entry: float) -> None:
    with pytest.raises(ValueError, match="matrix must be finite and non-zero"):
        curvature.positive_excess(torch.full((2, 2), entry))


# --- projected curvature --------------------------------------------------------------------------


@pytest.mark.parametrize("depth", WIDTHS)
@pytest.mark.parametrize(("alpha", "temperature"), SCALES)
def test_terms_in_all_coordinates_are_those_of_dense_differentiation(
    depth: int, alpha: float, temperature: float
) -> None:
    """With the identity as frame the projection is the full Hessian, split as the definition says."""
    net = problem(depth)
    terms = ProjectedMlp(*net, torch.eye(net.size, dtype=torch.float64)).terms(alpha, temperature)
    assert_same(terms.g_term, dense_g_term(net, alpha, temperature))
    assert_same(terms.hessian, dense_hessian(net, alpha, temperature))


def test_projection_is_the_limit_of_differences_of_the_gradient() -> None:
    net, step = problem(3).scaled(1.3), 1e-5
    frame = net.frame()

    def gradient(shift: Tensor) -> Tensor:
        parts = (flat(net) + frame @ shift).split([w.numel() for w in net.weights])
        moved = [part.view_as(w) for part, w in zip(parts, net.weights, strict=True)]
        return frame.T @ net._replace(weights=tuple(moved)).objective(temperature=0.7).gradient()

    shifts = step * torch.eye(frame.shape[1], dtype=torch.float64)
    differences = torch.stack([(gradient(s) - gradient(-s)) / (2 * step) for s in shifts])
    assert_same(ProjectedMlp(*net, frame).terms(1.0, 0.7).hessian, differences, 1e-8)


@pytest.mark.parametrize("alpha", [0.3, 1.3, 8.0])
def test_derivatives_in_single_precision_are_right_to_a_millionth(alpha: float) -> None:
    """At every scale: the logits, which a large one makes larger still, keep their digits."""
    net = problem(3)
    single = ProjectedMlp(*net, net.frame(), dtype=torch.float32)
    whole = ProjectedMlp(*net, net.frame())
    assert torch.equal(single.logits, whole.logits)
    for term, reference in zip(single.terms(alpha), whole.terms(alpha), strict=True):
        assert term.dtype == torch.float64 and not torch.equal(term, reference)
        assert_same(term, reference, 1e-6)


def test_many_samples_are_taken_in_parts_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    net = problem(3)
    whole = ProjectedMlp(*net, net.frame()).second_derivatives
    monkeypatch.setattr(_relu, "_CHUNK_ELEMENTS", 400)
    assert_same(ProjectedMlp(*net, net.frame()).second_derivatives, whole, 1e-15)


@pytest.mark.parametrize("depth", WIDTHS)
@pytest.mark.parametrize("alpha", [0.25, 2.0, 8.0])
def test_scaling_by_powers_of_two_is_exact_to_the_bit(depth: int, alpha: float) -> None:
    """The path by homogeneity against a fresh pass at the scaled weights."""
    net = problem(depth)
    at_alpha = ProjectedMlp(*net, net.frame()).terms(alpha, 2.0)
    fresh = ProjectedMlp(*net.scaled(alpha), net.frame()).terms(1.0, 2.0)
    assert torch.equal(at_alpha.g_term, fresh.g_term)
    assert torch.equal(at_alpha.h_term, fresh.h_term)


def softmax_reference(net: Problem, frame: Tensor, alpha: float) -> tuple[Any, Any]:
    """Largest weight and G-term from the definition in 6000 digits, from logits and Jacobian at alpha = 1."""
    projected = ProjectedMlp(*net, frame)
    samples, classes, columns = projected.jacobian.shape
    degree = len(net.weights)
    with mpmath.workdps(6000):
        total, largest = mpmath.zeros(columns), mpmath.mpf(0)
        for n in range(samples):
            weights = [
                mpmath.exp(mpmath.mpf(alpha) ** degree * mpmath.mpf(float(z))) for z in projected.logits[n]
            ]
            p = mpmath.matrix([w / mpmath.fsum(weights) for w in weights])
            jacobian = mpmath.matrix(projected.jacobian[n].tolist())
            total += jacobian.T * (mpmath.diag(list(p)) - p * p.T) * jacobian
            largest = max([largest, *sorted(p)[: classes - 1]])
        scaled = total / samples * mpmath.mpf(alpha) ** (2 * degree - 2)
        return mpmath.log(largest), scaled / largest


@pytest.mark.parametrize("alpha", [1.0, 2.5, 6.0, 40.0])
def test_g_term_keeps_its_digits_near_one_hot_probabilities(alpha: float) -> None:
    """At alpha = 40 the definition would be pure rounding: every p (1 - p) is below 1e-4000."""
    net = problem(3, samples=3, seed=2)
    frame = net.frame()
    log_scale, reference = softmax_reference(net, frame, alpha)
    matrix, actual = ProjectedMlp(*net, frame).scaled_g_term(alpha)
    expected = np.array(reference.tolist(), dtype=float)
    assert alpha < 40 or log_scale < -10_000
    assert_allclose(float(actual), float(log_scale), rtol=1e-12)
    assert float((matrix - torch.from_numpy(expected)).norm()) < 1e-9 * np.linalg.norm(expected)
    assert float(torch.linalg.eigvalsh(matrix)[0]) > -1e-14 * float(matrix.trace())
    assert float(curvature.positive_excess(matrix)) >= 1 - 1e-12


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
    frame = curvature.haar(np.random.default_rng(9), net.size, 4, device="cuda")
    here = ProjectedMlp(*net, net.frame()).terms(1.3, 1.7).hessian
    assert_same(ProjectedMlp(*there, frame).terms(1.3, 1.7).hessian.cpu(), here)


# --- errors ---------------------------------------------------------------------------------------


def test_projection_errors_name_the_argument() -> None:
    projected = ProjectedMlp(*NET, NET.frame())
    with pytest.raises(ValueError, match=r"alpha must be finite and positive, got \[1.0, 0.0\]"):
        projected.terms([1.0, 0.0])
    with pytest.raises(ValueError, match="temperature must be finite and positive, got nan"):
        projected.terms(1.0, float("nan"))
    with pytest.raises(ValueError, match=r"alpha must keep the scaled logits finite, got 1e\+200"):
        projected.scaled_g_term(1e200)


def test_network_errors_name_the_argument() -> None:
    first, second = NET.weights
    with pytest.raises(ValueError, match="the last width must be at least 2 classes, got 1"):
        ProjectedMlp([first, second[:1]], NET.x, 0 * NET.labels, NET.frame())


def test_some_rows_of_a_frame_have_the_law_they_have_in_the_whole() -> None:
    """First two moments of R'R and of a product of entries, against slices of whole frames."""
    rows, columns, total, draws = 6, 3, 14, 4000
    rng = np.random.default_rng(5)

    def moments(frames: torch.Tensor) -> torch.Tensor:
        gram = frames.mT @ frames
        first, second, last = gram.diagonal(dim1=1, dim2=2).T
        return torch.stack([first, last, first**2, gram[:, 0, 1] ** 2, first * second], 1)

    part = moments(torch.stack([curvature.haar(rng, rows, columns, total=total) for _ in range(draws)]))
    whole = moments(torch.stack([curvature.haar(rng, total, columns)[:rows] for _ in range(draws)]))

    spread = torch.sqrt((part.var(0) + whole.var(0)) / draws)
    assert bool(((part.mean(0) - whole.mean(0)).abs() < 4 * spread).all())
    assert abs(part.mean(0)[0] - rows / total) < 4 * spread[0]


@pytest.mark.parametrize("total", [5, 9])
def test_rows_left_out_must_be_none_or_as_many_as_columns(total: int) -> None:
    with pytest.raises(ValueError, match="total must leave out no rows or at least 3"):
        curvature.haar(np.random.default_rng(1), 8, 3, total=total)
