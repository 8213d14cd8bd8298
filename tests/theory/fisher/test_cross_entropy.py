"""Fisher information of the cross-entropy: dense block matrices, exact limits, edges of the domain."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from theory import softmax
from theory.fisher import eigenvalue_statistics, kappas, parameter_count
from theory.fisher.cross_entropy import cross_entropy_outliers, cross_entropy_statistics

SETTING: dict[str, Any] = {"depth": 3, "weight_variance": 2.3, "bias_variance": 0.6}
ENTROPIC: dict[str, Any] = {**SETTING, "width": 60}
NAME = "erf"


def drawn(samples: int, outputs: int, concentration: float = 1.0) -> np.ndarray:
    return np.random.default_rng(samples + outputs).dirichlet(np.full(outputs, concentration), size=samples)


def dense(p: np.ndarray, own: float, shared: float) -> np.ndarray:
    """Blocks kappa_st Q(s)^(1/2) Q(t)^(1/2) / T, the roots by their eigenvectors."""
    samples, outputs = p.shape
    rest = np.stack([np.delete(p, k, axis=1).sum(1) for k in range(outputs)], axis=1)  # 1 - p loses digits
    off = -p[:, :, None] * p[:, None, :] * (1 - np.eye(outputs))
    values, vectors = np.linalg.eigh(off + np.eye(outputs) * (p * rest)[:, None, :])
    root = (vectors * np.sqrt(np.maximum(values, 0))[:, None]) @ vectors.transpose(0, 2, 1)
    kernel = np.full((samples, samples), shared) + np.eye(samples) * (own - shared)
    blocks = np.einsum("st,sab,tbc->satc", kernel, root, root)
    return blocks.reshape(samples * outputs, samples * outputs) / samples


@pytest.mark.parametrize("concentration", [0.05, 1.0, 30.0])
@pytest.mark.parametrize(("samples", "outputs"), [(1, 2), (1, 5), (2, 3), (7, 4), (30, 2), (25, 6)])
@pytest.mark.parametrize("finite_width", [False, True])
def test_statistics_are_those_of_the_block_matrix(
    samples: int, outputs: int, concentration: float, finite_width: bool
) -> None:
    p = drawn(samples, outputs, concentration)
    one = {**ENTROPIC, "outputs": 1, "finite_width": finite_width}
    own = eigenvalue_statistics(NAME, **one, samples=1).largest
    shared = eigenvalue_statistics(NAME, **one, samples=10**15).largest
    values = np.linalg.eigvalsh(dense(p, own, shared))
    count = parameter_count(depth=3, width=60, outputs=outputs) if finite_width else 2 * 60**2
    found = cross_entropy_statistics(NAME, **ENTROPIC, probabilities=p, finite_width=finite_width)
    assert_allclose(found, [values.sum() / count, (values**2).sum() / count, values[-1]], rtol=1e-11)


def test_trace_is_the_spread_of_the_probabilities() -> None:
    p = drawn(9, 4)
    k = kappas(NAME, **SETTING)
    found = cross_entropy_statistics(NAME, **ENTROPIC, probabilities=p).mean * k.alpha * 60**2
    assert found == pytest.approx(k.alpha * 60 * k.kappa1 * np.mean(1 - (p**2).sum(1)), rel=1e-13)


def test_many_samples_leave_the_mean_covariance() -> None:
    """The same few probabilities again and again: the diagonal is lost as 1/T, the outliers stay."""
    p = drawn(6, 4)
    outliers = cross_entropy_outliers(NAME, **ENTROPIC, probabilities=p)
    mean = softmax.covariance(p).mean(0)
    k = kappas(NAME, **SETTING)
    assert_allclose(outliers, k.alpha * 60 * k.kappa2 * np.linalg.eigvalsh(mean)[:0:-1], rtol=1e-12)
    excess = [
        cross_entropy_statistics(NAME, **ENTROPIC, probabilities=np.tile(p, (n, 1))).largest / outliers[0] - 1
        for n in (200, 400)
    ]
    assert 0 < excess[1] < excess[0] < 0.02
    assert excess[0] / excess[1] == pytest.approx(2, rel=0.01)


def test_equal_probabilities_scale_the_squared_error() -> None:
    """Q = (1 - 1 1'/C)/C at every sample: 1/C of the largest eigenvalue without a softmax, C - 1 times."""
    uniform = np.full((7, 5), 0.2)
    found = cross_entropy_statistics(NAME, **ENTROPIC, probabilities=uniform).largest
    without = eigenvalue_statistics(NAME, **ENTROPIC, samples=7, outputs=5).largest
    assert found == pytest.approx(without / 5, rel=1e-12)
    outliers = cross_entropy_outliers(NAME, **ENTROPIC, probabilities=uniform)
    assert_allclose(outliers, np.full(4, outliers[0]), rtol=1e-12)


@pytest.mark.parametrize("spread", [1e-8, 1e-100, 1e-250])
def test_nearly_certain_outputs_scale(spread: float) -> None:
    p = np.array([[1 - spread, spread, 0.0], [1 - 3 * spread, spread, 2 * spread]])
    found = cross_entropy_statistics(NAME, **ENTROPIC, probabilities=p).largest / spread
    assert found == pytest.approx(
        cross_entropy_statistics(
            NAME, **ENTROPIC, probabilities=[[1 - 1e-9, 1e-9, 0.0], [1 - 3e-9, 1e-9, 2e-9]]
        ).largest
        / 1e-9,
        rel=1e-7,
    )


def test_certain_outputs_have_no_information() -> None:
    sure = np.eye(3)
    assert cross_entropy_statistics(NAME, **ENTROPIC, probabilities=sure) == (0.0, 0.0, 0.0)
    assert_allclose(cross_entropy_outliers(NAME, **ENTROPIC, probabilities=sure), [0.0, 0.0], atol=0)


def test_centred_and_constant_networks() -> None:
    """Without correlation the blocks stand alone; without weights all samples are one."""
    p = drawn(5, 3)
    centred = {"depth": 3, "width": 20, "weight_variance": 1.0, "bias_variance": 0.0}
    k = kappas("linear", depth=3, weight_variance=1.0, bias_variance=0.0)
    top = softmax.eigenvalues(p).max()
    found = cross_entropy_statistics("linear", **centred, probabilities=p).largest
    assert found == pytest.approx(k.alpha * 20 * k.kappa1 * top / 5, rel=1e-12)
    assert_allclose(cross_entropy_outliers("linear", **centred, probabilities=p), 0.0)

    constant = {"depth": 3, "width": 20, "weight_variance": 0.0, "bias_variance": 0.7}
    same = cross_entropy_statistics("relu", **constant, probabilities=p).largest
    assert same == pytest.approx(cross_entropy_outliers("relu", **constant, probabilities=p)[0], rel=1e-12)


@pytest.mark.parametrize("function", [cross_entropy_statistics, cross_entropy_outliers])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"activation": "swish"}, "activation must be one of"),
        ({"depth": 1}, "depth must be an integer >= 2, got 1"),
        ({"width": 0}, "width must be an integer >= 1, got 0"),
        ({"weight_variance": -1.0}, "weight_variance must be non-negative and finite"),
        ({"weight_variance": 1e160}, "weight_variance must be small enough not to overflow"),
        ({"bias_variance": math.nan}, "bias_variance must be non-negative and finite"),
        ({"probabilities": [0.5, 0.5]}, r"probabilities must be of shape \(T, C\), T >= 1"),
        ({"probabilities": np.zeros((0, 3))}, r"probabilities must be of shape \(T, C\), T >= 1"),
        ({"probabilities": [[1.0]]}, "probabilities must be a probability vector along its last axis"),
        ({"probabilities": [[0.5, 0.6]]}, "probabilities must be a probability vector along its last axis"),
        ({"probabilities": [[math.nan, 1.0]]}, "probabilities must be finite"),
        ({"width_ratios": [1.0]}, "width_ratios must be a sequence of 3 numbers"),
        ({"finite_width": 1}, "finite_width must be True or False, got 1"),
    ],
)
def test_bad_arguments_are_named(function: Any, changes: dict[str, Any], message: str) -> None:
    right = {"activation": "relu", "probabilities": [[0.5, 0.5]]} | ENTROPIC
    with pytest.raises(ValueError, match=message):
        function(**(right | changes))
