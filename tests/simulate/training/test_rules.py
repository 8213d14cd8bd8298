"""Update rules at the ends of what numbers can hold, and on gradients however they lie in memory."""

from __future__ import annotations

import sys

import pytest
import torch

from simulate.training.rules import ADAM, MOMENTUM, Memory, Rule

HALF_OF_THE_SMALLEST = sys.float_info.min / 2
RATES = torch.tensor([0.1, 0.2])


@pytest.mark.parametrize("rule", [MOMENTUM, ADAM], ids=["momentum", "adam"])
def test_momentum_that_fades_ends_at_zero(rule: Rule) -> None:
    """0.9 times the smallest number there is would be rounded to that number for ever."""
    weights, memory = [torch.ones(2, 3)], Memory()
    for step in range(1200):
        gradient = torch.full((2, 3), float(step == 0))
        memory = rule.step_(weights, [gradient], RATES, memory)

    assert torch.equal(memory.first[0], torch.zeros(2, 3))
    assert bool((weights[0] < 1).all())


def test_small_numbers_are_kept_outside_of_a_step() -> None:
    ADAM.step_([torch.ones(2, 3)], [torch.ones(2, 3)], RATES, Memory())

    assert sys.float_info.min / 2 == HALF_OF_THE_SMALLEST > 0
    assert torch.tensor([HALF_OF_THE_SMALLEST], dtype=torch.float64).mul(1.0).item() > 0


def test_who_counts_small_numbers_as_zero_goes_on_doing_so() -> None:
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot")
    try:
        ADAM.step_([torch.ones(2, 3)], [torch.ones(2, 3)], RATES, Memory())
        assert sys.float_info.min / 2 == 0
    finally:
        torch.set_flush_denormal(False)
