"""What measurements refuse by name: what is no size, what does not fit together, and what no memory holds."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from simulate import _memory, data, networks, operators, spectra
from simulate.difference_products import difference_hessian
from simulate.eigenvalues import extremes
from simulate.factors import ekfac, factor_errors, kfac
from simulate.lanczos import Operator, as_operator, follow, quadrature, solve, tridiagonal
from simulate.matrices import ensembles, noise, populations, reduced
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.hessian_variance import quadratic_forms
from simulate.modules.logit_kernel import logit_kernel
from simulate.modules.projected import projected_terms
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.objectives import Objective
from simulate.perceptrons import curvature
from simulate.training.learnable_rates import Classifiers, learns
from simulate.training.scaled_training import descent
from tests.simulate.dense_matrices import rng
from tests.simulate.factors.written_out import built, convolutions, drawn, perceptron, tokens
from tests.simulate.lanczos.test_operator_algebra import Foreign
from tests.simulate.matrices.drawn import block_of
from tests.simulate.models_and_data import case
from tests.simulate.small_perceptrons import problem

BLOCK = block_of(2)
DENSE = np.diag([4.0, 3.0, 2.0, 1.0])
ONE = np.ones(4)

# --- sizes and positive numbers ----------------------------------------------------------------------------------

NO_SIZE = (0, -3, -(10**400), -(10**5000), np.timedelta64(3, "s"), 2.5, np.nan, True, "7", None, 1j, (2,))
ABSURD = (10**10, 10**12, 10**400, 10**5000, np.int64(2**62), np.uint64(2**63))
ALLOCATING: dict[str, Callable[[Any], Any]] = {
    "wigner dim": lambda k: ensembles.wigner(BLOCK, k),
    "rademacher dim": lambda k: ensembles.wigner(BLOCK, k, law="rademacher"),
    "student dim": lambda k: noise.student(BLOCK, k, degrees=5),
    "mlp_weights widths": lambda k: networks.mlp_weights(rng(), (10**5, k, 2)),
    "Mlp widths": lambda k: networks.Mlp((10**5, k, 2), rng=rng()),
    "LeNet5 channels": lambda k: networks.LeNet5(k, rng=rng()),
    "LeNet5 classes": lambda k: networks.LeNet5(3, k, rng=rng()),
}
"""A call for each argument that says how much is allocated."""
SIZES = ALLOCATING | {
    "operator dim": lambda k: Operator(product=torch.clone, dim=k),
    "follow steps": lambda k: follow(DENSE, ONE, steps=k),
    "quadrature steps": lambda k: quadrature(DENSE, ONE[None], k),
    "extremes steps": lambda k: extremes(DENSE, steps=k),
    "trace power": lambda k: spectra.trace(DENSE, power=k),
    "solve steps": lambda k: solve(DENSE, ONE, steps=k),
    "trace probes": lambda k: spectra.trace(DENSE, probes=k),
    "frame columns": lambda k: curvature.haar(rng(), 5, k),
    "sparse frame columns": lambda k: curvature.sparse_frame(rng(), 5, k),
    "sampled draws": lambda k: kfac(perceptron(), kind="sampled", draws=k),
}
POSITIVE: dict[str, Callable[[float], Any]] = {
    "follow tolerance": lambda t: follow(DENSE, ONE, tolerance=t),
    "solve tolerance": lambda t: solve(DENSE, ONE, tolerance=t),
    "extremes tolerance": lambda t: extremes(DENSE, tolerance=t),
    "density width": lambda t: spectra.density(DENSE, x=0.0, width=t),
    "difference tolerance": lambda t: difference_hessian(perceptron(), tolerance=t),
    "log determinant damping": lambda t: kfac(perceptron()).log_determinant(damping=t),
    "inverse damping": lambda t: kfac(perceptron()).inverse(t),
}


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "available", lambda _: 2.0**30)


@pytest.mark.parametrize("name", ALLOCATING)
@pytest.mark.usefixtures("little")
def test_a_size_that_no_memory_holds_is_refused_at_once(name: str) -> None:
    started = time.process_time()
    for size in ABSURD:
        said = rf"{name.split()[-1]}.* must be (small enough for memory|less than 2\*\*63)"
        with pytest.raises(ValueError, match=said):
            ALLOCATING[name](size)
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize("name", SIZES)
def test_what_is_no_size_is_refused_by_name(name: str) -> None:
    for value in NO_SIZE:
        with pytest.raises(ValueError, match=rf"{name.split()[-1]} must be "):
            SIZES[name](value)


@pytest.mark.parametrize("name", POSITIVE)
def test_what_is_not_positive_is_refused_by_name(name: str) -> None:
    for value in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"{name.split()[-1]} must be finite and positive"):
            POSITIVE[name](value)


def test_small_sizes_ask_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that reads from the system would cost more than a small draw."""
    monkeypatch.setattr(_memory, "available", lambda _: pytest.fail("asked"))
    ensembles.wigner(BLOCK, 50)


def test_sizes_of_numpy_are_sizes() -> None:
    assert ensembles.wigner(BLOCK, np.int8(100)).shape == (2, 100, 100)  # 100^2 would overflow there
    assert networks.weight_count(np.array([1000, 1000, 10], dtype=np.int16)) == 1_010_000


# --- what does not fit together ----------------------------------------------------------------------------------


class Elsewhere(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x * self.weight[0])


def of(model: nn.Module, loss: Any = None, **options: Any) -> Objective:
    return Objective(model, (drawn(1, 6, 3), drawn(2, 6, 3)), loss or nn.MSELoss(), **options)


def line() -> nn.Module:
    return built(lambda: nn.Linear(3, 3))


def unused() -> nn.Module:
    model = line()
    model.left = nn.Linear(2, 2).double()
    return model


def cosine(z: Any, y: Any) -> Any:
    return (z - y).cos().mean()


def embedding() -> Objective:
    model = built(lambda: nn.Sequential(nn.Embedding(1025, 4), nn.Flatten()))
    return Objective(model, (torch.zeros(2, 1).long(), drawn(1, 2, 4)), nn.MSELoss())


def dead() -> Objective:
    """Of a layer before it the matrix vanishes."""
    model = built(lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)))
    model[0].bias.data.fill_(-9.0)
    return of(model)


def errors(*factors: Any, of_matrix: Any = perceptron, **options: Any) -> Any:
    return factor_errors(
        operators.gauss_newton(of_matrix()), [make(perceptron()) for make in factors], **options
    )


def reversed_blocks(objective: Objective) -> Any:
    factors = kfac(objective)
    object.__setattr__(factors, "blocks", factors.blocks[::-1])
    return factors


IMAGES = data.Images(np.arange(12.0).reshape(12, 1, 1, 1), np.array([0] * 6 + [1] * 4 + [4] * 2))
SMALL = operators.gauss_newton(perceptron())
VANISHES = "must not vanish where errors are relative to it"
CONVEX = "loss must be convex in the outputs .*, got negative curvature"

REFUSED: list[tuple[Callable[[], Any], str]] = [
    # matrices
    (lambda: as_operator(np.ones((2, 3))), r"matrix must be square, got shape \(2, 3\)"),
    (lambda: as_operator(np.empty((0, 0))), r"matrix must be square, got shape \(0, 0\)"),
    (lambda: as_operator(np.array([[1.0, 2.0], [3.0, 1.0]])), "matrix must be symmetric, .* differ by 1"),
    (lambda: as_operator(np.diag([np.nan, 1])), "matrix must be finite, got NaN"),
    (lambda: as_operator(np.eye(2) * 1j), "matrix must be real, got torch.complex128"),
    (lambda: as_operator(perceptron()), "matrix must be an operator .*, got Objective"),  # pyright: ignore
    (lambda: as_operator(Foreign(np.triu(np.ones((4, 4))))), "matrix must be symmetric, got u'Av"),
    (lambda: as_operator(Foreign(DENSE, noise=1.0)), "fix what they draw"),
    (lambda: as_operator(Foreign(DENSE[:3])), r"matrix must be square, got shape \(3, 4\)"),
    (lambda: as_operator(Foreign(DENSE, torch.float16)), "matrix must be of float64 or float32"),
    (lambda: as_operator(sparse.csr_array(1j * DENSE)), "matrix must be of float64 .*, got complex128"),
    (lambda: Operator(product=torch.clone, dim=2, dtype=torch.float16), "dtype must be torch.float64 or"),
    (lambda: Operator(product=lambda v: v.mT, dim=4) @ ONE, r"operator must map .* \(1, 4\) to \(4, 1\)"),
    (lambda: Operator(product=lambda v: v / 0, dim=4) @ ONE, "operator must return finite products"),
    (
        lambda: as_operator(DENSE) @ np.ones(3),
        r"must be of shape \(4,\) or \(4, k\) on the right, got \(3,\)",
    ),
    (lambda: np.ones((2, 3)) @ as_operator(DENSE), r"must be of shape \(4,\) or \(k, 4\) on the left"),
    (lambda: as_operator(DENSE) * np.inf, "factor must be a finite number, got inf"),
    (lambda: as_operator(DENSE) / 0, "divisor must not be zero, got 0"),
    (lambda: as_operator(DENSE).damped(np.nan), "damping must be a finite number, got nan"),
    (lambda: as_operator(DENSE) + np.eye(5), "operators must be of one shape, .*, got 4 rows .* 5 rows"),
    (lambda: as_operator(DENSE) + np.eye(4, dtype=np.float32), "operators must be of one shape, type"),
    *((lambda n=n: SMALL.block(*n), "such as 0.weight, .*; got") for n in ((), ("0.weigh",), (3,))),
    (lambda: as_operator(DENSE).block("0"), "of an operator that has them; got '0'"),
    # Lanczos and what rests on it
    (lambda: follow(DENSE, 0 * ONE), r"start must be finite and not zero, got a vector of length 0\.0"),
    (lambda: follow(DENSE, np.nan * ONE), "start must be finite"),
    *(
        (lambda s=s: quadrature(DENSE, s, 2), r"vectors must be of shape \(k, 4\), k >= 1, got \(")
        for s in (np.ones((0, 4)), np.ones((2, 5)), 1.0)
    ),
    *(
        (
            lambda s=s: quadrature(DENSE, np.full((2, 4), s), 2),
            "starts must be finite and not zero, got norms",
        )
        for s in (0.0, np.nan)
    ),
    (lambda: quadrature(DENSE, ONE[None], 5), "steps must be at most the dimension, 4, got 5"),
    (lambda: solve(DENSE, np.ones(3)), r"right must be of shape \(4,\) or \(4, k\), got \(3,\)"),
    (lambda: solve(DENSE, np.ones((4, 0))), "right must be of shape"),
    (lambda: solve(DENSE, np.nan * ONE), "right must be finite"),
    (lambda: solve(DENSE, ONE, damping=np.inf), "damping must be a finite number, got inf"),
    (lambda: solve(DENSE, ONE, steps=1), "steps must be at least 2, .*, got 1"),
    (lambda: solve(DENSE, ONE, preconditioner=np.eye(3)), r"preconditioner must be of shape \(4, 4\)"),
    (lambda: solve(DENSE, ONE, preconditioner=-DENSE), "preconditioner must be positive definite"),
    *(
        (lambda n=n: extremes(DENSE, largest=n[0], smallest=n[1]), rf"must add up to 1\.\.4, got {sum(n)}")
        for n in ((0, 0), (3, 2))
    ),
    *((lambda n=n: extremes(DENSE, largest=n), "largest must be a positive integer") for n in (-1, 1.0)),
    (lambda: extremes(DENSE, smallest=-1), "smallest must be a positive integer, got -1"),
    (lambda: extremes(DENSE, largest=3, steps=2), "steps must be at least one for each of 3 .*, got 2"),
    (lambda: extremes(DENSE, largest=3, kept=5), "kept must be at least 3 more than the 3 .*, got 5"),
    (lambda: extremes(DENSE, kept=0), "kept must be a positive integer, got 0"),
    (lambda: spectra.trace(1e200 * DENSE, power=2), "the estimate does not overflow, got inf"),
    *(
        (lambda f=f: f(DENSE, probes=1), "probes must be at least 2, which give an error, got 1")
        for f in (spectra.trace, spectra.frobenius_norm, spectra.density, spectra.xtrace)
    ),
    (lambda: spectra.xtrace(DENSE, probes=5), "probes must be at most the order of the matrix, 4, got 5"),
    (lambda: spectra.xtrace(np.eye(30) * 1e307, probes=3), "the estimate does not overflow"),
    (lambda: spectra.density(DENSE, steps=5), "steps must be at most the dimension, 4, got 5"),
    (lambda: spectra.density(DENSE, width=[0.1, 0.2]), "width must be one number"),  # pyright: ignore
    (lambda: spectra.density(DENSE, x=[0.0, np.inf]), "x must be finite"),
    (lambda: spectra.distribution(torch.eye(3), (1.0,)), r"matrices must be of shape \(n, dim, dim\)"),
    (lambda: spectra.distribution(torch.eye(3)[None], 1.0), "x must be a list of numbers"),  # pyright: ignore
    (lambda: spectra.distribution(torch.eye(3)[None], (0.3, np.nan)), "x must be a list of numbers"),
    # curvature of networks
    *(
        (
            lambda name=name: operators.fisher(case("absolute error").objective(), likelihood=name),
            "likelihood must be one of categorical, bernoulli, gaussian",
        )
        for name in ("poisson", None)
    ),
    (lambda: difference_hessian(of(line(), training=True)), "objective must be in evaluation mode"),
    (lambda: kfac(of(Elsewhere(3, 3).double())), "model must act by its layers alone, on every sample apart"),
    (lambda: kfac(of(nn.Sequential(line(), nn.Dropout(0.5)), training=True)), "drawing nothing, for factors"),
    (lambda: kfac(of(unused())), "parameters must have a part in the outputs, got 'left.weight' with none"),
    (lambda: kfac(embedding()), "at most 4096 numbers, got 4100 in '0.weight'; leave them out"),
    (lambda: kfac(of(line(), cosine)), CONVEX),
    (lambda: kfac(of(line().float(), lambda z, y: 1e-12 * cosine(z, y))), CONVEX),
    (lambda: kfac(perceptron(), kind="exact"), "kind must be one of gauss-newton, sampled, empirical"),  # pyright: ignore
    (lambda: kfac(perceptron(), sharing="both"), "sharing must be one of expand, reduce"),  # pyright: ignore
    (lambda: kfac(perceptron(), kind="sampled", seed=0.5), "seed must be an integer >= 0 or"),  # pyright: ignore
    (lambda: kfac(tokens(), kind="sampled"), "likelihood must be one of .* of another kind, got None"),
    (lambda: ekfac(convolutions(), factors=kfac(perceptron())), "factors must be of the parameters of the"),
    (lambda: kfac(perceptron()).power(-1.0), "damping must be finite and positive for the exponent -1.0"),
    (lambda: kfac(perceptron()).power(np.inf), "exponent must be finite, got inf"),
    (lambda: kfac(perceptron()).power(2.0, damping=-1.0), "damping must be finite and positive"),
    (lambda: errors(kfac, probes=1), "probes must be at least 2"),
    (lambda: errors(kfac, rows=-1), "rows must be a positive integer, got -1"),
    (lambda: errors(kfac, of_matrix=convolutions), "matrix must be of the parameters of the factors"),
    (lambda: errors(), "factors must be of at least one kind, got none"),
    (lambda: errors(kfac, reversed_blocks), "factors must all be of the same layers"),
    (lambda: factor_errors(operators.gauss_newton(dead()), kfac(dead())), VANISHES),
    (lambda: factor_errors(0.0 * SMALL, kfac(perceptron())), VANISHES),
    # draws, networks and data
    (
        lambda: ensembles.wigner(BLOCK, 3, law="cauchy"),
        "law must be one of gaussian, rademacher, got 'cauchy'",
    ),
    *(
        (
            lambda p=p: ensembles.gauss_newton_of_logits(torch.zeros(2, 4, 3, 5), torch.tensor(p)),
            "p must be probabilities that sum to 1",
        )
        for p in ((0.5, 0.5, 0.1), (1.5, -0.5, 0.0))
    ),
    *(
        (lambda d=d: noise.student(BLOCK, 3, degrees=d), "degrees must be finite and more than 2")
        for d in (2, np.nan, np.inf)
    ),
    *(
        (lambda k=k: noise.sparse(BLOCK, 3, per_row=k), "per_row must be positive and at most dim")
        for k in (0, 4)
    ),
    *(
        (lambda s=s: populations.nested_means(BLOCK, 2, s), "sizes must be growing positive integers")
        for s in ((0,), (3, 3))
    ),
    *(
        (
            lambda s=s: reduced.wigner_outliers(BLOCK, 5, spikes=s),
            r"spikes must be different, and at least 1\.4",
        )
        for s in ([1.5, 1.5], [2.0, 1.3], [2.0, np.nan])
    ),
    (
        lambda: reduced.signed_projections_top(BLOCK, 6, samples=3, rank=2, spike=1.0),
        "dim must be more than samples times rank, got 6 for 6 projections",
    ),
    (lambda: networks.mlp_logits([], torch.ones(1, 2), "swish"), "activation must be one of relu, .*'swish'"),
    (lambda: networks.weight_count((5,)), r"widths must be at least two positive integers, got \(5,\)"),
    (lambda: networks.mlp_weights(rng(), (5, 2), gain="xavier"), "gain must be one of kaiming, lecun"),  # pyright: ignore
    (lambda: networks.LeNet5(rng=rng(), pooling="mean"), "pooling must be one of max, average"),  # pyright: ignore
    (lambda: networks.Vgg(rng=rng(), stages=((3,), (4,)), side=6), "side must be a multiple of 4, got 6"),
    (lambda: data.digits((2, 8, 8)), r"size must be one of \(1, 28, 28\), .*got \(2, 8, 8\)"),
    *(
        (
            lambda c=c, b=b: data.sample(IMAGES, rng(), c, balanced=b),
            said,
        )
        for c, b, said in (
            (0, False, "count must be between 1 and the 12 images there are, got 0"),
            (13, True, "count must be between 1 and the 12 images"),
            (7, True, "count must be a multiple of the 3 classes where balanced, got 7"),
            (9, True, "count must be at most 6 where balanced, for class 4 has only 2 images, got 9"),
        )
    ),
]


@pytest.mark.parametrize(("call", "said"), REFUSED)
def test_what_does_not_fit_is_refused(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


# --- what no memory holds ----------------------------------------------------------------------------------------

NET = problem(2)
X, LABELS = torch.from_numpy(NET.x), torch.from_numpy(NET.labels)
FRAME = torch.ones(NET.size, 2, dtype=torch.float64)
MODEL = networks.Mlp((6, 7, 5), rng=rng())
VAST = Operator(product=torch.clone, dim=60)
RUNS = Classifiers(tuple(w[None] for w in NET.weights), X[None], LABELS[None])


def net() -> Objective:
    return Objective(MODEL, (X, LABELS), nn.CrossEntropyLoss())


BEYOND: list[tuple[Callable[[], Any], str]] = [
    (lambda: empirical_kernel(MODEL, X), "the inner products of 11 samples and 5 outputs"),
    (lambda: empirical_kernel(MODEL, X, traced=True), "11 samples"),
    (lambda: logit_kernel(MODEL, X), "the inner products of 11 samples"),
    (lambda: quadratic_forms(net(), FRAME), "the derivatives of one sample"),
    (lambda: trace_gauss_newton(net()), "the derivatives of one sample"),
    (lambda: projected_terms(net(), FRAME), "2 directions, apart by parameters"),
    (lambda: operators.hessian(net()) @ FRAME, "the derivatives of .* smaller chunk"),
    (lambda: operators.hessian(net()).dense(), "use products"),
    (lambda: kfac(net()), "the factors of all layers"),
    (lambda: learns(RUNS, torch.ones(1), target=1.0, steps=1), "1 runs of 11 samples"),
    (lambda: descent(list(NET.weights), [(X, LABELS)], rate=1.0, steps=1), "gradients and moves of 77"),
    (lambda: tridiagonal(VAST, torch.ones(1, 60).double(), 9), "use fewer steps or starts"),
    (lambda: solve(DENSE, np.ones((4, 2))), "16 vectors need .* fewer columns"),
    *(
        (lambda f=f: f(VAST, probes=9), "vectors of 60 numbers")
        for f in (spectra.trace, spectra.frobenius_norm, spectra.xtrace, spectra.density)
    ),
    (lambda: extremes(VAST), "24 vectors of 60 numbers, and the result, need"),
    (lambda: extremes(VAST, kept=4), " 12 vectors of 60 numbers, and the result, need"),
]


@pytest.mark.parametrize(("call", "told"), BEYOND)
def test_what_no_memory_holds_is_refused(
    call: Callable[[], Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_memory, "available", lambda _: 1.0)
    monkeypatch.setattr(_memory, "_UNASKED", 0)
    with pytest.raises(ValueError, match=rf"must be small enough for memory.*{told}"):
        call()


@pytest.mark.usefixtures("little")
def test_grids_that_no_memory_holds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"x must be small .* 3 densities at 10000000 points from 3 nodes"):
        spectra.density(DENSE, x=np.broadcast_to(0.0, 10**7), width=0.2, steps=3, probes=3)
