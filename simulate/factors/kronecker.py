"""Kronecker-factored curvature, KFAC, and its correction in the eigenbasis, EKFAC, as operators.

What the Fisher information of a sample is made of: derivatives of the loss in its outputs, of three kinds.

| kind | vectors | what matrix they make |
|---|---|---|
| "gauss-newton" | roots of the curvature of the loss in the outputs, as many as it has rank | `gauss_newton` |
| "sampled" | of minus the log likelihood, at targets drawn from the model's own distribution | `fisher`, in the mean |
| "empirical" | of the loss at the target that the sample has | `empirical_fisher` |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from simulate import _checks
from simulate.factors.layers import FactorBlock, KroneckerBlock, Sharing, corrected, factored
from simulate.lanczos import Operator
from simulate.lanczos.precision import in_full_precision
from simulate.lanczos.products import rows_at
from simulate.modules.sample_parts import Outer, Root, roots
from simulate.objectives import Objective, require_objective
from simulate.operators import Likelihood, likelihood_of
from simulate.results import Columns, Result, draw_bars

if TYPE_CHECKING:
    from simulate.results import Axes

Kind = Literal["gauss-newton", "sampled", "empirical"]
_KINDS = ("gauss-newton", "sampled", "empirical")

_NEGLIGIBLE = 1e-3
"""Largest negative curvature of a loss, as a share of the positive one, that is ignored."""

_ROUNDINGS = 10
"""Rounding errors in each eigenvalue of a loss's curvature; for a softmax or sigmoid, of numbers of order one."""

_SATURATING = (nn.CrossEntropyLoss, nn.BCEWithLogitsLoss)
"""Losses whose curvature may be far below the numbers that it is computed from."""


@dataclass(frozen=True, kw_only=True, repr=False)
class KroneckerFactors(Result, Operator):
    """A positive semi-definite block-diagonal curvature matrix, one block for each layer.

    Attributes
    ----------
    blocks
        `layers.KroneckerBlock`, or `layers.DenseBlock` for parameters without factors, in the order of the parameters.
    """

    blocks: tuple[FactorBlock, ...]

    def _headline(self) -> str:
        size = f"{self.dim} parameters in {len(self.blocks)} block{'s' * (len(self.blocks) != 1)}"
        return f"{self.name}, {size}, {str(self.dtype).removeprefix('torch.')} on {self.device}"

    def _columns(self) -> Columns:
        return {
            "layer": [", ".join(block.places) for block in self.blocks],
            "factors": [_factors_of(block) for block in self.blocks],
            "trace": [float(block.diagonal.double().sum()) for block in self.blocks],
        }

    def _record(self) -> Mapping[str, Any]:
        columns = self._columns()
        blocks = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return {
            "name": self.name,
            "dim": self.dim,
            "dtype": self.dtype,
            "device": self.device,
            "blocks": blocks,
        }

    def _draw(self, axes: Axes) -> None:
        names, _, traces = self._columns().values()
        draw_bars(axes, names, traces)
        axes.set(title=f"trace by layer: {self.name}")

    def _inches(self) -> tuple[float, float]:
        return 5.2, 0.9 + 0.22 * len(self.blocks)

    def inverse(self, damping: float) -> Operator:
        """Return the exact inverse of the matrix plus `damping` times the identity.

        Damping each factor instead gives another matrix: that of Martens and Grosse (2015), section 6.3.

        Raises
        ------
        ValueError
            If `damping` is not positive and finite.
        """
        return self.power(-1.0, damping=damping)

    def power(self, exponent: float, *, damping: float = 0.0) -> Operator:
        """Return a power of the matrix plus `damping` times the identity, such as 1/2 (root) or -1/2 (whitening).

        Raises
        ------
        ValueError
            If the damping is negative, or not positive with a negative exponent, or either is not finite.
        """
        if not math.isfinite(exponent):
            raise ValueError(f"exponent must be finite, got {exponent}")
        if not (0 <= damping < math.inf and (damping > 0 or exponent >= 0)):
            raise ValueError(
                f"damping must be finite and positive for the exponent {exponent}, got {damping}"
            )
        return self._like(
            _blockwise(
                self.blocks, lambda block, rows: block.function(rows, lambda v: (v + damping) ** exponent)
            )
        )

    def eigenvalues(self) -> Tensor:
        """Return all eigenvalues, (dim,), descending, float64."""
        return torch.cat([block.eigenvalues for block in self.blocks]).sort(descending=True).values

    def trace(self) -> float:
        """Return the trace."""
        return float(self.diagonal().double().sum())

    def frobenius_norm(self) -> float:
        """Return the Frobenius norm."""
        return float(self.eigenvalues().norm())

    def log_determinant(self, *, damping: float) -> float:
        """Return the log determinant of the matrix plus `damping` times the identity.

        Raises
        ------
        ValueError
            If `damping` is not positive and finite.
        """
        if not 0 < damping < math.inf:
            raise ValueError(f"damping must be finite and positive, got {damping}")
        return float((self.eigenvalues() + damping).log().sum())

    def diagonal(self) -> Tensor:
        """Return the diagonal, (dim,)."""
        found = torch.zeros(self.dim, dtype=self.dtype, device=self.device)
        for block in self.blocks:
            found[rows_at(block.places.values())] = block.diagonal
        return found


def kfac(
    objective: Objective,
    *,
    kind: Kind = "gauss-newton",
    sharing: Sharing = "expand",
    seed: _checks.Seed = 0,
    draws: int = 1,
    likelihood: Likelihood | None = None,
) -> KroneckerFactors:
    r"""Kronecker-factored approximate curvature.

    For a layer with inputs a and derivatives g by its outputs, the block of the matrix is the mean over samples of
    (a (x) g)(a (x) g)'. It is approximated by A (x) B, with A the mean of a a' and B that of g g', as if a and g were
    independent; blocks between layers are left out.

    Parameters
    ----------
    objective
        Loss of a model on data, whose parameters act in layers, on every sample apart.
    kind
        "gauss-newton": g of the roots of the curvature of the loss in the outputs, which for cross-entropy is the
        Fisher information exactly over the classes; "sampled": of targets drawn from the model's own distribution;
        "empirical": of the targets that there are. They approximate `operators.gauss_newton`, `fisher` and
        `empirical_fisher`.
    sharing
        Where a layer acts at several positions of a sample, as convolutions do and layers on tokens: "expand" takes
        positions for samples, A the mean over them and B the sum; "reduce" takes the mean of a and the sum of g over
        the positions first.
    seed, draws
        Of sampled targets: an integer, or a numpy generator; and how many for each sample.
    likelihood
        For sampled targets: see `operators.fisher`.

    Raises
    ------
    ValueError
        If a parameter acts elsewhere than in layers, or samples see each other; if one outside of linear layers and
        convolutions has more than 4096 numbers; if the loss is not convex in the outputs, or couples samples; `kind`,
        `sharing` or `likelihood` are unknown; derivatives are not finite, or the factors do not
        fit into memory.

    Notes
    -----
    The bias is the weight of an input that is one, in one block with the weights. Convolutions of several groups have a
    pair of factors for each. Other layers, such as normalisations, have their block as it is. Ignored samples do not
    count in A; sampled targets are drawn for them too, as they have their part in `operators.fisher`.

    Blocks of layers with one position for a sample are exact if all samples have the same a, as a single one has, or
    the same g, as in a deep linear network with squared errors (Bernacchia, Lengyel and Hennequin, 2018), or if a and g
    are independent. At several positions "expand" leaves out what they have to do with each other.

    References
    ----------
    Martens and Grosse (2015), Optimizing neural networks with Kronecker-factored approximate curvature; Grosse and
    Martens (2016), A Kronecker-factored approximate Fisher matrix for convolution layers; Eschenhagen, Immer, Turner,
    Schneider and Hennig (2023), Kronecker-factored approximate curvature for modern neural network architectures, for
    "expand" and "reduce".

    Examples
    --------
    Linear regression: G = 2 x'x / N (x) 1 is a Kronecker product.

    >>> from torch import nn
    >>> line = nn.Linear(2, 3, bias=False).double()
    >>> x = torch.tensor([[1.0, 2.0], [3.0, -1.0]]).double()
    >>> factors = kfac(Objective(line, (x, torch.zeros(2, 3).double()), nn.MSELoss()))
    >>> factors.blocks[0].inputs[0], factors.blocks[0].outputs[0].round(decimals=3)
    (tensor([[ 5.0000, -0.5000],
            [-0.5000,  2.5000]], dtype=torch.float64), tensor([[0.6670, 0.0000, 0.0000],
            [0.0000, 0.6670, 0.0000],
            [0.0000, 0.0000, 0.6670]], dtype=torch.float64))
    """
    require_objective("kfac", objective)
    with in_full_precision():
        root = _root_of(objective, kind, seed=seed, draws=draws, likelihood=likelihood)
        return _operator(objective, factored(objective, root, sharing), f"KFAC, {kind}, {sharing}")


def ekfac(
    objective: Objective,
    *,
    kind: Kind = "gauss-newton",
    sharing: Sharing = "expand",
    seed: _checks.Seed = 0,
    draws: int = 1,
    likelihood: Likelihood | None = None,
    factors: KroneckerFactors | None = None,
) -> KroneckerFactors:
    """Return `kfac` with the exact diagonal of the matrix in the eigenbasis of the factors, by one more pass.

    Of all matrices that are diagonal there it is the nearest to the block of the matrix, in the Frobenius norm: nearer
    than `kfac`, layer by layer, for kinds that draw nothing. Sampled targets are drawn anew for the second pass. Where
    eigenvalues of a factor coincide, the result depends on the choice of eigenvectors.

    Parameters
    ----------
    objective, kind, sharing, seed, draws, likelihood
        As of `kfac`.
    factors
        Whose eigenbasis, and whose blocks of layers without factors, are taken, as from `kfac` of the same objective,
        or of what it was a few steps ago; those of `kfac` here, by `sharing`, if None.

    Raises
    ------
    ValueError
        As `kfac`; or if the `factors` are of other parameters.

    References
    ----------
    George, Laurent, Bouthillier, Ballas and Vincent (2018), Fast approximate natural gradient descent in a
    Kronecker-factored eigenbasis.

    Examples
    --------
    >>> from torch import nn
    >>> from simulate.modules.diagonals import gauss_newton_diagonal
    >>> net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    >>> objective = Objective(net, (torch.eye(3).double(), torch.zeros(3, 2).double()), nn.MSELoss())
    >>> bool(abs(ekfac(objective).trace() - gauss_newton_diagonal(objective).sum()) < 1e-12)
    True
    """
    require_objective("ekfac", objective)
    with in_full_precision():
        root = _root_of(objective, kind, seed=seed, draws=draws, likelihood=likelihood)
        if factors is not None and dict(factors.places) != dict(objective.blocks()):
            raise ValueError("factors must have the parameters of the objective, got others")
        blocks = factored(objective, root, sharing) if factors is None else factors.blocks
        return _operator(objective, corrected(objective, root, blocks), f"EKFAC, {kind}, {sharing}")


def _operator(objective: Objective, blocks: list[FactorBlock], name: str) -> KroneckerFactors:
    found = tuple(blocks)
    return KroneckerFactors(
        product=_blockwise(found, lambda block, rows: block.product(rows)),
        dim=objective.dim,
        dtype=objective.dtype,
        device=objective.device,
        places=objective.blocks(),
        name=name,
        blocks=found,
    )


def _factors_of(block: FactorBlock) -> str:
    """Describe the factors of a block by their orders."""
    if not isinstance(block, KroneckerBlock):
        size = sum(at.stop - at.start for at in block.places.values())
        return f"dense {size} x {size}"
    groups, inside = block.inputs.shape[:2]
    several = f"{groups} groups of " * (groups > 1)
    return f"{several}A {inside} x {inside}, B {block.outputs.shape[1]} x {block.outputs.shape[1]}"


def _blockwise(
    blocks: tuple[FactorBlock, ...], of: Callable[[FactorBlock, Tensor], Tensor]
) -> Callable[[Tensor], Tensor]:
    def product(vectors: Tensor) -> Tensor:
        found = torch.empty_like(vectors)
        for block in blocks:
            places = list(block.places.values())
            products = of(block, torch.cat([vectors[:, at] for at in places], dim=1))
            for at, part in zip(
                places, products.split([at.stop - at.start for at in places], dim=1), strict=True
            ):
                found[:, at] = part
        return found

    return product


# --- vectors of each kind ------------------------------------------------------------------------------------------


def _root_of(
    objective: Objective,
    kind: Kind,
    *,
    seed: _checks.Seed,
    draws: int,
    likelihood: Likelihood | None,
) -> Root:
    """Return the roots of this kind, for `sample_parts.parts`.

    Raises
    ------
    ValueError
        If the kind is unknown, or sampled without a likelihood; from the root, if the loss is not convex in
        the outputs.
    """
    _checks.one_of("kind", kind, _KINDS)
    if kind == "gauss-newton":
        return Root(partial(_convex, 1.0 if isinstance(objective.criterion, _SATURATING) else 0.0))
    if kind == "empirical":
        return Root(_sample_gradients)
    rng = _checks.generator(seed)
    family, count = likelihood_of(objective, likelihood), _checks.natural("draws", draws)

    def sampled(_: Outer, part: slice, outputs: Tensor) -> tuple[Tensor, Tensor]:
        found = _sampled_slopes(outputs[part].detach(), count, family, rng)
        # the mean over the draws, not their sum
        return found, torch.full((found.shape[1], count), 1 / count, dtype=torch.float64, device=found.device)

    return Root(sampled, asks=False)


def _convex(floor: float, outer: Outer, part: slice, outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return roots of a convex curvature; tiny negative values from rounding keep their signs, and vanish in sums."""
    found, signs = roots(outer, part, outputs)
    sizes = found.reshape(*found.shape[:2], -1).square().sum(2).mT.double()
    negative, positive = (float(sizes[sign * signs > 0].sum()) for sign in (-1, 1))
    # a saturated softmax has a curvature far below the numbers of order one that it is a difference of
    rounding = _ROUNDINGS * torch.finfo(outputs.dtype).eps * signs.numel() * max(floor, float(sizes.max()))
    if negative > _NEGLIGIBLE * positive + rounding:
        raise ValueError(
            "loss must be convex in the outputs for factors of the Gauss-Newton matrix, got negative curvature;"
            " use kind='empirical'"
        )
    return found, signs


def _sample_gradients(outer: Outer, part: slice, outputs: Tensor) -> tuple[Tensor, Tensor]:
    slope = outer.slope[part]
    # an ignored sample has no slope; without weight it does not count in A
    some = slope.abs().amax(1, keepdim=True) > 0
    return slope.reshape(1, *outputs[part].shape).to(outputs.dtype), some.double()


def _sampled_slopes(outputs: Tensor, count: int, family: str, rng: np.random.Generator) -> Tensor:
    """Draw targets and return the slopes of minus the log likelihood in the outputs, (count, *outputs)."""
    if family == "gaussian":
        # the slope of |z - y|^2 / 2 at y = z + noise is minus the noise, which has the same law
        return torch.from_numpy(rng.standard_normal((count, *outputs.shape))).to(outputs)
    if family == "bernoulli":
        p = outputs.sigmoid()
        return p - (torch.from_numpy(rng.random((count, *p.shape))).to(p.device) < p.double()).to(p)
    p = outputs.softmax(1)
    share = torch.from_numpy(rng.random((count, len(p), 1, *p.shape[2:]))).to(p.device)
    # inverse of the cumulative distribution; the last sum is left out, so rounding adds no further class
    chosen = (p.double().cumsum(1)[:, :-1] <= share).sum(2, keepdim=True)
    return p - p.new_zeros(count, *p.shape).scatter_(2, chosen, 1.0)
