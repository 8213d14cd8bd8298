"""What theory says of the curvature of a loss, what a network shows, and verdicts on both: the front door.

=====================  ====================================================================================
`theory`               predictions, by topic: ``losscurv.theory.rmt``, ``.fisher``, ``.softmax``, ...
`estimate`             one of them by its name: ``losscurv.estimate("stability_limit", 4.0)``
`Objective`            a model, its loss and its data, as one function of the parameters
`hessian`              its matrices, by their products with vectors: also `gauss_newton`, `h_term`, `fisher`,
                       `empirical_fisher`
`extremes`             their extreme eigenvalues, with bounds; `solve` products with their inverses
`hessian_diagonal`     their diagonals: also `gauss_newton_diagonal`, and `estimated_diagonal` of any matrix
`kfac`                 Kronecker factors of them, also `ekfac`; `factor_errors` how far these are from them
`empirical_kernel`     inner products of the gradients of all outputs at all samples
`measure`              the curvature of a network of one's own, with errors; `plan` its learning rates
`watch`                curvature beside 2 over the rate while it trains
`CurvatureSchedule`    learning rate and momentum from the curvature while it trains
`report`               the claims judged anew, or some of them; `plot` one of them as a figure
=====================  ====================================================================================

Each is loaded when it is first used, and torch only where it is needed. ``losscurv.fisher`` is the operator; the
formulas of the Fisher information are ``losscurv.theory.fisher``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import theory
    from simulate.eigenvalues import extremes
    from simulate.factors import ekfac, factor_errors, kfac
    from simulate.lanczos import solve
    from simulate.modules.diagonals import estimated_diagonal, gauss_newton_diagonal, hessian_diagonal
    from simulate.modules.empirical_kernel import empirical_kernel
    from simulate.objectives import Objective
    from simulate.operators import empirical_fisher, fisher, gauss_newton, h_term, hessian
    from verify.estimate import estimate
    from verify.practice.measure import measure
    from verify.practice.plan import plan
    from verify.practice.schedule import CurvatureSchedule
    from verify.practice.watch import watch
    from verify.reporting import plot, report

__all__ = [
    "CurvatureSchedule",
    "Objective",
    "ekfac",
    "empirical_fisher",
    "empirical_kernel",
    "estimate",
    "estimated_diagonal",
    "extremes",
    "factor_errors",
    "fisher",
    "gauss_newton",
    "gauss_newton_diagonal",
    "h_term",
    "hessian",
    "hessian_diagonal",
    "kfac",
    "measure",
    "plan",
    "plot",
    "report",
    "solve",
    "theory",
    "watch",
]

_ROOMS = {
    "CurvatureSchedule": "verify.practice.schedule",
    "Objective": "simulate.objectives",
    "ekfac": "simulate.factors",
    "empirical_fisher": "simulate.operators",
    "empirical_kernel": "simulate.modules.empirical_kernel",
    "estimate": "verify.estimate",
    "estimated_diagonal": "simulate.modules.diagonals",
    "extremes": "simulate.eigenvalues",
    "factor_errors": "simulate.factors",
    "fisher": "simulate.operators",
    "gauss_newton": "simulate.operators",
    "gauss_newton_diagonal": "simulate.modules.diagonals",
    "h_term": "simulate.operators",
    "hessian": "simulate.operators",
    "hessian_diagonal": "simulate.modules.diagonals",
    "kfac": "simulate.factors",
    "measure": "verify.practice.measure",
    "plan": "verify.practice.plan",
    "plot": "verify.reporting",
    "report": "verify.reporting",
    "solve": "simulate.lanczos",
    "watch": "verify.practice.watch",
}


def __getattr__(name: str) -> Any:
    if name == "theory":
        return import_module("theory")
    if name in _ROOMS:
        return getattr(import_module(_ROOMS[name]), name)
    raise AttributeError(f"module 'losscurv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
