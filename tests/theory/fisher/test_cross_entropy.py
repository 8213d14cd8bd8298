"""Fisher information of the cross-entropy: dense block matrices, exact limits, edges of the domain."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from theory import softmax
from theory.fisher import (
    cross_entropy_outliers,
    cross_entropy_statistics,
    eigenvalue_statistics,
    kappas,
    parameter_count,
)

SETTING = {"depth": 3, "weight_variance": 2.3, "bias_variance": 0.6}
ENTROPIC = {**SETTING, "width": 60}
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


def test_many_samples_leave_the_mean_covariance() -> None:
    """Repeat a few probabilities: the diagonal vanishes as 1/T, the outliers stay."""
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
