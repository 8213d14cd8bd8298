"""Multi-head attention written out: the outputs of torch's own, and what is left to torch."""

from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.nn.utils import prune

from simulate.modules.attention import attention, is_plain, projection
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.modules.sites import covers
from simulate.objectives import Objective
from simulate.operators import gauss_newton
from tests.simulate.modules.test_sites import drawn

HIDDEN = torch.tensor([[False, True, False], [False, False, False], [False, False, True]])
UPPER = torch.ones(3, 3, dtype=torch.bool).triu(1)

MASKS = {
    "none": {},
    "of keys": {"key_padding_mask": HIDDEN},
    "of pairs": {"attn_mask": UPPER, "average_attn_weights": False},
    "of both": {"key_padding_mask": HIDDEN, "attn_mask": UPPER, "need_weights": False},
    "of numbers": {"attn_mask": drawn(3, 3)},
    "of heads and samples": {"attn_mask": drawn(6, 3, 3)},
    "of all, from the first positions": {  # where torch gives nothing
        "key_padding_mask": HIDDEN | torch.tensor([True, False, False]), "attn_mask": UPPER, "need_weights": False,
    },
    "causal": {"attn_mask": UPPER, "is_causal": True, "need_weights": False},
}  # fmt: skip


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("batch_first", [True, False])
def test_outputs_and_weights_are_those_of_torch(mask: str, batch_first: bool) -> None:
    layer = nn.MultiheadAttention(4, 2, bias=mask != "none", batch_first=batch_first).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    ours = attention(layer, projection(layer))
    x, y, z = drawn(3, 3, 4), drawn(3, 3, 4) + 1, drawn(3, 3, 4) - 1
    for inputs in ((x, x, x), (x, y, y), (x, y, z)):
        found, expected = ours(*inputs, **MASKS[mask]), layer(*inputs, **MASKS[mask])
        assert bool(expected[0].isfinite().all())
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    if mask == "none":
        torch.testing.assert_close(ours(x[0], y[0], y[0]), layer(x[0], y[0], y[0]), rtol=1e-12, atol=1e-12)


class ToItself(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.last = layer, nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.layer(x, x, x)[0].flatten(1))


def _weighed() -> nn.Module:
    return nn.utils.parametrizations.weight_norm(
        nn.MultiheadAttention(4, 2, batch_first=True), "in_proj_weight"
    )


def _pruned() -> nn.Module:
    return prune.l1_unstructured(nn.MultiheadAttention(4, 2, batch_first=True), "in_proj_weight", 0.3)


def _observed() -> nn.Module:
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    layer.out_proj.register_forward_hook(lambda *_: pytest.fail("torch does not call it"))
    return layer


@pytest.mark.parametrize("build", [_weighed, _pruned, _observed])
def test_weights_that_are_computed_and_hooks_inside_are_left_to_torch(build: Any) -> None:
    model = ToItself(build()).double()
    before = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())
    objective = Objective(model, (drawn(5, 3, 4), torch.arange(5) % 2), nn.CrossEntropyLoss())
    assert not covers(objective)
    assert_allclose(trace_gauss_newton(objective), float(gauss_newton(objective).dense().trace()), rtol=1e-9)
    assert sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()) == before


def test_what_has_parameters_elsewhere_is_not_written_out() -> None:
    class Own(nn.MultiheadAttention):
        def forward(self, *inputs: Any, **options: Any) -> Any:
            return super().forward(*inputs, **options)

    others = [{"kdim": 3}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"dropout": 0.1}]
    assert not any(is_plain(nn.MultiheadAttention(4, 2, **options)) for options in others)
    assert is_plain(nn.MultiheadAttention(4, 2, dropout=0.1).eval())
    assert not is_plain(Own(4, 2)) and not is_plain(nn.Linear(4, 2))
