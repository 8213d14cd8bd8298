"""Pretended device: its tensors are CPU tensors in a wrapper that reports another device.

Every operation on wrapped tensors passes one function. It refuses what CUDA refuses, counts, and computes with the CPU
tensors, so that numbers agree with the CPU to the bit. Autograd, `torch.func`, modules, optimisers and copies treat the
device like any other that torch does not know.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.pretend import rules
from benchmarks.pretend.counts import Counts, EnoughLaunches, aten, numpy_seen
from benchmarks.pretend.rules import Rounding

NAME = "pretend"

TRANSFORMS = torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchDynamicLayerFrontMode) | (
    torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchDynamicLayerBackMode)
)
"""Dispatch keys of `torch.func`, which has done its part before an operation arrives here."""

FREE = aten("detach lift_fresh _unsafe_view _reshape_alias")
"""Operations that move no data, in addition to views."""

POSSIBLE = hasattr(backend_registration, "_setup_privateuseone_for_python_backend")
"""Whether this version of torch knows devices made in Python; the oldest supported version does not."""

_known: list[torch.device] = []


def _device() -> torch.device:
    """Return the device."""
    # registered with torch on first use only, since registration cannot be undone
    if not _known:
        backend_registration._setup_privateuseone_for_python_backend(NAME)
        _known.append(torch.device(NAME, 0))
    return _known[0]


class Elsewhere(Tensor):
    """CPU tensor, in `held`, that reports the pretended device."""

    held: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: Tensor) -> Elsewhere:
        """Wrap a tensor of the CPU."""
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            layout=held.layout,
            device=_device(),
        )
        made.held = held
        return made

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Raise, as for every device, unless `force`."""
        if not force:
            raise rules.RefusedError(
                "numpy must have a tensor on the CPU, got one on the device; call cpu first"
            )
        return self.detach().cpu().numpy()

    def data_ptr(self) -> int:
        """Return the address of the data of the CPU tensor."""
        return self.held.data_ptr()

    def untyped_storage(self) -> torch.UntypedStorage:
        """Return the storage of the CPU tensor."""
        return self.held.untyped_storage()

    def __deepcopy__(self, memo: dict[int, Any]) -> Elsewhere:
        """Return a copy on the device, a parameter if this is one."""
        made = self.detach().clone().requires_grad_(self.requires_grad)
        made.__dict__.update({name: value for name, value in self.__dict__.items() if name != "held"})
        return memo.setdefault(id(self), made)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"Elsewhere({self.held!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Operate on tensors outside of `pretended`, as in the message of an error."""
        return _Operations(Counts()).operate(func, args, kwargs or {})


class _Operations(TorchDispatchMode):
    """Torch mode that receives all operations while the device is pretended."""

    def __init__(self, counts: Counts, rounding: Rounding | None = None) -> None:
        super().__init__()
        self.counts, self.rounding = counts, rounding

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # torch would load its compiler, for a second, to keep it from what is compiled nowhere here
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.operate(func, args, kwargs or {})

    def operate(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Refuse, count and compute one operation."""
        flat = _leaves((args, *kwargs.values()))
        if not any(isinstance(t, Elsewhere) for t in flat) and not _is_on_device(kwargs.get("device")):
            made = func(*args, **kwargs)
            if not _moves_no_data(func):
                self.counts.worked_beside(func, args, kwargs, made)
            return made
        if func._schema.name == "aten::copy_":
            return self._copy_into(func, args, kwargs)
        if func._schema.name == "aten::_to_copy":
            return self._copy_to(func, args, kwargs)
        rules.require_generator(func, kwargs)
        rules.require_one_device(func, args, [t for t in flat if _is_on_cpu(t)])
        if rules.waits(func, args):
            self.counts.waits += 1
        args, kwargs = (
            _map_leaves(_unwrap, args),
            {name: _map_leaves(_unwrap, value) for name, value in kwargs.items()},
        )
        with torch._C._ExcludeDispatchKeyGuard(TRANSFORMS):
            made = self.rounding.operated(func, args, kwargs) if self.rounding else func(*args, **kwargs)
        if not _moves_no_data(func):
            self.counts.launched(func, args, kwargs, made)
        # An operation in place returns its argument, which must be the same wrapper again.
        wrappers = {id(t.held): t for t in flat if isinstance(t, Elsewhere)}
        return _map_leaves(lambda t: _wrap(t, wrappers) if isinstance(t, Tensor) else t, made)

    def _copy_into(self, func: Any, args: Any, kwargs: Any) -> Any:
        into, source = args[:2]
        func(_unwrap(into), _unwrap(source), *args[2:], **kwargs)
        self._count_copy(source, isinstance(source, Elsewhere), isinstance(into, Elsewhere))
        return into

    def _copy_to(self, func: Any, args: Any, kwargs: Any) -> Any:
        asked = kwargs.get("device")
        came = isinstance(args[0], Elsewhere)
        there = came if asked is None else _is_on_device(asked)
        made = func(_unwrap(args[0]), *args[1:], **{name: _unwrap(value) for name, value in kwargs.items()})
        self._count_copy(made, came, there)
        return Elsewhere(made) if there else made

    def _count_copy(self, tensor: Tensor, came: bool, there: bool) -> None:
        # Only for a copy to the CPU must the CPU wait.
        if came and not there:
            self.counts.waits += 1
        else:
            self.counts.launches += 1
            self.counts.device_work += tensor.numel()
            self.counts.sent += 0 if came else tensor.numel() * tensor.element_size()


def _leaves(value: Any) -> list[Any]:
    """Return the leaves of nested lists and tuples, the only structures among arguments of operations."""
    if type(value) is not list and type(value) is not tuple:
        return [value]
    return [leaf for each in value for leaf in _leaves(each)]


def _map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to the leaves of nested lists and tuples."""
    # `torch.utils` does so for more structures, but slowly
    kind = type(value)
    return (
        kind([_map_leaves(function, each) for each in value])
        if kind is list or kind is tuple
        else function(value)
    )


def _is_on_device(device: Any) -> bool:
    return device is not None and torch.device(device).type == NAME


def _is_on_cpu(value: Any) -> bool:
    return isinstance(value, Tensor) and not isinstance(value, Elsewhere) and value.device.type == "cpu"


def _unwrap(value: Any) -> Any:
    if isinstance(value, Elsewhere):
        return value.held
    return torch.device("cpu") if isinstance(value, torch.device) and _is_on_device(value) else value


def _wrap(made: Tensor, wrappers: Mapping[int, Elsewhere]) -> Tensor:
    before = wrappers.get(id(made))
    if before is None:
        # forward mode makes zeros without memory, of tangents that vanish
        return Elsewhere(torch.zeros(made.shape, dtype=made.dtype) if made._is_zerotensor() else made)
    if before.shape != made.shape or before.stride() != made.stride():  # squeeze_, t_ and the like
        with torch._C._DisableTorchDispatch(), torch._C._AutoDispatchBelowAutograd():
            before.as_strided_(made.shape, made.stride(), made.storage_offset())
    return before


def _moves_no_data(func: Any) -> bool:
    return func.is_view or func._schema.name in FREE


class _Calls(TorchFunctionMode):
    """Torch mode that receives all calls from Python, and ends the run once there were enough launches.

    It ends here since no backward pass is underway between such calls. Tensors that torch makes from Python numbers
    below its modes are made on the CPU and sent over, as for CUDA.
    """

    def __init__(self, counts: Counts) -> None:
        super().__init__()
        self.counts = counts

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        on_tensors = any(isinstance(value, Tensor) for value in args)  # other calls may restore settings
        if on_tensors and self.counts.launches >= self.counts.most:
            raise EnoughLaunches
        made = MADE_OF_NUMBERS.get(func)
        return made(func, args, kwargs or {}) if made else func(*args, **(kwargs or {}))


def _from_numbers(func: Any, args: Any, kwargs: Any) -> Any:
    source, *args = args if args else (kwargs.pop("data"),)
    device = kwargs.pop("device", source.device if isinstance(source, Tensor) else None)
    if isinstance(source, Elsewhere):
        made = source.detach().clone() if func is torch.tensor else source
        return made.to(device=device, dtype=kwargs.get("dtype") or made.dtype)
    numbers = _map_leaves(lambda t: t.item() if isinstance(t, Elsewhere) else t, source)
    made = func(numbers, *args, **kwargs)
    return made if device is None else made.to(device)


def _like_another(_: Any, args: Any, kwargs: Any) -> Any:
    alike = {"dtype": args[0].dtype, "device": args[0].device} | kwargs
    return _from_numbers(torch.tensor, args[1:], alike)


def _index(func: Any, args: Any, kwargs: Any) -> Any:
    """Index with lists turned into tensors of the CPU, as torch does."""
    tensor, index, *value = args
    parts = index if isinstance(index, tuple) else (index,)
    if isinstance(tensor, Elsewhere) and any(isinstance(part, list) for part in parts):
        parts = tuple(torch.tensor(part) if isinstance(part, list) else part for part in parts)
        index = parts if isinstance(index, tuple) else parts[0]
    return func(tensor, index, *value, **kwargs)


def _to_list(func: Any, args: Any, kwargs: Any) -> Any:
    return func(args[0].cpu() if isinstance(args[0], Elsewhere) else args[0], *args[1:], **kwargs)


def _set_data(func: Any, args: Any, kwargs: Any) -> Any:
    """Set the data of a tensor, as `torch.nn.utils.vector_to_parameters` does."""
    tensor, value = args
    if isinstance(tensor, Elsewhere) and isinstance(value, Elsewhere):
        tensor.held = value.held.detach()
    return func(tensor, value, **kwargs)


MADE_OF_NUMBERS: Mapping[Any, Callable[[Any, Any, Any], Any]] = {
    torch.tensor: _from_numbers,
    torch.as_tensor: _from_numbers,
    torch.asarray: _from_numbers,
    torch.Tensor.new_tensor: _like_another,
    torch.Tensor.__getitem__: _index,
    torch.Tensor.__setitem__: _index,
    torch.Tensor.tolist: _to_list,
    torch.Tensor.data.__set__: _set_data,  # pyright: ignore[reportAttributeAccessIssue]
}


@contextlib.contextmanager
def pretended(most: float = math.inf, rounding: Rounding | None = None) -> Iterator[Counts]:
    """Pretend a device within this context: tensors may be moved to ``torch.device(NAME)``, in this thread alone.

    Parameters
    ----------
    most
        Number of launches after which `EnoughLaunches` is raised.
    rounding
        Rounding of the device; as on the CPU by default.

    Examples
    --------
    >>> with pretended() as counts:
    ...     x = torch.ones(2, 3).to(NAME)
    ...     print(x.device, (x @ x.mT).sum().item())
    pretend:0 12.0
    >>> counts.launches, counts.waits
    (4, 1)
    """
    _device()
    counts = Counts(most)
    # threads of the backward pass would see neither mode
    with (
        torch.autograd.set_multithreading_enabled(False),
        _Calls(counts),
        _Operations(counts, rounding),
        numpy_seen(counts),
    ):
        yield counts
