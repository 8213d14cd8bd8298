r"""Learning rate and momentum of torch's SGD from the curvature of the batch, measured every few steps.

Lanczos on the Gauss-Newton matrix of the current batch, from a random start, gives Ritz values and the share of the
spectrum that each stands for. The one that carries more than half of it is the bulk at 0 and is dropped; of the
others the largest is taken as L and the smallest as mu, and both go into the formulas for a quadratic:

==================  =====================================  ====================================================
optimiser           learning rate                          momentum
==================  =====================================  ====================================================
``nesterov=False``  :math:`4 / (\sqrt L + \sqrt\mu)^2`     :math:`(\sqrt L - \sqrt\mu)^2/(\sqrt L + \sqrt\mu)^2`
``nesterov=True``   :math:`1 / L`                          :math:`(\sqrt L - \sqrt\mu) / (\sqrt L + \sqrt\mu)`
==================  =====================================  ====================================================

They are those of `theory.learning_rates.momentum`, where eqs. (24) and (25) of Granziol, Zohren and Roberts (2022) are
corrected. What the schedule does for a network, and what it does not, is measured in docs/schedule.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from simulate.objectives import Objective
from simulate.objectives.batches import pair, repeatable
from simulate.operators import gauss_newton
from theory.learning_rates import momentum
from verify.practice.moved import moved_groups
from verify.practice.ritz_values import ritz_spectrum, with_decay, without_bulk

__all__ = ["CurvatureReading", "CurvatureSchedule"]


@dataclass(frozen=True, kw_only=True)
class CurvatureReading:
    """What one run of Lanczos found, and what was made of it; with weight decay, without damping.

    Attributes
    ----------
    iteration
        Calls of `CurvatureSchedule.step` before this one.
    values, weights
        Ritz values, ascending, and the share of the spectrum that each stands for.
    bulk
        The Ritz value that was dropped, None if none was.
    largest, smallest
        L and mu, None if no positive value was left.
    error
        The matrix has an eigenvalue within this of `largest`.
    learning_rate, momentum
        In force afterwards.
    contraction
        Of a quadratic with eigenvalues between mu and L under these two, per step; None without L and mu.
    products
        With the matrix, each of one pass forward and back through the data, and one more in all.
    outcome
        In words.
    """

    iteration: int
    values: tuple[float, ...]
    weights: tuple[float, ...]
    bulk: float | None
    largest: float | None
    smallest: float | None
    error: float | None
    learning_rate: float
    momentum: float
    contraction: float | None
    products: int
    outcome: str


class CurvatureSchedule:
    """Sets learning rate and momentum of an SGD optimiser from the curvature of the batch.

    Call `step` with the batch before the optimiser's own `step`. All parameter groups get the same two numbers: the
    formulas know one matrix, that of all parameters which the optimiser moves and which require a gradient. Where the
    rate changes, the momentum buffers are rescaled: in the formulas the last displacement goes on, which torch keeps
    divided by the rate. The model, its gradients and all random generators are left as found.

    Parameters
    ----------
    optimizer
        `torch.optim.SGD`, with Nesterov's momentum or without, no dampening. Its rate and momentum hold until the
        first call of `step`, and where there is no positive curvature. Weight decay is added to the curvature.
    model, loss
        What is trained: `loss` of ``model(inputs)`` and targets, one number for a batch.
    every
        Calls of `step` from one measurement to the next; the first one measures.
    steps
        Products with the matrix in a measurement, at least 2; no more than there are parameters are done.
    data
        Batches, or one pair of inputs and targets, on which to measure in place of the batch that is passed.
    bulk
        Share of the spectrum, from one half to one, above which a Ritz value is dropped. The largest never is.
    damping
        Share of L that is added to L and to mu before the formulas: a smaller rate, and less momentum.
    lowest, highest
        Bounds of the learning rate.
    training
        Whether the curvature is that in training mode, with dropout and the statistics of the batch.
    chunk
        Most samples in one pass of a measurement, see `simulate.objectives.Objective`.
    seed
        The start of Lanczos depends on it and on the number of the step, on nothing else.

    Attributes
    ----------
    last
        `CurvatureReading` of the latest measurement, None before the first.

    Raises
    ------
    ValueError
        If an argument is not as above.

    References
    ----------
    Granziol, Zohren and Roberts (2022), section 10, eqs. (24) and (25), corrected.

    Examples
    --------
    A quadratic with eigenvalues 1 and 9, none of which is a bulk:

    >>> model = nn.utils.skip_init(nn.Linear, 2, 1, bias=False, dtype=torch.float64)
    >>> _ = model.weight.data.fill_(1.0)
    >>> batch = torch.diag(torch.tensor([3.0, 1.0])), torch.zeros(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    >>> schedule = CurvatureSchedule(optimizer, model, nn.MSELoss(), bulk=1.0)
    >>> schedule.step(batch)
    >>> [round(number, 9) for number in (schedule.last.largest, schedule.last.smallest)]
    [9.0, 1.0]
    >>> [round(optimizer.param_groups[0][name], 9) for name in ("lr", "momentum")]
    [0.25, 0.25]
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        model: nn.Module,
        loss: Callable[[Tensor, Any], Tensor],
        *,
        every: int = 50,
        steps: int = 10,
        data: Any = None,
        bulk: float = 0.5,
        damping: float = 0.0,
        lowest: float = 0.0,
        highest: float = math.inf,
        training: bool = False,
        chunk: int | None = None,
        seed: int = 0,
    ) -> None:
        self._options = _Options(
            every=every, steps=steps, bulk=bulk, damping=damping, lowest=lowest, highest=highest,
            training=training, chunk=chunk, seed=seed,
        )  # fmt: skip
        self._optimizer, self._model, self._loss = optimizer, model, loss
        self._data = None if data is None else _for_a_mean(loss, data)
        self._iteration = 0
        self.last: CurvatureReading | None = None
        _nesterov(optimizer)
        moved_groups(optimizer, model)

    def step(self, batch: Any) -> None:
        """Count a step; before every `every`-th, measure the curvature of this batch (inputs, targets) and set rates.

        Raises
        ------
        ValueError
            If the batch, its loss or its curvature is not finite or of the wrong kind, or the optimiser has become
            one that could not have been passed. Rates and count are then as they were.
        """
        if self._iteration % self._options.every == 0:
            self.last = self._measured(batch)
        self._iteration += 1

    def state_dict(self) -> dict[str, Any]:
        """What a run goes on from, beside the states of model and optimiser: plain numbers, fit for JSON too."""
        reading = None if self.last is None else asdict(self.last)
        return {"iteration": self._iteration, "options": asdict(self._options), "reading": reading}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a state of `state_dict`, with the options it was made with, as torch's own schedules do.

        Raises
        ------
        ValueError
            If it is none. Nothing is changed then.
        """
        try:
            iteration, options = _whole("iteration", state["iteration"], 0), _Options(**state["options"])
            reading = None if state["reading"] is None else _reading(state["reading"])
        except (TypeError, KeyError) as error:
            raise ValueError(f"state must be one that state_dict returned, got another: {error}") from None
        self._iteration, self._options, self.last = iteration, options, reading

    def _measured(self, batch: Any) -> CurvatureReading:
        nesterov, moved = _nesterov(self._optimizer), moved_groups(self._optimizer, self._model)
        decay = {name: float(group["weight_decay"]) for name, group in moved.items()}
        options = self._options
        objective = Objective(
            self._model,
            [pair(batch)] if self._data is None else self._data,
            self._loss,
            parameters=list(decay),
            training=options.training,
            chunk=options.chunk,
        )
        matrix = with_decay(gauss_newton(objective), objective.shapes, list(decay.values()))
        found = ritz_spectrum(matrix, np.random.default_rng([options.seed, self._iteration]), options.steps)
        interval = without_bulk(found, options.bulk)
        if interval.largest is None or interval.smallest is None:
            rates = _in_force(self._optimizer)
        else:
            rates = _rates(interval.largest, interval.smallest, nesterov, options)
            _set(self._optimizer, rates.learning_rate, rates.momentum)
        return CurvatureReading(
            iteration=self._iteration,
            values=tuple(found.values.tolist()),
            weights=tuple(found.weights.tolist()),
            products=found.products,
            **interval._asdict(),
            **rates._asdict(),
        )


@dataclass(frozen=True, kw_only=True)
class _Options:
    """See `CurvatureSchedule`."""

    every: int
    steps: int
    bulk: float
    damping: float
    lowest: float
    highest: float
    training: bool
    chunk: int | None
    seed: int

    def __post_init__(self) -> None:
        _whole("every", self.every, 1)
        _whole("steps", self.steps, 2)
        _whole("seed", self.seed, 0)
        if self.chunk is not None:
            _whole("chunk", self.chunk, 1)
        if not isinstance(self.training, bool):
            raise ValueError(f"training must be True or False, got {self.training!r}")
        if self.training and self.chunk is not None:
            raise ValueError(f"chunk must be None in training mode, got {self.chunk}")
        _number("bulk", self.bulk, "between one half and one", lambda x: 0.5 <= x <= 1)
        _number("damping", self.damping, "finite and not negative", lambda x: 0 <= x < math.inf)
        _number("lowest", self.lowest, "finite and not negative", lambda x: 0 <= x < math.inf)
        _number("highest", self.highest, "positive and at least lowest", lambda x: 0 < x >= self.lowest)


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return value


def _number(name: str, value: Any, rule: str, holds: Callable[[float], bool]) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not holds(value):
        raise ValueError(f"{name} must be a number, {rule}, got {value!r}")


def _reading(stored: Mapping[str, Any]) -> CurvatureReading:
    """From a state that may have been a file: lists of JSON become tuples again."""
    values, weights = tuple(stored["values"]), tuple(stored["weights"])
    return CurvatureReading(**{**stored, "values": values, "weights": weights})


# --- the rates -----------------------------------------------------------------------------------------------------


class _Rates(NamedTuple):
    learning_rate: float
    momentum: float
    contraction: float | None


def _rates(largest: float, smallest: float, nesterov: bool, options: _Options) -> _Rates:
    formula, contraction = (
        (momentum.nesterov, momentum.nesterov_contraction)
        if nesterov
        else (momentum.heavy_ball, momentum.heavy_ball_contraction)
    )
    extra = options.damping * largest
    ideal = formula(largest + extra, smallest + extra)
    rate = min(max(float(ideal.learning_rate), options.lowest), options.highest)
    factor = contraction(rate, ideal.momentum, largest=largest, smallest=smallest)
    return _Rates(rate, float(ideal.momentum), float(factor))


def _in_force(optimizer: torch.optim.Optimizer) -> _Rates:
    group = optimizer.param_groups[0]
    return _Rates(float(group["lr"]), float(group["momentum"]), None)


def _set(optimizer: torch.optim.Optimizer, rate: float, momentum: float) -> None:
    """Rate and momentum of all groups; the last displacement stays what it was."""
    for group in optimizer.param_groups:
        _rescale(optimizer, group["params"], float(group["lr"]) / rate if momentum else None)
        if isinstance(group["lr"], Tensor):  # a compiled step holds on to it
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate
        group["momentum"] = momentum


def _rescale(optimizer: torch.optim.Optimizer, parameters: Sequence[Tensor], factor: float | None) -> None:
    """Multiply momentum buffers; forget them where torch will not keep them up, without momentum."""
    for p in parameters:
        state = optimizer.state.get(p, {})
        if factor is None:
            state.pop("momentum_buffer", None)
        elif state.get("momentum_buffer") is not None:
            state["momentum_buffer"].mul_(factor)


# --- what is given -------------------------------------------------------------------------------------------------


def _nesterov(optimizer: Any) -> bool:
    """Whether an optimiser, which must be SGD as the formulas know it, looks ahead."""
    if not isinstance(optimizer, torch.optim.SGD):
        raise ValueError(f"optimizer must be torch.optim.SGD, got {type(optimizer).__name__}")
    groups = optimizer.param_groups
    if any(group["dampening"] for group in groups):
        raise ValueError("optimizer must be without dampening, which changes the learning rate")
    if any(group["maximize"] for group in groups):
        raise ValueError("optimizer must minimise the loss, got maximize=True")
    if len({bool(group["nesterov"]) for group in groups}) > 1:
        raise ValueError("optimizer must have nesterov in all parameter groups or in none, got both")
    return bool(groups[0]["nesterov"])


def _for_a_mean(loss: Any, data: Any) -> Any:
    """Data for all measurements, unless they would be on another scale than the batches."""
    if getattr(loss, "reduction", "mean") == "sum":
        raise ValueError("loss must be a mean over samples where data are given, got a sum over them")
    return repeatable(data)
