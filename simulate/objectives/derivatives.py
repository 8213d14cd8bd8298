"""Derivatives by reverse mode that the curvature of any model is made of: of one graph, again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["alike", "behind", "bytes_held", "directional", "normal", "second_derivative", "slopes"]

Tensors = tuple[Tensor, ...]

_ROUNDINGS = 1e4
"""Tensors that differ by more than so many roundings of the largest entry differ."""

_PERIOD = 10007
"""Of numbers drawn at random, which cost more than all that is done with them: a prime, so that no two rows agree."""


def slopes(
    ends: Tensor | Sequence[Tensor],
    by: Tensor | Sequence[Tensor],
    weights: Tensor | Sequence[Tensor] | None = None,
    *,
    again: bool = False,
    several: bool = False,
) -> Tensors:
    """Derivatives of <weights, ends>, zeros where there are none.

    Parameters
    ----------
    again
        Whether they are to be differentiated in turn.
    several
        Whether the weights are stacked along a first axis, and with them the derivatives.

    Examples
    --------
    >>> x, y = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)
    >>> slopes(x**2, [x, y], torch.tensor([1.0, 3.0]))
    (tensor([2., 6.]), tensor([0.]))
    >>> slopes([x**2, torch.ones(3)], [x], [torch.tensor([1.0, 3.0]), torch.ones(3)])
    (tensor([2., 6.]),)
    """
    ends, by = _several(ends), _several(by)
    moving = [i for i, end in enumerate(ends) if end.requires_grad]
    stack = [len(_several(weights)[0])] if several and weights is not None else []
    if not moving:  # constants
        return tuple(t.new_zeros((*stack, *t.shape)) for t in by)
    weights = None if weights is None else [_several(weights)[i] for i in moving]
    found: Sequence[Tensor | None] = torch.autograd.grad(
        [ends[i] for i in moving],
        by,
        weights,
        retain_graph=True,
        create_graph=again,
        allow_unused=True,
        is_grads_batched=several,
    )
    # not `materialize_grads`, whose zeros ask for gradients of their own in older torch
    filled = [t.new_zeros((*stack, *t.shape)) if f is None else f for f, t in zip(found, by, strict=True)]
    dense = tuple(slope.to_dense() if slope.is_sparse else slope for slope in filled)
    # functions with a backward of their own may give more than they are asked for
    return dense if again else tuple(slope.detach() for slope in dense)


def directional(slope: Tensor, free: Tensor, tangent: Tensor) -> Tensor:
    """Derivative of a slope along a tangent, its own transpose; zero for a loss of straight pieces."""
    return slopes(slope, free, tangent)[0]


def second_derivative(scalar: Tensor, by: Tensors) -> Callable[[Sequence[Tensor]], Tensors]:
    """Its product with tensors like those that it is taken by.

    Examples
    --------
    >>> x = torch.ones(2, requires_grad=True)
    >>> second_derivative((x**3).sum(), (x,))([torch.tensor([1.0, 2.0])])
    (tensor([ 6., 12.]),)
    """
    gradient = slopes(scalar, by, again=True)
    return lambda vector: slopes(gradient, by, vector)


def bytes_held(build: Callable[[], Any], *, also: Iterable[Tensor] = ()) -> int:
    """Bytes that a graph holds on to for its derivatives, those of other tensors included.

    0 for a graph that does not tell, as that of torch.func.
    """
    storages: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = (tensor._values() if tensor.is_sparse else tensor).untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    for tensor in also:
        pack(tensor)
    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            kept = build()
        del kept
    except RuntimeError as error:
        if "saved tensor hooks" not in str(error):
            raise
        return 0
    return sum(storages.values())


def behind(ends: Iterable[Tensor | None]) -> set[Any]:
    """All nodes of the graph that some tensors come from.

    Examples
    --------
    >>> x = torch.ones(2, requires_grad=True)
    >>> sorted(node.name() for node in behind([x.sin().sum(), None]))
    ['SinBackward0', 'SumBackward0', 'torch::autograd::AccumulateGrad']
    """
    found: set[Any] = set()
    left = [end.grad_fn or _accumulation(end) for end in ends if end is not None and end.requires_grad]
    while left:
        node = left.pop()
        if node is not None and node not in found:
            found.add(node)
            left.extend(before for before, _ in node.next_functions)
    return found


def _accumulation(leaf: Tensor) -> Any:
    """The node of a leaf."""
    viewed: Any = leaf.view_as(leaf).grad_fn
    return viewed.next_functions[0][0]


def alike(found: Tensor, expected: Tensor) -> bool:
    """Whether two tensors differ by rounding alone.

    Examples
    --------
    >>> alike(torch.tensor([1.0, 1e-9]), torch.tensor([1.0, 0.0]))
    True
    """
    if found.shape != expected.shape:
        return False
    found, expected = found.detach(), expected.detach()
    least = _ROUNDINGS * torch.finfo(expected.dtype).eps * float(expected.abs().max())
    return float((found - expected).abs().max()) <= least


def normal(like: Tensor, *, seed: int = 0) -> Tensor:
    """Standard normal numbers, the same each time; again and again the same ones in a large tensor.

    Examples
    --------
    >>> found = normal(torch.empty(100, 300))
    >>> int(torch.linalg.matrix_rank(found))
    100
    """
    count, generator = like.numel(), torch.Generator().manual_seed(seed)
    own = torch.randn(min(count, _PERIOD), generator=generator, dtype=like.dtype).to(like.device)
    return own.repeat(-(-count // _PERIOD))[:count].view(like.shape)


def _several(tensors: Tensor | Sequence[Tensor]) -> Sequence[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else tensors
