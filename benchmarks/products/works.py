"""Timed works: a network, the work to be done on it, and in float64 the expected result.

Every work has its result from plain derivatives in float64, which share no code with what is timed: products by
differentiating twice, eigenvalues of those by ARPACK, traces and Gram matrices layer by layer.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.products.networks import NETWORKS, BenchNetwork
from simulate import data
from simulate.eigenvalues import extremes
from simulate.lanczos import quadrature
from simulate.modules.projected import projected_terms
from simulate.modules.sample_grams import trace_gauss_newton, trace_hessian
from simulate.objectives import Objective
from simulate.objectives.restoring import as_found, seed_generators
from simulate.operators import gauss_newton, hessian
from simulate.perceptrons.curvature import haar
from simulate.wide import fisher_gram
from simulate.wide.signals import WideNetwork

__all__ = [
    "BLOCK",
    "COLUMNS",
    "DIRECTIONS",
    "EIGENVALUES",
    "OURS",
    "PROBES",
    "STEPS",
    "TOLERANCE",
    "WORKS",
    "Benchmark",
    "Call",
    "Case",
    "Way",
]

DIRECTIONS = 50
COLUMNS = 4
"""Directions of the frame, and how many columns of the projected matrices are compared."""

BLOCK = 20
"""Columns that H is multiplied by at once."""

TOLERANCE = 1e-3
"""Relative error allowed in the largest eigenvalue."""

EIGENVALUES = 10

STEPS, PROBES = 30, 3
"""Of a density: products with each of the probes."""

_EXACT = 1e-9

Call = Callable[[], Tensor | Sequence[Tensor]]
"""Gives the result, or its parts, one for each parameter."""


class Case:
    """A network with cross-entropy on digits, in float32, and with the same weights in float64.

    Attributes
    ----------
    network
        What it is built of.
    net
        The module, with ten outputs, in evaluation mode.
    single
        Of a perceptron one with one output; none of other networks.
    x, labels
        Samples, (N, in) of a perceptron, and classes (N,).
    vector
        A direction (dim,).

    Raises
    ------
    ValueError
        If there are not so many digits.
    """

    def __init__(
        self,
        samples: int,
        device: str,
        *,
        network: BenchNetwork = NETWORKS["lenet-300-100"],
        directions: int = DIRECTIONS,
    ) -> None:
        rng, flat = np.random.default_rng(0), len(network.shape) == 1
        side = math.isqrt(network.shape[0])
        digits = data.digits((1, side, side) if flat else network.shape)
        if not 1 <= samples <= len(digits):
            raise ValueError(f"samples must be 1 to the {len(digits)} digits there are, got {samples}")
        drawn = data.sample(digits, rng, samples)
        self.device, self.network = torch.device(device), network
        self.x = torch.tensor(drawn.images, dtype=torch.float32, device=device)
        self.x = self.x.flatten(1) if flat else self.x
        self.labels = torch.tensor(drawn.labels, device=device)
        self.loss = nn.CrossEntropyLoss()
        with as_found(None, training=False):  # layers of torch draw from its own generator
            seed_generators(0)
            self.net = network.build(rng).to(device=device, dtype=torch.float32).eval()
        single = None if network.single is None else network.single(rng)
        self.single = None if single is None else single.to(device=device, dtype=torch.float32)
        self.parameters = list(self.net.parameters())
        dim = sum(p.numel() for p in self.parameters)
        self.vector = torch.tensor(rng.standard_normal(dim), dtype=torch.float32, device=device)
        self._directions = directions

    @cached_property
    def frame(self) -> Tensor:
        """An orthonormal frame (dim, directions)."""
        rng = np.random.default_rng(1)
        return haar(rng, len(self.vector), self._directions, device=str(self.device)).float()

    @cached_property
    def block(self) -> Tensor:
        """Directions (dim, BLOCK)."""
        draws = torch.Generator().manual_seed(2)
        return torch.randn(len(self.vector), BLOCK, generator=draws).to(self.device)

    @property
    def batch(self) -> tuple[Tensor, Tensor]:
        """Inputs and labels."""
        return self.x, self.labels

    def both_passes(self) -> Tensor:
        """The unit of all times: loss and gradient of all samples."""
        loss = self.loss(self.net(self.x), self.labels)
        return torch.autograd.grad(loss, self.parameters)[0]

    @cached_property
    def objective(self) -> Objective:
        """The loss as our functions take it."""
        return Objective(self.net, self.batch, self.loss)

    @property
    def of_one_output(self) -> nn.Module:
        """`single`, where there is one.

        Raises
        ------
        ValueError
            Of another network than a perceptron.
        """
        if self.single is None:
            raise ValueError(f"network must be a perceptron to have one output, got {self.network.title}")
        return self.single

    @cached_property
    def wide(self) -> WideNetwork:
        """The network of one output as `fisher_gram` takes it."""
        weights = [p.detach() for p in self.of_one_output.parameters()]
        return WideNetwork(
            weights=tuple(w[None] for w in weights),
            biases=tuple(w.new_zeros(1, len(w)) for w in weights),
            inputs=self.x[None],
        )


class Benchmark(NamedTuple):
    """Something to be computed: its name, its value in float64, and of which networks alone it is."""

    name: str
    title: str
    truth: Callable[[Case], Tensor]
    perceptron: bool = False
    few: bool = False

    def suits(self, network: BenchNetwork) -> bool:
        """Whether it can be computed of this network."""
        return (network.single is not None or not self.perceptron) and (network.few or not self.few)


class Way(NamedTuple):
    """How a library does a work: with what, whether up to rounding, and a call that is ready for use."""

    work: str
    method: str
    exact: bool
    prepare: Callable[[Case], Call]


# --- ours -------------------------------------------------------------------------------------------------------


def _projected(case: Case) -> Call:
    def call() -> Tensor:
        return torch.stack(tuple(projected_terms(case.objective, case.frame)))[..., :COLUMNS]

    return call


def _largest(count: int) -> Callable[[Case], Call]:
    def prepared(case: Case) -> Call:
        matrix, rng = hessian(case.objective), np.random.default_rng(1)
        return lambda: torch.tensor(extremes(matrix, rng, largest=count, tolerance=TOLERANCE).values)

    return prepared


def _density(case: Case) -> Call:
    matrix, starts = hessian(case.objective), np.random.default_rng(1)

    def call() -> Tensor:
        return torch.tensor(
            quadrature(matrix, starts.standard_normal((PROBES, matrix.dim)), STEPS).nodes.max()
        )

    return call


def _dense(case: Case) -> Call:
    return lambda: hessian(case.objective).dense()


def _exact_trace(trace: Callable[[Objective], float]) -> Callable[[Case], Call]:
    return lambda case: lambda: torch.tensor(trace(case.objective))


def _network_gram(case: Case) -> Call:
    return lambda: fisher_gram.gram(case.wide, "relu", biases=False)[0, 0, 0]


def _product(kind: Callable[[Objective], Any]) -> Callable[[Case], Call]:
    def prepared(case: Case) -> Call:
        matrix = kind(case.objective)
        return lambda: matrix @ case.vector

    return prepared


def _columns(case: Case) -> Call:
    matrix = hessian(case.objective)
    return lambda: (matrix @ case.block)[:, :COLUMNS]


# --- the same in float64 ----------------------------------------------------------------------------------------


def _double(case: Case) -> tuple[nn.Module, list[Tensor], Tensor]:
    net = copy.deepcopy(case.net).double()
    return net, list(net.parameters()), case.x.double()


def _hessian_products(case: Case) -> Callable[[Tensor], Tensor]:
    net, parameters, x = _double(case)
    gradient = torch.autograd.grad(case.loss(net(x), case.labels), parameters, create_graph=True)

    def product(vector: Tensor) -> Tensor:
        return _flat(torch.autograd.grad(gradient, parameters, _like(parameters, vector), retain_graph=True))

    return product


def _gauss_newton_products(case: Case) -> Callable[[Tensor], Tensor]:
    net, parameters, x = _double(case)
    outputs = net(x)
    p, dual = outputs.softmax(1).detach(), torch.zeros_like(outputs, requires_grad=True)
    pulled = torch.autograd.grad(outputs, parameters, dual, create_graph=True)

    def product(vector: Tensor) -> Tensor:
        (tangent,) = torch.autograd.grad(pulled, dual, _like(parameters, vector), retain_graph=True)
        bent = p * (tangent - (p * tangent).sum(1, keepdim=True)) / len(x)
        return _flat(torch.autograd.grad(outputs, parameters, bent, retain_graph=True))

    return product


def _few_columns(case: Case) -> Tensor:
    """The first columns of R'GR and R'HtR."""
    frame = case.frame.double()
    g, h = (
        torch.stack([product(column) for column in frame.T[:COLUMNS]], dim=1)
        for product in (_gauss_newton_products(case), _hessian_products(case))
    )
    return torch.stack([frame.T @ g, frame.T @ (h - g)])


def _columns_of_block(case: Case) -> Tensor:
    product = _hessian_products(case)
    return torch.stack([product(column.double()) for column in case.block.T[:COLUMNS]], dim=1)


def _whole(case: Case) -> Tensor:
    product = _hessian_products(case)
    return torch.stack(
        [product(row) for row in torch.eye(len(case.vector), dtype=torch.float64, device=case.device)]
    )


def _largest_eigenvalues(case: Case, count: int) -> Tensor:
    """In falling order."""
    if case.network.few:
        return torch.linalg.eigvalsh(_whole(case)).flip(0)[:count]
    from scipy.sparse import linalg

    eigsh: Any = linalg.eigsh
    scipy_operator: Any = linalg.LinearOperator
    multiply = _hessian_products(case)

    def product(vector: Any) -> Any:
        return multiply(torch.as_tensor(vector.ravel(), device=case.device)).cpu().numpy()

    start = case.vector.double().cpu().numpy()
    matrix = scipy_operator((start.size, start.size), matvec=product, dtype=np.float64)
    found = eigsh(matrix, count, which="LA", tol=_EXACT, v0=start, return_eigenvectors=False)
    return torch.as_tensor(np.sort(found)[::-1].copy())


def _trace(case: Case) -> Tensor:
    """Of H and of G: the logits are linear in every single weight, so that their traces agree."""
    weights, x = _weights(case.net), case.x.double()
    p = _forward(weights, x)[-1].softmax(1)
    total = x.new_zeros(())
    for k in range(p.shape[1]):  # the curvature of the loss is the sum of p_k (e_k - p)(e_k - p)'
        above = nn.functional.one_hot(torch.full((len(x),), k, device=x.device), p.shape[1]) - p
        for below, delta in _layers(weights, x, above * p[:, k, None].sqrt()):
            total += (delta.square().sum(1) * below.square().sum(1)).sum()
    return total / len(x)


def _gram(case: Case) -> Tensor:
    weights, x = _weights(case.of_one_output), case.x.double()
    layers = _layers(weights, x, x.new_ones(len(x), 1))
    return torch.stack([(delta @ delta.mT) * (below @ below.mT) for below, delta in layers]).sum(0)


def _forward(weights: Sequence[Tensor], x: Tensor) -> list[Tensor]:
    """Inputs, activations and outputs."""
    signals = [x]
    for weight in weights[:-1]:
        signals.append((signals[-1] @ weight.mT).relu())
    return [*signals, signals[-1] @ weights[-1].mT]


def _layers(weights: Sequence[Tensor], x: Tensor, delta: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Of each layer from the top what goes in and the derivative by what comes out, given that of the outputs."""
    for weight, below in zip(reversed(weights), reversed(_forward(weights, x)[:-1]), strict=True):
        yield below, delta
        delta = (delta @ weight) * (below > 0)


def _weights(net: nn.Module) -> list[Tensor]:
    """In float64."""
    return [p.detach().double() for p in net.parameters()]


def _flat(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([part.reshape(-1) for part in parts])


def _like(parameters: Sequence[Tensor], vector: Tensor) -> list[Tensor]:
    parts = vector.split([p.numel() for p in parameters])
    return [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]


WORKS = (
    Benchmark("hessian", "H times a vector", lambda case: _hessian_products(case)(case.vector.double())),
    Benchmark(
        "gauss-newton",
        "G times a vector",
        lambda case: _gauss_newton_products(case)(case.vector.double()),
    ),
    Benchmark("columns", f"H times {BLOCK} vectors", _columns_of_block),
    Benchmark("projected", f"G and H-term in {DIRECTIONS} directions", _few_columns),
    Benchmark(
        "eigenvalue", f"largest eigenvalue of H to {TOLERANCE:g}", lambda case: _largest_eigenvalues(case, 1)
    ),
    Benchmark(
        "eigenvalues",
        f"{EIGENVALUES} largest eigenvalues of H to {TOLERANCE:g}",
        lambda case: _largest_eigenvalues(case, EIGENVALUES),
    ),
    Benchmark(
        "density",
        f"density of H, {PROBES} probes of {STEPS} products; its upper end",
        lambda case: _largest_eigenvalues(case, 1),
    ),
    Benchmark("dense", "all of H", _whole, few=True),
    Benchmark("trace", "trace of G, which is that of H", _trace, perceptron=True),
    Benchmark("gram", "Gram matrix of one output", _gram, perceptron=True),
)

OURS = (
    Way("hessian", "operators.hessian", True, _product(hessian)),
    Way("gauss-newton", "operators.gauss_newton", True, _product(gauss_newton)),
    Way("columns", "operators.hessian", True, _columns),
    Way("projected", "projected.projected_terms", True, _projected),
    Way("eigenvalue", "eigenvalues.extremes", False, _largest(1)),
    Way("eigenvalues", "eigenvalues.extremes", False, _largest(EIGENVALUES)),
    Way("density", "lanczos.quadrature", False, _density),
    Way("dense", "operators.hessian, dense", True, _dense),
    Way("trace", "sample_grams.trace_gauss_newton", True, _exact_trace(trace_gauss_newton)),
    Way("trace", "sample_grams.trace_hessian", True, _exact_trace(trace_hessian)),
    Way("gram", "fisher_gram.gram", True, _network_gram),
)
