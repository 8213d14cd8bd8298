"""Diagonals of the curvature against dense matrices, the work they take, and the errors that estimates state."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate import operators
from simulate.modules import diagonals, sample_parts
from simulate.modules.diagonals import estimated_diagonal, gauss_newton_diagonal, hessian_diagonal
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.objectives import Objective
from tests.refusals import refusal
from tests.simulate.dense_matrices import rng, rotated
from tests.simulate.models_and_data import case
from tests.simulate.modules.layer_kinds import SMOOTH, objective_of


def coupled() -> Objective:
    """A loss that is the root of a mean over all samples."""
    found = case("squared error")
    return Objective(found.model, found.data[0], lambda z, y: (z - y).square().mean().sqrt())


def functional() -> Objective:
    x, y = torch.from_numpy(rng(0).standard_normal((6, 3))), torch.from_numpy(rng(1).standard_normal((6, 2)))
    leaves = [
        torch.from_numpy(rng(k).standard_normal(shape)) for k, shape in enumerate([(4, 3), (2, 4)], start=2)
    ]
    return Objective(lambda p, x: torch.tanh(x @ p[0].T) @ p[1].T, [(x, y)], nn.MSELoss(), parameters=leaves)


@pytest.mark.parametrize("build", [coupled, functional])
def test_diagonals_are_those_of_the_dense_matrices(build: Callable[[], Objective]) -> None:
    objective = build()

    for found, matrix in (
        (gauss_newton_diagonal(objective), operators.gauss_newton(objective)),
        (hessian_diagonal(objective), operators.hessian(objective)),
    ):
        assert_allclose(found, matrix.dense().diagonal(), atol=1e-12)


@pytest.mark.parametrize("name", SMOOTH)
def test_layers_with_fewer_outputs_than_weights_go_by_their_outputs(name: str) -> None:
    """All of these, so that comparisons with dense matrices are of that way."""
    objective = objective_of(name)
    places = dict(enumerate(objective.blocks().values()))

    assert set(diagonals._layers_by_output(objective, places).values()) == {4, 3}


class Places(nn.Module):
    """Seven classes at each of three places of a sample."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 21))

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).view(-1, 7, 3)


@pytest.mark.parametrize(
    "loss",
    [nn.CrossEntropyLoss(torch.arange(1.0, 8.0)), nn.CrossEntropyLoss(label_smoothing=0.1), nn.MSELoss()],
)
@pytest.mark.parametrize(("window", "windows"), [(1 << 28, 1), (1, 5)])
def test_many_outputs_are_taken_column_by_column(
    loss: nn.Module, window: int, windows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For many samples at once, or for a few columns of one; one place of a sample is ignored."""
    classes = torch.randint(7, (5, 3), generator=torch.Generator().manual_seed(1))
    classes[2, 1] = -100
    y = torch.randn(5, 7, 3).double() if isinstance(loss, nn.MSELoss) else classes
    x = torch.linspace(-1, 1, 20).view(5, 4).double()
    objective = Objective(Places().double(), (x, y), loss.double())
    expected, passes = gauss_newton_diagonal(objective), []
    monkeypatch.setattr(sample_parts, "_MANY", 20)
    monkeypatch.setattr(sample_parts, "_WINDOW", window)
    plain = sample_parts.deltas_of
    monkeypatch.setattr(
        sample_parts, "deltas_of", lambda *given: (passes.append(len(given[2])), plain(*given))[1]
    )

    assert_allclose(gauss_newton_diagonal(objective), expected, rtol=1e-11, atol=1e-14)
    assert sum(passes) == windows * 3 * (7 if isinstance(loss, nn.MSELoss) else 6)


@pytest.mark.parametrize("loss", [nn.MSELoss(), nn.BCEWithLogitsLoss(), nn.HuberLoss(delta=0.5)])
def test_outputs_that_the_loss_takes_one_by_one_need_no_eigenvectors(
    loss: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eigenvectors for thousands of outputs would take a minute per sample."""
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 50)).double()
    drawn = rng(3)
    x, y = torch.from_numpy(drawn.standard_normal((5, 4))), torch.from_numpy(drawn.random((5, 50)))
    y[0, :3] += 9.0  # where Huber's loss is straight
    objective = Objective(model, (x, y), loss)
    expected = operators.gauss_newton(objective).dense().diagonal()
    monkeypatch.setattr(torch.linalg, "eigh", None)

    assert_allclose(gauss_newton_diagonal(objective), expected, rtol=1e-10, atol=1e-14)
    assert_allclose(trace_gauss_newton(objective), expected.sum(), rtol=1e-12)


def test_outputs_of_layers_take_the_place_of_their_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """A smooth perceptron needs no row of the Hessian; one of straight pieces nothing but what asks."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        smooth = nn.Sequential(nn.Linear(20, 6), nn.Tanh(), nn.Linear(6, 3)).double()
        data = torch.randn(5, 20).double(), torch.arange(5) % 3
    objective = Objective(smooth, data, nn.CrossEntropyLoss())
    expected = operators.hessian(objective).dense().diagonal()
    monkeypatch.setattr(diagonals, "hessian", None)

    assert_allclose(hessian_diagonal(objective, most=6), expected, atol=1e-14)
    with refusal("most must be at least 6, the products that an exact diagonal takes, got 5"):
        hessian_diagonal(objective, most=5)
    smooth[1] = nn.ReLU()
    straight = Objective(smooth, data, nn.CrossEntropyLoss())
    assert_allclose(hessian_diagonal(straight, most=1), gauss_newton_diagonal(straight), rtol=1e-13)


def test_rows_that_are_too_many_are_refused() -> None:
    with refusal(r"most must be at least 12, .* got 11; use an estimate such as"):
        hessian_diagonal(functional(), most=11)
    with refusal("most must be a positive integer, got 0"):
        hessian_diagonal(functional(), most=0)


def test_blocks_of_probes_are_one_sample() -> None:
    """More probes than go together: mean and error are those of all."""
    matrix, probes = rotated([3.0, 1.0, -1.0], seed=9), 2 * diagonals._BLOCK + 3
    found = estimated_diagonal(matrix, rng(1), probes=probes)
    source, signs = rng(1), []
    for count in (diagonals._BLOCK, diagonals._BLOCK, 3):
        signs.append(2.0 * source.integers(0, 2, (count, 3)) - 1.0)
    each = np.concatenate(signs) * (np.concatenate(signs) @ matrix)

    assert_allclose(found.value, each.mean(0), rtol=1e-12)
    assert_allclose(found.standard_error, each.std(0, ddof=1) / np.sqrt(probes), rtol=1e-12)
