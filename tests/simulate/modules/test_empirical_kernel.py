"""Inner products of gradients a block at a time, and what has none; against dense Jacobians see `test_laws`."""

from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from simulate import _memory
from simulate.modules import empirical_kernel as module, site_gradients
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.objectives.batches import joined
from tests.simulate.models_and_data import case


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", ["convolution", "tied"])
def test_blocks_within_memory_make_the_whole(
    name: str, traced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = case(name)
    inputs = joined([x for x, _ in found.data])
    whole = empirical_kernel(found.model, inputs, traced=traced)
    objective = found.objective()
    count = 3 if name == "convolution" else 4
    monkeypatch.setattr(site_gradients, "_BYTES", 1)
    monkeypatch.setattr(
        _memory, "available", lambda device: module._SHARE * 2 * 2 * count * objective.dim * 8
    )

    assert_allclose(empirical_kernel(found.model, inputs, traced=traced), whole, atol=1e-12)


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
    with pytest.raises(ValueError, match=said):
        ask()
