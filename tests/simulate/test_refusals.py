"""Refusals of measurements, naming the argument: invalid sizes, mismatched shapes, and sizes beyond memory."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from simulate import _memory, data, networks, operators, spectra
from simulate.eigenvalues import extremes
from simulate.factors import ekfac, factor_errors, kfac
from simulate.lanczos import Operator, as_operator, quadrature, solve, tridiagonal, warm_start
from simulate.matrices import ensembles, noise, populations, reduced
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.hessian_variance import quadratic_forms, total_variance, variance_along
from simulate.modules.logit_kernel import logit_kernel
from simulate.modules.projected import projected
from simulate.modules.sample_directions import sample_directions
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.monte_carlo import Point, open_executor, run_block
from simulate.objectives import Objective
from simulate.perceptrons import curvature, full_space, per_sample
from simulate.perceptrons.curvature import ProjectedMlp
from simulate.perceptrons.layer_blocks import layer_block
from simulate.perceptrons.sample_products import PerceptronSamples
from simulate.perceptrons.trained import perceptron_objective
from simulate.training import edges, flows, grids, optimisers, wide_training
from simulate.training.learnable_rates import Classifiers, largest_rates, learns
from simulate.training.lyapunov import lyapunov_exponents
from simulate.training.noisy_descent import noisy_descent
from simulate.training.scaled_training import descent
from simulate.training.stacks import Perceptrons, perceptrons_at_start
from simulate.training.trial_training import CommonBatches
from simulate.wide.signals import wide_network
from tests.refusals import refusal
from tests.simulate.dense_matrices import rng
from tests.simulate.factors.written_out import built, convolutions, drawn, perceptron, tokens
from tests.simulate.lanczos.test_operator_algebra import Foreign
from tests.simulate.matrices.drawn import block_of
from tests.simulate.models_and_data import case
from tests.simulate.small_perceptrons import problem


class Elsewhere(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x * self.weight[0])


def of(model: nn.Module, loss: Any = None, **options: Any) -> Objective:
    return Objective(model, (drawn(1, 6, 3), drawn(2, 6, 3)), loss or nn.MSELoss(), **options)


def line() -> nn.Module:
    return built(lambda: nn.Linear(3, 3))


def line_objective(samples: int) -> Objective:
    return Objective(line(), (drawn(1, samples, 3), drawn(2, samples, 3)), nn.MSELoss())


def cosine(z: Any, y: Any) -> Any:
    return (z - y).cos().mean()


UNUSED = line()
UNUSED.left = nn.Linear(2, 2).double()
EMBEDDING = built(lambda: nn.Sequential(nn.Embedding(1025, 4), nn.Flatten()))
LARGE = Objective(EMBEDDING, (torch.zeros(2, 1).long(), drawn(1, 2, 4)), nn.MSELoss())
# of the layer before it the matrix vanishes
DEAD = built(lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)))
DEAD.get_parameter("0.bias").data.fill_(-9.0)
SMALL, FACTORS = operators.gauss_newton(perceptron()), kfac(perceptron())
TURNED = kfac(perceptron())
object.__setattr__(TURNED, "blocks", TURNED.blocks[::-1])

BLOCK, DENSE, ONE = block_of(2), np.diag([4.0, 3.0, 2.0, 1.0]), np.ones(4)
IMAGES = data.Images(np.arange(12.0), np.array([0] * 6 + [1] * 4 + [4] * 2))
LOGITS = torch.zeros(2, 4, 3, 5)
NET = problem(2)
X, LABELS = torch.from_numpy(NET.x), torch.from_numpy(NET.labels)
RUNS = Classifiers(tuple(w[None] for w in NET.weights), X[None], LABELS[None])
FLAT = {"widths": (4, 3), "theta": torch.zeros(15).double(), "x": np.ones((2, 4)), "labels": [0, 1]}
ONES = torch.ones(2, dtype=torch.float64)
FULL = optimisers.population([np.diag([1.0, 2.0, k]) for k in (1.0, 2.0, 3.0, 4.0, 5.0)])
ALONG = ProjectedMlp(*NET, NET.frame())
STACKED = {
    "stack": Perceptrons("tanh", "squared error"),
    "parameters": perceptrons_at_start([rng(1), rng(2)], (3, 4, 1), dtype=torch.float64),
    "inputs": torch.ones(2, 5, 3).double(),
    "targets": torch.ones(2, 5, 1).double(),
}
SETS = grids.TrainingSets(STACKED["inputs"][0], STACKED["targets"][0])
GRID = {
    "stack": STACKED["stack"],
    "parameters": STACKED["parameters"],
    "samples": SETS,
    "batches": [CommonBatches(samples=5, size=2)] * 2,
}
WIDE = {
    "network": wide_network(BLOCK, widths=(4, 6, 2), samples=4, weight_variance=1.9, bias_variance=0.3),
    "activation": "relu",
    "targets": torch.zeros(2, 4, 2).double(),
    "steps": 1,
}
NO_SIZE = (0, -3, -(10**400), -(10**5000), np.timedelta64(3, "s"), 2.5, np.nan, True, "7", 1j, (2,))
NOT_POSITIVE = (0.0, -1.0, np.nan, np.inf)
PROBES = {"probes": (1, *NO_SIZE)}

Wrong = dict[str, Sequence[Any]]
REFUSED = [
    # matrices and what rests on their products
    (
        as_operator,
        {},
        {
            "matrix": [
                np.ones((2, 3)), np.empty((0, 0)), [[1.0, 2.0], [3.0, 1.0]], np.diag([np.nan, 1]), 1j * DENSE, "x",
                perceptron(), Foreign(np.triu(np.ones((4, 4)))), Foreign(DENSE, noise=1.0), Foreign(DENSE[:3]),
                Foreign(DENSE, torch.float16), sparse.csr_array(1j * DENSE),
            ]
        },
    ),
    (Operator, {"product": torch.clone, "dim": 4}, {"dtype": [torch.float16], "dim": NO_SIZE}),
    (lambda operator: Operator(product=operator, dim=4) @ ONE, {}, {"operator": [lambda v: v.mT, lambda v: v / 0]}),
    (lambda vectors: as_operator(DENSE) @ vectors, {}, {"vectors": [np.ones(3), np.ones((4, 0)), np.ones((1, 4, 1))]}),
    (lambda vectors: vectors @ as_operator(DENSE), {}, {"vectors": [np.ones((2, 3))]}),
    (lambda factor: as_operator(DENSE) * factor, {}, {"factor": [np.inf]}),
    (lambda divisor: as_operator(DENSE) / divisor, {}, {"divisor": [0, np.nan]}),
    (as_operator(DENSE).damped, {}, {"damping": [np.nan]}),
    (lambda operators: as_operator(DENSE) + operators, {}, {"operators": [np.eye(5), np.eye(4, dtype=np.float32)]}),
    (lambda names: SMALL.block(*names), {}, {"names": [(), ("0.weigh",), (3,)]}),
    (lambda names: as_operator(DENSE).block(names), {}, {"names": ["0"]}),
    (
        warm_start,
        {"matrix": DENSE, "start": ONE},
        {"start": [0 * ONE, np.nan * ONE], "steps": NO_SIZE, "tolerance": NOT_POSITIVE},
    ),
    (
        quadrature,
        {"matrix": DENSE, "starts": [ONE], "steps": 2},
        {
            "starts": [np.zeros((2, 4)), np.full((2, 4), np.nan)],
            "starts|vectors": [ONE, np.ones((0, 4)), np.ones((2, 5))],
            "steps": (5, *NO_SIZE),
        },
    ),
    (
        solve,
        {"matrix": DENSE, "right": ONE},
        {
            "right": [np.ones(3), np.ones((4, 0)), np.nan * ONE],
            "damping": [np.inf],
            "steps": (1, *NO_SIZE),
            "tolerance": NOT_POSITIVE,
            "preconditioner": [np.eye(3), -DENSE],
        },
    ),
    (
        extremes,
        {"matrix": DENSE, "largest": 2},
        {
            "largest": (5, *NO_SIZE),
            "smallest": (3, *NO_SIZE[1:]),
            "steps": (1, *NO_SIZE),
            "kept": (4, *NO_SIZE),
            "tolerance": NOT_POSITIVE,
        },
    ),
    (spectra.trace, {"matrix": DENSE}, PROBES | {"power": NO_SIZE}),
    (spectra.trace, {"power": 2}, {"matrix": [1e200 * DENSE]}),
    (spectra.frobenius_norm, {"matrix": DENSE}, PROBES),
    (
        spectra.density,
        {"matrix": DENSE},
        PROBES | {"steps": (5, *NO_SIZE), "width": (*NOT_POSITIVE, [0.1, 0.2]), "x": [[0.0, np.inf]]},
    ),
    (
        spectra.distribution,
        {"matrices": torch.eye(3)[None], "x": (1.0,)},
        {"matrices": [torch.eye(3), torch.ones(1, 2, 3)], "x": [1.0, (0.3, np.nan)]},
    ),
    # curvature of networks
    (
        operators.fisher,
        {"objective": case("absolute error").objective()},
        {"likelihood": ["poisson", None]},
    ),
    (
        kfac,
        {"objective": perceptron(), "kind": "sampled"},
        {
            "objective|model": [
                of(Elsewhere(3, 3).double()),
                of(nn.Sequential(line(), nn.Dropout(0.5)), training=True),
            ],
            "objective|parameters": [of(UNUSED), LARGE],
            "objective|likelihood": [tokens()],
            "kind": ["exact"],
            "sharing": ["both"],
            "seed": [0.5],
            "draws": NO_SIZE,
        },
    ),
    (
        kfac,
        {},
        {"objective|loss": [of(line(), cosine), of(line().float(), lambda z, y: 1e-12 * cosine(z, y))]},
    ),
    (ekfac, {"objective": convolutions()}, {"factors": [FACTORS]}),
    (
        sample_directions,
        {"objective": case("squared error").objective(), "vectors": np.eye(43)[:, :2], "seed": 0},
        {"vectors": [np.ones((3, 1)), np.ones((43, 2))], "probes": NO_SIZE, "heavy": [-1]},
    ),
    (FACTORS.inverse, {}, {"damping": NOT_POSITIVE}),
    (FACTORS.log_determinant, {}, {"damping": NOT_POSITIVE}),
    (FACTORS.power, {"exponent": -1.0}, {"damping": NOT_POSITIVE, "exponent": [np.inf]}),
    (FACTORS.power, {"exponent": 2.0}, {"damping": NOT_POSITIVE[1:]}),
    (
        factor_errors,
        {"matrix": SMALL, "factors": FACTORS},
        {
            "matrix": [operators.gauss_newton(convolutions()), 0.0 * SMALL],
            "factors": [[], [FACTORS, TURNED]],
            "rows": NO_SIZE[1:],
            **PROBES,
        },
    ),
    (factor_errors, {"factors": kfac(of(DEAD))}, {"matrix": [operators.gauss_newton(of(DEAD))]}),
    (curvature.haar, {"rng": rng(), "rows": 5, "columns": 3}, {"columns": (6, *NO_SIZE), "total": [6]}),
    (curvature.sparse_frame, {"rng": rng(), "rows": 5}, {"columns": (6, *NO_SIZE)}),
    (curvature.positive_excess, {}, {"matrix": [torch.full((2, 2), x) for x in (0.0, np.inf, np.nan)]}),
    (ALONG.terms, {"alpha": 1.0}, {"alpha": ([1.0, 0.0], 1e200), "temperature": [np.nan]}),
    (
        PerceptronSamples,
        {"widths": (4, 3), "theta": FLAT["theta"], "x": FLAT["x"], "labels": [0, 1]},
        {"matrix": ["fisher"], "theta": [torch.zeros(3)]},
    ),
    (
        total_variance,
        {"objective": line_objective(2), "seed": rng()},
        {"probes": PROBES["probes"], "objective": [case("convolution").objective(training=True)]},
    ),
    (variance_along, {"vector": torch.ones(12)}, {"objective|data": [line_objective(1)]}),
    (quadratic_forms, {"objective": line_objective(2), "vectors": torch.ones(12, 1)}, {"matrix": ["fisher"]}),
    *(
        (route, FLAT, {"theta": [torch.zeros(14).double()], "x": [np.ones((2, 5))], "labels": [[0, 3]]})
        for route in (
            per_sample.loss_gradients, per_sample.hessians, per_sample.gauss_newtons, perceptron_objective
        )
    ),
    (
        full_space.norms,
        NET._asdict(),
        {"labels": [NET.labels + 1], "x|weights": [0 * NET.x], "alpha": [1e160]},
    ),
    (
        layer_block,
        {"weights": NET.weights, "x": NET.x},
        {"x": [NET.x[:, :3]], "x|weights": [0 * NET.x], "alpha": [1e160]},
    ),
    # training
    (
        descent,
        {"parameters": list(NET.weights), "batches": [(X, LABELS)], "rate": 0.1, "steps": 2},
        {
            "rate": (*NOT_POSITIVE, torch.tensor([0.1, -0.1])),
            "temperature": NOT_POSITIVE,
            "momentum": (-0.1, 1.0),
            "steps": NO_SIZE[1:],
            "batches": [[]],
        },
    ),
    (
        largest_rates,
        {"networks": RUNS, "lowest": torch.ones(1), "target": 1.0, "steps": 2, "factor": 2.0, "count": 2},
        {
            "lowest|rates": [torch.ones(2), torch.tensor([np.inf])],
            "target": NOT_POSITIVE,
            "steps": NO_SIZE,
            "factor": (1.0, np.nan),
            "count": NO_SIZE,
        },
    ),
    (
        lyapunov_exponents,
        {
            "kernels": torch.ones(1, 1, 1, 1, 1), "batches": [CommonBatches(samples=1, size=1)],
            "rates": torch.ones(1, 1), "steps": 1,
        },
        {
            "steps": NO_SIZE,
            "skip": NO_SIZE[1:],
            "rates": [torch.ones(1), torch.zeros(1, 1), torch.ones(2, 1)],
        },
    ),
    (edges.top_eigenvalues, STACKED, {"steps": NO_SIZE}),
    (
        flows.central_flow,
        STACKED | {"rates": 0.1 * ONES, "steps": 1, "parts": 1},
        {"rates": [-ONES], "steps": [0], "parts": [0]},
    ),
    (
        noisy_descent,
        STACKED | {"streams": [rng(1), rng(2)], "rate": 0.1, "batch_size": 2, "steps": 1},
        {"rate": NOT_POSITIVE, "batch_size": (6, *NO_SIZE), "steps": NO_SIZE},
    ),
    (
        grids.train,
        GRID | {"rates": ONES[:, None], "steps": 9},
        {
            "rates": [-ONES[:, None]], "steps": NO_SIZE, "at": [(99,)], "warmup": [0 * ONES[:, None], ONES[:1, None]],
            "batches": [GRID["batches"][:1], [CommonBatches(samples=4, size=2)] * 2],
            "samples|own": [SETS._replace(own=torch.arange(5)[None])],
        },
    ),
    (grids.checkpoints, GRID | {"rates": [0.1] * 5, "at": (1,)}, {"at": [(), (6,)], "decay": [-0.1]}),
    (
        wide_training.descend,
        WIDE | {"rates": ONES[:, None]},
        {
            "rates": [ONES, np.nan * ONES[:, None]], "steps": NO_SIZE,
            "targets": [torch.ones(2, 4, 1)], "activation": ["step"],
        },
    ),
    (
        wide_training.critical_rates,
        WIDE | {"lower": ONES, "upper": 2 * ONES, "halvings": 1},
        {"upper|lower": [ONES], "halvings": NO_SIZE},
    ),
    (optimisers.largest_stable_rate, {"samples": FULL}, {"batch_size": (0.5, 6, np.nan)}),
    (optimisers.form_moments, {"samples": FULL}, {"directions": [[[1.0, 0.0]]]}),
    (optimisers.trial_directions, {"samples": FULL, "top": 1, "heavy": 2}, {"top": [-1]}),
    (
        optimisers.sgd_steps,
        {
            "block": BLOCK, "matrices": torch.eye(3).expand(5, 3, 3).numpy(), "moment": np.eye(3), "rate": 0.1,
            "batch_size": 1, "runs": 1,
        },
        {"moment": [np.eye(2), -np.eye(3)], "batch_size": [6], "runs": NO_SIZE},
    ),
    (optimisers.step_contraction, {"step": optimisers.descent_step(0.1)}, {"eigenvalues": [()]}),
    (
        optimisers.population,
        {},
        {
            "matrices": [
                np.ones((2, 3)), [[[np.nan]]], [[[1.0, 2.0], [3.0, 4.0]]], [[[1.0, 2.0], [2.0, 1.0]]],
                np.zeros((3, 2, 2)),
            ]
        },
    ),
    # draws, networks and data
    (ensembles.wigner, {"block": BLOCK, "dim": 3}, {"law": ["cauchy"], "dim": NO_SIZE}),
    (ensembles.gauss_newton_of_logits, {"gradients": LOGITS}, {"p": [[0.5, 0.5, 0.1], [1.5, -0.5, 0.0]]}),
    (noise.student, {"block": BLOCK, "dim": 3, "degrees": 5}, {"degrees": (2, np.nan, np.inf), "dim": NO_SIZE}),
    (noise.sparse, {"block": BLOCK, "dim": 3}, {"per_row": (0, 4)}),
    (populations.nested_means, {"block": BLOCK, "dim": 2}, {"sizes": [(0,), (3, 3)]}),
    (
        reduced.wigner_outliers,
        {"block": BLOCK, "dim": 5},
        {"spikes": [[1.5, 1.5], [2.0, 1.3], [2.0, np.nan]]},
    ),
    (reduced.signed_projections_top, {"block": BLOCK, "samples": 3, "rank": 2, "spike": 1.0}, {"dim": [6]}),
    (networks.mlp_logits, {"weights": [], "x": torch.ones(1, 2)}, {"activation": ["swish"]}),
    (networks.weight_count, {}, {"widths": [(5,), *((4, n) for n in NO_SIZE)]}),
    (networks.LeNet5, {"rng": rng()}, {"pooling": ["mean"], "channels": NO_SIZE, "classes": NO_SIZE}),
    (networks.Vgg, {"rng": rng(), "stages": ((3,), (4,))}, {"side": (6, *NO_SIZE)}),
    (data.digits, {}, {"size": [(2, 8, 8)]}),
    (data.sample, {"images": IMAGES, "rng": rng(), "balanced": True}, {"count": (7, 9, 13, *NO_SIZE)}),
    (Point, {}, {"x": [None, {"a": 1}, np.zeros(2), 1j, b"bytes", [1, None]]}),
    (lambda name: Point(**{name: 1}), {}, {"name|parameter": ["keys", "get", "values", "canonical", "_values"]}),
    (
        lambda score: run_block(lambda *_: {"s": score}, experiment="a", point=Point(), seed=0, index=0),
        {},
        {
            "score": [
                1.0, *map(np.zeros, (15, (15, 2), (16, 0), (16, 2, 2))), np.zeros(16, complex), ["1"] * 16,
                torch.ones(16) * 1j,
            ]
        },
    ),
    (
        lambda address: open_executor(1, address).__enter__(),
        {},
        {"address|executor": ["dask://nonsense", "dask://", "dask://a:b", "dask://a b:1", "tcp://127.0.0.1:8786", ""]},
    ),
]  # fmt: skip
"""A function, arguments that it takes, and for some of them what it does not take, by the words of the refusal."""


@pytest.mark.parametrize(("function", "right", "wrong"), REFUSED)
def test_what_does_not_fit_is_refused_by_name(function: Any, right: dict[str, Any], wrong: Wrong) -> None:
    for names, values in wrong.items():
        for value in values:
            with refusal(rf"({names}).* must "):
                function(**right | {names.split("|")[0]: value})


def test_sizes_of_numpy_are_sizes() -> None:
    assert ensembles.wigner(BLOCK, np.int8(100)).shape == (2, 100, 100)  # 100^2 would overflow there
    assert networks.weight_count(np.array([1000, 1000, 10], dtype=np.int16)) == 1_010_000


# --- what no memory holds ----------------------------------------------------------------------------------------

ALLOCATING = {
    "dim": lambda k: ensembles.wigner(BLOCK, k),
    "widths": lambda k: networks.Mlp((10**5, k, 2), rng=rng()),
    "channels": lambda k: networks.LeNet5(k, rng=rng()),
    "classes": lambda k: networks.LeNet5(3, k, rng=rng()),
}


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "available", lambda _: 2.0**30)


@pytest.mark.parametrize("name", ALLOCATING)
@pytest.mark.usefixtures("little")
def test_a_size_that_no_memory_holds_is_refused_at_once(name: str) -> None:
    started = time.process_time()
    for size in (10**10, 10**12, 10**400, 10**5000, np.int64(2**62), np.uint64(2**63)):
        with refusal(rf"{name}.* must be (small enough for memory|less than 2\*\*63)"):
            ALLOCATING[name](size)
    assert time.process_time() - started < 0.5


def test_small_sizes_ask_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that reads from the system would cost more than a small draw."""
    monkeypatch.setattr(_memory, "available", lambda _: pytest.fail("asked"))
    ensembles.wigner(BLOCK, 50)


FRAME = torch.ones(NET.size, 2, dtype=torch.float64)
MODEL = networks.Mlp((6, 7, 5), rng=rng())
VAST = Operator(product=torch.clone, dim=60)


def net() -> Objective:
    return Objective(MODEL, (X, LABELS), nn.CrossEntropyLoss())


BEYOND = [
    (lambda: empirical_kernel(MODEL, X), "the inner products of 11 samples and 5 outputs"),
    (lambda: empirical_kernel(MODEL, X, traced=True), "11 samples"),
    (lambda: logit_kernel(MODEL, X), "the inner products of 11 samples"),
    (lambda: quadratic_forms(net(), FRAME), "the derivatives of one sample"),
    (lambda: trace_gauss_newton(net()), "the derivatives of one sample"),
    (lambda: projected(net(), FRAME), "2 directions, apart by parameters"),
    (lambda: operators.hessian(net()) @ FRAME, "the derivatives of .* smaller chunk"),
    (lambda: operators.hessian(net()).dense(), "use products"),
    (lambda: kfac(net()), "the factors of all layers"),
    (lambda: learns(RUNS, torch.ones(1), target=1.0, steps=1), "1 runs of 11 samples"),
    (lambda: descent(list(NET.weights), [(X, LABELS)], rate=1.0, steps=1), "gradients and moves of 77"),
    (lambda: tridiagonal(VAST, torch.ones(1, 60).double(), 9), "use fewer steps or starts"),
    (lambda: solve(DENSE, np.ones((4, 2))), "16 vectors need .* fewer columns"),
    *(
        (lambda f=f: f(VAST, probes=9), "vectors of 60 numbers")
        for f in (spectra.trace, spectra.frobenius_norm, spectra.density)
    ),
    (lambda: extremes(VAST), " 12 vectors of 60 numbers, and the result, need"),
]


@pytest.mark.parametrize(("call", "told"), BEYOND)
def test_what_no_memory_holds_is_refused(
    call: Callable[[], Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_memory, "available", lambda _: 1.0)
    monkeypatch.setattr(_memory, "_UNCHECKED", 0)
    with refusal(rf"must be small enough for memory.*{told}"):
        call()


@pytest.mark.usefixtures("little")
def test_grids_that_no_memory_holds_are_refused() -> None:
    with refusal(r"x must be small .* 3 densities at 10000000 points from 3 nodes"):
        spectra.density(DENSE, x=np.broadcast_to(0.0, 10**7), width=0.2, steps=3, probes=3)
