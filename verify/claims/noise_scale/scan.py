"""Where the mean loss after one step is least, by trying rates; knows nothing of the loss but its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor


__all__ = ["Lowest", "lowest"]

COARSE = 2.0 ** np.arange(-7, 5)
"""Rates tried first, a factor of two apart."""

FINE = 2.0 ** np.linspace(-1, 1, 9)
"""Factors about the best of these, tried next."""


class Lowest(NamedTuple):
    """The rate (n,) at which a mean loss is least, and that loss (n,)."""

    rate: Tensor
    loss: Tensor


def lowest(losses: Callable[[Tensor], Tensor], device: str = "cpu") -> Lowest:
    """From the mean losses (n, R) at rates (n, R), or (R,) the same for all, to where they are least.

    All of them lie on the device. The last step is the parabola through the best of the fine rates and its neighbours.

    Examples
    --------
    >>> import torch
    >>> lowest(lambda rates: 0.25 * rates**2 - torch.tensor([[0.1], [0.3]]) * rates)
    Lowest(rate=tensor([0.2000, 0.6000], dtype=torch.float64), loss=tensor([-0.0100, -0.0900], dtype=torch.float64))
    """
    import torch

    coarse, fine = (torch.from_numpy(tried).to(device) for tried in (COARSE, FINE))
    centre = coarse[losses(coarse).argmin(1)]
    rates = centre[:, None] * fine
    found = losses(rates)
    middle = found.argmin(1).clamp(1, len(FINE) - 2)
    x0, x1, x2 = (rates.gather(1, (middle + shift)[:, None])[:, 0] for shift in (-1, 0, 1))
    y0, y1, y2 = (found.gather(1, (middle + shift)[:, None])[:, 0] for shift in (-1, 0, 1))
    left, right = (y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1)
    bend = (right - left) / (x2 - x0)
    rate = (x0 + x1) / 2 - left / (2 * bend)
    return Lowest(rate, y1 + (rate - x1) * left + (rate - x1) * (rate - x0) * bend)
