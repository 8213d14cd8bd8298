"""Layer normalisation in all layers: signals, Gram and etas against torch's own layer and its autograd."""

import math

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor
from torch.nn.functional import layer_norm

from benchmarks.fisher import peak_bytes
from simulate import _memory
from simulate.activations import ACTIVATIONS, nonlinearity
from simulate.monte_carlo import Block, Point, stream
from simulate.wide import fisher_gram, layer_normed, signals
from simulate.wide.signals import WideNetwork

SHAPES = [
    ((3, 4), 4),
    ((5, 3), 1),
    ((4, 6, 3), 3),
    ((4, 6, 5, 4), 4),
    ((3, 2, 7, 4, 5), 5),
    ((1, 3, 2, 3, 3, 6), 2),
]


def network_of(widths=(4, 6, 5, 4), samples: int = 4, count: int = 2) -> WideNetwork:
    block = Block(tuple(stream(0, "test", Point(), i) for i in range(count)))
    return signals.wide_network(block, widths=widths, samples=samples, weight_variance=1.9, bias_variance=0.3)


def jacobian(
    network: WideNetwork, activations: list[str], *, eps: float = 0.0, biases: bool = True
) -> Tensor:
    """Derivatives of every normalised output by all parameters, (n, C, T, P), through autograd."""

    def outputs(weights, offsets, h):
        for layer, (w, b) in enumerate(zip(weights, offsets, strict=True)):
            u = layer_norm(h @ w.mT + b, (len(b),), eps=eps)
            h = u if layer == len(activations) else nonlinearity(activations[layer]).function(u)
        return h.T

    def rows(n: int) -> Tensor:
        parameters = tuple(w[n] for w in network.weights), tuple(b[n] for b in network.biases)
        parts = torch.func.jacrev(outputs, argnums=(0, 1))(*parameters, network.inputs[n])
        kept = parts[0] + parts[1] if biases else parts[0]
        return torch.cat([part.flatten(2) for part in kept], dim=2)

    return torch.stack([rows(n) for n in range(len(network.inputs))])


def assert_gram_of(j: Tensor, measured: Tensor, scale: float | None = None) -> None:
    expected = torch.einsum("nksp,nmtp->nkmst", j, j)
    scale = scale or expected.abs().max().item()
    assert_allclose(measured, expected, rtol=0, atol=1e-13 * scale)


@pytest.mark.parametrize("eps", [0.0, 0.03])
@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_gram_is_the_product_of_jacobians(widths: tuple[int, ...], samples: int, eps: float) -> None:
    network, hidden = network_of(widths, samples), len(widths) - 2
    measured = layer_normed.layer_normed_gram(network, "tanh", eps=eps)

    assert measured.shape == (2, widths[-1], widths[-1], samples, samples)
    assert_gram_of(jacobian(network, ["tanh"] * hidden, eps=eps), measured)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gram_takes_every_activation(activation: str) -> None:
    network = network_of()
    assert_gram_of(jacobian(network, [activation] * 2), layer_normed.layer_normed_gram(network, activation))


def test_gram_takes_one_activation_per_hidden_layer_and_leaves_biases_out() -> None:
    network = network_of()
    j = jacobian(network, ["tanh", "relu"], biases=False)
    assert_gram_of(j, layer_normed.layer_normed_gram(network, ["tanh", "relu"], biases=False))


@pytest.mark.parametrize("widths", [(1, 1), (3, 1, 4), (4, 6, 1), (2, 1, 1)])
def test_a_single_unit_is_constant(widths: tuple[int, ...]) -> None:
    """Its normalised signal and its derivatives are 0 whatever the constant, and without one."""
    network, hidden = network_of(widths, 3), ["erf"] * (len(widths) - 2)
    assert_gram_of(
        jacobian(network, hidden, eps=0.1),
        layer_normed.layer_normed_gram(network, hidden, eps=0.1),
        scale=1.0,
    )
    without, nearly = (
        layer_normed.layer_normed_gram(network, hidden),
        layer_normed.layer_normed_gram(network, hidden, eps=1e-13),
    )
    assert_allclose(without, nearly, rtol=0, atol=1e-9)
    assert (without == 0).all() == (widths[-1] == 1)


@pytest.mark.parametrize("layer", [0, 2])
def test_several_units_that_agree(layer: int) -> None:
    """With a constant their derivatives are those of torch, without one they are set to 0."""
    network = network_of((4, 8, 5, 4), 3)
    network.weights[layer].zero_()
    network.biases[layer].fill_(0.5)
    assert_gram_of(
        jacobian(network, ["tanh"] * 2, eps=0.1), layer_normed.layer_normed_gram(network, "tanh", eps=0.1)
    )

    signals = layer_normed.layer_normed_signals(network, "tanh")
    deltas = list(layer_normed.layer_normed_derivatives(network, "tanh", signals))[::-1]
    assert not signals.normalised[layer].any() and not signals.inverses[layer].any()
    assert not deltas[layer].any()


@pytest.mark.parametrize("eps", [1e-5, 0.2])
def test_two_outputs_keep_only_what_the_constant_leaves(eps: float) -> None:
    """J = eps (sigma^2 + eps)^(-3/2) (I - 1 1^T / 2) J_u, and 0 without the constant."""
    network = network_of((4, 6, 5, 2))
    assert_gram_of(
        jacobian(network, ["relu"] * 2, eps=eps),
        layer_normed.layer_normed_gram(network, "relu", eps=eps),
        scale=1.0 / eps,
    )
    scale = layer_normed.layer_normed_signals(network, "relu").inverses[-1].square().max()
    assert layer_normed.layer_normed_gram(network, "relu").abs().max() < 1e-25 * scale


@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_signals_are_those_of_torch(eps: float) -> None:
    network = network_of()
    found = layer_normed.layer_normed_signals(network, "relu", eps=eps)
    h = network.inputs
    for layer, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        u = h @ w.mT + b[:, None]
        expected = layer_norm(u, u.shape[-1:], eps=eps)
        assert_allclose(found.normalised[layer], expected, atol=1e-14)
        variance = u.var(-1, correction=0)
        assert_allclose(found.inverses[layer], 1 / torch.sqrt(variance + eps), rtol=1e-14)
        assert_allclose(found.activations[layer], h)
        h = torch.relu(expected)
    assert len(found.activations) == len(found.normalised) == 3


def test_backward_signals_annihilate_what_the_normalisation_removes() -> None:
    """Derivatives by the units of a layer are orthogonal to a shift and to a rescaling of them."""
    network = network_of()
    found = layer_normed.layer_normed_signals(network, "gelu")
    for f, delta in zip(
        reversed(found.normalised), layer_normed.layer_normed_derivatives(network, "gelu", found), strict=True
    ):
        assert_allclose(delta.sum(-1), 0.0, atol=1e-13)
        assert_allclose((delta * f[:, None]).sum(-1), 0.0, atol=1e-13)


def test_etas_by_loops_over_samples() -> None:
    network = network_of((4, 6, 3), samples=4, count=1)
    found = layer_normed.layer_normed_signals(network, "relu")
    f, p = found.normalised[-1][0], found.inverses[-1][0]
    r = [[float(a @ b) / 3 for b in f] for a in f]
    pairs = [(s, t) for s in range(4) for t in range(4)]
    eta3 = math.sqrt(sum((r[s][t] * p[s] * p[t]) ** 2 for s, t in pairs) / 16)
    overlap = sum(r[s][t] ** 2 * p[s] * p[t] for s, t in pairs if s != t) / 16
    expected = {"eta1": (p**2).mean(), "eta2": (p**4).mean(), "eta3": eta3, "overlap": overlap}

    measured = layer_normed.etas(found)
    assert measured.keys() == expected.keys()
    for name, value in expected.items():
        assert_allclose(measured[name], [value], rtol=1e-13)


def test_trace_of_two_projectors_weighs_pairs_of_samples() -> None:
    """Tr P(s) P(t) of the projectors themselves."""
    found = layer_normed.layer_normed_signals(network_of((4, 7, 5), samples=3, count=1), "tanh")
    f, p = found.normalised[-1][0], found.inverses[-1][0]
    projectors = torch.eye(5).double() - 1 / 5 - f[:, :, None] * f[:, None, :] / 5
    expected = sum(
        float((projectors[s] * projectors[t]).sum() * p[s] * p[t])
        for s in range(3)
        for t in range(3)
        if s != t
    )
    assert_allclose(layer_normed.etas(found)["overlap"], [expected / 9], rtol=1e-12)


def test_scale_of_the_weights_only_divides_the_last_layer() -> None:
    """Weights and biases times a factor change no signal, and divide all gradients by it."""
    network = network_of()
    scaled = WideNetwork(
        weights=tuple(3 * w for w in network.weights),
        biases=tuple(3 * b for b in network.biases),
        inputs=network.inputs,
    )
    one, other = (layer_normed.layer_normed_gram(x, "softplus") for x in (network, scaled))
    assert_allclose(other, one / 9, rtol=0, atol=1e-13 * one.abs().max().item())


def test_a_replicate_has_the_same_gram_alone_and_in_a_block() -> None:
    together = layer_normed.layer_normed_gram(network_of(count=3), "gelu")
    assert_allclose(
        layer_normed.layer_normed_gram(network_of(count=1), "gelu")[0], together[0], rtol=1e-11, atol=1e-12
    )


def test_gram_leaves_the_network_alone() -> None:
    network = network_of()
    kept = [t.clone() for t in (*network.weights, *network.biases, network.inputs)]
    layer_normed.layer_normed_gram(network, "relu")
    assert all(map(torch.equal, (*network.weights, *network.biases, network.inputs), kept))


# --- refusals


@pytest.mark.parametrize("eps", [-1e-5, math.nan, math.inf])
def test_bad_constant_is_refused(eps: float) -> None:
    with pytest.raises(ValueError, match="eps must be non-negative and finite"):
        layer_normed.layer_normed_gram(network_of(), "relu", eps=eps)


@pytest.mark.parametrize(
    ("activation", "rule"), [("swish", "one of .*'swish'"), (["relu"], "one for each of")]
)
def test_bad_activation_is_refused(activation: str, rule: str) -> None:
    with pytest.raises(ValueError, match=f"activation must be {rule}|activation must be one, or {rule}"):
        layer_normed.layer_normed_gram(network_of(), activation)


def test_etas_of_a_single_output_are_refused() -> None:
    with pytest.raises(ValueError, match="outputs must be at least 2 to have a variance, got 1"):
        layer_normed.etas(layer_normed.layer_normed_signals(network_of((3, 4, 1)), "relu"))


def test_gram_beyond_the_memory_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "available", lambda device: 2**26)
    inputs = torch.zeros(1, 1, 1, dtype=torch.float64).expand(2, 3000, 1)  # no memory of its own
    network = WideNetwork(
        weights=(torch.zeros(2, 1, 1).double(),), biases=(torch.zeros(2, 1).double(),), inputs=inputs
    )
    with pytest.raises(ValueError, match=r"2 replicates, 1 outputs and 3000 samples need about .* use fewer"):
        layer_normed.layer_normed_gram(network, "relu")


@pytest.mark.parametrize(
    ("widths", "samples"), [((30, 40, 5), 60), ((400, 300, 300, 1), 20), ((10, 300, 10), 40)]
)
def test_the_estimate_covers_the_peak(widths: tuple[int, ...], samples: int) -> None:
    """What torch really allocates stays below the estimate, and is at least 0.4 of it."""
    network = network_of(widths, samples)
    peak = peak_bytes(lambda: layer_normed.layer_normed_gram(network, "tanh"))
    assert 0.4 <= peak / fisher_gram._bytes_needed(network, 5) <= 1.0


def test_statistics_of_the_gram_are_those_of_the_fisher_matrix() -> None:
    network = network_of((4, 6, 5, 3), samples=3)
    gram = layer_normed.layer_normed_gram(network, "erf")
    j = jacobian(network, ["erf", "erf"]).flatten(1, 2)
    fisher = torch.linalg.eigvalsh(j.mT @ j / 3)
    assert_allclose(
        fisher_gram.fisher_eigenvalues(gram)[:, -9:], fisher[:, -9:], atol=1e-13 * fisher.max().item()
    )
    assert (
        fisher_gram.fisher_eigenvalues(gram)[:, : 9 - 3] < 1e-12 * fisher.max()
    ).all()  # rank C - 2 of C per sample
