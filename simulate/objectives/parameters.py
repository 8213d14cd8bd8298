"""A model as a function of its parameters, or of some of them."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from simulate.lanczos.products import names_place
from simulate.objectives.forms import arguments

HALVES = (torch.float16, torch.bfloat16)

COMPILED = "_orig_mod."
"""Prefix of parameter names in a model, or part of one, that torch.compile has wrapped."""


Leaves = tuple[Tensor, ...]
Call = Callable[[Sequence[Tensor], Any], Any]
State = Callable[[Sequence[Tensor]], Mapping[str, Tensor]]


class Parametric(NamedTuple):
    """A model as a function of copies of its parameters and of inputs.

    Attributes
    ----------
    originals
        The tensors that were copied.
    fixed
        Copies of the other parameters of a module, by name.
    state
        Returns the tensor at each place of a module when it is called with some parameters; empty for a function.
    """

    names: tuple[str, ...]
    parameters: Leaves
    call: Call
    originals: Leaves
    fixed: Mapping[str, Tensor]
    state: State


def parametric(model: Any, parameters: Any = None) -> Parametric:
    """Return a model as a function of the named parameters, see `objectives.Objective`.

    Other parameters keep their present values. Buffers are copied for every call, since batch normalisation writes into
    them. Those in half precision, float16 or bfloat16, are copied into single precision, with the same values, since
    products need more digits.

    Raises
    ------
    ValueError
        If `model` is neither a module nor a function, or `parameters` names none of its parameters, or those are not
        finite, or of several types or devices.

    Examples
    --------
    >>> line = parametric(lambda p, x: p[0] * x, [torch.tensor(3.0)])
    >>> line.call(line.parameters, 2.0)
    tensor(6.)
    """
    found = _of_module(model, parameters) if isinstance(model, nn.Module) else _of_function(model, parameters)
    kinds = {(p.dtype, p.device) for p in found.parameters}
    if len(kinds) > 1 or not {dtype for dtype, _ in kinds} <= {torch.float32, torch.float64}:
        got = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
        raise ValueError(
            f"parameters must be all float32 or all float64, or in half precision, on one device, got {got}"
        )
    for name, p in zip(found.names, found.parameters, strict=True):
        if not bool(p.isfinite().all()):
            raise ValueError(f"parameters must be finite, got NaN or infinity in {name!r}")

    def plain(leaves: Sequence[Tensor], inputs: Any) -> Any:
        with _plain_kernels():
            return found.call(leaves, inputs)

    return found._replace(call=plain)


def _of_module(model: nn.Module, parameters: Any) -> Parametric:
    require_ready(model)
    names, known = _select_names(model, parameters), dict(model.named_parameters())
    originals = tuple(known[n] for n in names)
    copies = tuple(map(_copy, originals))
    _require_own_memory(model, names)
    fixed = {name: _copy(p) for name, p in known.items() if name not in names}
    buffers = {name: _copy(b) for name, b in model.named_buffers()}
    # each place of a parameter or buffer once, with the name of its tensor: by default `functional_call` fills a module
    # that has two names twice, and then restores the wrong tensor
    every = {id(value): name for name, value in [*model.named_parameters(), *model.named_buffers()]}
    places = {
        f"{prefix}.{name}" if prefix else name: every[id(value)]
        for prefix, module in model.named_modules()
        for name, value in [*module._parameters.items(), *module._buffers.items()]
        if value is not None
    }

    def state(leaves: Sequence[Tensor]) -> Mapping[str, Tensor]:
        held = {**fixed, **{name: b.clone() for name, b in buffers.items()}}
        if (
            leaves[0].dtype != copies[0].dtype
        ):  # checks at other precision than the model's: torch mixes no types
            held = {
                name: t.to(leaves[0].dtype) if t.dtype == copies[0].dtype else t for name, t in held.items()
            }
        values = {**held, **dict(zip(names, leaves, strict=True))}
        return {place: values[name] for place, name in places.items()}

    def call(leaves: Sequence[Tensor], inputs: Any) -> Any:
        args, keywords = arguments(model, inputs)
        return torch.func.functional_call(model, dict(state(leaves)), args, keywords, tie_weights=False)

    return Parametric(names, copies, call, originals, fixed, state)


def _of_function(function: Any, parameters: Any) -> Parametric:
    if not callable(function):
        got = type(function).__name__
        raise ValueError(f"model must be a module or a function of parameters and inputs, got {got}")
    listed = isinstance(parameters, Sequence) and all(isinstance(p, Tensor) for p in parameters)
    if not listed or not parameters:
        raise ValueError(f"parameters of a function must be a sequence of tensors, got {parameters!r}")
    names = tuple(str(i) for i in range(len(parameters)))
    return Parametric(names, tuple(map(_copy, parameters)), function, tuple(parameters), {}, lambda _: {})


def _copy(tensor: Tensor) -> Tensor:
    """Return a copy of a tensor, in single precision if it is in half precision."""
    return tensor.detach().to(torch.float32 if tensor.dtype in HALVES else tensor.dtype, copy=True)


def unwrapped(model: Any) -> Any:
    """Return the module that `torch.compile` has wrapped, which has second derivatives; else the model itself.

    Examples
    --------
    >>> unwrapped(torch.compile(nn.Linear(1, 1), backend="eager"))
    Linear(in_features=1, out_features=1, bias=True)
    """
    inside = getattr(model, COMPILED.removesuffix("."), None)
    return inside if isinstance(inside, nn.Module) else model


@contextmanager
def _plain_kernels() -> Iterator[None]:
    """Disable fused kernels that have no second derivative, as those of attention, or a wrong one.

    Parts of a model or functions that `torch.compile` has compiled run uncompiled.
    """
    compiler, eager = sys.modules.get("torch._dynamo"), nullcontext()
    if compiler is not None:
        stance = getattr(torch.compiler, "set_stance", None)  # newer than the oldest supported torch
        eager = compiler.config.patch(disable=True) if stance is None else stance("force_eager")
    with sdpa_kernel(SDPBackend.MATH), _PlainWeightNorm(), eager:
        yield


class _PlainWeightNorm(TorchFunctionMode):
    """Weight normalisation by its formula: torch's second derivative wrongly takes the norms for constants."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", None) == "_weight_norm":
            func = _weight_norm
        return func(*args, **(kwargs or {}))


def _weight_norm(directions: Tensor, lengths: Tensor, dim: int = 0) -> Tensor:
    return directions * (lengths / torch.norm_except_dim(directions, 2, dim))


@contextmanager
def in_place(model: nn.Module, state: Mapping[str, Tensor]) -> Iterator[None]:
    """Put parameters and buffers into a module during a context, for parts that a backward pass runs again.

    Parameters
    ----------
    model
        Restored afterwards.
    state
        As `Parametric.state` gives it.
    """
    slots = list[tuple[dict[str, Any], str]]()
    for place in state:
        path, _, name = place.rpartition(".")
        module = model.get_submodule(path)
        slots.append((module._parameters if name in module._parameters else module._buffers, name))
    before = [values[name] for values, name in slots]
    try:
        for (values, name), value in zip(slots, state.values(), strict=True):
            values[name] = value
        with _plain_kernels():
            yield
    finally:
        for (values, name), value in zip(slots, before, strict=True):
            values[name] = value


def _select_names(model: nn.Module, parameters: Any) -> tuple[str, ...]:
    known = dict(model.named_parameters())
    if parameters is None:
        names = tuple(name for name, p in known.items() if p.requires_grad)
        if not names:
            raise ValueError("model must have a parameter that requires a gradient, got none")
        return names
    wanted = [parameters] if isinstance(parameters, str) else list(parameters)
    wanted = [name.removeprefix(COMPILED) if isinstance(name, str) else name for name in wanted]
    # a tied parameter has several names, any of which selects it
    everywhere = list(model.named_parameters(remove_duplicate=False))
    for name in wanted or [None]:
        if not any(names_place(name, k) for k, _ in everywhere):
            raise ValueError(
                "parameters must name parameters or submodules of the model, such as"
                f" {', '.join(list(known)[:4])}; got {name!r}"
            )
    chosen = {id(p) for k, p in everywhere if any(names_place(name, k) for name in wanted)}
    return tuple(k for k, p in known.items() if id(p) in chosen)


def require_ready(model: nn.Module) -> None:
    """Refuse a module without values, or one whose values cannot be replaced.

    Raises
    ------
    ValueError
        If it is compiled, or one of its tensors has no values yet, has them on another machine, or is not dense.
    """
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        raise ValueError(f"model must be the module itself, got a {type(model).__name__}; pass its .module")
    for part in model.modules():
        if isinstance(part, torch.jit.ScriptModule):
            raise ValueError(
                f"model must be a Python module, got a TorchScript module: {part.original_name!r}"
            )
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if is_lazy(tensor):
            raise ValueError(
                f"model must have initialised parameters, got a lazy {name!r}; call the model once where it is built"
            )
        if tensor.is_meta:
            raise ValueError(f"model must have values, got {name!r} on the meta device")
        if hasattr(tensor, "full_tensor"):  # a DTensor; its module is slow to import
            raise ValueError(
                f"model must have whole parameters in every process, got {name!r} sharded; load it unsharded, and"
                " shard the data by group="
            )
        if tensor.layout != torch.strided:
            raise ValueError(f"model must have dense parameters and buffers, got {name!r} as {tensor.layout}")


def _require_own_memory(model: nn.Module, names: Sequence[str]) -> None:
    """Refuse parameters that share memory with other tensors: a step of one would change the other."""
    tensors = [(n, t) for n, t in [*model.named_parameters(), *model.named_buffers()] if t.numel()]
    spans = sorted((t.data_ptr(), t.data_ptr() + _extent(t), n) for n, t in tensors)
    for name, t in tensors:
        if name in names and _extent(t) < t.nbytes:
            raise ValueError(f"parameters must not be expanded views, got {name!r}; clone it")
    reach, last = 0, ""
    for start, end, name in spans:
        if start < reach and (name in names or last in names):
            raise ValueError(
                f"parameters must not share memory with others, got {last!r} and {name!r}; tie them as one parameter"
            )
        reach, last = max((reach, last), (end, name))


def _extent(tensor: Tensor) -> int:
    """Return the number of bytes from the first to the last number."""
    steps = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (steps + 1) * tensor.element_size()


def doubled(function: Any) -> Any:
    """Return a copy of a module in double precision; any other function as it is, since it follows its arguments."""
    return copy.deepcopy(function).double() if isinstance(function, nn.Module) else function
