"""Whether outputs are piecewise linear in every parameter tensor alone, by the graph that autograd differentiates.

Between the sites (`simulate.modules.sites`) and the outputs lie nodes of the graph. Where each of them is linear but
for kinks in all that it differentiates together, so are the outputs in the nudges, and in a parameter that acts at one
site, whose layer is affine in it. Then the H-term has no block of its own for any parameter, and nothing has to be
multiplied to see it. A node that is not known says nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from simulate.modules import sites
from simulate.objectives import Objective
from simulate.objectives.derivatives import behind

__all__ = ["is_piecewise_linear"]

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
    return all(_linear_node(node) for node in behind([outputs]))


def _linear_node(node: Any) -> bool:
    name, inputs = node.name(), [before for before, _ in node.next_functions]
    if name in _FACTORS:
        return sum(inputs[i] is not None for i in _FACTORS[name]) <= 1
    if name == "AbsBackward0":
        return not node._saved_self.is_complex()  # a modulus is curved
    if name == "NativeBatchNormBackward0":
        return not node._saved_training and sum(each is not None for each in inputs[:2]) <= 1
    return name in _ALWAYS or name == _LEAF
