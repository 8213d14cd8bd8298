"""Draws that only count: the published vectors, numpy's own generator, and the same numbers on every device."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats

from simulate.monte_carlo import Block, Point, counted_key, fixture, philox, run_block

# Salmon et al. (2011): known answers of philox4x32 with ten rounds, from kat_vectors of Random123: counter, key, words
KNOWN = [
    "ffffffff ffffffff ffffffff ffffffff  ffffffff ffffffff  408f276d 41c83b0e a20bc7c6 6d5451fd",
    "243f6a88 85a308d3 13198a2e 03707344  a4093822 299f31d0  d16cfe09 94fdcceb 5001e420 24126ea1",
]


@pytest.mark.parametrize("known", KNOWN)
def test_the_published_vectors_come_out(known: str) -> None:
    """The vectors for zeros are those of the doctest."""
    given = torch.tensor([int(word, 16) for word in known.split()])[:, None]
    assert torch.equal(philox.words(given[:4], given[4:6]), given[6:])


def test_draws_hang_on_key_and_place_alone() -> None:
    keys = torch.tensor([[1, 2], [3, 4]])
    whole = philox.counted_normal(keys, 7, draw=2)
    assert whole.shape == (2, 7)
    assert torch.equal(philox.counted_normal(keys[1:], 4, draw=2), whole[1:, :4])
    for other in (philox.counted_normal(keys, 7, draw=3), philox.counted_normal(keys + 1, 7, draw=2)):
        assert not torch.isin(other, whole).any()


def test_draws_have_their_laws() -> None:
    keys = torch.tensor([[5, 6]])
    assert stats.kstest(philox.counted_uniform(keys, 20_000, 0)[0].numpy(), "uniform").pvalue > 1e-3
    normal = philox.counted_normal(keys, 20_000, 1)[0].numpy()
    assert stats.kstest(normal, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(normal[::2], normal[1::2])[0, 1]) < 4 / math.sqrt(10_000)


def test_uniform_numbers_never_reach_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    for word, expected in ((0, 2.0**-53), (2**32 - 1, 1 - 2.0**-53)):
        monkeypatch.setattr(philox, "words", lambda counters, _, w=word: torch.full_like(counters, w))
        assert philox.counted_uniform(torch.tensor([[0, 0]]), 2, 0).tolist() == [[expected] * 2]


def test_keys_are_told_apart_by_all_that_names_a_replicate() -> None:
    names = itertools.product((1, 2), "ab", (Point(dim=3), Point(dim=4)), range(3))
    assert len({counted_key(*name) for name in names}) == 2 * 2 * 2 * 3


def _means(block: Block, point: Point) -> dict[str, Any]:
    return {"first": block.normal(point.dim).mean(1), "second": block.normal(2, 3).square().sum((1, 2))}


def test_replicates_of_a_device_do_not_hang_on_their_block() -> None:
    asked = {"experiment": "a", "point": Point(dim=5), "seed": 3, "counted": True}
    whole, part = run_block(_means, **asked, index=0), run_block(_means, **asked, index=3, size=2)
    for name in ("first", "second"):
        assert_allclose(part.scores[name], whole.scores[name][6:8], rtol=1e-14)


def test_networks_of_one_replicate_have_draws_of_their_own() -> None:
    def block(*names: str, keys: Any = ()) -> Block:
        return Block(tuple(fixture(0, name) for name in names), keys=keys)

    both = block("a", "b", keys=((1, 2), (3, 4)))
    drawn = torch.cat([both.repeated(3).normal(5), both.repeated(3).normal(5), both.normal(5)])
    assert len(drawn.unique()) == drawn.numel()
    assert torch.equal(block("b", keys=((3, 4),)).repeated(3).normal(5), drawn[3:6])
    assert both.repeated(2).normal(5).view(2, -1).shape == (2, 10)  # an odd count is cut from an even one
    streams = block("a", "b").repeated(2).normal(5)
    assert torch.equal(streams[:2].flatten(), torch.from_numpy(fixture(0, "a").standard_normal(10)))
