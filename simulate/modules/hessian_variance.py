r"""Variance of the curvature of single samples about its mean, for any model and without a matrix.

H_i is the second derivative of what sample i adds to the loss, divided by the `share` of a sample, so that
share * sum H_i = H: the mean of the H_i is H for a plain mean over samples. A sample is a row of the targets; an
ignored one has H_i = 0. What a sample adds refers to the loss of all data. If that loss divides by weights of its own,
the H_i are right, but batches divide by other weights, so their Hessians are not the means of the H_i (see
`objectives.Objective.separable`). With z_i its outputs, s_i and A_i first and second derivative of its loss in
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
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from simulate import _checks
from simulate._checks import Floats
from simulate.lanczos.probes import probe_count, random_signs
from simulate.modules import projected, sites
from simulate.modules.sample_parts import (
    Outer,
    finite_derivatives,
    outer_of,
    parameter_columns,
    rows_by_sample,
    separate_batches,
    windows,
)
from simulate.modules.site_gradients import numbers_held, per_sample, sum_by_weight
from simulate.modules.sites import Site
from simulate.objectives import Batch, Objective
from simulate.objectives.batches import cuts, rows, window
from simulate.objectives.derivatives import bytes_held, second_derivative, slopes
from simulate.objectives.head_products import head_product
from simulate.spectra import Estimate

Matrix = Literal["hessian", "gauss_newton"]
_Way = Literal["head", "sites", "parameters"]

Pairs = Sequence[tuple[Sequence[Tensor], Tensor]]
"""Vectors w, and the vector v, of the forms w' H_i v."""

_MATRICES = ("hessian", "gauss_newton")

_HELD = 1 << 28
"""Most bytes of probes, and of their products with the matrix of all samples, held at once."""


def quadratic_forms(objective: Objective, vectors: Any, *, matrix: Matrix = "hessian") -> Floats:
    """Return v' H_i v, the exact curvature of every sample along each of some vectors.

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
    return _forms(objective, [([column], column) for column in columns.mT], matrix)


def bilinear_forms(objective: Objective, left: Any, right: Any, *, matrix: Matrix = "hessian") -> Floats:
    """Return the exact entries w_k' H_i v of the curvature of every sample.

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
    columns = _columns("left", objective, left)
    return _forms(objective, [(list(columns.mT), _vector("right", objective, right))], matrix)


def total_variance(
    objective: Objective, seed: _checks.Seed = 0, *, probes: int = 30, matrix: Matrix = "hessian"
) -> Estimate:
    """Estimate the sum of |H_i - mean|_F^2 over the samples divided by N - 1, from random signs, without bias.

    It is the variance of one element, summed over all elements. The mean over B of the N samples, drawn without
    replacement, has (1/B - 1/N) times this variance. The Hessian of their loss, if it is a mean over positions too, has
    that times the square of `objective.share` N. If `sites.covers` the model, or if its logits are taken by chunks of
    positions, a probe v gives |(H_i - mean) v|^2. Otherwise two probes give (w' (H_i - mean) v)^2, whose error is
    larger.

    Parameters
    ----------
    objective, matrix
        As for `quadratic_forms`.
    seed
        Seed of the random probe vectors: an integer, or a numpy generator.
    probes
        Number of probe vectors, at least 2.

    Returns
    -------
    Mean over the probes and its standard error, which is of the probes alone: the samples count as fixed.

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
    if _way(objective) != "parameters":
        each = objective.dtype.itemsize + 2 * 8  # signs, and sums of a batch and of all
        parts = cuts(probes, max(1, _HELD // (each * objective.dim)))
        signs = ([_signs(objective, rng) for _ in range(probes)[part]] for part in parts)
        found = np.concatenate([_variances_along(objective, some, matrix) for some in signs])
    else:
        pairs = ((_signs(objective, rng), _signs(objective, rng)) for _ in range(probes))
        found = np.array([_forms(objective, [([w], v)], matrix).var(ddof=1) for v, w in pairs])
    return Estimate(float(found.mean()), float(found.std(ddof=1)) / math.sqrt(probes))


def variance_along(objective: Objective, vector: Any, *, matrix: Matrix = "hessian") -> float:
    """Return the sum of |(H_i - mean) v|^2 over the samples divided by N - 1, exact.

    If the sites do not cover the model it takes some passes for every single sample.

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
    return float(_variances_along(objective, [_vector("vector", objective, vector)], matrix)[0])


# --- arguments ----------------------------------------------------------------------------------------------------


def _vector(name: str, objective: Objective, value: Any) -> Tensor:
    vector = torch.as_tensor(value)
    if vector.ndim != 1:
        raise ValueError(f"{name} must be of shape ({objective.dim},), got {tuple(vector.shape)}")
    return _columns(name, objective, vector[:, None])[:, 0]


def _columns(name: str, objective: Objective, value: Any) -> Tensor:
    columns = parameter_columns(objective, name, value)
    _checks.require_finite(name, columns)
    return columns


def _signs(objective: Objective, rng: np.random.Generator) -> Tensor:
    return _vector("probes", objective, random_signs(rng, objective.dim))


def _is_hessian(matrix: Any) -> bool:
    _checks.one_of("matrix", matrix, _MATRICES)
    return matrix == "hessian"


def _require_several(objective: Objective) -> None:
    if objective.rows < 2:
        raise ValueError(f"data must hold at least 2 samples to have a variance, got {objective.rows}")


# --- whatever the method ------------------------------------------------------------------------------------------


def _way(objective: Objective) -> _Way:
    """Return the way to the matrices of the samples: by the head, at the sites, or by the parameters."""
    # derivatives by all logits would hold several copies of them, chunks of positions do not
    if not objective.training and objective.head_of(objective.few()) is not None:
        return "head"
    return "sites" if sites.by_sample(objective) else "parameters"


def _forms(objective: Objective, pairs: Pairs, matrix: str) -> Floats:
    full, way = _is_hessian(matrix), _way(objective)
    count = sum(len(left) for left, _ in pairs)
    found = [torch.zeros(0, count, dtype=torch.float64)]
    vectors = [v for left, right in pairs for v in (*left, right)]
    with objective.ranks.together("samples", vectors=vectors), objective.measured():
        for batch in separate_batches(objective):
            if batch.factor:
                found.append(finite_derivatives(_batch_forms(objective, batch, pairs, full, way)))
            else:
                # all samples are ignored: their loss would be a mean over nothing
                found.append(torch.zeros(batch.samples, count, dtype=torch.float64))
    return objective.ranks.rows(np.concatenate([f.detach().cpu().numpy() for f in found]))


def _variances_along(objective: Objective, vectors: Sequence[Tensor], matrix: str) -> Floats:
    """Return `variance_along` for each vector; shared work is done once for all of them."""
    full, count, way = _is_hessian(matrix), objective.rows, _way(objective)
    squares, sums = _zero_sums(objective, vectors)
    with objective.ranks.together("samples", vectors=vectors), objective.measured():
        for batch in separate_batches(objective):
            if batch.factor:
                found, products = _batch_lengths(objective, batch, vectors, full, way)
                squares += finite_derivatives(found)
                sums += finite_derivatives(products)
    squares, sums = objective.ranks.total(squares), objective.ranks.total(sums)
    means = torch.stack([(total / count).square().sum() for total in sums])
    # a difference that cancels where samples hardly differ: rounding may leave less than zero
    return ((squares - count * means) / (count - 1)).clamp(min=0).cpu().numpy()


def _batch_forms(objective: Objective, batch: Batch, pairs: Pairs, full: bool, way: _Way) -> Tensor:
    """Return w' H_i v for every w of every pair with its v, (N, k); `full` for the Hessian."""
    if way == "head":
        products = _products_by_head(objective, batch, [right for _, right in pairs], full)
        return torch.stack([_forms_of(each.double(), pairs) for each in products])
    if way == "sites":
        try:
            return _forms_at_sites(objective, batch, pairs, full)
        except sites.ElsewhereError:  # for some of the samples
            pass
    return _forms_by_parameters(objective, batch, pairs, full)


def _forms_of(products: Tensor, pairs: Pairs) -> Tensor:
    return torch.stack(
        [w.double() @ own for (left, _), own in zip(pairs, products, strict=True) for w in left]
    )


def _batch_lengths(
    objective: Objective, batch: Batch, vectors: Sequence[Tensor], full: bool, way: _Way
) -> tuple[Tensor, Tensor]:
    """Return the sums over the samples of |H_i v|^2, (k,), and of H_i v, (k, dim), for every vector."""
    if way == "sites":
        try:
            return _lengths_at_sites(objective, batch, vectors, full)
        except sites.ElsewhereError:
            pass
    products = _products_by_head if way == "head" else _products_by_gradients
    squares, sums = _zero_sums(objective, vectors)
    for each in products(objective, batch, vectors, full):
        squares += each.double().square().sum(1)
        sums += each
    return squares, sums


def _zero_sums(objective: Objective, vectors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    none = torch.zeros(len(vectors), objective.dim, dtype=torch.float64, device=objective.device)
    return none[:, 0].clone(), none


# --- by products of one sample after the other --------------------------------------------------------------------


def _products_by_head(
    objective: Objective, batch: Batch, vectors: Sequence[Tensor], full: bool
) -> Iterator[Tensor]:
    """Yield H_i v for every vector v, (k, dim), sample by sample, by chunks of logits.

    Those of all samples cost as much as one product with all data.
    """
    head = objective.head_of(batch)
    for i in range(batch.samples):
        part = batch.part(slice(i, i + 1))
        own = objective.weighed(part.inputs, part.targets)
        if head is None or not own.factor:
            yield torch.zeros(len(vectors), objective.dim, device=objective.device)
            continue
        product = head_product(objective, "hessian" if full else "gauss_newton", head, own)
        yield torch.stack([objective.flat(product(v)).detach() for v in vectors]) / objective.share


def _products_by_gradients(
    objective: Objective, batch: Batch, vectors: Sequence[Tensor], full: bool
) -> Iterator[Tensor]:
    """Yield H_i v for every vector v, (k, dim), sample by sample."""
    outer, leaves = outer_of(objective, batch), objective.leaves
    for i in range(batch.samples):
        part = slice(i, i + 1)
        outputs, weights, pulled = _tangents(objective, window(batch.inputs, part))
        second = second_derivative((outer.slope[part] * outputs).sum(), leaves) if full else None
        products = list[Tensor]()
        for vector in vectors:
            bent = outer.bent(slopes(pulled, weights, vector)[0], part)
            products.append(objective.flat(slopes(outputs, leaves, bent)))
            if second is not None:
                products[-1] = products[-1] + objective.flat(second(objective.split(vector)))
        yield torch.stack(products)


# --- forms of all samples at once ---------------------------------------------------------------------------------


def _tangents(objective: Objective, inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return outputs z of some samples, (n, m), weights u like them, and d<u, z>/d parameters, (dim,)."""
    outputs = objective.outputs(objective.leaves, inputs).reshape(rows(inputs), -1)
    weights = torch.zeros_like(outputs, requires_grad=True)
    return outputs, weights, objective.flat(slopes(outputs, objective.leaves, weights, again=True))


def _forms_by_parameters(objective: Objective, batch: Batch, pairs: Pairs, full: bool) -> Tensor:
    outer, found = outer_of(objective, batch), list[Tensor]()

    def needed(inputs: Any) -> int:
        # the graph of the second derivatives, without the parameters themselves
        size = bytes_held(lambda: _tangents(objective, inputs))
        return max(3 * size - 3 * sum(leaf.nbytes for leaf in objective.leaves), 1)

    for part in windows(batch, needed, objective):
        _, weights, pulled = _tangents(objective, window(batch.inputs, part))
        columns = list[Tensor]()
        for left, right in pairs:
            (tangent,) = slopes(pulled, weights, right)
            bent, slope = outer.bent(tangent, part), outer.slope[part]
            # <u, ddz(right, .)>; of outputs that are linear it is zero
            second = objective.flat(slopes(pulled, objective.leaves, right, again=True)) if full else None
            for w in left:
                columns.append(_rowwise(tangent if w is right else slopes(pulled, weights, w)[0], bent))
                if second is not None and second.requires_grad:
                    columns[-1] = columns[-1] + _rowwise(slope, slopes(second, weights, w)[0])
        found.append(torch.stack(columns, dim=1))
    return torch.cat(found)


def _rowwise(left: Tensor, right: Tensor) -> Tensor:
    return (left.double() * right.double()).sum(1)


# --- at the sites -------------------------------------------------------------------------------------------------
# A layer with input h and derivative delta of the loss by its output has delta h' for its part of the gradient of a
# sample. Along a direction both change, and the part of H_i v is (changed delta) h' + delta (changed h)'.


class _Change(NamedTuple):
    """Change at a site along a direction of the parameters."""

    site: Site
    delta: Tensor | None  # derivative of the loss by the output; None if only its change counts
    delta_change: Tensor
    moved: Tensor | None  # change of what the weights multiply, None if that is data


def _lengths_at_sites(
    objective: Objective, batch: Batch, vectors: Sequence[Tensor], full: bool
) -> tuple[Tensor, Tensor]:
    squares, sums = _zero_sums(objective, vectors)
    leaves = objective.leaves
    for derivatives, samples in _site_derivatives(objective, batch, full, 2):
        for k, vector in enumerate(vectors):
            square, parts = _squared_lengths(derivatives.along(objective.split(vector[None])), samples)
            squares[k] += square
            whole = (parts[i] if i in parts else torch.zeros_like(leaf) for i, leaf in enumerate(leaves))
            sums[k] += objective.flat([*whole])
        del derivatives  # or its graph would be held while that of the next samples is made
    return squares, sums


def _forms_at_sites(objective: Objective, batch: Batch, pairs: Pairs, full: bool) -> Tensor:
    found = list[Tensor]()
    lefts = [
        [torch.stack(part) for part in zip(*map(objective.split, left), strict=True)] for left, _ in pairs
    ]
    for derivatives, samples in _site_derivatives(
        objective, batch, full, max(len(left) for left, _ in pairs)
    ):
        columns = list[Tensor]()
        for directions, (_, right) in zip(lefts, pairs, strict=True):
            changes = derivatives.along(objective.split(right[None]))
            columns.append(
                sum((_site_form(change, directions, samples) for change in changes), torch.zeros(()))
            )
            del changes
        found.append(torch.cat(columns, dim=1))
        del derivatives
    return torch.cat(found)


def _site_derivatives(
    objective: Objective, batch: Batch, full: bool, count: int
) -> Iterator[tuple[_SiteDerivatives, int]]:
    """Yield the derivatives of some samples at a time, and their number; `count` changes are held of each."""
    outer = outer_of(objective, batch)
    for part in windows(batch, lambda i: _bytes_at_sites(objective, i, count), objective):
        outputs, found = sites.visited(objective, batch.part(part))
        yield _SiteDerivatives(outputs, found, outer, part, full), part.stop - part.start


def _bytes_at_sites(objective: Objective, inputs: Any, count: int) -> int:
    """Return the bytes of the derivatives at the sites, and of gradients where these are written out."""
    _, found = sites.visited(objective, Batch(inputs, (), 0.0))
    numbers = sum((10 + 2 * count) * site.nudge.numel() + 2 * site.inputs.numel() for site in found)
    numbers += sum(numbers_held(site, 2, rows(inputs)) for site in found if not _has_few_rows(site, 1))
    return numbers * objective.dtype.itemsize


class _SiteDerivatives:
    """Derivatives of some samples at their sites, shared by all directions.

    Inner products of weights u with the outputs and with what the layers multiply are differentiated by the nudges
    once. The results are linear in u, and their derivatives in u are the changes along a direction.
    """

    def __init__(self, outputs: Tensor, found: Sequence[Site], outer: Outer, part: slice, full: bool) -> None:
        self._outputs, self._found, self._outer, self._part = outputs, found, outer, part
        self._nudges = [site.nudge for site in found]
        self._features = [_feature(site) if full else None for site in found]
        ends = [outputs, *(f for f in self._features if f is not None)]
        self._weights = [torch.zeros_like(end, requires_grad=True) for end in ends]
        self._pulled = slopes(ends, self._nudges, self._weights, again=True)
        slope = outer.slope[part].view_as(outputs) if full else None
        self._delta = None if slope is None else slopes(outputs, self._nudges, slope, again=True)

    def along(self, directions: Sequence[Tensor]) -> list[_Change]:
        """Return the change at each site along one direction, given for every parameter as (1, *its shape)."""
        found, outputs, part = self._found, self._outputs, self._part
        direct = [sites.moved(site, directions)[0] for site in found]
        tangent, *moved = slopes(self._pulled, self._weights, direct)
        bent = self._outer.bent(tangent.reshape(part.stop - part.start, -1), part)
        ends, starts = [outputs], [bent.view_as(outputs)]
        if self._delta is None:
            delta_change = slopes(ends, self._nudges, starts)
            return [_Change(site, None, s, None) for site, s in zip(found, delta_change, strict=True)]
        for site, d, change in zip(found, self._delta, direct, strict=True):
            if site.inputs.requires_grad:
                ends.append(site.inputs)
                starts.append(projected.pull(site, d.detach(), directions)(0))
            if d.requires_grad:
                ends.append(d)
                starts.append(change)
        delta_change = slopes(ends, self._nudges, starts)
        later = iter(moved)
        return [
            _Change(site, d.detach(), s, None if f is None else next(later))
            for site, d, s, f in zip(found, self._delta, delta_change, self._features, strict=True)
        ]


def _feature(site: Site) -> Tensor | None:
    """Return the tensor that the weights of a layer multiply, or None if no other parameters move it."""
    if not site.inputs.requires_grad or "weight" not in site.places:
        return None
    if not isinstance(site.layer, sites.NORMALISATIONS):
        return site.inputs
    return sites.normalised_input(site, site.inputs)


def _squared_lengths(changes: Sequence[_Change], samples: int) -> tuple[Tensor, dict[int, Tensor]]:
    """Return the sum of the squared lengths of all products, and the sum of the products by place, (size,) each."""
    uses = sites.uses(change.site for change in changes)
    products, sums = dict[int, Tensor](), dict[int, Tensor]()
    total = changes[0].delta_change.new_zeros((), dtype=torch.float64)
    for change in changes:
        for name, place in change.site.places.items():
            if name == "weight" and uses[place] == 1 and _has_few_rows(change.site, samples):
                left, right = _row_factors(change, samples)
                # |L'R|^2 is the sum of the products of the entries of LL' and RR'
                above, below = left.double(), right.double()
                total += ((above @ above.mT) * (below @ below.mT)).sum()
                sums[place] = (left.flatten(0, 1).mT @ right.flatten(0, 1)).flatten()
            else:
                product = _product(change, name, samples)
                products[place] = products[place] + product if place in products else product
    for place, product in products.items():
        total += product.double().square().sum()
        sums[place] = product.sum(0)
    return total, sums


def _has_few_rows(site: Site, samples: int) -> bool:
    """Whether the gradient of a sample is a product of so few rows that their overlaps cost less."""
    if not isinstance(site.layer, nn.Linear):
        return False
    above, below = site.nudge.shape[-1], site.inputs.shape[-1]
    return 2 * (site.nudge.numel() // (samples * above)) * (above + below) < above * below


def _row_factors(change: _Change, samples: int) -> tuple[Tensor, Tensor]:
    """Return L and R of the product L'R, with few rows for each sample: (n, rows, out) and (n, rows, in)."""
    above, below = [change.delta_change], [change.site.inputs.detach()]
    if change.moved is not None and change.delta is not None:
        above.append(change.delta)
        below.append(change.moved)
    left, right = (
        torch.cat([t.reshape(samples, -1, t.shape[-1]) for t in side], dim=1) for side in (above, below)
    )
    return left, right


def _product(change: _Change, name: str, samples: int) -> Tensor:
    """Return the part of H_i v that belongs to one parameter, (n, size)."""
    site, delta, moved = change.site, change.delta, change.moved
    product = per_sample(site, name, change.delta_change[None], samples)[:, 0]
    if name == "bias" or delta is None or moved is None:
        return product
    if not isinstance(site.layer, sites.NORMALISATIONS):
        return product + per_sample(site._replace(inputs=moved), name, delta[None], samples)[:, 0]
    return product + sum_by_weight(site, (delta * moved)[None], samples)[:, 0]


def _site_form(change: _Change, directions: Sequence[Tensor], samples: int) -> Tensor:
    """Return the contribution of a site to w' H_i v for every w of the directions, (n, k)."""
    site, delta, moved = change.site, change.delta, change.moved
    total = _inner_products(sites.moved(site, directions), change.delta_change, samples)
    if delta is None or moved is None:
        return total
    place = site.places["weight"]
    if isinstance(site.layer, sites.NORMALISATIONS):
        rates = sum_by_weight(site, (delta * moved)[None], samples)[:, 0]
        return total + rates.double() @ directions[place].flatten(1).mT.double()
    alone = site._replace(inputs=moved, places={"weight": place})
    return total + _inner_products(sites.moved(alone, directions), delta, samples)


def _inner_products(changes: Tensor, delta: Tensor, samples: int) -> Tensor:
    """Return the inner products (n, k) of changes (k, *output) with a derivative by the output, sample by sample."""
    return (rows_by_sample(changes, samples) @ delta.reshape(samples, -1, 1))[..., 0].double()
