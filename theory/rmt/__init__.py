r"""Limiting spectra of random matrices, the two transforms that add them up, and their edges.

=====================  ======================  ==================================================
name                   symbol                  Granziol, Zohren and Roberts (2022)
=====================  ======================  ==================================================
`Semicircle`           p(lambda)               Theorem 3, fluctuation of the mini-batch Hessian
`MarchenkoPastur`      eq. (52)                appendix B, fluctuation of the Gauss-Newton matrix
`CompoundFreePoisson`                          noise of low rank, in place of Theorem 3
`TracyWidom`                                   largest eigenvalue of noise, about the edge
``sigma``              sigma                   standard deviation; the semicircle ends at +-2 sigma
``variance``           sigma^2                 variance of one entry
``q``                  beta                    aspect ratio rows / columns
``stieltjes(z)``       S(z), G(z)              int rho(x) dx / (z - x); minus that of eq. (46)
``r_transform(w)``     R(w)                    functional inverse of G, less 1/w; eqs. (33), (50)
=====================  ======================  ==================================================

Moments at finite dimension, matrices of rank one and random directions stand in `theory.rmt.finite_moments`; all are
offered here.

The semicircle and the Marchenko-Pastur law are computed in an angle: a support of centre m and half-width r is
x = m - r cos(phi), where densities that end like square roots become smooth and nothing is lost near an edge.
"""

from __future__ import annotations

from theory.rmt.finite_moments import (
    alternating_moment,
    low_rank_fourth_moment,
    overlap_cdf,
    profiled_fourth_moment,
    rank_one_expansion,
    rank_one_inverse,
    rank_one_stieltjes,
    sparse_fourth_moment,
    subspace_share,
    wigner_second_moment,
    wishart_third_moment,
)
from theory.rmt.free_poisson import CompoundFreePoisson
from theory.rmt.marchenko_pastur import MarchenkoPastur
from theory.rmt.semicircle import Semicircle
from theory.rmt.tracy_widom import TracyWidom

__all__ = [
    "CompoundFreePoisson",
    "MarchenkoPastur",
    "Semicircle",
    "TracyWidom",
    "alternating_moment",
    "low_rank_fourth_moment",
    "overlap_cdf",
    "profiled_fourth_moment",
    "rank_one_expansion",
    "rank_one_inverse",
    "rank_one_stieltjes",
    "sparse_fourth_moment",
    "subspace_share",
    "wigner_second_moment",
    "wishart_third_moment",
]
