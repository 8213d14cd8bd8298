"""Keys by which the answers to questions about one objective hold for another, so that each is asked once.

Two objectives have the same key if their models and losses have the same classes, attributes, buffers and shapes, the
parameters have the same orders of magnitude, and the loss of a few samples is computed by the same calls of torch's
functions and the same graph. The calls tell a detached factor from a constant, where both leave the same graph.
Zero-initialised parameters therefore have another key than trained ones, and so has a model that takes another branch.
What cannot be compared has no key, and is asked about each time: hooks, closures, functions with a backward of their
own, parts that run again in the backward pass, and groups of processes.
"""

from __future__ import annotations

import enum
import math
import pickle
import types
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from simulate.objectives.batches import tensors
from simulate.objectives.ranks import checksum

_PLAIN = (str, int, float, complex, bytes, enum.Enum, type, type(None), torch.dtype, torch.device)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
_OWNERS = (types.ModuleType, type, type(None))
"""Types of `__self__` that leave a function comparable; any other method depends on its object."""

_OF_MODULES = frozenset(vars(nn.Module()))
_GLOBAL_HOOKS = [
    kind
    for name, kind in vars(nn.modules.module).items()
    if name.startswith("_global_") and isinstance(kind, dict)
]
"""Hooks of all modules: torch's public function for them is newer than the oldest supported torch."""

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

_MOST = 256
"""Most keys with answers that are kept."""

_MOST_BYTES = 1 << 16
"""Most bytes of an object that is compared by its pickle, since keys are kept."""

_OCTAVES = 4
"""Width of an order of magnitude of parameters, in powers of two."""


class _IncomparableError(Exception):
    """Raised for what has no key."""


class TorchCalls(TorchFunctionMode):
    """Record the functions of torch that are called in a context, and whether they record derivatives.

    Examples
    --------
    >>> with TorchCalls() as calls:
    ...     _ = torch.ones(1).detach()
    >>> [function.__name__ for function, _ in calls.made]
    ['ones', 'detach']
    """

    def __init__(self) -> None:
        super().__init__()
        self.made = list[tuple[Any, bool]]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.made.append((func, torch.is_grad_enabled()))
        return func(*args, **(kwargs or {}))


def hooked(part: nn.Module) -> bool:
    """Return whether a module has hooks, its own or global ones."""
    return any(getattr(part, hooks) for hooks in _HOOKS) or any(_GLOBAL_HOOKS)


def fingerprint(model: Any, loss: Any, end: Tensor, leaves: Sequence[Tensor], batch: Any) -> Hashable | None:
    """Return the key of a model with its loss; None if there is none.

    Parameters
    ----------
    model, loss
        Modules or functions.
    end
        The loss of a few samples, with its graph.
    leaves
        Parameters that the graph may lead to.
    batch
        Inputs and targets of these samples.

    Examples
    --------
    >>> def key(*layers, loss=nn.MSELoss()):
    ...     net, x = nn.Sequential(*layers), torch.ones(2, 3)
    ...     _ = [nn.init.ones_(p) for p in net.parameters()]
    ...     return fingerprint(net, loss, loss(net(x), x), tuple(net.parameters()), x)
    >>> key(nn.Linear(3, 3)) == key(nn.Linear(3, 3)), key(nn.Linear(3, 3)) == key(nn.Linear(3, 3), nn.Tanh())
    (True, False)
    """
    seen: dict[int, tuple[int, Any]] = {}
    shapes = tuple((t.shape, t.dtype) for t in tensors(batch))
    with suppress(_IncomparableError):
        sizes = torch.stack([leaf.detach().norm() for leaf in leaves]).tolist()
        magnitudes = tuple(math.frexp(size)[1] // _OCTAVES if size else None for size in sizes)
        return _frozen(model, seen), _frozen(loss, seen), _graph(end, leaves), magnitudes, shapes
    return None


def remembered(known: dict[Any, dict[str, Any]], key: Hashable) -> dict[str, Any]:
    """Return the answers with this key, at first none."""
    if key not in known and len(known) >= _MOST:
        known.clear()
    return known.setdefault(key, {})


def _frozen(value: Any, seen: dict[int, tuple[int, Any]]) -> Hashable:
    """Return something to compare a value by; the same object seen again is a number."""
    if isinstance(value, _PLAIN):
        return type(value), value
    if id(value) in seen:
        return seen[id(value)][0]
    seen[id(value)] = len(seen), value  # held, or another object could get its address
    if isinstance(value, Tensor):
        if value.layout != torch.strided or value.is_meta:
            raise _IncomparableError
        return value.shape, value.dtype, value.device, checksum(value)
    if isinstance(value, nn.Module):
        return _frozen_module(value, seen)
    if isinstance(value, Mapping):
        return type(value), tuple((_frozen(name, seen), _frozen(each, seen)) for name, each in value.items())
    if isinstance(value, tuple | list):
        return type(value), tuple(_frozen(each, seen) for each in value)
    if getattr(value, "__closure__", None):
        raise _IncomparableError
    if isinstance(value, _FUNCTIONS) and isinstance(getattr(value, "__self__", None), _OWNERS):
        return value
    with suppress(Exception):  # objects may refuse in any way
        if len(held := pickle.dumps(value)) <= _MOST_BYTES:  # a method, for one, holds its whole model
            return type(value), held
    raise _IncomparableError


def _frozen_module(part: nn.Module, seen: dict[int, tuple[int, Any]]) -> Hashable:
    if hooked(part):
        raise _IncomparableError
    own = tuple((name, _frozen(v, seen)) for name, v in vars(part).items() if name not in _OF_MODULES)
    # of the values of parameters only the magnitude counts
    held = tuple(
        (name, p is None or (p.shape, p.dtype, p.requires_grad)) for name, p in part._parameters.items()
    )
    buffers = tuple((name, _frozen(b, seen)) for name, b in part._buffers.items())
    inside = tuple((name, _frozen(module, seen)) for name, module in part._modules.items())
    return type(part), type(part).forward, own, held, buffers, inside


def _graph(end: Tensor, leaves: Sequence[Tensor]) -> Hashable:
    """Return the nodes of the graph of a tensor, each with its shapes and with the places of those before it."""
    places = {id(leaf): i for i, leaf in enumerate(leaves)}
    nodes: list[Any] = [torch.autograd.graph.get_gradient_edge(end).node]
    numbers, found = {nodes[0]: 0}, list[Any]()
    for node in nodes:
        variable = getattr(node, "variable", None)
        foreign = variable is not None and id(variable) not in places
        if foreign or isinstance(node, torch.autograd.function.BackwardCFunction):
            raise _IncomparableError
        for before, _ in node.next_functions:
            if before is not None and before not in numbers:
                numbers[before] = len(nodes)
                nodes.append(before)
        edges = tuple((numbers.get(before), slot) for before, slot in node.next_functions)
        kinds = tuple((tuple(m.shape), m.dtype) for m in node._input_metadata)
        found.append((node.name(), places.get(id(variable)), edges, kinds))
    return tuple(found)
