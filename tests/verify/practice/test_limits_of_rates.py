"""The largest stable eigenvalue of each optimiser, against its own steps on a quadratic."""

from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn
from torch.optim import SGD, Adam, AdamW, RMSprop

import losscurv
from simulate.objectives import Objective
from simulate.operators import hessian
from tests.verify.practice.watch.small_watchers import LOSS, batches, images, net, require_top, train
from verify.practice.step_limits import step_limit

KINDS = {
    "plain": {},
    "decay": {"weight_decay": 1.5},
    "heavy ball": {"momentum": 0.7},
    "dampened": {"momentum": 0.7, "dampening": 0.4},
    "nesterov": {"momentum": 0.7, "nesterov": True, "weight_decay": 0.5},
}


def grows(curvature: float, **options: Any) -> bool:
    """Whether SGD itself leaves the minimum of a parabola."""
    x = nn.Parameter(torch.ones(1, dtype=torch.float64))
    optimizer, largest = SGD([x], lr=0.1, **options), []
    for _ in range(400):
        x.grad = curvature * x.detach()
        optimizer.step()
        largest.append(abs(x.item()))
    return max(largest[-50:]) > max(largest[:50])


@pytest.mark.parametrize("name", KINDS)
def test_limit_is_where_the_optimiser_itself_becomes_unstable(name: str) -> None:
    """The decay is curvature: what is left of the limit is for the loss."""
    x = nn.Parameter(torch.ones(1))
    optimizer = SGD([x], lr=0.1, **KINDS[name])

    found = step_limit(optimizer, [(x, optimizer.param_groups[0])])

    assert found.scaling is None
    assert found.decay == (KINDS[name].get("weight_decay", 0.0),)
    left = found.value - found.decay[0]
    assert not grows(0.99 * left, **KINDS[name]) and grows(1.01 * left, **KINDS[name])


@pytest.mark.parametrize("kind", [Adam, AdamW])
@pytest.mark.parametrize("amsgrad", [False, True])
def test_limit_of_adam_is_of_the_preconditioned_eigenvalue_alone(kind: Any, amsgrad: bool) -> None:
    """38 over the rate, against D^(1/2) H D^(1/2) from the moments and a dense Hessian."""
    model, data = net(), batches(6)
    optimizer = kind(model.parameters(), lr=0.01, weight_decay=0.1, amsgrad=amsgrad)
    watcher = losscurv.watch(optimizer, model, LOSS, every=5, samples=images(), clock=lambda: 0.0)

    train(watcher, model, optimizer, data)

    last = watcher.records[-1]
    assert (
        last.limit is not None and last.limit_of == "preconditioned" and "preconditioned" in last.limit_note
    )
    assert_allclose(last.limit, 3800, rtol=1e-9)
    states = [optimizer.state[p] for p in model.parameters()]
    second = [state["max_exp_avg_sq" if amsgrad else "exp_avg_sq"].reshape(-1) for state in states]
    root = ((torch.cat(second) / (1 - 0.999**6)).sqrt() + 1e-8).rsqrt()
    dense = hessian(Objective(model, [images()], LOSS)).dense()
    dense = dense + (0.1 if kind is Adam else 0.0) * torch.eye(len(dense))
    exact = torch.linalg.eigvalsh(root[:, None] * dense * root)[-1].item()
    require_top(last.preconditioned, last.preconditioned_error, exact)
    assert exact > 2 * torch.linalg.eigvalsh(dense)[-1].item()  # one would not pass for the other


def test_groups_of_different_rates_are_scaled() -> None:
    model, data = net(), batches(1)[0]
    parts = {model[0]: 0.05, model[2]: 0.5}
    optimizer = SGD([{"params": part.parameters(), "lr": rate} for part, rate in parts.items()])

    watcher = losscurv.watch(optimizer, model, LOSS, every=1, clock=lambda: 0.0)
    found = watcher.step(*data)

    assert found.limit == 4.0 and found.limit_of == "preconditioned"
    each = [torch.full((p.numel(),), 2 * rate) for part, rate in parts.items() for p in part.parameters()]
    root = torch.cat(each).double().sqrt()
    dense = hessian(Objective(model, [data], LOSS)).dense()
    exact = torch.linalg.eigvalsh(root[:, None] * dense * root)[-1].item()
    require_top(found.preconditioned, found.preconditioned_error, exact)
    assert found.rates == (0.05, 0.5)
    for group in optimizer.param_groups:
        group["lr"] = 0.25
    assert watcher.step(*data).limit == 8.0


@pytest.mark.parametrize(
    ("optimiser", "note"),
    [
        (lambda p: RMSprop(p, lr=0.1), "no limit is known here for RMSprop"),
        (lambda p: SGD(p, lr=0.0), "no limit: the rate is 0"),
        (lambda p: Adam(p, lr=0.1), "no limit: Adam has taken no step yet"),
        (
            lambda p: SGD([{"params": p[:1], "momentum": 0.9}, {"params": p[1:]}], lr=0.1),
            "no limit: parameter groups have different momenta",
        ),
    ],
)
def test_where_there_is_no_limit_it_is_said_why(optimiser: Any, note: str) -> None:
    model = net()
    optimizer = optimiser(list(model.parameters()))
    found = losscurv.watch(optimizer, model, LOSS).step(*batches(1)[0])
    assert found.outcome == "measured"
    assert found.limit is None and found.limit_of is None and found.limit_note == note
