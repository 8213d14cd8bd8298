"""First and second derivatives of a homogeneous network of any layers, at every scale and temperature."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.modules import projected_network
from simulate.modules.projected import projected
from simulate.modules.projected_network import ProjectedNetwork
from simulate.networks import Mlp
from simulate.objectives import Objective, derivatives
from simulate.perceptrons.curvature import haar
from tests.refusals import refusal

LABELS = np.array([2, 0, 1, 2, 1])


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def double(*layers: nn.Module) -> nn.Sequential:
    """Return a model with fixed weights, whatever was drawn before."""
    model = nn.Sequential(*layers).double()
    draw = np.random.default_rng(11)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(draw.standard_normal(p.shape)))
    return model


def convolutional() -> nn.Sequential:
    """Homogeneous of degree 4: strides, padding, both kinds of pooling."""
    return double(
        nn.Conv2d(2, 3, 3, padding=1, bias=False),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(3, 4, 2, stride=2, bias=False),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(4, 6, bias=False),
        nn.LeakyReLU(0.1),
        nn.Linear(6, 3, bias=False),
    )


def images() -> np.ndarray:
    return rng().standard_normal((5, 2, 8, 8))


def parameters(model: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def frame_of(model: nn.Module, columns: int = 3) -> Tensor:
    return haar(rng(), len(parameters(model)), columns)


@pytest.mark.parametrize(("alpha", "temperature"), [(1.0, 1.0), (0.6, 1.3), (1.4, 0.7)])
def test_terms_are_those_of_the_scaled_loss(alpha: float, temperature: float) -> None:
    model = convolutional()
    frame = frame_of(model)
    terms = ProjectedNetwork(model, images(), LABELS, frame).terms(alpha, temperature)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(alpha)
    loss = nn.functional.cross_entropy
    scaled = Objective(model, (images(), LABELS), lambda z, y: loss(z / temperature, y))
    for term, expected in zip(terms, projected(scaled, frame), strict=True):
        assert_allclose(term, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("columns", [3, 13])
def test_convolutions_of_few_places_and_of_many_have_the_same_derivatives(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two ways through a layer, by which there are more of: places (here 12) or directions."""
    model = double(
        nn.Conv2d(2, 3, 3, padding=1, bias=False),
        nn.ReLU(),
        nn.Conv2d(3, 4, (3, 2), stride=(3, 2), padding=(2, 0), dilation=(1, 3), bias=False),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(48, 3, bias=False),
    )
    frame = frame_of(model, columns)
    net = ProjectedNetwork(model, images(), LABELS, frame)
    monkeypatch.setattr(
        projected_network, "_kernel_is_cheaper", lambda site, _: site.nudge.ndim == 4 and columns > 12
    )
    turned = ProjectedNetwork(model, images(), LABELS, frame)
    assert_allclose(net.second_derivatives, turned.second_derivatives, rtol=1e-12, atol=1e-12)
    expected = projected(Objective(model, (images(), LABELS), nn.CrossEntropyLoss()), frame).hessian
    assert_allclose(net.terms().hessian, expected, rtol=1e-10, atol=1e-12)


def test_directions_go_one_by_one_where_an_operation_does_not_take_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = convolutional()
    frame, passes = frame_of(model), list[bool]()
    together = ProjectedNetwork(model, images(), LABELS, frame)

    def slopes(*tensors: Any, several: bool = False, **options: Any) -> Any:
        passes.append(several)
        if several:
            raise RuntimeError("no batching rule")
        return derivatives.slopes(*tensors, **options)

    monkeypatch.setattr(projected_network, "slopes", slopes)
    apart = ProjectedNetwork(model, images(), LABELS, frame)
    assert passes.count(True) == 1
    for name in ("jacobian", "second_derivatives"):
        assert_allclose(getattr(apart, name), getattr(together, name), rtol=1e-13, atol=1e-14)


def test_samples_in_parts_have_the_same_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    model = convolutional()
    frame = frame_of(model)
    whole = ProjectedNetwork(model, images(), LABELS, frame)
    monkeypatch.setattr(projected_network, "_BYTES", 1)
    parts = ProjectedNetwork(model, images(), LABELS, frame)
    assert_allclose(parts.jacobian, whole.jacobian, rtol=1e-12)
    assert_allclose(parts.second_derivatives, whole.second_derivatives, rtol=1e-11, atol=1e-13)


class Square(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x**2


@pytest.mark.parametrize(
    ("layers", "match"),
    [
        ((nn.Linear(4, 5, bias=False), Square(), nn.Linear(5, 3, bias=False)), "piecewise linear"),
        ((nn.Linear(4, 5, bias=False), nn.ReLU(), nn.Linear(5, 3)), "homogeneous of a whole degree"),
        (
            (nn.Linear(4, 5, bias=False), nn.LayerNorm(5, elementwise_affine=False)),
            "homogeneous of a whole degree",
        ),
        ((nn.Linear(4, 3, bias=False), nn.Softmax(0)), "treat each sample on its own"),
        ((nn.Linear(4, 3, bias=False), nn.Unflatten(1, (3, 1))), r"logits of shape \(N, K\)"),
        ((nn.Linear(4, 1, bias=False),), "at least 2 classes"),
    ],
)
def test_other_models_are_refused(layers: tuple[nn.Module, ...], match: str) -> None:
    model = double(*layers)
    with refusal(match):
        ProjectedNetwork(model, rng().standard_normal((5, 4)), LABELS, frame_of(model))


def test_labels_and_frames_are_checked() -> None:
    model, x = Mlp((4, 3), rng=rng()), rng().standard_normal((5, 4))
    frame = frame_of(model)
    with refusal("labels must be between 0 and 2"):
        ProjectedNetwork(model, x, LABELS + 1, frame)
    with refusal(r"frame must be of shape \(12, k\)"):
        ProjectedNetwork(model, x, LABELS, frame[1:])
