"""Lanczos with full re-orthogonalisation: Gauss quadrature of the spectrum that a vector sees, by products alone.

A symmetric matrix A of order `dim` is given as a dense array, as an `Operator`, a function from blocks of vectors to
blocks of vectors, or as an operator of another library (`ForeignMatrix`). With a unit start q, after m steps the nodes
(Ritz values) theta and weights w satisfy sum_i w_i f(theta_i) = q' f(A) q for every polynomial f of degree up to
2m - 1. Several starts run side by side, each by itself, so that the operator is called once per step with all of them.

Conjugate gradients, `solve`, use the same chain for products with the inverse.

For users there are density, trace and norm in `simulate.spectra`, and extreme eigenpairs in `simulate.eigenvalues`,
which also decides when to stop.
"""

from simulate.lanczos.chain import WarmStart, warm_start
from simulate.lanczos.gauss import Quadrature, Tridiagonal, quadrature, tridiagonal
from simulate.lanczos.products import (
    AnyMatrix,
    ForeignMatrix,
    Operator,
    Product,
    as_operator,
    one_by_one,
    principal,
)
from simulate.lanczos.solves import Solution, solve

__all__ = [
    "AnyMatrix",
    "ForeignMatrix",
    "Operator",
    "Product",
    "Quadrature",
    "Solution",
    "Tridiagonal",
    "WarmStart",
    "as_operator",
    "one_by_one",
    "principal",
    "quadrature",
    "solve",
    "tridiagonal",
    "warm_start",
]
