"""What is passed to functions of wide networks: activations, sizes and variances, sensible or not."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.theory.fuzz.strategies import ANY_SIZE, counts, depths, flags, hostile, log_uniform, mostly
from theory import activations

SINE = activations.Activation("sine", np.sin, np.cos, lambda x: -np.sin(x))
CLOSED = ["relu", "erf", "linear", "leaky_relu", activations.leaky_relu(-1.0), activations.leaky_relu(1e70)]
BAD = [
    activations.Activation("complex", lambda x: 1j * x, np.cos, np.cos),
    activations.Activation("words", lambda x: np.full(x.shape, "a"), np.cos, np.cos),
    activations.Activation("one number", lambda _: 1.0, np.cos, np.cos),
    activations.Activation("huge", lambda x: 1e308 * np.tanh(x), lambda x: 1e308 / np.cosh(x) ** 2),
    activations.Activation("pole", lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3),
    activations.Activation("kink", np.abs, np.sign, np.zeros_like, (0.0,)),
]
closed = st.sampled_from([*CLOSED, *CLOSED, ["relu", "erf"], ["relu"], "swish", [], *BAD])
any_activation = st.one_of(closed, closed, closed, hostile)
kernels_of = mostly(
    st.sampled_from([activations.relu, activations.erf, activations.tanh, SINE, *BAD, *CLOSED])
)
NETWORK = {
    "activation": any_activation,
    "depth": depths,
    "weight_variance": mostly(log_uniform(1e-3, 30.0), ANY_SIZE),
    "bias_variance": mostly(st.floats(0, 3), ANY_SIZE),
}
EXTREME_RATIOS = [
    [1e200] * 3,
    [1e-320, 1],
    [1, 1e-320],
    [1e-320] * 2,
    [1e308, 1e-320],
    [1e-320, 1e308],
    [1e-160] * 2,
]
RATIOS = {
    "width_ratios": st.one_of(
        st.none(),
        st.none(),
        mostly(st.lists(st.floats(0.5, 2), min_size=1, max_size=4), st.sampled_from(EXTREME_RATIOS)),
    )
}
SAMPLES = {"width": counts, "samples": counts, "outputs": counts, "finite_width": flags}
OF_NETWORK = ("activation", "derivative", "second_derivative")
