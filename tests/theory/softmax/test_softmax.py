"""Softmax covariance: spectrum, excess and collapse, against 60-digit arithmetic and dense matrices."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from theory import softmax

logits = st.lists(st.floats(-400, 400), min_size=2, max_size=12).map(np.array)


probabilities = logits.map(lambda z: np.exp(z - z.max()) / np.exp(z - z.max()).sum())


confident = st.tuples(st.lists(st.floats(1e-3, 1.0), min_size=2, max_size=8), st.floats(1e-300, 1e-1)).map(
    lambda t: np.array([1.0 - t[1], *(t[1] * np.array(t[0]) / np.sum(t[0]))])
)


law = settings(deadline=None, max_examples=50, derandomize=True)


def exact(p: np.ndarray) -> list[mpmath.mpf]:
    """Descending entries, the largest replaced by one minus the others."""
    tail = sorted((mpmath.mpf(float(x)) for x in p), reverse=True)[1:]
    return [1 - mpmath.fsum(tail), *tail]


def assert_roots(found: np.ndarray, poles: list[mpmath.mpf]) -> None:
    """sum p_k / (p_k - x) changes sign within 1e-14 relative of each eigenvalue, in exact arithmetic."""

    def secular(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.fsum(q / (q - x) for q in poles if q > 0)

    with mpmath.workdps(700):
        for value, above, below in zip(found, poles, poles[1:], strict=False):
            if below < 1e-290 or above == below:
                assert_allclose(value, float(below), rtol=found.size, atol=1e-322)
                continue
            low, high = (mpmath.mpf(float(value)) * (1 + shift) for shift in (-1e-14, 1e-14))
            assert low <= below or secular(low) < 0
            assert high >= above or secular(high) > 0


def reference(p: list[mpmath.mpf]) -> mpmath.mpf:
    """Trace over Frobenius norm of the dense matrix, entry by entry."""
    diagonal = [x * mpmath.fsum(p[:k] + p[k + 1 :]) for k, x in enumerate(p)]
    off = [(x * y) ** 2 for i, x in enumerate(p) for j, y in enumerate(p) if i != j]
    return mpmath.fsum(diagonal) / mpmath.sqrt(mpmath.fsum([x**2 for x in diagonal]) + mpmath.fsum(off))


def reference_from_logits(z: np.ndarray, temperature: float) -> mpmath.mpf:
    weights = [mpmath.exp((mpmath.mpf(float(x)) - float(z.max())) / mpmath.mpf(temperature)) for x in z]
    return reference([w / mpmath.fsum(weights) for w in weights])


def random_logits(count: int) -> list[np.ndarray]:
    rng = default_rng(7)
    return [rng.normal(size=rng.integers(2, 30)) * 10 ** rng.uniform(-3, 4) for _ in range(count)]


class TestCovariance:
    def test_is_diag_minus_outer_product(self) -> None:
        p = default_rng(0).dirichlet(np.ones(6), size=(2, 3))
        dense = p[..., None] * np.eye(6) - p[..., :, None] * p[..., None, :]

        assert_allclose(softmax.covariance(p), dense, atol=1e-16)

    def test_keeps_all_digits_of_the_diagonal_near_one_hot(self) -> None:
        matrix = softmax.covariance([3e-300, 1.0, 2e-300])

        assert_allclose(np.diag(matrix), [3e-300, 5e-300, 2e-300], rtol=1e-15, atol=0)
        assert_allclose(matrix[1], [-3e-300, 5e-300, -2e-300], rtol=1e-15, atol=0)

    def test_one_hot_gives_the_zero_matrix(self) -> None:
        assert_array_equal(np.signbit(softmax.covariance([0, 1, 0])), False)
        assert_array_equal(softmax.covariance([0, 1, 0]), np.zeros((3, 3)))

    def test_mode_is_one_minus_the_others(self) -> None:
        """The sum is off by 5e-9: not renormalised, rows still sum to zero."""
        matrix = softmax.covariance([0.5 + 5e-9, 0.3, 0.2])

        assert_allclose(matrix[0], [0.25, -0.15, -0.1], rtol=1e-15)


class TestEigenvalues:
    @law
    @given(probabilities)
    def test_interlace_descend_and_end_in_zero(self, p: np.ndarray) -> None:
        found, ordered = softmax.eigenvalues(p), np.sort(p)[::-1]

        assert found[-1] == 0.0
        assert np.all(found[:-1] <= ordered[:-1] * (1 + 1e-15)) and np.all(found[:-1] >= ordered[1:])
        assert np.all(np.diff(found) <= 0)

    @law
    @given(st.one_of(probabilities, confident))
    def test_bracket_a_root_of_the_secular_equation_to_1e_14(self, p: np.ndarray) -> None:
        with mpmath.workdps(700):
            assert_roots(softmax.eigenvalues(p), exact(p))

    @pytest.mark.parametrize("spread", [1e-3, 1e-6, 1e-9, 1e-12])
    def test_bracket_a_root_between_near_ties(self, spread: float) -> None:
        """The poles on both sides are as near as the spread, where an iteration is tempted to stop early."""
        weights = 1 + spread * default_rng(5).normal(size=(20, 5))
        for p in weights / weights.sum(axis=1, keepdims=True):
            poles = sorted((mpmath.mpf(float(x)) for x in p), reverse=True)
            assert_roots(softmax.eigenvalues(p), poles)

    @pytest.mark.parametrize("classes", [2, 3, 10, 49, 1000])
    def test_uniform_gives_one_over_k_exactly(self, classes: int) -> None:
        found = softmax.eigenvalues(np.full(classes, 1.0 / classes))

        assert_allclose(found[:-1], 1.0 / classes, rtol=3e-16)
        assert found[-1] == 0.0

    def test_one_hot_gives_zeros(self) -> None:
        assert_array_equal(softmax.eigenvalues([[0, 0, 1], [1, 0, 0]]), np.zeros((2, 3)))


class TestGamma:
    @law
    @given(st.one_of(probabilities, confident))
    def test_agrees_with_60_digits(self, p: np.ndarray) -> None:
        with mpmath.workdps(60):
            if np.count_nonzero(p) > 1:
                assert_allclose(softmax.gamma(p), float(reference(exact(p))), rtol=4e-15)

    def test_from_logits_agrees_with_60_digits(self) -> None:
        with mpmath.workdps(60):
            for z in random_logits(60):
                for temperature in (1.0, 0.3, 50.0):
                    expected = float(reference_from_logits(z, temperature))
                    found = softmax.gamma_from_logits(z, temperature=temperature)
                    assert_allclose(found, expected, rtol=2e-15)

    @pytest.mark.parametrize("gap", [40.0, 745.0, 5000.0, 1e6, 1e300])
    def test_from_saturated_logits_reaches_the_collapse_limit(self, gap: float) -> None:
        """Off-mode differences 0, -1, -2.5 survive however far the mode is."""
        z = [gap, 0.0, -1.0, -2.5]
        expected = softmax.collapse_limit(np.exp([0.0, -1.0, -2.5]))

        assert_allclose(softmax.gamma_from_logits(z), expected, rtol=1e-15 if gap > 100 else 1e-13)

    def test_extreme_logits_and_temperatures_stay_silent(self) -> None:
        big = np.finfo(float).max

        assert softmax.gamma_from_logits([big, -big, 0.0], temperature=1e-300) == 1.0
        assert_allclose(softmax.gamma_from_logits([1.0, -2.0, 0.0], temperature=big), 2**0.5, rtol=1e-15)

    def test_logits_whose_difference_is_no_float_keep_their_weight_at_such_temperatures(self) -> None:
        """Weights 1, exp(-1e-3) and exp(-2), though 2e308 is beyond the floats; at temperature 1 they are 1, 0, 0."""
        z = np.array([1.0, 0.999, -1.0])
        found = softmax.gamma_from_logits(1e308 * z, temperature=[1e308, 1.0])

        assert_allclose(found, [softmax.gamma_from_logits(z), 1.0], rtol=4e-15)

    def test_single_precision_input_is_allowed_its_rounding(self) -> None:
        p = np.array([1 / 3, 1 / 3, 1 / 3 + 3e-6], dtype=np.float32)

        assert_allclose(softmax.gamma(p), 2**0.5, rtol=1e-9)
        with pytest.raises(ValueError, match="sum 1 within 1e-08"):
            softmax.gamma(p.astype(np.float64))


class TestGammaOfBatch:
    @pytest.mark.parametrize("classes", [3, 40, 400])
    def test_is_that_of_the_mean_matrix(self, classes: int) -> None:
        p = default_rng(6).dirichlet(np.full(classes, 0.5), size=(2, 7))
        mean = softmax.covariance(p).mean(axis=-3)
        expected = np.trace(mean, axis1=-2, axis2=-1) / np.linalg.norm(mean, axis=(-2, -1))

        assert_allclose(softmax.gamma(p, average=True), expected, rtol=1e-13)

    @pytest.mark.parametrize("scale", [1e-3, 1e-40, 1e-160, 1e-300])
    def test_keeps_digits_when_every_member_is_saturated(self, scale: float) -> None:
        """Two members with different modes, and their exact mean matrix to leading order and beyond."""
        tails = [[None, 3.0, 1.0, 0.0], [2.0, None, 0.0, 5.0]]
        p = [[1.0 if t is None else t * scale for t in row] for row in tails]
        with mpmath.workdps(700):
            total = mpmath.matrix(4, 4)
            for row in p:
                top = row.index(1.0)
                entries = [mpmath.mpf(x) for x in row]
                entries[top] = 1 - mpmath.fsum(entries[:top] + entries[top + 1 :])
                column = mpmath.matrix(entries)
                total += mpmath.diag(entries) - column * column.T
            expected = mpmath.fsum(total[i, i] for i in range(4)) / mpmath.mnorm(total, "f")

        assert_allclose(softmax.gamma(normalised(p), average=True), float(expected), rtol=4e-15)


def normalised(p: list[list[float]]) -> np.ndarray:
    """The mode made 1 minus the others, as far as float64 can hold it."""
    array = np.array(p)
    modes = array.argmax(axis=1)
    rows = np.arange(len(array))
    array[rows, modes] = 1 - (array.sum(axis=1) - array[rows, modes])
    return array


class TestCollapseLimit:
    @pytest.mark.parametrize(
        ("weights", "squared"), [([1, 0.5], 1.5), ([1, 0.1, 0.01], None), ([3, 2, 1, 1], 98 / 47)]
    )
    def test_is_reached_by_gamma(self, weights: list[float], squared: float | None) -> None:
        tail = np.array(weights) * 1e-20
        found = softmax.collapse_limit(weights)

        assert_allclose(softmax.gamma([1.0, *tail]), found, rtol=1e-15)
        if squared is not None:
            assert_allclose(found**2, squared, rtol=1e-15)

    def test_ignores_the_scale_of_the_weights(self) -> None:
        tiny = np.array([3.0, 1.0]) * 1e-310

        assert_allclose(softmax.collapse_limit(tiny), softmax.collapse_limit([3e300, 1e300]), rtol=1e-12)
