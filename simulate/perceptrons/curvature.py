r"""Exact loss curvature of small and middle-sized networks, in float64 on the device of the weights.

Setting: softmax cross-entropy at temperature T, mean over N samples, K classes; logits z, probabilities
p = softmax(z / T), flat parameters theta of length P (the layers in order, each matrix row by row); every
weight may be multiplied by alpha > 0 first. The Hessian is H = G + Ht:

| name | matrix |
|---|---|
| G-term | G = mean J' (diag(p) - p p') J / T^2, J the Jacobian of the logits |
| H-term | Ht = mean sum_k (p - onehot)_k (second derivative of z_k) / T |

`ProjectedMlp` gives both terms of a bias-free ReLU perceptron in the coordinates of a frame, at every alpha and T from
one pass. `simulate.modules.projected_network` does so for other homogeneous networks, `simulate.modules.projected` for
any model at one alpha and T. `simulate.perceptrons.full_space` has all P coordinates without a frame,
`simulate.perceptrons.per_sample` single samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simulate import _checks
from simulate.lanczos.rows import identity
from simulate.matrices.ensembles import signed_qr, wishart_factor
from simulate.modules import softmax
from simulate.modules.homogeneous import Homogeneous, Terms
from simulate.networks import Weights
from simulate.perceptrons import _relu

# --- frames and scalars ---------------------------------------------------------------------------


def haar(
    rng: np.random.Generator,
    rows: int,
    columns: int,
    *,
    total: int | None = None,
    device: str = "cpu",
    single: bool = False,
) -> Tensor:
    """Draw an orthonormal frame, uniform on the Stiefel manifold: float64 of shape (rows, columns).

    It is the orthogonal factor of a normal matrix whose triangular factor has a positive diagonal. It is drawn on the
    CPU whatever the device.

    Parameters
    ----------
    rng
        Generator.
    rows, columns
        Shape of the returned frame.
    total
        Rows of the whole frame. Only `rows` of them are drawn and returned; of the others only the Gram matrix is
        needed, which has a Wishart law.
    single
        Whether to draw and compute in float32, at a third of the cost: orthonormal to about 1e-6.

    Raises
    ------
    ValueError
        If not 1 <= columns <= rows, or if rows are left out, but fewer than the columns.

    Examples
    --------
    >>> frame = haar(np.random.default_rng(0), 500, 3)
    >>> bool(torch.allclose(frame.T @ frame, torch.eye(3, dtype=torch.float64), atol=1e-14))
    True
    """
    _require_tall(rows, columns)
    if single:
        source = torch.Generator().manual_seed(int(rng.integers(2**63)))  # a third of the time of numpy's
        normal = torch.randn(rows, columns, generator=source).to(device)
    else:
        normal = torch.from_numpy(rng.standard_normal((rows, columns))).to(device)
    if total not in (None, rows):
        # the rows that are not drawn enter by their Gram matrix alone
        if total - rows < columns:
            raise ValueError(
                f"total must be rows, or rows plus at least {columns}, got rows plus {total - rows}"
            )
        factor = wishart_factor(rng, columns, total - rows)
        return _orthonormalise(normal, torch.from_numpy(factor @ factor.T).to(device))
    # a tall normal matrix is well conditioned, so its Gram matrix loses nothing; a square one may be anything
    return _orthonormalise(normal) if rows >= 8 * columns else signed_qr(normal)


def sparse_frame(rng: np.random.Generator, rows: int, columns: int, *, device: str = "cpu") -> Tensor:
    """Draw a sparse frame: entries +-1 with probability 1/sqrt(rows), else 0; then columns of unit norm.

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
    _require_tall(rows, columns)
    frame = np.zeros((rows, columns))
    for column in range(columns):
        count = 0
        while count == 0:
            count = int(rng.binomial(rows, rows**-0.5))
        places = rng.choice(rows, count, replace=False, shuffle=False)
        frame[places, column] = rng.choice([-1.0, 1.0], count) / math.sqrt(count)
    return torch.from_numpy(frame).to(device)


def positive_excess(matrix: Tensor) -> Tensor:
    """Return trace over Frobenius norm of square matrices of shape (..., n, n), at any scale that float64 can hold.

    Raises
    ------
    ValueError
        If a matrix is zero or not finite.

    Examples
    --------
    >>> positive_excess(torch.eye(4, dtype=torch.float64)).item()
    2.0
    """
    largest = matrix.abs().amax((-2, -1), keepdim=True)
    if not _checks.all_positive(largest):
        raise ValueError(
            f"matrix must be finite and non-zero, got largest entries {largest.flatten().tolist()}"
        )
    unit = matrix / largest  # squares of small entries would underflow
    return unit.diagonal(dim1=-2, dim2=-1).sum(-1) / torch.linalg.matrix_norm(unit)


def spectral_norm(matrix: Tensor) -> Tensor:
    """Return the largest absolute eigenvalue of symmetric matrices of shape (..., n, n).

    Examples
    --------
    >>> spectral_norm(torch.diag(torch.tensor([1.0, -3.0]))).item()
    3.0
    """
    return torch.linalg.eigvalsh(matrix).abs().amax(-1)


# --- curvature in the coordinates of a frame ------------------------------------------------------


class ProjectedMlp(Homogeneous):
    """Bias-free ReLU perceptron along a frame: theta = alpha theta_0 + R t, derivatives in t at t = 0.

    The derivatives of the logits are taken once, at the weights given. Within a linear piece the logits are
    linear in each layer, so that a positive factor on all weights multiplies them by a power of that factor;
    every (alpha, T) then costs one weighted sum.

    LeNet-300-100 along 50 directions takes at 17 scales a tenth of the time of `simulate.modules.projected` scale by
    scale, and at a single scale twice its time. A network of 2,720 weights takes a fifth, at a single scale too.

    Parameters
    ----------
    weights
        Matrices of shape (out, in), see `mlp_weights`.
    x, labels
        Inputs (N, in) and classes (N,).
    frame
        R of shape (P, d), any matrix; its rows are ordered as the flat parameters.
    dtype
        Type for the derivatives: with ``torch.float32`` they cost half as much and are right to about 1e-6. The
        logits, which a scale multiplies by alpha^L, are always float64.

    Attributes
    ----------
    logits
        (N, K), at the weights given.
    jacobian
        (N, K, d), derivative of the logits in t.

    Raises
    ------
    ValueError
        If shapes disagree, or a label is not a class.

    Examples
    --------
    >>> from simulate.networks import mlp_weights
    >>> rng = np.random.default_rng(0)
    >>> weights, frame = mlp_weights(rng, (6, 5, 4)), haar(rng, 50, 3)
    >>> net = ProjectedMlp(weights, rng.standard_normal((7, 6)), np.arange(7) % 4, frame)
    >>> net.terms(alpha=[0.5, 1.0, 2.0]).hessian.shape
    torch.Size([3, 3, 3])
    """

    def __init__(
        self, weights: Weights, x: Any, labels: Any, frame: Tensor, *, dtype: torch.dtype = torch.float64
    ) -> None:
        weights, x, labels = _relu.prepared(weights, x, labels)
        hidden, masks, logits = _relu.linear_piece(weights, x)
        weights, hidden, masks = ([t.to(dtype) for t in tensors] for tensors in (weights, hidden, masks))
        directions = _relu.unflatten(frame.to(weights[0]), weights)
        tangents = _relu.tangents(weights, hidden, masks, directions)
        self._pass = weights, directions, tangents, masks

        def half() -> Tensor:
            signals = _relu.logit_signals(weights, masks, logits.to(dtype))
            return _relu.half_second_derivatives(signals, directions, tangents).double()

        super().__init__(logits, labels, tangents[-1].double().mT.contiguous(), half, len(weights))

    def _weighted(self, weights: Tensor) -> Tensor:
        # a single sum needs no derivatives of each logit
        if weights.ndim > 2 or self._half.cache_info().currsize:
            return super()._weighted(weights)
        return _relu.weighted_second_derivative(*self._pass, weights.to(self._pass[0][0])).double() / 2


def projected_mlps(
    weights: Sequence[Tensor], x: Any, labels: Any, frame: Tensor, *, dtype: torch.dtype = torch.float64
) -> Terms:
    """Return both terms of the Hessian of many bias-free ReLU perceptrons, on the same samples and frame.

    At one scale and temperature classes need no separate derivatives: the H-term is the second derivative of a single
    sum of logits, weighted by p - onehot. LeNet-300-100 along 50 directions takes two thirds of the time of
    `simulate.modules.projected`, which takes networks one by one.

    Parameters
    ----------
    weights
        One stack (n, out, in) per layer, from the input.
    x, labels
        Inputs (N, in) and classes (N,), the same for all networks.
    frame, dtype
        As for `ProjectedMlp`.

    Returns
    -------
    R'GR and R'HtR, each (n, d, d).

    Raises
    ------
    ValueError
        If shapes disagree, or a label is not a class.

    Examples
    --------
    >>> from simulate.networks import mlp_weights
    >>> rng = np.random.default_rng(0)
    >>> layers = zip(*(mlp_weights(rng, (6, 5, 4)) for _ in range(2)), strict=True)
    >>> stacks, x = [torch.stack(layer) for layer in layers], rng.standard_normal((7, 6))
    >>> projected_mlps(stacks, x, np.arange(7) % 4, haar(rng, 50, 3)).hessian.shape
    torch.Size([2, 3, 3])
    """
    first, x, labels = _relu.prepared([w[0] for w in weights], x, labels)
    directions = _relu.unflatten(frame.to(first[0].device, dtype), first)
    networks = zip(*(w.detach().to(first[0]) for w in weights), strict=True)
    found = [_terms(network, x, labels, directions) for network in networks]
    return Terms(*(torch.stack(terms) for terms in zip(*found, strict=True)))


def _terms(weights: Weights, x: Tensor, labels: Tensor, directions: list[Tensor]) -> Terms:
    hidden, masks, logits = _relu.linear_piece(weights, x)
    slope = softmax.residuals(logits, labels).to(directions[0]) / len(x)
    weights, hidden, masks = ([t.to(directions[0]) for t in tensors] for tensors in (weights, hidden, masks))
    tangents = _relu.tangents(weights, hidden, masks, directions)
    h_term = _relu.weighted_second_derivative(weights, directions, tangents, masks, slope).double()
    jacobian = tangents[-1].double().mT
    rows, log_scale = softmax.covariance_factor(logits, softmax.contrasts(jacobian, logits))
    flat = rows.flatten(0, 1)
    return Terms(flat.T @ flat * (log_scale.exp() / len(logits)), h_term)


# --- automatic differentiation --------------------------------------------------------------------


def hessian_of(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the Hessian of a scalar function in its first argument, as a function, by automatic differentiation.

    Examples
    --------
    >>> hessian_of(lambda t, power: (t**power).sum())(torch.tensor([1.0, 2.0]), 3)
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    # reverse over reverse: forward mode makes torch build its rules through an interface that it deprecates
    return torch.func.jacrev(torch.func.grad(loss))


# --- linear algebra -------------------------------------------------------------------------------


def _require_tall(rows: int, columns: int) -> None:
    if _checks.natural("columns", columns) > rows:
        raise ValueError(f"columns must be between 1 and rows = {rows}, got {columns}")


def _orthonormalise(matrix: Tensor, others: Tensor | float = 0.0) -> Tensor:
    """Multiply a well-conditioned matrix by the inverse Cholesky factor of its Gram matrix plus `others`."""
    # in place and by parts that stay in the cache; partial sums also keep the rounding of long sums down
    parts = matrix.split(4096)
    gram = torch.stack([part.T @ part for part in parts]).double().sum(0) + others
    upper = torch.linalg.cholesky(gram, upper=True)
    inverse = torch.linalg.solve_triangular(upper, identity(len(upper), upper), upper=True).to(matrix.dtype)
    for part in parts:
        part.copy_(part @ inverse)
    return matrix
