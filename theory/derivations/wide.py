r"""Symbolic derivations for wide random networks: kernels, fixed points, projectors.

================================  =====================================================  =======================
name                              result                                                 Karakida, Akaho, Amari
                                                                                         (2019)
================================  =====================================================  =======================
``arccosine_kernel``              :math:`E\,\mathrm{relu}(u)\,\mathrm{relu}(u')`         eq. (5)
``arccosine_slope_kernel``        :math:`E\,\mathrm{relu}'(u)\,\mathrm{relu}'(u')`       eq. (7)
``erf_kernel``                    :math:`E\,\mathrm{erf}(u)\,\mathrm{erf}(u')`           eq. (5)
``relu_fixed_point``              variance deep inside a ReLU network                    eq. (6)
``relu_correlation_map``          its correlations near 1                                eq. (5)
``critical_relu_kappa``           :math:`\kappa_1 = L/(L-1)`                             eq. (11)
``normalisation_rank``            rank of the derivative of a normalisation              eqs. (13), (24)
================================  =====================================================  =======================

Every step that is an identity is checked by sympy before a result is returned; the numeric functions of
`theory.activations.gaussian`, `theory.fisher` and `theory.criticality` are tested against these expressions. Linear
networks stand in `theory.derivations.linear`.
"""

# pyright: reportMissingTypeStubs=false
# sympy ships none; its objects are Any here.

from __future__ import annotations

from functools import cache
from typing import Any

from theory.derivations._symbolic import Derivation, require_zero, sympy_module

__all__ = [
    "arccosine_kernel",
    "arccosine_slope_kernel",
    "critical_relu_kappa",
    "erf_kernel",
    "normalisation_rank",
    "relu_correlation_map",
    "relu_fixed_point",
]


@cache
def arccosine_kernel() -> Derivation:
    r"""Overlap of two rectified Gaussians of equal variance, by polar coordinates.

    Returns
    -------
    Expression in the variance a and the angle :math:`\vartheta`, :math:`\cos\vartheta = b/a`.

    References
    ----------
    Karakida, Akaho and Amari (2019), eq. (5) for ReLU; Cho and Saul (2009).

    Examples
    --------
    >>> import sympy
    >>> found = arccosine_kernel()
    >>> sympy.simplify(found.expression.subs(found.symbols[1], sympy.pi / 2))
    a/(2*pi)
    """
    sp = sympy_module()

    a, theta, t, r = _polar()
    inner = _over_half_planes(sp.cos(t) * sp.cos(t - theta), t, theta)
    radial = sp.integrate(r**3 * sp.exp(-(r**2) / 2), (r, 0, sp.oo)) / (2 * sp.pi)
    expression = a * (sp.sin(theta) + (sp.pi - theta) * sp.cos(theta)) / (2 * sp.pi)
    require_zero(sp.expand_trig(sp.expand(a * radial * inner - expression)), "average over the angle")
    require_zero(expression.subs(theta, 0) - a / 2, "one input")
    return Derivation(
        name="arccosine_kernel",
        statement=rf"I_\phi[a, a\cos\vartheta] = {sp.latex(expression)}",
        expression=expression,
        symbols=(a, theta),
        steps=(
            r"u = \sqrt a\, r \cos t, \quad u' = \sqrt a\, r \cos(t - \vartheta), \quad"
            r" \text{density } r e^{-r^2/2} / (2\pi)",
            r"u, u' > 0: \quad \vartheta - \pi/2 < t < \pi/2",
            rf"\int_0^\infty r^3 e^{{-r^2/2}}\, dr / (2\pi) = {sp.latex(radial)}",
            rf"\int \cos t \cos(t - \vartheta)\, dt = {sp.latex(sp.simplify(inner))}",
            r"A(c) = 2 I_\phi / a = [\sqrt{1 - c^2} + c(\pi - \arccos c)]/\pi",
        ),
    )


@cache
def arccosine_slope_kernel() -> Derivation:
    r"""Overlap of the slopes of two rectifiers, the probability that both are open.

    Returns
    -------
    Expression in the angle :math:`\vartheta`.

    References
    ----------
    Karakida, Akaho and Amari (2019), eq. (7) for ReLU; Cho and Saul (2009).

    Examples
    --------
    >>> arccosine_slope_kernel().expression
    (pi - theta)/(2*pi)
    """
    sp = sympy_module()

    a, theta, t, r = _polar()
    radial = sp.integrate(r * sp.exp(-(r**2) / 2), (r, 0, sp.oo)) / (2 * sp.pi)
    expression = (sp.pi - theta) / (2 * sp.pi)
    require_zero(radial * _over_half_planes(sp.Integer(1), t, theta) - expression, "share of the plane")
    value = arccosine_kernel().expression
    slope = sp.diff(value, theta) / sp.diff(a * sp.cos(theta), theta)  # by the covariance
    require_zero(sp.simplify(slope - expression), "Price's theorem")
    return Derivation(
        name="arccosine_slope_kernel",
        statement=rf"I_{{\phi'}}[a, a\cos\vartheta] = {sp.latex(expression)}",
        expression=expression,
        symbols=(theta,),
        steps=(
            r"\phi'(u) \phi'(u') = 1 \text{ for } \vartheta - \pi/2 < t < \pi/2, \text{ else } 0",
            rf"\int_0^\infty r e^{{-r^2/2}}\, dr / (2\pi) = {sp.latex(radial)}",
            r"\text{Price: } \partial I_\phi / \partial b = I_{\phi'}, \quad b = a \cos\vartheta",
        ),
    )


@cache
def erf_kernel() -> Derivation:
    r"""Overlap of the error functions of two Gaussians, by Price's theorem.

    Returns
    -------
    Expression in the variance a and the covariance b.

    References
    ----------
    Karakida, Akaho and Amari (2019), eq. (5) for erf; Williams (1997).

    Examples
    --------
    >>> erf_kernel().expression
    2*asin(2*b/(2*a + 1))/pi
    """
    sp = sympy_module()

    a, b = sp.symbols("a b", positive=True)
    covariance = sp.Matrix([[a, b], [b, a]])
    determinant = (sp.eye(2) + 2 * covariance).det()
    slope = 4 / (sp.pi * sp.sqrt(determinant))  # E (2/sqrt(pi))^2 exp(-u^2 - u'^2)
    expression = 2 / sp.pi * sp.asin(2 * b / (1 + 2 * a))
    require_zero(sp.cancel((sp.diff(expression, b) ** 2 - slope**2).together()), "Price's theorem")
    require_zero(expression.subs(b, 0), "independent inputs")
    return Derivation(
        name="erf_kernel",
        statement=rf"I_\phi[a, b] = {sp.latex(expression)}",
        expression=expression,
        symbols=(a, b),
        steps=(
            r"\phi'(u) \phi'(u') = \frac4\pi e^{-u^2 - u'^2}, \quad"
            r" E\, e^{-x^\top x} = \det(1 + 2 \Sigma)^{-1/2}",
            rf"I_{{\phi'}}[a, b] = {sp.latex(sp.factor(slope))}",
            r"\partial I_\phi / \partial b = I_{\phi'}, \quad I_\phi[a, 0] = 0 \text{ as erf is odd}",
        ),
    )


@cache
def relu_fixed_point() -> Derivation:
    r"""Variance of the pre-activations deep inside a ReLU network, below the critical weight variance.

    Returns
    -------
    Expression in :math:`\sigma_w^2 < 2` and :math:`\sigma_b^2`.

    References
    ----------
    Karakida, Akaho and Amari (2019), eqs. (5) and (6).

    Examples
    --------
    >>> relu_fixed_point().expression
    2*sigma_b^2/(2 - sigma_w^2)
    """
    sp = sympy_module()

    w, b, q = sp.symbols("sigma_w^2 sigma_b^2 q", positive=True)
    kernel = arccosine_kernel()
    step = w * kernel.expression.subs(dict(zip(kernel.symbols, (q, 0), strict=True))) + b
    expression = 2 * b / (2 - w)
    require_zero(step.subs(q, expression) - expression, "fixed point")
    slope = sp.diff(step, q)
    chi = w * arccosine_slope_kernel().expression.subs(arccosine_slope_kernel().symbols[0], 0)
    require_zero(slope - chi, "slope of the map and chi")
    return Derivation(
        name="relu_fixed_point",
        statement=rf"q^* = {sp.latex(expression)}, \quad \chi = {sp.latex(slope)}",
        expression=expression,
        symbols=(w, b),
        steps=(
            rf"q^{{l+1}} = {sp.latex(step)}, \quad q = q^l",
            rf"\chi = \sigma_w^2 E\,\phi'^2 = {sp.latex(chi)}, \text{{ the slope of the map}}",
            r"\chi = 1 \text{ at } \sigma_w^2 = 2: \text{ with } \sigma_b = 0 \text{ every } q"
            r" \text{ is a fixed point, else there is none}",
        ),
    )


@cache
def relu_correlation_map() -> Derivation:
    r"""One layer of a critical ReLU network, for inputs at a small distance :math:`\epsilon = 1 - c`.

    Returns
    -------
    Expression in :math:`\epsilon`: the distance after the layer up to :math:`O(\epsilon^{5/2})`.

    References
    ----------
    Karakida, Akaho and Amari (2019), eq. (5).

    Examples
    --------
    >>> relu_correlation_map().expression
    -2*sqrt(2)*epsilon**(3/2)/(3*pi) + epsilon
    """
    sp = sympy_module()

    eps, layer = sp.symbols("epsilon l", positive=True)
    a, theta = arccosine_kernel().symbols
    expression = eps - sp.Rational(2, 3) * sp.sqrt(2) / sp.pi * sp.sqrt(eps) ** 3
    # epsilon = 1 - cos(theta) = 2 sin(theta/2)^2, and its power 3/2 without a root
    small = 2 * sp.sin(theta / 2) ** 2 - sp.Rational(8, 3) / sp.pi * sp.sin(theta / 2) ** 3
    after = 1 - 2 * arccosine_kernel().expression / a
    require_zero(sp.series(after - small, theta, 0, 5).removeO(), "expansion near equal inputs")
    require_zero(
        expression.subs(eps, 2 * layer**2) - 2 * layer**2 + sp.Rational(8, 3) / sp.pi * layer**3, "its form"
    )
    decay = 9 * sp.pi**2 / (2 * layer**2)
    rest = sp.diff(decay, layer) + (2 * sp.sqrt(2) / (3 * sp.pi)) * sp.sqrt(decay) ** 3
    require_zero(sp.simplify(rest), "decay over the layers")
    return Derivation(
        name="relu_correlation_map",
        statement=rf"1 - A(1 - \epsilon) = {sp.latex(expression)} + O(\epsilon^{{5/2}})",
        expression=expression,
        symbols=(eps,),
        steps=(
            arccosine_kernel().statement,
            r"\sigma_w^2 = 2, \sigma_b = 0: \quad c^{l+1} = A(c^l), \quad A(1) = 1, \quad A'(1) = \chi = 1",
            rf"1 - A(1 - \epsilon) = {sp.latex(expression)} + O(\epsilon^{{5/2}})",
            rf"\epsilon^l \sim {sp.latex(decay)}: \text{{ no depth scale, a power of the depth}}",
        ),
    )


@cache
def critical_relu_kappa() -> Derivation:
    r"""The constant :math:`\kappa_1` of a ReLU network at its critical point, equal widths.

    Returns
    -------
    Expression in the depth L.

    References
    ----------
    Karakida, Akaho and Amari (2019), eq. (11), figure 1.

    Examples
    --------
    >>> critical_relu_kappa().expression
    L/(L - 1)
    """
    sp = sympy_module()

    L, i = sp.symbols("L l", positive=True, integer=True)
    kernel, slope = arccosine_kernel(), arccosine_slope_kernel()
    forward = kernel.expression.subs(dict(zip(kernel.symbols, (2, 0), strict=True)))
    backward = 2 * slope.expression.subs(slope.symbols[0], 0)
    require_zero(forward - 1, "a layer forward keeps the moment 1")
    require_zero(backward - 1, "a layer backward keeps the moment 1")
    alpha = sp.summation(1, (i, 1, L - 1))
    expression = sp.summation(1, (i, 1, L)) / alpha
    return Derivation(
        name="critical_relu_kappa",
        statement=rf"\kappa_1 = {sp.latex(expression)}",
        expression=expression,
        symbols=(L,),
        steps=(
            r"\sigma_w^2 = 2, \sigma_b = 0: \quad q = 2 \hat q, \quad \hat q \to I_\phi[2 \hat q, 2 \hat q] = \hat q",
            r"\tilde q^l = 2 \tilde q^{l+1} E\,\phi'^2 = \tilde q^{l+1}",
            r"\hat q^0 = \tilde q^L = 1: \text{ every term } \tilde q^l \hat q^{l-1} \text{ is } 1",
            rf"\alpha = {sp.latex(alpha)}, \quad \kappa_1 = \frac1\alpha \sum_{{l=1}}^L 1",
        ),
    )


@cache
def normalisation_rank() -> Derivation:
    r"""Rank of the derivative of a normalised vector: two directions of n are lost.

    Returns
    -------
    Expression in n: the outputs under layer normalisation, the samples under batch normalisation.

    References
    ----------
    Ours, for Karakida, Akaho and Amari (2019), eqs. (13), (14), (24) and (25).

    Examples
    --------
    >>> normalisation_rank().expression
    n - 2
    """
    sp = sympy_module()

    n = sp.Symbol("n", positive=True)
    for size in (2, 3):
        u = sp.Matrix(sp.symbols(f"u_1:{size + 1}", real=True))
        centred = u - sp.ones(size, 1) * sum(u) / size
        variance = sum(x**2 for x in centred) / size
        for x, c in zip(u, centred, strict=True):  # sigma times the derivative of sigma is f sigma / n
            require_zero(sp.diff(variance, x) / 2 - c / size, f"derivative of the deviation, n = {size}")
        require_zero(sum(centred), f"mean, n = {size}")
        square = centred * centred.T / variance  # f f'
        projector = sp.eye(size) - sp.ones(size, size) / size - square / size
        for entry in (projector * projector - projector)[: size + 1]:
            require_zero(entry, f"projector, n = {size}")
    ones, square = sp.symbols("o s")  # squared norms of the vectors 1 and f
    expression = sp.expand((n - ones / n - square / n).subs({ones: n, square: n}))
    return Derivation(
        name="normalisation_rank",
        statement=rf"\mathrm{{rank}}\, \frac{{\partial f}}{{\partial u}} = {sp.latex(expression)}",
        expression=expression,
        symbols=(n,),
        steps=(
            r"f = (u - \bar u)/\sigma, \quad \sigma^2 = \overline{(u - \bar u)^2}",
            r"\sigma\, \partial f / \partial u = I - \frac{\mathbf 1 \mathbf 1^\top}{n} - \frac{f f^\top}{n},"
            r" \quad \mathbf 1^\top f = 0, \quad f^\top f = n",
            r"\text{a projector: its rank is its trace, } n - \frac nn - \frac nn",
            r"\text{nothing is left of two outputs or samples: the zero matrix at } n = 2",
        ),
    )


def _polar() -> tuple[Any, ...]:
    sp = sympy_module()
    return (*sp.symbols("a theta", positive=True), sp.Symbol("t", real=True), sp.Symbol("r", positive=True))


def _over_half_planes(integrand: Any, t: Any, theta: Any) -> Any:
    """Integral over the directions in which both of two half planes at this angle lie."""
    sp = sympy_module()
    return sp.integrate(sp.expand(sp.expand_trig(integrand)), (t, theta - sp.pi / 2, sp.pi / 2))
