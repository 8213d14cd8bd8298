"""Whose scores hang on the last digit: a device that rounds otherwise finds them, and what they say of it holds."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks.pretend import NAME, POSSIBLE, Rounding, pretended, tried
from benchmarks.pretend.__main__ import complaint
from benchmarks.pretend.trials import CLOSE, Drawn, drawn
from simulate.monte_carlo import Block, Point

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="this torch has no devices made in Python")

ALL = {one.name: one for one in drawn()}

ALIKE = {
    "sum of entries": lambda x: x + 2 * x,
    "comparison": lambda x: x > 0.5,
    "view": lambda x: x.mT,
}

OTHERWISE = {
    "product": lambda x: x @ x.mT,
    "sum": torch.sum,
    "exp": torch.exp,
    "in place": lambda x: x.clone().exp_(),
    "eigenvalues": lambda x: torch.linalg.eigvalsh(x @ x.mT),
    "singular values": torch.linalg.svdvals,
    "triangular": lambda x: torch.linalg.qr(x).R,
}


def both(operation: Callable[[Tensor], Tensor], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    x = torch.rand(5, 4, dtype=dtype, generator=torch.Generator().manual_seed(1))
    with pretended(rounding=Rounding()):
        return operation(x), operation(x.to(NAME)).cpu()


@pytest.mark.parametrize("name", ALIKE)
def test_what_every_machine_rounds_alike_stays(name: str) -> None:
    here, there = both(ALIKE[name], torch.float64)
    assert torch.equal(here, there)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", OTHERWISE)
def test_sums_functions_and_decompositions_are_off_by_what_their_type_rounds(
    name: str, dtype: torch.dtype
) -> None:
    here, there = both(OTHERWISE[name], dtype)
    gap = float((here - there).abs().max() / here.abs().max())
    assert 0 < gap < 50 * torch.finfo(dtype).eps


def test_eigenvectors_have_other_signs() -> None:
    here, there = both(lambda x: torch.linalg.eigh(x @ x.mT)[1], torch.float64)
    signs = (here * there).sum(0).sign()
    assert signs.min() == -1


# --- planted errors ------------------------------------------------------------------------------------------


def _along_equal_eigenvalues(block: Block, point: Point) -> dict[str, Any]:
    matrix = torch.eye(3, dtype=torch.float64, device=block.device) - 1 / 3
    basis = torch.linalg.eigh(matrix)[1]
    return {"first": (block.normal(3) @ basis)[:, 1]}


def _along_dependent_columns(block: Block, point: Point) -> dict[str, Any]:
    x = block.normal(6, 2)
    x = torch.cat([x, x.sum(2, keepdim=True), block.normal(6, 1)], dim=2)
    return {"last": (torch.linalg.qr(x).R[:, :, 3] * block.normal(4)).sum(1)}


def _cancelling(block: Block, point: Point) -> dict[str, Any]:
    x = block.normal(40)
    return {"sum": (x + 1e9).sum(1) - x.sum(1) - 40e9}


def _sound(block: Block, point: Point) -> dict[str, Any]:
    x = block.normal(6, 4)
    return {"top": torch.linalg.eigvalsh(x.mT @ x)[:, -1]}


@pytest.mark.parametrize(
    ("simulate", "rounding", "told"),
    [
        (_sound, {}, ""),
        (_along_equal_eigenvalues, {}, "first differs"),
        (_along_dependent_columns, {}, "last differs"),
        (_cancelling, {}, "sum differs"),
        (_cancelling, {"sum": math.inf}, ""),
        (_cancelling, {"sum": 1e-9}, "sum differs"),
    ],
)
def test_planted_errors_are_seen(simulate: Any, rounding: dict[str, float], told: str) -> None:
    one = Drawn("planted", "experiment", simulate, (Point(),), "", "", rounding)
    assert complaint(one, tried(one, Point(), 2)) == ""  # with the rounding of the CPU none is
    said = complaint(one, tried(one, Point(), 2, rounding=Rounding()), CLOSE)
    assert (said == "") == (told == "") and told in said


# --- experiments ---------------------------------------------------------------------------------------------

HELD = (
    "vysogorets2024/uniform-logit-model",  # draws along eigenvectors of one eigenvalue
    "vysogorets2024/collapse",  # says that one of its scores is what is left of a cancellation
    "vysogorets2024/together",
    "karakida2019/normalised",  # draws along columns that depend on each other
)


@pytest.mark.parametrize("name", HELD)
def test_an_experiment_says_what_rounding_moves(name: str) -> None:
    one = ALL[name]
    assert complaint(one, tried(one, one.points[0], 2, rounding=Rounding()), CLOSE) == ""
