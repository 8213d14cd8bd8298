"""Blocks share nothing but their stream, and nothing is computed in single precision unannounced."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import blocks
from benchmarks.blocks import SAME, swapped
from simulate.monte_carlo import Block, Point
from verify.claims import registry
from verify.judging.planted import SIZES, SUMS
from verify.model import Experiment, Tier

CHEAP = [e for e in blocks.experiments() if e.tier == Tier.SMOKE]
"""Those of the smoke tier; `python -m benchmarks.blocks` goes through all of them."""

SMALL = Experiment(
    id="toy/blocks", replicate="one number", simulate=lambda b, p: {}, points=(Point(n=24),), tier=Tier.SMOKE
)


def drawn(block: Block, point: Point) -> Any:
    return block.normal(point.n)


def own(block: Block, point: Point) -> Mapping[str, Any]:
    return {"mean": drawn(block, point).mean(1), "other": np.ones(len(block))}


def one_draw_for_all(block: Block, point: Point) -> Mapping[str, Any]:
    return {"mean": drawn(block, point).mean(1) + 1e-3 * block.streams[0].normal()}


def less_the_mean_of_the_block(block: Block, point: Point) -> Mapping[str, Any]:
    x = drawn(block, point).mean(1)
    return {"mean": x - x.mean()}


def rounded(block: Block, point: Point) -> Mapping[str, Any]:
    return {"mean": drawn(block, point).float().mean(1).double()}


def in_a_list(block: Block, point: Point) -> Mapping[str, Any]:
    """Convert python numbers in a list to a tensor without a dtype."""
    return {"mean": torch.tensor([float(x.mean()) for x in drawn(block, point)])}


@pytest.mark.parametrize("experiment", [*CHEAP, SUMS, SIZES], ids=lambda e: e.id)
def test_a_replicate_does_not_change_with_those_drawn_beside_it(experiment: Experiment) -> None:
    found = swapped(experiment, experiment.points[0])
    assert found.moved <= SAME, found
    assert not found.single, found


def test_no_claim_asks_for_single_precision() -> None:
    """Experiments for `--data` are not swept; observations may use single precision if they say so."""
    root = Path(registry.__file__).parent
    asked = {str(file.relative_to(root)) for file in root.rglob("*.py") if "float32" in file.read_text()}
    assert asked == {
        "karakida2019/growth.py",  # announced: Gram matrices of every width
        "karakida2019/training.py",  # announced: Gram matrices of a thousand samples
        "trained_networks.py",  # observations of convolutional networks through training
        "vysogorets2024/framed_networks.py",  # announced: derivatives of the zone and its edges
        "vysogorets2024/priors.py",  # announced: passes through the network
        "vysogorets2024/initialisations.py",  # announced: networks and gradients
    }


def test_what_is_announced_is_in_single_precision_and_alone() -> None:
    """An experiment that no longer is goes off the list."""
    announced = [e for e in blocks.experiments() if e.single]
    assert len(announced) == 45
    one = next(e for e in announced if e.id == "granziol2022/typical-batches")
    found = swapped(one, one.points[0])
    assert found.single and found.moved <= SAME


@pytest.mark.parametrize("simulate", [one_draw_for_all, less_the_mean_of_the_block])
def test_what_a_block_shares_is_seen(simulate: Any) -> None:
    assert swapped(replace(SMALL, simulate=own), SMALL.points[0]).moved == 0
    found = swapped(replace(SMALL, simulate=simulate), SMALL.points[0])
    assert found.moved > SAME and found.score == "mean"


@pytest.mark.parametrize("simulate", [rounded, in_a_list])
def test_single_precision_is_seen(simulate: Any) -> None:
    assert not swapped(replace(SMALL, simulate=own), SMALL.points[0]).single
    assert swapped(replace(SMALL, simulate=simulate), SMALL.points[0]).single


@pytest.mark.parametrize(
    ("simulate", "single", "status"),
    [(own, "", 0), (one_draw_for_all, "", 1), (rounded, "", 1), (rounded, "its scores are rounded", 0)],
)
def test_the_sweep_ends_with_what_it_found(
    simulate: Any,
    single: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    swept = replace(SMALL, simulate=simulate, single=single)
    monkeypatch.setattr(blocks, "experiments", lambda _: [swept])
    assert blocks.main([]) == status
    assert ("toy/blocks at Point(n=24): mean moves by" in capsys.readouterr().out) == (
        simulate is one_draw_for_all
    )
