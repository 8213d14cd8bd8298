"""Errors of KFAC and EKFAC against the Gauss-Newton matrix of a network, as a whole and by layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulate.factors import FactorErrors, KroneckerFactors, VanishingError, ekfac, factor_errors, kfac
from simulate.lanczos import Operator
from simulate.objectives import Objective
from simulate.spectra import Estimate
from verify.practice.measure.budget import GAUSS_NEWTON, Budget, SpentError
from verify.practice.measure.measurement import Factors, LayerFactors, Number


def factors_of(objective: Objective) -> tuple[KroneckerFactors, KroneckerFactors]:
    """KFAC and EKFAC of the Gauss-Newton matrix.

    Raises
    ------
    ValueError
        If the network has none, see `simulate.factors.kfac`.
    """
    plain = kfac(objective)
    return plain, ekfac(objective, factors=plain)


_PROBES = 8
"""Random vectors for every layer."""

_LARGEST = 60
"""Products for the largest eigenvalue that are laid aside."""


def factor_passes(layers: int) -> float:
    """Return the passes for the errors of factors if the budget is not given."""
    return GAUSS_NEWTON * (_PROBES * layers + _LARGEST)


def measured_factors(
    operator: Operator,
    factors: tuple[KroneckerFactors, KroneckerFactors],
    rng: np.random.Generator,
    spent: Budget,
) -> tuple[Factors | None, Sequence[str]]:
    """Errors of both, from the same probes; None, and why, without passes or if nothing is there to compare with.

    Parameters
    ----------
    operator
        The Gauss-Newton matrix, counted by `spent`.
    factors
        Of it, see `factors_of`.
    rng
        Of random vectors.
    spent
        The budget.
    """
    layers, products = len(factors[0].blocks), int(spent.free / GAUSS_NEWTON) - _LARGEST
    rows, probes = operator.dim if operator.dim <= products else 0, min(_PROBES, products // layers)
    try:
        if not rows and probes < 2:
            raise SpentError
        plain, corrected = factor_errors(operator, factors, rng, probes=max(probes, 2), rows=rows)
    except VanishingError:
        return None, [
            "no errors of Kronecker factors: the Gauss-Newton matrix is zero, as a whole or in a layer"
        ]
    except SpentError:
        return None, ["no errors of Kronecker factors: the budget is too small"]
    found = Factors(
        kfac=_number(plain.whole),
        ekfac=_number(corrected.whole),
        between=_number(plain.between),
        kfac_largest=plain.largest,
        ekfac_largest=corrected.largest,
        layers=_layers(factors[0], plain, corrected),
    )
    return found, ()


def _layers(
    factors: KroneckerFactors, plain: FactorErrors, corrected: FactorErrors
) -> tuple[LayerFactors, ...]:
    return tuple(
        LayerFactors(
            name=", ".join(dict.fromkeys(name.rpartition(".")[0] or name for name in block.places)),
            parameters=sum(at.stop - at.start for at in block.places.values()),
            kfac=_number(plain.layers[tuple(block.places)]),
            ekfac=_number(corrected.layers[tuple(block.places)]),
        )
        for block in factors.blocks
    )


def _number(found: Estimate) -> Number:
    kind = "standard error" if found.standard_error else "exact"
    return Number(value=found.value, error=found.standard_error, kind=kind)
