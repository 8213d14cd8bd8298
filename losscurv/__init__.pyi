# The names at the front and where each is defined: type checkers read this list, and so does __init__.py.
import theory as theory
from simulate.eigenvalues import extremes as extremes
from simulate.factors import ekfac as ekfac, factor_errors as factor_errors, kfac as kfac
from simulate.lanczos import solve as solve
from simulate.modules.diagonals import (
    estimated_diagonal as estimated_diagonal,
    gauss_newton_diagonal as gauss_newton_diagonal,
    hessian_diagonal as hessian_diagonal,
)
from simulate.modules.empirical_kernel import empirical_kernel as empirical_kernel
from simulate.modules.projected import projected as projected
from simulate.objectives import Objective as Objective
from simulate.operators import (
    empirical_fisher as empirical_fisher,
    fisher as fisher,
    gauss_newton as gauss_newton,
    h_term as h_term,
    hessian as hessian,
)
from simulate.spectra import density as density, trace as trace
from verify.checking import check as check
from verify.estimate import estimate as estimate
from verify.practice.certify import certify as certify
from verify.practice.measure import measure as measure
from verify.practice.plan import plan as plan
from verify.practice.watch import watch as watch
from verify.reporting import plot as plot, report as report

__version__: str

_ROOMS: dict[str, str]
