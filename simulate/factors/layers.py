"""Kronecker factors of layers, as sums over samples, and dense blocks of the other parameters.

A layer that multiplies patches of its input by a matrix of weights has them: linear layers and convolutions, by groups,
each with its bias as the weight of an input that is one. A layer that is called several times has the positions of all
calls. What else the parameters do, in normalisations, embeddings, transposed convolutions or in weights that two layers
share, has a dense block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from simulate import _checks, _memory
from simulate.modules import site_gradients, sites
from simulate.modules.sample_parts import Root, SamplePart, finite_derivatives, parts
from simulate.objectives import Objective
from simulate.objectives.additivity import asked_once
from simulate.objectives.ranks import Ranks

DENSE = 4096
"""Most parameters of a dense block."""

Sharing = Literal["expand", "reduce"]
_SHARINGS = ("expand", "reduce")


# --- blocks --------------------------------------------------------------------------------------------------------
# A block acts on the parameters of one layer, as rows (k, size) of their numbers in the order of its `places`.

Spectral = Callable[[Tensor], Tensor]
"""A function of eigenvalues, entry by entry."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FactorBlock(ABC):
    """The diagonal block of some parameters.

    Attributes
    ----------
    places
        Slice of each parameter in the vector of all, by name.
    """

    places: Mapping[str, slice]

    @abstractmethod
    def product(self, rows: Tensor) -> Tensor:
        """Return the products with vectors (k, size)."""

    @abstractmethod
    def function(self, rows: Tensor, of: Spectral) -> Tensor:
        """Return the products of a function of the block with vectors (k, size)."""

    @property
    @abstractmethod
    def eigenvalues(self) -> Tensor:
        """All eigenvalues, (size,), float64, in no order."""

    @property
    @abstractmethod
    def diagonal(self) -> Tensor:
        """The diagonal, (size,)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseBlock(FactorBlock):
    """A dense matrix (size, size)."""

    matrix: Tensor

    def product(self, rows: Tensor) -> Tensor:
        """Return the products with vectors (k, size)."""
        return rows @ self.matrix

    def function(self, rows: Tensor, of: Spectral) -> Tensor:
        """Return the products of a function of the block with vectors (k, size)."""
        values, vectors = self._decomposed
        basis = vectors.to(rows)
        return ((rows @ basis) * of(values).to(rows)) @ basis.mT

    @property
    def eigenvalues(self) -> Tensor:
        """All eigenvalues, (size,)."""
        return self._decomposed[0]

    @property
    def diagonal(self) -> Tensor:
        """The diagonal, (size,)."""
        return self.matrix.diagonal()

    @cached_property
    def _decomposed(self) -> tuple[Tensor, Tensor]:
        values, vectors = torch.linalg.eigh(self.matrix.double())
        # the block is positive semidefinite: negative values are rounding, and their roots would be NaN
        return values.clamp(min=0), vectors


@dataclass(frozen=True, kw_only=True, eq=False)
class KroneckerBlock(FactorBlock):
    """A (x) B for the matrix (out, in) of weights of each of g groups of a layer, its bias as a last column.

    Attributes
    ----------
    inputs
        A, (g, in, in).
    outputs
        B, (g, out, out).
    corrected
        Eigenvalues (g, out, in) in the eigenbasis of A (x) B that take the place of the products of those of A and B;
        None if none do.
    """

    inputs: Tensor
    outputs: Tensor
    corrected: Tensor | None = None

    def product(self, rows: Tensor) -> Tensor:
        """Return the products with vectors (k, size)."""
        if self.corrected is not None:
            return self.function(rows, lambda values: values)
        return self._rows(self.outputs @ self._matrices(rows) @ self.inputs)

    def function(self, rows: Tensor, of: Spectral) -> Tensor:
        """Return the products of a function of the block with vectors (k, size)."""
        left, right = (basis.to(rows) for basis in self.bases)
        seen = left.mT @ self._matrices(rows) @ right
        return self._rows(left @ (seen * of(self._values).to(rows)) @ right.mT)

    @property
    def eigenvalues(self) -> Tensor:
        """All eigenvalues, (size,)."""
        return self._values.flatten()

    @property
    def diagonal(self) -> Tensor:
        """The diagonal, (size,)."""
        if self.corrected is None:
            products = (
                self.outputs.diagonal(dim1=1, dim2=2)[:, :, None]
                * self.inputs.diagonal(dim1=1, dim2=2)[:, None]
            )
        else:
            left, right = (basis.to(self.corrected) for basis in self.bases)
            products = left.square() @ self.corrected @ right.square().mT
        return self._rows(products[None])[0]

    @property
    def bases(self) -> tuple[Tensor, Tensor]:
        """Eigenvectors of B (g, out, out) and of A (g, in, in), in columns, float64."""
        (_, outer), (_, inner) = self._decomposed
        return outer, inner

    @cached_property
    def _decomposed(self) -> Sequence[tuple[Tensor, Tensor]]:
        return [torch.linalg.eigh(factor.double()) for factor in (self.outputs, self.inputs)]

    @cached_property
    def _values(self) -> Tensor:
        if self.corrected is not None:
            return self.corrected.double().clamp(min=0)
        outer, inner = (values.clamp(min=0) for values, _ in self._decomposed)
        return (outer[:, :, None] * inner[:, None]).contiguous()

    def _matrices(self, rows: Tensor) -> Tensor:
        """Return rows (k, size) as matrices (k, g, out, in)."""
        groups, out = self.outputs.shape[:2]
        sizes = [at.stop - at.start for at in self.places.values()]
        return torch.cat(
            [part.reshape(len(rows), groups, out, -1) for part in rows.split(sizes, dim=1)], dim=3
        )

    def _rows(self, matrices: Tensor) -> Tensor:
        out = self.outputs.shape[0] * self.outputs.shape[1]
        widths = [(at.stop - at.start) // out for at in self.places.values()]
        return torch.cat([part.flatten(1) for part in matrices.split(widths, dim=3)], dim=1)


# --- sums over samples ---------------------------------------------------------------------------------------------


class _Sums(NamedTuple):
    """Sums of a layer with factors: A, B, and the number of inputs in A."""

    inputs: Tensor
    outputs: Tensor
    counted: float

    def plus(self, other: _Sums) -> _Sums:
        """Return the sums with those of further samples."""
        return _Sums(self.inputs + other.inputs, self.outputs + other.outputs, self.counted + other.counted)


def factored(objective: Objective, root: Root, sharing: Sharing) -> list[FactorBlock]:
    """Return the blocks of all parameters, by one pass through the data.

    Raises
    ------
    ValueError
        If a parameter acts elsewhere than in layers, or a sample sees another; if a parameter without factors has too
        many numbers, or no part in the outputs; if `sharing` is unknown, derivatives are not finite, or the factors do
        not fit into memory.
    """
    _checks.one_of("sharing", sharing, _SHARINGS)
    multiplied, others = _group_parameters(objective)
    _require_memory(objective, multiplied, others)
    sums: dict[tuple[int, ...], _Sums] = {}
    sizes = {places: sum(objective.shapes[place].numel() for place in places) for places in others}
    zero = objective.leaves[0].new_zeros
    dense = {places: zero(size, size) for places, size in sizes.items()}
    with objective.ranks.together("factors"), objective.measured():
        for part in _parts(objective, root):
            for places in multiplied:
                new = _sums(*_factors(part, places), part.signs, sharing)
                sums[places] = sums[places].plus(new) if places in sums else new
            for places, matrix in dense.items():
                matrix += _outer_products(part, places)
    sums = {places: _sum_over_ranks(objective.ranks, sums.get(places), zero) for places in multiplied}
    names = list(objective.blocks().items())
    blocks: list[FactorBlock] = [
        KroneckerBlock(
            places=dict(names[place] for place in places),
            # no sample counts if all are ignored
            inputs=finite_derivatives(found.inputs / (found.counted or 1.0)),
            outputs=finite_derivatives(objective.share * found.outputs),
        )
        for places, found in sums.items()
    ]
    for places, matrix in dense.items():
        matrix = objective.share * objective.ranks.total(matrix)
        blocks.append(DenseBlock(places=dict(names[place] for place in places), matrix=matrix))
    return sorted(blocks, key=lambda block: next(iter(block.places.values())).start)


def corrected(objective: Objective, root: Root, blocks: Sequence[FactorBlock]) -> list[FactorBlock]:
    """Return Kronecker blocks with the exact diagonal of the matrix in their eigenbasis, by one more pass."""
    names = {name: i for i, name in enumerate(objective.blocks())}
    kronecker = [block for block in blocks if isinstance(block, KroneckerBlock)]
    totals = [
        block.outputs.new_zeros(len(block.outputs), block.outputs.shape[1], block.inputs.shape[1])
        for block in kronecker
    ]
    with objective.ranks.together("factors"), objective.measured():
        for part in _parts(objective, root):
            for block, total in zip(kronecker, totals, strict=True):
                steep, patches, biased = _factors(part, tuple(names[name] for name in block.places))
                patches = (
                    torch.cat([patches, torch.ones_like(patches[:, :, :1])], dim=2) if biased else patches
                )
                left, right = (basis.to(steep) for basis in block.bases)
                seen = torch.einsum("goa,ngrol->ngral", left, steep)
                total += site_gradients.squared(
                    seen, torch.einsum("gpq,ngpl->ngql", right, patches), part.signs
                )
    totals = [objective.ranks.total(total) for total in totals]
    values = iter(finite_derivatives(objective.share * total) for total in totals)
    return [
        replace(block, corrected=next(values)) if isinstance(block, KroneckerBlock) else block
        for block in blocks
    ]


def _sum_over_ranks(ranks: Ranks, own: _Sums | None, zero: Callable[..., Tensor]) -> _Sums:
    """Return the sums over all processes of a group, some of which may have no samples."""
    shapes = ranks.gathered("factors", own and (own.inputs.shape, own.outputs.shape))
    inputs, outputs = next(filter(None, shapes))
    own = own or _Sums(zero(inputs), zero(outputs), 0.0)
    return _Sums(ranks.total(own.inputs), ranks.total(own.outputs), ranks.sum(own.counted))


def _parts(objective: Objective, root: Root) -> Iterator[SamplePart]:
    for part in parts(objective, pairs=False, root=root):
        if part.slopes:
            yield part
        # gradients were written out, so parameters act elsewhere than in layers
        elif part.pairs:
            raise ValueError(_ELSEWHERE)


_ELSEWHERE = (
    "model must use its parameters in layers only, without randomness and each sample on its own, to have Kronecker"
    " factors, got another; use products of the matrix itself"
)


@asked_once
def _group_parameters(objective: Objective) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the places, weight first, of layers with factors, and of other parameters, grouped by layer."""
    if not sites.by_sample(objective):
        raise ValueError(_ELSEWHERE)
    with objective.measured():
        passed = sites.visited_or_none(objective, objective.few())
    if passed is None:
        raise ValueError(_ELSEWHERE)
    layers: dict[int, tuple[nn.Module, tuple[int, ...]]] = {}
    for site in passed[1]:
        ordered = sorted(site.places.items(), reverse=True)  # the weight before the bias
        layers[id(site.layer)] = site.layer, tuple(place for _, place in ordered)
    owners = Counter(place for _, own in layers.values() for place in own)
    unused = [name for i, name in enumerate(objective.names) if i not in owners]
    if unused:
        raise ValueError(
            f"parameters must affect the outputs, got {unused[0]!r} that does not; leave it out by parameters="
        )
    multiplied, others = [], list[tuple[int, ...]]()
    for layer, places in layers.values():
        # a weight that two layers share has cross terms between them, which no Kronecker product holds
        alone = all(owners[place] == 1 for place in places)
        if alone and site_gradients.multiplies(layer) and not isinstance(layer, nn.Embedding):
            multiplied.append(places)
        else:
            # layers that share a parameter need one block together
            shared = [other for other in others if set(other) & set(places)]
            others = [other for other in others if other not in shared]
            others.append(tuple(sorted({*places, *(place for other in shared for place in other)})))
    return multiplied, others


def _require_memory(
    objective: Objective,
    multiplied: Sequence[tuple[int, ...]],
    others: Sequence[tuple[int, ...]],
) -> None:
    sizes = [shape.numel() for shape in objective.shapes]
    for places in others:
        if sum(sizes[place] for place in places) > DENSE:
            names = ", ".join(repr(objective.names[place]) for place in places)
            raise ValueError(
                "parameters must be of linear and convolutional layers, or of other layers with at most"
                f" {DENSE} numbers, got {sum(sizes[place] for place in places)} in {names}; leave them out by"
                " parameters="
            )
    numbers = sum(sum(sizes[place] for place in places) ** 2 for places in others)
    for places in multiplied:
        shape = objective.shapes[places[0]]
        numbers += shape[0] ** 2 + (shape[1:].numel() + 1) ** 2
    size = 3 * numbers * objective.dtype.itemsize  # with eigenvectors and a term of the sum
    what, advice = "the factors of all layers", "leave out the widest layer by parameters="
    _memory.require_free("objective", size, what, device=objective.device, advice=advice)


def _factors(part: SamplePart, places: tuple[int, ...]) -> tuple[Tensor, Tensor, bool]:
    """Return cotangents (n, g, r, o, L) and inputs (n, g, p, L) of all calls of a layer, and whether it has a bias."""
    calls = [call for call in part.slopes if set(call[0].places.values()) == set(places)]
    found = [site_gradients.factors(*call, len(part.signs)) for call in calls]
    # nothing is copied for a single call
    steep, inputs = (
        found[0] if len(found) == 1 else (torch.cat(each, dim=-1) for each in zip(*found, strict=True))
    )
    own = calls[0][0].places
    return steep, inputs if "weight" in own else inputs[:, :, :0], "bias" in own


def _bordered(matrix: Tensor, row: Tensor, corner: int) -> Tensor:
    """Return matrices (g, p, p) with one more row and column, those of the bias, whose input is one."""
    found = nn.functional.pad(matrix, (0, 1, 0, 1), value=float(corner))
    found[:, -1, :-1] = found[:, :-1, -1] = row
    return found


def _sums(steep: Tensor, inputs: Tensor, biased: bool, weights: Tensor, sharing: Sharing) -> _Sums:
    counted = (weights != 0).any(1)
    if sharing == "reduce":
        steep, inputs = steep.sum(-1, keepdim=True), inputs.mean(-1, keepdim=True)
    inputs = inputs if bool(counted.all()) else inputs[counted]
    # cotangents without weight are zero
    # multiplying by weights of one would only copy all cotangents
    plain = bool(((weights == 1) | (weights == 0)).all())
    slopes = steep.movedim(0, 1).flatten(1, 2)
    weighted = slopes if plain else slopes * weights.to(steep).flatten()[:, None, None]
    counts = len(inputs) * inputs.shape[-1]
    lying = inputs.movedim(0, 1)
    squares = _products(lying, lying)
    squares = _bordered(squares, lying.sum((1, 3)), counts) if biased else squares
    return _Sums(squares, _products(weighted, slopes), float(counts))


def _products(one: Tensor, other: Tensor) -> Tensor:
    """Return matrices (g, n, rows, L) times the transposes of others, summed over n: (g, rows, rows)."""
    if one.shape[3] >= one.shape[2]:  # as they lie, and no more numbers than they have
        return (one @ other.mT).sum(1)
    flat, same = (t.movedim(1, 2).flatten(2) for t in (one, other))
    return flat @ same.mT


def _outer_products(part: SamplePart, places: tuple[int, ...]) -> Tensor:
    """Return the sum of g g' over samples and cotangents, with g the gradient in some parameters."""
    uses, samples = site_gradients.uses_of(part.slopes), len(part.signs)

    def gradients(place: int, k: int) -> Tensor:
        each = [site_gradients.per_sample(site, name, c[k : k + 1], samples) for site, name, c in uses[place]]
        return torch.stack(each).sum(0)[:, 0]

    total = torch.zeros((), dtype=part.cotangents.dtype, device=part.cotangents.device)
    for k in range(part.signs.shape[1]):
        rows = torch.cat([gradients(place, k) for place in places], dim=1)
        total = total + (rows * part.signs[:, k : k + 1].to(rows)).mT @ rows
    return total
