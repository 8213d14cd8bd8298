"""Products by differences of gradients: within the error that they state, or refused."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from simulate.difference_products import difference_hessian
from simulate.objectives import Objective
from simulate.operators import hessian
from tests.simulate.factors.written_out import built
from tests.simulate.objectives.losses import LABELS, WIDTH, X, network
from tests.simulate.objectives.sweep.stateful import Once
from tests.simulate.small_perceptrons import assert_same

LOSS = nn.CrossEntropyLoss()


class SingleOnce(Once):
    """A kernel for single precision alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        if x.dtype != torch.float32:
            raise RuntimeError("no kernel for this type")
        return Once.forward(ctx, x)


class Bent(nn.Module):
    def __init__(self, bend: Any) -> None:
        super().__init__()
        self.first, self.last, self.bend = nn.Linear(WIDTH, 5), nn.Linear(5, 3), bend

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.bend(self.first(x)))


class Fused(nn.Module):
    """Attention by a kernel of torch without second derivatives."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.mix, self.last, self.fused = nn.Linear(3, 12), nn.Linear(4, 3), fused

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.mix(x)[:, None].chunk(3, -1)
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        seen = kernel(q, k, v)[0] if self.fused else nn.functional.scaled_dot_product_attention(q, k, v)
        return self.last(seen[:, 0].mean(1))


class Padded(nn.Module):
    """A word that stands for nothing, whose row is used for what comes out as well if `tied`."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.words, self.mix, self.last = nn.Embedding(7, 4, padding_idx=0), nn.Linear(4, 4), nn.Linear(4, 7)
        torch.nn.init.normal_(self.words.weight)  # as trained networks may have it, in the row of zero too
        self.kind = kind
        if kind == "tied":
            self.last.weight = self.words.weight

    def forward(self, x: Tensor) -> Tensor:
        weight = self.words.weight * 2 if self.kind == "made of others" else self.words.weight
        by_call = nn.functional.embedding(x, weight, padding_idx=0)
        seen = by_call if self.kind in ("by call", "made of others") else self.words(x)
        return self.last(self.mix(seen.mean(1)).tanh())


def columns(dim: int) -> Tensor:
    return torch.linspace(0, 5, 3 * dim, dtype=torch.float64).cos().view(-1, 3)


SEQUENCES = torch.linspace(-2, 2, 7 * 4 * 3, dtype=torch.float64).cos().view(7, 4, 3), torch.arange(7) % 3
WORDS = torch.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]]), torch.arange(3)
CASES = {
    "a kernel of one's own": (lambda: Bent(Once.apply), lambda: Bent(torch.tanh), (X, LABELS), 5),
    "fused attention": (lambda: Fused(True), lambda: Fused(False), SEQUENCES, None),
    "second derivatives that there are": (network, network, (X, LABELS), 3),
    # the row of padding enters what is computed, and by definition its gradient does not: it stays where it is
    **{kind: (lambda k=kind: Padded(k),) * 2 + (WORDS, None) for kind in ("by module", "by call", "tied")},
}


@pytest.mark.parametrize("case", CASES)
def test_the_error_covers_the_truth_in_double_precision(case: str) -> None:
    build, plain, data, chunk = CASES[case]
    objective = Objective(built(build), data, LOSS, chunk=chunk)
    truth, found = hessian(Objective(built(plain), data, LOSS)), difference_hessian(objective)
    for column in columns(objective.dim).mT:
        difference, expected = found.difference(column), truth @ column
        off, size = float((difference.product - expected).norm()), float(expected.norm())
        assert off <= difference.error + 1e-12 and difference.error <= 1e-5 * size
        assert_same(found @ column, difference.product, 1e-15)


@pytest.mark.parametrize("bend", [Once, SingleOnce])
def test_the_error_covers_the_truth_in_single_precision(bend: Any) -> None:
    """Where the model runs in double precision gradients are taken there; where not the error says how rough it is."""
    data = X.float(), LABELS
    objective = Objective(built(lambda: Bent(bend.apply)).float(), data, LOSS)
    exact = built(lambda: Bent(torch.tanh)).float().double()
    truth = hessian(Objective(exact, (X.float().double(), LABELS), LOSS))
    found = difference_hessian(objective)
    for column in columns(objective.dim).float().mT:
        difference, expected = found.difference(column), truth @ column.double()
        off = float((difference.product.double() - expected).norm())
        rounding = 1e-6 * float(expected.norm())
        assert off <= difference.error + rounding
        assert difference.error <= (1e-4 if bend is Once else 5e-2) * float(expected.norm())


@pytest.mark.parametrize("parameters", [None, ["last"]])
def test_all_of_a_module_is_in_double_precision(parameters: Any) -> None:
    """Buffers, fixed parameters and the weights of the loss, not what is measured alone; the module stays as it is."""
    model = built(lambda: Bent(nn.Sequential(nn.BatchNorm1d(5), nn.Tanh()))).float().eval()
    loss = nn.CrossEntropyLoss(weight=torch.tensor([0.5, 1.0, 2.0]))
    objective = Objective(model, (X.float(), LABELS), loss, parameters=parameters)
    found, truth = difference_hessian(objective), hessian(objective)
    for column in columns(objective.dim).float().mT:
        difference, expected = found.difference(column), truth @ column
        assert difference.error <= 1e-5 * float(expected.norm())
        assert_same(difference.product, expected, 1e-5)
    assert all(t.dtype == torch.float32 for t in (*model.parameters(), loss.weight))


def test_padding_that_is_no_parameter_is_refused() -> None:
    objective = Objective(built(lambda: Padded("made of others")), WORDS, LOSS)
    with pytest.raises(ValueError, match="embedding with padding_idx must look up a parameter itself"):
        difference_hessian(objective).difference(torch.ones(objective.dim))


def test_without_second_derivatives_the_way_is_told() -> None:
    objective = Objective(built(lambda: Bent(Once.apply)), (X, LABELS), LOSS)
    with pytest.raises(ValueError, match=r"marked once_differentiable: see simulate.difference_products"):
        _ = hessian(objective) @ torch.ones(objective.dim, dtype=torch.float64)


def test_a_kink_that_is_passed_is_covered_or_refused() -> None:
    """One unit of ReLU lies next to its kink: a step passes it."""
    model = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 3)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(0.5)
        model.get_parameter("0.bias").fill_(-0.5 + 1e-6)
    x, y = torch.ones(2, 1, dtype=torch.float64), torch.tensor([0, 1])
    objective = Objective(model, (x, y), LOSS)
    column = torch.tensor([1.0, 0.6, 0.3, 0.1, -0.4, 0.2, 0.0, 0.5], dtype=torch.float64)
    with pytest.raises(ValueError, match="differences of gradients must be right to 1e-06 of the product"):
        difference_hessian(objective, tolerance=1e-6).difference(column)
    difference = difference_hessian(objective, tolerance=1e9).difference(column)
    assert float((difference.product - hessian(objective) @ column).norm()) <= difference.error
