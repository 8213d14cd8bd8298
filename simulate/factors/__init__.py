"""Kronecker factors of the curvature, layer by layer, and their errors.

| name | what |
|---|---|
| `kfac` | block-diagonal matrix whose blocks are Kronecker products, one for each layer |
| `ekfac` | the same with the diagonal that the matrix has in the eigenbasis of the products |
| `KroneckerFactors` | what both give: an operator with inverses, powers, eigenvalues, trace and determinant |
| `factor_errors` | how far they are from the matrix, whole and by layer |

An inverse of them is a preconditioner for `simulate.lanczos.solve`. What they approximate is in `kronecker`.
"""

from simulate.factors.errors import FactorErrors, VanishingError, factor_errors
from simulate.factors.kronecker import Kind, KroneckerFactors, ekfac, kfac
from simulate.factors.layers import DenseBlock, FactorBlock, KroneckerBlock, Sharing

__all__ = [
    "DenseBlock",
    "FactorBlock",
    "FactorErrors",
    "Kind",
    "KroneckerBlock",
    "KroneckerFactors",
    "Sharing",
    "VanishingError",
    "ekfac",
    "factor_errors",
    "kfac",
]
