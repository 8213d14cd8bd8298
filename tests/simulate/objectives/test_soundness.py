"""What is found out about a model before its derivatives are believed, beside the models of the sweep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.utils.checkpoint import checkpoint

from simulate.modules import sites
from simulate.modules.hessian_variance import quadratic_forms, variance_along
from simulate.modules.projected import projected_terms
from simulate.modules.sample_grams import trace_gauss_newton, trace_hessian
from simulate.networks import LeNet5, Mlp
from simulate.objectives import Objective, soundness
from simulate.objectives.derivatives import normal
from simulate.operators import gauss_newton, hessian
from tests.simulate.small_perceptrons import assert_same

Act = Callable[[Tensor], Tensor]


class Net(nn.Module):
    """A first layer of equal widths, run again in the backward pass or not."""

    def __init__(self, act: Act = torch.tanh, *, again: bool = False) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4).double(), nn.Linear(4, 2).double()
        self.act, self.again = act, again

    def part(self, x: Tensor) -> Tensor:
        return self.act(self.first(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.second(checkpoint(self.part, x, use_reentrant=False) if self.again else self.part(x))


def data(samples: int = 6) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x, y = (torch.randn(samples, n, generator=generator, dtype=torch.float64) for n in (4, 2))
    return x, y


def drawn(build: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(seed)
        return build()


def both(act: Act) -> tuple[Objective, Objective]:
    """The same function with a part that is run again, and without."""
    rerun, plain = drawn(lambda: Net(act, again=True)), drawn(lambda: Net(act))
    return Objective(rerun, data(), nn.MSELoss()), Objective(plain, data(), nn.MSELoss())


def test_what_is_run_again_has_the_parameters_that_are_measured() -> None:
    """Whatever has become of those of the model since."""
    rerun, plain = both(torch.tanh)
    matrix, v = hessian(rerun), torch.ones(plain.dim, dtype=torch.float64)
    first = matrix @ v
    assert isinstance(rerun.model, Net)
    with torch.no_grad():
        rerun.model.first.weight.mul_(3.0)
    assert torch.equal(matrix @ v, first)
    assert_same(first, hessian(plain) @ v, 1e-12)
    assert_same(rerun.gradient(), plain.gradient(), 1e-12)


class Turning(nn.Module):
    """Uses a weight beside its layer, or runs this again, with some samples alone."""

    def __init__(self, again: bool) -> None:
        super().__init__()
        self.layer, self.again = nn.Linear(4, 4).double(), again

    def forward(self, x: Tensor) -> Tensor:
        if not bool((x[:, 0] > 5).any()):
            return self.layer(x).tanh()
        if self.again:
            return checkpoint(self.layer, x, use_reentrant=False).tanh()
        return self.layer(x).tanh() + (x[:, :1] > 5) * self.layer.bias


@pytest.mark.parametrize("again", [True, False])
def test_what_some_samples_do_alone_is_seen_where_it_happens(again: bool) -> None:
    """A few samples, which the model is asked of, do not go there."""
    (x, y), generator = data(), torch.Generator().manual_seed(5)
    x[4, 0], y = 6.0, torch.cat([y, y], 1)
    objective = Objective(drawn(lambda: Turning(again)), (x, y), nn.MSELoss())
    frame = torch.randn(objective.dim, 2, generator=generator, dtype=torch.float64)
    assert sites.covers(objective)
    matrix = gauss_newton(objective).dense()
    assert trace_gauss_newton(objective) == pytest.approx(float(matrix.trace()), rel=1e-12)
    terms, whole = projected_terms(objective, frame), hessian(objective)
    assert_same(terms.g_term, frame.mT @ matrix @ frame, 1e-10)
    assert_same(terms.hessian, frame.mT @ (whole @ frame), 1e-10)
    forms = objective.share * quadratic_forms(objective, frame).sum(0)
    np.testing.assert_allclose(forms, terms.hessian.diagonal(), rtol=1e-9)
    assert variance_along(objective, frame[:, 0]) > 0


@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.ConvTranspose1d, nn.Linear])
def test_hooks_of_a_layer_are_no_part_of_it(kind: Any) -> None:
    layer = kind(4) if kind is nn.LayerNorm else kind(4, 4, 1) if kind is nn.ConvTranspose1d else kind(4, 4)
    model = nn.Sequential(nn.Unflatten(1, (4, 1)), layer, nn.Flatten()) if layer.weight.ndim == 3 else layer
    layer.double().register_forward_hook(lambda _, inputs, outputs: 2 * outputs.tanh())
    layer.register_forward_pre_hook(lambda _, inputs: (inputs[0].sin(),))
    x, y = data()
    objective = Objective(model, (x, torch.cat([y, y], 1)), nn.MSELoss())
    frame = torch.eye(objective.dim, 3, dtype=torch.float64)
    matrix = gauss_newton(objective).dense()
    assert sites.covers(objective)
    assert trace_gauss_newton(objective) == pytest.approx(float(matrix.trace()), rel=1e-12)
    assert_same(projected_terms(objective, frame).g_term, matrix[:3, :3], 1e-10)


# --- nothing is refused for its kinks or its size -----------------------------------------------------------------


def zeroed(model: nn.Module, *, biases: bool) -> nn.Module:
    with torch.no_grad():
        for name, p in model.named_parameters():
            if not biases or name.endswith("bias"):
                p.zero_()
    return model


def deep(*, normed: bool, act: Any = nn.ReLU) -> nn.Module:
    parts: list[nn.Module] = [nn.Linear(4, 12), act()]
    for _ in range(8):
        parts += [nn.Linear(12, 12), *([nn.LayerNorm(12)] if normed else []), act()]
    return nn.Sequential(*parts, nn.Linear(12, 2))


def scaled(model: nn.Module, factor: float) -> nn.Module:
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(factor)
    return model


def pooled() -> nn.Module:
    features = (
        nn.Conv2d(1, 2, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(2, 4, 3, padding=1),
        nn.ReLU(),
    )
    return nn.Sequential(nn.Unflatten(1, (1, 2, 2)), *features, nn.Flatten(), nn.Linear(4, 2))


HONEST: dict[str, Callable[[], nn.Module]] = {
    "units at their kink": lambda: zeroed(deep(normed=False), biases=True),
    "all parameters zero": lambda: zeroed(deep(normed=False), biases=False),
    "steep where it is normalised": lambda: zeroed(deep(normed=True, act=nn.Mish), biases=True),
    "many kinks": lambda: nn.Sequential(
        nn.Linear(4, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 2)
    ),
    "ties of a maximum": pooled,
    "straight pieces": lambda: deep(normed=False, act=nn.Hardtanh),
    "tiny": lambda: scaled(deep(normed=False, act=nn.Tanh), 1e-6),
    "saturated": lambda: scaled(deep(normed=False, act=nn.Tanh), 1e4),
    "exploding": lambda: scaled(deep(normed=False), 1e2),
}
LOSSES = [nn.L1Loss(), lambda z, y: (z - y).norm()]


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("loss", LOSSES)
def test_kinks_and_extremes_contradict_nothing(name: str, dtype: torch.dtype, loss: Any) -> None:
    x, y = data()
    for inputs in (x, torch.zeros_like(x), x * (x > 0.5)):
        Objective(drawn(HONEST[name]).to(dtype), (inputs, torch.zeros_like(y)), loss).require_sound()


def test_a_model_beyond_memory_is_asked_no_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulate._memory.is_free", lambda *_: False)
    model = Net(lambda h: h * h.detach())
    Objective(model, data(), nn.MSELoss()).require_sound()


# --- how it is asked ----------------------------------------------------------------------------------------------


class Counted(Net):
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(x)


def test_it_is_asked_once() -> None:
    model = Counted()
    objective = Objective(model, data(), nn.MSELoss())
    objective.require_sound()
    model.calls = 0
    objective.gradient()
    assert model.calls == 1
    matrix = hessian(objective)
    _ = matrix @ torch.ones(objective.dim, dtype=torch.float64)
    model.calls = 0
    _ = matrix @ torch.ones(objective.dim, dtype=torch.float64)
    assert model.calls == 0


def test_a_loss_that_takes_no_few_samples_is_asked_of_a_batch() -> None:
    def paired(z: Tensor, y: Tensor) -> Tensor:
        half = z.unflatten(0, (3, 2))
        return (half[:, 0] - half[:, 1].detach()).square().mean()

    with pytest.raises(ValueError, match="derivatives of their own values, got others"):
        Objective(Net(), data(), paired).gradient()


def test_old_parameters_that_are_kept_are_refused() -> None:
    model = Net()
    parametrize.register_parametrization(model.first, "weight", nn.Tanh())
    objective = Objective(model, data(), nn.MSELoss())
    with parametrize.cached(), pytest.raises(ValueError, match=r"outside of parametrize.cached"):
        objective.gradient()
    objective.gradient()


def test_the_value_of_a_loss_needs_no_derivatives() -> None:
    """A penalty counts in it, and a function that may be differentiated once."""
    model = Net()
    objective = Objective(model, data(), lambda z, y: (z - y).square().mean() + model.first.weight.norm())
    x, y = data()
    with torch.no_grad():
        expected = float((model(x) - y).square().mean() + model.first.weight.norm())
    assert objective.value() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("ask", [trace_gauss_newton, trace_hessian, Objective.gradient, sites.covers])
def test_everything_that_takes_derivatives_refuses(ask: Callable[[Objective], Any]) -> None:
    objective = Objective(Net(lambda h: h * h.detach()), data(), nn.MSELoss())
    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"derivatives of their own values, got others.*: look for detach, no_grad"
        ):
            ask(objective)


# --- what need not be asked ---------------------------------------------------------------------------------------


def classified(model: nn.Module, loss: Any = None) -> Objective:
    x = torch.randn(4, *((3, 32, 32) if isinstance(model, LeNet5) else (6,)), dtype=torch.float64)
    return Objective(model, (x, torch.tensor([0, 1, 2, 0])), loss or nn.CrossEntropyLoss())


def mlp(activation: str = "relu") -> Mlp:
    return Mlp((6, 5, 3), activation, rng=np.random.default_rng(0)).double()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Objective]:
    found: list[Objective] = []
    monkeypatch.setattr(soundness, "_called", found.append)
    return found


@pytest.mark.parametrize("model", [mlp(), mlp("gelu"), LeNet5(rng=np.random.default_rng(0)).double()])
@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss(), nn.functional.cross_entropy])
def test_networks_of_the_suite_are_not_asked(model: nn.Module, loss: Any, asked: list[Objective]) -> None:
    classified(model, loss).value()
    classified(model, loss).gradient()
    assert not asked


def _replaced(model: Mlp) -> None:
    layer: Any = model.layers[0]
    weight = layer.weight.detach()
    del layer.weight
    layer.weight = weight


def _buffered(model: Mlp) -> None:
    model.layers[0].register_buffer("seen", torch.zeros(1))


class _Layer(nn.Linear):
    """One of somebody's own."""


ALTERED: dict[str, Callable[[Any], Any]] = {
    "activation": lambda model: setattr(model, "activation", lambda x: x.detach().relu()),
    "forward of the model": lambda model: setattr(model, "forward", model.forward),
    "forward of a layer": lambda model: setattr(model.layers[0], "forward", model.layers[0].forward),
    "class of a layer": lambda model: setattr(model.layers[0], "__class__", _Layer),
    "weight": _replaced,
    "buffer": _buffered,
    "parametrization": lambda model: nn.utils.parametrizations.weight_norm(model.layers[0]),
    "forward hook": lambda model: model.layers[0].register_forward_hook(lambda *_: None),
    "hook before": lambda model: model.register_forward_pre_hook(lambda *_: None),
    "backward hook": lambda model: model.layers[0].register_full_backward_hook(lambda *_: None),
    "hook before backward": lambda model: model.register_full_backward_pre_hook(lambda *_: None),
}


@pytest.mark.parametrize("what", ALTERED)
def test_networks_of_the_suite_are_asked_once_they_are_altered(what: str, asked: list[Objective]) -> None:
    model = mlp()
    ALTERED[what](model)
    classified(model).require_sound()
    assert len(asked) == 1


@pytest.mark.parametrize(
    "loss",
    [
        nn.CrossEntropyLoss(weight=torch.ones(3, dtype=torch.float64)),
        type("Own", (nn.CrossEntropyLoss,), {})(),
        lambda outputs, targets: nn.functional.cross_entropy(outputs, targets),
    ],
)
def test_losses_with_numbers_or_code_of_their_own_are_asked(loss: Any, asked: list[Objective]) -> None:
    classified(mlp(), loss).require_sound()
    assert len(asked) == 1


def test_what_stands_around_a_network_is_asked(asked: list[Objective]) -> None:
    class Own(Mlp):
        pass

    classified(Own((6, 5, 3), rng=np.random.default_rng(0)).double()).require_sound()
    classified(nn.Sequential(mlp())).require_sound()
    with torch.autocast("cpu"):
        classified(mlp()).require_sound()
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        classified(mlp()).require_sound()
    finally:
        handle.remove()
    assert len(asked) == 4


def test_a_tensor_of_many_numbers_repeats_them_but_no_row() -> None:
    found = normal(torch.empty(120, 300, dtype=torch.float64))
    assert int(torch.linalg.matrix_rank(found)) == 120
    assert normal(torch.empty(0)).shape == (0,) and normal(torch.empty(())).ndim == 0
