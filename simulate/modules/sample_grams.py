r"""Exact traces of the Gauss-Newton matrix and the Hessian, from the matrices of single samples.

G_i = J_i' A_i J_i has the rank of A_i, the curvature of the loss in the few outputs of sample i. With A_i = S_i' D_i
S_i, D_i of signs, its non-zero eigenvalues are those of D_i K_i, where K_i holds the inner products of the rows of
S_i J_i. These are derivatives of the outputs by the parameters, and the parameters act at sites
(`simulate.modules.sites`): so outputs are differentiated by the nudges alone, one number per unit and sample. A layer
of weights then multiplies inner products of derivatives by inner products of its inputs, and no gradient by its weights
is formed.

| symbol | shape | meaning |
|---|---|---|
| A_i | (m, m) | second derivative of the loss in the m outputs of a sample, divided by the `share` of a sample |
| J_i | (m, dim) | derivative of the outputs by the parameters |
| G_i | (dim, dim) | J_i' A_i J_i; share * sum G_i = G, so G is the mean of the G_i for a plain mean over samples |

A sample is a row of the targets; its outputs are all numbers of that row, of all classes and positions. An ignored
sample has G_i = 0. If the loss is a mean over positions, or weighs classes, `share` is of one position or unit of
weight. G_i refers to the loss of all data. The matrix of a batch is the mean over its samples only if
`objectives.Objective.separable`; otherwise, and if samples see each other, G_i is the part of G that belongs to the
outputs of sample i, and is not the matrix of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from simulate._checks import Floats
from simulate.lanczos.rows import row_lengths
from simulate.modules import sites
from simulate.modules.sample_parts import finite_derivatives, parts
from simulate.objectives import Objective
from simulate.objectives.derivatives import graph_nodes
from simulate.operators import h_term


class SampleGrams(NamedTuple):
    """Statistics of the Gauss-Newton matrices G_i, in the order of the data; arrays (N,), float64.

    Attributes
    ----------
    traces
        Trace.
    largest
        Largest eigenvalue.
    squares
        Sum of the squares of the eigenvalues.
    """

    traces: Floats
    largest: Floats
    squares: Floats


def trace_gauss_newton(objective: Objective) -> float:
    """Return the exact trace of the Gauss-Newton matrix.

    For m outputs of a sample it takes one forward pass and m backward passes without gradients by the weights. If
    parameters act elsewhere than in affine layers, or samples of a batch see each other, it takes m passes for every
    single sample.

    Raises
    ------
    ValueError
        If the loss couples the samples, the outputs are not one row for each sample, derivatives are not finite, or
        those of one sample do not fit into memory.

    Examples
    --------
    >>> from torch import nn
    >>> x, weight = torch.tensor([[3.0, 4.0], [1.0, 0.0]]).double(), torch.zeros(1, 2).double()
    >>> line = Objective(lambda p, x: x @ p[0].T, (x, x[:, :1]), nn.MSELoss(), parameters=[weight])
    >>> round(trace_gauss_newton(line), 9)
    26.0
    """
    total = 0.0
    with objective.ranks.together("samples"), objective.measured():
        for part in parts(objective, lengths=True):
            if part.pairs:
                squares = torch.stack([_squares(*pair).double() for pair in part.pairs]).sum(0)
                total += float(finite_derivatives((squares * part.signs).sum(1)).sum())
    return objective.share * objective.ranks.sum(total)


def trace_hessian(objective: Objective) -> float:
    """Return the exact trace of the Hessian, if it equals the trace of the Gauss-Newton matrix.

    They are equal if the outputs are piecewise linear in every single parameter tensor: then no tensor has a block of
    its own in the H-term. This is certified on all data, by the nodes of the graph in one forward pass
    (`is_piecewise_linear`). If they do not decide it, one product with the H-term per tensor does: the block times a
    random vector vanishes, which a non-zero block does with probability 0. (A few samples would not do: a ReLU that is
    dead at these may hide anything.)

    Raises
    ------
    ValueError
        If some block does not vanish, as with smooth activations, or a layer that is used twice; and as
        `trace_gauss_newton`.

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
    """Yield the names of the parameter tensors with a block of their own in the H-term, on all data.

    There are none if the graph says so; otherwise each tensor takes one product with a random vector, see
    `trace_hessian`.

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


def _squares(left: Tensor, right: Tensor) -> Tensor:
    if left is right:
        return torch.linalg.vector_norm(left, dim=2, dtype=torch.float64).square()
    return torch.linalg.vecdot(left, right)


# --- piecewise linear ---------------------------------------------------------------------------------------------
# Between the sites (`simulate.modules.sites`) and the outputs lie nodes of the graph. If each node is piecewise linear
# in all its differentiated inputs together, the outputs are piecewise linear in the nudges, and in every parameter that
# acts at one site, since its layer is affine in it. Then the H-term has no block of its own for any parameter, and no
# product is needed to see it. An unknown node decides nothing.

_LINEAR_NODES = frozenset(
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
"""Nodes that are piecewise linear in all inputs, by their names in torch 2; some have a variant with dimensions."""

_PRODUCT_NODES: Mapping[str, Sequence[int]] = {
    "AddmmBackward0": (1, 2),
    "MmBackward0": (0, 1),
    "BmmBackward0": (0, 1),
    "MulBackward0": (0, 1),
    "ConvolutionBackward0": (0, 1),
}
"""Product nodes, and which inputs they multiply: linear if at most one of these is differentiated."""

_LEAF = "torch::autograd::AccumulateGrad"


def is_piecewise_linear(objective: Objective) -> bool:
    """Whether the graph shows that the outputs are piecewise linear on all data; False decides nothing.

    It takes one forward pass.

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
    with objective.measured():
        for batch in objective.batches():
            passed = sites.visited_or_none(objective, batch)
            if passed is None:
                return False
            outputs, found = passed
            alone = all(count == 1 for count in sites.uses(found).values())
            if not (alone and all(map(_linear_node, graph_nodes([outputs])))):
                return False
    return True


def _linear_node(node: Any) -> bool:
    name, inputs = node.name(), [before for before, _ in node.next_functions]
    if name in _PRODUCT_NODES:
        return sum(inputs[i] is not None for i in _PRODUCT_NODES[name]) <= 1
    if name == "AbsBackward0":
        return not node._saved_self.is_complex()  # a modulus is curved
    if name == "NativeBatchNormBackward0":
        return not node._saved_training and sum(each is not None for each in inputs[:2]) <= 1
    return name in _LINEAR_NODES or name == _LEAF
