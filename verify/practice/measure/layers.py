"""The Hessian layer by layer: what each block on its diagonal has, and what lies between the layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from simulate.lanczos import Operator, principal
from verify.practice.measure.matrices import Wishes, found_matrix
from verify.practice.measure.measurement import Layer, Number
from verify.practice.measure.stopping import GrowingTrace, StoppingRule

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


def layer_cost(probes: int) -> int:
    """Products that one layer takes at first, a guess."""
    return 20 + 3 * probes


def layered(
    operator: Operator,
    blocks: Places,
    norm: Number,
    rng: np.random.Generator,
    stopping: StoppingRule,
    spent: Callable[[], int],
) -> tuple[Layer, ...]:
    """Each layer in turn, by products of the whole matrix with vectors that are zero elsewhere.

    Parameters
    ----------
    operator
        Of the whole matrix.
    blocks
        Where each parameter stands, by name.
    norm
        Frobenius norm of the whole matrix.
    rng
        Of random vectors.
    stopping
        Of the estimates of each layer; the budget is that of the whole measurement.
    spent
        Products of the whole measurement so far, and those that are laid aside for what comes after.

    Examples
    --------
    >>> from simulate.lanczos import as_operator
    >>> matrix, norm = as_operator(np.diag([4.0, 3.0, 0.0])), Number.exact(5.0)
    >>> blocks = {"a.weight": slice(0, 1), "b.weight": slice(1, 3)}
    >>> for layer in layered(matrix, blocks, norm, np.random.default_rng(0), StoppingRule(), lambda: 0):
    ...     print(layer.name, layer.largest.value, layer.trace.value, round(layer.share.value, 9))
    a 4.0 4.0 0.64
    b 3.0 3.0 0.36
    """
    layers, found = layers_of(blocks), list[Layer]()
    for name, places in layers.items():
        # What later layers take at first is laid aside.
        aside = layer_cost(stopping.probes) * (len(layers) - len(found) - 1)
        inside = principal(operator, places)
        trace = GrowingTrace(0.0, inside, rng)
        trace.grow(stopping.probes)
        wishes = Wishes(count=1, stopping=stopping, dense=False)
        block = found_matrix(inside, rng, trace, wishes, lambda aside=aside: spent() + aside)
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


def _share(part: Number, whole: Number) -> Number:
    """Share of a part in the square of the norm of the whole."""
    if not whole.value:
        return Number.exact(0.0)
    share = (part.value / whole.value) ** 2
    relative = np.hypot(part.error / part.value if part.value else 0.0, whole.error / whole.value)
    exact = part.kind == whole.kind == "exact"
    return Number(value=share, error=2 * share * float(relative), kind="exact" if exact else "standard error")
