"""Checks of derivatives, on models other than those of the sweep."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.utils.checkpoint import checkpoint

from simulate.modules import sites
from simulate.modules.sample_grams import trace_gauss_newton, trace_hessian
from simulate.networks import LeNet5, Mlp
from simulate.objectives import Objective, soundness
from simulate.operators import hessian
from tests.refusals import refusal
from tests.simulate.objectives.sweep.listing import own
from tests.simulate.small_perceptrons import assert_same


def net(act: Callable[[Tensor], Tensor] = torch.tanh, *, again: bool = False) -> Any:
    """A first layer of equal widths, run again in the backward pass or not."""

    def forward(m: Any, x: Tensor) -> Tensor:
        def part(inputs: Tensor) -> Tensor:
            return act(m.first(inputs))

        return m.second(checkpoint(part, x, use_reentrant=False) if again else part(x))

    return drawn(
        own(forward, first=lambda: nn.Linear(4, 4).double(), second=lambda: nn.Linear(4, 2).double())
    )


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x, y = (torch.randn(6, n, generator=generator, dtype=torch.float64) for n in (4, 2))
    return x, y


def drawn(build: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        return build()


def test_what_is_run_again_has_the_parameters_that_are_measured() -> None:
    """Whatever has become of those of the model since."""
    model = net(again=True)
    rerun, plain = (Objective(m, data(), nn.MSELoss()) for m in (model, net()))
    matrix, v = hessian(rerun), torch.ones(plain.dim, dtype=torch.float64)
    first = matrix @ v
    with torch.no_grad():
        model.first.weight.mul_(3.0)
    assert torch.equal(matrix @ v, first)
    assert_same(first, hessian(plain) @ v)
    assert_same(rerun.gradient(), plain.gradient())


# --- nothing is refused for its kinks or its size -----------------------------------------------------------------


def deep(
    *, act: Any = nn.ReLU, norm: Any = nn.Identity, factor: float = 1.0, biases: float = 1.0
) -> nn.Module:
    inner = (part for _ in range(8) for part in (nn.Linear(12, 12), norm(12), act()))
    model = nn.Sequential(nn.Linear(4, 12), act(), *inner, nn.Linear(12, 2))
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.mul_(biases if name.endswith("bias") else factor)
    return model


def pooled() -> nn.Module:
    features = (nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(2, 4, 1), nn.ReLU())
    return nn.Sequential(nn.Unflatten(1, (1, 2, 2)), *features, nn.Flatten(), nn.Linear(4, 2))


HONEST = {
    "units at their kink": lambda: deep(biases=0.0),
    "all parameters zero": lambda: deep(factor=0.0, biases=0.0),
    "steep where it is normalised": lambda: deep(norm=nn.LayerNorm, act=nn.Mish, biases=0.0),
    "many kinks": lambda: nn.Sequential(nn.Linear(4, 400), nn.ReLU(), nn.Linear(400, 2)),
    "ties of a maximum": pooled,
    "straight pieces": lambda: deep(act=nn.Hardtanh),
    "tiny": lambda: deep(act=nn.Tanh, factor=1e-6, biases=1e-6),
    "saturated": lambda: deep(act=nn.Tanh, factor=1e4, biases=1e4),
    "exploding": lambda: deep(factor=1e2, biases=1e2),
}


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("loss", [nn.L1Loss(), lambda z, y: (z - y).norm()])
def test_kinks_and_extremes_contradict_nothing(name: str, dtype: torch.dtype, loss: Any) -> None:
    x, y = data()
    for inputs in (x, torch.zeros_like(x), x * (x > 0.5)):
        Objective(drawn(HONEST[name]).to(dtype), (inputs, torch.zeros_like(y)), loss).require_sound()


def detached(h: Tensor) -> Tensor:
    return h * h.detach()


def test_a_model_beyond_memory_is_asked_no_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulate._memory.is_free", lambda *_: False)
    Objective(net(detached), data(), nn.MSELoss()).require_sound()


# --- how it is asked ----------------------------------------------------------------------------------------------


def test_it_is_asked_once() -> None:
    calls = []
    objective = Objective(net(lambda h: (calls.append(1), h.tanh())[1]), data(), nn.MSELoss())
    objective.require_sound()
    calls.clear()
    objective.gradient()
    assert len(calls) == 1
    matrix = hessian(objective)
    _ = matrix @ torch.ones(objective.dim, dtype=torch.float64)
    calls.clear()
    _ = matrix @ torch.ones(objective.dim, dtype=torch.float64)
    assert not calls


def test_a_loss_that_takes_no_few_samples_is_asked_of_a_batch() -> None:
    def paired(z: Tensor, y: Tensor) -> Tensor:
        half = z.unflatten(0, (3, 2))
        return (half[:, 0] - half[:, 1].detach()).square().mean()

    with refusal("must agree with finite differences, got others"):
        Objective(net(), data(), paired).gradient()


def test_old_parameters_that_are_kept_are_refused() -> None:
    model = net()
    parametrize.register_parametrization(model.first, "weight", nn.Tanh())
    objective = Objective(model, data(), nn.MSELoss())
    with parametrize.cached(), refusal(r"outside of parametrize.cached"):
        objective.gradient()
    objective.gradient()


def test_the_value_of_a_loss_needs_no_derivatives() -> None:
    """A penalty counts in it, and a function that may be differentiated once."""
    model, (x, y) = net(), data()
    objective = Objective(model, (x, y), lambda z, y: (z - y).square().mean() + model.first.weight.norm())
    expected = float(((model(x) - y).square().mean() + model.first.weight.norm()).detach())
    assert objective.value() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("ask", [trace_gauss_newton, trace_hessian, Objective.gradient, sites.covers])
def test_everything_that_takes_derivatives_refuses(ask: Callable[[Objective], Any]) -> None:
    objective = Objective(net(detached), data(), nn.MSELoss())
    for _ in range(2):
        with refusal(r"must agree with finite differences.*: look for detach, no_grad"):
            ask(objective)


# --- what need not be asked ---------------------------------------------------------------------------------------


def mlp(activation: str = "relu", kind: type[Mlp] = Mlp) -> Mlp:
    return kind((6, 5, 3), activation, rng=np.random.default_rng(0)).double()


def asked(model: nn.Module, monkeypatch: pytest.MonkeyPatch, loss: Any = None) -> int:
    """Return the number of times that a network of the suite, or one like it, was checked."""
    found = []
    monkeypatch.setattr(soundness, "_tested_batch", found.append)
    x = torch.randn(4, *((3, 32, 32) if isinstance(model, LeNet5) else (6,)), dtype=torch.float64)
    objective = Objective(model, (x, torch.tensor([0, 1, 2, 0])), loss or nn.CrossEntropyLoss())
    objective.require_sound()
    return len(found)


def _replaced(model: Mlp) -> None:
    layer = model.layers[0]
    weight = layer.weight.detach()
    del layer.weight
    layer.weight = weight


class _Layer(nn.Linear):
    """One of somebody's own."""


ALTERED = {
    "activation": lambda model: setattr(model, "activation", lambda x: x.detach().relu()),
    "forward": lambda model: setattr(model.layers[0], "forward", model.layers[0].forward),
    "class of a layer": lambda model: setattr(model.layers[0], "__class__", _Layer),
    "weight": _replaced,
    "buffer": lambda model: model.layers[0].register_buffer("seen", torch.zeros(1)),
    "parametrization": lambda model: nn.utils.parametrizations.weight_norm(model.layers[0]),
    "forward hook": lambda model: model.layers[0].register_forward_hook(lambda *_: None),
    "hook before": lambda model: model.register_forward_pre_hook(lambda *_: None),
    "backward hook": lambda model: model.layers[0].register_full_backward_hook(lambda *_: None),
    "hook before backward": lambda model: model.register_full_backward_pre_hook(lambda *_: None),
}
LOSSES = {
    "loss with weights": nn.CrossEntropyLoss(weight=torch.ones(3, dtype=torch.float64)),
    "loss of its own class": type("Own", (nn.CrossEntropyLoss,), {})(),
    "loss as a function": lambda outputs, targets: nn.functional.cross_entropy(outputs, targets),
}


@pytest.mark.parametrize("model", [mlp(), mlp("gelu"), LeNet5(rng=np.random.default_rng(0)).double()])
@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss(), nn.functional.cross_entropy])
def test_networks_of_the_suite_are_not_asked(model: Any, loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not asked(model, monkeypatch, loss)


@pytest.mark.parametrize("what", [*ALTERED, *LOSSES])
def test_what_was_altered_is_asked(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = mlp()
    ALTERED.get(what, id)(model)
    assert asked(model, monkeypatch, LOSSES.get(what)) == 1


def test_what_stands_around_a_network_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(mlp(kind=type("Own", (Mlp,), {})), monkeypatch) == 1
    assert asked(nn.Sequential(mlp()), monkeypatch) == 1
    with torch.autocast("cpu"):
        assert asked(mlp(), monkeypatch) == 1
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert asked(mlp(), monkeypatch) == 1
    finally:
        handle.remove()
