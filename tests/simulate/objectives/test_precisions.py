"""Models of half precision, of parts of several precisions, of adapters beside frozen weights, and compiled ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from simulate.objectives import Objective
from simulate.operators import empirical_fisher, gauss_newton, h_term, hessian
from tests.simulate.objectives.language import CausalModel, batch
from tests.simulate.objectives.losses import LABELS, WIDTH, N, X, network

LOSS = nn.CrossEntropyLoss()
MATRICES = [hessian, gauss_newton, h_term, empirical_fisher]


def rounded(model: nn.Module, kind: torch.dtype) -> tuple[nn.Module, nn.Module]:
    """A model of a type, and one of float32 with the same values."""
    half = model.to(kind)
    single = type(half)() if isinstance(half, CausalModel | Adapted) else network()
    single.load_state_dict({name: value.float() for name, value in half.state_dict().items()})
    return half, single.float()


class Adapted(nn.Module):
    """A frozen linear layer with a product of two narrow ones beside it, as LoRA has it."""

    def __init__(self) -> None:
        super().__init__()
        state = torch.get_rng_state()
        torch.default_generator.manual_seed(0)
        self.base, self.last = nn.Linear(WIDTH, 5), nn.Linear(5, 3)
        self.lora_A, self.lora_B = nn.Linear(WIDTH, 2, bias=False), nn.Linear(2, 5, bias=False)
        for part in (self.base, self.last):
            part.requires_grad_(False)
        torch.set_rng_state(state)

    def forward(self, x: Tensor) -> Tensor:
        return self.last((self.base(x) + 4 * self.lora_B(self.lora_A(x))).tanh())


DATA: dict[str, Any] = {"images": (X.float(), LABELS), "tokens": batch()}
MODELS = [(network, "images"), (Adapted, "images"), (CausalModel, "tokens")]


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("build", "data"), MODELS)
def test_half_precision_is_measured_in_single_precision(build: Any, data: str, kind: torch.dtype) -> None:
    """The numbers are those of the same values in float32, to the last bit."""
    half, single = rounded(build(), kind)
    before = {name: value.clone() for name, value in half.state_dict().items()}
    found, expected = (Objective(model, DATA[data], LOSS) for model in (half, single))
    vector = torch.linspace(-1, 1, expected.dim)

    assert found.dtype == torch.float32 and found.names == expected.names
    assert found.value() == expected.value()
    for matrix in MATRICES:
        assert torch.equal(matrix(found) @ vector, matrix(expected) @ vector)
    assert all(torch.equal(half.state_dict()[name], value) for name, value in before.items())
    assert {p.dtype for p in half.parameters()} == {kind}


class Inside(nn.Module):
    """Computes in half precision whatever its parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x.bfloat16(), self.body.weight.bfloat16()).float()


def test_what_computes_in_half_precision_by_itself_is_told() -> None:
    with pytest.raises(ValueError, match=r"must compute in single or double precision, got torch.bfloat16"):
        Objective(Inside(), DATA["images"], LOSS).gradient()


def _whole(model: nn.Module) -> Any:
    return torch.compile(model, backend="eager")


def _in_place(model: nn.Module) -> nn.Module:
    model.compile(backend="eager")
    return model


def _part(model: nn.Module) -> nn.Module:
    model.add_module("0", torch.compile(model.get_submodule("0"), backend="eager"))  # type: ignore[arg-type]
    return model


@pytest.mark.parametrize("compiled", [_whole, _in_place, _part])
def test_compiled_models_are_measured_as_they_were_written(compiled: Any) -> None:
    plain, model = Objective(network(), (X, LABELS), LOSS), compiled(network())
    found = Objective(model, (X, LABELS), LOSS)
    assert [name.replace("_orig_mod.", "") for name in found.names] == list(plain.names)
    assert found.rows == N and found.value() == plain.value()
    for matrix in MATRICES:
        assert torch.equal(matrix(found).dense(), matrix(plain).dense())


def test_compiled_code_does_not_run() -> None:
    """A backend that breaks what it is given."""

    def broken(*_: Any) -> Any:
        raise AssertionError("compiled")

    model = torch.compile(network(), backend=broken)
    assert Objective(model, (X, LABELS), LOSS).value() > 0  # type: ignore[arg-type]
    inner = network()
    inner.compile(backend=broken)
    assert Objective(inner, (X, LABELS), LOSS).value() > 0
