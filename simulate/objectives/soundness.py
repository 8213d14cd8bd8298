"""Whether the derivatives that torch takes of a loss are those of the loss: asked once, of a few samples.

What a model or a loss does beside its formula makes derivatives wrong without a word: it changes its own parameters,
keeps something from call to call, reaches for parameters around those that it is given, or has parts whose derivatives
torch takes for zero or for others. What has a cause that can be seen is refused by its name. For the rest derivatives
are compared with differences of value and gradient along a few directions, wherever these are conclusive.

| what is refused | seen by |
|---|---|
| changes of parameters, inputs or targets; results that differ in a second call | a second call |
| losses that draw at random | two calls in a row |
| parameters that are closed over | leaves of the graph that are none of those given |
| functions that may be differentiated once | nodes of the graph of the gradient |
| computing in half precision | types in the graph |
| detached parts, derivatives that hooks or functions of one's own change | differences |

Networks of `simulate.networks` with a loss of torch, as they were built, are taken at their word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules import module

from simulate.activations import ACTIVATIONS
from simulate.networks import LeNet5, Mlp
from simulate.objectives.asked import Asked
from simulate.objectives.batches import Batch, copied, tensors
from simulate.objectives.derivatives import alike, behind
from simulate.objectives.differences import contradicted
from simulate.objectives.losses import loss_of
from simulate.objectives.parameters import HALVES
from simulate.objectives.restoring import as_found

__all__ = ["hooked", "mean_output", "require_first", "require_unchanged", "runs_again", "trusted"]

_PARTS = {
    *(Mlp, LeNet5, nn.Sequential, nn.ModuleList, nn.Linear, nn.Conv2d, nn.ReLU, nn.MaxPool2d, nn.AvgPool2d),
    *(nn.Flatten, nn.CrossEntropyLoss, nn.MSELoss),
}
_ACTIVATIONS = tuple(known.function for known in ACTIVATIONS.values())
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_OWN_WAY = "tensors for the backward pass are kept in a way of their own"


def runs_again(objective: Asked) -> bool:
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
    >>> runs_again(Objective(model, (torch.ones(4, 3), torch.zeros(4, 2)), penalised))
    Traceback (most recent call last):
    ValueError: model and loss must reach the parameters through the call of the model alone, got 'weight' ...
    """
    if trusted(objective):
        return False
    with _differentiable(objective.originals), torch.enable_grad():
        batch = _called(objective)
        if batch is None:
            return False  # what is wrong shows where it is used
        gradient, loss, again = _differentiated(objective, batch)
        _require_own(objective, loss, gradient)
        _require_second(gradient)
        del loss, gradient
        _require_own_derivatives(objective, contradicted(objective, batch, again=again))
    return again


def require_first(objective: Asked) -> None:
    """Refuse what makes first derivatives wrong, as far as its cause can be seen; second ones need not exist.

    Raises
    ------
    ValueError
        As `runs_again`, but for functions without second derivatives, and without a look at differences.
    """
    if trusted(objective):
        return
    with _differentiable(objective.originals), torch.enable_grad():
        batch = _called(objective)
        if batch is not None:
            gradient, loss, _ = _differentiated(objective, batch)
            _require_own(objective, loss, gradient)


def require_unchanged(objective: Asked) -> None:
    """Refuse calls that change what they are given, or give something else the next time.

    Raises
    ------
    ValueError
        If there is such a change, naming what changed.

    Examples
    --------
    >>> from simulate.objectives import Objective
    >>> loss = lambda outputs, targets: outputs.mul_(2.0).square().mean() + targets.add_(1.0).sum()
    >>> require_unchanged(Objective(torch.nn.Linear(3, 2), (torch.ones(4, 3), torch.zeros(4, 2)), loss))
    Traceback (most recent call last):
    ValueError: model and loss must not write into inputs or targets, got a change; copy them first
    """
    if not trusted(objective):
        _called(objective)


# --- what need not be asked ---------------------------------------------------------------------------------------


def mean_output(outputs: Tensor, _: Any) -> Tensor:
    """A loss where the model alone is of interest."""
    return outputs.mean()


def trusted(objective: Asked) -> bool:
    """Whether the model is one of `simulate.networks`, the loss one of torch, and both are as they were built.

    Thousands of these are measured, and what is asked would take longer than many a measurement.
    """
    model, loss = objective.model, objective.criterion
    if not isinstance(model, Mlp | LeNet5) or torch.is_autocast_enabled(objective.device.type):
        return False
    losses = (functional.cross_entropy, functional.mse_loss, mean_output)
    parts = list(model.modules()) if any(loss is known for known in losses) else [*model.modules(), loss]
    return all(_plain(part) for part in parts)


def hooked(part: nn.Module) -> bool:
    """Whether anything else is called with a module, of its own or of all."""
    return any(getattr(part, hooks) for hooks in _HOOKS) or _global_hooks()


def _global_hooks() -> bool:
    """Whether torch calls something with every module: its own function for that is younger than our lowest torch."""
    kinds = (
        kind for name, kind in vars(module).items() if name.startswith("_global_") and isinstance(kind, dict)
    )
    return any(map(bool, kinds))


def _plain(part: Any) -> bool:
    """Whether a module is of a kind that is known, with no hook, buffer, function or tensor put into it."""
    if type(part) not in _PARTS or hooked(part):
        return False
    own = [v for v in vars(part).values() if isinstance(v, Tensor) or (callable(v) and v not in _ACTIVATIONS)]
    held = [t for t in (*part._parameters.values(), *part._buffers.values()) if t is not None]
    return not own and all(type(t) is nn.Parameter for t in held)


# --- calls --------------------------------------------------------------------------------------------------------


def _called(objective: Asked) -> Batch | None:
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
        calls.require_no_draws(found[0])
        return batch if isinstance(found[1], Tensor) and found[1].numel() == 1 else None
    return None


class _Calls:
    """Calls of model and loss with copies of all that they are given."""

    def __init__(self, objective: Asked, batch: Batch) -> None:
        self._objective, self._batch = objective, batch
        self._leaves = tuple(leaf.detach().clone().requires_grad_() for leaf in objective.leaves())
        self._given = copied((batch.inputs, batch.targets))
        own = zip(objective.names, self._leaves, objective.leaves(), strict=True)
        fixed = ((name, p, p.detach().clone()) for name, p in objective.fixed.items())
        self._known = [(name, p, p._version, before) for name, p, before in (*own, *fixed)]

    def results(self) -> tuple[Tensor, Any]:
        """Outputs and loss."""
        inputs, targets = self._given
        with as_found(self._objective.model, self._objective.training):
            outputs = self._objective.outputs(self._leaves, inputs)
            return outputs.detach().clone(), loss_of(self._objective.criterion, outputs, targets)

    def require_unchanged(self) -> None:
        """Refuse what was written into."""
        for name, p, version, values in self._known:
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

    def require_no_draws(self, outputs: Tensor) -> None:
        """Refuse a loss that draws at random: generators are put back after a pass, so that it would be one draw."""
        losses, targets = list[Any](), self._given[1]
        with suppress(Exception), as_found(self._objective.model, self._objective.training):
            for _ in range(2):
                own = outputs.clone().requires_grad_(outputs.is_floating_point())
                losses.append(loss_of(self._objective.criterion, own, targets))
        told = len(losses) == 2 and all(isinstance(loss, Tensor) for loss in losses)
        if told and not (_equal(*losses) or alike(*losses)):
            rule = "loss must give the same for the same outputs, got something else in a second call"
            raise ValueError(f"{rule}: draw what is random before, and put it into the data")


def _equal(one: Tensor, other: Tensor) -> bool:
    """To the last bit, NaN included."""
    if torch.equal(one, other):
        return True
    return one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())


# --- the graph ----------------------------------------------------------------------------------------------------


def _differentiated(objective: Asked, batch: Batch) -> tuple[Sequence[Tensor | None], Tensor, bool]:
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


def _backward(objective: Asked, batch: Batch, *, again: bool) -> tuple[Sequence[Tensor | None], Tensor, bool]:
    """Gradient and loss, and whether a module was called on the way back."""
    leaves = objective.leaves()
    with ExitStack() as stack:
        stack.enter_context(as_found(objective.model, objective.training))
        loss = loss_of(objective.criterion, objective.outputs(leaves, batch.inputs), batch.targets)
        if not loss.requires_grad:
            rule = "loss must depend on the parameters, got one that does not"
            raise ValueError(f"{rule}: look for no_grad and detach")
        _require_precision(loss)  # first: some versions of torch cannot go back through it
        stack.enter_context(objective.standing(leaves, needed=again))
        calls = stack.enter_context(_calls(objective))
        gradient = torch.autograd.grad(loss.reshape(()), leaves, create_graph=True, allow_unused=True)
    return gradient, loss, bool(calls)


@contextmanager
def _calls(objective: Asked) -> Iterator[list[str]]:
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


def _require_own(objective: Asked, loss: Tensor, gradient: Sequence[Tensor | None]) -> None:
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
        raise ValueError(
            f"{rule}, got a function of torch marked once_differentiable: see simulate.difference_products"
        )


def _require_precision(loss: Tensor) -> None:
    halves = {m.dtype for node in behind([loss]) for m in node._input_metadata if m.dtype in HALVES}
    if halves:
        got = ", ".join(sorted(str(dtype) for dtype in halves))
        raise ValueError(
            f"model and loss must compute in single or double precision, got {got}: look for autocast and half"
        )


def _require_own_derivatives(objective: Asked, wrong: set[int]) -> None:
    if not wrong:
        return
    names = ", ".join(repr(objective.names[i - 1]) for i in sorted(wrong) if i)
    raise ValueError(
        "model and loss must have the derivatives of their own values, got others"
        + (f" by {names}" if names else "")
        + ": look for detach, no_grad, rounding, hooks, and functions with a backward of their own"
    )
