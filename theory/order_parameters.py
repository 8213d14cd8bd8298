r"""Order parameters of a wide random network: second moments of its signals, forward and backward.

====================  ==================================================================================
name                  symbol (Karakida, Akaho and Amari 2019, Section 2.2)
====================  ==================================================================================
``depth``             :math:`L`; layers 1..L-1 are hidden, layer L is linear
``weight_variance``   :math:`\sigma_w^2`: weights of layer l are :math:`N(0, \sigma_w^2/M_{l-1})`
``bias_variance``     :math:`\sigma_b^2`
``input_overlap``     :math:`\hat q_{st}^0`, with :math:`\hat q_t^0 = 1`
``q_hat_t, q_hat_st`` :math:`\hat q_t^l, \hat q_{st}^l`, activations of one input, of two inputs
``q_tilde_t, _st``    :math:`\tilde q_t^l, \tilde q_{st}^l`, backpropagated signals of one output
``variance``          :math:`q_t^l`, pre-activations; ``covariance`` :math:`q_{st}^l`
``gap``               :math:`d^l = q_t^l - q_{st}^l`, carried without subtraction
``backward_gap``      :math:`e^l = \tilde q_t^l - \tilde q_{st}^l`, carried without subtraction
====================  ==================================================================================

The read-out is linear, so that the moments of activations end at layer L - 1: eq. (5) goes one further, with the
identity for the activation of the last layer. The backward ones, eq. (7), begin at layer 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory._checks import (
    closed_form,
    finite,
    instance,
    integer,
    layers,
    nonnegative,
    require,
    scalar,
    within,
)
from theory._roots import mpmath
from theory.activations import Activation, built_in, gaussian_kernels, resolve
from theory.activations.gaussian import ConvergenceError, Moments
from theory.activations.precise_kernels import precise_kernels

__all__ = [
    "ConvergenceError",
    "OrderParameters",
    "Propagation",
    "input_derivative",
    "order_parameters",
    "preactivation_moment",
    "propagate",
]

_LOCK = Lock()
"""Lock for mpmath, whose cache of constants such as pi is not safe for several threads."""

_SHALLOW = 100
"""Layers of a network whose moments are remembered: a thousand of them stay below some megabytes."""


class OrderParameters(NamedTuple):
    """Arrays of length `depth`: the hats for layers 0..L-1, the tildes for layers 1..L."""

    q_hat_t: NDArray[Any]
    q_hat_st: NDArray[Any]
    q_tilde_t: NDArray[Any]
    q_tilde_st: NDArray[Any]


class Propagation(NamedTuple):
    """All moments layer by layer; a gap is the difference of the two before it, exact when tiny."""

    variance: list[Any]  # layers 1..L-1, as the two below
    covariance: list[Any]
    gap: list[Any]
    q_hat_t: list[Any]  # layers 0..L-1, as the two below
    q_hat_st: list[Any]
    forward_gap: list[Any]
    q_tilde_t: list[Any]  # layers 1..L, as the two below
    q_tilde_st: list[Any]
    backward_gap: list[Any]


class _Kernel(Protocol):
    def value(self, variance: Any, covariance: Any, gap: Any, /) -> Moments: ...
    def derivative(self, variance: Any, covariance: Any, gap: Any, /) -> Moments: ...


def order_parameters(
    activation: str | Activation | Sequence[str | Activation],
    *,
    depth: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    input_overlap: ArrayLike = 0.0,
    digits: int | None = None,
) -> OrderParameters:
    r"""Moments of activations and backpropagated signals of an infinitely wide random network.

    .. math::
        q^l = \sigma_w^2 \hat q^{l-1} + \sigma_b^2, \quad
        \hat q_t^l = E\,\phi(u)^2, \quad \hat q_{st}^l = I_\phi[q_t^l, q_{st}^l], \quad
        \tilde q_t^l = \sigma_w^2 \tilde q_t^{l+1} E\,\phi'(u)^2, \quad
        \tilde q_{st}^l = \sigma_w^2 \tilde q_{st}^{l+1} I_{\phi'}[q_t^l, q_{st}^l],

    from :math:`\hat q_t^0 = 1`, :math:`\hat q_{st}^0` = `input_overlap` and :math:`\tilde q^L = 1`.

    Parameters
    ----------
    activation
        An :class:`~theory.activations.Activation`, its name, or one of these per hidden layer.
    depth
        Number of layers L, from 1 to 100000, the linear output layer included.
    weight_variance, bias_variance
        Scalars >= 0.
    input_overlap
        Scalar in [-1, 1]: inner product of the two inputs per input unit.
    digits
        If given, compute with mpmath to this many digits, at most 1000 (named activations but hard_tanh). Without a
        closed form it takes seconds per layer, and what would take minutes is refused: some hundred digits of tanh,
        or a large variance. The numbers passed in count as exact binary fractions. One call computes at a time,
        whatever the threads, and mpmath's own precision is neither read nor changed.

    Returns
    -------
    Arrays of length `depth`; float64, or objects (``mpmath.mpf``) if `digits` is given.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the moments overflow.
    ConvergenceError
        If the averages of a user's activation do not settle (rougher than its kinks say), or a pre-activation has
        a variance beyond about 1e8 and the activation is smooth without a closed form.

    References
    ----------
    Karakida, Akaho and Amari (2019), eqs. (5)-(7).

    Examples
    --------
    >>> result = order_parameters("relu", depth=3, weight_variance=2.0, bias_variance=0.0)
    >>> result.q_hat_t, result.q_tilde_t
    (array([1., 1., 1.]), array([1., 1., 1.]))
    >>> result.q_hat_st.round(4)
    array([0.    , 0.3183, 0.4937])
    >>> precise = order_parameters("erf", depth=2, weight_variance=1, bias_variance=0, digits=30)
    >>> import mpmath
    >>> mpmath.nstr(precise.q_hat_t[1], 20)  # (2/pi) arcsin(2/3)
    '0.46455905439753997851'
    """
    depth = layers("depth", depth)
    activations = resolve(activation, depth - 1)
    if digits is not None:
        return _precise(activations, *_start(weight_variance, bias_variance, input_overlap), digits)
    result = propagate(
        activations,
        weight_variance=weight_variance,
        bias_variance=bias_variance,
        input_overlap=input_overlap,
    )
    return OrderParameters(
        *(np.array(x) for x in (result.q_hat_t, result.q_hat_st, result.q_tilde_t, result.q_tilde_st))
    )


@closed_form
def preactivation_moment(
    q_hat: ArrayLike, *, weight_variance: ArrayLike, bias_variance: ArrayLike
) -> NDArray[np.float64]:
    r"""Second moment of the pre-activations of a layer, given that of the activations below it.

    .. math:: q^{l+1} = \sigma_w^2 \hat q^l + \sigma_b^2,

    of one input (:math:`\hat q_t^l`) or of two (:math:`\hat q_{st}^l`). The read-out is linear: there they are those of
    the outputs.

    Parameters
    ----------
    q_hat
        Second moment of the activations, finite; any shape.
    weight_variance, bias_variance
        Scalars >= 0.

    Returns
    -------
    Of the shape of `q_hat`.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the result overflows.

    References
    ----------
    Karakida, Akaho and Amari (2019), eq. (6).

    Examples
    --------
    >>> preactivation_moment([1.0, 0.25], weight_variance=2.0, bias_variance=0.5)
    array([2.5, 1. ])
    """
    moment = finite("q_hat", q_hat)
    drawn = Initialisation.checked(weight_variance, bias_variance)
    return drawn.weight * moment + drawn.bias


def input_derivative(
    activation: str | Activation | Sequence[str | Activation],
    *,
    depth: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
) -> float:
    r"""Mean squared length of the derivative of an output by the inputs of a wide random network.

    .. math:: E \sum_i \Big(\frac{\partial f_k}{\partial x_i}\Big)^2 = \sigma_w^2\, \tilde q_t^1:

    the backward recursion goes on to the inputs, whose layer has no slope of the activation.

    Parameters
    ----------
    activation, depth, weight_variance, bias_variance
        As in :func:`order_parameters`.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`order_parameters`; if the result overflows.

    References
    ----------
    Karakida, Akaho and Amari (2019), eq. (7), carried on to the inputs, which is ours.

    Examples
    --------
    >>> input_derivative("linear", depth=3, weight_variance=2.0, bias_variance=0.5)
    8.0
    """
    drawn = Initialisation.checked(weight_variance, bias_variance)
    tildes = order_parameters(
        activation, depth=depth, weight_variance=weight_variance, bias_variance=bias_variance
    ).q_tilde_t
    found = drawn.weight * float(tildes[0])
    drawn.require_moderate(math.isfinite(found), by_bias=False)
    return found


def propagate(
    activations: Sequence[Activation],
    *,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    input_overlap: ArrayLike = 0.0,
) -> Propagation:
    r"""Run the recursions of :func:`order_parameters` with all differences carried along.

    The differences obey :math:`d^{l+1} = \sigma_w^2 (\hat q_t^l - \hat q_{st}^l)` and
    :math:`e^l = \sigma_w^2 [\tilde q_t^{l+1} (E\phi'^2 - I_{\phi'}) + e^{l+1} I_{\phi'}]`, where the kernels
    give the brackets without cancellation.

    Parameters
    ----------
    activations
        One per hidden layer; `backward_gap` keeps its digits only with a second derivative.
    weight_variance, bias_variance, input_overlap
        As in :func:`order_parameters`.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the moments overflow.
    ConvergenceError
        As in :func:`order_parameters`.

    Examples
    --------
    >>> relu = resolve("relu", 100)
    >>> result = propagate(relu, weight_variance=0.5, bias_variance=1.0)
    >>> result.variance[-1] - result.covariance[-1], 0 < result.gap[-1] < 1e-50
    (0.0, True)
    """
    instance("activations", activations, Sequence, "a sequence of Activation")
    drawn, overlap = _start(weight_variance, bias_variance, input_overlap)
    if len(activations) <= _SHALLOW and all(built_in(a) for a in activations):
        result = Propagation(*map(list, _remembered(tuple(activations), drawn, overlap)))
    else:  # a function of the user's own may give other values at the next call
        result = _recursion([gaussian_kernels(a) for a in activations], drawn, overlap)
    for numbers in result:
        drawn.require_moderate(np.isfinite(numbers), by_bias=False)
    return result


@lru_cache(maxsize=1024)
def _remembered(activations: tuple[Activation, ...], drawn: Initialisation, overlap: float) -> Propagation:
    """The recursion of built-in activations: a curve over widths or samples asks for the same one at every point."""
    return _recursion([gaussian_kernels(a) for a in activations], drawn, overlap)


def _start(
    weight_variance: ArrayLike, bias_variance: ArrayLike, input_overlap: ArrayLike
) -> tuple[Initialisation, float]:
    drawn = Initialisation.checked(weight_variance, bias_variance)
    return drawn, scalar("input_overlap", within("input_overlap", input_overlap, -1.0, 1.0))


def _recursion(kernels: Sequence[_Kernel], drawn: Initialisation, overlap: Any) -> Propagation:
    sw2 = drawn.weight
    # of the type of the arguments, floats or numbers of mpmath
    one = sw2 * 0 + 1
    hats = [Moments(one, overlap * one, one - overlap)]
    pre: list[tuple[Any, Any, Any]] = []
    for kernel in kernels:
        pre.append(drawn.through(*hats[-1]))
        variance = pre[-1][0]
        # with room for the small multiples that kernels form
        drawn.require_moderate(variance * 16 < math.inf, by_bias=2 * drawn.bias > variance)
        hats.append(kernel.value(*pre[-1]))
    tildes = [Moments(one, one, one * 0)]
    for kernel, arguments in zip(reversed(kernels), reversed(pre), strict=True):
        slope = kernel.derivative(*arguments)
        own, shared, gap = tildes[-1]
        gap = sw2 * (own * slope.gap + gap * slope.overlap)
        tildes.append(Moments(sw2 * own * slope.moment, sw2 * shared * slope.overlap, gap))
    return Propagation(*_columns(pre), *_columns(hats), *_columns(tildes[::-1]))


def _columns(rows: Sequence[tuple[Any, Any, Any]]) -> list[list[Any]]:
    return [[row[i] for row in rows] for i in range(3)]


def _precise(
    activations: Sequence[Activation], drawn: Initialisation, overlap: float, digits: int
) -> OrderParameters:
    digits = integer("digits", digits, least=1, most=1000)
    kernels = [precise_kernels(a, digits) for a in activations]
    with _LOCK:
        mp = mpmath.mp.clone()  # the caller's precision is neither read nor set
        mp.dps = digits + 15
        result = _recursion(kernels, Initialisation(*map(mp.mpf, drawn)), mp.mpf(overlap))
        mp.dps = digits
        columns = (result.q_hat_t, result.q_hat_st, result.q_tilde_t, result.q_tilde_st)
        # the unary plus rounds to the present digits; the numbers must not refer to the cloned context
        rounded = [[mpmath.mp.make_mpf((+x)._mpf_) for x in c] for c in columns]
    return OrderParameters(*(np.array(c, dtype=object) for c in rounded))


_RULE = "small enough not to overflow"


class Initialisation(NamedTuple):
    r"""Variances :math:`\sigma_w^2` of the weights and :math:`\sigma_b^2` of the biases, floats or mpmath's."""

    weight: Any
    bias: Any

    @classmethod
    def checked(cls, weight_variance: ArrayLike, bias_variance: ArrayLike) -> Initialisation:
        """Two finite scalars >= 0.

        >>> Initialisation.checked(2, 0.5)
        Initialisation(weight=2.0, bias=0.5)
        """
        weight = scalar("weight_variance", weight_variance, nonnegative)
        return cls(weight, scalar("bias_variance", bias_variance, nonnegative))

    def through(self, own: Any, shared: Any, gap: Any) -> tuple[Any, Any, Any]:
        """Variance, covariance and their gap in the next layer, from the moments of the activations."""
        return self.weight * own + self.bias, self.weight * shared + self.bias, self.weight * gap

    def require_moderate(self, condition: Any, *, by_bias: bool | None = None) -> None:
        """Refuse, for what they overflow, the larger of the two or the one that is said to be guilty."""
        guilty = self.bias > self.weight if by_bias is None else by_bias
        name, value = ("bias_variance", self.bias) if guilty else ("weight_variance", self.weight)
        require(condition, name, _RULE, value)
