r"""Symbolic derivations of limiting spectra from their R-transforms.

====================================  ==============================================  ==========================
name                                  result                                          Granziol, Zohren, Roberts
                                                                                      (2022)
====================================  ==============================================  ==========================
``marchenko_pastur_transform``        Stieltjes transform from R                      eq. (51), sign corrected
``marchenko_pastur_density``          its density                                     eq. (52), corrected
``symmetric_poisson_outlier``         spike among few directions of size a and -a     beyond Theorem 4
``symmetric_poisson_threshold``       where it leaves the bulk                        beyond Theorem 4
====================================  ==============================================  ==========================

Every step that is an identity is checked by sympy before a result is returned; the numeric functions of
`theory.rmt` are tested against these expressions.
"""

# pyright: reportMissingTypeStubs=false
# sympy ships none; its objects are Any here.

from __future__ import annotations

from functools import cache
from typing import Any

from theory.derivations._symbolic import Derivation, marchenko_pastur_equation, require_zero, sympy_module

__all__ = [
    "marchenko_pastur_density",
    "marchenko_pastur_transform",
    "symmetric_poisson_outlier",
    "symmetric_poisson_threshold",
]


@cache
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
    sp = sympy_module()

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
    return Derivation(
        name="marchenko_pastur_transform",
        statement=rf"G(z) = {sp.latex(transform)}",
        expression=transform,
        symbols=(z, beta, sigma),
        steps=(
            r"z = 1/G + \sigma^2/(1 - \beta \sigma^2 G)",
            r"\beta \sigma^2 z G^2 - (z - \sigma^2 (1 - \beta)) G + 1 = 0",
            r"\text{The root that decays like } 1/z \text{ takes the minus: }"
            rf" z G(z) = 1 + {sp.latex(mean)}/z + \ldots",
            rf"\text{{With }} z + \sigma^2 (1 - \beta) \text{{ the mean would be }} {sp.latex(misread)}",
        ),
    )


@cache
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
    sp = sympy_module()

    x, beta, sigma, r = sp.symbols("x beta sigma r", positive=True)
    under = 4 * beta * sigma**2 * x - (x - sigma**2 * (1 - beta)) ** 2
    ends = (sigma**2 * (1 + r) ** 2 - x) * (x - sigma**2 * (1 - r) ** 2)
    require_zero(under.subs(beta, r**2) - ends, "ends of the bulk")
    found = marchenko_pastur_transform()
    root = 2 * beta * sigma**2 * x * found.expression.subs(found.symbols[0], x) - (x - sigma**2 * (1 - beta))
    require_zero(sp.expand(root**2) + under, "imaginary part of the transform")
    density = sp.sqrt(under) / (2 * sp.pi * beta * sigma**2 * x)
    return Derivation(
        name="marchenko_pastur_density",
        statement=rf"\rho(x) = {sp.latex(density)}",
        expression=density,
        symbols=(x, beta, sigma),
        steps=(
            found.statement,
            r"\rho(x) = -\frac{1}{\pi} \mathrm{Im}\, G(x + i0)",
            r"4 \beta \sigma^2 x - (x - \sigma^2 (1 - \beta))^2 = (x_+ - x)(x - x_-), \quad"
            r" x_\pm = \sigma^2 (1 \pm \sqrt\beta)^2",
        ),
    )


@cache
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
    sp = sympy_module()

    lam, rho, a, w = sp.symbols("lambda rho a w", positive=True)
    r_transform = rho / 2 * (a / (1 - a * w) - a / (1 + a * w))
    require_zero(r_transform - rho * a**2 * w / (1 - a**2 * w**2), "R of symmetric jumps")
    outlier = lam + rho * a**2 * lam / (lam**2 - a**2)
    require_zero(lam + r_transform.subs(w, 1 / lam) - outlier, "outlier among symmetric jumps")
    s = sp.Symbol("s", positive=True)
    many = sp.cancel(outlier.subs(rho, s**2 / a**2)).subs(a, 0)
    require_zero(many - lam - s**2 / lam, "limit of many small jumps")
    return Derivation(
        name="symmetric_poisson_outlier",
        statement=rf"\lambda' = {sp.latex(outlier)}",
        expression=outlier,
        symbols=(lam, rho, a),
        steps=(
            r"R(w) = \frac{\rho}{2} \left(\frac{a}{1 - a w} - \frac{a}{1 + a w}\right)"
            r" = \frac{\rho a^2 w}{1 - a^2 w^2}",
            rf"\lambda' = \lambda + R(1/\lambda) = {sp.latex(outlier)}",
            r"\text{At } \rho a^2 = s^2, a \to 0 \text{ it is Theorem 4: } \lambda + s^2/\lambda",
            r"\kappa_4/\kappa_2^2 = \rho a^4 / (\rho a^2)^2 = 1/\rho, \text{ the excess of the kurtosis over 2}",
        ),
    )


@cache
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
    sp = sympy_module()

    found = symmetric_poisson_outlier()
    lam, rho, a = found.symbols
    x = sp.Symbol("x", positive=True)
    slope = sp.numer(sp.together(sp.diff(found.expression, lam).subs(lam, a * sp.sqrt(x))))
    size = (2 + rho + sp.sqrt(rho) * sp.sqrt(rho + 8)) / 2
    quadratic = x**2 - (2 + rho) * x + 1 - rho
    require_zero(sp.cancel(slope / quadratic) - sp.cancel(slope / quadratic).subs(x, 2), "stationary point")
    require_zero(sp.expand(quadratic.subs(x, size)), "root of the stationary point")
    threshold = a * sp.sqrt(sp.expand(size))
    return Derivation(
        name="symmetric_poisson_threshold",
        statement=rf"\lambda_c = {sp.latex(threshold)}",
        expression=threshold,
        symbols=(rho, a),
        steps=(
            found.statement,
            r"x = \lambda^2/a^2: \quad d\lambda'/d\lambda = 0 \text{ where } x^2 - (2 + \rho) x + 1 - \rho = 0",
            rf"x = {sp.latex(size)}, \text{{ the root above 1}}",
        ),
    )


def _first_moments(u: Any, shift: Any, beta: Any, sigma: Any) -> tuple[Any, Any]:
    """Mass and mean of a law with transform (z - shift - sqrt(...)) / (2 beta sigma^2 z), from u = 1/z."""
    sp = sympy_module()

    numerator = 1 - shift * u - sp.sqrt((1 - shift * u) ** 2 - 4 * beta * sigma**2 * u)
    # the numerator begins with 2 beta sigma^2 u (1 + mean u + ...) where the mass is 1
    scale = 2 * beta * sigma**2
    first, second = (sp.diff(numerator, u, order).subs(u, 0) for order in (1, 2))
    return sp.factor(first / scale), sp.factor(second / 2 / scale)
