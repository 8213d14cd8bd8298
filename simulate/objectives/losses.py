"""Loss functions: names and defaults, denominators of means, shapes of targets, and losses of whole batches.

A loss is `loss(outputs, targets)`, as in torch, or `loss(model, batch)` if batches are not pairs or the loss needs the
whole batch: see `BatchLoss`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from simulate._checks import did_you_mean, one_of, require_finite
from simulate.objectives.batches import is_batch, placed, repeatable, rows, tensors

Reduction = Literal["mean", "sum"]
Loss = Callable[[Tensor, Any], Tensor]
Count = Callable[[Any], float]

IGNORED = -100
"""Label that torch's cross-entropy ignores by default."""

LOSSES: Mapping[str, Callable[[], nn.Module]] = {
    "cross-entropy": nn.CrossEntropyLoss,
    "mse": nn.MSELoss,
    "bce": nn.BCEWithLogitsLoss,
}

_FUNCTIONS = (functional.cross_entropy, functional.nll_loss)
"""Losses of classes that are functions, not modules."""


# --- by name, by default, of whole batches -----------------------------------------------------------------------


def default_loss(targets: Any) -> nn.Module:
    """Return cross-entropy for integer targets, squared error for floats.

    Examples
    --------
    >>> default_loss(torch.tensor([0, 2])), default_loss(torch.tensor([0.5]))
    (CrossEntropyLoss(), MSELoss())
    """
    kind = getattr(targets, "dtype", None)
    floating = kind.is_floating_point if isinstance(kind, torch.dtype) else np.issubdtype(kind, np.floating)
    return nn.MSELoss() if floating else nn.CrossEntropyLoss()


def named_loss(loss: Any) -> Any:
    """Return the loss of this name; return a function as it is.

    Raises
    ------
    ValueError
        If `loss` is neither.

    Examples
    --------
    >>> named_loss("mse")
    MSELoss()
    """
    if isinstance(loss, str):
        if loss not in LOSSES:
            near = did_you_mean(loss, LOSSES)
            raise ValueError(f"loss must be one of {', '.join(LOSSES)} or a function, got {loss!r}{near}")
        return LOSSES[loss]()
    if inspect.isclass(loss) and issubclass(loss, nn.Module):
        raise ValueError(
            f"loss must be a function of outputs and targets, got a class; write {loss.__name__}()"
        )
    if not callable(loss):
        raise ValueError(f"loss must be a function of outputs and targets, got {type(loss).__name__}")
    return loss


def require_order(call: str, model: Any, data: Any, loss: Any) -> None:
    """Refuse model, data and loss in a wrong order, naming the intended call.

    Examples
    --------
    >>> require_order("measure", nn.Linear(1, 1), nn.MSELoss(), (torch.ones(2, 1), torch.ones(2, 1)))
    Traceback (most recent call last):
    ValueError: data must come before the loss, got MSELoss: call measure(model, data, loss)
    """
    if not callable(model):
        raise ValueError(f"model must come first, got {type(model).__name__}: call {call}(model, data, loss)")
    if isinstance(data, nn.Module) or (inspect.isroutine(data) and not inspect.isgenerator(data)):
        got = getattr(data, "__name__", type(data).__name__)
        raise ValueError(f"data must come before the loss, got {got}: call {call}(model, data, loss)")
    if loss is not None and not isinstance(loss, str) and not callable(loss):
        raise ValueError(
            f"loss must be a function of outputs and targets, got {type(loss).__name__}: call {call}(model, (inputs,"
            " targets), loss)"
        )


def loss_of(loss: Any, outputs: Tensor, targets: Any) -> Any:
    """Return the result of a loss function; explain how a loss of model and batch must name its first argument.

    Raises
    ------
    ValueError
        If the loss calls the outputs as a model.

    Examples
    --------
    >>> loss_of(lambda net_, batch: net_(batch), torch.ones(2), torch.ones(2))
    Traceback (most recent call last):
    ValueError: loss must take (outputs, targets), got one that calls the first as a model: name it model for ...
    """
    try:
        return loss(outputs, targets)
    except TypeError as error:
        if "'Tensor' object is not callable" not in str(error):
            raise
        raise ValueError(
            "loss must take (outputs, targets), got one that calls the first as a model: name it model for"
            " loss(model, batch)"
        ) from error


def one_number(loss: Any) -> Tensor:
    """Return the loss of a batch without axes; refuse all but one real number."""
    if not isinstance(loss, Tensor) or loss.numel() != 1 or loss.is_complex():
        got = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
        raise ValueError(f"loss must be one number for a batch, got {got}; reduce it to its mean or sum")
    return loss.reshape(())


_MODEL_NAMES = ("model", "net", "network", "module")
"""Names by which the first argument of a loss is recognised as the model."""


class BatchLoss:
    """A loss `function(model, batch)` as a function of the outputs of the model and of the batch.

    The function is called twice for a batch: first to find the arguments of the model, then with the outputs in place
    of the model. So it must call the model once, use one tensor that the model returns, and not use the parameters in
    any other way.

    Parameters
    ----------
    function
        Returns one number for a model and a batch.
    model
        The model, whose attributes the function may use.

    Examples
    --------
    >>> net, batch = nn.Linear(3, 2), (torch.ones(4, 3), torch.ones(4), torch.zeros(4, 2))
    >>> def weighted(model, batch):
    ...     x, weight, y = batch
    ...     return (weight * (model(x) - y).square().sum(1)).mean()
    >>> BatchLoss.takes_model(weighted)
    True
    >>> loss = BatchLoss(weighted, net)
    >>> bool(loss(net(loss.inputs(batch)), batch) == weighted(net, batch))
    True
    """

    def __init__(self, function: Callable[[Any, Any], Tensor], model: nn.Module) -> None:
        self.function, self.model = function, model
        self._field: str | int | None = None
        self.reduction = getattr(function, "reduction", "mean")
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    @staticmethod
    def takes_model(loss: Any) -> bool:
        """Return whether the first argument of a function or module is the model, by its name or annotation."""
        if loss is None or isinstance(loss, str | BatchLoss):
            return False
        try:
            called = loss.forward if isinstance(loss, nn.Module) else loss
            first = next(iter(inspect.signature(called).parameters.values()), None)
        except (TypeError, ValueError):  # written in C, say
            return False
        if first is None:
            return False
        kind = first.annotation
        return (
            first.name in _MODEL_NAMES or kind is nn.Module or str(kind) in ("nn.Module", "torch.nn.Module")
        )

    def look_at(self, parts: Mapping[Any, Any], outputs: Tensor) -> None:
        """Remember the name or number of the output that the loss is differentiated by."""
        self._field = next((name for name, part in parts.items() if part is outputs), None)

    def inputs(self, batch: Any) -> Any:
        """Return the arguments of the model: one argument, a tuple of several, or a mapping of named ones.

        Raises
        ------
        ValueError
            If the function returns without calling the model, or calls it within no_grad.
        """
        try:
            with torch.enable_grad(), _explain_misuse(self.__name__):
                self.function(_ModelStandIn(self.model, _raise_call), _by_attribute(batch))
        except _CalledError as call:
            return _as_inputs(self.model, *call.args)
        raise ValueError(f"loss must call the model, got {self.__name__} that returns without calling it")

    def __call__(self, outputs: Tensor, batch: Any) -> Tensor:
        """Return the loss of a batch for these outputs of the model."""
        returned = outputs if self._field is None else _Returned(self._field, outputs)
        model = _ModelStandIn(self.model, lambda *_: returned)
        with _explain_misuse(self.__name__):
            loss = self.function(model, _by_attribute(batch))
        if model.calls != 1:
            raise ValueError(
                f"loss must call the model once for a batch, got {model.calls} calls in {self.__name__}"
            )
        return loss

    def pairs(self, data: Any, like: Tensor, chunk: int | None = None) -> Iterable[tuple[Any, Any]]:
        """Return batches as pairs (inputs of the model, batch), on the device and in the type of `like`."""
        return _Pairs(repeatable([data] if is_batch(data) else data, chunk), self, like)


@dataclass(eq=False)
class _Pairs:
    """Iterable of pairs that are computed again in every pass."""

    data: Any
    _loss: BatchLoss
    _like: Tensor

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for place, item in enumerate(self.data):
            batch = placed(item, self._like)
            inputs = placed(self._loss.inputs(batch), self._like)
            # noise in the inputs would be frozen to one draw, so two calls are compared to refuse it
            if not place and not _equal(inputs, placed(self._loss.inputs(batch), self._like)):
                raise ValueError(
                    "loss must call the model with the same inputs each time, got others at a second call: draw what"
                    " is random before"
                )
            yield inputs, batch


def _equal(one: Any, other: Any) -> bool:
    pairs = zip(tensors(one), tensors(other), strict=True)
    # NaN is not equal to itself
    return all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs)


class _CalledError(BaseException):
    """Carries the arguments of a call of the model; not an `Exception`, which the function may catch."""


class _ModelStandIn:
    """Stand-in for a model that is passed to a loss function; its attributes are those of the model."""

    def __init__(self, model: nn.Module, answer: Callable[..., Any]) -> None:
        self._model, self._answer, self.calls = model, answer, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        self.calls += 1
        return self._answer(args, keywords)


def _raise_call(args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    if not torch.is_grad_enabled():
        raise ValueError("loss must call the model where gradients are recorded, got a call within no_grad")
    raise _CalledError(args, keywords)


@contextmanager
def _explain_misuse(name: str) -> Iterator[None]:
    """Explain an error of a function that uses the stand-in other than by calling it."""
    try:
        yield
    except TypeError as error:
        if _ModelStandIn.__name__ not in str(error):
            raise
        raise ValueError(
            f"loss must use the model only by calling it, got {name} that does otherwise: {error}; if it is a function"
            " of outputs and targets, name its first argument outputs"
        ) from error


@dataclass(eq=False)
class _Returned:
    """Stand-in for several outputs of a model: only one is given, since the others would silently be constants."""

    _field: str | int
    _outputs: Tensor

    def __getitem__(self, name: Any) -> Tensor:
        if name != self._field:
            raise ValueError(
                f"loss must use output {self._field!r} of the model, got one that uses {name!r}: name that by"
                " field=, or leave loss out where the model computes its own"
            )
        return self._outputs

    def __getattr__(self, name: str) -> Tensor:
        return self[name]

    def __iter__(self) -> Iterator[Any]:
        raise ValueError(
            f"loss must use only output {self._field!r} of the model, got one that uses all outputs"
        )


class _ByAttribute(dict[str, Any]):
    """A mapping whose entries are also attributes, as in a batch of transformers."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def _by_attribute(batch: Any) -> Any:
    return _ByAttribute(batch) if isinstance(batch, Mapping) else batch


def _as_inputs(model: nn.Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    if keywords:
        signature = inspect.signature(model.forward)
        bound = dict(signature.bind(*args, **keywords).arguments)
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                bound |= bound.pop(name, {})
            elif parameter.kind is parameter.VAR_POSITIONAL and name in bound:
                raise ValueError(
                    f"loss must call the model with arguments by name, got {len(args)} without a name: its forward"
                    f" takes any number as *{name}"
                )
        return bound
    return args[0] if len(args) == 1 and not isinstance(args[0], tuple) else args


# --- denominators of means ----------------------------------------------------------------------------------------


def reduction_of(loss: Loss, reduction: str | None) -> str:
    """Return "mean" or "sum": the given reduction, else that of the loss function.

    Raises
    ------
    ValueError
        If it is neither.
    """
    found = getattr(loss, "reduction", "mean") if reduction is None else reduction
    # torch's name for the mean over samples of a divergence
    found = "mean" if found == "batchmean" else found
    one_of("reduction", found, ("mean", "sum"))
    return found


def of_classes(loss: Loss) -> bool:
    """Return whether a loss is torch's cross-entropy or log-likelihood.

    Examples
    --------
    >>> of_classes(nn.CrossEntropyLoss()), of_classes(functional.cross_entropy), of_classes(nn.MSELoss())
    (True, True, False)
    """
    return isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss) or any(loss is known for known in _FUNCTIONS)


_BY_ELEMENT = (
    (nn.MSELoss, functional.mse_loss),
    (nn.L1Loss, functional.l1_loss),
    (nn.SmoothL1Loss, functional.smooth_l1_loss),
    (nn.HuberLoss, functional.huber_loss),
    (nn.BCEWithLogitsLoss, functional.binary_cross_entropy_with_logits),
)
"""Losses that compare outputs with targets element by element, and would broadcast one over the other."""


def by_element(loss: Loss) -> bool:
    """Return whether a loss is one of torch's that compares outputs with targets of the same shape.

    Examples
    --------
    >>> by_element(nn.MSELoss()), by_element(functional.huber_loss), by_element(nn.CrossEntropyLoss())
    (True, True, False)
    """
    return any(isinstance(loss, kind) or loss is function for kind, function in _BY_ELEMENT)


def mean_denominator(loss: Loss) -> Count:
    """Return the denominator of the mean over a batch, up to a constant factor."""
    if not of_classes(loss):
        return rows
    weight, ignored = getattr(loss, "weight", None), getattr(loss, "ignore_index", IGNORED)

    def count(targets: Any) -> float:
        if torch.is_floating_point(targets):  # probabilities: torch divides by their number
            if targets.ndim < 2:
                raise ValueError(
                    f"targets of a cross-entropy must be whole numbers, or shares of the classes along axis 1, got"
                    f" {targets.dtype} of shape {tuple(targets.shape)}"
                )
            return float(targets.numel() // targets.shape[1])
        counted = targets[targets != ignored]
        return float(counted.numel()) if weight is None else float(weight[counted].sum())

    return count


# --- targets in the shape of the outputs -------------------------------------------------------------------------


def fitting(loss: Any, outputs: tuple[int, ...], targets: Tensor, dtype: torch.dtype) -> Tensor:
    """Return targets in the shape and type that a torch loss needs for these outputs; unchanged for other losses."""
    require_finite("targets", targets)
    if isinstance(loss, nn.CrossEntropyLoss):
        return _classes(loss, outputs, targets)
    if not isinstance(loss, nn.MSELoss | nn.BCEWithLogitsLoss):
        single = by_element(loss) and math.prod(outputs) == 1 == math.prod(targets.shape[1:])
        return targets.reshape(len(targets), *outputs) if single else targets
    values = shaped(targets.to(dtype), outputs, _hint(targets, outputs))
    if isinstance(loss, nn.BCEWithLogitsLoss) and not bool(((values >= 0) & (values <= 1)).all()):
        raise ValueError(f"targets must be 0..1 for bce, got {values.min():g}..{values.max():g}")
    return values


def _hint(targets: Tensor, outputs: tuple[int, ...]) -> str:
    """Return advice for targets that may have been meant as classes; empty for others."""
    alike = tuple(targets.shape[1:]) == outputs[1:] and bool((targets == targets.round()).all())
    return "; if they are classes, save them as integers (y.long()) and take cross-entropy" * alike


def _classes(loss: nn.CrossEntropyLoss, outputs: tuple[int, ...], targets: Tensor) -> Tensor:
    if not outputs or outputs[0] < 2:
        raise ValueError(
            f"cross-entropy must have at least 2 outputs, one for each class, got {outputs}; use bce for one"
        )
    if targets.is_floating_point():  # probabilities
        return shaped(targets, outputs, _hint(targets, outputs))
    labels = shaped(
        targets,
        outputs[1:],
        "; if they are shares of the classes, save them as floats (y.float())"
        * (targets.shape[1:] == outputs),
    )
    counted = labels[labels != loss.ignore_index]
    if len(counted) and not 0 <= int(counted.min()) <= int(counted.max()) < outputs[0]:
        got = f"{int(counted.min())}..{int(counted.max())}"
        raise ValueError(f"labels must be 0..{outputs[0] - 1} for {outputs[0]} outputs, got {got}")
    return labels


def shaped(targets: Tensor, shape: tuple[int, ...], hint: str = "") -> Tensor:
    """Reshape targets if only axes of length 1 differ, which torch would broadcast; refuse other shapes."""
    own = tuple(targets.shape[1:])
    if [n for n in own if n != 1] != [n for n in shape if n != 1]:
        raise ValueError(
            f"targets of one sample must have shape {shape} to match the outputs, got {own}{hint}"
        )
    return targets.reshape(len(targets), *shape)
