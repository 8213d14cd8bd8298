"""Inner products of gradients a block at a time, and what has none; against dense Jacobians see `test_laws`."""

from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from simulate import _memory
from simulate.modules import site_gradients
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.objectives.batches import joined
from tests.refusals import refusal
from tests.simulate.models_and_data import case


@pytest.mark.parametrize("traced", [False, True])
def test_blocks_of_weights_make_the_whole(traced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = case("convolution")
    inputs = joined([x for x, _ in found.data])
    whole = empirical_kernel(found.model, inputs, traced=traced)
    monkeypatch.setattr(site_gradients, "_BYTES", 1)

    assert_allclose(empirical_kernel(found.model, inputs, traced=traced), whole, atol=1e-12)


def test_gradients_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel of a model with a parameter outside of its layers."""
    found = case("tied")
    inputs = joined([x for x, _ in found.data])
    monkeypatch.setattr(_memory, "_UNCHECKED", 0)
    monkeypatch.setattr(_memory, "available", lambda device: 1e4)
    with refusal("use fewer samples or parameters"):
        empirical_kernel(found.model, inputs, traced=True)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: empirical_kernel(nn.Flatten(0), torch.ones(2, 3)), "model must have a parameter"),
        (
            lambda: empirical_kernel(nn.Sequential(nn.Linear(3, 2), nn.Flatten(0)), torch.ones(4, 3)),
            r"model must return one row for each of 4 samples, got shape \(8,\)",
        ),
    ],
)
def test_what_has_no_kernel_is_refused(ask: Any, said: str) -> None:
    with refusal(said):
        ask()
