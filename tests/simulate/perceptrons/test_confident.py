"""A perceptron sure of most samples has the same curvature as if all derivatives were taken."""

from collections.abc import Iterable

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from simulate.networks import mlp_logits, mlp_weights, weight_count
from simulate.perceptrons import confident
from simulate.perceptrons.confident import ConfidentMlp
from simulate.perceptrons.curvature import ProjectedMlp, haar
from tests.refusals import refusal


def problem(widths: tuple[int, ...], samples: int = 300):
    rng = np.random.default_rng(5)
    weights = mlp_weights(rng, widths)
    x, labels = rng.standard_normal((samples, widths[0])), rng.integers(0, widths[-1], samples)
    return weights, x, labels, haar(rng, weight_count(widths), 4)


def assert_alike(found: Iterable[Tensor], expected: Iterable[Tensor]) -> None:
    for term, other in zip(found, expected, strict=True):
        assert_allclose(term, other, rtol=1e-10, atol=1e-12 * float(other.abs().max()))


@pytest.mark.parametrize("widths", [(6, 4), (6, 8, 4), (6, 8, 7, 5, 3)])
@pytest.mark.parametrize("near", [20, 100])
def test_terms_are_those_of_all_samples(widths: tuple[int, ...], near: int) -> None:
    given = problem(widths)
    few, whole = ConfidentMlp(*given, near=near), ProjectedMlp(*given)
    assert few.depth == whole.depth
    alphas = few.least * np.array([1.0, 1.3, 2.0])
    assert_alike(few.terms(alphas), whole.terms(alphas))
    (found, scale), (other, other_scale) = (net.scaled_g_term(3 * few.least) for net in (few, whole))
    assert_alike([found], [other * (other_scale - scale).exp()])


def test_samples_that_no_unit_answers_neither_count_as_ties_nor_matter() -> None:
    weights, x, labels, frame = problem((6, 8, 7, 4))
    x[::3] = 0
    few, whole = ConfidentMlp(weights, x, labels, frame, near=30), ProjectedMlp(weights, x, labels, frame)
    assert_alike(few.terms(1.5 * few.least), whole.terms(1.5 * few.least))
    nothing = ConfidentMlp(weights, 0 * x, labels, frame, near=30)
    assert nothing.least == 0
    assert not bool(nothing.h_term(1.0).any())


def test_sums_over_parts_of_the_samples_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    given = problem((6, 8, 7, 4))
    whole = ConfidentMlp(*given, near=20)
    monkeypatch.setattr(confident, "_BLOCK", 37)
    parts = ConfidentMlp(*given, near=20)
    assert_allclose(parts.h_term(whole.least), whole.h_term(whole.least), rtol=1e-10, atol=1e-13)


def test_what_is_left_out_at_the_smallest_scale_is_below_rounding_and_no_less() -> None:
    """exp(-40) of the smallest gap: all samples but the near ones, whose gaps the logits tell."""
    weights, x, labels, frame = problem((6, 4))
    first, second = mlp_logits(weights, torch.from_numpy(x)).topk(2).values.T
    gaps = (first - second).sort().values
    least = ConfidentMlp(weights, x, labels, frame, near=20).least
    assert_allclose(least * (gaps[20] - gaps[0]), 40.0, rtol=1e-9)


def test_bad_input_is_refused() -> None:
    weights, x, labels, frame = problem((6, 8, 4))
    net = ConfidentMlp(weights, x, labels, frame, near=20)
    for ask in (net.terms, net.scaled_g_term, net.h_term):
        with refusal("alpha must be at least"):
            ask([2 * net.least, 0.5 * net.least])
        with refusal("alpha must be finite and positive"):
            ask(0.0)
