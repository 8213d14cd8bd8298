"""Critical batch sizes of SGD on least squares, by a search over rates step by step."""

import numpy as np
from numpy.testing import assert_allclose

from verify.claims.noise_scale.critical import OVERHEAD, critical_sizes, power_law

SAMPLES = 400


def best_risk(size: float, steps: int) -> np.ndarray:
    """Least risk of the last weights and of their average after some steps, over many rates: (2,)."""
    values, start = power_law(1.4, 2.9, 16)
    rates = np.geomspace(0.002, 0.9, 120)[:, None] * 2 * size / ((size + 1) * values[0] + values.sum())
    shrunk, weights, total, cross = 1 - rates * values, start, np.zeros((120, 16)), np.zeros((120, 16))
    for _ in range(steps):
        total, cross = total + 2 * cross + weights, shrunk * (cross + weights)
        risk = (weights * values).sum(-1, keepdims=True)
        noise = values * (risk + 1) + values**2 * weights
        weights = shrunk**2 * weights + rates**2 / size * noise
    return np.array([(weights @ values).min(), (total @ values).min() / steps**2])


def test_a_pass_of_critical_batches_takes_the_overhead() -> None:
    wanted = best_risk(1, SAMPLES)
    for i, size in enumerate(critical_sizes(1.4, 2.9, 16, (SAMPLES,))[:, 0]):
        at, risks = np.arange(2, 1 + int(2 * SAMPLES / size)), []
        for steps in at:
            risks.append(best_risk(size, int(steps))[i])
        samples = size * np.exp(np.interp(-np.log(wanted[i]), -np.log(risks), np.log(at)))
        assert_allclose(samples / SAMPLES, OVERHEAD, rtol=0.03)
