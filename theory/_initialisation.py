"""How the parameters of a wide random network are drawn, as order parameters, phases and Fisher information need it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from theory import _checks

__all__ = ["Initialisation"]

_RULE = "small enough not to overflow"


class Initialisation(NamedTuple):
    r"""Variances :math:`\sigma_w^2` of the weights and :math:`\sigma_b^2` of the biases, floats or mpmath's."""

    weight: Any
    bias: Any

    @classmethod
    def checked(cls, weight_variance: ArrayLike, bias_variance: ArrayLike) -> Initialisation:
        """Two finite scalars >= 0.

        >>> Initialisation.checked(2, 0.5)
        Initialisation(weight=2.0, bias=0.5)
        """
        given = {"weight_variance": weight_variance, "bias_variance": bias_variance}
        found = {name: _checks.nonnegative(name, value) for name, value in given.items()}
        return cls(*(_checks.scalar(name, value) for name, value in found.items()))

    def through(self, own: Any, shared: Any, gap: Any) -> tuple[Any, Any, Any]:
        """Variance, covariance and their gap in the next layer, from the moments of the activations."""
        return self.weight * own + self.bias, self.weight * shared + self.bias, self.weight * gap

    def over_power_of_two(self) -> Initialisation:
        """Both over a power of two near the larger: what is normalised depends on their ratio alone."""
        exponent = math.frexp(max(self))[1]
        return Initialisation(math.ldexp(self.weight, -exponent), math.ldexp(self.bias, -exponent))

    def require_moderate(self, condition: Any, *, by_bias: bool | None = None) -> None:
        """Refuse, for what they overflow, the larger of the two or the one that is said to be guilty."""
        guilty = self.bias > self.weight if by_bias is None else by_bias
        name, value = ("bias_variance", self.bias) if guilty else ("weight_variance", self.weight)
        _checks.require(condition, name, _RULE, value)
