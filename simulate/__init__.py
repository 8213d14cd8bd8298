"""Measurements: draws, networks and curvature, which know no formula. ``import simulate; simulate.operators``.

=====================  =============================================================================================
`operators`            matrices of the curvature of any loss by their products: Hessian, Gauss-Newton, Fisher
`objectives`           what they belong to: a model, its loss and its data as one function of the parameters
`eigenvalues`          extreme eigenvalues with bounds; `spectra` traces, norms, densities; `lanczos` what they rest on
`modules`              single samples and random frames of any `nn.Module`, by the sites where parameters act
`factors`              Kronecker factors of it, KFAC and EKFAC, with their errors
`perceptrons`          fast routes for fully connected networks given as matrices
`wide`                 wide random networks: signals, gradients, the Fisher spectrum under normalisation
`matrices`             random matrices: noise, spikes, samples
`training`             gradient descent at many learning rates at once; short runs of any module
`networks`             the networks of the papers and their initial scales; `activations` theirs
`data`                 images and labels
`results`              how all that is measured shows itself: text, table with picture, plain data, data frame
`monte_carlo`          replicates with streams of their own, blocks of them, and who runs these
=====================  =============================================================================================

A topic is loaded when it is first used: torch takes seconds.

Part of losscurv, which looks for this sentence before it uses the package.
"""

from types import ModuleType
from typing import TYPE_CHECKING

from simulate._later import submodules

if TYPE_CHECKING:
    from simulate import (
        activations,
        data,
        eigenvalues,
        factors,
        lanczos,
        matrices,
        modules,
        monte_carlo,
        networks,
        objectives,
        operators,
        perceptrons,
        results,
        spectra,
        training,
        wide,
    )

__all__ = [
    "activations",
    "data",
    "eigenvalues",
    "factors",
    "lanczos",
    "matrices",
    "modules",
    "monte_carlo",
    "networks",
    "objectives",
    "operators",
    "perceptrons",
    "results",
    "spectra",
    "training",
    "wide",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return submodules("simulate")(name)
    raise AttributeError(f"module 'simulate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
