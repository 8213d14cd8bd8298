"""Products keep the precision of their factors: torch's switches are off while anything is measured, then as found."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from simulate.eigenvalues import extremes
from simulate.factors import ekfac, kfac
from simulate.lanczos import solve
from simulate.lanczos.precision import in_full_precision
from simulate.modules.hessian_variance import total_variance
from simulate.modules.projected import projected
from simulate.modules.sample_directions import sample_directions
from simulate.objectives import Objective
from simulate.operators import gauss_newton, hessian
from simulate.spectra import density, trace
from tests.interpreters import forked
from tests.simulate.lanczos.switches import NEWER, seen

# --- every state of the switches -------------------------------------------------------------------------------------

STATES = {
    "as torch begins": "",
    "high": "torch.set_float32_matmul_precision('high')",
    "medium": "torch.set_float32_matmul_precision('medium')",
    "products on a GPU, as of old": "torch.backends.cuda.matmul.allow_tf32 = True",
    "convolutions off, as of old": "torch.backends.cudnn.allow_tf32 = False",
}
NEWER_STATES = {  # values of switches of torch.backends, after what the older ones are set to
    "all in tf32": "fp32_precision = 'tf32'",
    "all in full": "fp32_precision = 'ieee'",
    "cudnn in tf32": "cudnn.fp32_precision = 'tf32'",
    "convolutions alone": "cudnn.conv.fp32_precision = 'ieee'",
    "products on a GPU": "cuda.matmul.fp32_precision = 'tf32'",
    "products on the CPU": "mkldnn.matmul.fp32_precision = 'bf16'",
    "high, off on a GPU": "cuda.matmul.fp32_precision = 'ieee'",
    "medium, off on the CPU": "mkldnn.matmul.fp32_precision = 'ieee'",
    "high, all in tf32": "fp32_precision = 'tf32'",
}
if NEWER:
    STATES |= {
        name: f"{STATES.get(name.partition(',')[0], '')}; torch.backends.{switch}".removeprefix("; ")
        for name, switch in NEWER_STATES.items()
    }


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes here do not fork")
def test_switches_are_off_within_and_as_found_after() -> None:
    found = forked(seen, STATES)
    off = ("convolutions off, as of old", "all in full")
    assert found == {name: (name not in off, [False] * len(found[name][1]), True) for name in STATES}


# --- who measures ------------------------------------------------------------------------------------------------


def rounds() -> bool:
    """Whether products of matrices may be rounded."""
    return torch.get_float32_matmul_precision() != "highest"


@pytest.fixture
def rounding() -> Iterator[None]:
    """As a user may have set it for training."""
    torch.set_float32_matmul_precision("medium")
    yield
    torch.set_float32_matmul_precision("highest")


PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "mv", "convolution")


class Products(TorchDispatchMode):
    """Names the products of single precision that may be rounded."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.rounded = 0, set[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in PRODUCTS and made.dtype == torch.float32:
            self.count += 1
            if rounds():
                self.rounded.add(f"{name} {tuple(made.shape)}")
        return made


def measurements() -> dict[str, Callable[[], Any]]:
    generator = torch.Generator().manual_seed(1)
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
    x = torch.randn(12, 5, generator=generator)
    objective = Objective(model, [(x, torch.arange(12) % 3)], nn.functional.cross_entropy)
    rng, frame = np.random.default_rng(0), torch.randn(objective.dim, 3, generator=generator)
    frame = torch.linalg.qr(frame)[0]
    factors = [made(objective) for made in (kfac, ekfac)]
    return {
        "products": lambda: (hessian(objective) @ frame, gauss_newton(objective) @ frame[:, 0]),
        "eigenvalues": lambda: extremes(hessian(objective), rng, largest=2),
        "density": lambda: density(gauss_newton(objective), rng, x=[0.0, 1.0], width=0.1, probes=2, steps=4),
        "frame": lambda: projected(objective, frame),
        "directions": lambda: sample_directions(objective, frame[:, :1], rng, probes=2),
        "variance": lambda: total_variance(objective, rng, probes=2),
        "factors": lambda: [made(objective) for made in (kfac, ekfac)],
        "products of factors": lambda: [made.inverse(0.1) @ (made @ frame[:, 0]) for made in factors],
        "trace": lambda: trace(hessian(objective), rng, probes=4),
        "solution": lambda: solve(gauss_newton(objective), frame[:, 0], damping=0.1),
        "loss": objective.value,
    }


@pytest.mark.usefixtures("rounding")
@pytest.mark.parametrize("name", measurements())
def test_nothing_is_measured_by_rounded_products(name: str) -> None:
    measured = measurements()[name]
    with Products() as products:
        measured()
    assert products.count > 0
    assert products.rounded == set()
    assert rounds()


def test_such_a_test_sees_rounding_and_switches_are_as_found_after_an_error(rounding: None) -> None:
    with Products() as products:
        _ = torch.ones(2, 2) @ torch.ones(2, 2)
    assert products.rounded == {"mm (2, 2)"}
    with pytest.raises(ArithmeticError), in_full_precision():
        raise ArithmeticError
    assert rounds()
