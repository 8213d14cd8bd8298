"""Whether the derivatives that torch takes of a loss are those of the loss: asked once, of a few samples.

What a model or a loss does beside its formula makes derivatives wrong without a word: it changes its own parameters,
keeps something from call to call, reaches for parameters around those that it is given, or has parts whose derivatives
torch takes for zero or for others. What has a cause that can be seen is refused by its name. For the rest derivatives
are compared with differences of value and gradient along one direction, wherever these are conclusive.

| what is refused | seen by |
|---|---|
| changes of parameters, inputs or targets; results that differ in a second call | a second call |
| parameters that are closed over | leaves of the graph that are none of those given |
| functions that may be differentiated once | nodes of the graph of the gradient |
| numbers of half precision | types in the graph |
| detached parts, derivatives that hooks or functions of one's own change | differences |
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from simulate import _memory
from simulate._derivatives import alike, behind, normal, slopes
from simulate.batches import copied, moved, tensors
from simulate.parametric import Leaves, as_found, standing

if TYPE_CHECKING:
    from simulate.objectives import Batch, Objective

__all__ = ["require_unchanged", "runs_again"]

_TOLERANCE = 1e-3
"""Differences and derivatives that are closer, relative to the larger, agree."""
_STEPS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
"""Of differences in double precision, relative to the parameters."""
_FIRST = 1e-5
"""Step that is tried first: of those where neither rounding nor curvature matters much."""
_SURE = 10.0
"""How many times the doubt about a difference makes it conclusive."""
_COPIES = 16
"""Of the parameters, in double precision, that differences take."""
_DIRECTIONS = 3
"""Along which differences must contradict: at kinks those to both sides may agree along one by chance."""
_ROUNDINGS = 1e3
"""So many of a number are lost at most where nothing but the sum of a loss is rounded."""
_HALVES = (torch.float16, torch.bfloat16)
_OWN_WAY = "tensors for the backward pass are kept in a way of their own"


def runs_again(objective: Objective) -> bool:
    """Whether parts of the model may run again in a backward pass, as checkpoints do; what is unsound is refused.

    Raises
    ------
    ValueError
        If torch's derivatives of the loss are not those of the loss, naming the cause.

    Examples
    --------
    >>> from simulate.objectives import Objective
    >>> model = torch.nn.Linear(3, 2)
    >>> penalised = lambda outputs, targets: (outputs - targets).square().mean() + model.weight.square().sum()
    >>> runs_again(Objective(model, penalised, (torch.ones(4, 3), torch.zeros(4, 2))))
    Traceback (most recent call last):
    ValueError: model and loss must reach the parameters through the call of the model alone, got 'weight' ...
    """
    with _differentiable(objective.originals), torch.enable_grad():
        batch = _called(objective)
        if batch is None:
            return False  # what is wrong shows where it is used
        gradient, loss, again = _differentiated(objective, batch)
        _require_own(objective, loss, gradient)
        _require_second(gradient)
        _require_precision(loss)
        del loss, gradient
        _require_derivatives(objective, batch, again=again)
    return again


def require_unchanged(objective: Objective) -> None:
    """Refuse calls that change what they are given, or give something else the next time.

    Raises
    ------
    ValueError
        If there is such a change, naming what changed.

    Examples
    --------
    >>> from simulate.objectives import Objective
    >>> loss = lambda outputs, targets: outputs.mul_(2.0).square().mean() + targets.add_(1.0).sum()
    >>> require_unchanged(Objective(torch.nn.Linear(3, 2), loss, (torch.ones(4, 3), torch.zeros(4, 2))))
    Traceback (most recent call last):
    ValueError: model and loss must not write into inputs or targets, got a change; copy them first
    """
    _called(objective)


# --- calls --------------------------------------------------------------------------------------------------------


def _called(objective: Objective) -> Batch | None:
    """A few samples, or a whole batch where model or loss take no less; nothing where they do not run at all."""
    for whole in (False, True):
        batch = objective.few(whole=whole)
        calls, found = _Calls(objective, batch), None
        with suppress(Exception):  # whatever code of others raises
            found = calls.results()
        if found is None:
            continue
        calls.require_unchanged()
        calls.require_same(found, calls.results())
        calls.require_unchanged()
        return batch if isinstance(found[1], Tensor) and found[1].numel() == 1 else None
    return None


class _Calls:
    """Calls of model and loss with copies of all that they are given."""

    def __init__(self, objective: Objective, batch: Batch) -> None:
        self._objective, self._batch = objective, batch
        self._leaves = tuple(leaf.detach().clone().requires_grad_() for leaf in objective.leaves())
        self._given = copied((batch.inputs, batch.targets))
        self._known = {**dict(zip(objective.names, self._leaves, strict=True)), **objective.fixed}
        self._before = {name: (p._version, p.detach().clone()) for name, p in self._known.items()}

    def results(self) -> tuple[Tensor, Any]:
        """Outputs and loss."""
        inputs, targets = self._given
        with as_found(self._objective.model, self._objective.training):
            outputs = self._objective.outputs(self._leaves, inputs)
            return outputs.detach().clone(), self._objective.criterion(outputs, targets)

    def require_unchanged(self) -> None:
        """Refuse what was written into."""
        for name, p in self._known.items():
            version, values = self._before[name]
            if p._version != version or not _equal(p, values):
                rule = "model must not write into its parameters when it is called"
                raise ValueError(f"{rule}, got {name!r} written; do so before it is measured")
        pairs = zip(tensors(self._given), tensors((self._batch.inputs, self._batch.targets)), strict=True)
        if not all(_equal(after, before) for after, before in pairs):
            rule = "model and loss must not write into inputs or targets"
            raise ValueError(f"{rule}, got a change; copy them first")

    def require_same(self, one: tuple[Any, Any], other: tuple[Any, Any]) -> None:
        """Refuse results that hang on the call."""
        for what, first, second in zip(("model", "loss"), one, other, strict=True):
            if isinstance(first, Tensor) and not (_equal(second, first) or alike(second, first)):
                rule = (
                    f"{what} must give the same for the same arguments, got something else in a second call"
                )
                raise ValueError(f"{rule}: look for what it keeps from call to call or draws on its own")


def _equal(one: Tensor, other: Tensor) -> bool:
    """To the last bit, NaN included."""
    return one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())


# --- the graph ----------------------------------------------------------------------------------------------------


def _differentiated(objective: Objective, batch: Batch) -> tuple[Sequence[Tensor | None], Tensor, bool]:
    """Gradient and loss with their graphs, and whether anything may run again on the way back."""
    try:
        with torch.autograd.graph.disable_saved_tensors_hooks(_OWN_WAY):
            gradient, loss, called = _backward(objective, batch, again=False)
            if not called:
                return gradient, loss, False
    except RuntimeError as error:
        if _OWN_WAY not in str(error):
            raise
    gradient, loss, _ = _backward(objective, batch, again=True)
    return gradient, loss, True


def _backward(
    objective: Objective, batch: Batch, *, again: bool
) -> tuple[Sequence[Tensor | None], Tensor, bool]:
    """Gradient and loss, and whether a module was called on the way back."""
    leaves = objective.leaves()
    with ExitStack() as stack:
        stack.enter_context(as_found(objective.model, objective.training))
        stack.enter_context(_standing(objective, leaves, again=again))
        loss = objective.criterion(objective.outputs(leaves, batch.inputs), batch.targets)
        if not loss.requires_grad:
            rule = "loss must depend on the parameters, got one that does not"
            raise ValueError(f"{rule}: look for no_grad and detach")
        calls = stack.enter_context(_calls(objective))
        gradient = torch.autograd.grad(loss.reshape(()), leaves, create_graph=True, allow_unused=True)
    return gradient, loss, bool(calls)


@contextmanager
def _standing(objective: Objective, leaves: Sequence[Tensor], *, again: bool) -> Iterator[None]:
    """Parameters in their places while a backward pass runs parts of a module again."""
    if objective.model is None or not again:
        yield
        return
    with standing(objective.model, objective.state(leaves)):
        yield


@contextmanager
def _calls(objective: Objective) -> Iterator[list[str]]:
    """Names of the classes of modules that are called meanwhile."""
    found: list[str] = []
    modules = [] if objective.model is None else list(objective.model.modules())
    handles = [
        m.register_forward_pre_hook(lambda module, _: found.append(type(module).__name__)) for m in modules
    ]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _differentiable(originals: Sequence[tuple[str, Tensor]]) -> Iterator[None]:
    """Tensors that leave a trace where they are used."""
    silent = [t for _, t in originals if not t.requires_grad and not t.is_inference()]
    try:
        for tensor in silent:
            tensor.requires_grad_()
        yield
    finally:
        for tensor in silent:
            tensor.requires_grad_(False)


def _require_own(objective: Objective, loss: Tensor, gradient: Sequence[Tensor | None]) -> None:
    """No other tensor stands for a parameter: the one that was copied, say, in a penalty."""
    nodes = behind([loss, *gradient])
    leaves = {id(node.variable) for node in nodes if hasattr(node, "variable")}
    for name, original in objective.originals:
        if id(original) in leaves or original.grad_fn in nodes:
            rule = "model and loss must reach the parameters through the call of the model alone"
            cause = (
                f"got {name!r} in a loss or a function that closes over it, as a penalty on the weights does"
            )
            raise ValueError(
                f"{rule}, {cause}: its derivatives would be left out; measure without, and add those of the penalty"
            )
    if all(g is None for g in gradient):
        raise ValueError("loss must depend on the parameters by functions with derivatives, got none")


def _require_second(gradient: Sequence[Tensor | None]) -> None:
    if any(node.name().endswith("::Error") for node in behind(gradient)):
        rule = "model and loss must have second derivatives"
        raise ValueError(f"{rule}, got a function of torch marked once_differentiable")


def _require_precision(loss: Tensor) -> None:
    halves = {m.dtype for node in behind([loss]) for m in node._input_metadata if m.dtype in _HALVES}
    if halves:
        got = ", ".join(sorted(str(dtype) for dtype in halves))
        raise ValueError(
            f"model and loss must compute in single or double precision, got {got}: look for autocast and half"
        )


# --- differences --------------------------------------------------------------------------------------------------


class _Change(NamedTuple):
    """By differences of a step: slopes along the line, how far those to either side are apart, and of rounding."""

    slopes: Sequence[Tensor]
    apart: Sequence[Tensor]
    rounding: Sequence[Tensor]


class _Line:
    """The loss and the parts of its gradient on a line through the parameters, in double precision."""

    def __init__(self, objective: Objective, batch: Batch, seed: int, *, again: bool) -> None:
        self._objective, self._again = objective, again
        self._start = tuple(leaf.detach().double() for leaf in objective.leaves())
        self._inputs, self._targets = (moved(p, self._start[0]) for p in (batch.inputs, batch.targets))
        self._criterion = _doubled(objective.criterion)
        size = torch.cat([p.flatten() for p in self._start]).square().mean().sqrt()
        free = _free(objective)
        parts = zip(self._start, free, strict=True)
        self._along = tuple(normal(p, seed=seed) * _size(p, size) * f for p, f in parts)

    def derivatives(self) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """What there is at the parameters, and its derivatives along the line as torch has them."""
        with self._guard(self._start) as leaves:
            loss = self._loss(leaves)
            gradient = slopes(loss, leaves, again=True)
            first = torch.stack([(g * v).sum() for g, v in zip(gradient, self._along, strict=True)]).sum()
            second = slopes(gradient, leaves, self._along)
        return [loss.detach(), *(g.detach() for g in gradient)], [first.detach(), *second]

    def at(self, step: float) -> Sequence[Tensor]:
        """Loss and parts of its gradient."""
        with self._guard([p + step * v for p, v in zip(self._start, self._along, strict=True)]) as leaves:
            loss = self._loss(leaves)
            return [loss.detach(), *slopes(loss, leaves)]

    def change(self, step: float, here: Sequence[Tensor], rounding: Sequence[Tensor]) -> _Change:
        """By differences to both sides."""
        ends = [(f - h, h - b) for f, h, b in zip(self.at(step), here, self.at(-step), strict=True)]
        return _Change(
            [(after + before) / (2 * step) for after, before in ends],
            [(after - before).norm() / step for after, before in ends],
            [part / step for part in rounding],
        )

    def rounding(self, here: Sequence[Tensor]) -> Sequence[Tensor]:
        """How far steps of a few roundings take it."""
        step = 4 * torch.finfo(torch.float64).eps
        ends = zip(self.at(step), self.at(-step), here, strict=True)
        return [4 * torch.maximum((f - h).norm(), (b - h).norm()) for f, b, h in ends]

    def _loss(self, leaves: Sequence[Tensor]) -> Tensor:
        return self._criterion(self._objective.outputs(leaves, self._inputs), self._targets).reshape(())

    @contextmanager
    def _guard(self, values: Sequence[Tensor]) -> Iterator[Leaves]:
        leaves = tuple(v.detach().requires_grad_() for v in values)
        with ExitStack() as stack:
            stack.enter_context(as_found(self._objective.model, self._objective.training))
            stack.enter_context(_standing(self._objective, leaves, again=self._again))
            yield leaves


def _size(part: Tensor, other: Tensor) -> Tensor:
    """Typical entry; that of all parameters for one that is zero, and 1 if all are."""
    own = part.square().mean().sqrt()
    return next((size for size in (own, other) if float(size) > 0), torch.ones_like(own))


def _free(objective: Objective) -> Sequence[Tensor]:
    """1 for every number that may move and 0 for what stands for padding, which by definition has no derivative."""
    free = [torch.ones((), device=objective.device) for _ in objective.leaves()]
    modules = [] if objective.model is None else objective.model.modules()
    for module in modules:
        if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.padding_idx is not None:
            for i, (_, original) in enumerate(objective.originals[: len(free)]):
                if original is module.weight:
                    free[i] = torch.ones(len(original), 1, device=objective.device)
                    free[i][module.padding_idx] = 0
    return free


def _doubled(criterion: Any) -> Any:
    return copy.deepcopy(criterion).double() if isinstance(criterion, nn.Module) else criterion


def _require_derivatives(objective: Objective, batch: Batch, *, again: bool) -> None:
    """Refuse derivatives that are not what differences say, where these say anything."""
    if not _memory.fits(_COPIES * 8 * objective.dim, objective.device):
        return
    try:
        wrong = _wrong(_Line(objective, batch, 0, again=again))
        for seed in range(1, _DIRECTIONS):
            wrong = wrong and wrong & _wrong(_Line(objective, batch, seed, again=again))
    except (RuntimeError, TypeError, ValueError, ArithmeticError):
        return  # it does not run in double precision, or not at other parameters
    if wrong:
        order = "first" if 0 in wrong else "second"
        names = ", ".join(repr(objective.names[i - 1]) for i in sorted(wrong) if i)
        raise ValueError(
            f"model and loss must have the derivatives of their own values, got others of the {order} order"
            + (f" by {names}" if names and order == "second" else "")
            + ": look for detach, no_grad, rounding, hooks, and functions with a backward of their own"
        )


def _wrong(line: _Line) -> set[int]:
    """Where differences contradict the derivatives: 0 for the loss, then the parts of its gradient."""
    here, expected = line.derivatives()
    quick = line.change(_FIRST, here, [h.new_zeros(()) for h in here])
    if not all(bool(t.isfinite().all()) for t in (*here, *expected, *quick.slopes)):
        return set()
    suspects = [
        i for i, s in enumerate(quick.slopes) if _gap(s, expected[i]) > _TOLERANCE * _larger(s, expected[i])
    ]
    if not suspects:
        return set()
    rounding = line.rounding(here)
    changes = [line.change(step, here, rounding) for step in _STEPS]
    return {
        i
        for i in suspects
        if _contradicted(
            [_difference(c, i, here, step) for c, step in zip(changes, _STEPS, strict=True)], expected[i]
        )
    }


class _Difference(NamedTuple):
    """A slope by differences.

    Attributes
    ----------
    apart
        How far those to either side are from each other.
    noise
        More than what a few roundings of the parameters, or of the largest part of the gradient, make of it.
    lost
        What the rounding of its own part makes of it.
    """

    slope: Tensor
    apart: float
    noise: float
    lost: float


def _difference(change: _Change, i: int, here: Sequence[Tensor], step: float) -> _Difference:
    """That of part i."""
    sizes = [_ROUNDINGS * torch.finfo(h.dtype).eps * float(h.norm()) / step for h in here]
    noise = max(float(change.rounding[i]), max(sizes[1:]) if i else sizes[0])
    return _Difference(change.slopes[i], float(change.apart[i]), noise, sizes[i])


def _contradicted(found: Sequence[_Difference], expected: Tensor) -> bool:
    """Whether the two finest differences that rounding leaves have settled, on the same, and it is something else."""
    fine = [d for d in found if _SURE * d.noise < _gap(d.slope, expected)][:2]
    if len(fine) < 2:
        return False
    (one, *_), (other, *_) = fine
    doubt = max(_gap(one, other), *(d.apart for d in fine))
    settled = _SURE * doubt <= min(float(one.norm()), float(other.norm())) + max(d.lost for d in fine)
    off = min(_gap(one, expected), _gap(other, expected))
    return settled and off > _SURE * max(doubt, _TOLERANCE * _larger(other, expected))


def _gap(one: Tensor, other: Tensor) -> float:
    return float((one - other).norm())


def _larger(one: Tensor, other: Tensor) -> float:
    return max(float(one.norm()), float(other.norm()))
