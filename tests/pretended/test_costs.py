"""Estimated costs of sizes for a GPU agree with what the pretended device counts at small sizes."""

import pytest

from benchmarks.pretend import NAME, POSSIBLE, pretended
from simulate.monte_carlo import Point, run_block
from verify.claims import registry
from verify.model.observation import Cost

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="this torch has no devices made in Python")

WITHIN = 3.0
"""Factor between an estimate and what is counted: formulas are made for sizes a thousand times as large."""

SMALL = {"images": "digits", "stages": ((3,), (4,)), "head": (6,), "samples": 32, "chunk": 32}

POINTS = {
    "vysogorets2024/training-map-on-a-gpu": {
        "samples": 24, "others": 24, "steps": 20, "looks": (0, 10, 20), "base_rate": (0.001, 0.003, 0.01),
    },
    "vysogorets2024/edges-by-samples-on-a-gpu": {"samples": 60, "counts": (30, 60), "dim": 6},
    "vysogorets2024/edges-of-vgg-on-a-gpu": {
        **SMALL, "stages": ((6,), (8,)), "head": (16,), "samples": 16, "dim": 3, "training_batch": 8, "epochs": 2,
    },
    "granziol2022/vgg-rates-on-a-gpu": {
        **SMALL, "rungs": 2, "batch_size": (8, 64), "samples": 64, "centres": (1e-3, 1e-3), "epochs": 0, "least": 4,
    },
    "karakida2019/figure-2-wide-on-a-gpu": {"widths": (24,), "samples": 48, "steps": 10, "searched": 5},
    "karakida2019/limits-by-width-on-a-gpu": {"widths": (96,)},
}  # fmt: skip
"""All but VGG-16 through training, whose searches take minutes at any size: docs/devices.md has its counts."""

LARGE = {o.id: o for o in registry.observations() if o.cost is not None}


def off(name: str, times: float = 1.0) -> list[str]:
    """Return the counts by which an estimate, multiplied by this factor, is off."""
    large = LARGE[name]
    point = Point(**{**large.points[0], **POINTS[name]})
    with pretended() as counts:
        run_block(
            large.simulate, experiment=name, point=point, seed=7, index=0, size=1, counted=True, device=NAME
        )
    said = Cost(*(times * part for part in large.cost(point)))
    counted = {"flops": counts.device_work, "launches": counts.launches}
    ratios = {part: getattr(said, part) / value for part, value in counted.items()}
    return [f"{part} {ratio:.2g}" for part, ratio in ratios.items() if not 1 / WITHIN < ratio < WITHIN]


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # what torch's forward mode calls
@pytest.mark.parametrize("name", POINTS)
def test_an_estimate_is_near_what_is_counted(name: str) -> None:
    assert off(name) == []


def test_an_estimate_ten_times_too_large_is_seen() -> None:
    assert len(off("karakida2019/limits-by-width-on-a-gpu", 10.0)) == 2


def test_every_size_for_a_gpu_is_counted_here_but_one() -> None:
    assert LARGE.keys() - POINTS.keys() == {"granziol2022/vgg-through-training-on-a-gpu"}
