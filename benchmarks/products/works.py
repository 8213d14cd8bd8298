"""Timed works: networks, works with their results in float64, and how this library does them.

The expected results come from plain derivatives in float64, which share no code with the timed functions: products by
differentiating twice, eigenvalues by ARPACK, traces and Gram matrices layer by layer.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import linalg
from torch import Tensor, nn

from simulate import data
from simulate.eigenvalues import extremes
from simulate.factors import kfac
from simulate.lanczos.gauss import recurrence
from simulate.modules.diagonals import gauss_newton_diagonal
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.projected import projected
from simulate.modules.sample_grams import trace_gauss_newton, trace_hessian
from simulate.networks import LENET_300_100, LeNet5, Mlp, Vgg
from simulate.objectives import Objective
from simulate.objectives.restoring import preserve_state, seed_generators
from simulate.operators import gauss_newton, hessian
from simulate.perceptrons.curvature import haar
from verify.practice.measure import measure

CLASSES = 10


class _FirstOutput(nn.Module):
    """First output of a network, (N, 1)."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)[:, :1]


class BenchNetwork(NamedTuple):
    """Network: its name in tables, the shape of its inputs, and a function that builds it.

    A pass with `samples` takes some hundredths of a second on one core. A bias-free ReLU perceptron on flat digits has
    `widths`.
    """

    title: str
    shape: tuple[int, ...]
    samples: int
    build: Callable[[np.random.Generator], nn.Module]
    widths: tuple[int, ...] = ()


def bench_perceptron(widths: tuple[int, ...], title: str = "perceptron", samples: int = 1000) -> BenchNetwork:
    """Return a perceptron."""
    return BenchNetwork(title, (widths[0],), samples, lambda rng: Mlp(widths, rng=rng), widths)


def _vgg(rng: np.random.Generator) -> nn.Module:
    return Vgg(rng=rng, stages=((16, 16), (32, 32), (64,)), head=(64,))


def _normed(channels: int, out: int, side: int = 3, stride: int = 1) -> nn.Module:
    convolution = nn.Conv2d(channels, out, side, stride, side // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(out))


class _Residual(nn.Module):
    """Two normalised convolutions with a shortcut."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(_normed(channels, out, stride=stride), nn.ReLU(), _normed(out, out))
        self.shortcut = nn.Identity() if stride == 1 else _normed(channels, out, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return (self.body(x) + self.shortcut(x)).relu()


def _residual(_: np.random.Generator) -> nn.Module:
    blocks = _Residual(16, 16, 1), _Residual(16, 32, 2), _Residual(32, 64, 2)
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES)
    return nn.Sequential(_normed(3, 16), nn.ReLU(), *blocks, *head)


class _Attention(nn.Module):
    """Attention and a perceptron, each with a shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.before, self.after = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.body = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        split = self.mixed(self.before(x)).view(n, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        # by its formula: the fused kernels have no second derivative, which other libraries need
        seen = (query @ key.mT / (width // self.heads) ** 0.5).softmax(-1) @ value
        x = x + self.out(seen.transpose(1, 2).reshape(n, length, width))
        return x + self.body(self.after(x))


class _Transformer(nn.Module):
    """Blocks of attention over the rows of an image."""

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        self.embed, self.head = nn.Linear(28, width), nn.Linear(width, CLASSES)
        self.blocks = nn.Sequential(*(_Attention(width, 4) for _ in range(blocks)))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.embed(x[:, 0])).mean(1))


NETWORKS: dict[str, BenchNetwork] = {
    "lenet-300-100": bench_perceptron(LENET_300_100, "LeNet-300-100"),
    "lenet-5": BenchNetwork("LeNet-5", (3, 32, 32), 200, lambda rng: LeNet5(rng=rng)),
    "vgg": BenchNetwork("VGG-like, five convolutions", (3, 32, 32), 64, _vgg),
    "residual": BenchNetwork(
        "residual with batch normalisation, eight convolutions", (3, 32, 32), 64, _residual
    ),
    "attention": BenchNetwork("two blocks of attention", (1, 28, 28), 32, lambda _: _Transformer(64, 2)),
    "large": BenchNetwork("attention, 8.3e6 parameters", (1, 28, 28), 8, lambda _: _Transformer(360, 8)),
    "tiny": bench_perceptron((16, 4, 10), "16-4-10", samples=100),
    "outputs": bench_perceptron((784, 100, 2048), "784-100-2048", samples=200),
}
"""Networks by their name on the command line."""


# --- what is done with them

DIRECTIONS = 50
COLUMNS = 4
"""Number of columns of the projected matrices that are compared."""

BLOCK = 20
"""Number of columns that H multiplies at once."""

TOLERANCE = 1e-3
"""Relative error allowed in the largest eigenvalue."""

EIGENVALUES = 10

STEPS, PROBES = 30, 3
"""Products with each probe, and number of probes, for a density."""

FEW = 1000
"""Most parameters of a matrix that is computed whole."""

_EXACT = 1e-6
"""Residual of an eigenvalue in float64, whose error is about the square of it."""

Call = Callable[[], Tensor | Sequence[Tensor]]
"""Function without arguments that returns the result, or one part for each parameter."""


class Case:
    """A network with cross-entropy on digits, in float32 and in evaluation mode, and a direction (dim,).

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
        images = torch.tensor(drawn.images, dtype=torch.float32, device=device)
        self.x, self.labels = images.flatten(1) if flat else images, torch.tensor(drawn.labels, device=device)
        self.loss = nn.CrossEntropyLoss()
        with preserve_state(None, training=False):  # layers of torch draw from its own generator
            seed_generators(0)
            self.net = network.build(rng).to(device=device, dtype=torch.float32).eval()
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

    def like_parameters(self, vector: Tensor) -> list[Tensor]:
        """Return a vector in parts with the shapes of the parameters."""
        parts = vector.split([p.numel() for p in self.parameters])
        return [part.view_as(p) for part, p in zip(parts, self.parameters, strict=True)]

    @property
    def batch(self) -> tuple[Tensor, Tensor]:
        """Inputs and labels."""
        return self.x, self.labels

    def double(self) -> Case:
        """Return the case in float64."""
        found = copy.copy(self)
        found.net, found.x = copy.deepcopy(self.net).double(), self.x.double()
        found.parameters, found.vector = list(found.net.parameters()), self.vector.double()
        return found

    def both_passes(self) -> Tensor:
        """Compute loss and gradient of all samples, the unit of all times."""
        loss = self.loss(self.net(self.x), self.labels)
        return torch.autograd.grad(loss, self.parameters)[0]

    @cached_property
    def objective(self) -> Objective:
        """Loss as an `Objective`."""
        return self.new_objective()

    def new_objective(self) -> Objective:
        """Return a new `Objective`, which keeps nothing yet."""
        return Objective(self.net, self.batch, self.loss)


class Way(NamedTuple):
    """Way of a library to do a work: its function, and a function that prepares the call."""

    work: str
    method: str
    prepare: Callable[[Case], Call]


# --- ours -------------------------------------------------------------------------------------------------------


def times(matrix: Any, vector: Tensor, columns: int | None = None) -> Call:
    """Return a call that multiplies a vector, or several and keeps the first columns."""
    return lambda: (matrix @ vector)[..., slice(columns)]


def _projected(case: Case) -> Call:
    return lambda: torch.stack(tuple(projected(case.objective, case.frame)))[..., :COLUMNS]


def _largest(count: int) -> Callable[[Case], Call]:
    def prepared(case: Case) -> Call:
        matrix, rng = hessian(case.objective), np.random.default_rng(1)
        return lambda: torch.tensor(extremes(matrix, rng, largest=count, tolerance=TOLERANCE).values)

    return prepared


def _density(case: Case) -> Call:
    matrix, starts = hessian(case.objective), np.random.default_rng(1)
    return lambda: torch.tensor(
        recurrence(matrix, starts.standard_normal((PROBES, matrix.dim)), STEPS).quadrature().nodes.max()
    )


def _gram(case: Case) -> Call:
    first = _FirstOutput(case.net)
    return lambda: empirical_kernel(first, case.x, traced=True)


def _measured(objective: Objective) -> Tensor:
    return torch.tensor(measure(objective).hessian.top[0].value)


OURS = (
    Way("hessian", "operators.hessian", lambda case: times(hessian(case.objective), case.vector)),
    Way(
        "gauss-newton",
        "operators.gauss_newton",
        lambda case: times(gauss_newton(case.objective), case.vector),
    ),
    Way("columns", "operators.hessian", lambda case: times(hessian(case.objective), case.block, COLUMNS)),
    Way("projected", "projected.projected", _projected),
    Way("eigenvalue", "eigenvalues.extremes", _largest(1)),
    Way("eigenvalues", "eigenvalues.extremes", _largest(EIGENVALUES)),
    Way("density", "the recurrence of spectra.density", _density),
    Way("first", "operators.hessian", lambda case: lambda: hessian(case.new_objective()) @ case.vector),
    Way("dense", "operators.hessian", lambda case: hessian(case.objective).dense),
    Way("dense anew", "operators.hessian", lambda case: lambda: hessian(case.new_objective()).dense()),
    Way("diagonal", "gauss_newton_diagonal", lambda case: lambda: gauss_newton_diagonal(case.objective)),
    Way("kfac", "factors.kfac", lambda case: lambda: kfac(case.objective, kind="empirical") @ case.vector),
    Way("sampled", "factors.kfac", lambda case: lambda: kfac(case.objective, kind="sampled") @ case.vector),
    Way(
        "trace",
        "sample_grams.trace_gauss_newton",
        lambda case: lambda: torch.tensor(trace_gauss_newton(case.objective)),
    ),
    Way(
        "trace",
        "sample_grams.trace_hessian",
        lambda case: lambda: torch.tensor(trace_hessian(case.objective)),
    ),
    Way("gram", "empirical_kernel", _gram),
    Way("measure", "measure", lambda case: lambda: _measured(case.objective)),
)


# --- by plain torch: in float64 these are the truth ----------------------------------------------------------------


def hessian_products(case: Case) -> Callable[[Tensor], Tensor]:
    """Return products with the Hessian by the graph of the gradient, built once and differentiated for each vector."""
    loss = case.loss(case.net(case.x), case.labels)
    gradient = torch.autograd.grad(loss, case.parameters, create_graph=True)

    def product(vector: Tensor) -> Tensor:
        parts = case.like_parameters(vector)
        return _flat(torch.autograd.grad(gradient, case.parameters, parts, retain_graph=True))

    return product


def gauss_newton_products(case: Case) -> Callable[[Tensor], Tensor]:
    """Return products with the Gauss-Newton matrix by two graphs, built once."""
    outputs = case.net(case.x)
    # The transposed product is linear in `dual`: its derivative by `dual` is the product itself.
    p, dual = outputs.softmax(1).detach(), torch.zeros_like(outputs, requires_grad=True)
    pulled = torch.autograd.grad(outputs, case.parameters, dual, create_graph=True)

    def product(vector: Tensor) -> Tensor:
        (tangent,) = torch.autograd.grad(pulled, dual, case.like_parameters(vector), retain_graph=True)
        bent = p * (tangent - (p * tangent).sum(1, keepdim=True)) / len(p)
        return _flat(torch.autograd.grad(outputs, case.parameters, bent, retain_graph=True))

    return product


def _few_columns(case: Case) -> Tensor:
    """Return the first columns of R'GR and R'HtR."""
    frame, both = case.frame.double(), (gauss_newton_products(case), hessian_products(case))
    g, h = (frame.T @ _products(multiply, frame[:, :COLUMNS]) for multiply in both)
    return torch.stack([g, h - g])


def _products(multiply: Callable[[Tensor], Tensor], columns: Tensor) -> Tensor:
    return torch.stack([multiply(column) for column in columns.T.double()], dim=1)


def _product(case: Case) -> Tensor:
    return hessian_products(case)(case.vector)


def _dense(case: Case) -> Tensor:
    return _products(hessian_products(case), torch.eye(len(case.vector), device=case.device))


def _top(case: Case, count: int = 1) -> Tensor:
    return largest_of(hessian_products(case), count, case.vector, _EXACT)


def largest_of(
    product: Callable[[Tensor], Tensor],
    count: int,
    start: Tensor,
    tolerance: float,
    vectors: int | None = None,
) -> Tensor:
    """Return the largest eigenvalues by ARPACK, in falling order."""
    library: Any = linalg

    def multiply(vector: Any) -> Any:
        return product(torch.as_tensor(vector.ravel()).to(start)).cpu().numpy()

    first = start.cpu().numpy()
    matrix = library.LinearOperator((len(first),) * 2, matvec=multiply, dtype=first.dtype)
    found = library.eigsh(matrix, count, which="LA", tol=tolerance, v0=first, ncv=vectors)[0]
    return torch.as_tensor(np.sort(found)[::-1].copy())


@torch.no_grad()
def diagonal(case: Case) -> Tensor:
    """Return the diagonal of G and H, which agree since the logits are linear in every single weight."""
    total = torch.zeros_like(case.vector)
    for slope in _roots(case):
        layers = _layers(case.parameters, case.x, slope)
        total += _flat([delta.square().mT @ below.square() for below, delta in layers][::-1])
    return total / len(case.x)


def _roots(case: Case) -> Iterator[Tensor]:
    """Yield columns (N, m) of a root of the curvature of the loss by the logits, one for each class."""
    p = case.net(case.x).softmax(1)
    for one, share in zip(torch.eye(p.shape[1]).to(p), p.T, strict=True):
        # the curvature is the sum of p_k (e_k - p)(e_k - p)'
        yield (one - p) * share[:, None].sqrt()


def kfac_product(case: Case, *, sampled: bool = False) -> Tensor:
    """Return the product of the vector with Kronecker factors, of the labels or of labels drawn from the outputs."""
    p = case.net(case.x).softmax(1)
    labels = torch.multinomial(p, 1)[:, 0] if sampled else case.labels
    return factors_product(case, [p - nn.functional.one_hot(labels, p.shape[1])])


@torch.no_grad()
def factors_product(case: Case, slopes: Iterable[Tensor]) -> Tensor:
    """Return the product of the vector with the factors of these derivatives (N, m) by the outputs, added up."""
    total, vectors = torch.zeros_like(case.vector), case.like_parameters(case.vector)[::-1]
    for slope in slopes:
        layers = zip(vectors, _layers(case.parameters, case.x, slope), strict=True)
        total += _flat([(d.mT @ d) @ v @ (below.mT @ below) for v, (below, d) in layers][::-1])
    return total / len(case.x) ** 2


def _gram_matrix(case: Case) -> Tensor:
    outputs = (case.net(one[None])[0, 0] for one in case.x)
    rows = torch.stack([_flat(torch.autograd.grad(output, case.parameters)) for output in outputs])
    return rows @ rows.T


def _layers(weights: Sequence[Tensor], x: Tensor, delta: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the input of each layer from the top, and the derivative by its output, from that by the outputs."""
    signals = [x]
    for weight in weights[:-1]:
        signals.append((signals[-1] @ weight.mT).relu())
    for weight, below in zip(reversed(weights), reversed(signals), strict=True):
        yield below, delta
        delta = (delta @ weight) * (below > 0)


def _flat(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([part.reshape(-1) for part in parts])


class Work(NamedTuple):
    """Work to time: its title, its value in float64, and the most weights of a perceptron that it needs."""

    title: str
    truth: Callable[[Case], Tensor]
    most: float = 0

    def suits(self, network: BenchNetwork) -> bool:
        """Whether it can be computed for this network."""
        return not self.most or 0 < sum(a * b for a, b in pairwise(network.widths)) <= self.most


WORKS = {
    "hessian": Work("H times a vector", _product),
    "gauss-newton": Work("G times a vector", lambda case: gauss_newton_products(case)(case.vector)),
    "columns": Work(
        f"H times {BLOCK} vectors", lambda case: _products(hessian_products(case), case.block[:, :COLUMNS])
    ),
    "projected": Work(f"G and H-term in {DIRECTIONS} directions", _few_columns),
    "eigenvalue": Work(f"largest eigenvalue of H to {TOLERANCE:g}", _top),
    "eigenvalues": Work(
        f"{EIGENVALUES} largest eigenvalues of H to {TOLERANCE:g}",
        lambda case: _top(case, EIGENVALUES),
    ),
    "density": Work(
        f"density of H, {PROBES} probes of {STEPS} products; its upper end",
        _top,
    ),
    "first": Work("new Objective, H times a vector", _product),
    "dense": Work("all of H", _dense, FEW),
    "dense anew": Work("new Objective, all of H", _dense, FEW),
    "diagonal": Work("diagonal of G", diagonal, math.inf),
    "kfac": Work("empirical KFAC, times a vector", kfac_product, math.inf),
    # labels that were drawn: the error is that of one draw
    "sampled": Work("sampled KFAC, times a vector", lambda c: factors_product(c, _roots(c)), math.inf),
    "trace": Work("trace of G, which is that of H", lambda case: diagonal(case).sum(), math.inf),
    "gram": Work("Gram matrix of one output", _gram_matrix),
    "measure": Work("all of measure; its largest eigenvalue", _top),
}
"""Works by their name on the command line."""
