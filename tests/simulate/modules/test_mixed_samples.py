"""Models whose samples meet in some batches only, or are reordered inside: every route is right, or refuses."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from simulate.factors import kfac
from simulate.modules.diagonals import gauss_newton_diagonal, hessian_diagonal
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.hessian_variance import quadratic_forms, variance_along
from simulate.modules.projected import projected
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.modules.sites import by_sample
from simulate.objectives import Objective
from simulate.operators import gauss_newton, hessian
from tests.simulate.small_perceptrons import assert_same

LOSS, OUTPUTS = nn.CrossEntropyLoss(), 3
MIXED = "the model gives a sample other outputs beside other samples"


class Layers(nn.Module):
    """Two layers, and what happens between them."""

    def __init__(self, between: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.below, self.above, self.between = (
            nn.Linear(4, 3).double(),
            nn.Linear(3, OUTPUTS).double(),
            between,
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.above(self.between(self.below(x).relu()))


class Experts(nn.Module):
    """Each takes half of the samples at most, and four of the smallest batches: what is left over is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 2).double()
        self.experts = nn.ModuleList(nn.Linear(4, OUTPUTS).double() for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        shares = self.gate(x).softmax(1)
        found = x.new_zeros(len(x), OUTPUTS)
        for i, expert in enumerate(self.experts):
            taken = (shares.argmax(1) == i).nonzero()[: max(4, math.ceil(len(x) / 2)), 0]
            found = found.index_add(0, taken, expert(x[taken]).tanh() * shares[taken, i : i + 1])
        return found


class Reordered(nn.Module):
    """Layers on the samples in another order, and their outputs put back."""

    def __init__(self, order: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layers, self.order = Layers(lambda h: h.tanh()), order

    def forward(self, x: Tensor) -> Tensor:
        order = self.order(x)
        return self.layers(x[order])[order.argsort()]


def swapped_ends(x: Tensor) -> Tensor:
    order = torch.arange(len(x))
    order[0], order[-1] = len(x) - 1, 0
    return order


MIXING: dict[str, Callable[[], nn.Module]] = {
    "mean subtracted from four samples on": lambda: Layers(lambda h: h - h.mean(0) if len(h) > 3 else h),
    "mean subtracted from nine samples on": lambda: Layers(lambda h: h - h.mean(0) if len(h) > 8 else h),
    "mixed with the batch reversed": lambda: Layers(lambda h: 0.7 * h + 0.3 * h.flip(0)),
    "mixed at the ends": lambda: Layers(lambda h: h + h[swapped_ends(h)]),
    "experts with a capacity": Experts,
}
REORDERING: dict[str, Callable[[], nn.Module]] = {
    "sorted": lambda: Reordered(lambda x: x[:, 0].argsort()),
    "ends swapped": lambda: Reordered(swapped_ends),
    "reversed": lambda: Reordered(lambda x: torch.arange(len(x)).flip(0)),
}
MODELS = {**MIXING, **REORDERING}


def inputs(samples: int) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(samples, 4, generator=generator, dtype=torch.float64) + 0.5


def built(name: str, samples: int = 17) -> tuple[Objective, nn.Module, Tensor]:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        model = MODELS[name]()
    x = inputs(samples)
    return Objective(model, (x, torch.arange(samples) % OUTPUTS), LOSS), model, x


def jacobian(model: nn.Module, x: Tensor) -> Tensor:
    leaves = list(model.parameters())
    rows = [
        torch.autograd.grad(z, leaves, retain_graph=True, materialize_grads=True) for z in model(x).flatten()
    ]
    return torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])


def curvature(model: nn.Module, x: Tensor) -> Tensor:
    """G of the cross-entropy from the Jacobian of the outputs."""
    steep, p = jacobian(model, x).unflatten(0, (len(x), -1)), model(x).softmax(1).detach()
    inner = torch.diag_embed(p) - p[:, :, None] * p[:, None]
    return torch.einsum("nip,nij,njq->pq", steep, inner, steep) / len(x)


@pytest.mark.parametrize("name", MODELS)
def test_traces_diagonals_kernels_and_projections_are_those_of_the_batch(name: str) -> None:
    objective, model, x = built(name)
    expected, steep = curvature(model, x), jacobian(model, x)
    assert_same(torch.tensor(trace_gauss_newton(objective), dtype=torch.float64), expected.trace())
    assert_same(gauss_newton_diagonal(objective), expected.diagonal())
    assert_same(empirical_kernel(model, x).flatten(2).flatten(0, 1), steep @ steep.mT)
    frame = torch.eye(objective.dim, 5).double().roll(2, 0)
    assert_same(projected(objective, frame).g_term, frame.mT @ expected @ frame)


@pytest.mark.parametrize("name", MODELS)
def test_the_diagonal_of_the_hessian_is_that_of_the_batch(name: str) -> None:
    objective, model, x = built(name)
    leaves = list(model.parameters())
    loss = LOSS(model(x), torch.arange(len(x)) % OUTPUTS)
    slope = torch.cat([g.flatten() for g in torch.autograd.grad(loss, leaves, create_graph=True)])
    rows = [torch.autograd.grad(s, leaves, retain_graph=True, materialize_grads=True) for s in slope]
    expected = torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])
    assert_same(hessian_diagonal(objective), expected.diagonal())


@pytest.mark.parametrize("name", MIXING)
def test_samples_that_meet_have_no_matrices_of_their_own(name: str) -> None:
    objective, _, _ = built(name)
    assert objective.coupling == objective.mixing == MIXED
    vector = torch.ones(objective.dim, 1).double()
    for ask in (lambda: quadratic_forms(objective, vector), lambda: variance_along(objective, vector[:, 0])):
        with pytest.raises(ValueError, match="got samples that see each other"):
            ask()
    with pytest.raises(ValueError, match="on every sample apart"):
        kfac(objective)


@pytest.mark.parametrize("name", REORDERING)
def test_samples_that_are_reordered_keep_their_own_matrices(name: str) -> None:
    objective, model, x = built(name)
    assert objective.separable and objective.apart and not by_sample(objective)
    vector = torch.linspace(-1, 1, objective.dim).double()
    alone = [Objective(model, (x[i : i + 1], torch.tensor([i % OUTPUTS])), LOSS) for i in range(len(x))]
    expected = torch.cat([torch.from_numpy(quadratic_forms(one, vector[:, None])) for one in alone])
    assert_same(torch.from_numpy(quadratic_forms(objective, vector[:, None])), expected)
    with pytest.raises(ValueError, match="on every sample apart"):
        kfac(objective)


def test_samples_that_meet_in_batches_of_the_size_that_is_used_are_found() -> None:
    """Of a batch of 120 the passes hold 30 samples, which do not meet, or 60, which do."""
    model = Layers(lambda h: h - h.mean(0) if len(h) > 40 else h)
    x = inputs(120)
    y = torch.arange(120) % OUTPUTS
    assert Objective(model, (x, y), LOSS, chunk=30).coupling == ""
    coupled = Objective(model, (x, y), LOSS, chunk=60)
    assert coupled.coupling == MIXED and coupled.chunk is None
    with pytest.raises(ValueError, match="pass all samples as one batch"):
        Objective(model, [(x[:60], y[:60]), (x[60:], y[60:])], LOSS).value()


def ends_swapped_from(size: int, to: float = math.inf) -> nn.Module:
    return Reordered(lambda x: swapped_ends(x) if size <= len(x) <= to else torch.arange(len(x)))


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        (ends_swapped_from(33), [50]),  # at a size beyond those of a few samples
        (ends_swapped_from(40), [12, 40]),  # in the second batch, which is larger
        (ends_swapped_from(1, 9), [20, 9]),  # in the last one, which is smaller
    ],
)
def test_samples_that_are_reordered_in_batches_of_one_size_have_their_own_derivatives(
    model: nn.Module, sizes: list[int]
) -> None:
    x = inputs(sum(sizes))
    batches = [(part, torch.arange(len(part)) % OUTPUTS) for part in x.split(sizes)]
    objective = Objective(model, batches, LOSS)
    matrix = gauss_newton(objective).dense()
    assert_same(matrix, sum(curvature(model, part) * len(part) for part, _ in batches) / len(x))
    assert_same(torch.tensor(trace_gauss_newton(objective), dtype=torch.float64), matrix.trace())
    assert_same(gauss_newton_diagonal(objective), matrix.diagonal())
    assert_same(hessian_diagonal(objective), hessian(objective).dense().diagonal())
    frame = torch.eye(objective.dim, 5).double().roll(2, 0)
    assert_same(projected(objective, frame).g_term, frame.mT @ matrix @ frame)
    if len(sizes) == 1:
        steep = jacobian(model, x)
        assert_same(empirical_kernel(model, x).flatten(2).flatten(0, 1), steep @ steep.mT)
    with pytest.raises(ValueError, match="on every sample apart"):
        kfac(objective)
    vector = torch.linspace(-1, 1, objective.dim).double()
    alone = [quadratic_forms(objective.on([(part, y)]), vector[:, None]) for part, y in batches]
    assert_same(
        torch.from_numpy(quadratic_forms(objective, vector[:, None])), torch.from_numpy(np.concatenate(alone))
    )


@pytest.mark.parametrize("sizes", [[12, 40], [20, 9]])
def test_samples_that_meet_in_batches_of_one_size_are_found(sizes: list[int]) -> None:
    """In the second batch, which is larger, or in the last one, which is smaller."""
    model = Layers(lambda h: h - h.mean(0) if len(h) in (40, 9) else h)
    x = inputs(sum(sizes))
    batches = [(part, torch.arange(len(part)) % OUTPUTS) for part in x.split(sizes)]
    objective = Objective(model, batches, LOSS)
    assert objective.mixing == MIXED and not objective.apart
    with pytest.raises(ValueError, match="pass all samples as one batch"):
        objective.gradient()


def test_a_batch_that_a_layer_takes_in_part_is_not_taken_for_a_whole_one() -> None:
    """All samples of the first batch go to one expert, not those of the second."""

    class Routed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.experts = nn.ModuleList(nn.Linear(4, OUTPUTS).double() for _ in range(2))

        def forward(self, x: Tensor) -> Tensor:
            found = x.new_zeros(len(x), OUTPUTS)
            for i, expert in enumerate(self.experts):
                taken = ((x[:, 0] > 0) == bool(i)).nonzero()[:, 0]
                found = found.index_add(0, taken, expert(x[taken])) if len(taken) else found
            return found

    model, x = Routed(), inputs(12)
    x[:6, 0] = x[:6, 0].abs()
    x[6:, 0] = -x[6:, 0].abs() * torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    y = torch.arange(12) % OUTPUTS
    objective = Objective(model, [(x[:6], y[:6]), (x[6:], y[6:])], LOSS)
    assert not by_sample(objective)
    objective.answers["by_sample"] = True  # as if the samples that are asked had not shown it
    expected = curvature(model, x)
    assert_same(torch.tensor(trace_gauss_newton(objective), dtype=torch.float64), expected.trace())
    assert_same(gauss_newton_diagonal(objective), expected.diagonal())
    assert_same(hessian_diagonal(objective), expected.diagonal())
    frame = torch.eye(objective.dim, 6).double().roll(9, 0)
    assert_same(projected(objective, frame).g_term, frame.mT @ expected @ frame)
    with pytest.raises(ValueError, match="part in the outputs"):
        kfac(objective)
