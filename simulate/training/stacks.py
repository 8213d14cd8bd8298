"""Losses and gradients of many networks of one shape at once, each with its own parameters and batch.

The first axis of the parameters is the n networks; a batch is inputs (n, B, ...) and targets, classes (n, B) or numbers
(n, B, K). The gradients of a perceptron have a closed form, for small batches several times as fast as automatic
differentiation of any module.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from torch.nn import functional

from simulate import _checks
from simulate.objectives.parameters import require_ready
from simulate.training.rules import Memory, Rule

Parameters = Sequence[Tensor]


def _cross_entropies(outputs: Tensor, targets: Tensor) -> Tensor:
    flat = functional.cross_entropy(outputs.flatten(0, -2), targets.flatten(), reduction="none")
    return flat.view(targets.shape)


def _error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return outputs minus targets, with classes as one-hot vectors."""
    if targets.is_floating_point():
        return outputs - targets
    return outputs.scatter_add(-1, targets[..., None], outputs.new_full((), -1.0).expand(*targets.shape, 1))


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross-entropy": _cross_entropies,
    "squared error": lambda outputs, targets: _error(outputs, targets).square().sum(-1) / 2,
}
"""Functions of outputs (..., K) and targets to the loss of each sample (...); the squared error is |f - y|^2 / 2."""


class Stack(ABC):
    """Base class of stacks of networks, which `simulate.training.grids` trains.

    Parameters
    ----------
    loss
        One of `LOSSES`.

    Raises
    ------
    ValueError
        If it is none of them.
    """

    def __init__(self, loss: str) -> None:
        _checks.one_of("loss", loss, LOSSES)
        self.loss = loss

    @abstractmethod
    def outputs(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Return outputs (n, B, K) of parameters (n, ...) on inputs (n, B, ...)."""

    def losses_and_gradients(
        self, parameters: Parameters, inputs: Tensor, targets: Tensor
    ) -> tuple[Tensor, Parameters]:
        """Return mean losses over each batch, (n,), and their gradients, shaped like the parameters."""
        with torch.enable_grad():
            own = [p.detach().requires_grad_() for p in parameters]
            losses = self.losses(self.outputs(own, inputs), targets).mean(1)
            return losses.detach(), torch.autograd.grad(losses.sum(), own)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each sample, (n, B)."""
        return LOSSES[self.loss](outputs, targets)

    def descend_(self, parameters: Parameters, inputs: Tensor, targets: Tensor, rates: Tensor) -> Tensor:
        """Make a step of gradient descent in place at rates (n,); return the losses (n,) before it."""
        losses, gradients = self.losses_and_gradients(parameters, inputs, targets)
        Rule().step_(parameters, gradients, rates, Memory())
        return losses


_BACK: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "relu": lambda slope, signal: torch.ops.aten.threshold_backward(slope, signal, 0.0),
    "tanh": torch.ops.aten.tanh_backward,
    "linear": lambda slope, _: slope,
}
_FORTH: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu_,
    "tanh": torch.tanh_,
    "linear": lambda signal: signal,
}


class Perceptrons(Stack):
    """Stack of multi-layer perceptrons; parameters are weights (n, out, in), and biases (n, out) after each if any.

    Parameters
    ----------
    activation
        Activation between the layers: relu, tanh or linear.
    loss
        One of `LOSSES`.
    bias
        Whether there are biases.

    Raises
    ------
    ValueError
        If there is no such activation or loss.

    Examples
    --------
    One weight for each of two classes, at 0: the probabilities are a half, the gradient p - y times the input.

    >>> stack, weights = Perceptrons("relu", bias=False), [torch.zeros(1, 2, 1)]
    >>> losses, (gradient,) = stack.losses_and_gradients(weights, torch.ones(1, 1, 1), torch.tensor([[0]]))
    >>> losses, gradient.flatten()
    (tensor([0.6931]), tensor([-0.5000,  0.5000]))
    """

    def __init__(self, activation: str, loss: str = "cross-entropy", *, bias: bool = True) -> None:
        super().__init__(loss)
        _checks.one_of("activation", activation, _BACK)
        self.activation, self.bias = activation, bias

    def outputs(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Return outputs (n, B, K) of parameters (n, ...) on inputs (n, B, in)."""
        return self._signals(parameters, inputs)[-1]

    def losses_and_gradients(
        self, parameters: Parameters, inputs: Tensor, targets: Tensor
    ) -> tuple[Tensor, Parameters]:
        """Return mean losses over each batch, (n,), and their gradients, shaped like the parameters."""
        found = [torch.empty_like(p) for p in parameters]

        def note(i: int, slope: Tensor, signal: Tensor) -> None:
            torch.bmm(slope.mT, signal, out=found[i])
            if self.bias:
                torch.sum(slope, 1, out=found[i + 1])

        return self._pass_both_ways(parameters, inputs, targets, 1.0, note), found

    def descend_(self, parameters: Parameters, inputs: Tensor, targets: Tensor, rates: Tensor) -> Tensor:
        """Make a step of gradient descent in place without keeping a gradient; return the losses (n,) before it."""

        def move(i: int, slope: Tensor, signal: Tensor) -> None:
            parameters[i].baddbmm_(slope.mT, signal, alpha=-1)
            if self.bias:
                parameters[i + 1].sub_(slope.sum(1))

        return self._pass_both_ways(parameters, inputs, targets, rates[:, None, None], move)

    @torch.no_grad()
    def output_kernels(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Return J J' of the outputs of each network on its own inputs (n, N, in): (n, N, K, N, K).

        Examples
        --------
        A linear output: the inner products of the inputs.

        >>> stack, weights = Perceptrons("relu", bias=False), [torch.zeros(1, 1, 2)]
        >>> stack.output_kernels(weights, torch.tensor([[[3.0, 0.0], [1.0, 1.0]]]))[0, :, 0, :, 0]
        tensor([[9., 3.],
                [3., 2.]])
        """
        *signals, outputs = self._signals(parameters, inputs)
        slope = torch.eye(outputs.shape[2]).to(outputs).expand(*outputs.shape, -1)
        found, each = outputs.new_zeros(()), 1 + self.bias
        for layer in reversed(range(len(signals))):
            signal, flat = signals[layer], slope.flatten(1, 2)
            # a weight's slope is the product of a signal and a slope, and a bias sees a signal of 1
            seen = (signal @ signal.mT + float(self.bias))[:, :, None, :, None]
            found = found + seen * (flat @ flat.mT).view(*slope.shape[:3], *slope.shape[1:3])
            if layer:
                back = slope @ parameters[each * layer][:, None]
                slope = _BACK[self.activation](back, signal[:, :, None].expand_as(back))
        return found

    def _pass_both_ways(
        self,
        parameters: Parameters,
        inputs: Tensor,
        targets: Tensor,
        scale: float | Tensor,
        use: Callable[[int, Tensor, Tensor], None],
    ) -> Tensor:
        """Pass forward and backward; return the losses.

        `use` gets the number of each layer's first parameter, the layer's slopes times `scale`, and its inputs.
        """
        signals = self._signals(parameters, inputs)
        each_loss, slope = self._losses_and_slopes(signals.pop(), targets)
        losses, slope = each_loss.mean(1), slope.mul_(scale).div_(inputs.shape[1])
        each = 1 + self.bias
        for layer in reversed(range(len(signals))):
            weight = parameters[each * layer]
            # before `use`, which may move the weights
            below = _BACK[self.activation](slope @ weight, signals[layer]) if layer else slope
            use(each * layer, slope, signals[layer])
            slope = below
        return losses

    def _signals(self, parameters: Parameters, inputs: Tensor) -> list[Tensor]:
        """Return the inputs of every layer, then the outputs."""
        found, each = [inputs.flatten(2)], 1 + self.bias
        last = len(parameters) - each
        for i in range(0, len(parameters), each):
            weight = parameters[i].mT
            made = (
                torch.baddbmm(parameters[i + 1][:, None], found[-1], weight)
                if self.bias
                else found[-1] @ weight
            )
            found.append(made if i == last else _FORTH[self.activation](made))
        return found

    def _losses_and_slopes(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss of each sample, (n, B), and its gradient by the outputs, (n, B, K)."""
        if self.loss == "squared error":
            error = _error(outputs, targets)
            return error.square().sum(-1) / 2, error
        # over a last axis of ten numbers torch's softmax takes seven times as long as over another axis
        log_p, label = outputs.mT.log_softmax(1), targets[:, None]
        losses = -log_p.gather(1, label)[:, 0]
        return losses, log_p.exp_().scatter_add_(1, label, torch.full_like(losses, -1.0)[:, None]).mT


class ResidualPerceptrons(Stack):
    r"""Stack of residual perceptrons :math:`h_{l+1} = h_l + s W_l \phi(h_l)` between a linear input and output layer.

    Parameters are the input weights (n, M, in), the L branches W_l (n, L, M, M) and the output weights (n, K, M).

    Parameters
    ----------
    activation
        Activation of the branches: relu, tanh or linear.
    scale
        Factor s of every branch, such as :math:`1/\sqrt L`.
    loss
        One of `LOSSES`.

    Raises
    ------
    ValueError
        If there is no such activation or loss.

    Examples
    --------
    Two branches of weight 1 and scale 0.5 multiply a linear signal by 1.5 each.

    >>> stack = ResidualPerceptrons("linear", scale=0.5)
    >>> stack.outputs([torch.ones(1, 1, 1), torch.ones(1, 2, 1, 1), torch.ones(1, 1, 1)], torch.ones(1, 1, 1))
    tensor([[[2.2500]]])
    """

    def __init__(self, activation: str, loss: str = "cross-entropy", *, scale: float) -> None:
        super().__init__(loss)
        _checks.one_of("activation", activation, _BACK)
        self.activation, self.scale = activation, scale

    def outputs(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Return outputs (n, B, K) of parameters (n, ...) on inputs (n, B, in)."""
        into, branches, out = parameters
        signal = inputs.flatten(2) @ into.mT
        for branch in branches.unbind(1):
            # the activation works in place, and the signal is needed again
            signal = signal + self.scale * _FORTH[self.activation](signal.clone()) @ branch.mT
        return signal @ out.mT


class Modules(Stack):
    """Stack of any module, by `torch.func`; parameters are in the order of `named_parameters`.

    Parameters
    ----------
    model
        Gives the structure, the buffers, which do not change, and the mode.
    loss
        One of `LOSSES`.

    Raises
    ------
    ValueError
        If the loss is unknown, the module is not ready (lazy, compiled), or its training changes buffers, as batch
        normalisation with running statistics does.

    Examples
    --------
    >>> models = [nn.Linear(2, 3) for _ in range(4)]
    >>> stack = Modules(models[0])
    >>> parameters = stack.stacked(models)
    >>> losses, gradients = stack.losses_and_gradients(parameters, torch.ones(4, 5, 2), torch.zeros(4, 5).long())
    >>> losses.shape, [tuple(g.shape) for g in gradients]
    (torch.Size([4]), [(4, 3, 2), (4, 3)])
    """

    def __init__(self, model: nn.Module, loss: str = "cross-entropy") -> None:
        super().__init__(loss)
        require_ready(model)
        if model.training and any(getattr(part, "track_running_stats", False) for part in model.modules()):
            raise ValueError(
                "model must not keep running statistics in training; build its normalisation with "
                "track_running_stats=False"
            )
        self._model = copy.deepcopy(model).requires_grad_(False)
        self._names = [name for name, _ in model.named_parameters()]

        def called(parameters: Parameters, inputs: Tensor) -> Tensor:
            return functional_call(self._model, dict(zip(self._names, parameters, strict=True)), (inputs,))

        def one(parameters: Parameters, inputs: Tensor, targets: Tensor) -> Tensor:
            return LOSSES[loss](called(parameters, inputs), targets).mean()

        self._both = vmap(grad_and_value(one), randomness="different")
        self._forward = vmap(called, randomness="different")

    @staticmethod
    def stacked(models: Sequence[nn.Module]) -> list[Tensor]:
        """Return the parameters of modules of one shape, each (n, ...)."""
        return [p.detach() for p in stack_module_state(list(models))[0].values()]

    def outputs(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Return outputs (n, B, K) of parameters (n, ...) on inputs (n, B, ...)."""
        return self._forward(tuple(parameters), inputs)

    def losses_and_gradients(
        self, parameters: Parameters, inputs: Tensor, targets: Tensor
    ) -> tuple[Tensor, Parameters]:
        """Return mean losses over each batch, (n,), and their gradients, shaped like the parameters."""
        gradients, losses = self._both(tuple(parameters), inputs, targets)
        return losses.detach(), [g.detach() for g in gradients]


def perceptrons_at_start(
    streams: Sequence[np.random.Generator],
    widths: Sequence[int],
    *,
    dtype: torch.dtype = torch.float32,
) -> list[Tensor]:
    """Draw the parameters of a network for each stream as torch does for linear layers: uniform within 1 / sqrt(in).

    Raises
    ------
    ValueError
        If there are no two widths, or one is not a positive integer.

    Examples
    --------
    >>> streams = [np.random.default_rng(seed) for seed in range(4)]
    >>> [tuple(p.shape) for p in perceptrons_at_start(streams, (3, 5, 2))]
    [(4, 5, 3), (4, 5), (4, 2, 5), (4, 2)]
    """
    found: list[Tensor] = []
    for into, out in _checks.layer_sizes(widths):
        for shape in ((out, into), (out,)):
            drawn = np.stack([rng.uniform(-1, 1, shape) for rng in streams]) / math.sqrt(into)
            found.append(torch.from_numpy(drawn).to(dtype))
    return found
