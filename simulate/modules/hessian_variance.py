r"""How the curvature of single samples varies about its mean, for any model and without a matrix.

H_i is the second derivative of what sample i adds to the loss, divided by the `share` of a sample, so that
share * sum H_i = H: the mean of the H_i is H for a plain mean over samples. A sample is a row of the targets; an
ignored one has H_i = 0. What a sample adds is meant in the loss of all data: where that divides by weights of its own,
the H_i are right, but batches divide by other weights, and their Hessians are not the means of the H_i
(`objectives.Objective.separable` tells). With z_i its outputs, s_i and A_i first and second derivative of its loss in
them,

| matrix | w' H_i v |
|---|---|
| gauss_newton | dz_i(w)' A_i dz_i(v) |
| hessian | the same, and s_i' ddz_i(w, v) |

where dz and ddz are derivatives of the outputs along vectors. Both come for all samples at once, as derivatives in u
of derivatives of <u, z>, to which every sample adds its own. The whole of H_i v comes at the sites of the model
(`simulate.modules.sites`): a layer with input h and derivative delta of the loss by its output has delta h' for a
gradient, so that a product is changed delta times h and delta times changed h, whose length is had without writing it
out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate import _checks
from simulate.lanczos.probes import probe_count, random_signs
from simulate.modules import sample_changes as _sample_changes, sites
from simulate.modules.head_samples import forms_by_head, has_head, variances_by_head
from simulate.modules.samples import Outer, outer_of, separate_batches, windows
from simulate.objectives import Batch, Objective
from simulate.objectives.batches import cuts, rows, window
from simulate.objectives.derivatives import bytes_held, second_derivative, slopes
from simulate.objectives.parameters import Leaves
from simulate.spectra import Estimate

__all__ = ["Matrix", "bilinear_forms", "quadratic_forms", "total_variance", "variance_along"]

Matrix = Literal["hessian", "gauss_newton"]
Floats = NDArray[np.float64]
Found = TypeVar("Found")

_MATRICES = ("hessian", "gauss_newton")

_HELD = 1 << 28
"""Bytes of probes, and of their products with the matrix of all samples, that are held at once."""


def quadratic_forms(objective: Objective, vectors: Any, *, matrix: Matrix = "hessian") -> Floats:
    """Curvature of every sample along each of some vectors, exact.

    Parameters
    ----------
    objective
        Loss of a model on data, a sum (or mean) of what the samples add, none of which sees another.
    vectors
        Columns v_k, (dim, k).
    matrix
        ``hessian`` or ``gauss_newton``.

    Returns
    -------
    v_k' H_i v_k, float64 (N, k), samples in the order of the data.

    Raises
    ------
    ValueError
        If `vectors` is of another shape or the matrix unknown; if the objective is in training mode, has not one row
        of outputs for each sample, couples samples in the model or the loss, has derivatives that are not finite, or
        one batch does not fit into memory.

    Examples
    --------
    >>> from torch import nn
    >>> x, weight = torch.tensor([[3.0, 4.0], [1.0, 0.0]]), torch.zeros(1, 2)
    >>> line = Objective(lambda p, x: x @ p[0].T, (x, x[:, :1]), nn.MSELoss(), parameters=[weight])
    >>> quadratic_forms(line, torch.eye(2))  # 2 x^2
    array([[18., 32.],
           [ 2.,  0.]])
    """
    columns = _columns("vectors", objective, vectors)
    return _forms(objective, [([column], column) for column in columns], matrix)


def bilinear_forms(objective: Objective, left: Any, right: Any, *, matrix: Matrix = "hessian") -> Floats:
    """Entries w_k' H_i v of the curvature of every sample, exact.

    Parameters
    ----------
    objective, matrix
        As for `quadratic_forms`.
    left, right
        Columns w_k, (dim, k), and one vector v, (dim,).

    Returns
    -------
    float64 (N, k), samples in the order of the data.

    Raises
    ------
    ValueError
        As `quadratic_forms`.

    Examples
    --------
    >>> from torch import nn
    >>> x, weight = torch.tensor([[3.0, 4.0], [1.0, 0.0]]), torch.zeros(1, 2)
    >>> line = Objective(lambda p, x: x @ p[0].T, (x, x[:, :1]), nn.MSELoss(), parameters=[weight])
    >>> bilinear_forms(line, torch.eye(2), [1.0, 0.0])  # 2 x x_1
    array([[18., 24.],
           [ 2.,  0.]])
    """
    return _forms(
        objective, [(_columns("left", objective, left), _vector("right", objective, right))], matrix
    )


def total_variance(
    objective: Objective, seed: _checks.Seed = 0, *, probes: int = 30, matrix: Matrix = "hessian"
) -> Estimate:
    """Sum of |H_i - mean|_F^2 over the samples divided by N - 1, from random signs, without bias.

    It is the variance of one element summed over all of them. The mean over B of the N samples, drawn without
    replacement, has (1/B - 1/N) times as much; the Hessian of their loss, if it is a mean over positions too, has that
    times the square of `objective.share` N. Where `sites.covers` the model, and where its logits are taken by chunks of
    positions, a probe v gives |(H_i - mean) v|^2; else two probes give (w' (H_i - mean) v)^2, whose error is larger.

    Parameters
    ----------
    objective, matrix
        As for `quadratic_forms`.
    seed
        Of the probes: an integer, or a numpy generator.
    probes
        At least 2.

    Returns
    -------
    Mean over the probes and its standard error: that of the probes alone, the samples are as they are.

    Raises
    ------
    ValueError
        If `probes` is below 2 or there is only one sample; and as `quadratic_forms`.

    Examples
    --------
    >>> from torch import nn
    >>> x, weight = torch.tensor([[3.0], [1.0]]), torch.zeros(1, 1)
    >>> line = Objective(lambda p, x: x @ p[0].T, (x, x), nn.MSELoss(), parameters=[weight])
    >>> total_variance(line, probes=2)  # of 18 and 2
    Estimate: 128 ± 0
    """
    probes, rng = probe_count(probes), _checks.generator(seed)
    _require_several(objective)
    if has_head(objective):
        signs = (_signs(objective, rng) for _ in range(probes))
        found = variances_by_head(objective, signs, _known(matrix))
    else:
        found = _variances(objective, rng, probes, matrix)
    return Estimate(float(found.mean()), float(found.std(ddof=1)) / math.sqrt(probes))


def _variances(objective: Objective, rng: np.random.Generator, probes: int, matrix: Matrix) -> Floats:
    if not _at_sites(objective):
        found = np.empty(probes)
        for probe in range(probes):
            signs = _signs(objective, rng)
            forms = bilinear_forms(objective, _signs(objective, rng)[:, None], signs, matrix=matrix)
            found[probe] = forms.var(ddof=1)
        return found
    each = torch.finfo(objective.dtype).bits // 8 + 2 * 8  # signs, and sums of a batch and of all
    most = max(1, _HELD // (each * objective.dim))
    return np.concatenate(
        [
            _variances_along(
                objective, [_signs(objective, rng) for _ in range(*part.indices(probes))], matrix
            )
            for part in cuts(probes, most)
        ]
    )


def variance_along(objective: Objective, vector: Any, *, matrix: Matrix = "hessian") -> float:
    """Sum of |(H_i - mean) v|^2 over the samples divided by N - 1, exact.

    Where the sites do not cover the model it takes some passes for every single sample.

    Parameters
    ----------
    objective, matrix
        As for `quadratic_forms`.
    vector
        v, (dim,), of any length.

    Raises
    ------
    ValueError
        If there is only one sample; and as `quadratic_forms`.

    Examples
    --------
    >>> from torch import nn
    >>> x, weight = torch.tensor([[3.0, 4.0], [1.0, 0.0]]), torch.zeros(1, 2)
    >>> line = Objective(lambda p, x: x @ p[0].T, (x, x[:, :1]), nn.MSELoss(), parameters=[weight])
    >>> variance_along(line, [1.0, 0.0])  # of (18, 24) and (2, 0)
    416.0
    """
    _require_several(objective)
    if has_head(objective):
        along = _vector("vector", objective, vector)
        return float(variances_by_head(objective, [along], _known(matrix))[0])
    return float(_variances_along(objective, [_vector("vector", objective, vector)], matrix)[0])


# --- arguments ----------------------------------------------------------------------------------------------------


def _columns(name: str, objective: Objective, value: Any) -> list[Tensor]:
    columns = torch.as_tensor(value)
    if columns.ndim != 2 or columns.shape[0] != objective.dim or columns.shape[1] == 0:
        raise ValueError(
            f"{name} must be of shape ({objective.dim}, k) with k >= 1, got {tuple(columns.shape)}"
        )
    return [_vector(name, objective, column) for column in columns.mT]


def _vector(name: str, objective: Objective, value: Any) -> Tensor:
    vector = torch.as_tensor(value)
    if vector.shape != (objective.dim,):
        raise ValueError(f"{name} must be of shape ({objective.dim},), got {tuple(vector.shape)}")
    if vector.is_complex() or not bool(vector.isfinite().all()):
        raise ValueError(f"{name} must be real and finite, got others")
    return vector.detach().to(dtype=objective.dtype, device=objective.device)


def _signs(objective: Objective, rng: np.random.Generator) -> Tensor:
    return _vector("probes", objective, random_signs(rng, objective.dim))


def _known(matrix: Any) -> Matrix:
    if matrix not in _MATRICES:
        raise ValueError(f"matrix must be {' or '.join(_MATRICES)}, got {matrix!r}")
    return matrix


def _full(matrix: str) -> bool:
    return _known(matrix) == "hessian"


def _require_several(objective: Objective) -> None:
    if objective.rows < 2:
        raise ValueError(f"data must hold at least 2 samples to have a variance, got {objective.rows}")


def _at_sites(objective: Objective) -> bool:
    return sites.covers(objective) and sites.by_sample(objective)


def _rescued(at_sites: Callable[..., Found], by_parameters: Callable[..., Found]) -> Callable[..., Found]:
    """One way, and the other where parameters act elsewhere with some of the samples."""

    def part(*arguments: Any) -> Found:
        try:
            return at_sites(*arguments)
        except sites.ElsewhereError:
            return by_parameters(*arguments)

    return part


def _finite(numbers: Tensor) -> Tensor:
    if not bool(numbers.isfinite().all()):
        raise ValueError("objective must have finite derivatives along the vectors, got NaN or infinity")
    return numbers


# --- forms --------------------------------------------------------------------------------------------------------


class _Tangents:
    """Outputs z of some samples, and the derivative of <u, z> by the parameters, which is linear in u."""

    def __init__(self, objective: Objective, leaves: Leaves, inputs: Any) -> None:
        self._objective, self._leaves = objective, leaves
        outputs = objective.outputs(leaves, inputs).reshape(rows(inputs), -1)
        self._weights = torch.zeros_like(outputs, requires_grad=True)
        self._pulled = slopes(outputs, leaves, self._weights, again=True)

    def along(self, vector: Tensor) -> Tensor:
        """<u, dz(v)>, one number."""
        parts = zip(self._pulled, self._objective.split(vector), strict=True)
        return torch.stack([(p * v).sum() for p, v in parts]).sum()

    def of(self, number: Tensor) -> Tensor:
        """Its derivative in u, one row for each sample."""
        return slopes(number, self._weights)[0]

    def forms(
        self, left: Sequence[Tensor], right: Tensor, outer: Outer, part: slice, *, full: bool
    ) -> list[Tensor]:
        """Entries w' H_i v for every w on the left, (n,) each."""
        along = self.along(right)
        tangent = self.of(along)
        bent, slope = outer.bent(tangent, part), outer.slope[part]
        lefts = [tangent if w is right else self.of(self.along(w)) for w in left]
        found = [_rowwise(t, bent) for t in lefts]
        second = self._second(along) if full else None
        if second is None:
            return found
        return [f + _rowwise(slope, self.of(second(w))) for f, w in zip(found, left, strict=True)]

    def _second(self, along: Tensor) -> Callable[[Tensor], Tensor] | None:
        """<u, ddz(v, w)> as a function of w; nothing where outputs are linear."""
        gradient = slopes(along, self._leaves, again=True)
        if not any(g.requires_grad for g in gradient):
            return None

        def second(vector: Tensor) -> Tensor:
            parts = zip(gradient, self._objective.split(vector), strict=True)
            return torch.stack([(g * p).sum() for g, p in parts]).sum()

        return second


def _rowwise(left: Tensor, right: Tensor) -> Tensor:
    return (left.double() * right.double()).sum(1)


def _forms(objective: Objective, pairs: Sequence[tuple[Sequence[Tensor], Tensor]], matrix: str) -> Floats:
    if has_head(objective):
        return forms_by_head(objective, pairs, _known(matrix))
    full, by_sites = _full(matrix), _at_sites(objective)
    at_sites = _sample_changes.forms_at_sites if by_sites else _forms_by_parameters
    part = _rescued(at_sites, _forms_by_parameters)
    count = sum(len(left) for left, _ in pairs)
    found = [torch.zeros(0, count, dtype=torch.float64)]
    vectors = [v for left, right in pairs for v in (*left, right)]
    with objective.ranks.together("samples", vectors=vectors), objective.measured(), torch.enable_grad():
        for batch in separate_batches(objective):
            if batch.factor:
                columns = [part(objective, batch, left, right, full) for left, right in pairs]
                found.append(_finite(torch.cat(columns, dim=1)))
            else:
                found.append(torch.zeros(rows(batch.targets), count, dtype=torch.float64))
    return objective.ranks.rows(np.concatenate([f.detach().cpu().numpy() for f in found]))


def _forms_by_parameters(
    objective: Objective, batch: Batch, left: Sequence[Tensor], right: Tensor, full: bool
) -> Tensor:
    """Entries w' H_i v for every w on the left, (N, k)."""
    outer, leaves = outer_of(objective, batch), objective.leaves()
    found: list[Tensor] = []
    for part in windows(batch, lambda i: _graph(objective, leaves, i), objective):
        tangents = _Tangents(objective, leaves, window(batch.inputs, part))
        found.append(torch.stack(tangents.forms(left, right, outer, part, full=full), dim=1))
    return torch.cat(found)


def _graph(objective: Objective, leaves: Leaves, inputs: Any) -> int:
    """Bytes of the graph of the second derivatives, the parameters themselves left out."""
    size = bytes_held(lambda: _Tangents(objective, leaves, inputs))
    return max(3 * size - 3 * sum(leaf.nbytes for leaf in leaves), 1)


# --- lengths ------------------------------------------------------------------------------------------------------


def _variances_along(objective: Objective, vectors: Sequence[Tensor], matrix: str) -> Floats:
    """One for each vector; what they share is computed once for all of them."""
    full, count = _full(matrix), objective.rows
    part = _rescued(_sample_changes.products_at_sites if _at_sites(objective) else _one_by_one, _one_by_one)
    squares = torch.zeros(len(vectors), dtype=torch.float64, device=objective.device)
    sums = torch.zeros(len(vectors), objective.dim, dtype=torch.float64, device=objective.device)
    with objective.ranks.together("samples", vectors=vectors), objective.measured(), torch.enable_grad():
        for batch in separate_batches(objective):
            if batch.factor:
                found, products = part(objective, batch, vectors, full)
                squares += _finite(found)
                sums += _finite(products)
    squares, sums = objective.ranks.total(squares), objective.ranks.total(sums)
    means = torch.stack([(total / count).square().sum() for total in sums])
    return ((squares - count * means) / (count - 1)).clamp(min=0).cpu().numpy()


def _one_by_one(
    objective: Objective, batch: Batch, vectors: Sequence[Tensor], full: bool
) -> tuple[Tensor, Tensor]:
    """Sums of |H_i v|^2 and of H_i v over a batch for every vector, by gradients of single samples."""
    outer, leaves = outer_of(objective, batch), objective.leaves()
    squares = torch.zeros(len(vectors), dtype=torch.float64, device=objective.device)
    sums = torch.zeros(len(vectors), objective.dim, dtype=torch.float64, device=objective.device)
    for i in range(rows(batch.targets)):
        part = slice(i, i + 1)
        inputs = window(batch.inputs, part)
        tangents = _Tangents(objective, leaves, inputs)
        outputs = objective.outputs(leaves, inputs).reshape(1, -1)
        second = second_derivative((outer.slope[part] * outputs).sum(), leaves) if full else None
        for k, vector in enumerate(vectors):
            bent = outer.bent(tangents.of(tangents.along(vector)), part)
            product = objective.flat(slopes(outputs, leaves, bent))
            if second is not None:
                product = product + objective.flat(second(objective.split(vector)))
            squares[k] += product.double().square().sum()
            sums[k] += product
    return squares, sums
