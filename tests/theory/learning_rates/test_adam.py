"""Adam's limits: closed forms against recursions over single steps, drawn signs and spectral radii."""

from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from theory.learning_rates import adam

SETTING = {"rate": 2e-3, "momentum": 0.99, "second": 0.998, "damping": 0.5}
NOISY = {
    "start": 1.2,
    "curvature": 0.7,
    "noise": (6.0, 3.0),
    "steps": (1500, 2500),
    **SETTING,
}


def step_by_step(
    *,
    start: float,
    curvature: float,
    noise: Any,
    steps: Any,
    rate: float,
    momentum: float,
    second: float,
    damping: float,
) -> tuple[float, float]:
    """Moments of (x, m) over single steps of Adam, its average of squares at its mean over the noise."""
    moment, mean, v = np.diag([start**2, 0.0]), np.array([start, 0.0]), 0.0
    count = 0
    for s, many in zip(noise, steps, strict=True):
        for _ in range(many):
            count += 1
            v = second * v + (1 - second) * s**2
            a = rate / (1 - momentum**count) / (np.sqrt(v / (1 - second**count)) + damping)
            pull = np.array([(1 - momentum) * curvature, momentum])
            step, kick = np.array([[1, 0] - a * pull, pull]), (1 - momentum) * s * np.array([-a, 1.0])
            mean = step @ mean
            moment = step @ moment @ step.T + np.outer(kick, kick)
    return float(mean[0]), float(moment[0, 0])


def test_the_limit_is_of_first_order() -> None:
    """With eta and 1 - beta a quarter as large, noise and steps to match, a quarter of the difference is left."""
    off = []
    for growth in (1.0, 0.25):
        own = adam.square_root_rule(growth, **SETTING)
        steps = tuple(int(t / growth) for t in NOISY["steps"])
        noise = tuple(s / growth**0.5 for s in NOISY["noise"])
        setting = {**NOISY, **own._asdict(), "steps": steps, "noise": noise}
        found = adam.adam_moments(**setting)
        off.append(np.array(step_by_step(**setting)) - [found.mean, found.square])
    assert_allclose(off[1] / off[0], 0.25, rtol=0.1)


@pytest.mark.parametrize("growth", [0.25, 3.0])
def test_the_square_root_rule_keeps_the_moments(growth: float) -> None:
    own = adam.square_root_rule(growth, **SETTING)
    steps = tuple(int(t / growth) for t in (1500, 2400))
    noise = tuple(s / growth**0.5 for s in NOISY["noise"])
    base = adam.adam_moments(**{**NOISY, "steps": (1500, 2400)})
    assert_allclose(
        adam.adam_moments(**{**NOISY, **own._asdict(), "steps": steps, "noise": noise}), base, rtol=1e-6
    )


def test_half_life_is_kept_from_one_batch_size_to_another() -> None:
    other = adam.same_half_life(0.97, known=6, batch_size=[2, 30])
    assert_allclose(adam.half_life(other, batch_size=[2, 30]), adam.half_life(0.97, batch_size=6), rtol=1e-12)
    assert_allclose(0.97 ** (adam.half_life(0.97, batch_size=6) / 6), 0.5, rtol=1e-12)


GRADIENT, NOISE = np.array([0.3, -0.1, 0.05]), np.array([1.0, 0.6, 2.0])


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_edge_is_where_an_oscillation_keeps_its_length(momentum: float) -> None:
    """x' = x - eta m', m' = beta m + (1 - beta) lambda x has the eigenvalue -1 there."""
    rate = 0.02
    pull = (1 - momentum) * float(adam.adaptive_edge(rate, momentum=momentum))
    step = np.array([[1 - rate * pull, -rate * momentum], [pull, momentum]])
    assert_allclose(np.abs(np.linalg.eigvals(step)).max(), 1, rtol=1e-7)
    assert_allclose(np.linalg.det(step + np.eye(2)), 0, atol=1e-9)


def _by_many_digits(g: list[float], h: list[list[float]], sigma: list[float], size: float) -> list[Any]:
    """`sign_rate`, `surge_scale` and `surge_rate` as they are written in the paper."""
    with mpmath.workdps(60):
        slopes = [mpmath.mpf(a) / b for a, b in zip(g, sigma, strict=True)]
        signs = [mpmath.erf(mpmath.sqrt(mpmath.mpf(size) / 2) * slope) for slope in slopes]
        trace = mpmath.fsum(mpmath.mpf(row[i]) for i, row in enumerate(h))

        def coupled(x: list[Any]) -> Any:
            return mpmath.fsum(h[i][j] * x[i] * x[j] for i in range(len(g)) for j in range(len(g)) if i != j)

        def along(x: list[Any]) -> Any:
            return mpmath.fsum(a * b for a, b in zip(g, x, strict=True))

        scale = mpmath.pi / 2 * trace / coupled(slopes)
        largest = mpmath.sqrt(2 / mpmath.pi * scale) * along(slopes) / trace / 2
        surge = largest / ((mpmath.sqrt(scale / size) + mpmath.sqrt(size / scale)) / 2)
        return [along(signs) / (trace + coupled(signs)), scale, surge]


@pytest.mark.parametrize("unit_of_gradient", [1e-300, 1e-150, 1.0, 1e150, 1e300])
@pytest.mark.parametrize("unit_of_loss", [1e-290, 1.0, 1e290])
@pytest.mark.parametrize("size", [1e-300, 3.0, 1e300])
def test_rates_hold_in_all_units_without_a_warning(
    unit_of_gradient: float, unit_of_loss: float, size: float
) -> None:
    """Intermediate overflow does no harm; overflow of the result is refused."""
    g, sigma = [0.3 * unit_of_gradient, -0.5 * unit_of_gradient], [2.0, 0.7]
    h = [[2.0 * unit_of_loss, -1.0 * unit_of_loss], [-1.0 * unit_of_loss, 3.0 * unit_of_loss]]
    given = {"hessian": h, "noise": sigma}
    calls = [
        lambda: adam.sign_rate(g, **given, batch_size=size),
        lambda: adam.surge_scale(g, **given),
        lambda: adam.surge_rate(g, **given, batch_size=size),
    ]
    for call, exact in zip(calls, _by_many_digits(g, h, sigma, size), strict=True):
        if exact > 1e308:
            with pytest.raises(ValueError, match="must be such that the result does not overflow"):
                call()
        elif exact > 1e-290:
            assert float(call() / exact) == pytest.approx(1.0, rel=1e-12)
