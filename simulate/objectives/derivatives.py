"""Derivatives that the curvature of any model is made of: by reverse mode of one graph, again and again, or recorded.

Forward mode carries changes of the parameters through a computation beside its values. What it does with the changes is
linear in them and the same for all: the operations on changes are taken down as they are carried out, with the values
that they use as constants, and what does not lead to the results is left out. Carrying out the rest is a product with
the derivative, without the values being computed again; of a gradient that is the second derivative.
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
    moving = (end for end in ends if end is not None and end.requires_grad)
    left: list[Any] = [torch.autograd.graph.get_gradient_edge(end).node for end in moving]
    while left:
        node = left.pop()
        if node is not None and node not in found:
            found.add(node)
            left.extend(before for before, _ in node.next_functions)
    return found


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


# --- forward mode, written down once as a list of operations and run again for every vector -----------------------

Differentiated = Callable[[Tensors], Sequence[Tensor | None]]


class UnrecordedError(Exception):
    """Operations that do not repeat from a list: numbers are read off changes, or written where none were."""


_OF_SHAPES = {torch.ops.aten.is_same_size.default, torch.ops.aten._has_same_storage_numel.default}
"""Operations whose answers do not hang on the numbers in a tensor."""

_RUN_AGAIN = "what runs again on the way back runs without changes"

_FEW, _FEW_THERE = 1 << 14, 1 << 23
"""Numbers of the largest constant up to which several changes at once are faster than one after the other, measured.

On the CPU, and on a GPU (an H200: 3 to 9 times as fast there for twenty).
"""


class _Slot(NamedTuple):
    """Place of a change among all."""

    place: int


@dataclass(frozen=True, kw_only=True)
class _Step:
    """One operation: its arguments, with slots where changes go in, the places of its results, and of what is done."""

    function: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    results: tuple[int, ...]
    done: tuple[int, ...]

    def run(self, places: list[Any]) -> None:
        options = {name: _filled(value, places) for name, value in self.options.items()}
        found = self.function(*[_filled(value, places) for value in self.arguments], **options)
        for place, result in zip(self.results, _tensors(found), strict=True):
            places[place] = result
        for place in self.done:
            places[place] = None


def _filled(value: Any, places: list[Any]) -> Any:
    """With what is in the places of its slots; no closure, which would keep that alive in a circle."""
    kind = type(value)
    if kind is _Slot:
        return places[value.place]
    return kind([_filled(each, places) for each in value]) if kind is list or kind is tuple else value


@dataclass(frozen=True, kw_only=True)
class Program:
    """A linear map of tensors to tensors, as a list of operations.

    Attributes
    ----------
    steps
        Operations in their order.
    strides
        Of the arguments.
    slots
        How many places there are; the first are those of the arguments.
    ends
        Places of the results, or zeros where no argument leads.
    constants
        Values that the operations use, each with the number of times that it was written into.
    """

    steps: tuple[_Step, ...]
    strides: tuple[tuple[int, ...], ...]
    slots: int
    ends: tuple[int | Tensor, ...]
    constants: tuple[tuple[Tensor, int], ...]

    @property
    def values(self) -> list[Tensor]:
        """Constants alone."""
        return [value for value, _ in self.constants]

    def __call__(self, changes: Sequence[Tensor]) -> Tensors:
        """The results for these changes of the arguments.

        Raises
        ------
        ValueError
            If a constant was written into since.
        """
        self._require_unchanged()
        with torch.no_grad():
            return self._run(*map(_laid_out, changes, self.strides))

    def block(self, changes: Sequence[Tensor]) -> Tensors:
        """The results for several changes at once, stacked along a new first axis.

        Raises
        ------
        ValueError
            As one call.
        Exception
            Whatever torch raises where an operation does not take several.
        """
        self._require_unchanged()
        with torch.no_grad():
            return torch.vmap(self._run)(*changes)

    def _require_unchanged(self) -> None:
        if any(value._version != version for value, version in self.constants):
            raise ValueError("data must stay as they are while products are taken, got some written into")

    @property
    def small(self) -> bool:
        """Whether several changes at once are faster: calls take longer than what is done in them."""
        return all(
            value.numel() <= (_FEW if value.device.type == "cpu" else _FEW_THERE) for value in self.values
        )

    def _run(self, *changes: Tensor) -> Tensors:
        places: list[Any] = [None] * self.slots
        places[: len(changes)] = changes
        for step in self.steps:
            step.run(places)
        return tuple(places[end] if isinstance(end, int) else end for end in self.ends)


class Recorded(NamedTuple):
    """What a function gives, how that changes along a vector, and its derivative.

    None stands for zeros like the argument in that place.
    """

    values: tuple[Tensor | None, ...]
    changes: Tensors
    program: Program


def recorded(function: Differentiated, at: Sequence[Tensor], along: Sequence[Tensor]) -> Recorded:
    """What a function of tensors gives there, and its derivative.

    Parameters
    ----------
    function
        Of tensors that are given to it with changes beside them; it may take derivatives by them. None among its
        results stands for zeros like the argument in that place.
    at
        Tensors of floating numbers.
    along
        Changes of them, like them.

    Raises
    ------
    UnrecordedError
        If the operations do not repeat from a list.
    RuntimeError
        If parts run again on the way back, as checkpoints do.
    Exception
        Whatever else torch raises where it has no forward mode, such as NotImplementedError.

    Examples
    --------
    >>> x, v = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0])
    >>> found = recorded(lambda x: [x[0].square().sum()], [x], [v])
    >>> found.values[0], found.changes[0], found.program([-v])[0]
    (tensor(5.), tensor(42.), tensor(-42.))
    """
    _load()
    with forward_ad.dual_level(), torch.autograd.graph.disable_saved_tensors_hooks(_RUN_AGAIN):
        # in memory of their own, by which changes are told from values
        duals = tuple(forward_ad.make_dual(t, v.clone()) for t, v in zip(at, along, strict=True))
        laid_out: list[Any] = [forward_ad.unpack_dual(dual).tangent for dual in duals]
        tape = _Tape(laid_out)
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
def _load() -> None:
    """What torch loads for the first change, and warns of to itself in some versions."""
    with warnings.catch_warnings(), forward_ad.dual_level():
        warnings.filterwarnings("ignore", message=".*torch.jit.script", category=DeprecationWarning)
        forward_ad.make_dual(torch.zeros(()), torch.zeros(()))


class _Tape(TorchDispatchMode):
    """Writes down all operations on what comes of some changes."""

    def __init__(self, changes: Sequence[Tensor]) -> None:
        super().__init__()
        self._memory = dict[int, tuple[StorageWeakRef, int]]()
        self._count, self._slots = 0, dict[Any, _Slot]()
        self._taken: list[tuple[Any, Any, Any, tuple[int, ...], set[int | None], set[int | None]]] = []
        self._constants = list[tuple[Tensor, int]]()
        self._strides = tuple(change.stride() for change in changes)
        for change in changes:
            self._enter(change)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        # zeros without memory, that some operations crash on
        if func is torch.ops.aten._efficientzerotensor.default:
            return torch.zeros(*args, **kwargs)
        moving = [value for value in _tensors((args, *kwargs.values())) if self._number(value) is not None]
        found = func(*args, **kwargs)
        if moving and func not in _OF_SHAPES:
            self._take_down(func, args, kwargs, moving, found)
        return found

    def _take_down(self, func: Any, args: Any, kwargs: Any, moving: list[Tensor], found: Any) -> None:
        results = _tensors(found)
        if not results or not all(type(t) is Tensor for t in (*moving, *results)):
            raise UnrecordedError(f"{func} of changes gives no plain tensors")
        read = {self._number(t) for t in moving}
        places = [args[i] if i < len(args) else kwargs.get(name) for i, name in _writes(func)]
        written = {self._number(t) for t in _tensors(places)}  # arguments that it writes into
        if None in written:
            raise UnrecordedError(f"{func} writes changes into values")
        options = {name: self._slotted(value) for name, value in kwargs.items()}
        step = func, self._slotted(args), options, tuple(map(self._enter, results))
        self._taken.append((*step, written | {self._number(t) for t in results}, read))

    def _number(self, value: Any) -> int | None:
        """Of memory that holds changes; none of other memory, which may have the address of what is gone."""
        if not isinstance(value, Tensor):
            return None
        kept, number = self._memory.get(value.untyped_storage().data_ptr(), (None, None))
        return None if kept is None or kept.expired() else number

    def _geometry(self, value: Tensor) -> Any:
        place = value.storage_offset(), value.shape, value.stride()
        return self._number(value), *place, value.dtype, value.is_conj(), value.is_neg()

    def _slotted(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(self._slotted, value))
        if not isinstance(value, Tensor):
            return value
        if self._number(value) is None:
            self._constants.append((value, value._version))
            return value
        slot = self._slots.get(self._geometry(value))
        if slot is None:
            raise UnrecordedError("changes are seen by a view that no operation made")
        return slot

    def _enter(self, tensor: Tensor) -> int:
        storage = tensor.untyped_storage()
        if storage.data_ptr() and self._number(tensor) is None:  # what is empty lies nowhere
            self._memory[storage.data_ptr()] = StorageWeakRef(storage), self._count
        self._slots[self._geometry(tensor)] = _Slot(self._count)
        self._count += 1
        return self._count - 1

    def program(self, changes: Sequence[Tensor]) -> Program:
        """What leads to these changes; zeros where nothing does."""
        if any(value._version != version for value, version in self._constants):
            raise UnrecordedError("values are written into after they were used")
        ends = tuple(
            torch.zeros_like(t) if self._number(t) is None else self._slots[self._geometry(t)].place
            for t in changes
        )
        wanted = {self._number(t) for t in changes}
        steps, read = list[_Step](), {end for end in ends if isinstance(end, int)}
        for function, arguments, options, places, made, used in reversed(self._taken):
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
def _writes(func: Any) -> tuple[tuple[int, str], ...]:
    """Where they stand, and their names: the same for all calls, and slow to be read."""
    declared = enumerate(func._schema.arguments)
    return tuple((i, a.name) for i, a in declared if a.alias_info is not None and a.alias_info.is_write)


def _laid_out(change: Tensor, strides: tuple[int, ...]) -> Tensor:
    """In memory as the change was that the operations were taken down with: views are taken of it."""
    if change.stride() == strides:
        return change
    return change.new_empty_strided(change.shape, strides).copy_(change)


def _tensors(found: Any) -> list[Tensor]:
    return [value for value in _leaves(found) if isinstance(value, Tensor)]


def _leaves(value: Any) -> list[Any]:
    """What lists hold, of which operations have no other structures."""
    if not isinstance(value, list | tuple) or type(value) is _Slot:
        return [value]
    return [leaf for each in value for leaf in _leaves(each)]
