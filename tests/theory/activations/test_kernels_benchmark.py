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
