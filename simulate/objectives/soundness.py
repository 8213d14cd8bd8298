"""Checks that torch's derivatives of a loss are right, made once on a few samples.

Derivatives are silently wrong if a model or loss changes its own parameters, keeps state from call to call, uses
parameters other than those it is given, or has parts that torch takes for constants or differentiates wrongly. If the
cause can be seen, it is named in the error. Otherwise derivatives are compared with finite differences of value and
gradient along a few directions, wherever the differences are conclusive.

| refused | detected by |
|---|---|
| changes of parameters, inputs or targets; results that differ in a second call | a second call |
| losses that draw at random | two calls in a row |
| parameters used through a closure | leaves of the graph that are not among those given |
| functions that can be differentiated only once | nodes of the graph of the gradient |
| computing in half precision | types in the graph |
| detached parts, derivatives changed by hooks or by user-defined functions | finite differences |

Networks of `simulate.networks` with an unmodified loss of torch are trusted without a check.

Along a line through the parameters, in double precision, the loss has a slope, and so has each part of its gradient.
Finite differences estimate both. A difference counts as a contradiction only if steps to either side, and of two sizes,
agree much better with each other than with the derivative, and better than rounding explains. At kinks, in saturation,
or where the loss curves within the smallest step, differences are inconclusive and nothing is refused.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from simulate import _memory
from simulate.activations import ACTIVATIONS
from simulate.networks import LeNet5, Mlp
from simulate.objectives.batches import Batch, copied, placed, tensors
from simulate.objectives.derivatives import alike, graph_nodes, in_graph, normal, slopes
from simulate.objectives.fingerprints import TorchCalls, fingerprint, hooked, remembered
from simulate.objectives.loss_function import LossFunction
from simulate.objectives.losses import loss_of
from simulate.objectives.parameters import HALVES, Leaves, doubled

_PARTS = {
    *(Mlp, LeNet5, nn.Sequential, nn.ModuleList, nn.Linear, nn.Conv2d, nn.ReLU, nn.MaxPool2d, nn.AvgPool2d),
    *(nn.Flatten, nn.CrossEntropyLoss, nn.MSELoss),
}
_ACTIVATIONS = tuple(known.function for known in ACTIVATIONS.values())
_CUSTOM_HOOKS = "tensors for the backward pass are kept in a way of their own"


_SOUND: dict[Hashable, dict[str, bool]] = {}
"""Keys of losses whose derivatives agreed with differences, each with the products for which both modes agreed too."""


def runs_again(objective: LossFunction) -> bool:
    """Refuse unsound derivatives; return whether the backward pass may call parts of the model again (checkpointing).

    What was found right holds for all objectives with its key, see `simulate.objectives.fingerprints`.

    Raises
    ------
    ValueError
        If torch's derivatives of the loss are wrong, naming the cause.

    Examples
    --------
    >>> from simulate.objectives import Objective
    >>> model = torch.nn.Linear(3, 2)
    >>> penalised = lambda outputs, targets: (outputs - targets).square().mean() + model.weight.square().sum()
    >>> runs_again(Objective(model, (torch.ones(4, 3), torch.zeros(4, 2)), penalised))
    Traceback (most recent call last):
    ValueError: model and loss must use the parameters only by calling the model, got 'weight' ...
    """
    if trusted(objective):
        return False
    key = key_of(objective)
    if key not in _SOUND:
        again, sure = _check_derivatives(objective)
        if again or not sure or key is None:
            return again
    objective.proven = remembered(_SOUND, key)
    return False


def key_of(objective: LossFunction) -> Hashable | None:
    """Return the key of model, loss and mode, see `simulate.objectives.fingerprints`; None if there is none."""
    known = objective.answers
    if "key" not in known:
        known["key"] = None
        guards = objective.own_mode(), _require_grad(objective.originals)
        if not objective.ranks.several:
            # user code may raise anything, and write into what it is given
            with suppress(Exception), guards[0], guards[1], torch.enable_grad(), _plain_saving():
                batch, leaves = objective.few(), _copied_leaves(objective)
                given, targets = copied((batch.inputs, batch.targets))
                with TorchCalls() as calls:
                    loss = loss_of(objective.criterion, objective.outputs(leaves, given), targets)
                own = fingerprint(objective.definition, objective.criterion, loss, leaves, (given, targets))
                known["key"] = own and (
                    own,
                    *calls.made,
                    objective.names,
                    objective.reduction,
                    objective.training,
                )
    return known["key"]


def _copied_leaves(objective: LossFunction) -> Leaves:
    return tuple(leaf.detach().clone().requires_grad_() for leaf in objective.leaves)


def _plain_saving() -> AbstractContextManager[Any]:
    """Raise where tensors are saved for the backward pass in a user-defined way, as by a checkpoint."""
    return torch.autograd.graph.disable_saved_tensors_hooks(_CUSTOM_HOOKS)


def _check_derivatives(objective: LossFunction) -> tuple[bool, bool]:
    """Return whether parts run again in the backward pass, and whether derivatives agree beyond doubt."""
    with _require_grad(objective.originals), torch.enable_grad():
        batch = _tested_batch(objective)
        if batch is None:
            return False, False  # the call fails later, where the user sees its error
        gradient, loss, again = _gradient_and_loss(objective, batch)
        _require_no_closure(objective, loss, gradient)
        # torch puts this node in place of the backward of a function marked once_differentiable
        if any(node.name().endswith("::Error") for node in graph_nodes(gradient)):
            raise ValueError(
                "model and loss must have second derivatives, got a function of torch marked once_differentiable:"
                " write its backward in differentiable functions of torch"
            )
        # frees the graph before differences make copies of the parameters
        del loss, gradient
        found, sure = _contradictions(objective, batch, again=again)
        wrong = sorted(found)
        names = ", ".join(repr(objective.names[i - 1]) for i in wrong if i)
        if wrong:
            raise ValueError(
                "derivatives of model and loss must agree with finite differences, got others"
                f"{' by ' * bool(names)}{names}: look for detach, no_grad, rounding, hooks, and functions with a"
                " backward of their own"
            )
    return again, sure


def require_unchanged(objective: LossFunction) -> None:
    """Refuse a model or loss that changes its arguments, or gives another result in a second call.

    Raises
    ------
    ValueError
        If so, naming what changed.

    Examples
    --------
    >>> from simulate.objectives import Objective
    >>> loss = lambda outputs, targets: outputs.mul_(2.0).square().mean() + targets.add_(1.0).sum()
    >>> require_unchanged(Objective(torch.nn.Linear(3, 2), (torch.ones(4, 3), torch.zeros(4, 2)), loss))
    Traceback (most recent call last):
    ValueError: model and loss must not write into inputs or targets, got a change; copy them first
    """
    if not trusted(objective):
        _tested_batch(objective)


# --- networks that need no check -------------------------------------------------------------------------------------


def mean_output(outputs: Tensor, _: Any) -> Tensor:
    """Return the mean output: a loss for checks of the model alone."""
    return outputs.mean()


def trusted(objective: LossFunction) -> bool:
    """Return whether the model is from `simulate.networks`, the loss from torch, and neither was modified.

    Thousands of such networks are measured, and the checks would take longer than many of the measurements.
    """
    model, loss = objective.model, objective.criterion
    if not isinstance(model, Mlp | LeNet5) or torch.is_autocast_enabled(objective.device.type):
        return False
    losses = (functional.cross_entropy, functional.mse_loss, mean_output)
    parts = list(model.modules()) if any(loss is known for known in losses) else [*model.modules(), loss]
    return all(_is_unmodified(part) for part in parts)


def _is_unmodified(part: Any) -> bool:
    """Return whether a module is of a known kind, without added hooks, buffers, functions or tensors."""
    if type(part) not in _PARTS or hooked(part):
        return False
    own = [v for v in vars(part).values() if isinstance(v, Tensor) or (callable(v) and v not in _ACTIVATIONS)]
    held = [t for t in (*part._parameters.values(), *part._buffers.values()) if t is not None]
    return not own and all(type(t) is nn.Parameter for t in held)


# --- calls --------------------------------------------------------------------------------------------------------


def _tested_batch(objective: LossFunction) -> Batch | None:
    """Return a few samples, or a whole batch if model or loss need one; None if neither runs."""
    for whole in (False, True):
        batch = objective.few(whole=whole)
        loss = _loss_twice(objective, batch)
        if loss is not None:
            return batch if isinstance(loss[0], Tensor) and loss[0].numel() == 1 else None
        objective.takes_few = False  # samples may have to come in pairs, say
    return None


def _loss_twice(objective: LossFunction, batch: Batch) -> tuple[Any] | None:
    """Return the loss after two calls on copies of the arguments; refuse side effects. None if the first call fails."""
    leaves = _copied_leaves(objective)
    copies = copied((batch.inputs, batch.targets))
    own = zip(objective.names, leaves, objective.leaves, strict=True)
    fixed = ((name, p, p.detach().clone()) for name, p in objective.fixed.items())
    known = [(name, p, p._version, before) for name, p, before in (*own, *fixed)]

    def results() -> tuple[Tensor, Any]:
        with objective.own_mode():
            outputs = objective.outputs(leaves, copies[0])
            return outputs.detach().clone(), loss_of(objective.criterion, outputs, copies[1])

    def require_unchanged() -> None:
        for name, p, version, values in known:
            if p._version != version or not _equal(p, values):
                raise ValueError(
                    f"model must not write into its parameters when it is called, got {name!r} written"
                )
        pairs = zip(tensors(copies), tensors((batch.inputs, batch.targets)), strict=True)
        if not all(_equal(after, before) for after, before in pairs):
            raise ValueError(
                "model and loss must not write into inputs or targets, got a change; copy them first"
            )

    found = None
    with suppress(Exception):  # user code may raise anything
        found = results()
    if found is None:
        return None
    require_unchanged()
    for what, first, second in zip(("model", "loss"), found, results(), strict=True):
        if isinstance(first, Tensor) and not (_equal(second, first) or alike(second, first)):
            raise ValueError(
                f"{what} must give the same for the same arguments, got another result in a second call:"
                " look for state that it keeps or random numbers that it draws"
            )
    require_unchanged()
    # generators are restored after a pass, so a random loss repeats from pass to pass: two calls in one pass tell
    losses = list[Any]()
    with suppress(Exception), objective.own_mode():
        for _ in range(2):
            outputs = found[0].clone().requires_grad_(found[0].is_floating_point())
            losses.append(loss_of(objective.criterion, outputs, copies[1]))
    comparable = len(losses) == 2 and all(isinstance(loss, Tensor) for loss in losses)
    if comparable and not (_equal(*losses) or alike(*losses)):
        raise ValueError(
            "loss must give the same for the same outputs, got another result in a second call:"
            " draw what is random before"
        )
    return (found[1],)


def _equal(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors are equal to the last bit, NaN included."""
    if torch.equal(one, other):
        return True
    return one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())


# --- the graph ----------------------------------------------------------------------------------------------------


def _gradient_and_loss(objective: LossFunction, batch: Batch) -> tuple[Sequence[Tensor | None], Tensor, bool]:
    """Return gradient and loss with their graphs, and whether the backward pass may call the model again."""
    try:
        with _plain_saving():
            gradient, loss, called = _backward(objective, batch, again=False)
            if not called:
                return gradient, loss, False
    except RuntimeError as error:
        if _CUSTOM_HOOKS not in str(error):
            raise
    gradient, loss, _ = _backward(objective, batch, again=True)
    return gradient, loss, True


def _backward(
    objective: LossFunction, batch: Batch, *, again: bool
) -> tuple[Sequence[Tensor | None], Tensor, bool]:
    """Return gradient and loss, and whether the backward pass called a module."""
    leaves = objective.leaves
    with ExitStack() as stack:
        stack.enter_context(objective.own_mode())
        loss = loss_of(objective.criterion, objective.outputs(leaves, batch.inputs), batch.targets)
        if not loss.requires_grad:
            raise ValueError(
                "loss must depend on the parameters, got one that does not: look for no_grad and detach"
            )
        # checked before the backward pass, which fails in half precision in some versions of torch
        halves = {m.dtype for node in graph_nodes([loss]) for m in node._input_metadata if m.dtype in HALVES}
        if halves:
            raise ValueError(
                "model and loss must compute in single or double precision, got"
                f" {', '.join(sorted(map(str, halves)))}: look for autocast and half"
            )
        stack.enter_context(objective.standing(leaves, needed=again))
        calls = list[Any]()
        for part in objective.model.modules() if objective.model is not None else ():
            # a module called during the backward pass is run again, as by a checkpoint
            stack.callback(part.register_forward_pre_hook(lambda called, _: calls.append(called)).remove)
        gradient = torch.autograd.grad(loss.reshape(()), leaves, create_graph=True, allow_unused=True)
    return gradient, loss, bool(calls)


@contextmanager
def _require_grad(originals: Sequence[tuple[str, Tensor]]) -> Iterator[None]:
    """Let these tensors require gradients, so that the graph shows where they are used."""
    silent = [t for _, t in originals if not t.requires_grad and not t.is_inference()]
    try:
        for tensor in silent:
            tensor.requires_grad_()
        yield
    finally:
        for tensor in silent:
            tensor.requires_grad_(False)


def _require_no_closure(objective: LossFunction, loss: Tensor, gradient: Sequence[Tensor | None]) -> None:
    """Refuse a loss that uses the original parameters instead of the copies it is given, say in a penalty."""
    names, originals = zip(*objective.originals, strict=True)
    for name, used in zip(names, in_graph([loss, *gradient], originals), strict=True):
        if used:
            raise ValueError(
                "model and loss must use the parameters only by calling the model,"
                f" got {name!r} used elsewhere, as in a penalty on the weights; leave that out"
            )
    if all(g is None for g in gradient):
        raise ValueError("loss must depend on the parameters by functions with derivatives, got none")


# --- differences ---------------------------------------------------------------------------------------------------

_TOLERANCE = 1e-3
"""Relative distance below which a difference and a derivative agree."""
_STEPS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
"""Step lengths of differences in double precision, relative to the parameters."""
_FIRST = 1e-5
"""One-sided step of the first, quick test: neither rounding nor curvature matters much at this length."""
_SURE = 10.0
"""Factor by which a contradiction must exceed the uncertainty of a difference."""
_COPIES = 16
"""Copies of the parameters, in double precision, that differences hold in memory."""
_DIRECTIONS = 3
"""Directions along all of which differences must contradict: at a kink both sides may agree along one by chance."""
_ROUNDINGS = 1e3
"""Largest rounding error, in units of the last place, of a loss whose sum alone is rounded."""


def _contradictions(objective: LossFunction, batch: Batch, *, again: bool) -> tuple[set[int], bool]:
    """Return where differences contradict the derivatives: 0 for the loss, i + 1 for part i of its gradient.

    With it, whether they agree beyond doubt: everywhere, and with no part of the gradient that is zero.

    Parameters
    ----------
    objective
        Loss of a model whose calls are deterministic.
    batch
        Samples on which model and loss run.
    again
        Whether parts of the model may run again in a backward pass.
    """
    if not _memory.is_free(_COPIES * 8 * objective.dim, objective.device):
        return set(), False
    try:
        found, sure = _contradictions_along(_Line(objective, batch, 0, again=again))
        for seed in range(1, _DIRECTIONS):
            found = found and found & _contradictions_along(_Line(objective, batch, seed, again=again))[0]
    except Exception:  # user code may not run in double precision, or not at other parameters
        return set(), False
    return found, sure


class _Difference(NamedTuple):
    """A slope estimated by differences.

    Attributes
    ----------
    apart
        Distance of the forward from the backward difference.
    noise
        Bound of the error from a few roundings of the parameters, or of the largest part of the gradient.
    lost
        Error from rounding of its own part.
    """

    slope: Tensor
    apart: float
    noise: float
    lost: float


class _Line:
    """The loss and the parts of its gradient on a line through the parameters, in double precision."""

    def __init__(self, objective: LossFunction, batch: Batch, seed: int, *, again: bool) -> None:
        self._objective, self._again = objective, again
        self._start = tuple(leaf.detach().double() for leaf in objective.leaves)
        self._inputs, self._targets = (placed(p, self._start[0]) for p in (batch.inputs, batch.targets))
        self._criterion = doubled(objective.criterion)
        # steps scale with the typical entry of each parameter; with that of all for one that is zero, with 1 if all are
        squares, counts = [float(p.norm()) ** 2 for p in self._start], [p.numel() for p in self._start]
        typical = math.sqrt(sum(squares) / sum(counts)) or 1.0
        sizes = [math.sqrt(s / n) if s else typical for s, n in zip(squares, counts, strict=True)]
        self._along = tuple(normal(p, seed=seed) * size for p, size in zip(self._start, sizes, strict=True))
        with objective.own_mode(), torch.enable_grad():
            outputs = objective.outputs(objective.leaves, batch.inputs)
        for place, row in padding_rows(outputs, objective.leaves):
            self._along[place][row] = 0.0

    def derivatives(self) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """Return loss and gradient at the parameters, and torch's derivatives of both along the line."""
        with self._guard(self._start) as leaves:
            loss = self._loss(leaves)
            gradient = slopes(loss, leaves, again=True)
            first = torch.stack([(g * v).sum() for g, v in zip(gradient, self._along, strict=True)]).sum()
            second = slopes(gradient, leaves, self._along)
        return [loss.detach(), *(g.detach() for g in gradient)], [first.detach(), *second]

    def at(self, step: float) -> Sequence[Tensor]:
        """Return the loss and the parts of its gradient after a step along the line."""
        ends = zip(self._start, self._along, strict=True)
        with self._guard([torch.add(p, v, alpha=step) for p, v in ends]) as leaves:
            loss = self._loss(leaves)
            return [loss.detach(), *slopes(loss, leaves)]

    def rounding(self, here: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return how far steps of a few roundings move loss and gradient."""
        step = 4 * torch.finfo(torch.float64).eps
        ends = zip(self.at(step), self.at(-step), here, strict=True)
        return [4 * torch.maximum((f - h).norm(), (b - h).norm()) for f, b, h in ends]

    def _loss(self, leaves: Sequence[Tensor]) -> Tensor:
        return self._criterion(self._objective.outputs(leaves, self._inputs), self._targets).reshape(())

    @contextmanager
    def _guard(self, values: Sequence[Tensor]) -> Iterator[Leaves]:
        leaves = tuple(v.detach().requires_grad_() for v in values)
        with ExitStack() as stack:
            stack.enter_context(self._objective.own_mode())
            stack.enter_context(self._objective.standing(leaves, needed=self._again))
            yield leaves


def _contradictions_along(line: _Line) -> tuple[set[int], bool]:
    """Return where differences along one line contradict the derivatives, and whether they agree beyond doubt."""
    here, expected = line.derivatives()
    quick = [(after - before).div_(_FIRST) for after, before in zip(line.at(_FIRST), here, strict=True)]
    if not all(bool(t.sum().isfinite()) for t in (*here, *expected, *quick)):
        return set(), False
    suspects = [i for i, s in enumerate(quick) if not _agree(s, expected[i])]
    everywhere = all(bool(part.any()) for part in here[1:])
    if not suspects:
        return set(), everywhere
    rounding, found = line.rounding(here), {i: list[_Difference]() for i in suspects}
    for step in _STEPS:
        after, before = line.at(step), line.at(-step)
        # bounds the error of a slope from a few roundings of the parameters, or of the parts of the gradient
        lost = [_ROUNDINGS * torch.finfo(h.dtype).eps * float(h.norm()) / step for h in here]
        for i in suspects:
            ahead, back = after[i] - here[i], here[i] - before[i]
            noise = max(float(rounding[i] / step), max(lost[1:]) if i else lost[0])
            slope, apart = (ahead + back) / (2 * step), float((ahead - back).norm() / step)
            found[i].append(_Difference(slope, apart, noise, lost[i]))
    wrong = {i for i in suspects if _contradicted(found[i], expected[i])}
    # steps may pass kinks, but then a smaller one agrees
    close = all(any(_agree(d.slope, expected[i]) for d in found[i]) for i in suspects)
    return wrong, everywhere and close and not wrong


def _contradicted(found: Sequence[_Difference], expected: Tensor) -> bool:
    """Return whether the two finest differences above rounding agree with each other and not with the derivative."""
    fine = [d for d in found if _SURE * d.noise < _gap(d.slope, expected)][:2]
    if len(fine) < 2:
        return False
    (one, *_), (other, *_) = fine
    doubt = max(_gap(one, other), *(d.apart for d in fine))
    settled = _SURE * doubt <= min(float(one.norm()), float(other.norm())) + max(d.lost for d in fine)
    off = min(_gap(one, expected), _gap(other, expected))
    return settled and off > _SURE * max(doubt, _TOLERANCE * _larger(other, expected))


def _agree(one: Tensor, other: Tensor) -> bool:
    return _gap(one, other) <= _TOLERANCE * _larger(one, other)


def _gap(one: Tensor, other: Tensor) -> float:
    return float((one - other).norm())


def _larger(one: Tensor, other: Tensor) -> float:
    return max(float(one.norm()), float(other.norm()))


# --- padding rows of embeddings --------------------------------------------------------------------------------

# Padding rows enter the outputs, but torch defines their derivative as zero (`padding_idx`). Reverse mode leaves them
# out. Forward mode and differences along a line would move them like all others, so no line moves them.
_NONE = (None, 2**64 - 1)
"""Values of a graph node without a padding row: -1 read as unsigned."""


def padding_rows(ends: Tensor, leaves: Sequence[Tensor]) -> list[tuple[int, int]]:
    """Return the place of each parameter that is an embedding with a padding row, and the number of that row.

    Raises
    ------
    ValueError
        If an embedding with a padding row looks up a computed tensor.

    Examples
    --------
    >>> words = torch.nn.Embedding(3, 2, padding_idx=1), torch.nn.Embedding(3, 2)
    >>> [padding_rows(embedding(torch.tensor([1, 2])), [embedding.weight]) for embedding in words]
    [[(0, 1)], []]
    """
    places = {id(leaf): i for i, leaf in enumerate(leaves)}
    padded = [n for n in graph_nodes([ends]) if getattr(n, "_saved_padding_idx", None) not in _NONE]
    found = [(getattr(n.next_functions[0][0], "variable", None), n._saved_padding_idx) for n in padded]
    if any(id(looked_up) not in places for looked_up, _ in found):
        raise ValueError(
            "an embedding with padding_idx must look up a parameter itself, got a computed matrix"
        )
    return [(places[id(looked_up)], row) for looked_up, row in found]
