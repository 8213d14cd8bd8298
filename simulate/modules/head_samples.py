"""Curvature of single samples of a language model whose logits are taken by chunks of positions.

Derivatives of the outputs of a sample would take its logits several times over. Instead each sample has a product of
its own, H_i v through the head as in `objectives.head_products`; those of all samples cost what one product of the
whole costs. H_i is that of `modules.hessian_variance`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate.modules.samples import separate_batches
from simulate.objectives import Objective
from simulate.objectives.batches import rows
from simulate.objectives.head_products import head_product

__all__ = ["forms_by_head", "has_head", "variances_by_head"]

_BYTES = 1 << 26
"""Of the vectors that go through one sample together."""


def has_head(objective: Objective) -> bool:
    """Whether logits are taken by chunks of positions."""
    return not objective.training and objective.head_of(objective.few()) is not None


def variances_by_head(
    objective: Objective, vectors: Iterable[Tensor], matrix: Literal["hessian", "gauss_newton"]
) -> NDArray[np.float64]:
    """Sum of |(H_i - mean) v|^2 over the samples divided by N - 1, for every vector v: (k,). A few are held at once."""
    size = max(1, _BYTES * 8 // (objective.dim * torch.finfo(objective.dtype).bits))
    left = iter(vectors)
    parts = iter(lambda: list(itertools.islice(left, size)), [])
    found = [_variances(objective, torch.stack(part), matrix) for part in parts]
    return torch.cat(found).clamp(min=0.0).cpu().numpy()


def forms_by_head(
    objective: Objective,
    pairs: Sequence[tuple[Sequence[Tensor], Tensor]],
    matrix: Literal["hessian", "gauss_newton"],
) -> NDArray[np.float64]:
    """Entries w' H_i v for every pair of some w and a v, one after the other: (N, k)."""
    right = torch.stack([v for _, v in pairs])
    found = [torch.zeros(0, sum(len(left) for left, _ in pairs), dtype=torch.float64)]
    for products in _products(objective, right, matrix):
        each = [
            w.double() @ own for (left, _), own in zip(pairs, products.double(), strict=True) for w in left
        ]
        found.append(torch.stack(each)[None].cpu())
    return objective.ranks.rows(torch.cat(found).numpy())


def _variances(objective: Objective, vectors: Tensor, matrix: Literal["hessian", "gauss_newton"]) -> Tensor:
    squares = torch.zeros(len(vectors), dtype=torch.float64, device=vectors.device)
    sums = torch.zeros_like(vectors, dtype=torch.float64)  # from which squares are taken
    for products in _products(objective, vectors, matrix):
        squares += products.double().square().sum(1)
        sums += products
    squares, sums, count = objective.ranks.total(squares), objective.ranks.total(sums), objective.rows
    return (squares - sums.square().sum(1) / count) / (count - 1)


def _products(
    objective: Objective, vectors: Tensor, matrix: Literal["hessian", "gauss_newton"]
) -> Iterator[Tensor]:
    """H_i v for every row v, (k, dim), one sample after the other."""
    leaves = objective.leaves()
    with objective.ranks.together("samples", vectors=vectors), objective.measured(), torch.enable_grad():
        for batch in separate_batches(objective):
            head: Any = objective.head_of(batch)  # as the few have that were asked
            for i in range(rows(batch.targets)):
                part = batch.part(slice(i, i + 1))
                own = objective.weighed(part.inputs, part.targets)
                if not own.factor:
                    yield torch.zeros_like(vectors)
                    continue
                product = head_product(objective, matrix, head, leaves, own)
                found = [objective.flat(product(objective.split(v))).detach() for v in vectors]
                if not all(bool(each.isfinite().all()) for each in found):
                    raise ValueError(
                        "objective must have finite derivatives along the vectors, got NaN or infinity"
                    )
                yield torch.stack(found) / objective.share
