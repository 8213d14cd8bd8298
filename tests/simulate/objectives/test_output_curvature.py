"""Curvature of losses in the outputs: closed forms against automatic differentiation of the same loss."""

from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.objectives import Objective, output_curvature as closed_forms
from simulate.objectives.output_curvature import SoftmaxCurvature, output_curvature
from tests.simulate.objectives.losses import LABELS, TARGETS, WEIGHTS, N, OwnCount
from tests.simulate.small_perceptrons import assert_same

K = 3


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CLASSES = torch.randint(0, K, (N, 2, 4), generator=torch.Generator().manual_seed(1))
PLAIN = {}
WEIGHTED = {"weight": WEIGHTS, "label_smoothing": 0.3}
PLACES = N, K, 2, 4
CASES = {
    "classes last": (nn.CrossEntropyLoss(), drawn(N, 4, K).mT, CLASSES[:, 0]),
    "all but one ignored": (nn.CrossEntropyLoss(ignore_index=0), drawn(N, K), (torch.arange(N) == 3).long()),
    "squares of one number": (nn.MSELoss(), drawn(N), drawn(N)),
}
for reduction in ("mean", "sum"):
    for options in (PLAIN, {"weight": WEIGHTS}, {"ignore_index": 1}, WEIGHTED | {"ignore_index": 2}):
        made = nn.CrossEntropyLoss(reduction=reduction, **options)
        CASES[f"classes, {[*options]}, {reduction}"] = made, drawn(N, K), LABELS
        CASES[f"classes in places, {[*options]}, {reduction}"] = made, drawn(*PLACES), CLASSES
    for options in (PLAIN, WEIGHTED):
        made = nn.CrossEntropyLoss(reduction=reduction, **options)
        CASES[f"shares, {[*options]}, {reduction}"] = made, drawn(N, K), TARGETS["shares"] * drawn(N, 1).exp()
        CASES[f"shares in places, {[*options]}, {reduction}"] = (
            made,
            drawn(*PLACES),
            drawn(*PLACES).softmax(1),
        )
    for options in (PLAIN, {"weight": WEIGHTS, "pos_weight": 1 / WEIGHTS}):
        made = nn.BCEWithLogitsLoss(reduction=reduction, **options)
        CASES[f"bits, {[*options]}, {reduction}"] = made, drawn(N, K), drawn(N, K).sigmoid()
    CASES[f"squares, {reduction}"] = nn.MSELoss(reduction=reduction), drawn(N, K), drawn(N, K, seed=2)


def bend(loss: Any, outputs: Tensor, targets: Any) -> Any:
    objective = Objective(nn.Linear(1, 1).double(), (outputs.detach(), targets), loss)
    return output_curvature(objective, outputs, next(objective.batches()))


def require_true(loss: Any, outputs: Tensor, targets: Any) -> Tensor:
    tangent = drawn(*outputs.shape, seed=5)
    found = bend(loss, outputs, targets)(tangent)
    assert_same(found, torch.autograd.functional.hvp(lambda z: loss(z, targets), outputs, tangent)[1])
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("at_once", [1 << 18, 7])
def test_closed_forms_are_those_of_automatic_differentiation(
    name: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed_forms, "_AT_ONCE", at_once)
    found = require_true(*CASES[name])
    monkeypatch.setattr(closed_forms, "directional", lambda *_: pytest.fail("differentiated"))
    assert torch.equal(found, require_true(*CASES[name]))


@pytest.mark.parametrize("name", [name for name in CASES if isinstance(CASES[name][0], nn.CrossEntropyLoss)])
def test_factors_of_a_softmax_covariance_make_it_up(name: str) -> None:
    outputs, softmax = CASES[name][1], bend(*CASES[name])
    assert isinstance(softmax, SoftmaxCurvature)
    values, vectors = softmax.factors(slice(1, 4))
    units = torch.eye(outputs[0].numel(), dtype=torch.float64).view(-1, *outputs.shape[1:])
    columns = [softmax(unit.expand_as(outputs).contiguous())[1:4].flatten(1) for unit in units]
    assert values.shape[1] == outputs[0].numel() // K * (K - 1)
    assert_same((vectors * values[:, None]) @ vectors.mT, torch.stack(columns, 2))


def _hooked() -> nn.Module:
    loss = nn.CrossEntropyLoss()
    loss.register_forward_hook(lambda module, given, found: found**2)
    return loss


def _replaced() -> nn.Module:
    loss = nn.MSELoss()
    loss.forward = lambda outputs, targets: (outputs - targets).pow(4).mean()
    return loss


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    ("loss", "targets"),
    [
        (OwnCount(weight=WEIGHTS, reduction="mean"), LABELS),
        (_hooked(), LABELS),
        (_replaced(), TARGETS["numbers"]),
        (nn.HuberLoss(delta=0.5), TARGETS["numbers"]),
        (nn.MSELoss(), TARGETS["numbers"][:1]),
    ],
)
def test_losses_that_are_not_as_torch_built_them_are_differentiated(loss: Any, targets: Tensor) -> None:
    require_true(loss, drawn(N, K), targets)


def test_no_digits_are_lost_where_a_class_is_nearly_certain() -> None:
    """q (v_j - sum q v) for all but the likeliest class, and minus their sum for it."""
    outputs = torch.tensor([[0.0, 30.0, -4.0]], dtype=torch.float64)
    tangent = torch.tensor([[1.0, 0.3, -2.0]], dtype=torch.float64)
    others = torch.tensor([0, 2])
    q = (outputs[0, others] - outputs[0].logsumexp(0)).exp()
    change = tangent[0, others] - tangent[0, 1]
    bent = q * (change - q @ change)
    softmax = SoftmaxCurvature(outputs, 1.0)
    found, (values, vectors) = softmax(tangent)[0], softmax.factors(slice(None))
    assert_allclose(found[others], bent, rtol=1e-14)
    assert_allclose(float(found[1]), -float(bent.sum()), rtol=1e-14)
    product = (vectors * values[:, None]) @ (vectors.mT @ tangent[:, :, None])
    assert_allclose(product[0, :, 0], found, rtol=1e-14)
