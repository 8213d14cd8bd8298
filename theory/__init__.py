r"""Predictions: pure functions of numbers, without torch. ``import theory; theory.rmt`` or ``from theory import rmt``.

====================  ============================================================================  ================
topic                 what it predicts                                                              paper
====================  ============================================================================  ================
`rmt`                 laws Semicircle, MarchenkoPastur, TracyWidom, CompoundFreePoisson; transforms  granziol2022
`outliers`            where noise moves a spike, what is left of its direction                      granziol2022
`finite_size`         the same at finite dimension                                                  granziol2022
`batch_hessian`       how much sharper a batch is than the data set: Theorems 4, 7, 10              granziol2022
`own_direction`       the same on networks, from statistics of single samples                       beyond
`learning_rates`      largest stable rates, momentum, noise scales, Adam, stability edge            granziol2022
`adaptive_rates`      the same with a preconditioner                                                granziol2022
`loss_change`         what one step does to the loss: Eq. 26                                        granziol2022
`lanczos_bounds`      how far Ritz values lie from eigenvalues                                      granziol2022
`softmax`             covariance of a softmax output, Gamma and its limits                          vysogorets2024
`gauss_newton`        the random logit model, Eq. 8; what a random subspace shows                   vysogorets2024
`zone`                edges of the Goldilocks zone, training inside it                              vysogorets2024
`initial_loss`        how low a loss can be that does not know the labels                           vysogorets2024
`activations`         activations and their Gaussian averages                                       karakida2019
`order_parameters`    moments of the signals of a wide network, Eqs. 5 to 7                         karakida2019
`fisher`              eigenvalues of the Fisher information under normalisation, Eq. 11             karakida2019
`linear_network`      the edge of its spectrum, solved                                              karakida2019
`criticality`         fixed points, phases and depth scales                                         karakida2019
`derivations`         symbolic derivations of the closed forms                                      all
====================  ============================================================================  ================

A topic is loaded when it is first used.

Part of losscurv, which looks for this sentence before it uses the package.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from theory import (
        activations,
        adaptive_rates,
        batch_hessian,
        criticality,
        derivations,
        finite_size,
        fisher,
        gauss_newton,
        initial_loss,
        lanczos_bounds,
        learning_rates,
        linear_network,
        loss_change,
        order_parameters,
        outliers,
        own_direction,
        rmt,
        softmax,
        zone,
    )

__all__ = [
    "activations",
    "adaptive_rates",
    "batch_hessian",
    "criticality",
    "derivations",
    "finite_size",
    "fisher",
    "gauss_newton",
    "initial_loss",
    "lanczos_bounds",
    "learning_rates",
    "linear_network",
    "loss_change",
    "order_parameters",
    "outliers",
    "own_direction",
    "rmt",
    "softmax",
    "zone",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"theory.{name}")
    raise AttributeError(f"module 'theory' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
