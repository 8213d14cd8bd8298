"""What a direction of the parameters does at the sites of a model, and how long the product of each sample is.

A layer with input h and derivative delta of the loss by its output has delta h' for its part of the gradient of a
sample. Along a direction both change, and the part of H_i v is (changed delta) h' + delta (changed h)'.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from simulate.modules import projected, sites
from simulate.modules.sample_parts import Outer, outer_of, rows_by_sample, windows
from simulate.modules.site_gradients import numbers_held, per_sample
from simulate.modules.sites import Site
from simulate.objectives import Batch, Objective
from simulate.objectives.batches import rows
from simulate.objectives.derivatives import slopes
from simulate.objectives.parameters import Leaves

__all__ = ["Pairs", "forms_at_sites", "products_at_sites"]

Pairs = Sequence[tuple[Sequence[Tensor], Tensor]]
"""Some vectors w, and the v that they are asked with."""


class _Change(NamedTuple):
    """What a direction of the parameters does at a site: its derivative of the loss, and the changes of it."""

    site: Site
    delta: Tensor | None  # None where only its change counts
    steeper: Tensor
    moved: Tensor | None  # change of what the weights multiply, None if that is data


def products_at_sites(
    objective: Objective, batch: Batch, vectors: Sequence[Tensor], full: bool
) -> tuple[Tensor, Tensor]:
    """Sum of |H_i v|^2 over a batch for every vector, (k,), and of H_i v, (k, dim)."""
    squares = torch.zeros(len(vectors), dtype=torch.float64, device=objective.device)
    sums = torch.zeros(len(vectors), objective.dim, dtype=torch.float64, device=objective.device)
    leaves = objective.leaves()
    for course, samples in _walk(objective, batch, full, 2):
        for k, vector in enumerate(vectors):
            square, parts = _lengths(course.along(_one(objective, vector)), samples)
            squares[k] += square
            whole = [parts[i] if i in parts else torch.zeros_like(leaf) for i, leaf in enumerate(leaves)]
            sums[k] += objective.flat([p.view_as(leaf) for p, leaf in zip(whole, leaves, strict=True)])
        del course  # or its graph would be held while that of the next samples is made
    return squares, sums


def forms_at_sites(objective: Objective, batch: Batch, pairs: Pairs, full: bool) -> Tensor:
    """Entries w' H_i v for every w of every pair, (N, k)."""
    found = list[Tensor]()
    lefts = [
        [torch.stack(part) for part in zip(*map(objective.split, left), strict=True)] for left, _ in pairs
    ]
    for course, samples in _walk(objective, batch, full, max(len(left) for left, _ in pairs)):
        columns = list[Tensor]()
        for directions, (_, right) in zip(lefts, pairs, strict=True):
            changes = course.along(_one(objective, right))
            columns.append(sum((_form(change, directions, samples) for change in changes), torch.zeros(())))
            del changes
        found.append(torch.cat(columns, dim=1))
        del course
    return torch.cat(found)


def _one(objective: Objective, vector: Tensor) -> list[Tensor]:
    return [part[None] for part in objective.split(vector)]


def _walk(objective: Objective, batch: Batch, full: bool, count: int) -> Iterator[tuple[_Course, int]]:
    """Some samples after the other, and their number; `count` tells how much is made of the changes."""
    outer, leaves = outer_of(objective, batch), objective.leaves()
    for part in windows(batch, lambda i: _numbers(objective, leaves, i, count), objective):
        outputs, found = sites.visited(objective, leaves, batch.part(part))
        yield _Course(outputs, found, outer, part, full), part.stop - part.start


def _numbers(objective: Objective, leaves: Leaves, inputs: Any, count: int) -> int:
    """Bytes of the derivatives of some samples at the sites, and of their gradients where these are written out."""
    _, found = sites.visited(objective, leaves, Batch(inputs, (), 0.0))
    numbers = sum((10 + 2 * count) * site.nudge.numel() + 2 * site.inputs.numel() for site in found)
    numbers += sum(numbers_held(site, 2, rows(inputs)) for site in found if not _thin(site, 1))
    return numbers * torch.finfo(objective.dtype).bits // 8


class _Course:
    """The sites of some samples, ready to be moved along one direction after the other.

    What all directions share is differentiated once: inner products of weights u with the outputs and with what the
    layers multiply, by the nudges, are linear in u, and their derivatives in u are the changes along a direction.
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
        """What one direction, for every parameter (1, *its shape), does at each of them."""
        found, outputs, part = self._found, self._outputs, self._part
        direct = [sites.moved(site, directions)[0] for site in found]
        tangent, *moved = slopes(self._pulled, self._weights, direct)
        bent = self._outer.bent(tangent.reshape(part.stop - part.start, -1), part)
        ends, starts = [outputs], [bent.view_as(outputs)]
        if self._delta is None:
            steeper = slopes(ends, self._nudges, starts)
            return [_Change(site, None, s, None) for site, s in zip(found, steeper, strict=True)]
        for site, d, change in zip(found, self._delta, direct, strict=True):
            if site.inputs.requires_grad:
                ends.append(site.inputs)
                starts.append(projected.pull(site, d.detach(), directions)(0))
            if d.requires_grad:
                ends.append(d)
                starts.append(change)
        steeper = slopes(ends, self._nudges, starts)
        later = iter(moved)
        return [
            _Change(site, d.detach(), s, None if f is None else next(later))
            for site, d, s, f in zip(found, self._delta, steeper, self._features, strict=True)
        ]


def _feature(site: Site) -> Tensor | None:
    """What the weights of a layer multiply, if other parameters move it."""
    if not site.inputs.requires_grad or "weight" not in site.places:
        return None
    if not isinstance(site.layer, sites.NORMALISATIONS):
        return site.inputs
    return sites.unscaled(site, site.inputs)


def _lengths(changes: Sequence[_Change], samples: int) -> tuple[Tensor, dict[int, Tensor]]:
    """Sum of the squared lengths of the products of all samples, and sum of the products by places, (size,) each."""
    uses = Counter(place for change in changes for place in change.site.places.values())
    products, sums = dict[int, Tensor](), dict[int, Tensor]()
    total = changes[0].steeper.new_zeros((), dtype=torch.float64)
    for change in changes:
        for name, place in change.site.places.items():
            if name == "weight" and uses[place] == 1 and _thin(change.site, samples):
                left, right = _thin_factors(change, samples)
                total += _thin_square(left.double(), right.double())
                sums[place] = (left.flatten(0, 1).mT @ right.flatten(0, 1)).flatten()
            else:
                product = _product(change, name, samples)
                products[place] = products[place] + product if place in products else product
    for place, product in products.items():
        total += product.double().square().sum()
        sums[place] = product.sum(0)
    return total, sums


def _thin(site: Site, samples: int) -> bool:
    """Whether so few rows of a matrix product make up the gradient of a sample that their overlaps cost less."""
    if not isinstance(site.layer, nn.Linear):
        return False
    above, below = site.nudge.shape[-1], site.inputs.shape[-1]
    return 2 * (site.nudge.numel() // (samples * above)) * (above + below) < above * below


def _thin_factors(change: _Change, samples: int) -> tuple[Tensor, Tensor]:
    """L and R with few rows for each sample, of the product L'R: (n, rows, out) and (n, rows, in)."""
    above, below = [change.steeper], [change.site.inputs.detach()]
    if change.moved is not None and change.delta is not None:
        above.append(change.delta)
        below.append(change.moved)
    left, right = (
        torch.cat([t.reshape(samples, -1, t.shape[-1]) for t in side], dim=1) for side in (above, below)
    )
    return left, right


def _thin_square(left: Tensor, right: Tensor) -> Tensor:
    """Of L'R the sum of the products of the entries of LL' and RR'."""
    return ((left @ left.mT) * (right @ right.mT)).sum()


def _product(change: _Change, name: str, samples: int) -> Tensor:
    """Part of H_i v that belongs to one parameter, (n, size)."""
    site, delta, moved = change.site, change.delta, change.moved
    product = per_sample(site, name, change.steeper[None], samples)[:, 0]
    if name == "bias" or delta is None or moved is None:
        return product
    if not isinstance(site.layer, sites.NORMALISATIONS):
        return product + per_sample(site._replace(inputs=moved), name, delta[None], samples)[:, 0]
    return product + _scaled(site, delta * moved, samples)


def _scaled(site: Site, product: Tensor, samples: int) -> Tensor:
    """Of a normalisation, whose weights multiply one by one, the sums for each of them, (n, size)."""
    if not isinstance(site.layer, nn.LayerNorm | nn.RMSNorm):
        product = product.movedim(1, -1)
    return product.reshape(samples, -1, site.layer.get_parameter("weight").numel()).sum(1)


def _form(change: _Change, directions: Sequence[Tensor], samples: int) -> Tensor:
    """What a site adds to w' H_i v for every w of the directions, (n, k)."""
    site, delta, moved = change.site, change.delta, change.moved
    total = _paired(sites.moved(site, directions), change.steeper, samples)
    if delta is None or moved is None:
        return total
    place = site.places["weight"]
    if isinstance(site.layer, sites.NORMALISATIONS):
        return (
            total + _scaled(site, delta * moved, samples).double() @ directions[place].flatten(1).mT.double()
        )
    alone = site._replace(inputs=moved, places={"weight": place})
    return total + _paired(sites.moved(alone, directions), delta, samples)


def _paired(changes: Tensor, delta: Tensor, samples: int) -> Tensor:
    """Inner products (n, k) of changes (k, *output) and a derivative by the output, sample by sample."""
    return (rows_by_sample(changes, samples) @ delta.reshape(samples, -1, 1))[..., 0].double()
