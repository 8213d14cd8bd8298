"""The tables and claims of figure 2 at small sizes: against dense eigenvalues and runs one by one."""

import math

import numpy as np
import torch
from numpy.testing import assert_allclose, assert_array_equal

from simulate.monte_carlo import Block, fixture
from simulate.training import wide_training
from simulate.wide import fisher_gram, signals
from verify.claims.karakida2019.training import (
    GRAM_ROUNDING,
    GRAY,
    OBSERVATIONS,
    THOUSAND_SAMPLES,
    TRIED,
    drawn_lines,
    figure_2,
    growth_of_subtracted,
    student_and_targets,
)
from verify.model.observation import Observation


def _block(name: str) -> Block:
    return Block((fixture(0, name),))


def _observation(name: str) -> Observation:
    (found,) = (o for o in OBSERVATIONS if o.id == f"karakida2019/{name}")
    return found


def test_gray_losses_are_those_beyond_a_thousand() -> None:
    point = _observation("figure-2").points[0] | {"widths": (40,), "samples": 30, "steps": 12, "searched": 2}
    found = figure_2(_block("gray"), point)
    assert {column.score for column in _observation("figure-2").columns} == set(found)
    student, targets = student_and_targets(_block("gray"), point, 40)
    rates = 2 / wide_training.sharpness(student, "relu")[:, None] * TRIED[2]
    run = wide_training.descend(student, "relu", targets, rates=rates, steps=12)
    for name, loss in (("on_the_way", run.peak), ("at_the_end", run.final)):
        assert_array_equal(found[f"gray_{name}"][:, 0], (loss > GRAY)[:, 0].double().numpy())


def test_the_wide_table_has_the_setting_of_the_paper() -> None:
    for point in _observation("figure-2-wide").points:
        assert (point.weight_variance, point.bias_variance, point.samples, point.steps) == (
            4.0,
            1.0,
            1000,
            1000,
        )
        assert_allclose(drawn_lines(point, 100)[False], 2 / 467.3, rtol=2e-4)
        assert_allclose(drawn_lines(point, 100)[True], 2.03, rtol=3e-3)


def test_growth_of_the_largest_eigenvalue_is_the_power_between_two_widths() -> None:
    point = THOUSAND_SAMPLES.points[0] | {"widths": (6, 24), "samples": 10}
    found = growth_of_subtracted(_block("growth"), point)["exponent"]
    block, tops = _block("growth"), []
    for width in point.widths:
        network = signals.wide_network(
            block, widths=(width,) * 3 + (1,), samples=10, weight_variance=3.9, bias_variance=0.9
        )
        gram = fisher_gram.centred(fisher_gram.gram(network, "relu"))
        tops.append(torch.linalg.eigvalsh(gram[:, 0, 0])[:, -1])
    exact = np.log((tops[1] / tops[0]).numpy()) / math.log(4)
    assert_allclose(found.numpy(), exact, rtol=0, atol=GRAM_ROUNDING)
