r"""Exact traces of the curvature, and what the Gauss-Newton matrix of every single sample is like.

G_i = J_i' A_i J_i has the rank of A_i, the curvature of the loss in the few outputs of sample i. With A_i = S_i' D_i
S_i, D_i of signs, its non-zero eigenvalues are those of D_i K_i, where K_i holds the inner products of the rows of
S_i J_i. These are derivatives of the outputs by the parameters, and the parameters act at sites
(`simulate.modules.sites`): so outputs are differentiated by the nudges alone, one number for a unit and sample. A
layer of weights then multiplies inner products of derivatives by inner products of its inputs, and no gradient by its
weights is formed.

| symbol | shape | meaning |
|---|---|---|
| A_i | (m, m) | second derivative of the loss in the m outputs of a sample, divided by the `share` of a sample |
| J_i | (m, dim) | derivative of the outputs by the parameters |
| G_i | (dim, dim) | J_i' A_i J_i; share * sum G_i = G, so G is the mean of the G_i for a plain mean over samples |

A sample is a row of the targets; its outputs are all numbers of that row, of all classes and positions. An ignored
sample has G_i = 0; a mean that is over positions, or weighs classes, has its share of one position or unit of weight.
What a sample adds is meant in the loss of all data. That of a batch is the mean of its samples' only where
`objectives.Objective.separable`; elsewhere, and where samples see each other, G_i is the part that belongs to the
outputs of sample i, and no matrix of a batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate.lanczos.rows import row_lengths
from simulate.modules import sites
from simulate.modules.sample_parts import Pair, finite_derivatives, parts
from simulate.objectives import Objective
from simulate.objectives.derivatives import graph_nodes
from simulate.operators import h_term

Score = Callable[[Sequence[Pair], Tensor], Tensor]
"""Some numbers (n, c) of n samples."""


class SampleGrams(NamedTuple):
    """Of the Gauss-Newton matrices G_i of the samples, in the order of the data; arrays (N,), float64.

    Attributes
    ----------
    traces
        Trace.
    largest
        Largest eigenvalue.
    squares
        Sum of the squares of the eigenvalues.
    """

    traces: NDArray[np.float64]
    largest: NDArray[np.float64]
    squares: NDArray[np.float64]


def sample_grams(objective: Objective) -> SampleGrams:
    """Trace, largest eigenvalue and squared Frobenius norm of the Gauss-Newton matrix of every sample, exact.

    For m outputs of a sample this takes one forward pass, and m backward passes without gradients by the weights.
    Where the parameters act elsewhere than in affine layers, or the samples of a batch see each other, it takes m
    passes for every single sample.

    Parameters
    ----------
    objective
        Loss of a model on data, a sum (or mean) of what the samples add each for itself.

    Raises
    ------
    ValueError
        If the loss couples the samples, the outputs are not one row for each sample, derivatives are not finite, or
        those of one sample do not fit into memory.

    Examples
    --------
    Linear regression, G_i = 2 x x':

    >>> from torch import nn
    >>> x, weight = torch.tensor([[3.0, 4.0], [1.0, 0.0]]).double(), torch.zeros(1, 2).double()
    >>> line = Objective(lambda p, x: x @ p[0].T, (x, x[:, :1]), nn.MSELoss(), parameters=[weight])
    >>> sample_grams(line).largest.round(9)
    array([50.,  2.])
    """
    found = _scores(objective, lambda pairs, signs: _spectrum(pairs, signs, objective.dim), 3)
    return SampleGrams(*found.T)


def trace_gauss_newton(objective: Objective) -> float:
    """Trace of the Gauss-Newton matrix, exact; at the cost of `sample_grams` without inner products.

    Raises
    ------
    ValueError
        As `sample_grams`.

    Examples
    --------
    >>> from torch import nn
    >>> x, weight = torch.tensor([[3.0, 4.0], [1.0, 0.0]]).double(), torch.zeros(1, 2).double()
    >>> line = Objective(lambda p, x: x @ p[0].T, (x, x[:, :1]), nn.MSELoss(), parameters=[weight])
    >>> round(trace_gauss_newton(line), 9)
    26.0
    """
    return objective.share * float(_scores(objective, _trace, 1, lengths=True).sum())


def trace_hessian(objective: Objective) -> float:
    """Trace of the Hessian, exact, where it is that of the Gauss-Newton matrix.

    That is so if the outputs are linear in every parameter tensor alone but for kinks: then no tensor has a block of
    its own in the H-term. Certified on all data: by the nodes of the graph, in one forward pass
    (`is_piecewise_linear`); where they do not tell, at one product with the H-term for every tensor: the block
    times a random vector vanishes, which a block that is not zero does with probability nought. (A few samples would
    not do: behind a ReLU that is dead at these there may be anything.)

    Raises
    ------
    ValueError
        If some block does not vanish, as with smooth activations, or a layer that is used twice; and as
        `sample_grams`.

    Examples
    --------
    >>> from torch import nn
    >>> x, weight = torch.tensor([[3.0, 4.0], [1.0, 0.0]]).double(), torch.zeros(1, 2).double()
    >>> line = Objective(lambda p, x: x @ p[0].T, (x, x[:, :1]), nn.MSELoss(), parameters=[weight])
    >>> round(trace_hessian(line), 9)
    26.0
    """
    for name in curved_tensors(objective):
        raise ValueError(
            "objective must have outputs that are piecewise linear in every parameter tensor for an exact trace"
            f" of the Hessian, got curvature in {name!r}; use an estimate such as spectra.trace"
        )
    return trace_gauss_newton(objective)


def curved_tensors(objective: Objective) -> Iterator[str]:
    """Names of the parameter tensors with a block of their own in the H-term.

    On all data: none where the graph tells so; else the block times a random vector, at one product for each tensor,
    see `trace_hessian`.

    Examples
    --------
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    >>> list(curved_tensors(Objective(net, (torch.ones(4, 2), torch.ones(4, 1)), nn.MSELoss())))
    ['0.weight', '0.bias']
    """
    if is_piecewise_linear(objective):
        return
    matrix, places = h_term(objective), objective.blocks()
    generator = torch.Generator().manual_seed(0)
    for name, block in places.items():
        if block.stop == block.start:  # a layer of width 0
            continue
        vector = torch.zeros(objective.dim, dtype=objective.dtype)
        vector[block] = torch.randn(vector[block].shape, generator=generator, dtype=objective.dtype)
        product = matrix @ vector.to(objective.device)
        # the norm of numbers of 1e-23 in single precision is zero
        own, all_of_it = (row_lengths(part[None].double()) for part in (product[block], product))
        if float(own) > torch.finfo(objective.dtype).eps * float(all_of_it):
            yield name


def _scores(objective: Objective, score: Score, columns: int, *, lengths: bool = False) -> NDArray[Any]:
    """Numbers (N, columns) of the samples; `lengths` if nothing but lengths of gradients is asked for."""
    found = [np.zeros((0, columns))]
    with objective.ranks.together("samples"), objective.measured(), torch.enable_grad():
        for part in parts(objective, lengths=lengths):
            none = not part.pairs
            scores = torch.zeros(len(part.signs), columns) if none else score(part.pairs, part.signs)
            found.append(scores.detach().cpu().double().numpy())
    return objective.ranks.rows(np.concatenate(found))


def _trace(pairs: Sequence[Pair], signs: Tensor) -> Tensor:
    squares = torch.stack([_squares(*pair).double() for pair in pairs]).sum(0)
    return finite_derivatives((squares * signs).sum(1, keepdim=True))


def _squares(left: Tensor, right: Tensor) -> Tensor:
    if left is right:
        return torch.linalg.vector_norm(left, dim=2, dtype=torch.float64).square()
    return torch.linalg.vecdot(left, right)


def _spectrum(pairs: Sequence[Pair], signs: Tensor, dim: int) -> Tensor:
    """Trace, largest eigenvalue and sum of squares of DK, the gram K of the pairs: (n, 3)."""
    gram = finite_derivatives(torch.stack([(left @ right.mT).double() for left, right in pairs]).sum(0))
    signed = signs[:, :, None] * gram
    traces = signed.diagonal(dim1=1, dim2=2).sum(1)
    squares = (signed * signed.mT).sum((1, 2))
    return torch.stack([traces, _largest(gram, signs, dim), squares], 1)


def _largest(gram: Tensor, signs: Tensor, dim: int) -> Tensor:
    """Of a matrix (dim, dim) whose non-zero eigenvalues are those of DK."""
    if bool((signs < 0).any()):
        values, vectors = torch.linalg.eigh(gram)
        root = vectors * values.clamp(min=0).sqrt()[:, None]  # K = R R', and DK is similar to R'DR
        gram = root.mT @ (signs[:, :, None] * root)
    values = torch.linalg.eigvalsh(gram)
    order = values.abs().argsort(1, descending=True)[:, :dim]  # no more than it has
    largest = values.gather(1, order).amax(1)
    return largest.clamp(min=0) if dim > gram.shape[1] else largest


# --- linear but for kinks -----------------------------------------------------------------------------------------
# Between the sites (`simulate.modules.sites`) and the outputs lie nodes of the graph. Where each of them is linear but
# for kinks in all that it differentiates together, so are the outputs in the nudges, and in a parameter that acts at
# one site, whose layer is affine in it. Then the H-term has no block of its own for any parameter, and nothing has to
# be multiplied to see it. A node that is not known says nothing.

_ALWAYS = frozenset(
    f"{name}Backward{kind}"
    for kind in (0, 1)
    for name in (
        "Add",
        "Sub",
        "Neg",
        "Sum",
        "Mean",
        "Cat",
        "Stack",
        "View",
        "UnsafeView",
        "ReshapeAlias",
        "AsStrided",
        "Clone",
        "Expand",
        "Permute",
        "Transpose",
        "T",
        "Squeeze",
        "Unsqueeze",
        "Select",
        "Slice",
        "Split",
        "Unbind",
        "Relu",
        "LeakyRelu",
        "Hardtanh",
        "Threshold",
        "ConstantPadNd",
        "AvgPool2D",
        "AdaptiveAvgPool2D",
        "MaxPool2DWithIndices",
    )
)
"""Linear but for kinks in all that goes in, by the names of torch 2; some have a second kind, with dimensions."""

_FACTORS: Mapping[str, Sequence[int]] = {
    "AddmmBackward0": (1, 2),
    "MmBackward0": (0, 1),
    "BmmBackward0": (0, 1),
    "MulBackward0": (0, 1),
    "ConvolutionBackward0": (0, 1),
}
"""Products: linear where at most one of these of their inputs is differentiated."""

_LEAF = "torch::autograd::AccumulateGrad"


def is_piecewise_linear(objective: Objective) -> bool:
    """Whether the graph tells so of all data, in one forward pass; if not, it may be so all the same.

    Examples
    --------
    >>> from torch import nn
    >>> data = torch.ones(4, 2), torch.ones(4, 1)
    >>> for kink in (nn.ReLU(), nn.Tanh()):
    ...     net = nn.Sequential(nn.Linear(2, 3), kink, nn.Linear(3, 1))
    ...     print(is_piecewise_linear(Objective(net, data, nn.MSELoss())))
    True
    False
    """
    if objective.ranks.several or not sites.covers(objective):
        return False
    with objective.measured(), torch.enable_grad():
        leaves = objective.leaves()
        for batch in objective.batches():
            try:
                outputs, found = sites.visited(objective, leaves, batch)
            except sites.ElsewhereError:
                return False
            uses = Counter(place for site in found for place in site.places.values())
            if any(count > 1 for count in uses.values()) or not _linear(outputs):
                return False
    return True


def _linear(outputs: Tensor) -> bool:
    return all(_linear_node(node) for node in graph_nodes([outputs]))


def _linear_node(node: Any) -> bool:
    name, inputs = node.name(), [before for before, _ in node.next_functions]
    if name in _FACTORS:
        return sum(inputs[i] is not None for i in _FACTORS[name]) <= 1
    if name == "AbsBackward0":
        return not node._saved_self.is_complex()  # a modulus is curved
    if name == "NativeBatchNormBackward0":
        return not node._saved_training and sum(each is not None for each in inputs[:2]) <= 1
    return name in _ALWAYS or name == _LEAF
