"""Sizes that no memory holds, and what is no size at all, are refused by name before anything is allocated."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simulate import _memory, networks
from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point, stream
from simulate.perceptrons import curvature

BLOCK = Block(tuple(stream(0, "test", Point(), i) for i in range(2)))
NO_SIZE = (
    0,
    -3,
    -(10**400),
    -(10**5000),
    np.timedelta64(3, "s"),
    2.5,
    3.0,
    float("nan"),
    float("inf"),
    True,
    "7",
    None,
    1j,
    (2,),
)
ABSURD = (10**7, 10**12, 10**400, 10**5000, np.int64(2**62), np.uint64(2**63))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


SIZES: dict[str, Callable[[Any], Any]] = {
    "wigner dim": lambda k: ensembles.wigner(BLOCK, k),
    "wigner rademacher dim": lambda k: ensembles.wigner(BLOCK, k, law="rademacher"),
    "mlp_weights widths": lambda k: networks.mlp_weights(rng(), (10**5, k, 2)),
    "Mlp widths": lambda k: networks.Mlp((10**5, k, 2), rng=rng()),
    "LeNet5 channels": lambda k: networks.LeNet5(10**10 if type(k) is int and k == 10**7 else k, rng=rng()),
    "LeNet5 classes": lambda k: networks.LeNet5(3, 10**10 if type(k) is int and k == 10**7 else k, rng=rng()),
}
"""A call for each argument that says how much is allocated, with the others so that ten millions are absurd."""


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "available", lambda device: 2.0**30)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("size", ABSURD, ids=lambda size: f"{size:.0e}" if size < 10**300 else "huge")
@pytest.mark.usefixtures("little")
def test_a_size_that_no_memory_holds_is_refused_at_once(name: str, size: Any) -> None:
    argument, started = name.split()[-1], time.process_time()
    with pytest.raises(
        ValueError, match=rf"{argument}.* must be (small enough for memory|less than 2\*\*63)"
    ):
        SIZES[name](size)
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize("name", SIZES)
def test_what_is_no_size_is_refused_by_name(name: str) -> None:
    argument = name.split()[-1]
    for value in NO_SIZE:
        with pytest.raises(ValueError, match=f"{argument} must be (a|at least two) positive integer"):
            SIZES[name](value)


@pytest.mark.parametrize("value", NO_SIZE, ids=range(len(NO_SIZE)))
def test_columns_of_a_frame_are_a_size(value: Any) -> None:
    for draw in (curvature.haar, curvature.sparse_frame):
        with pytest.raises(ValueError, match="columns must be"):
            draw(rng(), 5, value)


def test_small_sizes_ask_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that reads from the system would cost more than a small draw."""
    monkeypatch.setattr(_memory, "available", lambda device: pytest.fail("asked"))
    ensembles.wigner(BLOCK, 50)
    started = time.process_time()
    for _ in range(1000):
        _memory.require_free("dim", 10**6, "matrices")
    assert time.process_time() - started < 0.1


def test_sizes_of_numpy_are_sizes() -> None:
    assert ensembles.wigner(BLOCK, np.int8(100)).shape == (2, 100, 100)  # 100^2 would overflow there
    assert networks.weight_count(np.array([1000, 1000, 10], dtype=np.int16)) == 1_010_000
