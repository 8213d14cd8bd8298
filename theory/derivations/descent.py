r"""Symbolic derivations of what a batch does to a mean and to a step, and of the best rates of momentum.

====================================  ==============================================  ==========================
name                                  result                                          Granziol, Zohren, Roberts
                                                                                      (2022)
====================================  ==============================================  ==========================
``mean_without_replacement``          variance of a batch mean                        eq. (5)
``one_step_rate``                     mean-square rate of one step                    not in the paper
``theorem_4_exponent``                growth of the learning rate with b              section 10.1
``heavy_ball_rate``                   best constant rates of Polyak                   eq. (24), corrected
``slowest_nesterov_mode``             contraction of Nesterov                         eq. (25), corrected
====================================  ==============================================  ==========================

Every step that is an identity is checked by sympy before a result is returned; the numeric functions of
`theory.batch_hessian` and `theory.learning_rates` are tested against these expressions.
"""

from __future__ import annotations

import itertools

from theory.derivations._symbolic import Derivation, at, derived, equation, latex, require_zero, sp
from theory.derivations.spectra import wigner_outlier


@derived
def mean_without_replacement() -> Derivation:
    r"""Variance of the mean of B of N numbers, drawn without replacement.

    Returns
    -------
    Expression in :math:`\sigma_N^2` (which divides by N), B and N.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eq. (5).

    Examples
    --------
    >>> mean_without_replacement().expression
    sigma_N**2*(-B + N)/(B*(N - 1))
    """
    sigma, B, N = sp.symbols("sigma_N B N", positive=True)
    covariance = -(sigma**2) / (N - 1)
    variance = sigma**2 * (N - B) / (B * (N - 1))
    require_zero((B * sigma**2 + B * (B - 1) * covariance) / B**2 - variance, "variance of a mean")
    unbiased = (1 / B - 1 / N) * (N / (N - 1) * sigma**2)
    require_zero(unbiased - variance, "the divisor N - 1")
    # every batch of four numbers
    x = sp.symbols("x_1:5")
    mean = sum(x) / 4
    spread = sum((v - mean) ** 2 for v in x) / 4
    for size in range(1, 5):
        batches = list(itertools.combinations(x, size))
        square = sum((sum(batch) / size - mean) ** 2 for batch in batches) / len(batches)
        require_zero(sp.expand(square - variance.subs({B: size, N: 4, sigma: 1}) * spread), f"B = {size}")
    return equation(
        r"\mathrm{E}\, \epsilon^2",
        variance,
        (sigma, B, N),
        r"\sum_{i \ne j} (x_i - \bar x)(x_j - \bar x) = -\sum_i (x_i - \bar x)^2:"
        r" \quad \mathrm{Cov} = -\sigma_N^2/(N - 1)",
        r"\mathrm{E}\, \epsilon^2 = (B \sigma_N^2 + B (B - 1) \mathrm{Cov}) / B^2",
        r"S^2 = N \sigma_N^2/(N - 1)",
        r"\text{With replacement } \mathrm{Cov} = 0: \quad \sigma_N^2/B",
        given=" = (1/B - 1/N) S^2",
    )


@derived
def one_step_rate() -> Derivation:
    r"""Learning rate at which one step from the top eigenvector keeps the mean square.

    Returns
    -------
    Expression in :math:`\lambda`, :math:`\nu` (variance of :math:`H_i v_1`) and b.

    Examples
    --------
    >>> one_step_rate().expression
    2*lambda/(lambda**2 + nu/b)
    """
    lam, nu, b, alpha = sp.symbols("lambda nu b alpha", positive=True)
    growth = 1 - 2 * alpha * lam + alpha**2 * (lam**2 + nu / b)
    rate = 2 * lam / (lam**2 + nu / b)
    (found,) = sp.solve(sp.expand((growth - 1) / alpha), alpha)
    require_zero(found - rate, "rate that keeps the mean square")
    top = at(wigner_outlier(), lam, sp.sqrt(nu / b))
    require_zero(rate - 2 / top, "the outlier formula without its threshold")
    return equation(
        r"\alpha",
        rate,
        (lam, nu, b),
        r"\mathrm{E}\, \|(1 - \alpha H_b) v_1\|^2 = 1 - 2 \alpha \lambda + \alpha^2 (\lambda^2 + \nu/b)",
        r"\nu = \sum_k \mathrm{Var}_i(v_k^\top H_i v_1)",
        rf"= 1 \text{{ at }} \alpha = {latex(rate)} = 2 / (\lambda + \nu/(b \lambda))",
        r"\text{Linear in } b \text{ for } b \ll \nu/\lambda^2, \text{ then flat}",
    )


@derived
def theorem_4_exponent() -> Derivation:
    r"""Local exponent of the learning rate :math:`2/\lambda_1'` of Theorem 4 in b, above the crossover.

    Returns
    -------
    Expression in b and :math:`B_c`, for :math:`b \ge B_c`; below it is 1/2.

    References
    ----------
    Granziol, Zohren and Roberts (2022), section 10.1, where the rate is said to be linear in the batch size.

    Examples
    --------
    >>> theorem_4_exponent().expression
    B_c/(B_c + b)
    """
    lam, b, crossover = sp.symbols("lambda b B_c", positive=True)
    outlier = wigner_outlier()
    s = lam * sp.sqrt(crossover / b)
    top = at(outlier, lam, s)
    exponent = crossover / (crossover + b)
    require_zero(-b * sp.diff(top, b) / top - exponent, "exponent above the crossover")
    below = sp.simplify(-b * sp.diff(2 * s, b) / (2 * s))
    require_zero(below - sp.Rational(1, 2), "exponent below the crossover")
    require_zero(exponent.subs(b, crossover) - below, "continuity at the crossover")
    require_zero(sp.diff(exponent, b) + crossover / (crossover + b) ** 2, "fall above the crossover")
    return equation(
        r"\frac{d \ln \alpha}{d \ln b}",
        exponent,
        (b, crossover),
        r"\alpha = 2/\lambda_1', \quad B_c = P \sigma^2/\lambda^2, \quad s = \lambda \sqrt{B_c/b}",
        r"b \le B_c: \quad \lambda_1' = 2 s, \quad \text{exponent } 1/2",
        rf"b \ge B_c: \quad \lambda_1' = \lambda (1 + B_c/b), \quad \text{{exponent }} {latex(exponent)}",
        r"\text{Equal at } B_c \text{ and falling from there: never above } 1/2, \text{ nowhere linear}",
        given=r" \le \tfrac12, \quad b \ge B_c",
    )


@derived
def heavy_ball_rate() -> Derivation:
    r"""Best constant learning rate of Polyak's momentum on a quadratic with eigenvalues in [mu, L].

    Returns
    -------
    Expression in L and :math:`\mu`.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eq. (24), where the square is missing in our copy.

    Examples
    --------
    >>> heavy_ball_rate().expression
    4/(sqrt(L) + sqrt(mu))**2
    """
    big, small, top, low, root, step, lam, x = sp.symbols("L mu l m s a lambda x", positive=True)
    # in l and m, the roots of L and mu, all sides are rational, as the check of a difference requires
    solved = sp.solve([step * low - (1 - root), step * top - (1 + root)], [step, root], dict=True)[0]
    momentum = solved[root] ** 2
    require_zero(solved[step] - 2 / (top + low), "learning rate of heavy ball")
    require_zero(solved[root] - (top - low) / (top + low), "momentum of heavy ball")
    characteristic = x**2 - (1 + root**2 - step**2 * lam) * x + root**2
    for end in (low**2, top**2):
        gap = sp.discriminant(characteristic, x).subs(lam, end).subs(solved)
        require_zero(gap, "double root at an end of the spectrum")
    under = ((1 - root) ** 2 - step**2 * lam) * ((1 + root) ** 2 - step**2 * lam)
    require_zero(sp.discriminant(characteristic, x) - under, "sign of the discriminant")
    square_roots = {top: sp.sqrt(big), low: sp.sqrt(small)}
    rate = (solved[step] ** 2).subs(square_roots)
    return equation(
        r"\alpha",
        rate,
        (big, small),
        r"x^2 - (1 + \rho - \alpha \lambda) x + \rho = 0 \text{ for the factor } x \text{ of one step}",
        r"\text{Its discriminant } ((1 - \sqrt\rho)^2 - \alpha \lambda)((1 + \sqrt\rho)^2 - \alpha \lambda)"
        r" \text{ is } \le 0 \text{ where } |x| = \sqrt\rho, \text{ else } \max |x| > \sqrt\rho",
        r"\text{The least } \rho \text{ for all of } [\mu, L]: \quad"
        r" \alpha \mu = (1 - \sqrt\rho)^2, \quad \alpha L = (1 + \sqrt\rho)^2",
        r"\sqrt\alpha = 2/(\sqrt L + \sqrt\mu), \quad"
        r" \sqrt\rho = (\sqrt L - \sqrt\mu)/(\sqrt L + \sqrt\mu), \text{ the contraction}",
        given=rf", \quad \rho = {latex(momentum.subs(square_roots))}",
    )


@derived
def slowest_nesterov_mode() -> Derivation:
    r"""Contraction of Nesterov's momentum at the learning rate 1/L.

    Returns
    -------
    Expression in L and :math:`\mu`.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eqs. (24) and (25); the learning rate reads sqrt(mu/L) in our copy.

    Examples
    --------
    >>> slowest_nesterov_mode().expression
    1 - sqrt(mu)/sqrt(L)
    """
    big, small, top, low, h, x = sp.symbols("L mu l m h x", positive=True)
    momentum = (top - low) / (top + low)
    characteristic = x**2 - (1 + momentum) * h * x + momentum * h
    slowest = {h: 1 - low**2 / top**2}
    require_zero(sp.discriminant(characteristic, x).subs(slowest), "double root at the smallest eigenvalue")
    contraction = 1 - low / top
    require_zero(((1 + momentum) * h / 2).subs(slowest) - contraction, "contraction of Nesterov")
    require_zero((momentum * h).subs(slowest) - contraction**2, "product of the roots")
    found = contraction.subs({top: sp.sqrt(big), low: sp.sqrt(small)})
    return equation(
        r"\max_\lambda |x|",
        found,
        (big, small),
        r"h = 1 - \alpha \lambda: \quad x^2 - (1 + \rho) h x + \rho h = 0, \quad \alpha = 1/L",
        r"\text{The discriminant } h ((1 + \rho)^2 h - 4 \rho) \text{ is } \le 0 \text{ for }"
        r" h \le 4 \rho/(1 + \rho)^2, \text{ where } |x|^2 = \rho h \text{ falls with } \lambda",
        r"\rho = (\sqrt L - \sqrt\mu)/(\sqrt L + \sqrt\mu) \text{ puts } \lambda = \mu \text{ at the end of it}",
        rf"x = (1 + \rho)(1 - \mu/L)/2 = {latex(found)}",
    )
