"""The Hessian layer by layer: what each block on its diagonal has, and what lies between the layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simulate.lanczos import Operator, principal
from verify.practice.measure.budget import HESSIAN, Budget
from verify.practice.measure.matrices import (
    MARGIN,
    PROBES,
    MeasuredMatrix,
    Search,
    extend,
    more_probes,
)
from verify.practice.measure.measurement import Layer, Number

Places = Mapping[str, slice]


def layers_of(blocks: Places) -> dict[str, list[slice]]:
    """Parameters by the layer that they belong to: what stands before the last dot of their names.

    A parameter without numbers, as of a layer of width 0, is left out.

    Examples
    --------
    >>> layers_of({"0.weight": slice(0, 6), "0.bias": slice(6, 8), "scale": slice(8, 9)})
    {'0': [slice(0, 6, None), slice(6, 8, None)], 'scale': [slice(8, 9, None)]}
    """
    found: dict[str, list[slice]] = {}
    for name, place in blocks.items():
        layer, dot, _ = name.rpartition(".")
        if place.stop == place.start:
            continue
        found.setdefault(layer if dot else name, []).append(place)
    return found


LAYER_PASSES = 50.0
"""Passes for one layer if the budget is not given."""


LEAST_LAYER = HESSIAN * (1 + MARGIN + 2)
"""Passes without which nothing is known of a layer: a short chain, and two probes."""


def layered(
    operator: Operator,
    layers: Mapping[str, Sequence[slice]],
    norm: Number,
    rng: np.random.Generator,
    spent: Budget,
    tolerance: float,
) -> tuple[Layer, ...]:
    """Each layer in turn, by products of the whole matrix with vectors that are zero elsewhere.

    Parameters
    ----------
    operator
        Of the whole matrix, counted by `spent`.
    layers
        Where the parameters of each layer stand, see `layers_of`.
    norm
        Frobenius norm of the whole matrix.
    rng
        Of random vectors.
    spent
        The budget: every layer takes an equal part of what is left.
    tolerance
        Standard error of trace and norm at which a layer needs no more probes.

    Examples
    --------
    >>> from simulate.lanczos import as_operator
    >>> matrix, norm, spent = as_operator(np.diag([4.0, 3.0, 0.0])), Number.exact(5.0), Budget(100.0)
    >>> layers = layers_of({"a.weight": slice(0, 1), "b.weight": slice(1, 3)})
    >>> for layer in layered(spent.on(matrix, 1.0), layers, norm, np.random.default_rng(0), spent, 0.05):
    ...     print(layer.name, layer.largest.value, layer.trace.value, round(layer.share.value, 9))
    a 4.0 4.0 0.64
    b 3.0 3.0 0.36
    """
    found = list[Layer]()
    for name, places in layers.items():
        inside, passes = principal(operator, places), spent.free / (len(layers) - len(found))
        block = _block(inside, rng, passes, tolerance)
        found.append(
            Layer(
                name=name,
                parameters=inside.dim,
                largest=block.matrix.top[0],
                trace=block.matrix.trace,
                frobenius=block.matrix.frobenius,
                share=_share(block.matrix.frobenius, norm),
                excess=block.matrix.excess,
                short=block.short,
            )
        )
    return tuple(found)


def _block(inside: Operator, rng: np.random.Generator, passes: float, tolerance: float) -> MeasuredMatrix:
    products = int(passes / HESSIAN)
    search = Search(inside, rng, 1, lowest=False)
    whole = inside.dim <= products
    made = extend(
        search,
        inside.dim if whole else 0.6 * products,
        lambda search: search.complete if whole else search.finished,
    )
    search.freeze()
    if not search.complete:
        search.probe(search.random_vectors(rng, max(2, min(PROBES, products - made))))
    while max((off := search.off(tolerance, placed=False)).values()) > 1:
        left = products - made - search.probes
        if left < 2:
            break
        search.probe(search.random_vectors(rng, more_probes(search.probes, max(off.values()), left)))
    return search.result(off)


def _share(part: Number, whole: Number) -> Number:
    """Share of a part in the square of the norm of the whole."""
    if not whole.value:
        return Number.exact(0.0)
    share = (part.value / whole.value) ** 2
    relative = np.hypot(part.error / part.value if part.value else 0.0, whole.error / whole.value)
    exact = part.kind == whole.kind == "exact"
    return Number(value=share, error=2 * share * float(relative), kind="exact" if exact else "standard error")
