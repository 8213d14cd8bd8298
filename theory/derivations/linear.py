r"""Symbolic derivations for wide linear networks: constants of the bounds, edge of the spectrum.

=========================  ==================================================  =============================
name                       result                                              Karakida, Akaho, Amari (2019)
=========================  ==================================================  =============================
``linear_fluctuations``    :math:`c_2`, equal widths                           theorem 3.3
``linear_lower_constant``  :math:`c_1`, equal widths                           theorem 3.3
``linear_edge``            edge of the spectrum, linear with one hidden layer  figure 1
=========================  ==================================================  =============================

Every step that is an identity is checked by sympy before a result is returned; the numeric functions of
`theory.fisher` and `theory.linear_network` are tested against these expressions.
"""

# pyright: reportMissingTypeStubs=false
# sympy ships none; its objects are Any here.

from __future__ import annotations

from functools import cache
from typing import Any

from theory.derivations._symbolic import Derivation, marchenko_pastur_equation, require_zero, sympy_module

__all__ = ["linear_edge", "linear_fluctuations", "linear_lower_constant"]


@cache
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
    sp = sympy_module()

    s, L, j, layer = _linear_symbols()
    # of the noise of layer j: its scatter s^j, carried to layer l - 1, times the backward moment there
    share = sp.simplify(sp.summation(s**j * s ** (layer - 1 - j) * s ** (L - layer), (layer, j + 1, L)))
    require_zero(sp.simplify(share - (L - j) * s ** (L - 1)), "what one layer's noise adds")
    total = sp.summation(sp.expand((L - j) ** 2), (j, 0, L - 1))
    expression = s ** (2 * L - 2) * L * (L + 1) * (2 * L + 1) / 6
    require_zero(sp.expand(total - expression.subs(s, 1)), "sum of squares")
    return Derivation(
        name="linear_fluctuations",
        statement=rf"c_2 = {sp.latex(expression)}",
        expression=expression,
        symbols=(s, L),
        steps=(
            r"\phi' = 1: \quad \text{nothing fluctuates backward,} \quad \tilde q^l = \sigma_w^{2(L-l)}",
            r"b^l = \sigma_w^2 b^{l-1} + \epsilon^l, \quad \mathrm{Var}\,\epsilon^l = (q_t - q_{st})^2 ="
            r" \sigma_w^{4l}, \quad b^0 = \epsilon^0",
            rf"\sum_l \tilde q^l b^{{l-1}} \text{{ contains }} \epsilon^j \text{{ with }} \sum_{{l > j}}"
            rf" \sigma_w^{{2(L-1-j)}}: \text{{ of deviation }} {sp.latex((L - j) * s ** (L - 1))}",
            rf"c_2 = \sigma_w^{{4(L-1)}} \sum_{{j=0}}^{{L-1}} (L - j)^2 = {sp.latex(expression)}",
        ),
    )


@cache
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
    sp = sympy_module()

    s, L, _, layer = _linear_symbols()
    terms = sp.simplify(s ** (L - layer) * s ** (layer - 1))
    spike = sp.summation(terms, (layer, 1, L))
    require_zero(sp.simplify(spike - L * s ** (L - 1)), "alpha times kappa1 - kappa2")
    expression = s ** (L - 1) * (L + 1) * (2 * L + 1) / 6
    require_zero(sp.simplify(linear_fluctuations().expression / spike - expression), "c1 = c2 over the spike")
    return Derivation(
        name="linear_lower_constant",
        statement=rf"c_1 = {sp.latex(expression)}",
        expression=expression,
        symbols=(s, L),
        steps=(
            r"\hat q_t^l - \hat q_{st}^l = \sigma_w^{2l}, \quad \tilde q_t^l = \tilde q_{st}^l = \sigma_w^{2(L-l)}",
            rf"\alpha(\kappa_1 - \kappa_2) = \sum_{{l=1}}^L {sp.latex(terms)} = {sp.latex(L * s ** (L - 1))}",
            linear_fluctuations().statement,
            r"c_1 = c_2 / [C \alpha (\kappa_1 - \kappa_2)] \text{ for } C = 1, \text{ other outputs add nothing}",
        ),
    )


@cache
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
    sp = sympy_module()

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
        name="linear_edge",
        statement=rf"\lambda_{{\max}} \to \min_w \Big[{sp.latex(expression)}\Big]",
        expression=expression,
        symbols=(w, gamma, r),
        steps=(
            r"\bar F \sim X^\top (|v|^2 + W^\top W) X / T, \quad |v|^2 \to 1, \quad"
            r" W^\top W \sim \text{Marchenko-Pastur}",
            rf"\text{{population }} t = 1 + y', \quad E \frac1{{y - y'}} = w \text{{ at }} y = {sp.latex(y)}",
            r"\lambda = a + \gamma a\, E \frac{t}{a - t}, \quad a = 1 + y, \quad E \frac{t}{a - t} = a w - 1",
            r"\text{the edge is where } d\lambda/dw = 0: \quad s(1 + \gamma(1 + 2x)) + \gamma x^2 = 1,"
            r" \quad x = a w - 1, \quad s = r w^2/(1 - w)^2",
        ),
    )


def _linear_symbols() -> tuple[Any, ...]:
    sp = sympy_module()
    return (sp.Symbol("s", positive=True), *sp.symbols("L j l", positive=True, integer=True))
