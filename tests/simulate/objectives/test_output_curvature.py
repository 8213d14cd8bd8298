"""Curvature of losses in the outputs: closed forms against automatic differentiation of the same loss."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.objectives import Objective, output_curvature as closed_forms
from simulate.objectives.output_curvature import SoftmaxCurvature, output_curvature
from tests.simulate.objectives.losses import LABELS, TARGETS, WEIGHTS, N, OwnCount
from tests.simulate.small_perceptrons import assert_same

K, PLACES = 3, (2, 4)
Options = dict[str, Any]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def classes(*places: int) -> Tensor:
    return torch.randint(0, K, (N, *places), generator=torch.Generator().manual_seed(1))


OPTIONS: dict[str, Options] = {
    "plain": {},
    "smoothed": {"label_smoothing": 0.3},
    "weighted": {"weight": WEIGHTS},
    "weighted and smoothed": {"weight": WEIGHTS, "label_smoothing": 0.3},
}
IGNORING: dict[str, Options] = {
    **OPTIONS,
    "ignored": {"ignore_index": 1},
    "ignored, weighted and smoothed": {"weight": WEIGHTS, "ignore_index": 2, "label_smoothing": 0.3},
}
CASES: dict[str, tuple[nn.Module, Tensor, Tensor]] = {}
for reduction in ("mean", "sum"):
    for name, options in IGNORING.items():
        made = nn.CrossEntropyLoss(reduction=reduction, **options)
        CASES[f"classes, {name}, {reduction}"] = made, drawn(N, K), LABELS
        CASES[f"classes in places, {name}, {reduction}"] = made, drawn(N, K, *PLACES), classes(*PLACES)
    for name, options in OPTIONS.items():
        made = nn.CrossEntropyLoss(reduction=reduction, **options)
        CASES[f"shares, {name}, {reduction}"] = made, drawn(N, K), TARGETS["shares"] * drawn(N, 1).exp()
        shares = drawn(N, K, *PLACES).softmax(1)
        CASES[f"shares in places, {name}, {reduction}"] = made, drawn(N, K, *PLACES), shares
    for name, options in {"plain": {}, "weighted": {"weight": WEIGHTS, "pos_weight": 1 / WEIGHTS}}.items():
        made = nn.BCEWithLogitsLoss(reduction=reduction, **options)
        CASES[f"bits, {name}, {reduction}"] = made, drawn(N, K), drawn(N, K).sigmoid()
    CASES[f"squares, {reduction}"] = nn.MSELoss(reduction=reduction), drawn(N, K), drawn(N, K)
CASES |= {
    "classes last": (nn.CrossEntropyLoss(), drawn(N, 4, K).mT, classes(4)),
    "all but one ignored": (nn.CrossEntropyLoss(ignore_index=0), drawn(N, K), (torch.arange(N) == 3).long()),
    "squares of one number": (nn.MSELoss(), drawn(N), drawn(N)),
}


def asked(loss: Any, outputs: Tensor, targets: Any, tangent: Tensor) -> Tensor:
    objective = Objective(nn.Linear(1, 1).double(), (outputs.detach(), targets), loss)
    return output_curvature(objective, outputs, next(objective.batches()))(tangent)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("at_once", [1 << 18, 7])
def test_closed_forms_are_those_of_automatic_differentiation(
    name: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed_forms, "_AT_ONCE", at_once)
    loss, outputs, targets = CASES[name]
    tangent = drawn(*outputs.shape, seed=5)
    expected = torch.autograd.functional.hvp(lambda z: loss(z, targets), outputs, tangent)[1]
    found = asked(loss, outputs, targets, tangent)
    assert found.shape == outputs.shape
    assert_same(found, expected)
    monkeypatch.setattr(closed_forms, "directional", lambda *_: pytest.fail("differentiated"))
    assert torch.equal(found, asked(loss, outputs, targets, tangent))


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if isinstance(case[0], nn.CrossEntropyLoss)]
)
def test_factors_of_a_softmax_covariance_make_it_up(name: str) -> None:
    loss, outputs, targets = CASES[name]
    objective = Objective(nn.Linear(1, 1).double(), (outputs.detach(), targets), loss)
    softmax = output_curvature(objective, outputs, next(objective.batches()))
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


OTHERS: dict[str, tuple[Any, Any]] = {
    "derived": (OwnCount(weight=WEIGHTS, reduction="mean"), LABELS),
    "hooked": (_hooked(), LABELS),
    "with a forward of its own": (_replaced(), TARGETS["numbers"]),
    "of a form that is not known": (nn.HuberLoss(delta=0.5), TARGETS["numbers"]),
    "spread over all pairs": (nn.MSELoss(), TARGETS["numbers"][:1]),
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("name", OTHERS)
def test_losses_that_are_not_as_torch_built_them_are_differentiated(name: str) -> None:
    loss, targets = OTHERS[name]
    outputs, tangent = drawn(N, K), drawn(N, K, seed=5)
    expected = torch.autograd.functional.hvp(lambda z: loss(z, targets), outputs, tangent)[1]
    assert_same(asked(loss, outputs, targets, tangent), expected)


def test_no_digits_are_lost_where_a_class_is_nearly_certain() -> None:
    """q (v_j - sum q v) for all but the likeliest class, and minus their sum for it."""
    outputs = torch.tensor([[0.0, 30.0, -4.0]], dtype=torch.float64)
    tangent = torch.tensor([[1.0, 0.3, -2.0]], dtype=torch.float64)
    others = torch.tensor([0, 2])
    q = (outputs[0, others] - outputs[0].logsumexp(0)).exp()
    change = tangent[0, others] - tangent[0, 1]
    bent = q * (change - q @ change)
    found = SoftmaxCurvature(outputs, 1.0)(tangent)[0]
    assert_allclose(found[others], bent, rtol=1e-14)
    assert_allclose(float(found[1]), -float(bent.sum()), rtol=1e-14)
    values, vectors = SoftmaxCurvature(outputs, 1.0).factors(slice(None))
    assert_allclose(
        ((vectors * values[:, None]) @ (vectors.mT @ tangent[:, :, None]))[0, :, 0], found, rtol=1e-14
    )
