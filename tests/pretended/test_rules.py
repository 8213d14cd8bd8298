"""The pretended device refuses what CUDA refuses, takes what it takes, and counts."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from benchmarks.pretend import NAME, POSSIBLE, RefusedError, pretended

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="this torch has no devices made in Python")


Operation = Callable[[Tensor, Tensor], Any]
"""Of a matrix (4, 3) on the device, and one of the CPU."""

REFUSED = {
    "sum of two sides": lambda x, c: x + c,
    "product of two sides": lambda x, c: x.mT @ c,
    "dot": lambda x, c: torch.dot(x[0], c[0]),
    "into the CPU": lambda x, c: c.add_(x),
    "number of the CPU, written": lambda x, _: torch.tensor(1.0).add_(x[0, 0]),
    "where": lambda x, c: torch.where(x > 0, x, c),
    "gather": lambda x, _: x.gather(1, torch.zeros(4, 1).long()),
    "indices there, tensor here": lambda x, _: torch.ones(4)[torch.tensor([1]).to(x.device)],
    "values of the CPU at indices": lambda x, c: x.clone().index_put_((torch.tensor([0]),), c[:1]),
    "mix under vmap": lambda x, c: torch.func.vmap(torch.mul)(x, c),
    "module here": lambda x, _: nn.Linear(3, 2)(x),
    "labels here": lambda x, _: nn.functional.cross_entropy(x, torch.zeros(4).long()),
    "generator": lambda x, _: torch.randn(3, generator=torch.Generator(), device=x.device),
    "numpy": lambda x, _: x.numpy(),
}

TAKEN = {
    "number of the CPU": lambda x, _: x * torch.tensor(2.0),
    "number of the CPU, where": lambda x, _: torch.where(x > 0, x, torch.tensor(0.0)),
    "copy": lambda x, c: x.clone().copy_(c),
    "indices of the CPU": lambda x, _: x[torch.tensor([0, 1])],
    "mask": lambda x, _: x[x > 0],
    "mask of the CPU": lambda x, c: x[c > 0],
    "draw": lambda x, _: torch.randn(3, device=x.device),
    "tensor": lambda x, _: torch.tensor([1.0, 2.0], device=x.device),
    "eigh": lambda x, _: torch.linalg.eigh(x @ x.mT)[0],
    "jacrev under vmap": lambda x, _: torch.func.vmap(torch.func.jacrev(torch.square))(x),
    "jvp": lambda x, _: torch.func.jvp(torch.sin, (x,), (x,))[1],
    "hessian": lambda x, _: torch.func.hessian(lambda v: (v**3).sum())(x[0]),
    "view in place": lambda x, _: x.clone().unsqueeze_(0).squeeze_(0).t_(),
    "complex": lambda x, _: (x + 1j).conj().abs(),
    "module": lambda x, _: nn.Linear(3, 2).to(x.device)(x),
    "conv": lambda x, _: nn.Conv2d(1, 2, 3).to(x.device)(x.view(1, 1, 4, 3)),
    "out": lambda x, _: torch.mm(x, x.mT, out=torch.empty(4, 4, device=x.device)),
}


@pytest.fixture
def sides() -> tuple[Tensor, Tensor]:
    return torch.randn(4, 3), torch.ones(4, 3)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cuda_refuses_is_refused(name: str, sides: tuple[Tensor, Tensor]) -> None:
    with pretended(), pytest.raises((RefusedError, TypeError)) as told:
        REFUSED[name](sides[0].to(NAME), sides[1])
    assert " must have " in str(told.value)


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # what torch's forward mode calls
def test_what_cuda_takes_is_computed_there(name: str, sides: tuple[Tensor, Tensor]) -> None:
    state = torch.get_rng_state()
    here = TAKEN[name](*sides)
    torch.set_rng_state(state)
    with pretended():
        there = TAKEN[name](sides[0].to(NAME), sides[1])
        assert there.device.type == NAME
        torch.testing.assert_close(there.detach().cpu(), here.detach(), rtol=0, atol=0)


def test_a_network_learns_there_as_it_does_here(sides: tuple[Tensor, Tensor]) -> None:
    """Second derivatives, and steps of a fused optimiser."""

    def trained(net: nn.Module, x: Tensor) -> Tensor:
        own = copy.deepcopy(net).to(x.device)
        optimizer = torch.optim.Adam(own.parameters(), lr=0.1, fused=True)
        loss = own(x).square().sum()
        slopes = torch.autograd.grad(loss, list(own.parameters()), create_graph=True)
        sum(s.square().sum() for s in slopes).backward()
        optimizer.step()
        return own[0].weight.detach().cpu()

    net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    with pretended():
        there = trained(net, sides[0].to(NAME))
    torch.testing.assert_close(there, trained(net, sides[0]), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("reading", "waits"),
    [
        (lambda x: x[0, 0].item(), 1),
        (lambda x: x.cpu(), 1),
        (lambda x: x[x > 0], 1),
        (lambda x: torch.linalg.eigvalsh(x @ x.mT), 1),
        (lambda x: (x @ x.mT).exp().sum(), 0),
    ],
)
def test_waiting_for_the_device_is_counted(reading: Callable[[Tensor], Any], waits: int) -> None:
    with pretended() as counts:
        reading(torch.ones(4, 3).to(NAME))
    assert counts.waits == waits


def test_work_is_counted_on_the_side_that_does_it() -> None:
    with pretended() as counts:
        x, here = torch.ones(4, 3).to(NAME), torch.ones(5, 3)
        _ = x @ x.mT, here @ here.mT
    assert counts.launches == 2  # the way there and the product
    assert counts.device_work == 4 * 3 + 2 * 4 * 3 * 4
    assert sum(counts.host_work.values()) == 2 * 5 * 3 * 5
    assert counts.sent == 48
