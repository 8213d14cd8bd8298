r"""Symbolic derivations of the closed forms: where the numbers of this package come from.

============================  ==========================================  ================================
name                          result                                      Vysogorets, Dawid, Kempe (2024)
============================  ==========================================  ================================
``gamma_squared_of_moments``  :math:`\Gamma_p^2` from power sums          Appendix C, Eq. (10)
``gamma_squared_equal``       the same for S - 1 equal small entries      Appendix C, Eq. (11)
``collapse_limit_equal``      its limit :math:`4(S-1)/(S+2)`              Appendix C
``collapse_limit_weighted``   limit :math:`4/(1+3h)` for unequal entries  beyond Appendix C
``excess_of_expectation``     excess of the expected Gauss-Newton matrix  Section 4, Eqs. (7) and (8)
``scaling_exponents``         Hessian of a scaled network                 Section 3, Eq. (5)
============================  ==========================================  ================================

Every step that is an identity is checked by sympy before a result is returned; the numeric functions of
`theory.softmax` and `theory.gauss_newton` are tested against these expressions. The others stand in
`theory.derivations.spectra`, `theory.derivations.descent`, `theory.derivations.wide` and `theory.derivations.zone`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from theory.derivations import descent, spectra, wide, zone
from theory.derivations._symbolic import Derivation, at, derived, equation, latex, require_zero, sp

__all__ = [
    "Derivation",
    "collapse_limit_equal",
    "collapse_limit_weighted",
    "every_derivation",
    "excess_of_expectation",
    "gamma_squared_equal",
    "gamma_squared_of_moments",
    "scaling_exponents",
]


@derived
def gamma_squared_of_moments() -> Derivation:
    r"""Eq. (10) in power sums, :math:`\Gamma_p^2 = (1-s_2)^2/(s_2 - 2s_3 + s_2^2)`.

    Returns
    -------
    Expression in :math:`s_2 = \sum_k p_k^2` and :math:`s_3 = \sum_k p_k^3`.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Appendix C, Eq. (10).

    Examples
    --------
    >>> gamma_squared_of_moments().expression
    (1 - s_2)**2/(s_2**2 + s_2 - 2*s_3)
    """
    s2, s3 = sp.symbols("s_2 s_3", positive=True)
    trace, square = 1 - s2, s2 - 2 * s3 + s2**2
    for classes in (2, 3, 4):
        p = sp.symbols(f"p_1:{classes}", positive=True)
        p = sp.Matrix([*p, 1 - sum(p)])
        matrix = sp.diag(*p) - p * p.T
        moments = {s2: sum(x**2 for x in p), s3: sum(x**3 for x in p)}
        require_zero(matrix.trace() - trace.subs(moments), f"trace, K = {classes}")
        require_zero((matrix * matrix).trace() - square.subs(moments), f"squared norm, K = {classes}")
    return equation(
        r"\Gamma_p^2",
        trace**2 / square,
        (s2, s3),
        r"M = \mathrm{diag}(p) - p p^\top, \quad s_n = \sum_k p_k^n, \quad s_1 = 1",
        rf"\mathrm{{Tr}} M = \sum_k p_k (1 - p_k) = {latex(trace)}",
        r"\mathrm{Tr} M^2 = \sum_k p_k^2 (1 - p_k)^2 + \sum_{i \ne j} p_i^2 p_j^2",
        r"\sum_{i \ne j} p_i^2 p_j^2 = s_2^2 - s_4, \quad \sum_k p_k^2 (1 - p_k)^2 = s_2 - 2 s_3 + s_4",
        rf"\|M\|_F^2 = \mathrm{{Tr}} M^2 = {latex(square)}",
    )


@derived
def gamma_squared_equal() -> Derivation:
    r"""Eq. (11) without its remainder: S - 1 entries :math:`\varepsilon`, one entry of the rest.

    Returns
    -------
    Expression in S, the number of non-zero entries, and :math:`\varepsilon`; exact for all
    :math:`0 < \varepsilon < 1/(S-1)`.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Appendix C, Eq. (11).

    Examples
    --------
    >>> import sympy
    >>> found = gamma_squared_equal()
    >>> S, eps = found.symbols
    >>> sympy.factor(found.expression.subs(eps, 1 / S))
    S - 1
    """
    S, eps = sp.symbols("S varepsilon", positive=True)
    s2, s3 = ((1 - (S - 1) * eps) ** n + (S - 1) * eps**n for n in (2, 3))
    general = gamma_squared_of_moments()
    found = sp.cancel(at(general, s2, s3))
    norm = S + 2 - 2 * S**2 * eps + S**2 * (S - 1) * eps**2
    expression = (S - 1) * (2 - S * eps) ** 2 / norm
    require_zero(found - expression, "equal entries")
    return equation(
        r"\Gamma_p^2",
        expression,
        (S, eps),
        r"p = (1 - (S - 1) \varepsilon, \varepsilon, \ldots, \varepsilon, 0, \ldots, 0)",
        r"s_n = (1 - (S - 1) \varepsilon)^n + (S - 1) \varepsilon^n",
        general.statement,
        r"\text{A factor } (S - 1) \varepsilon^2 \text{ cancels:}",
        rf"\Gamma_p^2 = {latex(expression)}",
    )


@derived
def collapse_limit_equal() -> Derivation:
    r"""Limit of Eq. (11) at one-hot, :math:`\Gamma_p^2 \to 4(S-1)/(S+2)`.

    Returns
    -------
    Expression in S, the number of non-zero entries.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Appendix C, Eq. (11).

    Examples
    --------
    >>> collapse_limit_equal().expression
    4*(S - 1)/(S + 2)
    """
    exact = gamma_squared_equal()
    S, eps = exact.symbols
    limit = sp.factor(sp.limit(exact.expression, eps, 0))
    correction = sp.factor(sp.diff(exact.expression, eps).subs(eps, 0))
    return equation(
        r"\lim_{\varepsilon \to 0} \Gamma_p^2",
        limit,
        (S,),
        exact.statement,
        rf"\Gamma_p^2 = {latex(limit)} + {latex(correction * eps)} + O(\varepsilon^2)",
        r"S = 2: \quad \Gamma_p = 1 \text{ for every } \varepsilon",
    )


@derived
def collapse_limit_weighted() -> Derivation:
    r"""Limit at one-hot with unequal entries, :math:`\Gamma_p^2 \to 4/(1+3h)`.

    Returns
    -------
    Expression in :math:`h = \sum_i w_i^2 / (\sum_i w_i)^2`, from 1/n for n equal entries to 1 for one.

    References
    ----------
    Generalises Vysogorets, Dawid and Kempe (2024), Appendix C, Eq. (11).

    Examples
    --------
    >>> collapse_limit_weighted().expression
    4/(3*h + 1)
    """
    eps, h, w1, w2, w3 = sp.symbols("varepsilon h W_1 W_2 W_3", positive=True)
    moments = ((1 - eps * w1) ** 2 + eps**2 * w2, (1 - eps * w1) ** 3 + eps**3 * w3)
    general = gamma_squared_of_moments()
    exact = sp.cancel(at(general, *moments))
    limit = sp.factor(sp.limit(exact, eps, 0))
    expression = sp.cancel(limit.subs(w2, h * w1**2))
    equal = collapse_limit_equal()
    require_zero(expression.subs(h, 1 / (equal.symbols[0] - 1)) - equal.expression, "equal weights")
    return equation(
        r"\lim_{\varepsilon \to 0} \Gamma_p^2",
        expression,
        (h,),
        r"p = (1 - \varepsilon W_1, \varepsilon w_1, \varepsilon w_2, \ldots), \quad W_n = \sum_i w_i^n",
        rf"s_2 = {latex(moments[0])}, \quad s_3 = {latex(moments[1])}",
        general.statement,
        rf"\lim_{{\varepsilon \to 0}} \Gamma_p^2 = {latex(limit)}",
        r"h = W_2 / W_1^2",
    )


@derived
def excess_of_expectation() -> Derivation:
    r"""Eq. (8): excess of the expected Gauss-Newton matrix of the random logit model.

    Returns
    -------
    Expression in :math:`d, \sigma_c, \sigma_e, \Gamma`.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Eqs. (7) and (8).

    Examples
    --------
    >>> found = excess_of_expectation()
    >>> d, c, e, g = found.symbols
    >>> found.expression.subs(c, 0), found.expression.subs(e, 0)
    (sqrt(d), Gamma)
    """
    d, c, e, g, t, m = sp.symbols("d sigma_c sigma_e Gamma t m", positive=True)
    trace = d * c**2 * t + d * e**2 * t
    square = d**2 * c**4 * m + 2 * d * c**2 * e**2 * t**2 + d * e**4 * t**2
    # the matrix itself, for three classes in five dimensions
    p, q = sp.symbols("p q", positive=True)
    entries = sp.Matrix([p, q, 1 - p - q])
    M = sp.diag(*entries) - entries * entries.T
    expected = 5 * c**2 * sp.diag(M, 0, 0) + M.trace() * e**2 * sp.eye(5)
    case = {d: 5, t: M.trace(), m: (M * M).trace()}
    require_zero(expected.trace() - trace.subs(case), "trace of the expected matrix")
    require_zero((expected * expected).trace() - square.subs(case), "norm of the expected matrix")
    square = square.subs(m, t**2 / g**2)
    excess = sp.sqrt(d) * (c**2 + e**2) / sp.sqrt(e**4 + 2 * c**2 * e**2 + d * c**4 / g**2)
    require_zero(trace**2 / square - excess**2, "excess")
    return equation(
        r"\mathrm{Tr}(\mathrm{E}\,G) / \|\mathrm{E}\,G\|_F",
        excess,
        (d, c, e, g),
        r"\mathrm{E}\,G = d \sigma_c^2 \begin{pmatrix} M & 0 \\ 0 & 0 \end{pmatrix} + t \sigma_e^2 I_d,"
        r" \quad t = \mathrm{Tr} M",
        rf"\mathrm{{Tr}}\,\mathrm{{E}}\,G = {latex(trace)}",
        r"\|\mathrm{E}\,G\|_F^2 = d^2 \sigma_c^4 \|M\|_F^2 + 2 d \sigma_c^2 \sigma_e^2 t^2"
        r" + d \sigma_e^4 t^2",
        r"\|M\|_F^2 = t^2 / \Gamma^2",
        rf"\|\mathrm{{E}}\,G\|_F^2 = {latex(sp.factor(square))}",
    )


@derived
def scaling_exponents() -> Derivation:
    r"""Eq. (5): Hessian of a network of degree L at scaled parameters and temperature T.

    Returns
    -------
    Expression :math:`G \alpha^{2L-2}/T^2 + \tilde H \alpha^{L-2}/T` in :math:`\alpha, T, L, G, \tilde H`.
    G and :math:`\tilde H` have the derivatives of the logits at the unscaled parameters, and the softmax
    probabilities of the scaled ones.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Section 3, Eq. (5).

    Examples
    --------
    >>> found = scaling_exponents()
    >>> found.expression.subs(found.symbols[1], found.symbols[0] ** found.symbols[2]).simplify()
    (G + \tilde{H})/alpha**2
    """
    alpha, T, L = sp.symbols("alpha T L", positive=True)
    G, H = sp.symbols(r"G \tilde{H}", real=True)
    first, second = (_power_of_derivative(alpha, L, order) for order in (1, 2))
    expression = G * alpha ** sp.expand(2 * first) / T**2 + H * alpha**second / T
    return equation(
        "H'",
        expression,
        (alpha, T, L, G, H),
        r"f(\alpha \theta) = \alpha^L f(\theta)",
        rf"f'(\alpha \theta) = \alpha^{{{latex(first)}}} f'(\theta), \quad"
        rf" f''(\alpha \theta) = \alpha^{{{latex(second)}}} f''(\theta)",
        r"G = J^\top M(p) J \text{ has two first derivatives and two factors } 1/T",
        r"\tilde H = \sum_k (p - y)_k \nabla^2 f_k \text{ has one second derivative, one factor } 1/T",
    )


@cache
def every_derivation() -> tuple[Derivation, ...]:
    """Every derivation, those of the other modules last.

    Examples
    --------
    >>> [d.name for d in every_derivation()][:2]
    ['gamma_squared_of_moments', 'gamma_squared_equal']
    """
    return (
        gamma_squared_of_moments(),
        gamma_squared_equal(),
        collapse_limit_equal(),
        collapse_limit_weighted(),
        excess_of_expectation(),
        scaling_exponents(),
        spectra.wigner_outlier(),
        spectra.wishart_outlier(),
        spectra.wishart_threshold(),
        spectra.information_plus_noise_outlier(),
        spectra.outlier_gap(),
        spectra.additive_overlap(),
        spectra.information_plus_noise_overlap(),
        spectra.noise_free_spike(),
        spectra.marchenko_pastur_transform(),
        spectra.marchenko_pastur_density(),
        spectra.symmetric_poisson_outlier(),
        spectra.symmetric_poisson_threshold(),
        descent.mean_without_replacement(),
        descent.one_step_rate(),
        descent.theorem_4_exponent(),
        descent.heavy_ball_rate(),
        descent.slowest_nesterov_mode(),
        wide.arccosine_kernel(),
        wide.arccosine_slope_kernel(),
        wide.erf_kernel(),
        wide.relu_fixed_point(),
        wide.relu_correlation_map(),
        wide.critical_relu_kappa(),
        wide.linear_fluctuations(),
        wide.linear_lower_constant(),
        wide.linear_edge(),
        wide.normalisation_rank(),
        zone.excess_of_samples(),
        zone.haar_second_moment(),
        zone.one_parameter_law(),
        zone.scale_of_equal_norms(),
        zone.mean_near_tie(),
        zone.equal_tail_eigenvalue(),
    )


def _power_of_derivative(alpha: Any, L: Any, order: int) -> Any:
    """Exponent of alpha in the derivative at alpha x of a function with f(alpha x) = alpha^L f(x)."""
    x, at_scaled = sp.symbols("x at_scaled", positive=True)
    f = sp.Function("f")
    # The chain rule by sympy: the left side is a power of alpha times the derivative taken at alpha x.
    left = sp.diff(f(alpha * x), x, order)
    left = left.subs(dict.fromkeys(left.atoms(sp.Subs), at_scaled))
    ratio = sp.solve(left - alpha**L * sp.diff(f(x), x, order), at_scaled)[0]
    return sp.expand(sp.powsimp(ratio / sp.diff(f(x), x, order)).as_base_exp()[1])
