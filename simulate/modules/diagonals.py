r"""Diagonals of the curvature: exact, from the layer calls in which parameters act, or estimated from products alone.

With B_i the root of the curvature of one sample (`simulate.modules.sample_parts`), the diagonal of G sums the squared
rows of B_i over the samples. A layer that multiplies one input of a sample by weights has products of squares there, so
no gradient is written out. The diagonal of H needs second derivatives by the outputs of a layer, which are far fewer
than its weights: with s = W x the output, d2L/dW_op2 is the sum over samples of x_p^2 d2L/ds_o2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from simulate import _checks, _memory
from simulate.lanczos import AnyMatrix, as_operator
from simulate.lanczos.probes import probe_count, random_signs
from simulate.lanczos.rows import unit_of
from simulate.modules import site_gradients, sites
from simulate.modules.sample_grams import curved_tensors
from simulate.modules.sample_parts import CoupledError, Outer, SamplePart, finite_derivatives, parts
from simulate.objectives import Objective, require_objective
from simulate.objectives.batches import rows as samples_of
from simulate.objectives.derivatives import slopes
from simulate.operators import gauss_newton, hessian
from simulate.results import Columns, Result

if TYPE_CHECKING:
    from simulate.results import Axes

_BLOCK = 16
"""Number of vectors in one block of products."""

_MOST_PLOTTED = 1000
"""Largest number of entries of a diagonal that a plot shows."""


@dataclass(frozen=True, repr=False)
class DiagonalEstimate(Result):
    """Diagonal of a matrix and the standard error of each entry, (dim,) both, float64."""

    value: Tensor
    standard_error: Tensor

    def _headline(self) -> str:
        low, high, error = float(self.value.min()), float(self.value.max()), float(self.standard_error.mean())
        return f"{len(self.value)} entries from {low:.4g} to {high:.4g}, mean standard error {error:.2g}"

    def _columns(self) -> Columns:
        return {"value": self.value.tolist(), "standard error": self.standard_error.tolist()}

    def _draw(self, axes: Axes) -> None:
        order = self.value.argsort(descending=True).cpu()
        order = order[np.unique(np.linspace(0, len(order) - 1, _MOST_PLOTTED).round().astype(int))]
        value, error = (part.cpu()[order].numpy() for part in (self.value, self.standard_error))
        ranks = np.linspace(1, len(self.value), len(value))
        axes.fill_between(ranks, value - error, value + error, alpha=0.3, lw=0, label="standard error")
        axes.plot(ranks, value)
        axes.set(title="diagonal, sorted", xlabel="rank of the entry")
        axes.legend(frameon=False)


def estimated_diagonal(matrix: AnyMatrix, seed: _checks.Seed = 0, *, probes: int = 100) -> DiagonalEstimate:
    """Estimate the diagonal of any symmetric matrix from random signs z: the mean of z * (A z), without bias.

    The variance of entry i is the sum of the squares of the other entries in its row, over the number of probes. The
    estimate is exact for a diagonal matrix. If a row is much longer than its diagonal entry, use an exact diagonal.

    Parameters
    ----------
    matrix
        Dense, or an operator.
    seed
        Seed of the random probe vectors: an integer, or a numpy generator.
    probes
        Number of probe vectors, at least 2; each takes one product.

    Raises
    ------
    ValueError
        If `probes` is below 2, the matrix cannot be used, see `lanczos.as_operator`, or the vectors do not fit into
        memory.

    References
    ----------
    Bekas, Kokiopoulou and Saad (2007), An estimator for the diagonal of a matrix, with signs, whose squares are one.

    Examples
    --------
    >>> found = estimated_diagonal(np.diag([1.0, -2.0]), probes=2)
    >>> found.value.tolist(), found.standard_error.tolist()
    ([1.0, -2.0], [0.0, 0.0])
    """
    operator, probes, rng = as_operator(matrix), probe_count(probes), _checks.generator(seed)
    what = f"{3 * _BLOCK} vectors of {operator.dim} numbers"
    _memory.require_free("matrix", 8 * 3 * _BLOCK * operator.dim, what, device=operator.device)
    mean = torch.zeros(operator.dim, dtype=torch.float64, device=operator.device)
    squares, used, unit = torch.zeros_like(mean), 0, 0.0
    while used < probes:
        count = min(_BLOCK, probes - used)
        signs = operator.vectors(random_signs(rng, (count, operator.dim)))
        entries = (signs * operator(signs)).double()
        unit = unit or unit_of(entries)  # in which squares neither overflow nor vanish
        for entry in entries / unit:
            used += 1
            # Welford's update: the mean square minus the squared mean would cancel
            change = entry - mean
            mean += change / used
            squares += change * (entry - mean)
    return DiagonalEstimate(unit * mean, unit * (squares / (probes - 1) / probes).sqrt())


def diagonal_by_rows(matrix: AnyMatrix, rows: Sequence[int] | Tensor | None = None) -> Tensor:
    """Return the diagonal entries in `rows` (all if None), at one product each.

    Examples
    --------
    >>> diagonal_by_rows(np.array([[1.0, 3.0], [3.0, 2.0]]), [1])
    tensor([2.], dtype=torch.float64)
    """
    operator = as_operator(matrix)
    wanted = torch.arange(operator.dim) if rows is None else torch.as_tensor(rows, dtype=torch.int64)
    found = [torch.zeros(0, dtype=operator.dtype, device=operator.device)]
    for some in wanted.to(operator.device).split(_BLOCK):
        units = torch.zeros(len(some), operator.dim, dtype=operator.dtype, device=operator.device)
        units[torch.arange(len(some), device=operator.device), some] = 1.0
        found.append(operator(units).gather(1, some[:, None])[:, 0])
    return torch.cat(found)


def gauss_newton_diagonal(objective: Objective) -> Tensor:
    """Return the exact diagonal of the Gauss-Newton matrix, (dim,).

    For m outputs of a sample it takes one forward pass and m backward passes without gradients by the weights. If
    parameters act elsewhere than in affine layers, or samples of a batch see each other, it takes m passes for every
    single sample. If the loss couples the samples, it takes `dim` products.

    Raises
    ------
    ValueError
        If derivatives are not finite, or those of one sample do not fit into memory.

    Examples
    --------
    Linear regression, G = 2 x'x / N:

    >>> x, weight = torch.tensor([[3.0, 4.0], [1.0, 0.0]]).double(), torch.zeros(1, 2).double()
    >>> line = Objective(lambda p, x: x @ p[0].T, (x, x[:, :1]), nn.MSELoss(), parameters=[weight])
    >>> gauss_newton_diagonal(line).round(decimals=9)
    tensor([10., 16.], dtype=torch.float64)
    """
    require_objective("gauss_newton_diagonal", objective)
    total, coupled = torch.zeros(objective.dim, dtype=objective.dtype, device=objective.device), False
    with objective.ranks.together("a diagonal"), objective.measured():
        try:
            for part in parts(objective, pairs=False):
                _add_squares(total, objective, part)
        except CoupledError:
            coupled = True
    if objective.ranks.any(coupled):
        return diagonal_by_rows(gauss_newton(objective))
    return objective.share * finite_derivatives(objective.ranks.total(total))


def _add_squares(total: Tensor, objective: Objective, part: SamplePart) -> None:
    if part.slopes:
        blocks = list(objective.blocks().values())
        for place, uses in site_gradients.uses_of(part.slopes).items():
            total[blocks[place]] += site_gradients.square_sums(uses, part.signs)
    for gradients, _ in part.pairs:  # of one sample
        total += part.signs[0].to(gradients) @ gradients[0].square()


# --- the Hessian --------------------------------------------------------------------------------------------------


def hessian_diagonal(objective: Objective, *, most: int = 10_000) -> Tensor:
    """Return the exact diagonal of the Hessian, (dim,).

    First one product with the H-term per parameter tensor tests whether the outputs are piecewise linear in it; its
    part of the diagonal is then the same as for the Gauss-Newton matrix. The other tensors take the cheaper of two
    ways: one derivative of the gradient per output of the layer for one sample (all samples at once), or one product
    with H per entry.

    | network | passes through all data, in addition to those of G |
    |---|---|
    | piecewise linear, such as ReLU | one for every tensor |
    | LeNet-300-100 with tanh, of 266,610 parameters | 400, and one for every tensor |
    | smooth, with parameters outside of affine layers | one for every entry |

    Parameters
    ----------
    objective
        Loss of a model on data.
    most
        Largest number of products, not counting the test; a diagonal that needs more raises, with their number.

    Raises
    ------
    ValueError
        If it takes too many products; and as `gauss_newton_diagonal`.

    Examples
    --------
    >>> x = torch.tensor([[1.0], [2.0]]).double()
    >>> cube = Objective(lambda p, x: p[0]**3 * x, (x, x), lambda z, y: z.mean(), parameters=[torch.ones(1).double()])
    >>> hessian_diagonal(cube)  # 6 p times the mean of x
    tensor([9.], dtype=torch.float64)
    """
    require_objective("hessian_diagonal", objective)
    most, places = _checks.natural("most", most), objective.blocks()
    numbers = {name: i for i, name in enumerate(places)}
    curved = {numbers[name]: places[name] for name in curved_tensors(objective)}
    units = _layers_by_output(objective, curved) if curved else {}
    rows = _blocks_by_product(curved, units, most)
    by_units = _diagonal_by_outputs(objective, {place for layer in units for place in layer}) if units else {}
    # parameters act elsewhere for some samples, so every entry takes a product
    if by_units is None:
        by_units, rows = {}, _blocks_by_product(curved, {}, most)
    found = torch.zeros(objective.dim, dtype=objective.dtype, device=objective.device)
    # without a block of its own in the H-term, a tensor has the diagonal of G
    if len(curved) < len(places):
        found = gauss_newton_diagonal(objective)
    for place, values in by_units.items():
        found[curved[place]] = values
    if rows:
        chosen = torch.cat([torch.arange(block.start, block.stop) for block in rows])
        found[chosen.to(found.device)] = diagonal_by_rows(hessian(objective), chosen)
    return finite_derivatives(found)


def _blocks_by_product(
    curved: Mapping[int, slice], units: Mapping[tuple[int, ...], int], most: int
) -> list[slice]:
    """Return the blocks whose entries take one product each; raise if more than `most` products are needed."""
    rows = [block for place, block in curved.items() if not any(place in layer for layer in units)]
    needed = sum(units.values()) + sum(block.stop - block.start for block in rows)
    if needed > most:
        rule = f"most must be at least {needed}, the products that an exact diagonal takes"
        raise ValueError(f"{rule}, got {most}; use an estimate such as estimated_diagonal")
    return rows


def _layers_by_output(objective: Objective, curved: Mapping[int, slice]) -> Mapping[tuple[int, ...], int]:
    """Return the layers with fewer outputs per sample than curved entries: their curved places and output counts."""
    if objective.training or not (objective.separable and sites.by_sample(objective)):
        return {}
    with objective.measured():
        batch = objective.few()
        passed = sites.visited_or_none(objective, batch)
    found = passed[1] if passed else []  # so few may be taken in another order
    uses = sites.uses(found)
    units: dict[tuple[int, ...], int] = {}
    for site in found:
        # a parameter of two sites has mixed derivatives between them, which this method does not see
        wanted = tuple(p for p in site.places.values() if p in curved and uses[p] == 1)
        entries = sum(curved[p].stop - curved[p].start for p in wanted)
        count = site.nudge.numel() // samples_of(batch.targets)
        if count < entries:
            units[wanted] = count
    return units


def _diagonal_by_outputs(objective: Objective, wanted: Set[int]) -> Mapping[int, Tensor] | None:
    """Return the diagonal at these places from second derivatives by the outputs of their layers.

    None if parameters act elsewhere for some of the samples.
    """
    elsewhere = False
    total = {place: torch.zeros_like(objective.leaves[place]).flatten() for place in sorted(wanted)}
    with objective.ranks.together("a diagonal"), objective.measured():
        for batch in objective.batches():
            passed = sites.visited_or_none(objective, batch)
            if passed is None:
                elsewhere = True
                break
            outputs, found = passed
            Outer(objective, batch, outputs)  # refuses a loss that couples samples
            slope = slopes(objective.loss(outputs, batch), [site.nudge for site in found], again=True)
            for site, steep in zip(found, slope, strict=True):
                names = {name: place for name, place in site.places.items() if place in wanted}
                if names:
                    for name, values in _site_diagonal(site, names, steep, samples_of(batch.targets)).items():
                        total[names[name]] += values
    if objective.ranks.any(elsewhere):
        return None
    return {place: objective.ranks.total(values) for place, values in total.items()}


def _site_diagonal(
    site: sites.Site, names: Iterable[str], slope: Tensor, samples: int
) -> Mapping[str, Tensor]:
    layer, count = site.layer, site.nudge.numel() // samples

    def unit(j: int) -> Tensor:
        rows = site.nudge.new_zeros(samples, count)
        rows[:, j] = 1.0
        return rows.view_as(site.nudge)

    found = {name: site.nudge.new_zeros(layer.get_parameter(name).numel()) for name in names}
    if not site_gradients.multiplies(layer):
        for j in range(count):
            one = unit(j)
            (bent,) = slopes(slope, site.nudge, one)
            for name, values in found.items():
                # sum over outputs j, k of ds_j/dw C_jk ds_k/dw, with C the second derivative, by columns
                pair = [site_gradients.per_sample(site, name, c[None], samples) for c in (one, bent)]
                values += (pair[0] * pair[1]).sum((0, 1))
        return found
    order = torch.arange(count).expand(samples, count).reshape(1, *site.nudge.shape)
    places, patches = site_gradients.factors(site, order, samples)  # (n, g, 1, o, L) and (n, g, p, L)
    weights = patches.new_zeros(*places.shape[1:4:2], patches.shape[2])
    biases = patches.new_zeros(places.shape[1:4:2])
    for g, o, at in np.ndindex(places.shape[1], places.shape[3], places.shape[4]):
        (bent,) = slopes(slope, site.nudge, unit(int(places[0, g, 0, o, at])))
        rows = site_gradients.by_position(site, bent[None], samples)[:, g, 0, o]
        weights[g, o] += (patches[:, g, :, at] * (patches[:, g] @ rows[:, :, None])[..., 0]).sum(0)
        biases[g, o] += rows.sum()
    if "weight" in found:
        found["weight"] += (weights.mT if isinstance(layer, nn.Embedding) else weights).flatten()
    if "bias" in found:
        found["bias"] += biases.flatten()
    return found
