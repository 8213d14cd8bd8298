"""A complex quantity of a closed form by its two real parts."""

from collections.abc import Callable

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import Quantity

__all__ = ["parts"]


def parts(name: str, value: Callable[[Point], complex]) -> dict[str, Quantity]:
    return {f"{name}_re": lambda p: value(p).real, f"{name}_im": lambda p: value(p).imag}
