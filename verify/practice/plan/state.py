"""The state of a network before any rate is tried: what of it makes the numbers below mean less, or more.

Everything is found by one pass through the data in the mode in which the network trains: with the statistics of each
batch where it normalises by them. Units are those of `relu` alone: the others have no dead ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import relu, relu6
from torch.overrides import TorchFunctionMode

from simulate.objectives.batches import cuts, window
from simulate.objectives.restoring import preserve_state, seed_generators
from verify.practice.loading import BATCH, Problem
from verify.practice.setup_warnings import setup_warnings

_RELUS = frozenset((relu, relu6, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_))

_ALIKE = 0.1
"""Outputs that differ by less than this are near-constant: logits, or shares of the spread of real targets."""


_LEARNED = 0.98
"""Share of the best constant loss below which the network has learned something."""


@dataclass(frozen=True, kw_only=True)
class State:
    """A network before training, or at the checkpoint that was given.

    Attributes
    ----------
    loss, constant
        Mean over the samples in the mode of training, and the least that one output for all samples has.
    units, dead
        Units of `relu` that were seen, and how many of them respond to no sample: channels of images, else components.
    batch_statistics
        Whether a layer normalises by the statistics of its batch: then there are no single samples.
    dropout
        Whether a layer drops units at random.
    spread, scale
        Standard deviation of the outputs over the samples, root mean square over their components; and what it is to
        be compared with: that of real targets, 1 for logits.
    doubts
        What looks like a mistake in model or data, in words: see `verify.practice.setup_warnings`.
    """

    loss: float
    constant: float
    units: int
    dead: int
    batch_statistics: bool
    dropout: bool
    spread: float
    scale: float
    doubts: tuple[str, ...] = ()

    @property
    def learned(self) -> bool:
        """Return whether the loss is more than 2 % below that of the best constant output."""
        return self.loss < _LEARNED * self.constant

    @property
    def dead_share(self) -> float:
        """Share of the units that respond to no sample; 0 without units."""
        return self.dead / self.units if self.units else 0.0

    @property
    def near_constant(self) -> bool:
        """Return whether the outputs hardly depend on the sample."""
        return self.spread < _ALIKE * self.scale


def seen_before(problem: Problem, constant: float, *, training: bool = True, seed: int = 0) -> State:
    """Look at a network before anything is tried; it is left as found.

    Parameters
    ----------
    problem
        Model, data and loss.
    constant
        Loss of the best constant output.
    training
        Whether the network trains in training mode: with the statistics of batches, and dropout.
    seed
        Of what is dropped.

    Examples
    --------
    >>> from verify.practice.loading import problem
    >>> net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> with torch.no_grad():
    ...     for p, value in zip(net.parameters(), ([[1.0], [0.0]], [0.0, -1.0], [[1.0, 1.0]], [0.0]), strict=True):
    ...         _ = p.copy_(torch.tensor(value))
    >>> x = torch.tensor([[0.0], [2.0]])
    >>> found = seen_before(problem(net, (x, x + 1)), constant=1.0)
    >>> found.loss, found.units, found.dead, found.spread, found.scale
    (1.0, 2, 1, 1.0, 1.0)
    """
    parts = [part for part in problem.module.modules() if not isinstance(part, nn.Sequential)]
    look = _look(problem, training, seed)
    return State(
        loss=look.loss,
        constant=constant,
        units=sum(len(alive) for alive in look.alive),
        dead=sum(int((~alive).sum()) for alive in look.alive),
        batch_statistics=training and any(_of_batches(part) for part in parts),
        dropout=training and any(_drops(part) for part in parts),
        spread=look.spread(),
        scale=_scale(problem),
        doubts=setup_warnings(problem),
    )


def _of_batches(part: nn.Module) -> bool:
    """Batch normalisation of any kind; of instances with stored statistics the samples stay apart."""
    kind = nn.modules.batchnorm._BatchNorm
    return isinstance(part, kind) and not isinstance(part, nn.modules.instancenorm._InstanceNorm)


def _drops(part: nn.Module) -> bool:
    return float(getattr(part, "p", 0) or 0) > 0 if isinstance(part, nn.modules.dropout._DropoutNd) else False


class _Look(TorchFunctionMode):
    """Recorder of a pass through the data: units that respond, and sums over the outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.alive, self._place = list[Tensor](), 0
        self.loss, self._rows, self._sums = 0.0, 0, torch.zeros(())
        self._squares = torch.zeros(())

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if func in _RELUS:
            self._respond(found.detach())
        return found

    def begin(self) -> None:
        """A pass of some samples: layers come in the same order as in the one before."""
        self._place = 0

    def add(self, outputs: Tensor, loss: float) -> None:
        """Outputs of some samples and their mean loss."""
        flat = outputs.reshape(len(outputs), -1).double().cpu()
        self._sums, self._squares = self._sums + flat.sum(0), self._squares + flat.square().sum(0)
        self._rows, self.loss = self._rows + len(flat), self.loss + len(flat) * loss

    def spread(self) -> float:
        """Standard deviation over the samples, root mean square over the components."""
        means = self._sums / self._rows
        return math.sqrt(max(float((self._squares / self._rows - means**2).mean()), 0.0))

    def _respond(self, units: Tensor) -> None:
        axis = 1 if units.ndim >= 4 else units.ndim - 1
        alive = (units > 0).transpose(0, axis).flatten(1).any(1).cpu() if units.ndim else units > 0
        if self._place < len(self.alive):
            self.alive[self._place] |= alive
        else:
            self.alive.append(alive)
        self._place += 1


def _look(problem: Problem, training: bool, seed: int) -> _Look:
    objective, look = problem.objective, _Look()
    size = min(problem.batch_size or problem.samples, BATCH)
    with preserve_state(problem.module, training), torch.no_grad():
        seed_generators(seed)
        for part in _several(problem.samples, size):
            look.begin()
            targets = window(problem.targets, part)
            with look:
                outputs = objective.outputs(objective.leaves(), window(problem.inputs, part))
            look.add(outputs, float(problem.loss(outputs, targets)))
    look.loss /= problem.samples
    return look


def _several(samples: int, size: int) -> list[slice]:
    """Parts of the samples, the last of them no single one: batch statistics need two."""
    parts = list(cuts(samples, size))
    if len(parts) > 1 and parts[-1].stop - parts[-1].start == 1:
        parts[-2:] = [slice(parts[-2].start, parts[-1].stop)]
    return parts


def _scale(problem: Problem) -> float:
    targets = problem.targets
    if (
        not isinstance(targets, Tensor)
        or not targets.is_floating_point()
        or targets.shape[1:] != problem.outputs
    ):
        return 1.0
    spread = targets.double().std(0, correction=0).square().mean().sqrt()
    return float(spread) or 1.0
