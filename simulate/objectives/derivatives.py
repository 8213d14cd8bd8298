"""Derivatives of any model: repeated reverse mode of one graph, or a recorded linear program from forward mode.

Forward mode carries changes of the parameters (tangents) through a computation along with its values. Its operations on
the changes are linear, and the same for all changes. They are recorded as they run, with the values that they use as
constants, and operations that do not lead to the results are dropped. Running the record again is a product with the
derivative that computes no values anew. For a gradient, this is a product with the second derivative.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

Tensors = tuple[Tensor, ...]

_ROUNDINGS = 1e4
"""Largest difference, in roundings of the largest entry, of tensors that count as equal."""

_PERIOD = 10007
"""Period of the random numbers, whose draw would cost more than their use: a prime, so that no two rows agree."""


def slopes(
    ends: Tensor | Sequence[Tensor],
    by: Tensor | Sequence[Tensor],
    weights: Tensor | Sequence[Tensor] | None = None,
    *,
    again: bool = False,
    several: bool = False,
) -> Tensors:
    """Return the derivatives of <weights, ends> by each tensor of `by`, zeros if there is none.

    Parameters
    ----------
    again
        Whether the derivatives are to be differentiated again.
    several
        Whether several weights are stacked along a first axis; the derivatives then are too.

    Examples
    --------
    >>> x, y = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)
    >>> slopes(x**2, [x, y], torch.tensor([1.0, 3.0]))
    (tensor([2., 6.]), tensor([0.]))
    >>> slopes([x**2, torch.ones(3)], [x], [torch.tensor([1.0, 3.0]), torch.ones(3)])
    (tensor([2., 6.]),)
    """
    ends, by = _as_sequence(ends), _as_sequence(by)
    moving = [i for i, end in enumerate(ends) if end.requires_grad]
    stack = [len(_as_sequence(weights)[0])] if several and weights is not None else []
    if not moving:  # constants
        return tuple(t.new_zeros((*stack, *t.shape)) for t in by)
    weights = None if weights is None else [_as_sequence(weights)[i] for i in moving]
    found: Sequence[Tensor | None] = torch.autograd.grad(
        [ends[i] for i in moving],
        by,
        weights,
        # callers differentiate the same graph several times
        retain_graph=True,
        create_graph=again,
        allow_unused=True,
        is_grads_batched=several,
    )
    # not `materialize_grads`, whose zeros require gradients in older torch
    filled = [t.new_zeros((*stack, *t.shape)) if f is None else f for f, t in zip(found, by, strict=True)]
    dense = tuple(slope.to_dense() if slope.is_sparse else slope for slope in filled)
    # user-defined backward functions may return derivatives with a graph that was not requested
    return dense if again else tuple(slope.detach() for slope in dense)


def directional(slope: Tensor, free: Tensor, tangent: Tensor) -> Tensor:
    """Return the product of a symmetric derivative of `slope` with a tangent; zero for a piecewise linear loss."""
    return slopes(slope, free, tangent)[0]


def second_derivative(scalar: Tensor, by: Tensors) -> Callable[[Sequence[Tensor]], Tensors]:
    """Return the product with the second derivative of a scalar, a function of tensors shaped like `by`.

    Examples
    --------
    >>> x = torch.ones(2, requires_grad=True)
    >>> second_derivative((x**3).sum(), (x,))([torch.tensor([1.0, 2.0])])
    (tensor([ 6., 12.]),)
    """
    gradient = slopes(scalar, by, again=True)
    return lambda vector: slopes(gradient, by, vector)


def bytes_held(
    build: Callable[[], Any], *, also: Iterable[Tensor] = (), without: Iterable[Tensor] = ()
) -> int:
    """Return the bytes that a graph keeps for its backward pass, those of the tensors `also` included.

    0 for a graph that does not allow to ask, such as one of torch.func.
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
    for tensor in without:
        storages.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(storages.values())


def graph_nodes(ends: Iterable[Tensor | None]) -> set[Any]:
    """Return all nodes of the autograd graph of some tensors.

    Examples
    --------
    >>> x = torch.ones(2, requires_grad=True)
    >>> sorted(node.name() for node in graph_nodes([x.sin().sum(), None]))
    ['SinBackward0', 'SumBackward0', 'torch::autograd::AccumulateGrad']
    """
    found: set[Any] = set()
    moving = (end for end in ends if end is not None and end.requires_grad)
    # not `grad_fn`, which a leaf does not have
    left: list[Any] = [torch.autograd.graph.get_gradient_edge(end).node for end in moving]
    while left:
        node = left.pop()
        if node is not None and node not in found:
            found.add(node)
            left.extend(before for before, _ in node.next_functions)
    return found


def in_graph(ends: Iterable[Tensor | None], tensors: Iterable[Tensor]) -> list[bool]:
    """Return whether each of some tensors is in the graph of some results."""
    nodes = graph_nodes(ends)
    leaves = {id(node.variable) for node in nodes if hasattr(node, "variable")}
    return [id(tensor) in leaves or tensor.grad_fn in nodes for tensor in tensors]


def alike(found: Tensor, expected: Tensor) -> bool:
    """Return whether two tensors differ by rounding only.

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
    """Return standard normal numbers from a fixed seed, repeated with period 10,007 in a large tensor.

    Examples
    --------
    >>> found = normal(torch.empty(100, 300))
    >>> int(torch.linalg.matrix_rank(found))
    100
    """
    count, generator = like.numel(), torch.Generator().manual_seed(seed)
    own = torch.randn(min(count, _PERIOD), generator=generator, dtype=like.dtype).to(like.device)
    return own.repeat(-(-count // _PERIOD))[:count].view(like.shape)


def _as_sequence(tensors: Tensor | Sequence[Tensor]) -> Sequence[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else tensors


# --- forward mode, recorded once as a list of operations and run again for every vector ------------------------

Differentiated = Callable[[Tensors], Sequence[Tensor | None]]


class UnrecordedError(Exception):
    """Operations that cannot be recorded: they read numbers from changes, or write changes into values."""


_SHAPE_ONLY = {torch.ops.aten.is_same_size.default, torch.ops.aten._has_same_storage_numel.default}
"""Operations whose results do not depend on the numbers in a tensor."""

_RUN_AGAIN = "parts that run again in the backward pass run without changes"

_SMALL_CPU, _SMALL_GPU = 1 << 14, 1 << 23
"""Size of the largest constant up to which several changes at once are faster than one after the other, as measured.

On the CPU, and on a GPU (an H200: 3 to 9 times as fast for twenty changes).
"""


class _Slot(NamedTuple):
    """Placeholder for the change at a place of the list of changes."""

    place: int


@dataclass(frozen=True, kw_only=True)
class _Step:
    """One operation: its arguments, with slots for changes, places of its results, and places that may be freed."""

    function: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    results: tuple[int, ...]
    done: tuple[int, ...]

    def run(self, places: list[Any]) -> None:
        options = {name: _fill_slots(value, places) for name, value in self.options.items()}
        found = self.function(*[_fill_slots(value, places) for value in self.arguments], **options)
        for place, result in zip(self.results, _tensors(found), strict=True):
            places[place] = result
        # freed as soon as no later step reads them
        for place in self.done:
            places[place] = None


def _fill_slots(value: Any, places: list[Any]) -> Any:
    """Return a value with its slots replaced by the changes in their places."""
    # not a closure, whose reference cycle would keep the changes alive
    kind = type(value)
    if kind is _Slot:
        return places[value.place]
    return kind([_fill_slots(each, places) for each in value]) if kind is list or kind is tuple else value


@dataclass(frozen=True, kw_only=True)
class Program:
    """A linear map of tensors to tensors, as a list of operations.

    Attributes
    ----------
    steps
        Operations in their order.
    strides
        Strides of the arguments.
    slots
        Number of places; the first ones are those of the arguments.
    ends
        Places of the results, or zeros for a result that depends on no argument.
    constants
        Values that the operations use, each with torch's count of writes into it.
    """

    steps: tuple[_Step, ...]
    strides: tuple[tuple[int, ...], ...]
    slots: int
    ends: tuple[int | Tensor, ...]
    constants: tuple[tuple[Tensor, int], ...]

    @property
    def values(self) -> list[Tensor]:
        """Constants without their counts."""
        return [value for value, _ in self.constants]

    def __call__(self, changes: Sequence[Tensor]) -> Tensors:
        """Return the results for these changes of the arguments.

        Raises
        ------
        ValueError
            If a constant has been written into.
        """
        self._require_unchanged()
        with torch.no_grad():
            return self._run(*map(_with_strides, changes, self.strides))

    def block(self, changes: Sequence[Tensor]) -> Tensors:
        """Return the results for several changes at once, stacked along a new first axis.

        Raises
        ------
        ValueError
            As for one change.
        Exception
            Whatever torch raises where an operation does not take several.
        """
        self._require_unchanged()
        with torch.no_grad():
            return torch.vmap(self._run)(*changes)

    def _require_unchanged(self) -> None:
        # torch counts the in-place writes to a tensor; the recorded operations hold its values of that time
        if any(value._version != version for value, version in self.constants):
            raise ValueError("data must not change while products are taken, got an in-place change")

    @property
    def small(self) -> bool:
        """Whether several changes at once are faster, since the overhead of calls dominates."""
        return all(
            value.numel() <= (_SMALL_CPU if value.device.type == "cpu" else _SMALL_GPU)
            for value in self.values
        )

    def _run(self, *changes: Tensor) -> Tensors:
        places: list[Any] = [None] * self.slots
        places[: len(changes)] = changes
        for step in self.steps:
            step.run(places)
        return tuple(places[end] if isinstance(end, int) else end for end in self.ends)


class Recorded(NamedTuple):
    """Values of a function, their changes along a vector, and its derivative as a program.

    A value None stands for zeros like the argument in that place.
    """

    values: tuple[Tensor | None, ...]
    changes: Tensors
    program: Program


def recorded(function: Differentiated, at: Sequence[Tensor], along: Sequence[Tensor]) -> Recorded:
    """Evaluate a function of tensors and record its derivative.

    Parameters
    ----------
    function
        A function of dual tensors, each with its change; it may differentiate by them. None among its results
        stands for zeros like the argument in that place.
    at
        Tensors of floating numbers.
    along
        Changes of these tensors, of their shapes.

    Raises
    ------
    UnrecordedError
        If the operations cannot be recorded.
    RuntimeError
        If parts run again in the backward pass, as checkpoints do.
    Exception
        Whatever torch raises for an operation without forward mode, such as NotImplementedError.

    Examples
    --------
    >>> x, v = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0])
    >>> found = recorded(lambda x: [x[0].square().sum()], [x], [v])
    >>> found.values[0], found.changes[0], found.program([-v])[0]
    (tensor(5.), tensor(42.), tensor(-42.))
    """
    _load_forward_mode()
    with forward_ad.dual_level(), torch.autograd.graph.disable_saved_tensors_hooks(_RUN_AGAIN):
        # copied, since changes are recognised by their memory
        duals = tuple(forward_ad.make_dual(t, v.clone()) for t, v in zip(at, along, strict=True))
        tangents: list[Any] = [forward_ad.unpack_dual(dual).tangent for dual in duals]
        tape = _Tape(tangents)
        with tape:
            found = function(duals)
            parts = [None if f is None else forward_ad.unpack_dual(f) for f in found]
        likes = at if None in parts else [part.primal for part in parts if part is not None]
        changes = [
            torch.zeros_like(like) if part is None or part.tangent is None else part.tangent.detach()
            for part, like in zip(parts, likes, strict=True)
        ]
        values = tuple(None if part is None else part.primal for part in parts)
        return Recorded(values, tuple(changes), tape.program(changes))


@functools.cache
def _load_forward_mode() -> None:
    """Load what torch needs for forward mode, without the warning of its own code in some versions."""
    with warnings.catch_warnings(), forward_ad.dual_level():
        warnings.filterwarnings("ignore", message=".*torch.jit.script", category=DeprecationWarning)
        forward_ad.make_dual(torch.zeros(()), torch.zeros(()))


class _Tape(TorchDispatchMode):
    """Record all operations on some changes and on tensors computed from them."""

    def __init__(self, changes: Sequence[Tensor]) -> None:
        super().__init__()
        self._memory = dict[int, tuple[StorageWeakRef, int]]()
        self._count, self._slots = 0, dict[Any, _Slot]()
        self._recorded: list[tuple[Any, Any, Any, tuple[int, ...], set[int | None], set[int | None]]] = []
        self._constants = list[tuple[Tensor, int]]()
        self._strides = tuple(change.stride() for change in changes)
        for change in changes:
            self._enter(change)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        # zeros without memory, on which some operations crash
        if func is torch.ops.aten._efficientzerotensor.default:
            return torch.zeros(*args, **kwargs)
        moving = [
            value for value in _tensors((args, *kwargs.values())) if self._memory_number(value) is not None
        ]
        found = func(*args, **kwargs)
        if moving and func not in _SHAPE_ONLY:
            self._record(func, args, kwargs, moving, found)
        return found

    def _record(self, func: Any, args: Any, kwargs: Any, moving: list[Tensor], found: Any) -> None:
        results = _tensors(found)
        if not results or not all(type(t) is Tensor for t in (*moving, *results)):
            raise UnrecordedError(f"{func} of changes gives no plain tensors")
        read = {self._memory_number(t) for t in moving}
        places = [args[i] if i < len(args) else kwargs.get(name) for i, name in _written_arguments(func)]
        written = {
            self._memory_number(t) for t in _tensors(places)
        }  # arguments that the operation writes into
        if None in written:
            raise UnrecordedError(f"{func} writes changes into values")
        options = {name: self._with_slots(value) for name, value in kwargs.items()}
        step = func, self._with_slots(args), options, tuple(map(self._enter, results))
        self._recorded.append((*step, written | {self._memory_number(t) for t in results}, read))

    def _memory_number(self, value: Any) -> int | None:
        """Return the number of the memory of a change; None for other memory, which may reuse a freed address."""
        if not isinstance(value, Tensor):
            return None
        kept, number = self._memory.get(value.untyped_storage().data_ptr(), (None, None))
        return None if kept is None or kept.expired() else number

    def _geometry(self, value: Tensor) -> Any:
        place = value.storage_offset(), value.shape, value.stride()
        return self._memory_number(value), *place, value.dtype, value.is_conj(), value.is_neg()

    def _with_slots(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(self._with_slots, value))
        if not isinstance(value, Tensor):
            return value
        if self._memory_number(value) is None:
            self._constants.append((value, value._version))
            return value
        slot = self._slots.get(self._geometry(value))
        if slot is None:
            raise UnrecordedError("changes are seen by a view that no operation made")
        return slot

    def _enter(self, tensor: Tensor) -> int:
        storage = tensor.untyped_storage()
        if storage.data_ptr() and self._memory_number(tensor) is None:  # an empty tensor has no address
            self._memory[storage.data_ptr()] = StorageWeakRef(storage), self._count
        self._slots[self._geometry(tensor)] = _Slot(self._count)
        self._count += 1
        return self._count - 1

    def program(self, changes: Sequence[Tensor]) -> Program:
        """Return the operations that lead to these changes; zeros for a change that none leads to."""
        if any(value._version != version for value, version in self._constants):
            raise UnrecordedError("values are written into after they were used")
        ends = tuple(
            torch.zeros_like(t) if self._memory_number(t) is None else self._slots[self._geometry(t)].place
            for t in changes
        )
        wanted = {self._memory_number(t) for t in changes}
        steps, read = list[_Step](), {end for end in ends if isinstance(end, int)}
        for function, arguments, options, places, made, used in reversed(self._recorded):
            if not made & wanted:
                continue
            wanted |= used
            own = {v.place for v in _leaves((arguments, *options.values())) if isinstance(v, _Slot)}
            done = tuple((own | set(places)) - read)
            read |= own
            steps.append(
                _Step(function=function, arguments=arguments, options=options, results=places, done=done)
            )
        kept = {id(value) for step in steps for value in _tensors((step.arguments, *step.options.values()))}
        constants = {id(value): (value, version) for value, version in self._constants if id(value) in kept}
        return Program(
            steps=tuple(reversed(steps)),
            strides=self._strides,
            slots=self._count,
            ends=ends,
            constants=tuple(constants.values()),
        )


@functools.cache
def _written_arguments(func: Any) -> tuple[tuple[int, str], ...]:
    """Return place and name of each argument that an operation writes into; cached, since schemas are slow to read."""
    declared = enumerate(func._schema.arguments)
    return tuple((i, a.name) for i, a in declared if a.alias_info is not None and a.alias_info.is_write)


def _with_strides(change: Tensor, strides: tuple[int, ...]) -> Tensor:
    """Return a change with the strides of the recorded one, since the operations take views of it."""
    if change.stride() == strides:
        return change
    return change.new_empty_strided(change.shape, strides).copy_(change)


def _tensors(found: Any) -> list[Tensor]:
    return [value for value in _leaves(found) if isinstance(value, Tensor)]


def _leaves(value: Any) -> list[Any]:
    """Return the entries of nested lists and tuples, the only structures that operations have."""
    if not isinstance(value, list | tuple) or type(value) is _Slot:
        return [value]
    return [leaf for each in value for leaf in _leaves(each)]
