"""Curvature of a network's loss: theory, measurement, verdicts.

=====================  ====================================================
`theory`               predictions by topic: ``losscurv.theory.rmt``, ...
`estimate`             one of them: ``estimate("stability_limit", 4.0)``
`Objective`            a model, its data and its loss
`hessian`              of an objective, as an operator; also `h_term`,
                       `gauss_newton`, `fisher`, `empirical_fisher`
`extremes`             extreme eigenvalues of a matrix, with error bounds
`trace`                its trace; `density` of all its eigenvalues
`projected`            Hessian and its terms along the columns of a frame
`solve`                product of the inverse of a matrix with a vector
`hessian_diagonal`     its diagonal; also `gauss_newton_diagonal`, and
                       `estimated_diagonal` of any matrix
`kfac`                 Kronecker factors; also `ekfac`, `factor_errors`
`empirical_kernel`     inner products of per-sample gradients
`check`                a verdict on your own formula by simulation
`measure`              the curvature of your network, with errors
`certify`              whether another library's number is right
`plan`                 learning rates for your network by batch size
`watch`                curvature against 2 / learning rate in training
`report`               judge the claims, or some; `plot` draws one
=====================  ====================================================

Each is loaded when first used. ``losscurv.fisher`` is a matrix. Formulas
for the Fisher information are in ``losscurv.theory.fisher``.
"""

import ast
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import get_data
from typing import Any

__version__ = "0.1.0"


def _require_ours() -> None:
    """Refuse another `theory`, `simulate` or `verify` in the place of those that belong to this package."""
    for name in ("theory", "simulate", "verify"):
        spec: Any = find_spec(name)
        ours, origin = Path(__file__).parents[1] / name, spec and spec.origin
        file = Path(origin or ours / "__init__.py")
        in_place = file.parent.resolve() == ours.resolve()
        # the file itself is looked at, since another distribution may have written over it
        if not (in_place and origin and b"Part of losscurv" in spec.loader.get_data(origin)):
            raise ImportError(
                f"losscurv needs its own package {name!r}, but {file} is not it: rename that file or its folder; if"
                " another distribution wrote it, uninstall that one, then install losscurv again with pip install"
                " --force-reinstall",
                name=name,
            )


_require_ours()

# read from the stub, so that the names are listed once; without `__all__`, with which help() would print the
# documentation of every name in full
_ROOMS = {
    name.name: statement.module
    for statement in ast.parse(get_data(__name__, "__init__.pyi") or b"").body
    if isinstance(statement, ast.ImportFrom) and statement.module
    for name in statement.names
}


def __getattr__(name: str) -> Any:
    if name == "theory":
        return import_module("theory")
    if name in _ROOMS:
        return getattr(import_module(_ROOMS[name]), name)
    # with its name and the module Python adds the nearest name that there is
    raise AttributeError(f"module 'losscurv' has no attribute {name!r}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return ["__version__", "theory", *_ROOMS]
