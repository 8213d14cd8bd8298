"""Variance of the curvature over samples: against the matrices of single samples, each an objective of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain, product
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.linalg import hadamard
from torch import Tensor, nn

from simulate import operators
from simulate.modules import sample_parts, sites
from simulate.modules.hessian_variance import bilinear_forms, quadratic_forms, total_variance, variance_along
from simulate.networks import Mlp
from simulate.objectives import Objective
from simulate.objectives.restoring import as_found
from tests.simulate.models_and_data import BUILDERS, case
from tests.simulate.modules.layer_kinds import LAYERS, centred, layered

MATRICES = ("hessian", "gauss_newton")
KINDS = sorted(
    set(BUILDERS) - {"binary", "class probabilities", "cross-entropy", "linear", "squared error"}
) + sorted(LAYERS)
FEW = ("absolute error", "convolution", "normalisations", "sum", "tied", "tokens")


class Listed(np.random.Generator):
    """A generator that gives out signs one vector after the other."""

    def __init__(self, signs: Any) -> None:
        super().__init__(np.random.PCG64(0))
        self._left = iter(signs)

    def integers(self, low: int, high: int, size: int) -> Any:
        return (next(self._left)[:size] + 1) // 2


def listed(signs: Any) -> Any:
    return Listed(signs)


def objective_of(kind: str) -> Objective:
    return case(kind).objective() if kind in BUILDERS else layered(kind)


def small(samples: int = 5, widths: tuple[int, ...] = (2, 2, 2)) -> Objective:
    rng = np.random.default_rng(1)
    x = torch.from_numpy(rng.standard_normal((samples, widths[0])))
    return Objective(Mlp(widths, "tanh", rng=rng), (x, torch.arange(samples) % 2), nn.CrossEntropyLoss())


def products(objective: Objective, columns: Tensor, matrix: str) -> Tensor:
    """H_i times the columns, of each sample as an objective of its own: (N, dim, k)."""
    found: list[Tensor] = []
    model: Any = objective.model
    for x, y in objective.data:
        for i in range(len(y)):
            try:
                one = Objective(model, [(_only(x, i), _only(y, i))], objective.criterion)
            except ValueError:  # ignored
                found.append(torch.zeros_like(columns))
                continue
            weight = one.samples if one.reduction == "mean" else 1.0
            times = hessian_times if matrix == "hessian" else gauss_newton_times
            found.append(weight * times(one, columns))
    return torch.stack(found)


def hessian_times(one: Objective, columns: Tensor) -> Tensor:
    """By autograd alone."""
    with as_found(one.model, False):
        leaves, batch = one.leaves(), next(one.batches())
        loss = one.loss(one.outputs(leaves, batch.inputs), batch)
        gradient = torch.cat([g.flatten() for g in _gradient(loss, leaves)])
        return torch.stack(
            [one.flat(_gradient(gradient @ column, leaves)).detach() for column in columns.mT], dim=1
        )


def gauss_newton_times(one: Objective, columns: Tensor) -> Tensor:
    return operators.gauss_newton(one) @ columns


def _gradient(number: Tensor, leaves: Sequence[Tensor]) -> Sequence[Tensor]:
    return torch.autograd.grad(number, leaves, create_graph=True, allow_unused=True, materialize_grads=True)


def _only(part: Any, i: int) -> Any:
    return {name: v[i : i + 1] for name, v in part.items()} if isinstance(part, dict) else part[i : i + 1]


def normal(objective: Objective, columns: int) -> Tensor:
    draws = torch.Generator().manual_seed(2)
    return torch.randn(objective.dim, columns, dtype=torch.float64, generator=draws)


def spread(products: Tensor) -> Tensor:
    """Sum of squares about the mean over the samples, divided by N - 1."""
    return (products - products.mean(0)).square().sum() / (len(products) - 1)


def without_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "by_sample", lambda _: False)


@pytest.mark.parametrize(("kind", "matrix"), [*product(KINDS, ["hessian"]), *product(FEW, ["gauss_newton"])])
def test_every_sample_has_its_own_matrix(kind: str, matrix: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = objective_of(kind)
    columns = normal(objective, 2)
    known = products(objective, columns, matrix)
    forms, variance = torch.einsum("pk,npl->nkl", columns, known), float(spread(known[..., 1]))
    for by_sites in (True, False):
        if by_sites and not sites.by_sample(objective):
            continue
        found = bilinear_forms(objective, columns, columns[:, 1], matrix=matrix)
        assert_allclose(found, forms[..., 1], rtol=1e-9, atol=1e-12)
        found = quadratic_forms(objective, columns, matrix=matrix)
        assert_allclose(found, forms.diagonal(dim1=1, dim2=2), rtol=1e-9, atol=1e-12)
        assert_allclose(variance_along(objective, columns[:, 1], matrix=matrix), variance, rtol=1e-9)
        without_sites(monkeypatch)


@pytest.mark.parametrize("matrix", MATRICES)
def test_orthogonal_probes_give_the_total_exactly(matrix: Any) -> None:
    """Sum of v v' over the rows of a Hadamard matrix of order m is m times the identity."""
    objective = small()
    dense = products(objective, torch.eye(objective.dim, dtype=torch.float64), matrix)
    probes = hadamard(objective.dim)
    found = total_variance(objective, listed(probes), probes=len(probes), matrix=matrix)
    assert_allclose(found.value, float(spread(dense)), rtol=1e-10)


@pytest.mark.parametrize("matrix", MATRICES)
def test_orthogonal_pairs_give_the_total_exactly(matrix: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = small(samples=4, widths=(2, 2))
    dense = products(objective, torch.eye(objective.dim, dtype=torch.float64), matrix)
    pairs = list(product(hadamard(objective.dim), repeat=2))
    without_sites(monkeypatch)
    found = total_variance(objective, listed(chain(*pairs)), probes=len(pairs), matrix=matrix)
    assert_allclose(found.value, float(spread(dense)), rtol=1e-10)


def test_error_is_the_deviation_of_the_probes_over_the_root_of_their_number() -> None:
    objective, probes = small(), hadamard(8)[:3]
    each = [variance_along(objective, v) for v in probes.astype(float)]
    found = total_variance(objective, listed(probes), probes=3)
    assert_allclose(found, (np.mean(each), np.std(each, ddof=1) / math.sqrt(3)))


@pytest.mark.parametrize("kind", ["ignored class", "tokens", "tied"])
def test_cutting_changes_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of one ignored sample adds nothing to the loss, but has its row."""
    objective = objective_of(kind)
    model: Any = objective.model
    cut = Objective(model, objective.data, objective.criterion, chunk=1)
    columns = normal(objective, 2)
    expected, variance = quadratic_forms(objective, columns), variance_along(objective, columns[:, 0])
    monkeypatch.setattr(sample_parts, "_HELD", 1)
    for other in (objective, cut):
        assert_allclose(quadratic_forms(other, columns), expected, rtol=1e-10, atol=1e-14)
        assert_allclose(variance_along(other, columns[:, 0]), variance, rtol=1e-10)


def function(call: Callable[..., Tensor], loss: Any = None) -> Objective:
    x = torch.linspace(-1, 2, 12, dtype=torch.float64).view(4, 3)
    weight = torch.ones(1, 3, dtype=torch.float64)
    return Objective(call, (x, x[:, :1]), loss or nn.MSELoss(), parameters=[weight])


def test_samples_that_see_each_other_are_refused() -> None:
    seeing = function(lambda p, x: x @ p[0].T - (x @ p[0].T).square().mean())
    for objective in (centred(), seeing):
        with pytest.raises(ValueError, match="model must give each sample outputs of its own"):
            quadratic_forms(objective, torch.ones(objective.dim, 1))
        with pytest.raises(ValueError, match="got samples that see each other"):
            variance_along(objective, torch.ones(objective.dim))


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (
            function(lambda p, x: x @ p[0].T, lambda z, y: (z - 2 * y).square().sum().sqrt()),
            "loss must be a sum or mean of what every sample adds, got one that couples samples",
        ),
        (
            function(lambda p, x: (x @ p[0].T).mean(0), lambda z, y: z.square().sum()),
            r"model must return one row for each of 4 samples, got shape \(1,\)",
        ),
        (
            function(lambda p, x: (x @ (p[0] - p[0]).T).abs().sqrt() + 0 * x[:, :1]),
            "objective must have finite derivatives, got NaN or infinity",
        ),
    ],
)
def test_what_has_no_matrix_for_each_sample_is_refused(objective: Objective, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quadratic_forms(objective, torch.ones(3, 1))
    with pytest.raises(ValueError, match=message):
        variance_along(objective, torch.ones(3))


def test_training_mode_is_refused() -> None:
    objective = case("convolution").objective(training=True)
    with pytest.raises(ValueError, match=r"objective must be in evaluation mode, .*, got training"):
        total_variance(objective, np.random.default_rng(0), probes=2)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (torch.ones(8), r"vectors must be of shape \(8, k\) with k >= 1, got \(8,\)"),
        (torch.full((8, 1), torch.nan), "vectors must be finite"),
        (torch.ones(8, 1, dtype=torch.complex64), "vectors must be real"),
    ],
)
def test_vectors_that_are_none_are_refused(vectors: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quadratic_forms(small(), vectors)


def test_other_arguments_are_refused() -> None:
    objective, rng = small(), np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"right must be of shape \(8,\), got \(8, 1\)"):
        bilinear_forms(objective, torch.ones(8, 1), torch.ones(8, 1))
    for probes, rule in ((1, "at least 2, which give an error, got 1"), (0, "a positive integer, got 0")):
        with pytest.raises(ValueError, match=f"probes must be {rule}"):
            total_variance(objective, rng, probes=probes)
    unknown: Any = "fisher"
    with pytest.raises(ValueError, match="matrix must be hessian or gauss_newton, got 'fisher'"):
        quadratic_forms(objective, torch.ones(8, 1), matrix=unknown)
    with pytest.raises(ValueError, match="data must hold at least 2 samples to have a variance, got 1"):
        variance_along(small(samples=1), torch.ones(8))
