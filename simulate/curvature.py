r"""Exact loss curvature of small and middle-sized networks, in float64 on the device of the weights.

Setting: softmax cross-entropy at temperature T, mean over N samples, K classes; logits z, probabilities
p = softmax(z / T), flat parameters theta of length P (the layers in order, each matrix row by row); every
weight may be multiplied by alpha > 0 first. The Hessian is H = G + Ht:

| name | matrix |
|---|---|
| G-term | G = mean J' (diag(p) - p p') J / T^2, J the Jacobian of the logits |
| H-term | Ht = mean sum_k (p - onehot)_k (second derivative of z_k) / T |

Three routes: `ProjectedMlp` (bias-free ReLU perceptrons in the coordinates of a frame, every alpha and T from
one pass), `full_space_norms` (the same networks, all P coordinates, without a P x P matrix), and automatic
differentiation, which shares no derivative code with the two (`latent_loss_hessian`, `per_sample_hessians`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional

from simulate.networks import Weights, activation_function, mlp_logits

__all__ = [
    "FullSpaceNorms",
    "ProbePieces",
    "ProjectedMlp",
    "Terms",
    "algorithm_1_probes",
    "excess",
    "flat_mlp_initial",
    "flat_mlp_size",
    "full_space_norms",
    "full_space_spectral_norms",
    "haar",
    "latent_gradient",
    "latent_loss_hessian",
    "per_sample_gauss_newtons",
    "per_sample_hessians",
    "sparse_frame",
    "spectral_norm",
]

_CHUNK_ELEMENTS = 1 << 20
"""Largest intermediate of the second derivatives, in numbers: 8 MiB stay near the cache, more was slower."""


# --- frames and scalars ---------------------------------------------------------------------------


def haar(rng: np.random.Generator, rows: int, columns: int, *, device: str = "cpu") -> Tensor:
    """Orthonormal frame, uniform on the Stiefel manifold: float64 of shape (rows, columns).

    The orthogonal factor of a normal matrix whose triangular factor has a positive diagonal; drawn on the CPU
    whatever the device.

    Raises
    ------
    ValueError
        If not 1 <= columns <= rows.

    Examples
    --------
    >>> frame = haar(np.random.default_rng(0), 500, 3)
    >>> bool(torch.allclose(frame.T @ frame, torch.eye(3, dtype=torch.float64), atol=1e-14))
    True
    """
    _check_frame(rows, columns)
    normal = torch.from_numpy(rng.standard_normal((rows, columns))).to(device)
    # a tall normal matrix is well conditioned, so its Gram matrix loses nothing; a square one may be anything
    return _cholesky_qr(normal) if rows >= 8 * columns else _signed_qr(normal)


def sparse_frame(rng: np.random.Generator, rows: int, columns: int, *, device: str = "cpu") -> Tensor:
    """Sparse random frame: entries +-1 with probability 1/sqrt(rows), else 0; then columns of unit norm.

    The columns are independent, hence only nearly orthogonal. A column without any entry is drawn again.
    Stored densely, float64 of shape (rows, columns).

    Raises
    ------
    ValueError
        If not 1 <= columns <= rows.

    Examples
    --------
    >>> sparse_frame(np.random.default_rng(0), 400, 3).square().sum().round().item()
    3.0
    """
    _check_frame(rows, columns)
    frame = np.zeros((rows, columns))
    for column in range(columns):
        count = 0
        while count == 0:
            count = int(rng.binomial(rows, rows**-0.5))
        places = rng.choice(rows, count, replace=False, shuffle=False)
        frame[places, column] = rng.choice([-1.0, 1.0], count) / math.sqrt(count)
    return torch.from_numpy(frame).to(device)


def excess(matrix: Tensor) -> Tensor:
    """Trace over Frobenius norm of square matrices of shape (..., n, n), at any scale that float64 can hold.

    Raises
    ------
    ValueError
        If a matrix is zero or not finite.

    Examples
    --------
    >>> excess(torch.eye(4, dtype=torch.float64)).item()
    2.0
    """
    largest = matrix.abs().amax((-2, -1), keepdim=True)
    if not bool(((largest > 0) & largest.isfinite()).all()):
        raise ValueError(
            f"matrix must be finite and non-zero, got largest entries {largest.flatten().tolist()}"
        )
    unit = matrix / largest  # squares of small entries would underflow
    return unit.diagonal(dim1=-2, dim2=-1).sum(-1) / torch.linalg.matrix_norm(unit)


def spectral_norm(matrix: Tensor) -> Tensor:
    """Largest absolute eigenvalue of symmetric matrices of shape (..., n, n).

    Examples
    --------
    >>> spectral_norm(torch.diag(torch.tensor([1.0, -3.0]))).item()
    3.0
    """
    return torch.linalg.eigvalsh(matrix).abs().amax(-1)


# --- curvature in the coordinates of a frame ------------------------------------------------------


class Terms(NamedTuple):
    """The two parts of the Hessian, each (..., d, d)."""

    g_term: Tensor
    h_term: Tensor

    @property
    def hessian(self) -> Tensor:
        """Their sum."""
        return self.g_term + self.h_term


class ProjectedMlp:
    """Bias-free ReLU perceptron seen through a frame: theta = alpha theta_0 + R t, derivatives in t at t = 0.

    The derivatives of the logits are taken once, at the weights given. Within a linear piece the logits are
    linear in each layer, so that a positive factor on all weights multiplies them by a power of that factor;
    every (alpha, T) then costs one weighted sum.

    Parameters
    ----------
    weights
        Matrices of shape (out, in), see `mlp_weights`.
    x, labels
        Inputs (N, in) and classes (N,).
    frame
        R of shape (P, d), any matrix; its rows are ordered as the flat parameters.

    Attributes
    ----------
    logits
        (N, K), at the weights given.
    jacobian
        (N, K, d), derivative of the logits in t.

    Raises
    ------
    ValueError
        If shapes disagree or a label is not a class.

    Examples
    --------
    >>> from simulate.networks import mlp_weights
    >>> rng = np.random.default_rng(0)
    >>> weights, frame = mlp_weights(rng, (6, 5, 4)), haar(rng, 50, 3)
    >>> net = ProjectedMlp(weights, rng.standard_normal((7, 6)), np.arange(7) % 4, frame)
    >>> net.terms(alpha=[0.5, 1.0, 2.0]).hessian.shape
    torch.Size([3, 3, 3])
    """

    def __init__(self, weights: Weights, x: Any, labels: Any, frame: Tensor) -> None:
        weights, x, self.labels = _problem(weights, x, labels)
        hidden, masks, self.logits = _forward(weights, x)
        directions = _unflatten(frame.to(weights[0]), weights)
        tangents = _tangents(weights, hidden, masks, directions)
        self.depth = len(weights)
        self.jacobian = tangents[-1].transpose(0, 1).contiguous()
        # one entry per ordered pair of layers; the second derivative is this plus its transpose
        self._half = _half_second_derivatives(_signals(weights, masks, self.logits), directions, tangents)
        self._contrasts = _contrasts(self.jacobian, self.logits)

    @property
    def second_derivatives(self) -> Tensor:
        """(N, K, d, d), second derivative of the logits in t, at the weights given."""
        return self._half + self._half.mT

    def terms(self, alpha: ArrayLike = 1.0, temperature: ArrayLike = 1.0) -> Terms:
        """Both terms of the Hessian, (..., d, d), for scales and temperatures that broadcast to shape (...).

        A G-term below the range of float64 comes out as zero: see `scaled_g_term`.

        Raises
        ------
        ValueError
            If `alpha` or `temperature` is not positive, or the scaled logits overflow.
        """
        g_term, log_scale = self.scaled_g_term(alpha, temperature)
        return Terms(g_term * log_scale.exp()[..., None, None], self._h_term(alpha, temperature))

    def scaled_g_term(self, alpha: ArrayLike = 1.0, temperature: ArrayLike = 1.0) -> tuple[Tensor, Tensor]:
        """G-term as a matrix (..., d, d) and a logarithm (...): G = exp(logarithm) matrix, however small.

        Raises
        ------
        ValueError
            If `alpha` or `temperature` is not positive, or the scaled logits overflow.
        """
        scale, temperature, logits = self._scaled_logits(alpha, temperature)
        factor, log_scale = _softmax_factor(logits, self._contrasts)
        factor = factor.flatten(-3, -2)
        jacobian_scale = _power(scale, self.depth - 1) / temperature
        g_term = factor.mT @ factor * (jacobian_scale**2 / len(self.logits))[..., None, None]
        return (g_term + g_term.mT) / 2, log_scale

    def _h_term(self, alpha: ArrayLike, temperature: ArrayLike) -> Tensor:
        scale, temperature, logits = self._scaled_logits(alpha, temperature)
        weighted = _residuals(logits, self.labels).flatten(-2) @ self._half.flatten(0, 1).flatten(1)
        # alpha^(L - 2) as a quotient: L = 1 has no second derivative, but its power would be -1
        h_scale = _power(scale, self.depth) / scale**2 / temperature / len(self.logits)
        h_term = weighted.unflatten(-1, self._half.shape[-2:]) * h_scale[..., None, None]
        return h_term + h_term.mT

    def _scaled_logits(self, alpha: ArrayLike, temperature: ArrayLike) -> tuple[Tensor, Tensor, Tensor]:
        scale, temp = (
            torch.as_tensor(_positive(name, value), device=self.logits.device)
            for name, value in (("alpha", alpha), ("temperature", temperature))
        )
        scale, temp = torch.broadcast_tensors(scale, temp)
        logits = _power(scale, self.depth)[..., None, None] * self.logits / temp[..., None, None]
        return scale, temp, _finite(logits, alpha)


# --- curvature in all coordinates -----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FullSpaceNorms:
    """Exact traces and Frobenius norms of the Hessian and its terms in all P coordinates.

    `excess_g` is trace over norm of the G-term, right even where both underflow; `inner` is <G, Ht>_F.
    """

    trace_g: float
    norm_g: float
    excess_g: float
    norm_h_term: float
    inner: float

    @property
    def trace_hessian(self) -> float:
        """Tr H; the H-term has no entry within a layer, hence no diagonal."""
        return self.trace_g

    @property
    def norm_hessian(self) -> float:
        """|H|_F."""
        return math.sqrt(max(self.norm_g**2 + 2 * self.inner + self.norm_h_term**2, 0.0))

    @property
    def excess_hessian(self) -> float:
        """Tr H / |H|_F."""
        return self.trace_hessian / self.norm_hessian


def full_space_norms(
    weights: Weights, x: Any, labels: Any, alpha: float = 1.0, temperature: float = 1.0
) -> FullSpaceNorms:
    """Exact norms of the loss Hessian of a bias-free ReLU perceptron of any depth, without a P x P matrix.

    G through its NK x NK Gram matrix. The block of layers l < m of the H-term is a mean of N products of
    three small arrays, so its norm needs N x N Gram matrices only.

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class, `alpha` or `temperature` is not positive, or G is zero.

    Examples
    --------
    >>> from simulate.networks import mlp_weights
    >>> rng = np.random.default_rng(0)
    >>> norms = full_space_norms(mlp_weights(rng, (6, 5, 4)), rng.standard_normal((7, 6)), np.arange(7) % 4)
    >>> norms.trace_hessian / norms.norm_hessian == norms.excess_hessian
    True
    """
    net = _FullMlp(weights, x, labels, alpha, temperature)
    gram, scale = net.g_gram(), math.exp(net.log_scale)
    trace, norm = gram.trace().item(), torch.linalg.matrix_norm(gram).item()
    if norm == 0:
        raise ValueError("weights must move the logits at some input, got a G-term of zero")
    return FullSpaceNorms(
        trace_g=scale * trace,
        norm_g=scale * norm,
        excess_g=trace / norm,
        norm_h_term=net.h_term_norm(),
        inner=scale * net.inner_product(),
    )


def full_space_spectral_norms(
    weights: Weights, x: Any, labels: Any, alpha: float = 1.0, temperature: float = 1.0
) -> tuple[float, float]:
    """Spectral norms of the G-term and of the H-term in all P coordinates, by Lanczos to rounding.

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class, or `alpha` or `temperature` is not positive.
    """
    net = _FullMlp(weights, x, labels, alpha, temperature)
    gram = net.g_gram()
    g_norm = _lanczos_norm(lambda v: gram @ v, len(gram), gram.device)
    return math.exp(net.log_scale) * g_norm, _lanczos_norm(net.h_term_product, net.size, gram.device)


class _FullMlp:
    """Forward pass, backward signals and softmax factors of a scaled network; G as (1/N) sum of rows f f'.

    Row (n, k) of layer l of the factor of G is the outer product of `rows[l][n, k]` and `hidden[l][n]`; its
    square carries exp(-log_scale).
    """

    def __init__(self, weights: Weights, x: Any, labels: Any, alpha: float, temperature: float) -> None:
        weights, x, labels = _problem(weights, x, labels)
        scale, temperature = float(_positive("alpha", alpha)), float(_positive("temperature", temperature))
        self.weights = tuple(scale * weight for weight in weights)
        self.hidden, self.masks, logits = _forward(self.weights, x)
        logits = _finite(logits / temperature, alpha)
        self.samples, self.size = len(x), sum(weight.numel() for weight in weights)
        signals = [signal / temperature for signal in _signals(self.weights, self.masks, logits)]
        residuals = _residuals(logits, labels)
        self.errors = [(residuals[:, None] @ signal).squeeze(1) for signal in signals]
        factors = [_softmax_factor(logits, _contrasts(signal, logits)) for signal in signals]
        self.rows, self.log_scale = [rows for rows, _ in factors], float(factors[0][1])

    def g_gram(self) -> Tensor:
        """(NK, NK) matrix with the non-zero eigenvalues of exp(-log_scale) G."""
        size, classes, _ = self.rows[0].shape
        gram = self.rows[0].new_zeros(size, classes, size, classes)
        for rows, hidden in zip(self.rows, self.hidden, strict=True):
            flat = rows.flatten(0, 1)
            gram += (flat @ flat.T).view_as(gram).mul_((hidden @ hidden.T)[:, None, :, None])
        return gram.view(size * classes, size * classes) / size

    def h_term_norm(self) -> float:
        """|Ht|_F: twice the blocks below the diagonal, each through three N x N Gram matrices."""
        square = sum(
            (_gram(self.errors[upper]) * _gram(transport.flatten(1)) * _gram(self.hidden[lower])).sum()
            for upper in range(1, len(self.weights))
            for lower, transport in self._transports(upper)
        )
        return math.sqrt(2 * max(float(square), 0.0)) / self.samples

    def inner_product(self) -> float:
        """exp(-log_scale) <G, Ht>_F, from f' Ht f summed over the rows f of the factor of G."""
        total = 0.0
        for upper in range(1, len(self.weights)):
            reach = torch.einsum("nkc,mc->nmk", self.rows[upper], self.errors[upper])
            back = self.hidden[upper][:, None, :]
            for lower in reversed(range(upper)):
                # (n, m, c): the input of layer `upper` on sample n, sent back on the linear piece of sample m
                back = (back if lower == upper - 1 else back @ self.weights[lower + 1]) * self.masks[lower]
                middle = torch.einsum("nmc,nkc->nmk", back, self.rows[lower])
                total += float((reach * middle).sum(-1).mul(_gram(self.hidden[lower])).sum())
        return 2 * total / self.samples**2

    def h_term_product(self, flat: Tensor) -> Tensor:
        """Ht times a vector of length P: the tangents of the layer inputs and of the backward signals."""
        directions = _unflatten(flat[:, None], self.weights)
        directions = [direction.squeeze(-1) for direction in directions]
        product = [torch.zeros_like(weight) for weight in self.weights]
        tangent = torch.zeros_like(self.hidden[0])
        for i, mask in enumerate(self.masks):
            tangent = mask * (tangent @ self.weights[i].T + self.hidden[i] @ directions[i].T)
            product[i + 1] += self.errors[i + 1].T @ tangent
        turned = torch.zeros_like(self.errors[-1])
        for i in reversed(range(len(self.masks))):
            turned = self.masks[i] * (turned @ self.weights[i + 1] + self.errors[i + 1] @ directions[i + 1])
            product[i] += turned.T @ self.hidden[i]
        return torch.cat([block.flatten() for block in product]) / self.samples

    def _transports(self, upper: int) -> list[tuple[int, Tensor]]:
        """Derivative of the input of layer `upper` in the pre-activations of each layer below, per sample.

        The nearest one is diagonal: only its diagonal (N, width) is kept, which has the same inner products.
        """
        transports = [(upper - 1, self.masks[upper - 1])]
        if upper == 1:  # the widest layer, and nothing below it: spare its diagonal matrices
            return transports
        matrix = torch.diag_embed(self.masks[upper - 1])
        for lower in reversed(range(upper - 1)):
            matrix = (matrix @ self.weights[lower + 1]) * self.masks[lower][:, None, :]
            transports.append((lower, matrix))
        return transports


# --- automatic differentiation --------------------------------------------------------------------


def latent_loss_hessian(
    weights: Weights, x: Any, labels: Any, frame: Tensor, *, alpha: float = 1.0, temperature: float = 1.0
) -> Tensor:
    """Hessian (d, d) of the loss at alpha theta + R t in t at t = 0, by automatic differentiation.

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class, or `alpha` or `temperature` is not positive.
    """
    loss = _latent_loss(weights, x, labels, frame, alpha, temperature)
    return _hessian(loss)(_origin(frame, weights))


def latent_gradient(
    weights: Weights, x: Any, labels: Any, frame: Tensor, *, alpha: float = 1.0, temperature: float = 1.0
) -> Tensor:
    """Gradient (d,) of the loss at alpha theta + R t in t at t = 0, by automatic differentiation.

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class, or `alpha` or `temperature` is not positive.
    """
    loss = _latent_loss(weights, x, labels, frame, alpha, temperature)
    return torch.func.grad(loss)(_origin(frame, weights))


def flat_mlp_size(widths: Sequence[int]) -> int:
    """Number of parameters of a perceptron with biases.

    Examples
    --------
    >>> flat_mlp_size((16, 8, 10))
    226
    """
    return sum((fan_in + 1) * out for fan_in, out in pairwise(widths))


def flat_mlp_initial(rng: np.random.Generator, widths: Sequence[int]) -> Tensor:
    """Flat parameters of a perceptron: per layer, weights of variance 1/fan_in, then biases, all zero."""
    blocks = [
        np.concatenate([rng.standard_normal(fan_in * out) / math.sqrt(fan_in), np.zeros(out)])
        for fan_in, out in pairwise(widths)
    ]
    return torch.from_numpy(np.concatenate(blocks))


def per_sample_hessians(
    widths: Sequence[int], theta: Tensor, x: Any, labels: Any, activation: str = "tanh"
) -> Tensor:
    """Hessian of the cross-entropy of every single sample, (N, P, P), of a small perceptron with biases.

    Parameters
    ----------
    widths
        Units of the input, of each hidden layer and of the output.
    theta
        Flat parameters (P,), ordered as `flat_mlp_initial` draws them.
    x, labels
        Inputs (N, in) and classes (N,).
    activation
        Name of the activation of the hidden layers.

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class or the activation is unknown.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta = flat_mlp_initial(rng, (3, 2, 4))
    >>> per_sample_hessians((3, 2, 4), theta, rng.standard_normal((5, 3)), [0, 1, 2, 3, 0]).shape
    torch.Size([5, 20, 20])
    """
    inputs, targets = _flat_problem(widths, theta, x, labels)
    logits = _flat_logits(widths, activation)

    def loss(theta: Tensor, x: Tensor, target: Tensor) -> Tensor:
        return -(functional.log_softmax(logits(theta, x), -1) * target).sum()

    return torch.func.vmap(_hessian(loss), in_dims=(None, 0, 0), chunk_size=64)(theta, inputs, targets)


def per_sample_gauss_newtons(
    widths: Sequence[int], theta: Tensor, x: Any, labels: Any, activation: str = "tanh"
) -> Tensor:
    """Gauss-Newton matrix of every single sample, (N, P, P); the labels are checked, and do not matter.

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class or the activation is unknown.
    """
    inputs, _ = _flat_problem(widths, theta, x, labels)
    logits = _flat_logits(widths, activation)
    jacobians = torch.func.vmap(torch.func.jacrev(logits), in_dims=(None, 0))(theta, inputs)
    values = logits(theta, inputs)
    rows, log_scale = _softmax_factor(values, _contrasts(jacobians, values))
    return rows.mT @ rows * log_scale.exp()


class ProbePieces(NamedTuple):
    """Per probe v: mean_i |H_i v|^2, |mean_i H_i v|^2 and (v' mean_i H_i v)^2, each of shape (probes,)."""

    mean_square: Tensor
    square_of_mean: Tensor
    quadratic_form_squared: Tensor


def algorithm_1_probes(hessians: Tensor, probes: Any) -> ProbePieces:
    """The pieces from which estimators of the variance of per-sample Hessians are put together.

    Parameters
    ----------
    hessians
        (N, P, P), symmetric.
    probes
        Unit vectors (probes, P).

    Raises
    ------
    ValueError
        If shapes disagree or a probe has not norm one.

    Examples
    --------
    >>> hessians = torch.stack([torch.diag(torch.tensor([1.0, 3.0])), torch.diag(torch.tensor([3.0, 3.0]))])
    >>> [piece.item() for piece in algorithm_1_probes(hessians, [[1.0, 0.0]])]
    [5.0, 4.0, 4.0]
    """
    probes = torch.as_tensor(probes, dtype=hessians.dtype, device=hessians.device)
    if hessians.ndim != 3 or probes.ndim != 2 or hessians.shape[1:] != (probes.shape[1],) * 2:
        shapes = f"{tuple(probes.shape)} and {tuple(hessians.shape)}"
        raise ValueError(f"probes must be (m, P) for hessians (N, P, P), got {shapes}")
    if not torch.allclose(probes.norm(dim=1), probes.new_ones(()), rtol=1e-6):
        raise ValueError(f"probes must have norm 1, got {probes.norm(dim=1).tolist()}")
    squares = sum((part @ probes.T).square().sum((0, 1)) for part in hessians.split(64))
    mean = probes @ hessians.mean(0)
    return ProbePieces(
        torch.as_tensor(squares) / len(hessians), mean.square().sum(1), (mean * probes).sum(1).square()
    )


# --- checks ---------------------------------------------------------------------------------------


def _check_frame(rows: int, columns: int) -> None:
    if not 1 <= columns <= rows:
        raise ValueError(f"columns must be between 1 and rows = {rows}, got {columns}")


def _positive(name: str, value: ArrayLike) -> np.ndarray:
    array = np.asarray(value, dtype=np.float64)
    if not np.all(np.isfinite(array) & (array > 0)):
        raise ValueError(f"{name} must be finite and positive, got {value}")
    return array


def _finite(logits: Tensor, alpha: ArrayLike) -> Tensor:
    if not bool(logits.isfinite().all()):
        raise ValueError(f"alpha must keep the scaled logits finite, got {alpha}")
    return logits


def _problem(weights: Weights, x: Any, labels: Any) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
    _check_weights(weights)
    device = weights[0].device
    inputs = torch.as_tensor(x, dtype=torch.float64, device=device)
    _check_inputs(inputs, weights[0].shape[1])
    classes = _classes(labels, len(inputs), weights[-1].shape[0], device)
    return tuple(weight.detach().to(torch.float64) for weight in weights), inputs, classes


def _check_weights(weights: Weights) -> None:
    shapes = [tuple(weight.shape) for weight in weights]
    if not shapes or any(len(s) != 2 for s in shapes) or any(a[0] != b[1] for a, b in pairwise(shapes)):
        raise ValueError(f"weights must be matrices (out, in) that follow each other, got {shapes}")


def _check_inputs(inputs: Tensor, width: int) -> None:
    if inputs.ndim != 2 or len(inputs) == 0 or inputs.shape[1] != width:
        raise ValueError(f"x must be of shape (N, {width}) with N >= 1, got {tuple(inputs.shape)}")
    if not bool(inputs.isfinite().all()):
        raise ValueError("x must be finite, got NaN or infinity")


def _classes(labels: Any, samples: int, classes: int, device: torch.device) -> Tensor:
    values = torch.as_tensor(labels, device=device)
    if classes < 2:
        raise ValueError(f"the last width must be at least 2 classes, got {classes}")
    if values.shape != (samples,) or values.is_floating_point():
        raise ValueError(
            f"labels must be {samples} integers, got {values.dtype} of shape {tuple(values.shape)}"
        )
    if int(values.min()) < 0 or int(values.max()) >= classes:
        raise ValueError(
            f"labels must be between 0 and {classes - 1}, got {int(values.min())}..{int(values.max())}"
        )
    return values.long()


def _flat_problem(widths: Sequence[int], theta: Tensor, x: Any, labels: Any) -> tuple[Tensor, Tensor]:
    if theta.shape != (flat_mlp_size(widths),):
        raise ValueError(f"theta must be of shape ({flat_mlp_size(widths)},), got {tuple(theta.shape)}")
    inputs = torch.as_tensor(x, dtype=theta.dtype, device=theta.device)
    _check_inputs(inputs, widths[0])
    classes = _classes(labels, len(inputs), widths[-1], theta.device)
    return inputs, functional.one_hot(classes, widths[-1]).to(theta.dtype)


# --- linear algebra -------------------------------------------------------------------------------


def _cholesky_qr(matrix: Tensor) -> Tensor:
    # in place and by parts that stay in the cache; partial sums also keep the rounding of long sums down
    parts = matrix.split(4096)
    upper = torch.linalg.cholesky(torch.stack([part.T @ part for part in parts]).sum(0), upper=True)
    identity = torch.eye(len(upper), dtype=upper.dtype, device=upper.device)
    inverse = torch.linalg.solve_triangular(upper, identity, upper=True)
    for part in parts:
        part.copy_(part @ inverse)
    return matrix


def _signed_qr(matrix: Tensor) -> Tensor:
    orthogonal, upper = torch.linalg.qr(matrix)
    return orthogonal * upper.diagonal().sign()


def _gram(rows: Tensor) -> Tensor:
    return rows @ rows.T


def _lanczos_norm(product: Callable[[Tensor], Tensor], size: int, device: torch.device) -> float:
    from scipy.sparse.linalg import LinearOperator, eigsh

    def matvec(vector: np.ndarray) -> np.ndarray:
        return product(torch.from_numpy(vector.ravel()).to(device)).cpu().numpy()

    start = np.random.default_rng(0).standard_normal(size)  # fixed: the answer does not depend on it
    if not matvec(start).any():  # Lanczos has nowhere to go from here
        return 0.0
    operator = LinearOperator((size, size), matvec=matvec, dtype=np.float64)  # pyright: ignore[reportCallIssue]
    return float(abs(eigsh(operator, k=1, which="LM", v0=start, return_eigenvectors=False)[0]))


def _power(base: Tensor, exponent: int) -> Tensor:
    # products, not pow: exact for powers of two on every machine
    return functools.reduce(torch.mul, [base] * exponent, torch.ones_like(base))


# --- softmax without cancellation -----------------------------------------------------------------


def _contrasts(jacobian: Tensor, logits: Tensor) -> Tensor:
    """Rows (N, K, d) minus the row of the likeliest class: all that the softmax covariance sees."""
    top = logits.argmax(-1)
    return jacobian - jacobian.gather(1, top[:, None, None].expand(-1, 1, jacobian.shape[-1]))


def _softmax_factor(logits: Tensor, contrasts: Tensor) -> tuple[Tensor, Tensor]:
    """Rows F and logarithm s such that exp(s) F_n' F_n = J_n' (diag(p) - p p') J_n on every sample.

    With q the probabilities of all but the likeliest class, whose own is 1 - sum q = t, and D the contrasts,
    F_k = sqrt(q_k) (D_k - sum_j q_j D_j / (1 + sqrt(t))). No small number arises as a difference of large
    ones, and exp(s), the largest q of all, is taken out first, so that the largest rows never underflow.
    """
    log_p = functional.log_softmax(logits, -1)
    top = torch.zeros_like(log_p, dtype=torch.bool).scatter_(-1, logits.argmax(-1, keepdim=True), value=True)
    log_q = log_p.masked_fill(top, -math.inf)
    log_scale = log_q.amax((-2, -1))
    roots = ((log_q - log_scale[..., None, None]) / 2).exp()
    top_root = (log_p.amax(-1) / 2).exp()
    mean = log_q.exp()[..., None, :] @ contrasts / (1 + top_root)[..., None, None]
    return roots[..., None] * (contrasts - mean), log_scale


def _residuals(logits: Tensor, labels: Tensor) -> Tensor:
    """Probabilities minus one-hot labels, (..., N, K); the label's entry is minus the sum of the others."""
    index = labels[:, None].expand(*logits.shape[:-1], 1)
    others = functional.softmax(logits, -1).scatter(-1, index, 0.0)
    return others.scatter(-1, index, -others.sum(-1, keepdim=True))


# --- derivatives of a ReLU perceptron -------------------------------------------------------------


def _forward(weights: Weights, x: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """Inputs of every layer (N, in), slopes of the hidden units (N, out) and logits (N, K)."""
    hidden, masks = [x], []
    for weight in weights[:-1]:
        before = hidden[-1] @ weight.T
        masks.append((before > 0).to(before.dtype))
        hidden.append(before * masks[-1])
    return hidden, masks, hidden[-1] @ weights[-1].T


def _signals(weights: Weights, masks: list[Tensor], logits: Tensor) -> list[Tensor]:
    """Derivatives of the logits in the pre-activations of each layer, (N, K, out)."""
    signal = torch.diag_embed(torch.ones_like(logits))
    signals = [signal]
    for weight, mask in zip(reversed(weights[1:]), reversed(masks), strict=True):
        signal = (signal @ weight) * mask[:, None, :]
        signals.append(signal)
    return signals[::-1]


def _unflatten(frame: Tensor, weights: Weights) -> list[Tensor]:
    """The rows of a frame (P, d) as one array (out, in, d) per layer."""
    sizes = [weight.numel() for weight in weights]
    if frame.ndim != 2 or len(frame) != sum(sizes):
        raise ValueError(f"frame must be of shape ({sum(sizes)}, d), got {tuple(frame.shape)}")
    return [part.view(*weight.shape, -1) for part, weight in zip(frame.split(sizes), weights, strict=True)]


def _tangents(
    weights: Weights, hidden: list[Tensor], masks: list[Tensor], directions: list[Tensor]
) -> list[Tensor]:
    """Derivatives of each layer's output along the d directions, (out, N, d); units first saves a copy."""
    tangents: list[Tensor] = []
    for i, direction in enumerate(directions):
        tangent = hidden[i] @ direction
        if i > 0:
            tangent += (weights[i] @ tangents[-1].flatten(1)).view_as(tangent)
        if i < len(masks):
            tangent *= masks[i].T[:, :, None]
        tangents.append(tangent)
    return tangents


def _half_second_derivatives(
    signals: list[Tensor], directions: list[Tensor], tangents: list[Tensor]
) -> Tensor:
    """(N, K, d, d): direction i moves a layer, direction j the layers below it; summed over layers."""
    classes, samples, columns = tangents[-1].shape
    half = tangents[-1].new_zeros(samples, classes * columns, columns)
    for signal, direction, tangent in zip(signals[1:], directions[1:], tangents[:-1], strict=True):
        inputs = direction.shape[1]
        turned = direction.transpose(1, 2).reshape(len(direction), -1)  # (out, d in)
        below = tangent.transpose(0, 1)  # (N, in, d)
        step = max(1, _CHUNK_ELEMENTS // (classes * columns * inputs))
        for start in range(0, samples, step):
            part = slice(start, start + step)
            sent = (signal[part].flatten(0, 1) @ turned).view(-1, classes * columns, inputs)
            half[part].baddbmm_(sent, below[part])
    return half.view(samples, classes, columns, columns)


def _latent_loss(
    weights: Weights, x: Any, labels: Any, frame: Tensor, alpha: float, temperature: float
) -> Callable[[Tensor], Tensor]:
    weights, inputs, classes = _problem(weights, x, labels)
    directions = _unflatten(frame.to(weights[0]), weights)
    scale, temperature = float(_positive("alpha", alpha)), float(_positive("temperature", temperature))

    def loss(latent: Tensor) -> Tensor:
        moved = [
            scale * weight + direction @ latent for weight, direction in zip(weights, directions, strict=True)
        ]
        return functional.cross_entropy(mlp_logits(moved, inputs) / temperature, classes)

    return loss


def _hessian(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    # reverse over reverse: forward mode makes torch build its rules through an interface that it deprecates
    return torch.func.jacrev(torch.func.grad(loss))


def _origin(frame: Tensor, weights: Weights) -> Tensor:
    return torch.zeros(frame.shape[1], dtype=torch.float64, device=weights[0].device)


def _flat_logits(widths: Sequence[int], activation: str) -> Callable[[Tensor, Tensor], Tensor]:
    nonlinearity = activation_function(activation)
    sizes = [size for fan_in, out in pairwise(widths) for size in (fan_in * out, out)]

    def logits(theta: Tensor, x: Tensor) -> Tensor:
        parts = theta.split(sizes)
        for i, (weight, bias) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
            x = (nonlinearity(x) if i else x) @ weight.view(len(bias), -1).T + bias
        return x

    return logits
