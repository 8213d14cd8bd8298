r"""Symbolic derivations of where noise moves a spike, and of what is left of its direction.

====================================  ==============================================  ==========================
name                                  result                                          Granziol, Zohren, Roberts
                                                                                      (2022)
====================================  ==============================================  ==========================
``wigner_outlier``                    :math:`\lambda + \sigma^2/\lambda`              Lemma 5, Theorem 4
``wishart_outlier``                   its additive Wishart map                        Theorem 7, eq. (16)
``wishart_threshold``                 where it leaves the bulk                        Theorem 7, corrected
``information_plus_noise_outlier``    map of :math:`(J + E)(J + E)^\top`              eqs. (14), (15)
``outlier_gap``                       distance from the edge, all three maps          Theorems 4 and 7
``additive_overlap``                  overlap, the derivative of the outlier          Theorem 10, and for Wishart
``information_plus_noise_overlap``    overlap of the left singular vectors            not in the paper
``noise_free_spike``                  Theorem 4 inverted                              Remark 6
====================================  ==============================================  ==========================

Every step that is an identity is checked by sympy before a result is returned; the numeric functions of
`theory.outliers`, `theory.batch_hessian` and `theory.rmt` are tested against these expressions.

Limiting spectra, from their R-transforms:

====================================  ==============================================  ==========================
name                                  result                                          Granziol, Zohren, Roberts
                                                                                      (2022)
====================================  ==============================================  ==========================
``marchenko_pastur_transform``        Stieltjes transform from R                      eq. (51), sign corrected
``marchenko_pastur_density``          its density                                     eq. (52), corrected
``symmetric_poisson_outlier``         spike among few directions of size a and -a     beyond Theorem 4
``symmetric_poisson_threshold``       where it leaves the bulk                        beyond Theorem 4
====================================  ==============================================  ==========================
"""

from __future__ import annotations

from typing import Any

from theory.derivations._symbolic import (
    Derivation,
    at,
    derived,
    equation,
    latex,
    marchenko_pastur_equation,
    require_zero,
    sp,
)


@derived
def wigner_outlier() -> Derivation:
    r"""Outlier of a spike in Wigner noise, with its threshold and edge, from the R-transform.

    Returns
    -------
    Expression in :math:`\lambda` and :math:`\sigma`, for :math:`\lambda > \sigma`.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Lemma 5, eq. (10), appendix A.2.

    Examples
    --------
    >>> wigner_outlier().expression
    lambda + sigma**2/lambda
    """
    lam, sigma, w, z = sp.symbols("lambda sigma w z", positive=True)
    quadratic = sigma**2 * w**2 - z * w + 1
    map_of = 1 / w + sigma**2 * w
    require_zero(quadratic.subs(z, map_of), "transform of the semicircle")
    outlier = sp.expand(map_of.subs(w, 1 / lam))
    (threshold,) = sp.solve(sp.diff(outlier, lam), lam)
    edge = sp.expand(outlier.subs(lam, threshold))
    require_zero(sp.discriminant(quadratic, w).subs(z, edge), "edge of the semicircle")
    return equation(
        r"\lambda'",
        outlier,
        (lam, sigma),
        r"R(w) = \sigma^2 w, \quad z = 1/w + R(w) \text{ solves } \sigma^2 w^2 - z w + 1 = 0, w = G(z)",
        r"\det(z - A - W) = 0 \text{ for } A = \lambda v v^\top \text{ where } \lambda G(z) = 1, w = 1/\lambda",
        rf"\lambda' = {latex(outlier)}, \quad d\lambda'/d\lambda = {latex(sp.diff(outlier, lam))}",
        rf"d\lambda'/d\lambda = 0 \text{{ at }} \lambda = {latex(threshold)}, \text{{ where }}"
        rf" \lambda' = {latex(edge)} \text{{ and the discriminant }} z^2 - 4\sigma^2 \text{{ vanishes}}",
        given=rf", \quad \lambda > {latex(threshold)}",
    )


@derived
def wishart_outlier() -> Derivation:
    r"""Outlier of a spike in independent Wishart noise, from the R-transform.

    Returns
    -------
    Expression in :math:`\lambda, \beta, \sigma`, beyond `wishart_threshold`.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Theorem 7, eq. (16), appendix B.

    Examples
    --------
    >>> wishart_outlier().expression
    lambda*sigma**2/(-beta*sigma**2 + lambda) + lambda
    """
    lam, beta, sigma, w = sp.symbols("lambda beta sigma w", positive=True)
    map_of = 1 / w + sigma**2 / (1 - beta * sigma**2 * w)
    outlier = lam + sigma**2 * lam / (lam - beta * sigma**2)
    require_zero(map_of.subs(w, 1 / lam) - outlier, "outlier in Wishart noise")
    printed = (lam + sigma**2 * (1 - beta)) / (1 - beta * sigma**2 / lam)
    require_zero(printed - outlier, "the form of eq. (16)")
    return equation(
        r"\lambda'",
        outlier,
        (lam, beta, sigma),
        r"\kappa_n = \sigma^{2n} \beta^{n-1}, \quad R(w) = \sigma^2 / (1 - \beta \sigma^2 w)",
        r"\lambda G(\lambda') = 1: \quad \lambda' = 1/w + R(w) \text{ at } w = 1/\lambda",
        rf"\lambda' = {latex(outlier)} = {latex(printed)}",
    )


@derived
def wishart_threshold() -> Derivation:
    r"""Spike at which the outlier in Wishart noise leaves the bulk: the stationary point of its map.

    Returns
    -------
    Expression in :math:`\beta` and :math:`\sigma`.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Theorem 7, where threshold and edge read sigma^2 (1 + beta) and twice
    it in our copy: the map's value at that point, so that nothing looks amiss, but no end of the bulk.

    Examples
    --------
    >>> wishart_threshold().expression
    sqrt(beta)*sigma**2*(sqrt(beta) + 1)
    """
    beta, sigma, r, t = sp.symbols("beta sigma r t", positive=True)
    found = wishart_outlier()
    # in r = sqrt(beta) all sides are rational, as the check of their difference requires
    at_root = at(found, t + r**2 * sigma**2, r**2)
    slope = sp.cancel(sp.diff(at_root, t))
    (size,) = sp.solve(sp.numer(sp.together(slope)), t)
    edge = sigma**2 * (1 + r) ** 2
    require_zero(at_root.subs(t, size) - edge, "edge of the Wishart bulk")
    require_zero(edge**2 - 2 * edge * sigma**2 * (1 + r**2) + sigma**4 * (1 - r**2) ** 2, "discriminant")
    printed = at(found, sigma**2 * (1 + beta))
    require_zero(printed - 2 * sigma**2 * (1 + beta), "what the map gives at the threshold of our copy")
    threshold = sp.factor(size + r**2 * sigma**2).subs(r, sp.sqrt(beta))
    return equation(
        r"\lambda_c",
        threshold,
        (beta, sigma),
        r"t = \lambda - \beta \sigma^2: \quad \lambda' = t + (1 + \beta) \sigma^2 + \beta \sigma^4 / t",
        r"d\lambda'/dt = 1 - \beta \sigma^4 / t^2 = 0 \text{ at } t = \sqrt\beta \sigma^2",
        r"\lambda'_c = \sigma^2 (1 + \sqrt\beta)^2, \text{ where the discriminant }"
        r" (z - \sigma^2 (1 - \beta))^2 - 4 \beta \sigma^2 z \text{ vanishes}",
        r"\lambda = \sigma^2 (1 + \beta) \text{ gives } \lambda' = 2 \sigma^2 (1 + \beta) > \lambda'_c"
        r" \text{ unless } \beta = 1",
    )


@derived
def information_plus_noise_outlier() -> Derivation:
    r"""Outlier of :math:`(J + E)(J + E)^\top`, from its determinant equation.

    Returns
    -------
    Expression in :math:`\lambda, \beta, \sigma`, for :math:`\lambda > \sqrt\beta \sigma^2`.

    References
    ----------
    Benaych-Georges and Nadakuditi (2012), section 3.1; Granziol, Zohren and Roberts (2022), eqs. (14), (15).

    Examples
    --------
    >>> information_plus_noise_outlier().expression
    (lambda + sigma**2)*(beta*sigma**2 + lambda)/lambda
    """
    lam, beta, sigma, z, g = sp.symbols("lambda beta sigma z G", positive=True)
    quadratic = marchenko_pastur_equation(g, z, beta, sigma)
    secular = lam * z * g * (beta * g + (1 - beta) / z) - 1
    resolvent = (lam + sigma**2) / (lam * z)
    require_zero(sigma**2 * secular - lam * quadratic - (lam * (z * g - 1) - sigma**2), "elimination of G^2")
    (outlier,) = sp.solve(sp.numer(sp.together(quadratic.subs(g, resolvent))), z)
    outlier = sp.factor(outlier)
    require_zero(at(wishart_outlier(), lam + beta * sigma**2) - outlier, "additive map at a larger spike")
    return equation(
        r"\lambda'",
        outlier,
        (lam, beta, sigma),
        r"\lambda z G (\beta G + (1 - \beta)/z) = 1 \text{ with }"
        r" \beta \sigma^2 z G^2 - (z - \sigma^2 (1 - \beta)) G + 1 = 0",
        rf"\text{{The squares cancel: }} \lambda (z G - 1) = \sigma^2, \quad G = {latex(resolvent)}",
        rf"\lambda' = {latex(outlier)}",
        r"\text{It is the additive map at } \lambda + \beta \sigma^2",
        given=r", \quad \lambda > \sqrt\beta \sigma^2",
    )


@derived
def outlier_gap() -> Derivation:
    r"""Distance of the outlier from the edge, :math:`(t - t_c)^2/t`, in all three models.

    Returns
    -------
    Expression in t and :math:`t_c`: :math:`\lambda, \sigma` for Wigner, :math:`\lambda - \beta \sigma^2,
    \sqrt\beta \sigma^2` for additive Wishart and :math:`\lambda, \sqrt\beta \sigma^2` for information plus noise.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Theorems 4 and 7.

    Examples
    --------
    >>> outlier_gap().expression
    (t - t_c)**2/t
    """
    t, t_c, sigma, r = sp.symbols("t t_c sigma r", positive=True)
    gap = (t - t_c) ** 2 / t
    bulk, root = sigma**2 * (1 + r) ** 2, {t_c: r * sigma**2}
    require_zero(at(wigner_outlier(), t, t_c) - 2 * t_c - gap, "gap of Wigner noise")
    found = at(wishart_outlier(), t + r**2 * sigma**2, r**2, sigma)
    require_zero(found - bulk - gap.subs(root), "gap of additive Wishart noise")
    found = at(information_plus_noise_outlier(), t, r**2, sigma)
    require_zero(found - bulk - gap.subs(root), "gap of information plus noise")
    slope, bend = (sp.diff(gap, t, order).subs(t, t_c) for order in (1, 2))
    require_zero(slope, "slope at the threshold")
    require_zero(bend - 2 / t_c, "bend at the threshold")
    return equation(
        r"\lambda' - \mathrm{edge}",
        gap,
        (t, t_c),
        r"\text{Wigner: } \lambda + s^2/\lambda - 2 s = (\lambda - s)^2/\lambda",
        r"\text{Wishart: } t = \lambda - \beta \sigma^2, t_c = \sqrt\beta \sigma^2",
        r"\text{Information plus noise: } t = \lambda, t_c = \sqrt\beta \sigma^2",
        r"\text{At } t_c \text{ value and slope vanish and the second derivative is } 2/t_c:"
        r" \text{ eigenvalue and overlap are continuous there, the overlap with a kink}",
    )


@derived
def additive_overlap() -> Derivation:
    r"""Squared overlap of a spike's eigenvector, :math:`d\lambda'/d\lambda`, here for additive Wishart noise.

    Returns
    -------
    Expression in :math:`\lambda, \beta, \sigma`, beyond `wishart_threshold`.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Theorem 10 for Wigner noise; the paper gives none for Wishart noise.

    Examples
    --------
    >>> additive_overlap().expression
    -beta*sigma**4/(-beta*sigma**2 + lambda)**2 + 1
    """
    found, wigner = wishart_outlier(), wigner_outlier()
    lam, beta, sigma = found.symbols
    rise = sp.Symbol("rise", positive=True)
    transform_slope = sp.diff(1 / lam, lam) / rise
    require_zero(1 / (-(lam**2) * transform_slope) - rise, "residue of the resolvent")
    overlap = 1 - beta * sigma**4 / (lam - beta * sigma**2) ** 2
    require_zero(sp.diff(found.expression, lam) - overlap, "overlap in Wishart noise")
    x, s = wigner.symbols
    theorem_10 = sp.diff(wigner.expression, x)
    require_zero(theorem_10 - (1 - s**2 / x**2), "overlap in Wigner noise")
    return equation(
        r"|\phi'^\top \phi|^2",
        overlap,
        (lam, beta, sigma),
        r"\text{Residue of } v^\top (z - M)^{-1} v = G/(1 - \lambda G) \text{ at } \lambda':"
        r" \quad |\phi'^\top \phi|^2 = 1/(-\lambda^2 G'(\lambda'))",
        r"G(\lambda'(\lambda)) = 1/\lambda: \quad G' \, d\lambda'/d\lambda = -1/\lambda^2, \quad"
        r" |\phi'^\top \phi|^2 = d\lambda'/d\lambda",
        rf"\text{{Wigner: }} {latex(theorem_10)}",
        rf"\text{{Wishart: }} {latex(overlap)}",
    )


@derived
def information_plus_noise_overlap() -> Derivation:
    r"""Squared overlap of the left singular vectors of J and J + E.

    Returns
    -------
    Expression in :math:`\lambda, \beta, \sigma`, for :math:`\lambda > \sqrt\beta \sigma^2`.

    References
    ----------
    Benaych-Georges and Nadakuditi (2012), theorem 2.9.

    Examples
    --------
    >>> information_plus_noise_overlap().expression
    (-beta*sigma**4/lambda**2 + 1)/(beta*sigma**2/lambda + 1)
    """
    found = information_plus_noise_outlier()
    lam, beta, sigma = found.symbols
    rho, g, rise = sp.symbols("rho G rise", positive=True)
    slope = 2 * rho * sp.diff(1 / lam, lam) / rise
    residue = -2 * rho * g / (lam * slope)
    require_zero(residue - lam * g * rise, "residue of the singular vectors")
    at = {g: (lam + sigma**2) / (lam * found.expression), rise: sp.diff(found.expression, lam)}
    overlap = (1 - beta * sigma**4 / lam**2) / (1 + beta * sigma**2 / lam)
    require_zero((lam * g * rise).subs(at) - overlap, "overlap of the left singular vectors")
    return equation(
        r"|u'^\top u|^2",
        overlap,
        (lam, beta, sigma),
        r"\varphi = \rho G(\rho^2), \quad D = \varphi \tilde\varphi = 1/\lambda \text{ at }"
        r" \rho = \sqrt{\lambda'}, \quad |u'^\top u|^2 = -2 \varphi / (\lambda D'(\rho))",
        r"D' = 2 \rho \cdot (-1/\lambda^2) / (d\lambda'/d\lambda), \quad"
        r" |u'^\top u|^2 = \lambda G \, d\lambda'/d\lambda",
        r"\lambda G = (\lambda + \sigma^2)/\lambda'",
        rf"|u'^\top u|^2 = {latex(overlap)}",
    )


@derived
def noise_free_spike() -> Derivation:
    r"""Spike whose outlier in Wigner noise is a given eigenvalue.

    Returns
    -------
    Expression in :math:`\lambda_1` and s, for :math:`\lambda_1 \ge 2 s`.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Remark 6.

    Examples
    --------
    >>> noise_free_spike().expression
    lambda_1/2 + sqrt(lambda_1**2 - 4*s**2)/2
    """
    top, s = sp.symbols("lambda_1 s", positive=True)
    spike = (top + sp.sqrt(top**2 - 4 * s**2)) / 2
    require_zero(sp.expand(spike**2 - top * spike + s**2), "inverse of the outlier map")
    require_zero(spike.subs(top, 2 * s) - s, "spike at the edge")
    return equation(
        r"\lambda",
        spike,
        (top, s),
        r"\lambda_1 = \lambda + s^2/\lambda, \quad s^2 = P \sigma^2/N",
        r"\lambda^2 - \lambda_1 \lambda + s^2 = 0, \text{ the root } \ge s",
        r"\text{A batch adds } P \sigma^2 (1/B - 1/N) \text{ to } s^2: \quad"
        r" \lambda_1' = \lambda + P \sigma^2/(B \lambda)",
    )


@derived
def marchenko_pastur_transform() -> Derivation:
    r"""Stieltjes transform of the Marchenko-Pastur law from its R-transform.

    Returns
    -------
    Expression in :math:`z, \beta, \sigma`, for z above the bulk.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eqs. (50), (51); in our copy (51) has z + sigma^2 (1 - beta).

    Examples
    --------
    >>> z, beta, sigma = marchenko_pastur_transform().symbols
    >>> marchenko_pastur_transform().expression.subs({z: 9, beta: 4, sigma: 1})
    1/6
    """
    z, beta, sigma, w, u = sp.symbols("z beta sigma w u", positive=True)
    quadratic = marchenko_pastur_equation(w, z, beta, sigma)
    map_of = 1 / w + sigma**2 / (1 - beta * sigma**2 * w)
    require_zero(quadratic.subs(z, map_of), "quadratic of the transform")
    shifted = z - sigma**2 * (1 - beta)
    root = sp.sqrt(shifted**2 - 4 * beta * sigma**2 * z)
    transform = (shifted - root) / (2 * beta * sigma**2 * z)
    require_zero(sp.expand(sp.numer(sp.together(quadratic.subs(w, transform)))), "root of the quadratic")
    mass, mean = _first_moments(u, sigma**2 * (1 - beta), beta, sigma)
    require_zero(mass - 1, "mass")
    require_zero(mean - sigma**2, "mean")
    _, misread = _first_moments(u, -(sigma**2) * (1 - beta), beta, sigma)
    return equation(
        "G(z)",
        transform,
        (z, beta, sigma),
        r"z = 1/G + \sigma^2/(1 - \beta \sigma^2 G)",
        r"\beta \sigma^2 z G^2 - (z - \sigma^2 (1 - \beta)) G + 1 = 0",
        r"\text{The root that decays like } 1/z \text{ takes the minus: }"
        rf" z G(z) = 1 + {latex(mean)}/z + \ldots",
        rf"\text{{With }} z + \sigma^2 (1 - \beta) \text{{ the mean would be }} {latex(misread)}",
    )


@derived
def marchenko_pastur_density() -> Derivation:
    r"""Density of the Marchenko-Pastur law from its transform.

    Returns
    -------
    Expression in :math:`x, \beta, \sigma`, for x in the bulk.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eq. (52); in our copy with the sign of (51) and without 1/pi.

    Examples
    --------
    >>> x, beta, sigma = marchenko_pastur_density().symbols
    >>> marchenko_pastur_density().expression.subs({x: 2, beta: 1, sigma: 1})
    1/(2*pi)
    """
    x, beta, sigma, r = sp.symbols("x beta sigma r", positive=True)
    under = 4 * beta * sigma**2 * x - (x - sigma**2 * (1 - beta)) ** 2
    ends = (sigma**2 * (1 + r) ** 2 - x) * (x - sigma**2 * (1 - r) ** 2)
    require_zero(under.subs(beta, r**2) - ends, "ends of the bulk")
    found = marchenko_pastur_transform()
    root = 2 * beta * sigma**2 * x * at(found, x) - (x - sigma**2 * (1 - beta))
    require_zero(sp.expand(root**2) + under, "imaginary part of the transform")
    density = sp.sqrt(under) / (2 * sp.pi * beta * sigma**2 * x)
    return equation(
        r"\rho(x)",
        density,
        (x, beta, sigma),
        found.statement,
        r"\rho(x) = -\frac{1}{\pi} \mathrm{Im}\, G(x + i0)",
        r"4 \beta \sigma^2 x - (x - \sigma^2 (1 - \beta))^2 = (x_+ - x)(x - x_-), \quad"
        r" x_\pm = \sigma^2 (1 \pm \sqrt\beta)^2",
    )


@derived
def symmetric_poisson_outlier() -> Derivation:
    r"""Outlier of a spike among few random directions of size a and -a.

    Returns
    -------
    Expression in :math:`\lambda, \rho, a`, beyond `symmetric_poisson_threshold`.

    Examples
    --------
    >>> found = symmetric_poisson_outlier()
    >>> lam, rho, a = found.symbols
    >>> (found.expression - lam - rho * a**2 / lam / (1 - a**2 / lam**2)).simplify()
    0
    """
    lam, rho, a, w = sp.symbols("lambda rho a w", positive=True)
    r_transform = rho / 2 * (a / (1 - a * w) - a / (1 + a * w))
    require_zero(r_transform - rho * a**2 * w / (1 - a**2 * w**2), "R of symmetric jumps")
    outlier = lam + rho * a**2 * lam / (lam**2 - a**2)
    require_zero(lam + r_transform.subs(w, 1 / lam) - outlier, "outlier among symmetric jumps")
    s = sp.Symbol("s", positive=True)
    many = sp.cancel(outlier.subs(rho, s**2 / a**2)).subs(a, 0)
    require_zero(many - lam - s**2 / lam, "limit of many small jumps")
    return equation(
        r"\lambda'",
        outlier,
        (lam, rho, a),
        r"R(w) = \frac{\rho}{2} \left(\frac{a}{1 - a w} - \frac{a}{1 + a w}\right)"
        r" = \frac{\rho a^2 w}{1 - a^2 w^2}",
        rf"\lambda' = \lambda + R(1/\lambda) = {latex(outlier)}",
        r"\text{At } \rho a^2 = s^2, a \to 0 \text{ it is Theorem 4: } \lambda + s^2/\lambda",
        r"\kappa_4/\kappa_2^2 = \rho a^4 / (\rho a^2)^2 = 1/\rho, \text{ the excess of the kurtosis over 2}",
    )


@derived
def symmetric_poisson_threshold() -> Derivation:
    r"""Spike at which the outlier among symmetric directions leaves the bulk.

    Returns
    -------
    Expression in :math:`\rho` and a.

    Examples
    --------
    >>> symmetric_poisson_threshold().expression
    a*sqrt(sqrt(rho)*sqrt(rho + 8)/2 + rho/2 + 1)
    """
    found = symmetric_poisson_outlier()
    lam, rho, a = found.symbols
    x = sp.Symbol("x", positive=True)
    slope = sp.numer(sp.together(sp.diff(found.expression, lam).subs(lam, a * sp.sqrt(x))))
    size = (2 + rho + sp.sqrt(rho) * sp.sqrt(rho + 8)) / 2
    quadratic = x**2 - (2 + rho) * x + 1 - rho
    require_zero(sp.cancel(slope / quadratic) - sp.cancel(slope / quadratic).subs(x, 2), "stationary point")
    require_zero(sp.expand(quadratic.subs(x, size)), "root of the stationary point")
    threshold = a * sp.sqrt(sp.expand(size))
    return equation(
        r"\lambda_c",
        threshold,
        (rho, a),
        found.statement,
        r"x = \lambda^2/a^2: \quad d\lambda'/d\lambda = 0 \text{ where } x^2 - (2 + \rho) x + 1 - \rho = 0",
        rf"x = {latex(size)}, \text{{ the root above 1}}",
    )


def _first_moments(u: Any, shift: Any, beta: Any, sigma: Any) -> tuple[Any, Any]:
    """Mass and mean of a law with transform (z - shift - sqrt(...)) / (2 beta sigma^2 z), from u = 1/z."""
    numerator = 1 - shift * u - sp.sqrt((1 - shift * u) ** 2 - 4 * beta * sigma**2 * u)
    # the numerator begins with 2 beta sigma^2 u (1 + mean u + ...) where the mass is 1
    scale = 2 * beta * sigma**2
    first, second = (sp.diff(numerator, u, order).subs(u, 0) for order in (1, 2))
    return sp.factor(first / scale), sp.factor(second / 2 / scale)
