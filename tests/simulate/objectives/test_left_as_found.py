"""A model is left as it was found by every measurement, and by one that ends in an error of the model itself."""

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from simulate import operators
from simulate.modules.hessian_variance import quadratic_forms, total_variance, variance_along
from simulate.modules.logit_derivatives import logit_derivatives
from simulate.modules.projected import projected
from simulate.modules.sample_grams import trace_gauss_newton, trace_hessian
from simulate.objectives import Objective
from simulate.objectives.objective import require_deterministic
from simulate.objectives.restoring import preserve_state, seed_generators

X = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(5) % 4

MEASUREMENTS = {
    "gradient": Objective.gradient,
    "hessian": lambda o: operators.hessian(o) @ torch.ones(o.dim),
    "fisher": lambda o: operators.fisher(o) @ torch.ones(o.dim),
    "projected": lambda o: projected(o, torch.ones(o.dim, 2)),
    "samples": trace_gauss_newton,
    "trace": trace_hessian,
    "forms": lambda o: quadratic_forms(o, torch.ones(o.dim, 1)),
    "along": lambda o: variance_along(o, torch.ones(o.dim)),
    "total": lambda o: total_variance(o, np.random.default_rng(0), probes=2),
    "twice": require_deterministic,
    "logits": lambda o: logit_derivatives(o.model, X, torch.ones(o.dim, 2)),
}


class Fragile(nn.Module):
    """One module under two names, statistics that are updated, noise; stops at one of its calls."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.first, self.norm, self.left = nn.Linear(4, 4), nn.BatchNorm1d(4).eval(), left
        self.again = self.first
        self.first.weight.grad = torch.ones(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.norm(self.first(x)).relu() + 0 * torch.rand(4) + 0 * random.random()
        hidden = hidden + 0 * np.random.rand()  # noqa: NPY002 (what it draws from has to be put back)
        self.left -= 1
        if self.left < 0:
            raise KeyError("stopped")
        return self.again(hidden)


def state(model: nn.Module) -> list[Any]:
    kept, parts = [*model.parameters(), *model.buffers()], model.modules()
    found = [(id(k), type(k), k.requires_grad, id(k.grad), k.tolist()) for k in kept]
    found += [(m.training, len(m._forward_hooks), len(m._forward_pre_hooks)) for m in parts]
    found += [random.getstate(), np.random.get_state()[2], torch.is_grad_enabled()]  # noqa: NPY002 (looked at, not drawn from)
    return [*found, torch.get_rng_state().tolist()]


@pytest.mark.parametrize("left", [99, 0, 1, 2, 4])
@pytest.mark.parametrize("name", MEASUREMENTS)
def test_model_and_generators_are_left_as_found(name: str, left: int) -> None:
    model = Fragile(99)
    objective = Objective(model, (X, Y), nn.CrossEntropyLoss())
    before, model.left = state(model), left
    with suppress(KeyError, ValueError):  # stopped, or no exact trace
        MEASUREMENTS[name](objective)
    assert left or model.left < 0
    assert state(model) == before


class Untouched:
    """The generator of a GPU that nobody uses."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} of a GPU that is not in use")


def test_generators_of_gpus_in_use_alone_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # a machine that has some
    monkeypatch.setattr(torch.cuda, "default_generators", Untouched())
    monkeypatch.setattr(torch.cuda, "_lazy_init", lambda: pytest.fail("starts CUDA for a model of the CPU"))
    with preserve_state(nn.Linear(2, 2), training=False):
        seed_generators(3)
    generator = torch.Generator()
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda gpu: 1024 * gpu)
    monkeypatch.setattr(torch.cuda, "default_generators", (Untouched(), generator))
    before = generator.get_state()
    with preserve_state(None, training=False):
        seed_generators(3)
        first = torch.rand(2, generator=generator)
        assert torch.equal(first, torch.rand(2, generator=torch.Generator().manual_seed(3)))
    assert torch.equal(generator.get_state(), before)


@pytest.mark.parametrize("ask", [MEASUREMENTS["gradient"], MEASUREMENTS["hessian"]])
def test_no_derivatives_are_promised_where_none_are_recorded(ask: Callable[[Objective], Any]) -> None:
    objective = Objective(nn.Linear(4, 4), (X, Y), nn.CrossEntropyLoss())
    with torch.inference_mode(), pytest.raises(ValueError, match=r"outside of torch.inference_mode"):
        ask(objective)
