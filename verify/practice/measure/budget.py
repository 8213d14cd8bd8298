"""Budget of a measurement, in passes: one pass costs as much as one forward and one backward pass over all samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import torch

from simulate.lanczos import Operator
from verify.practice.work import Tell, silent

HESSIAN, GAUSS_NEWTON = 2.5, 1.6
"""Passes that a product with each matrix counts: the largest times measured on six kinds of network."""

FIRST = 6.0
"""Passes that the first product with a matrix counts in addition: it records the derivatives of all samples."""

DEFAULT = 200.0
"""Passes of a measurement whose budget is not given, besides those for the largest eigenvalue of the Hessian."""


class SpentError(ValueError):
    """Raised by a product that the budget does not allow."""


class Budget:
    """Passes spent and left, with the products of matrices counted.

    Examples
    --------
    >>> from simulate.lanczos import as_operator
    >>> budget = Budget(12.0)
    >>> matrix = budget.on(as_operator(torch.eye(3)), 2.0)
    >>> _ = matrix(torch.ones(2, 3))
    >>> budget.spent, budget.free, budget.products
    (10.0, 2.0, 2)
    >>> matrix(torch.ones(2, 3))
    Traceback (most recent call last):
    verify.practice.measure.budget.SpentError: budget of 12 passes does not allow 4 more, after 10
    """

    def __init__(self, limit: float, tell: Tell = silent, aside: Mapping[str, float] | None = None) -> None:
        self.limit, self.spent, self.products = limit, 0.0, 0
        self._first_limit = limit
        self._tell, self._part, self._aside = tell, "", dict(aside or {})

    @property
    def free(self) -> float:
        """Passes that may be spent now: those left, without what is laid aside for parts that have not begun."""
        return self.limit - self.spent - sum(self._aside.values())

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Begin the named part, for which nothing is laid aside any longer."""
        self._part = name
        self._aside.pop(name, None)
        self.spend(0.0)
        yield

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Let passes within this context come in addition to the budget."""
        limit, before = self.limit, self.spent
        self.limit = math.inf
        try:
            yield
        finally:
            self.limit = limit + self.spent - before

    def spend(self, passes: float) -> None:
        """Count passes before they are made.

        Raises
        ------
        SpentError
            If there are not so many left.
        """
        if passes > self.limit - self.spent + 1e-9:
            raise SpentError(
                f"budget of {self.limit:g} passes does not allow {passes:g} more, after {self.spent:g}"
            )
        self.spent += passes
        # while there is no limit, the whole budget is still to come
        whole = self.limit if self.limit < math.inf else self.spent + self._first_limit
        self._tell(self._part, self.spent / whole)

    def on(self, operator: Operator, each: float) -> Operator:
        """Return the operator with its products counted, `each` passes for one vector."""
        first = FIRST

        def product(vectors: torch.Tensor) -> torch.Tensor:
            nonlocal first
            self.spend(first + each * len(vectors))
            first = 0.0
            self.products += len(vectors)
            return operator.product(vectors)

        return replace(operator, product=product)
