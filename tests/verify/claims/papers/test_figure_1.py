"""The table of figure 1 at small widths: against dense eigenvalues, and theory at its published numbers."""

import torch
from numpy.testing import assert_allclose

from simulate.monte_carlo import Block, fixture
from simulate.wide import fisher_gram, signals
from verify.claims.karakida2019.growth import FIGURE_1 as FIGURE, figure_1


def test_columns_are_eigenvalues_and_theory_over_them() -> None:
    point = FIGURE.points[0] | {"widths": (5, 9)}
    found = figure_1(Block((fixture(0, "figure 1"),)), point)
    assert {column.score for column in FIGURE.columns} == set(found)
    block = Block((fixture(0, "figure 1"),))
    for i, width in enumerate(point.widths):
        network = signals.wide_network(
            block, widths=(width,) * 3 + (1,), samples=width, weight_variance=2.0, bias_variance=0.0
        )
        gram = fisher_gram.gram(network, "relu")
        for name, matrix in (("largest", gram), ("subtracted", fisher_gram.centred(gram))):
            top = torch.linalg.eigvalsh(matrix[:, 0, 0])[:, -1] / width
            assert_allclose(found[name][:, i], top.numpy(), rtol=1e-6)  # in single precision, as announced
    assert bool((found["drawn"] < found["with_c1"]).all())


def test_lines_are_those_of_the_figure() -> None:
    """2.314 and 3.255 for relu, 1.674 and 2.415 for tanh, whatever the width."""
    for point, drawn, sharper in zip(FIGURE.points, (2.314, 1.674), (3.255, 2.415), strict=True):
        found = figure_1(Block((fixture(0, "lines"),)), point | {"widths": (12, 20)})
        assert_allclose(found["drawn"] * found["subtracted"], drawn, atol=5e-4)
        assert_allclose(found["with_c1"] * found["subtracted"], sharper, atol=5e-4)
