"""Laws of curvature: the exact routes against dense autograd, differences and high precision."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor
from torch.nn import functional

from simulate import curvature
from simulate.curvature import ProjectedMlp, full_space_norms, latent_gradient, latent_loss_hessian
from simulate.networks import mlp_logits, mlp_weights

WIDTHS = {1: (6, 5), 2: (6, 7, 5), 3: (6, 7, 6, 5), 4: (5, 6, 5, 6, 4)}
SCALES = [(1.0, 1.0), (0.4, 1.0), (1.3, 1.7), (2.5, 4.0)]


class Problem(NamedTuple):
    weights: tuple[Tensor, ...]
    x: np.ndarray
    labels: np.ndarray

    @property
    def size(self) -> int:
        return sum(w.numel() for w in self.weights)

    def scaled(self, alpha: float) -> Problem:
        return self._replace(weights=tuple(alpha * w for w in self.weights))

    def frame(self, columns: int = 4) -> Tensor:
        return curvature.haar(np.random.default_rng(9), self.size, columns)


def problem(depth: int, samples: int = 11, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    widths = WIDTHS[depth]
    labels = rng.integers(0, widths[-1], samples)
    return Problem(mlp_weights(rng, widths), rng.standard_normal((samples, widths[0])), labels)


def flat_logits(net: Problem) -> Any:
    sizes = [w.numel() for w in net.weights]

    def logits(theta: Tensor) -> Tensor:
        parts = zip(theta.split(sizes), net.weights, strict=True)
        return mlp_logits([part.view_as(w) for part, w in parts], torch.from_numpy(net.x))

    return logits


def flat(net: Problem) -> Tensor:
    return torch.cat([w.flatten() for w in net.weights])


def dense_hessian(net: Problem, alpha: float, temperature: float) -> Any:
    """Hessian of the loss in all parameters, by torch.autograd alone."""
    logits, labels = flat_logits(net), torch.from_numpy(net.labels)
    return torch.autograd.functional.hessian(
        lambda theta: functional.cross_entropy(logits(theta) / temperature, labels), alpha * flat(net)
    )


def dense_g_term(net: Problem, alpha: float, temperature: float) -> Tensor:
    """mean J' (diag(p) - p p') J / T^2 with a dense Jacobian."""
    logits, theta = flat_logits(net), alpha * flat(net)
    jacobian = torch.autograd.functional.jacobian(logits, theta)
    p = torch.softmax(logits(theta) / temperature, -1)
    covariance = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    return torch.einsum("nkp,nkc,ncq->pq", jacobian, covariance, jacobian) / len(p) / temperature**2


def assert_same(actual: Tensor, expected: Any, tolerance: float = 1e-12) -> None:
    """Relative to the Frobenius norm."""
    assert actual.shape == expected.shape
    assert float((actual - expected).norm()) <= tolerance * float(expected.norm())


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


@pytest.mark.parametrize("draw", [curvature.haar, curvature.sparse_frame])
@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (3, 0)])
def test_frames_need_at_least_as_many_rows_as_columns(draw: Any, rows: int, columns: int) -> None:
    with pytest.raises(ValueError, match=f"columns must be between 1 and rows = 3, got {columns}"):
        draw(np.random.default_rng(0), rows, columns)


def test_excess_and_spectral_norm_of_known_spectra() -> None:
    turn = curvature.haar(np.random.default_rng(0), 3, 3)
    matrices = torch.stack(
        [turn @ torch.diag(torch.tensor(e).double()) @ turn.T for e in ([3, 0, -4], [1, 1, 1])]
    )
    assert_allclose(curvature.excess(matrices).numpy(), [-1 / 5, np.sqrt(3)], rtol=1e-13)
    assert_allclose(curvature.excess(1e-200 * matrices).numpy(), [-1 / 5, np.sqrt(3)], rtol=1e-13)
    assert_allclose(curvature.spectral_norm(matrices).numpy(), [4, 1], rtol=1e-13)


@pytest.mark.parametrize("entry", [0.0, np.inf, np.nan])
def test_excess_of_a_matrix_without_scale_is_an_error(entry: float) -> None:
    with pytest.raises(ValueError, match="matrix must be finite and non-zero"):
        curvature.excess(torch.full((2, 2), entry))


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


@pytest.mark.parametrize("depth", WIDTHS)
def test_projection_agrees_with_the_latent_hessian(depth: int) -> None:
    net = problem(depth)
    frame = torch.from_numpy(np.random.default_rng(4).standard_normal((net.size, 5)))
    projected = ProjectedMlp(*net, frame).terms(1.3, 0.7).hessian
    assert_same(projected, latent_loss_hessian(*net, frame, alpha=1.3, temperature=0.7))
    assert_same(projected, frame.T @ dense_hessian(net, 1.3, 0.7) @ frame)


def test_logit_derivatives_are_those_of_autograd_class_by_class() -> None:
    net = problem(3)
    frame, logits = net.frame(), flat_logits(net)
    projected = ProjectedMlp(*net, frame)
    origin = torch.zeros(frame.shape[1], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda t: logits(flat(net) + frame @ t), origin)
    assert_same(projected.jacobian, jacobian)
    for n, k in ((0, 0), (3, 4), (10, 2)):
        dense = torch.autograd.functional.hessian(
            lambda t, n=n, k=k: logits(flat(net) + frame @ t)[n, k], origin
        )
        assert_same(projected.second_derivatives[n, k], dense)


def test_many_samples_are_taken_in_parts_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    net = problem(3)
    whole = ProjectedMlp(*net, net.frame()).second_derivatives
    monkeypatch.setattr(curvature, "_CHUNK_ELEMENTS", 400)
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


@pytest.mark.parametrize("alpha", [0.5, 4.0])
def test_temperature_can_undo_the_scale(alpha: float) -> None:
    """At T = alpha^L the probabilities are the old ones, and the Hessian alpha^-2 times the old one."""
    net = problem(3)
    projected = ProjectedMlp(*net, net.frame())
    assert torch.equal(projected.terms(alpha, alpha**3).hessian * alpha**2, projected.terms().hessian)


def test_sweeps_are_single_evaluations_side_by_side() -> None:
    net = problem(3)
    projected = ProjectedMlp(*net, net.frame())
    sweep = projected.terms([[0.5], [2.0]], [1.0, 3.0, 5.0])
    assert sweep.g_term.shape == (2, 3, 4, 4)
    single = projected.terms(2.0, 5.0)
    assert_same(sweep.g_term[1, 2], single.g_term, 1e-15)
    assert_same(sweep.h_term[1, 2], single.h_term, 1e-15)


def test_labels_enter_the_h_term_only() -> None:
    net = problem(3)
    one = ProjectedMlp(*net, net.frame()).terms()
    other = ProjectedMlp(net.weights, net.x, (net.labels + 1) % 5, net.frame()).terms()
    assert torch.equal(one.g_term, other.g_term)
    assert not torch.allclose(one.h_term, other.h_term)


@pytest.mark.parametrize("depth", WIDTHS)
def test_h_term_has_no_entry_within_a_layer(depth: int) -> None:
    net = problem(depth)
    h_term = ProjectedMlp(*net, torch.eye(net.size, dtype=torch.float64)).terms(1.3).h_term
    start = 0
    for weight in net.weights:
        end = start + weight.numel()
        assert bool((h_term[start:end, start:end] == 0).all())
        start = end
    assert (depth == 1) == bool((h_term == 0).all())


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
    assert float(curvature.excess(matrix)) >= 1 - 1e-12


def test_scaled_g_term_survives_where_the_g_term_is_zero_in_float64() -> None:
    projected = ProjectedMlp(*problem(3, samples=3), problem(3).frame())
    assert bool((projected.terms(2e3).g_term == 0).all())
    matrix, log_scale = projected.scaled_g_term(2e3)
    assert float(log_scale) < -800 and float(curvature.excess(matrix)) >= 1 - 1e-12


@pytest.mark.parametrize("shift", [0.0, 30.0, 700.0])
def test_residuals_of_confident_predictions_keep_their_digits(shift: float) -> None:
    logits, labels = torch.tensor([[shift, 0.0, 0.5]]).double(), torch.tensor([0])
    residuals = curvature._residuals(logits, labels)
    others = np.exp([-shift, 0.5 - shift]) / (1 + np.exp(-shift) + np.exp(0.5 - shift))
    assert_allclose(residuals[0].numpy(), [-others.sum(), *others], rtol=1e-14)


# --- full space -----------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", WIDTHS)
@pytest.mark.parametrize(("alpha", "temperature"), SCALES)
def test_full_space_norms_are_those_of_the_dense_matrices(
    depth: int, alpha: float, temperature: float
) -> None:
    net = problem(depth)
    hessian, g_term = dense_hessian(net, alpha, temperature), dense_g_term(net, alpha, temperature)
    h_term = hessian - g_term
    norms = full_space_norms(*net, alpha, temperature)
    scale = float(hessian.norm())
    assert_allclose(norms.trace_g, float(g_term.trace()), rtol=1e-12)
    assert_allclose(norms.norm_g, float(g_term.norm()), rtol=1e-12)
    assert_allclose(norms.norm_h_term, float(h_term.norm()), rtol=1e-11, atol=1e-14 * scale)
    assert_allclose(norms.inner, float((g_term * h_term).sum()), rtol=1e-11, atol=1e-14 * scale**2)
    assert_allclose(norms.trace_hessian, float(hessian.trace()), rtol=1e-12)
    assert_allclose(norms.norm_hessian, scale, rtol=1e-12)
    assert_allclose(norms.excess_g, float(curvature.excess(g_term)), rtol=1e-12)
    assert_allclose(norms.excess_hessian, float(curvature.excess(hessian)), rtol=1e-12)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_full_space_spectral_norms_are_those_of_the_dense_matrices(depth: int) -> None:
    net = problem(depth)
    hessian, g_term = dense_hessian(net, 1.3, 1.7), dense_g_term(net, 1.3, 1.7)
    expected = [float(curvature.spectral_norm(m)) for m in (g_term, hessian - g_term)]
    assert_allclose(curvature.full_space_spectral_norms(*net, 1.3, 1.7), expected, rtol=1e-11)


def test_a_linear_model_has_no_h_term_in_full_space() -> None:
    norms = full_space_norms(*problem(1))
    assert norms.norm_h_term == norms.inner == 0
    assert curvature.full_space_spectral_norms(*problem(1))[1] == 0


def test_full_space_excess_survives_underflow_and_agrees_with_the_projection() -> None:
    net = problem(3, samples=3)
    frame = torch.eye(net.size, dtype=torch.float64)
    norms = full_space_norms(*net, alpha=2e3)
    matrix, _ = ProjectedMlp(*net, frame).scaled_g_term(2e3)
    assert norms.norm_g == 0
    assert_allclose(norms.excess_g, float(curvature.excess(matrix)), rtol=1e-9)


# --- automatic differentiation --------------------------------------------------------------------


def test_latent_gradient_and_hessian_are_limits_of_differences() -> None:
    net, step = problem(3), 1e-5
    frame, logits, labels = net.frame(), flat_logits(net), torch.from_numpy(net.labels)

    def moved(shift: Tensor) -> Problem:
        theta = (1.3 * flat(net) + frame @ shift).split([w.numel() for w in net.weights])
        return net._replace(weights=tuple(t.view_as(w) for t, w in zip(theta, net.weights, strict=True)))

    def loss(shift: Tensor) -> float:
        return float(functional.cross_entropy(logits(flat(moved(shift))) / 0.7, labels))

    shifts = step * torch.eye(frame.shape[1], dtype=torch.float64)
    gradient = [(loss(s) - loss(-s)) / (2 * step) for s in shifts]
    assert_allclose(latent_gradient(*net, frame, alpha=1.3, temperature=0.7).numpy(), gradient, rtol=1e-7)
    gradients = [
        [latent_gradient(*moved(sign * s), frame, temperature=0.7) for sign in (1, -1)] for s in shifts
    ]
    differences = torch.stack([(plus - minus) / (2 * step) for plus, minus in gradients])
    assert_same(latent_loss_hessian(*net, frame, alpha=1.3, temperature=0.7), differences, 1e-8)


@pytest.mark.parametrize(
    ("widths", "activation"), [((4, 3, 5), "tanh"), ((4, 6, 3, 3), "gelu"), ((4, 3), "relu")]
)
def test_per_sample_hessians_average_to_the_hessian_of_the_mean_loss(
    widths: tuple[int, ...], activation: str
) -> None:
    rng = np.random.default_rng(0)
    theta = torch.from_numpy(0.5 * rng.standard_normal(curvature.flat_mlp_size(widths)))
    x, labels = (
        torch.from_numpy(rng.standard_normal((70, 4))),
        torch.from_numpy(rng.integers(0, widths[-1], 70)),
    )
    layers = [(torch.nn.Linear(i, o, dtype=torch.float64)) for i, o in pairwise(widths)]
    act = {"tanh": torch.nn.Tanh(), "gelu": torch.nn.GELU(), "relu": torch.nn.ReLU()}[activation]
    stack = torch.nn.Sequential(*[m for layer in layers for m in (layer, act)][:-1])
    sizes = [p.numel() for p in stack.parameters()]

    def loss(theta: Tensor) -> Tensor:
        parts = zip(stack.named_parameters(), theta.split(sizes), strict=True)
        values = {name: part.view_as(p) for (name, p), part in parts}
        return functional.cross_entropy(torch.func.functional_call(stack, values, x), labels)

    hessians = curvature.per_sample_hessians(widths, theta, x, labels, activation)
    assert hessians.shape == (70, len(theta), len(theta))
    assert_same(hessians.mean(0), torch.autograd.functional.hessian(loss, theta))
    single = curvature.per_sample_hessians(widths, theta, x[3:4], labels[3:4], activation)
    assert_same(hessians[3], single[0])


def test_per_sample_gauss_newtons_are_what_the_logits_contribute() -> None:
    """Equal to the Hessian for a linear model; else to J' (diag(p) - p p') J, J by differences."""
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((6, 4)), rng.integers(0, 3, 6)
    linear = torch.from_numpy(rng.standard_normal(15))
    assert_same(
        curvature.per_sample_gauss_newtons((4, 3), linear, x, labels),
        curvature.per_sample_hessians((4, 3), linear, x, labels),
    )
    widths, step = (4, 2, 3), 1e-5
    theta = torch.from_numpy(rng.standard_normal(curvature.flat_mlp_size(widths)))

    def logits(t: np.ndarray) -> np.ndarray:
        hidden = np.tanh(x @ t[:8].reshape(2, 4).T + t[8:10])
        return hidden @ t[10:16].reshape(3, 2).T + t[16:]

    base = theta.numpy()
    jacobian = np.stack([(logits(base + s) - logits(base - s)) / (2 * step) for s in step * np.eye(19)], -1)
    p = np.exp(logits(base)) / np.exp(logits(base)).sum(1, keepdims=True)
    expected = np.einsum("nkp,nk,nkq->npq", jacobian, p, jacobian)
    mean = np.einsum("nk,nkp->np", p, jacobian)
    expected -= mean[:, :, None] * mean[:, None, :]
    actual = curvature.per_sample_gauss_newtons(widths, theta, x, labels)
    assert_same(actual, torch.from_numpy(expected), 1e-8)


def test_flat_networks_start_with_lecun_weights_and_zero_biases() -> None:
    theta = curvature.flat_mlp_initial(np.random.default_rng(0), (100, 50, 20))
    assert len(theta) == curvature.flat_mlp_size((100, 50, 20)) == 6070
    first, first_bias, second, second_bias = theta.split([5000, 50, 1000, 20])
    assert not first_bias.any() and not second_bias.any()
    assert abs(float(first.square().mean()) * 100 - 1) < 5 * np.sqrt(2 / 5000)
    assert abs(float(second.square().mean()) * 50 - 1) < 5 * np.sqrt(2 / 1000)


def test_probe_pieces_are_the_quadratic_forms_they_are_named_after() -> None:
    rng = np.random.default_rng(0)
    raw = torch.from_numpy(rng.standard_normal((70, 6, 6)))
    hessians = raw + raw.mT
    probes = curvature.haar(rng, 6, 6).T
    pieces = curvature.algorithm_1_probes(hessians, probes)
    mean, v = hessians.mean(0), probes[2]
    assert_allclose(float(pieces.mean_square[2]), float((hessians @ v).square().sum(1).mean()), rtol=1e-13)
    assert_allclose(float(pieces.square_of_mean[2]), float(v @ mean @ mean @ v), rtol=1e-12)
    assert_allclose(float(pieces.quadratic_form_squared[2]), float(v @ mean @ v) ** 2, rtol=1e-12)
    # an orthonormal basis of probes gives the Frobenius norms
    assert_allclose(float(pieces.mean_square.sum()), float(hessians.square().sum() / 70), rtol=1e-13)
    assert_allclose(float(pieces.square_of_mean.sum()), float(mean.square().sum()), rtol=1e-13)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_gives_the_numbers_of_the_cpu() -> None:
    net = problem(3)
    there = net._replace(weights=tuple(w.to("cuda") for w in net.weights))
    frame = curvature.haar(np.random.default_rng(9), net.size, 4, device="cuda")
    here = ProjectedMlp(*net, net.frame()).terms(1.3, 1.7).hessian
    assert_same(ProjectedMlp(*there, frame).terms(1.3, 1.7).hessian.cpu(), here)
    assert_same(latent_loss_hessian(*there, frame).cpu(), latent_loss_hessian(*net, net.frame()))
    assert_allclose(full_space_norms(*there).norm_hessian, full_space_norms(*net).norm_hessian, rtol=1e-12)
    norms = curvature.full_space_spectral_norms(*there)
    assert_allclose(norms, curvature.full_space_spectral_norms(*net), rtol=1e-11)


# --- errors ---------------------------------------------------------------------------------------

NET = problem(2)
FLAT = torch.zeros(curvature.flat_mlp_size((4, 3)), dtype=torch.float64)
UNIT = np.eye(3)


@pytest.mark.parametrize("route", [full_space_norms, curvature.full_space_spectral_norms])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((NET.x[:, :3], NET.labels), r"x must be of shape \(N, 6\) with N >= 1, got \(11, 3\)"),
        ((NET.x[:0], NET.labels[:0]), r"x must be of shape \(N, 6\) with N >= 1, got \(0, 6\)"),
        ((NET.x * np.nan, NET.labels), "x must be finite"),
        ((NET.x, NET.labels[:5]), r"labels must be 11 integers, got torch.int64 of shape \(5,\)"),
        ((NET.x, NET.labels * 1.0), "labels must be 11 integers, got torch.float64"),
        ((NET.x, NET.labels + 1), r"labels must be between 0 and 4, got 1\.\.5"),
        ((NET.x, NET.labels - 1), r"labels must be between 0 and 4, got -1"),
        ((NET.x, NET.labels, 0.0), "alpha must be finite and positive, got 0.0"),
        ((NET.x, NET.labels, 1.0, -2.0), "temperature must be finite and positive, got -2.0"),
        ((NET.x, NET.labels, 1e160), r"alpha must keep the scaled logits finite, got 1e\+160"),
    ],
)
def test_full_space_errors_name_the_argument(route: Any, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        route(NET.weights, *arguments)


def test_a_network_that_cannot_move_has_no_excess() -> None:
    with pytest.raises(ValueError, match="weights must move the logits at some input, got a G-term of zero"):
        full_space_norms(NET.weights, 0 * NET.x, NET.labels)


def test_projection_errors_name_the_argument() -> None:
    projected = ProjectedMlp(*NET, NET.frame())
    with pytest.raises(ValueError, match=r"frame must be of shape \(77, d\), got \(76, 2\)"):
        ProjectedMlp(*NET, torch.ones(76, 2))
    with pytest.raises(ValueError, match=r"alpha must be finite and positive, got \[1.0, 0.0\]"):
        projected.terms([1.0, 0.0])
    with pytest.raises(ValueError, match="temperature must be finite and positive, got nan"):
        projected.terms(1.0, float("nan"))
    with pytest.raises(ValueError, match=r"alpha must keep the scaled logits finite, got 1e\+200"):
        projected.scaled_g_term(1e200)


@pytest.mark.parametrize("route", [latent_gradient, latent_loss_hessian])
def test_latent_errors_name_the_argument(route: Any) -> None:
    with pytest.raises(ValueError, match=r"frame must be of shape \(77, d\), got \(76, 2\)"):
        route(*NET, torch.ones(76, 2))
    with pytest.raises(ValueError, match="alpha must be finite and positive, got inf"):
        route(*NET, NET.frame(), alpha=float("inf"))
    with pytest.raises(ValueError, match="temperature must be finite and positive, got 0"):
        route(*NET, NET.frame(), temperature=0)


@pytest.mark.parametrize("route", [curvature.per_sample_hessians, curvature.per_sample_gauss_newtons])
def test_per_sample_errors_name_the_argument(route: Any) -> None:
    with pytest.raises(ValueError, match=r"theta must be of shape \(15,\), got \(14,\)"):
        route((4, 3), FLAT[1:], np.ones((2, 4)), [0, 1])
    with pytest.raises(ValueError, match=r"x must be of shape \(N, 4\)"):
        route((4, 3), FLAT, np.ones((2, 5)), [0, 1])
    with pytest.raises(ValueError, match=r"labels must be between 0 and 2, got 0\.\.3"):
        route((4, 3), FLAT, np.ones((2, 4)), [0, 3])
    with pytest.raises(ValueError, match="activation must be one of"):
        route((4, 3), FLAT, np.ones((2, 4)), [0, 1], "swish")


def test_network_errors_name_the_argument() -> None:
    first, second = NET.weights
    with pytest.raises(ValueError, match=r"weights must be matrices .*, got \[\(7, 6\), \(7, 6\)\]"):
        full_space_norms([first, first], NET.x, NET.labels)
    with pytest.raises(ValueError, match=r"weights must be matrices .*, got \[\]"):
        latent_gradient([], NET.x, NET.labels, NET.frame())
    with pytest.raises(ValueError, match="the last width must be at least 2 classes, got 1"):
        full_space_norms([first, second[:1]], NET.x, 0 * NET.labels)


def test_probe_errors_name_the_argument() -> None:
    hessians = torch.ones(2, 3, 3, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"probes must be \(m, P\) for hessians \(N, P, P\), got \(3,\)"):
        curvature.algorithm_1_probes(hessians, UNIT[0])
    with pytest.raises(ValueError, match=r"probes must be \(m, P\) .* \(3, 3\) and \(2, 3, 2\)"):
        curvature.algorithm_1_probes(hessians[:, :, :2], UNIT)
    with pytest.raises(ValueError, match=r"probes must have norm 1, got \[2.0"):
        curvature.algorithm_1_probes(hessians, 2 * UNIT)
