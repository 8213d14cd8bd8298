"""One output for each sample, with and without an axis of its own: all that is measured is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from simulate.factors import Kind, ekfac, kfac
from simulate.modules.diagonals import gauss_newton_diagonal, hessian_diagonal
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.hessian_variance import quadratic_forms, variance_along
from simulate.modules.projected import projected
from simulate.modules.sample_directions import sample_directions
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.objectives import Objective
from simulate.operators import empirical_fisher, fisher, gauss_newton, h_term, hessian
from tests.simulate.small_perceptrons import assert_same

SAMPLES = 9
DRAWN = torch.Generator().manual_seed(3)
X = torch.randn(SAMPLES, 4, generator=DRAWN, dtype=torch.float64)
Y = torch.randn(SAMPLES, generator=DRAWN, dtype=torch.float64)


def both(loss: nn.Module, y: Tensor = Y) -> tuple[Objective, Objective]:
    """With outputs (N,) and (N, 1)."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    squeezed = nn.Sequential(net, nn.Flatten(0))
    return Objective(squeezed, (X, y), loss), Objective(nn.Sequential(net), (X, y[:, None]), loss)


def frame(objective: Objective) -> Tensor:
    return torch.linalg.qr(torch.sin(torch.arange(3.0 * objective.dim).double()).view(objective.dim, 3))[0]


def of_kind(kind: Kind) -> Callable[[Objective], Tensor]:
    return lambda o: kfac(o, kind=kind, draws=5).dense()


MEASURED: dict[str, Callable[[Objective], Any]] = {
    "Hessian": lambda o: hessian(o).dense(),
    "H-term": lambda o: h_term(o).dense(),
    "Gauss-Newton": lambda o: gauss_newton(o).dense(),
    "Fisher": lambda o: fisher(o).dense(),
    "empirical Fisher": lambda o: empirical_fisher(o).dense(),
    "KFAC": of_kind("gauss-newton"),
    "KFAC of draws": of_kind("sampled"),
    "KFAC of gradients": of_kind("empirical"),
    "EKFAC": lambda o: ekfac(o).dense(),
    "trace": lambda o: torch.tensor(trace_gauss_newton(o), dtype=torch.float64),
    "diagonal of G": gauss_newton_diagonal,
    "diagonal of H": hessian_diagonal,
    "kernel": lambda o: empirical_kernel(o.model, X).flatten(),
    "projected": lambda o: projected(o, frame(o)).hessian,
    "forms": lambda o: torch.from_numpy(quadratic_forms(o, frame(o))),
    "variance": lambda o: torch.tensor(variance_along(o, frame(o)[:, 0]), dtype=torch.float64),
    "samples": lambda o: torch.from_numpy(sample_directions(o, frame(o)).statistics.projected),
}


@pytest.mark.parametrize("what", MEASURED)
def test_outputs_without_an_axis_have_the_curvature_of_those_with_one(what: str) -> None:
    squeezed, plain = both(nn.MSELoss())
    assert_same(MEASURED[what](squeezed), MEASURED[what](plain))


@pytest.mark.parametrize("what", ["Fisher", "empirical Fisher", "KFAC", "KFAC of draws", "EKFAC"])
def test_logits_without_an_axis_have_the_curvature_of_those_with_one(what: str) -> None:
    squeezed, plain = both(nn.BCEWithLogitsLoss(), (Y > 0).double())
    assert_same(MEASURED[what](squeezed), MEASURED[what](plain))
