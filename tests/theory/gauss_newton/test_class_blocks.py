"""Blocks between classes: moments by quadrature and by draws, the limits of the ratio, domains."""

import math

import numpy as np
import pytest

from theory.gauss_newton import class_blocks


@pytest.mark.parametrize("std", [0.3, 1.0, 2.5])
def test_two_classes_have_blocks_of_one_norm(std: float) -> None:
    assert class_blocks.output_ratio(2, logit_std=std, dim=40, samples=30) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize(("classes", "std"), [(3, 0.0), (5, 0.7), (12, 2.0), (30, 4.0), (4, 8.0)])
def test_moments_obey_what_sums_to_one(classes: int, std: float) -> None:
    mean = class_blocks._softmax_moments(classes, std)
    assert mean(2) + (classes - 1) * mean(1, 1) == pytest.approx(1 / classes, rel=1e-9)
    assert mean(3) + (classes - 1) * mean(2, 1) == pytest.approx(mean(2), rel=1e-9)
    assert mean(4) + (classes - 1) * mean(3, 1) == pytest.approx(mean(3), rel=1e-9)


@pytest.mark.parametrize("classes", [2, 7, 50])
def test_logits_of_no_size_or_very_many_samples_give_the_uniform_ratio(classes: int) -> None:
    uniform = class_blocks.uniform_ratio(classes)
    assert class_blocks.output_ratio(classes, logit_std=0.0, dim=9, samples=4) == pytest.approx(uniform)
    assert class_blocks.output_ratio(classes, logit_std=2.0, dim=9, samples=10**12) == pytest.approx(uniform)


def test_many_classes_have_independent_lognormal_probabilities() -> None:
    s, gamma, classes = 0.8, 0.5, 40_000
    limit = math.sqrt((1 + gamma * math.exp(2 * s**2)) / (1 + gamma * math.exp(s**2)))
    found = class_blocks.output_ratio(classes, logit_std=s, dim=50_000, samples=100_000)
    assert classes * found == pytest.approx(limit, rel=1e-3)


@pytest.mark.parametrize(("dim", "samples"), [(1, 30), (3, 120), (10, 200), (400, 50)])
def test_hidden_blocks_by_drawn_weights(dim: int, samples: int) -> None:
    """Whether neurons are active depends on the inputs of the block: in few dimensions that shows."""
    rng, classes = np.random.default_rng(6), 6
    v = rng.standard_normal((2, 20_000, classes))
    norms = np.zeros(2)
    for _ in range(60 if dim > 100 else 2500):
        x = rng.standard_normal((samples, dim))
        active = (x @ rng.standard_normal((dim, 2)) > 0).astype(float)
        for i, a in enumerate((active[:, 0] * active[:, 1], active[:, 0])):
            some = x[a > 0]
            norms[i] += np.square(some @ some.T if dim > samples else some.T @ some).sum()
    for centred, w in ((False, v), (True, v - v.mean(2, keepdims=True))):
        outward = ((w[0] * w[1]).sum(1) ** 2).mean() / ((w[0] ** 2).sum(1) ** 2).mean()
        found = class_blocks.hidden_ratio(classes, dim=dim, samples=samples, centred=centred)
        assert found**2 == pytest.approx(outward * norms[0] / norms[1], rel=0.07)


@pytest.mark.parametrize("dim", [2, 3, 10, 57, 10**6])
def test_very_many_samples_leave_the_angle_between_two_inputs(dim: int) -> None:
    """d E c^2 (1/4 + asin(c)/(2 pi))^2 over that of one neuron, 1/4, by quadrature over the cosine."""
    width = min(1.0, 12 / math.sqrt(dim))
    nodes, weights = np.polynomial.legendre.leggauss(400)
    angles = np.pi / 2 * width * nodes
    density = weights * np.exp((dim - 2) * np.log(np.cos(angles)))
    both = (1 / 4 + angles / (2 * np.pi)) ** 2
    share = dim * (density * np.sin(angles) ** 2 * both).sum() / density.sum()
    found = class_blocks.hidden_ratio(5, dim=dim, samples=2**62, centred=False)
    assert found == pytest.approx(math.sqrt(4 * share / 7), rel=1e-9)
