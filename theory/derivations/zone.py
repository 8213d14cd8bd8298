r"""Symbolic derivations of what scales and sizes do to the curvature of a classifier.

===========================  ==========================================  =====================================
name                         result                                      Vysogorets, Dawid and Kempe (2024)
===========================  ==========================================  =====================================
``excess_of_samples``        of the random logit model, N samples        beyond Section 4, Eq. (8)
``haar_second_moment``       squared norm in a random subspace           beyond Section 4 and Appendix F
``one_parameter_law``        curvature as a function of T over alpha^L   beyond Section 6, from Eq. (5)
``scale_of_equal_norms``     scale of equal norms                        beyond Section 3, from Eqs. (5), (6)
``mean_near_tie``            E p_1 p_2 over a density of gaps            beyond Section 3
``equal_tail_eigenvalue``    spectrum of S - 1 equal small entries       Appendix C, Eq. (12)
===========================  ==========================================  =====================================

The numeric functions of `theory.gauss_newton`, `theory.zone` and `theory.softmax` are tested against these.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from theory.derivations._symbolic import Derivation, derived, equation, latex, require_zero, sp


@derived
def excess_of_samples() -> Derivation:
    r"""Excess of the Gauss-Newton matrix of N samples in the random logit model.

    Returns
    -------
    Expression in :math:`d, \sigma_c, \sigma_e`, the :math:`\bar\Gamma` of the mean softmax covariance and the
    :math:`\Gamma_\oplus` of all of them side by side.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Eq. (8), the excess of the expected matrix.

    Examples
    --------
    >>> found = excess_of_samples()
    >>> d, c, e, mean, separate = found.symbols
    >>> found.expression.subs(separate, mean).simplify()
    Gamma*sqrt(d)/sqrt(Gamma**2 + d + 1)
    """
    d, c, e, mean, separate = sp.symbols(r"d sigma_c sigma_e Gamma Gamma_\oplus", positive=True)
    t, mixed, own = sp.symbols("t m q", positive=True)
    s = c**2 + e**2
    square = d * (s**2 * t**2 + (d + 1) * (c**4 * mixed + (s**2 - c**4) * own))
    _check_wick(square, (d, c, e, t, mixed, own))
    expression = sp.sqrt(d) * s / sp.sqrt(s**2 + (d + 1) * (c**4 / mean**2 + (s**2 - c**4) / separate**2))
    at = {mixed: t**2 / mean**2, own: t**2 / separate**2}
    require_zero((d * s * t) ** 2 / square.subs(at) - expression**2, "excess of a finite sample")
    return equation(
        r"\mathrm{E}\,\mathrm{Tr}\,G / (\mathrm{E}\,\|G\|_F^2)^{1/2}",
        expression,
        (d, c, e, mean, separate),
        r"G = \frac1N \sum_\mu J^{\mu\top} M^\mu J^\mu, \quad J^\mu = C + E^\mu",
        r"\mathrm{E}\,J^\mu_{ki} J^\nu_{lj} = \delta_{kl} \delta_{ij}"
        r" (\sigma_c^2 + \delta_{\mu\nu} \sigma_e^2)",
        r"t = \mathrm{Tr}\,\bar M, \quad m = \|\bar M\|_F^2, \quad q = N^{-2} \sum_\mu \|M^\mu\|_F^2",
        rf"\mathrm{{E}}\,\mathrm{{Tr}}\,G = {latex(d * s * t)}",
        r"\text{The three pairings of four Gaussian factors:}",
        rf"\mathrm{{E}}\,\|G\|_F^2 = {latex(square)}",
        r"m = t^2 / \Gamma^2, \quad q = t^2 / \Gamma_\oplus^2",
    )


@derived
def haar_second_moment() -> Derivation:
    r"""Mean squared norm of :math:`R^\top H R` over orthonormal frames R of d columns in P dimensions.

    Returns
    -------
    Expression in d, P, :math:`f = \|H\|_F^2` and :math:`t = \mathrm{Tr} H`.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Section 4 and Appendix F.

    Examples
    --------
    >>> found = haar_second_moment()
    >>> d, P, f, t = found.symbols
    >>> found.expression.subs(d, P).simplify()
    f
    """
    d, P, f, t, a, b = sp.symbols("d P f t a b", positive=True)
    # Tr W = d squared, and Tr W^2 = d, of E W_ij W_kl = a 1_ij 1_kl + b (1_ik 1_jl + 1_il 1_jk)
    solved = sp.solve([a * P**2 + 2 * b * P - d**2, a * P + b * (P**2 + P) - d], [a, b], dict=True)[0]
    expression = sp.factor(solved[a] + solved[b]) * f + sp.factor(solved[b]) * t**2
    require_zero(expression.subs(d, P) - f, "the whole space")
    require_zero(solved[a] - d * (d * (P + 1) - 2) / (P * (P - 1) * (P + 2)), "first coefficient")
    # one column is a uniform unit vector: E (r' H r)^2 = (2 f + t^2) / (P (P + 2))
    require_zero(expression.subs(d, 1) - (2 * f + t**2) / (P * (P + 2)), "one column")
    return equation(
        r"\mathrm{E}\,\|R^\top H R\|_F^2",
        expression,
        (d, P, f, t),
        r"W = R R^\top, \quad \mathrm{E}\,W_{ij} W_{kl} = a\,\delta_{ij} \delta_{kl}"
        r" + b\,(\delta_{ik} \delta_{jl} + \delta_{il} \delta_{jk})",
        r"(\mathrm{Tr}\,W)^2 = d^2: \quad a P^2 + 2 b P = d^2",
        r"\mathrm{Tr}\,W^2 = d: \quad a P + b (P^2 + P) = d",
        rf"a = {latex(sp.factor(solved[a]))}, \quad b = {latex(sp.factor(solved[b]))}",
        r"\|R^\top H R\|_F^2 = \mathrm{Tr}(H W H W), \text{ mean } (a + b) \|H\|_F^2 + b\,(\mathrm{Tr} H)^2",
    )


@derived
def one_parameter_law() -> Derivation:
    r"""The Hessian of a scaled network at temperature T is that of the unscaled one at :math:`T/\alpha^L`.

    Returns
    -------
    Expression of the factor, in :math:`\alpha`.

    References
    ----------
    Sharper than Vysogorets, Dawid and Kempe (2024), Section 6; from Eq. (5).

    Examples
    --------
    >>> one_parameter_law().expression
    alpha**(-2)
    """
    alpha, T, L = sp.symbols("alpha T L", positive=True)
    G, H = sp.symbols(r"G \tilde{H}", real=True)

    def hessian(scale: Any, heat: Any) -> Any:
        return G * scale ** (2 * L - 2) / heat**2 + H * scale ** (L - 2) / heat

    ratio = sp.powsimp(sp.simplify(hessian(alpha, T) / hessian(sp.Integer(1), T / alpha**L)))
    require_zero(ratio - alpha**-2, "one parameter")
    return Derivation(
        statement=r"H'(\alpha, T) = \alpha^{-2} H(1, T / \alpha^L)",
        expression=ratio,
        symbols=(alpha,),
        steps=(
            rf"H'(\alpha, T) = {latex(hessian(alpha, T))}",
            r"\text{Both parts are taken at } p' = \mathrm{softmax}(\alpha^L z / T)"
            r" \text{, which is } p \text{ of the unscaled network at } T / \alpha^L",
            rf"H(1, T / \alpha^L) = {latex(hessian(sp.Integer(1), T / alpha**L))}",
        ),
    )


@derived
def scale_of_equal_norms() -> Derivation:
    r"""Scale at which the norms of G and of the H-term are equal, at uniform probabilities and T = 1.

    Returns
    -------
    Expression in the two norms g and h of the unscaled network and in L.

    References
    ----------
    From Vysogorets, Dawid and Kempe (2024), Eqs. (5) and (6).

    Examples
    --------
    >>> scale_of_equal_norms().expression
    (h/g)**(1/L)
    """
    alpha, L, g, h = sp.symbols("alpha L g h", positive=True)
    edge = (h / g) ** (1 / L)
    ratio = sp.powsimp(alpha ** (2 * L - 2) / alpha ** (L - 2))
    require_zero(ratio - alpha**L, "ratio of the factors")
    require_zero(sp.powdenest(edge**L, force=True) * g - h, "equal norms")
    return equation(
        r"\alpha_{\rm low}",
        edge,
        (g, h, L),
        r"\|G'\| = \alpha^{2L-2} g, \quad \|\tilde H'\| = \alpha^{L-2} h \text{ at uniform } p",
        rf"\|G'\| / \|\tilde H'\| = {latex(ratio * g / h)}",
        r"\text{It is 1 at } \alpha_{\rm low}, \text{ and } p \text{ is uniform up to } O(\alpha^L)",
    )


@derived
def mean_near_tie() -> Derivation:
    r"""Mean of :math:`p_1 p_2` over a density f of gaps between the two largest logits, at large scale.

    Returns
    -------
    Expression in f, the density at 0, :math:`\alpha`, L and T.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Section 3.

    Examples
    --------
    >>> mean_near_tie().expression
    T*f/(2*alpha**L)
    """
    u, f, alpha, L, T = sp.symbols("u f alpha L T", positive=True)
    two = sp.exp(-u) / (1 + sp.exp(-u)) ** 2
    primitive = 1 / (1 + sp.exp(-u))
    require_zero(sp.simplify(sp.diff(primitive, u) - two), "primitive")
    integral = sp.limit(primitive, u, sp.oo) - primitive.subs(u, 0)
    expression = integral * f * T / alpha**L
    return equation(
        r"\mathrm{E}\,p_1 p_2",
        expression,
        (f, alpha, L, T),
        rf"p_1 p_2 = {latex(two)}, \quad u = \alpha^L g / T",
        rf"\int_0^\infty p_1 p_2 \, du = {latex(integral)}",
        r"dg = T \alpha^{-L} du, \text{ and } f(g) \to f(0) \text{ as } \alpha \to \infty",
        rf"\alpha^{{2L-2}}\,\mathrm{{E}}\,p_1 p_2 = {latex(sp.powsimp(expression * alpha ** (2 * L - 2)))}",
    )


@derived
def equal_tail_eigenvalue() -> Derivation:
    r"""Largest eigenvalue of the softmax covariance of a mode and S - 1 equal entries.

    Returns
    -------
    Expression in S and :math:`\varepsilon`; the others are :math:`\varepsilon`, S - 2 times, and zeros.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Appendix C, Eq. (12), which is S = 2.

    Examples
    --------
    >>> found = equal_tail_eigenvalue()
    >>> found.expression.subs(found.symbols[0], 2)
    2*varepsilon*(1 - varepsilon)
    """
    S, eps, x = sp.symbols("S varepsilon x", positive=True)
    largest = S * eps * (1 - (S - 1) * eps)
    for members in (2, 3, 4):
        p = sp.Matrix([1 - (members - 1) * eps, *[eps] * (members - 1), 0])
        characteristic = (x * sp.eye(members + 1) - sp.diag(*p) + p * p.T).det()
        expected = x**2 * (x - largest.subs(S, members)) * (x - eps) ** (members - 2)
        require_zero(characteristic - expected, f"characteristic polynomial, S = {members}")
    return equation(
        r"\tilde\lambda_1",
        largest,
        (S, eps),
        r"p = (1 - (S - 1) \varepsilon, \varepsilon, \ldots, \varepsilon, 0, \ldots, 0)",
        r"\text{Differences of two equal entries: } \tilde\lambda = \varepsilon, \; S - 2 \text{ times}",
        r"(1 - S, 1, \ldots, 1, 0, \ldots, 0): \quad M v = \tilde\lambda_1 v",
        r"\text{The constant vector and the absent classes: } \tilde\lambda = 0",
    )


def _check_wick(square: Any, symbols: tuple[Any, ...]) -> None:
    """Compare the squared norm with the sum over pairings: two samples, two logits, any symmetric matrices.

    As a polynomial in d it has no constant and degree two, so that one and two dimensions decide.
    """
    d, c, e, t, mixed, own = symbols
    a = sp.symbols("a_1:7")
    matrices = [sp.Matrix([[a[0], a[1]], [a[1], a[2]]]), sp.Matrix([[a[3], a[4]], [a[4], a[5]]])]
    mean = (matrices[0] + matrices[1]) / 2
    at = {t: mean.trace(), mixed: (mean * mean).trace(), own: sum((m * m).trace() for m in matrices) / 4}
    for dim in (1, 2):
        found = _pairings(matrices, dim, shared=c**2, own=e**2) / 4
        require_zero(sp.expand(found - square.subs({d: dim, **at})), f"squared norm, d = {dim}")


def _pairings(matrices: list[Any], dim: int, *, shared: Any, own: Any) -> Any:
    """Sum over mu, nu of E Tr(J' M J J' M J), four Gaussian factors at a time in their three pairings."""
    samples, logits, axes = range(len(matrices)), range(2), range(dim)
    terms: list[Any] = []
    for mu, nu, k, m, n, o, i, j in product(samples, samples, *[logits] * 4, axes, axes):
        within = int((k, i) == (m, j) and (n, i) == (o, j))
        across = int((k, m) == (n, o)) + int((k, m, i) == (o, n, j))
        pairs = within * (shared + own) ** 2 + across * (shared + own * int(mu == nu)) ** 2
        terms.append(matrices[mu][k, m] * matrices[nu][n, o] * pairs)
    return sp.Add(*terms)
