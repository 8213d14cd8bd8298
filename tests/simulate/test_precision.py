"""Products keep the precision of their factors: torch's switches are off while anything is measured, then as found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from simulate import _precision
from simulate._precision import in_full_precision
from simulate.eigenvalues import extremes
from simulate.modules.hessian_variance import total_variance
from simulate.modules.projected import projected_terms
from simulate.monte_carlo import Block, Point, run_block
from simulate.objectives import Objective
from simulate.operators import gauss_newton, hessian

BACKENDS: Any = torch.backends
NEWER = hasattr(torch.backends.cudnn, "conv")

SWITCHES = ("cudnn.conv", "cudnn.rnn", "cuda.matmul", "mkldnn.conv", "mkldnn.rnn", "mkldnn.matmul")


def operation(name: str) -> Any:
    found: Any = torch.backends
    for part in name.split("."):
        found = getattr(found, part)
    return found


def state() -> list[Any]:
    """What torch says of all its switches; an error where older and newer ones are mixed."""
    found: list[Any] = []
    for ask in (torch.get_float32_matmul_precision, lambda: torch.backends.cudnn.allow_tf32):
        try:
            found.append(ask())
        except RuntimeError:
            found.append("mixed")
    names = [*SWITCHES, "cudnn", "mkldnn"] if NEWER else []
    return found + [operation(name).fp32_precision for name in names]


def rounds() -> bool:
    """Whether any product may be rounded."""
    if NEWER:
        return any(operation(name).fp32_precision not in ("ieee", "none") for name in SWITCHES)
    return torch.backends.cudnn.allow_tf32 or torch.get_float32_matmul_precision() != "highest"


@pytest.fixture(autouse=True)
def with_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where there is one; afterwards all switches stand as at the start."""
    monkeypatch.setattr(_precision, "_has_gpu", lambda: True)
    _precision._operations.cache_clear()
    yield
    _precision._operations.cache_clear()
    if NEWER:
        BACKENDS.fp32_precision = "none"
        for name in SWITCHES:
            operation(name).fp32_precision = "none"
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = True


def set_newer(name: str, value: str) -> Callable[[], None]:
    def put() -> None:
        owner = operation(name) if name else BACKENDS
        owner.fp32_precision = value

    return put


WAYS: dict[str, Callable[[], None]] = {
    "as torch begins": lambda: None,
    "high": lambda: torch.set_float32_matmul_precision("high"),
    "medium": lambda: torch.set_float32_matmul_precision("medium"),
}
if NEWER:
    WAYS |= {
        "all in tf32": set_newer("", "tf32"),
        "convolutions alone": set_newer("cudnn.conv", "ieee"),
        "products on a GPU": set_newer("cuda.matmul", "tf32"),
        "products on the CPU": set_newer("mkldnn.matmul", "bf16"),
    }


@pytest.mark.parametrize("way", WAYS)
def test_switches_are_off_within_and_as_found_after(way: str) -> None:
    WAYS[way]()
    before = state()
    assert rounds()
    with in_full_precision():
        assert not rounds()
        with in_full_precision():
            assert not rounds()
        assert not rounds()
    assert state() == before


@pytest.mark.skipif(not NEWER, reason="this torch has one switch for all")
def test_what_followed_the_switch_of_all_still_does() -> None:
    BACKENDS.fp32_precision = "tf32"
    with in_full_precision():
        pass
    BACKENDS.fp32_precision = "ieee"
    assert operation("mkldnn.matmul").fp32_precision == operation("cuda.matmul").fp32_precision == "ieee"


def test_switches_are_as_found_after_an_error() -> None:
    torch.set_float32_matmul_precision("medium")
    before = state()
    with pytest.raises(ArithmeticError), in_full_precision():
        raise ArithmeticError
    assert state() == before


class Looking(nn.Module):
    """Notes whether products may be rounded whenever it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.seen = nn.Linear(5, 3), set[bool]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add(rounds())
        return self.inner(x).tanh()


def test_nothing_is_measured_by_rounded_products() -> None:
    model, x = Looking(), torch.randn(12, 5)
    objective = Objective(model, nn.functional.cross_entropy, [(x, torch.arange(12) % 3)])
    rng = torch.Generator().manual_seed(0)
    vector = torch.randn(objective.dim, generator=rng)
    for measured in (
        lambda: hessian(objective) @ vector,
        lambda: gauss_newton(objective) @ vector,
        lambda: extremes(hessian(objective), np.random.default_rng(0), largest=1),
        lambda: projected_terms(objective, torch.eye(objective.dim)[:, :2]),
        lambda: total_variance(objective, np.random.default_rng(0), probes=2),
        objective.value,
    ):
        model.seen.clear()
        measured()
        assert model.seen <= {False}
    assert rounds()


def test_blocks_are_drawn_by_full_products() -> None:
    seen = list[bool]()

    def look(block: Block, point: Point) -> dict[str, Any]:
        seen.append(rounds())
        return {}

    run_block(look, experiment="precision", point=Point(), seed=0, index=0)
    assert seen == [False]
    assert rounds()
