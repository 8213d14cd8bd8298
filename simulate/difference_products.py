"""Products with the Hessian by central differences of gradients, for models without second derivatives.

Some kernels, such as flash attention, and functions marked ``once_differentiable`` have only a first derivative. A
product is then a central difference of gradients, with an estimate of its error. The estimate is a sum of three terms:
the change with a step twice as long, the disagreement of both sides, and the rounding of a gradient. The step is varied
to make the sum small.

For a smooth loss the relative error is near 1e-8 in double precision, and some 1e-3 in single precision. At kinks, such
as those of ReLU, differences depend on the step, so that the error is large; too large an error is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from simulate import _checks
from simulate.lanczos import Operator
from simulate.lanczos.products import one_by_one
from simulate.objectives import Objective
from simulate.objectives.derivatives import slopes
from simulate.objectives.parameters import Leaves
from simulate.objectives.restoring import preserve_state
from simulate.objectives.soundness import held_padding, pads, require_first

_STEPS = {torch.float64: 1e-4, torch.float32: 1e-2}
"""First step, relative to the parameters."""

_TRIES, _FACTOR = 4, 4.0
"""Most steps that are tried, and the factor from one to the next."""

_SAFETY = 3.0
"""Bound of the error of the shorter step, as a multiple of its difference from the longer one.

For a smooth loss the error is a third of the difference; if one kink is passed, it is twice the difference.
"""

_ROUNDINGS = 4.0
"""Length in roundings of the steps that show the rounding of a gradient, and safety factor of the result."""


class Difference(NamedTuple):
    """A product by differences, and an estimated bound of the length of its error."""

    product: Tensor
    error: float


@dataclass(frozen=True, kw_only=True)
class DifferenceOperator(Operator):
    """The Hessian by differences: an `Operator` for Lanczos, with `difference` for one product and its error.

    Attributes
    ----------
    objective
        Loss of a model on data.
    tolerance
        Largest error of a product, relative to its length or to that of the longest product of a unit vector so far.
    """

    objective: Objective
    tolerance: float
    line: _Lines

    def difference(self, vector: Any) -> Difference:
        """Return the product with one vector (dim,), with its error.

        Raises
        ------
        ValueError
            As `difference_hessian`.
        """
        return self.line.product(self.vectors(torch.as_tensor(vector)[None])[0])


def difference_hessian(objective: Objective, *, tolerance: float = 0.05) -> DifferenceOperator:
    """Return the second derivative of the loss, by differences of its gradient.

    Parameters
    ----------
    objective
        Loss of a model on data, in evaluation mode.
    tolerance
        Largest relative error, see `DifferenceOperator`.

    Raises
    ------
    ValueError
        If the objective is in training mode, `tolerance` is not positive, or the loss uses parameters other than by
        calling the model; from a product, if gradients are not finite or the error exceeds `tolerance`.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=torch.float64)
    >>> weight = torch.zeros(1, 2, dtype=torch.float64)
    >>> line = Objective(lambda p, x: x @ p[0].T, (x, x[:, :1]), torch.nn.MSELoss(), parameters=[weight])
    >>> found = difference_hessian(line).difference([1.0, 0.0])
    >>> found.product.round(decimals=6), found.error < 1e-6
    (tensor([10., -1.], dtype=torch.float64), True)
    """
    if objective.training:
        raise ValueError("objective must be in evaluation mode, where gradients repeat, got training")
    _checks.positive_numbers("tolerance", tolerance)
    lines = _Lines(objective, tolerance)

    return DifferenceOperator(
        product=one_by_one(lambda vector: lines.product(vector).product),
        dim=objective.dim,
        dtype=objective.dtype,
        device=objective.device,
        objective=objective,
        tolerance=tolerance,
        line=lines,
    )


class _Sides(NamedTuple):
    """Mean of the forward and the backward difference, and their distance.

    The distance is proportional to the step if the loss is smooth, and independent of it if the curvature differs
    between both sides.
    """

    mean: Tensor
    apart: Tensor


class _Lines:
    """Gradients along lines through the parameters, in double precision if model and loss run in it."""

    def __init__(self, objective: Objective, tolerance: float) -> None:
        self._original, self._tolerance = objective, tolerance
        self._longest, self._pads = 0.0, None

    def product(self, vector: Tensor) -> Difference:
        length = float(vector.norm())
        if not length:
            return Difference(torch.zeros_like(vector), 0.0)
        unit = vector.to(self._objective.dtype) / length
        found = self._best_difference(unit)
        # in the null space the product itself is rounding: the longest product so far is the scale there
        reach = max(float(found.product.norm()), self._longest)
        if found.error > self._tolerance * reach:
            raise ValueError(
                f"differences of gradients must be right to {self._tolerance:g} of the product, got an error of"
                f" {found.error:.2g} for {float(found.product.norm()):.2g}: measure in float64, or look for kinks"
            )
        self._longest = reach
        return Difference((length * found.product).to(vector.dtype), length * found.error)

    @cached_property
    def _objective(self) -> Objective:
        """The objective in double precision; as given if its kernels only take single precision."""
        require_first(self._original)
        if self._original.dtype == torch.float32:
            with suppress(Exception):  # the model may not be copied, or not run in double precision
                found = self._original.doubled()
                with found.standing(found.leaves()), torch.enable_grad():
                    few = found.few()
                    _ = slopes(found.loss(found.outputs(found.leaves(), few.inputs), few), found.leaves())
                return found
        return self._original

    def _best_difference(self, unit: Tensor) -> Difference:
        """Return the difference with the least error among the steps that are tried."""
        here = self._gradient(unit, 0.0)
        # at least 1, or parameters that are all zero would give a step of zero
        size = max(float(torch.cat([p.detach().reshape(-1) for p in self._objective.leaves()]).norm()), 1.0)
        tiny = _ROUNDINGS * torch.finfo(unit.dtype).eps * size
        # a move by a few roundings changes a gradient by rounding alone
        noise = _ROUNDINGS * max(
            float((self._gradient(unit, side * tiny) - here).norm()) for side in (-1.0, 1.0)
        )
        step, best = _STEPS[unit.dtype] * size, None
        for _ in range(_TRIES):
            short, long = self._sides(unit, step, here), self._sides(unit, 2 * step, here)
            rounding, change = noise / step, _SAFETY * float((long.mean - short.mean).norm())
            # zero for a smooth loss, where the distance doubles with the step; at a kink it does not
            change += float((2 * short.apart - long.apart).norm())
            if best is None or change + rounding < best.error:
                best = Difference(short.mean, change + rounding)
            # truncation grows with the step, rounding falls: where they are equal no step is much better
            if max(change, rounding) <= 2 * min(change, rounding):
                break
            step = step / _FACTOR if change > rounding else step * _FACTOR
        if best is None or not math.isfinite(best.error):
            raise ValueError("gradient must be finite along the vector, got NaN or infinity: check the model")
        return best

    def _sides(self, unit: Tensor, step: float, here: Tensor) -> _Sides:
        after, before = self._gradient(unit, step) - here, here - self._gradient(unit, -step)
        return _Sides((after + before) / (2 * step), (after - before) / step)

    def _gradient(self, unit: Tensor, step: float) -> Tensor:
        objective, total = self._objective, torch.zeros_like(unit)
        with self._at(unit, step) as leaves, torch.enable_grad():
            for batch in objective.batches():
                loss = objective.loss(objective.outputs(leaves, batch.inputs), batch)
                total += objective.flat(slopes(loss, leaves))
        return total

    @contextmanager
    def _at(self, unit: Tensor, step: float) -> Iterator[Leaves]:
        objective = self._objective
        parts = zip(objective.leaves(), objective.split(unit), strict=True)
        leaves = tuple((p.detach() + step * v).requires_grad_() for p, v in parts)
        if self._pads is None:  # whether an embedding has a padding row
            with preserve_state(objective.model, objective.training), torch.enable_grad():
                self._pads = pads(objective.outputs(objective.leaves(), objective.few().inputs))
        with ExitStack() as stack:
            stack.enter_context(preserve_state(objective.model, objective.training))
            stack.enter_context(objective.standing(leaves))
            stack.enter_context(held_padding(leaves, objective.leaves(), needed=self._pads))
            yield leaves
