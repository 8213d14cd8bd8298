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
`theory.activations.gaussian`, `theory.fisher`, `theory.criticality` and `theory.linear_network` are tested against
these expressions. Of wide linear networks, the constants of the bounds and the edge of the spectrum:

=========================  ==================================================  =============================
name                       result                                              Karakida, Akaho, Amari (2019)
=========================  ==================================================  =============================
``linear_fluctuations``    :math:`c_2`, equal widths                           theorem 3.3
``linear_lower_constant``  :math:`c_1`, equal widths                           theorem 3.3
``linear_edge``            edge of the spectrum, linear with one hidden layer  figure 1
=========================  ==================================================  =============================
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
    a, theta, t, r = _polar()
    inner = _over_half_planes(sp.cos(t) * sp.cos(t - theta), t, theta)
    radial = sp.integrate(r**3 * sp.exp(-(r**2) / 2), (r, 0, sp.oo)) / (2 * sp.pi)
    expression = a * (sp.sin(theta) + (sp.pi - theta) * sp.cos(theta)) / (2 * sp.pi)
    require_zero(sp.expand_trig(sp.expand(a * radial * inner - expression)), "average over the angle")
    require_zero(expression.subs(theta, 0) - a / 2, "one input")
    return equation(
        r"I_\phi[a, a\cos\vartheta]",
        expression,
        (a, theta),
        r"u = \sqrt a\, r \cos t, \quad u' = \sqrt a\, r \cos(t - \vartheta), \quad"
        r" \text{density } r e^{-r^2/2} / (2\pi)",
        r"u, u' > 0: \quad \vartheta - \pi/2 < t < \pi/2",
        rf"\int_0^\infty r^3 e^{{-r^2/2}}\, dr / (2\pi) = {latex(radial)}",
        rf"\int \cos t \cos(t - \vartheta)\, dt = {latex(sp.simplify(inner))}",
        r"A(c) = 2 I_\phi / a = [\sqrt{1 - c^2} + c(\pi - \arccos c)]/\pi",
    )


@derived
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
    a, theta, t, r = _polar()
    radial = sp.integrate(r * sp.exp(-(r**2) / 2), (r, 0, sp.oo)) / (2 * sp.pi)
    expression = (sp.pi - theta) / (2 * sp.pi)
    require_zero(radial * _over_half_planes(sp.Integer(1), t, theta) - expression, "share of the plane")
    value = arccosine_kernel().expression
    slope = sp.diff(value, theta) / sp.diff(a * sp.cos(theta), theta)  # by the covariance
    require_zero(sp.simplify(slope - expression), "Price's theorem")
    return equation(
        r"I_{\phi'}[a, a\cos\vartheta]",
        expression,
        (theta,),
        r"\phi'(u) \phi'(u') = 1 \text{ for } \vartheta - \pi/2 < t < \pi/2, \text{ else } 0",
        rf"\int_0^\infty r e^{{-r^2/2}}\, dr / (2\pi) = {latex(radial)}",
        r"\text{Price: } \partial I_\phi / \partial b = I_{\phi'}, \quad b = a \cos\vartheta",
    )


@derived
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
    a, b = sp.symbols("a b", positive=True)
    covariance = sp.Matrix([[a, b], [b, a]])
    determinant = (sp.eye(2) + 2 * covariance).det()
    slope = 4 / (sp.pi * sp.sqrt(determinant))  # E (2/sqrt(pi))^2 exp(-u^2 - u'^2)
    expression = 2 / sp.pi * sp.asin(2 * b / (1 + 2 * a))
    require_zero(sp.cancel((sp.diff(expression, b) ** 2 - slope**2).together()), "Price's theorem")
    require_zero(expression.subs(b, 0), "independent inputs")
    return equation(
        r"I_\phi[a, b]",
        expression,
        (a, b),
        r"\phi'(u) \phi'(u') = \frac4\pi e^{-u^2 - u'^2}, \quad"
        r" E\, e^{-x^\top x} = \det(1 + 2 \Sigma)^{-1/2}",
        rf"I_{{\phi'}}[a, b] = {latex(sp.factor(slope))}",
        r"\partial I_\phi / \partial b = I_{\phi'}, \quad I_\phi[a, 0] = 0 \text{ as erf is odd}",
    )


@derived
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
    w, b, q = sp.symbols("sigma_w^2 sigma_b^2 q", positive=True)
    step = w * at(arccosine_kernel(), q, 0) + b
    expression = 2 * b / (2 - w)
    require_zero(step.subs(q, expression) - expression, "fixed point")
    slope = sp.diff(step, q)
    chi = w * at(arccosine_slope_kernel(), 0)
    require_zero(slope - chi, "slope of the map and chi")
    return equation(
        "q^*",
        expression,
        (w, b),
        rf"q^{{l+1}} = {latex(step)}, \quad q = q^l",
        rf"\chi = \sigma_w^2 E\,\phi'^2 = {latex(chi)}, \text{{ the slope of the map}}",
        r"\chi = 1 \text{ at } \sigma_w^2 = 2: \text{ with } \sigma_b = 0 \text{ every } q"
        r" \text{ is a fixed point, else there is none}",
        given=rf", \quad \chi = {latex(slope)}",
    )


@derived
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
    return equation(
        r"1 - A(1 - \epsilon)",
        expression,
        (eps,),
        arccosine_kernel().statement,
        r"\sigma_w^2 = 2, \sigma_b = 0: \quad c^{l+1} = A(c^l), \quad A(1) = 1, \quad A'(1) = \chi = 1",
        rf"1 - A(1 - \epsilon) = {latex(expression)} + O(\epsilon^{{5/2}})",
        rf"\epsilon^l \sim {latex(decay)}: \text{{ no depth scale, a power of the depth}}",
        given=r" + O(\epsilon^{5/2})",
    )


@derived
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
    L, i = sp.symbols("L l", positive=True, integer=True)
    kernel, slope = arccosine_kernel(), arccosine_slope_kernel()
    forward = at(kernel, 2, 0)
    backward = 2 * at(slope, 0)
    require_zero(forward - 1, "a layer forward keeps the moment 1")
    require_zero(backward - 1, "a layer backward keeps the moment 1")
    alpha = sp.summation(1, (i, 1, L - 1))
    expression = sp.summation(1, (i, 1, L)) / alpha
    return equation(
        r"\kappa_1",
        expression,
        (L,),
        r"\sigma_w^2 = 2, \sigma_b = 0: \quad q = 2 \hat q, \quad \hat q \to I_\phi[2 \hat q, 2 \hat q] = \hat q",
        r"\tilde q^l = 2 \tilde q^{l+1} E\,\phi'^2 = \tilde q^{l+1}",
        r"\hat q^0 = \tilde q^L = 1: \text{ every term } \tilde q^l \hat q^{l-1} \text{ is } 1",
        rf"\alpha = {latex(alpha)}, \quad \kappa_1 = \frac1\alpha \sum_{{l=1}}^L 1",
    )


@derived
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
    n = sp.Symbol("n", positive=True)
    for size in (2, 3):
        u = sp.Matrix(sp.symbols(f"u_1:{size + 1}", real=True))
        centred = u - sp.ones(size, 1) * sum(u) / size
        variance = sum(x**2 for x in centred) / size
        for x, c in zip(u, centred, strict=True):  # sigma times the derivative of sigma is f sigma / n
            require_zero(sp.diff(variance, x) / 2 - c / size, f"derivative of the deviation, n = {size}")
        require_zero(sum(centred), f"mean, n = {size}")
        # times sigma^2, which leaves polynomials
        projector = variance * (sp.eye(size) - sp.ones(size, size) / size) - centred * centred.T / size
        for entry in (projector * projector - variance * projector)[: size + 1]:
            require_zero(entry, f"projector, n = {size}")
    ones, square = sp.symbols("o s")  # squared norms of the vectors 1 and f
    expression = sp.expand((n - ones / n - square / n).subs({ones: n, square: n}))
    return equation(
        r"\mathrm{rank}\, \frac{\partial f}{\partial u}",
        expression,
        (n,),
        r"f = (u - \bar u)/\sigma, \quad \sigma^2 = \overline{(u - \bar u)^2}",
        r"\sigma\, \partial f / \partial u = I - \frac{\mathbf 1 \mathbf 1^\top}{n} - \frac{f f^\top}{n},"
        r" \quad \mathbf 1^\top f = 0, \quad f^\top f = n",
        r"\text{a projector: its rank is its trace, } n - \frac nn - \frac nn",
        r"\text{nothing is left of two outputs or samples: the zero matrix at } n = 2",
    )


def _polar() -> tuple[Any, ...]:
    return (*sp.symbols("a theta", positive=True), sp.Symbol("t", real=True), sp.Symbol("r", positive=True))


def _over_half_planes(integrand: Any, t: Any, theta: Any) -> Any:
    """Integral over the directions in which both of two half planes at this angle lie."""
    return sp.integrate(sp.expand(sp.expand_trig(integrand)), (t, theta - sp.pi / 2, sp.pi / 2))


@derived
def linear_fluctuations() -> Derivation:
    r"""The constant :math:`c_2` of a linear network of one output, equal widths, any biases.

    Returns
    -------
    Expression in :math:`\sigma_w^2` and the depth L.

    References
    ----------
    Ours, for Karakida, Akaho and Amari (2019), Theorem 3.3.

    Examples
    --------
    >>> import sympy
    >>> s, L = linear_fluctuations().symbols
    >>> sympy.factor(linear_fluctuations().expression.subs(s, 1))
    L*(L + 1)*(2*L + 1)/6
    """
    s, L, j, layer = _linear_symbols()
    # of the noise of layer j: its scatter s^j, carried to layer l - 1, times the backward moment there
    share = sp.simplify(sp.summation(s**j * s ** (layer - 1 - j) * s ** (L - layer), (layer, j + 1, L)))
    require_zero(sp.simplify(share - (L - j) * s ** (L - 1)), "what one layer's noise adds")
    total = sp.summation(sp.expand((L - j) ** 2), (j, 0, L - 1))
    expression = s ** (2 * L - 2) * L * (L + 1) * (2 * L + 1) / 6
    require_zero(sp.expand(total - expression.subs(s, 1)), "sum of squares")
    return equation(
        "c_2",
        expression,
        (s, L),
        r"\phi' = 1: \quad \text{nothing fluctuates backward,} \quad \tilde q^l = \sigma_w^{2(L-l)}",
        r"b^l = \sigma_w^2 b^{l-1} + \epsilon^l, \quad \mathrm{Var}\,\epsilon^l = (q_t - q_{st})^2 ="
        r" \sigma_w^{4l}, \quad b^0 = \epsilon^0",
        rf"\sum_l \tilde q^l b^{{l-1}} \text{{ contains }} \epsilon^j \text{{ with }} \sum_{{l > j}}"
        rf" \sigma_w^{{2(L-1-j)}}: \text{{ of deviation }} {latex((L - j) * s ** (L - 1))}",
        rf"c_2 = \sigma_w^{{4(L-1)}} \sum_{{j=0}}^{{L-1}} (L - j)^2 = {latex(expression)}",
    )


@derived
def linear_lower_constant() -> Derivation:
    r"""The constant :math:`c_1` of a linear network, equal widths, any biases and outputs.

    Returns
    -------
    Expression in :math:`\sigma_w^2` and the depth L.

    References
    ----------
    Ours, for Karakida, Akaho and Amari (2019), Theorem 3.3.

    Examples
    --------
    >>> import sympy
    >>> s, L = linear_lower_constant().symbols
    >>> sympy.factor(linear_lower_constant().expression.subs(s, 1))
    (L + 1)*(2*L + 1)/6
    """
    s, L, _, layer = _linear_symbols()
    terms = sp.simplify(s ** (L - layer) * s ** (layer - 1))
    spike = sp.summation(terms, (layer, 1, L))
    require_zero(sp.simplify(spike - L * s ** (L - 1)), "alpha times kappa1 - kappa2")
    expression = s ** (L - 1) * (L + 1) * (2 * L + 1) / 6
    require_zero(sp.simplify(linear_fluctuations().expression / spike - expression), "c1 = c2 over the spike")
    return equation(
        "c_1",
        expression,
        (s, L),
        r"\hat q_t^l - \hat q_{st}^l = \sigma_w^{2l}, \quad \tilde q_t^l = \tilde q_{st}^l = \sigma_w^{2(L-l)}",
        rf"\alpha(\kappa_1 - \kappa_2) = \sum_{{l=1}}^L {latex(terms)} = {latex(L * s ** (L - 1))}",
        linear_fluctuations().statement,
        r"c_1 = c_2 / [C \alpha (\kappa_1 - \kappa_2)] \text{ for } C = 1, \text{ other outputs add nothing}",
    )


@derived
def linear_edge() -> Derivation:
    r"""The function whose minimum is the edge of the spectrum of a linear network with one hidden layer.

    Returns
    -------
    Expression in w, the inputs per sample :math:`\gamma` and the hidden units per input r, at
    :math:`\sigma_w^2 = 1`.

    References
    ----------
    Ours, beside Karakida, Akaho and Amari (2019), figure 1; Silverstein and Choi (1995).

    Examples
    --------
    >>> w, gamma, r = linear_edge().symbols
    >>> linear_edge().expression.subs({w: 0.25, gamma: 1, r: 1})
    10.0277777777778
    """
    w, gamma, r = sp.symbols("w gamma r", positive=True)
    y = 1 / w + r / (1 - w)
    # W'W has the Marchenko-Pastur law of ratio 1/r and variance r, whose Stieltjes transform at y is w
    require_zero(
        sp.cancel(marchenko_pastur_equation(w, y, 1 / r, sp.sqrt(r))), "transform of the population less 1"
    )
    a = 1 + y
    average = a * w - 1  # of t / (a - t), t = 1 + y' in the population: a times the transform, less 1
    expression = a * (1 - gamma + gamma * a * w)
    require_zero(sp.cancel(a + gamma * a * average - expression), "Silverstein's equation")
    derivative = sp.cancel(sp.diff(expression, w) * w**2)
    x, t = a * w - 1, r * w**2 / (1 - w) ** 2
    require_zero(sp.cancel(derivative - (t * (1 + gamma * (1 + 2 * x)) + gamma * x**2 - 1)), "its slope")
    return Derivation(
        statement=rf"\lambda_{{\max}} \to \min_w \Big[{latex(expression)}\Big]",
        expression=expression,
        symbols=(w, gamma, r),
        steps=(
            r"\bar F \sim X^\top (|v|^2 + W^\top W) X / T, \quad |v|^2 \to 1, \quad"
            r" W^\top W \sim \text{Marchenko-Pastur}",
            rf"\text{{population }} t = 1 + y', \quad E \frac1{{y - y'}} = w \text{{ at }} y = {latex(y)}",
            r"\lambda = a + \gamma a\, E \frac{t}{a - t}, \quad a = 1 + y, \quad E \frac{t}{a - t} = a w - 1",
            r"\text{the edge is where } d\lambda/dw = 0: \quad s(1 + \gamma(1 + 2x)) + \gamma x^2 = 1,"
            r" \quad x = a w - 1, \quad s = r w^2/(1 - w)^2",
        ),
    )


def _linear_symbols() -> tuple[Any, ...]:
    return (sp.Symbol("s", positive=True), *sp.symbols("L j l", positive=True, integer=True))
