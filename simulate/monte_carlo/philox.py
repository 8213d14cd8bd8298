"""Draws that are the same on every device: a counter-based generator in tensor operations.

Philox 4x32-10 turns a key and a counter of four words into four words of 32 bits; nothing is kept from one call to
the next, so that every number has its place: draw j of replicate i is the function of (key of i, j) and no other.

| symbol | meaning |
|---|---|
| `words` | the generator itself: counters and keys to words |
| `counted_uniform` | words two by two to numbers of 52 bits in (0, 1), never at an end |
| `counted_normal` | uniform numbers two by two to normal ones, by the map of Box and Muller |

Words and uniform numbers are the same to the bit on every device, normal ones to the rounding of its logarithm, sine
and cosine.

References
----------
Salmon, Moraes, Dror and Shaw (2011), Parallel random numbers: as easy as 1, 2, 3, SC11, doi 10.1145/2063384.2063405,
section 3.3; Box and Muller (1958), A note on the generation of random normal deviates.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_ROUNDS = 10
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_STEPS = 0x9E3779B9, 0xBB67AE85
"""Increments of the two words of a key from round to round: golden ratio and sqrt(3) - 1, as fractions."""

_WORD = 1 << 32


def words(counters: Tensor, keys: Tensor) -> Tensor:
    """Return four words of 32 bits for every counter: (4, ...) of the shape that counters and keys broadcast to.

    Parameters
    ----------
    counters, keys
        Of shape (4, ...) and (2, ...), int64 of values below 2^32.

    Examples
    --------
    >>> zeros = torch.zeros(6, 1, dtype=torch.int64)
    >>> [hex(word) for word in words(zeros[:4], zeros[4:]).ravel().tolist()]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    multiplied, others = counters[::2], counters[1::2]
    factors, steps = (
        torch.tensor(pair, device=keys.device).view(2, *[1] * (counters.ndim - 1))
        for pair in (_MULTIPLIERS, _STEPS)
    )
    rounds = torch.arange(_ROUNDS, device=keys.device).view(-1, *[1] * counters.ndim)
    # by the factor less 2^32 no product leaves the 63 bits of an int64
    factors = factors.flip(0) - _WORD
    for key in (keys + rounds * steps) % _WORD:
        multiplied = multiplied.flip(0)
        product = multiplied * factors
        multiplied, others = ((product >> 32) + multiplied) ^ others ^ key, product & (_WORD - 1)
    return torch.stack([multiplied, others], 1).flatten(0, 1)


def counted_uniform(keys: Tensor, count: int, draw: int) -> Tensor:
    """Numbers in (0, 1), float64 of shape (n, count), the j-th from counter (j // 2, 0, draw, 0).

    Parameters
    ----------
    keys
        One for each replicate, int64 of shape (n, 2) and values below 2^32, on the device of the draws.
    count
        How many for each, below 2^33.
    draw
        Which draw of the replicate this is, below 2^32: another has other numbers.

    Examples
    --------
    >>> keys = torch.tensor([[1, 2], [1, 3]])
    >>> found = counted_uniform(keys, 5, draw=0)
    >>> found.shape, bool((counted_uniform(keys[1:], 3, draw=0) == found[1:, :3]).all())
    (torch.Size([2, 5]), True)
    """
    places = torch.arange((count + 1) // 2, device=keys.device)
    counters = torch.zeros(4, 1, len(places), dtype=torch.int64, device=keys.device)
    counters[0], counters[2] = places, draw
    first, second, third, fourth = words(counters, keys.mT[..., None])
    return torch.stack([_fraction(first, second), _fraction(third, fourth)], -1).flatten(1)[:, :count]


def counted_normal(keys: Tensor, count: int, draw: int) -> Tensor:
    """Standard normal numbers, float64 of shape (n, count); arguments as those of `counted_uniform`.

    Examples
    --------
    >>> found = counted_normal(torch.tensor([[1, 2]]), 10_000, draw=0)
    >>> bool(found.mean().abs() < 0.03), bool((found.var() - 1).abs() < 0.05)
    (True, True)
    """
    first, second = counted_uniform(keys, count + count % 2, draw).unflatten(1, (-1, 2)).unbind(2)
    radius, angle = (-2 * first.log()).sqrt(), 2 * math.pi * second
    normal = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=-1).flatten(1)
    return normal[:, :count].contiguous()


def _fraction(high: Tensor, low: Tensor) -> Tensor:
    """Return the middle of one of 2^52 equal parts of (0, 1), exactly, from the upper 26 bits of two words."""
    return (((high >> 6) << 26 | low >> 6).double() + 0.5) * 2.0**-52
