"""Curvature of models and losses of any scale: a block that is small beside 1 is not taken for one of zeros."""

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.modules.diagonals import estimated_diagonal, gauss_newton_diagonal, hessian_diagonal
from simulate.modules.sample_grams import curved_tensors, trace_gauss_newton, trace_hessian
from simulate.objectives import Objective
from simulate.operators import gauss_newton, hessian
from simulate.spectra import density, trace

SCALES = [1e-17, 1.0, 1e17]


class Units(nn.Module):
    """A network whose outputs come in some unit; also with parameters that act elsewhere than in layers."""

    def __init__(self, unit: float, elsewhere: bool) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3))
        self.unit, self.elsewhere = unit, elsewhere

    def forward(self, x: Tensor) -> Tensor:
        found = self.net(x) + 0 * self.net[0].weight.sum() if self.elsewhere else self.net(x)
        return self.unit * found


def objective(unit: float, dtype: torch.dtype, *, elsewhere: bool = False) -> Objective:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        model = Units(unit, elsewhere).to(dtype)
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(20, 5, generator=generator), 3 * unit * torch.randn(20, 3, generator=generator)
    return Objective(model, (x.to(dtype), y.to(dtype)), nn.MSELoss())


DIAGONALS = {
    "diagonal of H": hessian_diagonal,
    "diagonal of G": gauss_newton_diagonal,
    "trace of G": lambda o: torch.tensor([trace_gauss_newton(o)], dtype=torch.float64),
}


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("unit", [1e-17, 1e17])
@pytest.mark.parametrize("what", DIAGONALS)
def test_single_precision_has_the_curvature_of_outputs_in_any_unit(
    what: str, unit: float, elsewhere: bool
) -> None:
    found, expected = (
        DIAGONALS[what](objective(unit, dtype, elsewhere=elsewhere)).double()
        for dtype in (torch.float32, torch.float64)
    )
    assert float((found - expected).abs().max() / expected.abs().max()) < 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("unit", SCALES)
def test_a_trace_of_the_hessian_is_not_that_of_its_first_term_in_any_unit(
    unit: float, dtype: torch.dtype
) -> None:
    curved = objective(unit, dtype)
    assert set(curved_tensors(curved)) == {"net.0.weight", "net.0.bias"}
    with pytest.raises(ValueError, match=r"got curvature in 'net\.0\.weight'"):
        trace_hessian(curved)


def scaled(factor: float) -> Objective:
    """A loss that is multiplied by a number, in double precision."""
    plain, loss = objective(1.0, torch.float64), nn.MSELoss()
    return Objective(plain.model, plain.data, lambda z, y: factor * loss(z, y))


@pytest.mark.parametrize("factor", [1e-300, 1e200])
def test_losses_of_any_size_have_their_curvature(factor: float) -> None:
    found, expected = scaled(factor), scaled(1.0)
    for diagonal in (hessian_diagonal, gauss_newton_diagonal):
        near, exact = diagonal(found) / factor, diagonal(expected)
        assert float((near - exact).abs().max() / exact.abs().max()) < 1e-12
    near, exact = (estimated_diagonal(hessian(o), probes=20) for o in (found, expected))
    torch.testing.assert_close(near.value / factor, exact.value)
    torch.testing.assert_close(near.standard_error / factor, exact.standard_error)
    one, other = (trace(gauss_newton(o)) for o in (found, expected))
    assert_allclose([v / factor for v in one], other, rtol=1e-9)
    here, there = (density(hessian(o), probes=4) for o in (found, expected))
    # other units round otherwise, and chains without re-orthogonalisation amplify rounding: 2e-6 was seen
    assert_allclose(here.standard_error * factor, there.standard_error, rtol=1e-5, atol=1e-12)
