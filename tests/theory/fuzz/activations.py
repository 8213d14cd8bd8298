"""Lines of the activations and of their Gaussian kernels."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.theory.fuzz.line import Line, real
from tests.theory.fuzz.networks import BAD, OF_NETWORK, any_activation, kernels_of
from tests.theory.fuzz.strategies import HUGE, hostile, log_uniform, mostly, signed
from theory import activations
from theory.activations import gaussian as gaussian_kernels, precise_kernels


@st.composite
def pairs(draw: st.DrawFn) -> dict[str, Any]:
    """Variance, covariance and gap that belong together, or not."""
    a = draw(
        st.one_of(log_uniform(1e-3, 10.0), log_uniform(1e-3, 10.0), st.sampled_from([0.0, 1e-308, 1e300]))
    )
    share = draw(st.one_of(st.floats(-1, 1), st.sampled_from([0.0, 1.0, -1.0, 1 - 1e-9])))
    found = {"variance": a, "covariance": a * share, "gap": a * (1 - share)}
    spoilt = draw(st.sampled_from(["", "", "", "variance", "covariance", "gap"]))
    return found | {spoilt: draw(hostile)} if spoilt else found


def with_pair(self: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda kernel, pair: {"self": kernel, **pair}, self, pairs())


def with_shares(self: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    sized = mostly(st.one_of(log_uniform(1e-9, 10.0), st.just(0.0)), log_uniform(1e16, 1e300))
    return st.fixed_dictionaries({"self": self, "covariance": sized, "gap": sized})


rectifiers = st.sampled_from([0.0, 0.01, -1.0, 1.0, 1e75, -1e75, -1e-200]).map(
    gaussian_kernels.PiecewiseLinear
)
sine = gaussian_kernels.NumericalKernels("sine", np.sin, np.cos, lambda x: -np.sin(x))
rough = gaussian_kernels.NumericalKernels("huge", lambda x: 1e300 * np.tanh(x), np.cos, np.sin)
quadratures = st.sampled_from([sine, rough, dataclasses.replace(sine, second=None)])
bent = gaussian_kernels.KinkedQuadrature("bent", np.abs, np.sign, np.zeros_like, (0.0,))
steps = dataclasses.replace(bent, function=np.sign, first=np.zeros_like)
kinked = st.sampled_from([bent, steps, dataclasses.replace(bent, second=None, kinks=(0.0, 0.3))])
erfs = st.just(activations.erf.kernels)


def moments_are_ordered(_: Any, m: gaussian_kernels.Moments) -> None:
    assert m.moment >= 0 and m.gap >= 0 and m.overlap <= m.moment * (1 + 1e-9) + 1e-300


def kernels(cls: type, self: st.SearchStrategy[Any], *, unsettled: bool) -> dict[str, Line]:
    name, more = f"activations.gaussian.{cls.__name__}", {"unsettled": unsettled, "infinite": not unsettled}
    also = ("second_derivative", "activation")
    return {
        f"{name}.value": Line(cls.value, with_pair(self), moments_are_ordered, **more),
        f"{name}.derivative": Line(
            cls.derivative, with_pair(self), moments_are_ordered, also=("activation",), **more
        ),
        f"{name}.curvature": Line(cls.curvature, with_pair(self), also=also, **{**more, "infinite": True}),
        f"{name}.fluctuations": Line(
            cls.fluctuations, with_shares(self), also=also, **{**more, "unsettled": True}
        ),
    }


MODULES = {
    "activations": ("erf", "gelu", "hard_tanh", "linear", "relu", "sigmoid", "softplus", "tanh"),
    "activations.gaussian": ("ConvergenceError", "Fluctuations", "Kernels", "Moments"),
    "activations.precise_kernels": (),
}

TABLE: dict[str, Line] = {
    "activations.Activation": Line(
        activations.Activation,
        {
            "name": st.one_of(st.just("sine"), hostile),
            "function": st.one_of(st.just(np.sin), hostile),
            "derivative": st.just(np.cos),
            "second_derivative": st.one_of(st.none(), hostile),
            "kinks": st.one_of(st.just(()), hostile),
            "kernels": st.one_of(st.none(), hostile),
        },
    ),
    "activations.leaky_relu": Line(activations.leaky_relu, {"slope": signed}),
    "activations.built_in": Line(
        activations.built_in,
        {"activation": kernels_of},
        lambda _, found: real(None, float(found)),
        also=OF_NETWORK,
    ),
    "activations.single": Line(activations.single, {"activation": any_activation}),
    "activations.resolve": Line(
        activations.resolve,
        {"activation": any_activation, "layers": mostly(st.integers(0, 3), st.sampled_from(HUGE))},
        lambda arguments, found: real(None, float(len(found) == arguments["layers"])),
    ),
    "activations.gaussian_kernels": Line(
        activations.gaussian_kernels, {"activation": kernels_of}, also=OF_NETWORK
    ),
    "activations.gaussian.real_values": Line(
        gaussian_kernels.real_values,
        {
            "name": st.just("f"),
            "f": st.sampled_from([np.sin, *(a.function for a in BAD)]),
            "x": st.just(np.zeros(2)),
        },
        also=("activation",),
        infinite=True,
    ),
    "activations.gaussian.PiecewiseLinear": Line(gaussian_kernels.PiecewiseLinear, {"slope": signed}),
    **{
        f"activations.gaussian.{cls.__name__}": Line(
            cls,
            {
                "name": st.just("sine"),
                "function": st.one_of(st.just(np.sin), hostile),
                "first": st.one_of(st.just(np.cos), hostile),
                "second": st.one_of(st.none(), hostile),
            },
        )
        for cls in (gaussian_kernels.NumericalKernels, gaussian_kernels.Erf)
    },
    **kernels(gaussian_kernels.PiecewiseLinear, rectifiers, unsettled=False),
    **kernels(gaussian_kernels.NumericalKernels, quadratures, unsettled=True),
    **kernels(gaussian_kernels.Erf, erfs, unsettled=False),
    "activations.gaussian.KinkedQuadrature": Line(
        gaussian_kernels.KinkedQuadrature,
        {
            "name": st.just("bent"),
            "function": st.one_of(st.just(np.abs), hostile),
            "first": st.one_of(st.just(np.sign), hostile),
            "second": st.one_of(st.none(), hostile),
            "kinks": st.one_of(st.just((0.0,)), hostile),
        },
    ),
    **kernels(gaussian_kernels.KinkedQuadrature, kinked, unsettled=True),
    "activations.precise_kernels.precise_kernels": Line(
        precise_kernels.precise_kernels,
        {"activation": kernels_of, "digits": mostly(st.integers(1, 50), st.sampled_from(HUGE))},
    ),
}

WITHOUT_ARGUMENTS = {"activations.precise_kernels.mpmath": "a module"}
