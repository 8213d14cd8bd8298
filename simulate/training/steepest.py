"""Steepest descent in norms other than the Euclidean one, as a rule for many networks at once.

In a norm |.| the step is w' = w - eta |g|_* d, where d has norm 1 and the largest inner product with the gradient g.
This product is the dual norm |g|_*. A normalised step is w' = w - eta d. The norms of all parameters together:

* signs: the largest entry; d has the signs of g, and |g|_* is the sum of its sizes.
* spectral: the largest singular value of any weight matrix; d has their polar factors, |g|_* is the sum of all singular
  values.
* blocks: the sum of the lengths of the parameter tensors; d is the longest of g over its length, and 0 elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from simulate import _checks
from simulate.training.edges import Products
from simulate.training.rules import Memory, Rule, per_network
from simulate.training.scaled_training import inner
from simulate.training.stacks import Parameters, Stack


def _signs(gradients: Parameters) -> list[Tensor]:
    return [g.sign() for g in gradients]


def _polar_factors(gradients: Parameters) -> list[Tensor]:
    found = list[Tensor]()
    for g in gradients:
        if g.ndim != 3:
            raise ValueError(
                f"parameters must be matrices for the spectral norm, got shape {tuple(g.shape[1:])}"
            )
        wide = g if g.shape[1] <= g.shape[2] else g.mT
        squares, vectors = torch.linalg.eigh((wide @ wide.mT).double())
        # singular values below a hundred thousandth of the largest are rounding of single precision
        kept = squares > 1e-10 * squares[:, -1:]
        roots = torch.where(kept, squares, torch.inf).rsqrt()
        polar = ((vectors * roots[:, None]) @ vectors.mT).to(g) @ wide
        found.append(polar if wide is g else polar.mT)
    return found


def _longest_block(gradients: Parameters) -> list[Tensor]:
    lengths = torch.stack([g.flatten(1).norm(dim=1) for g in gradients], 1)
    chosen = torch.nn.functional.one_hot(lengths.argmax(1), len(gradients)) / lengths.clamp_min(1e-30)
    return [g * per_network(chosen[:, i], g) for i, g in enumerate(gradients)]


NORMS: dict[str, Callable[[Parameters], list[Tensor]]] = {
    "signs": _signs,
    "spectral": _polar_factors,
    "blocks": _longest_block,
}
"""Functions of gradients to directions of norm 1 with the largest inner product with them."""


@dataclass(frozen=True, kw_only=True)
class Steepest(Rule):
    """Rule of steepest descent in one of `NORMS`, without momentum.

    Attributes
    ----------
    norm
        One of `NORMS`.
    normalised
        Whether a step has the length of the rate, without the dual norm of the gradient.

    Raises
    ------
    ValueError
        If there is no such norm, or the norm is spectral and a parameter is no matrix.

    Examples
    --------
    >>> w, g = [torch.zeros(1, 1, 2)], [torch.tensor([[[3.0, -1.0]]])]
    >>> for normalised in (False, True):
    ...     _ = Steepest(norm="signs", normalised=normalised).step_(w, g, torch.tensor([0.5]), Memory())
    ...     w[0]
    tensor([[[-2.,  2.]]])
    tensor([[[-2.5000,  2.5000]]])
    """

    norm: str
    normalised: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.one_of("norm", self.norm, NORMS)

    @property
    def plain(self) -> bool:
        """Whether a step is the rate times the gradient: no."""
        return False

    @torch.no_grad()
    def step_(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], rates: Tensor, memory: Memory
    ) -> Memory:
        """Move parameters, each (n, ...), in place at rates (n,)."""
        directions = NORMS[self.norm](gradients)
        lengths = rates if self.normalised else rates * inner(gradients, directions, 1)
        for p, d in zip(parameters, directions, strict=True):
            p.sub_(d * per_network(lengths, d))
        return memory


def generalised_sharpness(
    stack: Stack,
    parameters: Parameters,
    inputs: Tensor,
    targets: Tensor,
    *,
    norm: str,
    starts: Sequence[Parameters],
    steps: int,
) -> Tensor:
    """Return a lower bound of max d'Hd over |d| = 1 for each network, (n,), with H of its mean loss.

    From each start d is replaced by the direction of Hd, `steps` times; d'Hd does not fall if H has no negative
    eigenvalue. The largest value of all is returned.

    Parameters
    ----------
    stack, parameters, inputs, targets
        n networks, each on its own samples.
    norm
        One of `NORMS`.
    starts
        Vectors shaped like the parameters, in addition to the gradient.
    steps
        Hessian products for each start, at least 1.

    Examples
    --------
    Signs on the Hessian [[5, -2], [-2, 1]]: the best of them are opposite.

    >>> from simulate.training.stacks import Perceptrons
    >>> x = torch.tensor([[[3.0, -1.0], [1.0, -1.0]]])
    >>> stack, w = Perceptrons("linear", "squared error", bias=False), [torch.ones(1, 1, 2)]
    >>> generalised_sharpness(stack, w, x, torch.zeros(1, 2, 1), norm="signs", starts=[], steps=3)
    tensor([10.])
    """
    products, direction = Products(stack, parameters, inputs, targets), NORMS[norm]
    found = torch.full_like(inputs[:, 0, 0], -torch.inf)
    for start in (products.gradients, *starts):
        d = direction(start)
        for _ in range(steps):
            image = products(d)
            found, d = found.maximum(inner(d, image, 1)), direction(image)
    return found
