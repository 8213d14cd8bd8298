"""One output for each sample, with and without an axis of its own: all matrices are the same."""

import pytest
import torch
from torch import Tensor, nn

from simulate.factors import ekfac, kfac
from simulate.objectives import Objective
from simulate.operators import empirical_fisher, fisher, gauss_newton, h_term, hessian
from tests.simulate.small_perceptrons import assert_same

DRAWN = torch.Generator().manual_seed(3)
X, Y = (torch.randn(9, *shape, generator=DRAWN, dtype=torch.float64) for shape in ((4,), ()))
MATRICES = {
    "Hessian": lambda o: hessian(o).dense(),
    "H-term": lambda o: h_term(o).dense(),
    "Gauss-Newton": lambda o: gauss_newton(o).dense(),
    "Fisher": lambda o: fisher(o).dense(),
    "empirical Fisher": lambda o: empirical_fisher(o).dense(),
    "EKFAC": lambda o: ekfac(o).dense(),
    **{
        f"KFAC, {kind}": lambda o, kind=kind: kfac(o, kind=kind, draws=5).dense()
        for kind in ("gauss-newton", "sampled", "empirical")
    },
}


@pytest.mark.parametrize(("loss", "y"), [(nn.MSELoss(), Y), (nn.BCEWithLogitsLoss(), (Y > 0).double())])
@pytest.mark.parametrize("what", MATRICES)
def test_outputs_without_an_axis_have_the_curvature_of_those_with_one(
    what: str, loss: nn.Module, y: Tensor
) -> None:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    squeezed = Objective(nn.Sequential(net, nn.Flatten(0)), (X, y), loss)
    assert_same(
        MATRICES[what](squeezed), MATRICES[what](Objective(nn.Sequential(net), (X, y[:, None]), loss))
    )
