"""Models that take whole batches alone, hand on other types, or have no second derivatives; matrices that vanish."""

from dataclasses import make_dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import losscurv
from simulate.factors import kfac
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.hessian_variance import quadratic_forms
from simulate.modules.projected import projected
from simulate.modules.sites import by_sample
from simulate.objectives import Objective
from simulate.operators import empirical_fisher, hessian
from simulate.spectra import trace
from tests.refusals import refusal
from tests.simulate.modules.test_laws import LAWS, WHOLE, assert_laws, dense
from tests.simulate.small_perceptrons import assert_same

N = 10
X = torch.randn(N, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
Y = torch.arange(N) % 3
Records = make_dataclass("Records", ["place"])


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.default_generator.manual_seed(0)
            self.a, self.b = nn.Linear(4, 3).double(), nn.Linear(3, 3).double()

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.a(x).tanh())


class Pairs(Perceptron):
    """Samples see their neighbour: there are none without one."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.a(x).tanh().view(-1, 2, 3)
        return self.b((h + 0.5 * h.flip(1)).flatten(0, 1))


class HandedOn(Perceptron):
    """Outputs of single precision as numbers of double precision."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).double()


class Within(Perceptron):
    """Single precision in the midst of double precision."""

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.a(x).float().tanh().double())


class OfRecords(Perceptron):
    def forward(self, records: Any) -> Tensor:
        return super().forward(records.place)


def test_samples_that_come_in_pairs_alone_have_all_of_their_curvature() -> None:
    """Three of them, as a few samples are, are no input of the model."""
    objective = Objective(Pairs(), (X, Y))
    expected = dense(objective)
    assert_laws(objective, expected, {**LAWS, **WHOLE})
    found = losscurv.measure(objective, top=1)
    assert found.noise is None and found.coupling
    assert abs(found.gauss_newton.trace.value - float(expected.gauss_newton.trace())) < 1e-9


@pytest.mark.parametrize("kind", [HandedOn, Within])
def test_precision_that_is_lost_inside_of_a_model_does_not_mix_samples(kind: type[nn.Module]) -> None:
    model = kind().float() if kind is HandedOn else kind()
    x = torch.randn(40, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64).to(model.a.weight)
    y = torch.arange(40) % 3
    objective = Objective(model, [(x[:25], y[:25]), (x[25:], y[25:])])
    assert objective.coupling == objective.mixing == "" and objective.apart
    twin = Perceptron()
    right = Objective(twin, (x.double(), y))
    frame = torch.eye(objective.dim, 3, dtype=torch.float64) + 0.1
    for of_samples in (
        lambda o: torch.from_numpy(quadratic_forms(o, frame)),
        lambda o: projected(o, frame).hessian,
    ):
        assert_same(of_samples(objective).double(), of_samples(right), 1e-4)
    assert_same(empirical_kernel(model, x).double(), empirical_kernel(twin, x.double()), 1e-4)
    if by_sample(objective):
        assert_same(kfac(objective).dense().double(), kfac(right).dense(), 1e-4)


def test_a_model_that_mixes_samples_in_single_precision_is_still_found() -> None:
    class Mixed(HandedOn):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x - 0.1 * x.mean(0))

    assert Objective(Mixed().float(), (X.float(), Y)).mixing


def test_squares_that_vanish_or_overflow_in_single_precision_are_refused_and_zeros_are_zeros() -> None:
    model = nn.Linear(4, 3, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.arange(12.0).view(3, 4))
    x, y = 1e-12 * X, torch.zeros(N, 3, dtype=torch.float64)
    right = empirical_fisher(Objective(model, (x, y))).dense()
    assert 0 < float(right.abs().max()) < 1e-38
    with refusal("squared gradients must not vanish in float32"):
        empirical_fisher(Objective(model.float(), (x.float(), y.float()))).dense()
    with refusal("finite products, got NaN or infinity; measure in double precision"):
        empirical_fisher(Objective(model, (1e22 * x.float(), y.float()))).dense()
    fitted = Objective(model, (x.float(), model(x.float()).detach()))
    assert not bool(empirical_fisher(fitted).dense().any())


def test_a_layer_without_curvature_has_a_trace_of_zero() -> None:
    """Its products are zeros, and an estimate of the trace asks for products with none of them."""
    model = nn.Sequential(nn.Linear(4, 30), nn.ReLU(), nn.Linear(30, 3)).double()
    with torch.no_grad():
        model[0].bias.fill_(-100.0)
    objective = Objective(model, (X, Y))
    block = hessian(objective).block("0.weight", "0.bias")
    assert trace(block, probes=20) == (0.0, 0.0)
    assert hessian(objective).product(torch.zeros(0, objective.dim).double()).shape == (0, objective.dim)
    assert losscurv.measure(objective, top=1, layers=True).layers[0].trace.value == 0.0


def test_batches_that_only_the_model_can_part_are_measured_whole() -> None:
    model, plain = OfRecords(), Perceptron()
    objective = Objective(model, (Records(X), Y))
    found, right = losscurv.measure(objective, top=1), losscurv.measure(Objective(plain, (X, Y)), top=1)
    assert abs(found.hessian.top[0].value - right.hessian.top[0].value) < 1e-9
    assert found.noise is None and right.noise is not None
    with refusal("single samples, got Records as inputs"):
        quadratic_forms(objective, torch.ones(objective.dim, 1).double())
