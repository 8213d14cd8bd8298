"""The benchmark of the Gaussian averages: its references are right, and it sees a rule that is not."""

from __future__ import annotations

import pytest

from benchmarks import kernels


@pytest.mark.parametrize("name", kernels.FUNCTIONS)
@pytest.mark.parametrize("slope", [False, True])
def test_its_references_agree_with_the_library_and_not_with_plain_gauss_hermite(
    name: str, slope: bool
) -> None:
    pair = kernels.Pair(name, slope, variance=10.0, correlation=-0.5)
    exact = kernels.exact(pair)
    assert kernels.ours(pair) == pytest.approx(exact, rel=1e-13)
    assert kernels.gauss_hermite(25)(pair) != pytest.approx(exact, rel=1e-4)


def test_its_tables_show_errors_and_milliseconds() -> None:
    pick = {"losscurv": kernels.ours, "Gauss-Hermite 25": kernels.gauss_hermite(25)}
    name, own, other = next(kernels.errors(pick))
    assert (name, other) == ("relu", "7%") and float(own) < 1e-14
    name, *spent = next(kernels.times(pick))
    assert name == "relu" and all(float(x) > 0 for x in spent)
