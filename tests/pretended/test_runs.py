"""Every experiment, and what measures a network of one's own, runs on a device, and on the device."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from benchmarks.pretend import NAME, POSSIBLE, Trial, pretended, tried
from benchmarks.pretend.__main__ import complaint
from benchmarks.pretend.trials import Drawn, drawn
from simulate import eigenvalues, operators
from simulate.modules.projected import projected
from simulate.modules.sample_directions import sample_directions
from simulate.monte_carlo import Block, Point, philox
from verify.practice import loading, measure, plan
from verify.practice.loading import first_calls

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="this torch has no devices made in Python")

ENOUGH, ENOUGH_OF_THE_SAME = 400, 150
"""Launches: what comes later in a training, and of one random network after the other, is what came before."""

ALL = {one.name: one for one in drawn()}

SMALLER = {
    "beyond/stable-rates-of-networks": {"samples": 12, "batch_size": (1, 4)},
    "beyond/wide-network-batches": {"samples": 64, "batch_size": (1, 16)},
    "catapult/growth": {"steps": 3},
    "catapult/lazy": {"steps": 3},
    "granziol2022/vgg-rates": {"samples": 64, "rungs": 2, "centres": (0.1,), "batch_size": (16,)},
    "vysogorets2024/edges-by-samples": {"samples": 40, "counts": (20, 40), "dim": 6},
    "vysogorets2024/initialisations": {"networks": 4},
    "vysogorets2024/many-initialisations": {"networks": 4},
    "vysogorets2024/unrelated": {"samples": 20},
}
"""Smaller sizes for experiments whose points have many samples, images, networks or steps."""


def smallest(points: tuple[Point, ...]) -> Point:
    """By the sum of all whole numbers."""
    return min(points, key=lambda point: sum(v for v in point.values() if isinstance(v, int)))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # what torch's forward mode calls
@pytest.mark.parametrize("name", ALL)
def test_it_runs_on_the_device_or_says_what_does_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words, one = philox.words, ALL[name]
    # a draw on the device is a hundred launches: test_draws has one
    monkeypatch.setattr(philox, "words", lambda c, keys: words(c.cpu(), keys.cpu()).to(keys.device))
    point = smallest(one.points) | SMALLER.get(name, {})
    same = point.get("steps") or {"epochs", "looks", "weight_variance"} & point.keys()
    assert complaint(one, tried(one, point, one.size, most=ENOUGH_OF_THE_SAME if same else ENOUGH)) == ""


# --- what such a test sees: planted errors -------------------------------------------------------------------


def planted(simulate: Any, on_host: str = "") -> tuple[Drawn, Trial]:
    one = Drawn("planted", "experiment", simulate, (Point(dim=20),), on_host)
    return one, tried(one, one.points[0])


def _at_home(block: Block, point: Point) -> dict[str, Any]:
    x = block.normal(point.dim, point.dim)
    return {"top": torch.linalg.eigvalsh(x + x.mT)[:, -1]}


def _mixed(block: Block, point: Point) -> dict[str, Any]:
    return {"sum": (block.normal(point.dim) + torch.ones(point.dim)).sum(1)}


def _silent(block: Block, point: Point) -> dict[str, Any]:
    return _at_home(Block(block.streams), point)


def _of_numpy(block: Block, point: Point) -> dict[str, Any]:
    x = block.normal(point.dim, point.dim).cpu().numpy()
    return {"top": np.linalg.eigvalsh(x + x.swapaxes(1, 2))[:, -1]}


def _otherwise(block: Block, point: Point) -> dict[str, Any]:
    away = 1.0 if block.device == "cpu" else 1.001
    return {"sum": away * block.normal(point.dim).sum(1)}


@pytest.mark.parametrize(
    ("simulate", "on_host", "told"),
    [
        (_at_home, "", ""),
        (_at_home, "eigenvalues", "says that on the CPU is eigenvalues"),
        (_mixed, "", "must have all tensors on one device"),
        (_silent, "", "100% of the work"),
        (_silent, "eigenvalues", ""),
        (_of_numpy, "", "of the work is done on the CPU"),
        (_otherwise, "", "differs from that of the CPU by 0.001"),
    ],
)
def test_the_planted_errors_are_seen(simulate: Any, on_host: str, told: str) -> None:
    said = complaint(*planted(simulate, on_host))
    assert (said == "") == (told == "")
    assert told in said


# --- a network of one's own ----------------------------------------------------------------------------------


def _problem(device: str) -> loading.Problem:
    generator = torch.Generator().manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) / 2)
    x, y = torch.randn(30, 6, generator=generator), torch.arange(30) % 3
    return loading.problem(net, (x, y), dtype="float64", device=device)


@pytest.fixture
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_calls, "resolve_device", lambda name: name)


with_anywhere = pytest.mark.usefixtures("anywhere")


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@with_anywhere
def test_measure_and_plan_run_on_the_device() -> None:
    def found(device: str) -> tuple[Any, list[Any]]:
        trials = plan.plan_problem(_problem(device), [3, 30], steps=6).trials
        return measure.measure_problem(_problem(device), top=2), [trial.start for trial in trials]

    here, starts = found("cpu")
    with pretended() as counts:
        there, others = found(NAME)
    assert there.device == f"{NAME}:0" and others == pytest.approx(starts)
    for one, other in ((here.hessian, there.hessian), (here.gauss_newton, there.gauss_newton)):
        assert_allclose([e.value for e in other.top], [e.value for e in one.top], rtol=1e-9)
        assert other.trace.value == pytest.approx(one.trace.value, rel=1e-9)
    assert counts.host_share < 0.2


OPERATORS = {
    "hessian": operators.hessian,
    "gauss_newton": operators.gauss_newton,
    "h_term": operators.h_term,
    "fisher": operators.fisher,
    "empirical_fisher": operators.empirical_fisher,
}


@with_anywhere
@pytest.mark.parametrize("name", OPERATORS)
def test_products_are_computed_on_the_device(name: str) -> None:
    vectors = torch.randn(4, _problem("cpu").objective.dim, dtype=torch.float64)
    here = OPERATORS[name](_problem("cpu").objective).product(vectors)
    with pretended() as counts:
        there = OPERATORS[name](_problem(NAME).objective).product(vectors.to(NAME))
        assert there.device.type == NAME
        torch.testing.assert_close(there.cpu(), here, rtol=1e-12, atol=1e-14)
    assert counts.host_share < 0.2


@with_anywhere
def test_several_vectors_go_at_once_beside_many_parameters() -> None:
    """A LeNet-300-100 on 1000 samples: its weights are many, what a sample adds to them is little."""
    net = nn.Sequential(nn.Linear(784, 300), nn.ReLU(), nn.Linear(300, 100), nn.ReLU(), nn.Linear(100, 10))
    data = torch.rand(1000, 784), torch.arange(1000) % 10
    with pretended() as counts:
        objective = loading.problem(net, data, device=NAME).objective
        matrix, vectors = operators.hessian(objective), torch.rand(6, objective.dim).to(NAME)
        launches = []
        for _ in range(2):  # what is prepared once is not counted
            before = counts.launches
            matrix.product(vectors[:1])
            one = counts.launches
            matrix.product(vectors)
            launches = [one - before, counts.launches - one]
    assert launches[1] < 3 * launches[0]  # one after the other: 6 times


@with_anywhere
def test_eigenvalues_frames_and_own_directions_are_found_on_the_device() -> None:
    def found(problem: loading.Problem) -> list[Any]:
        objective, rng = problem.objective, np.random.default_rng(0)
        top = eigenvalues.extremes(operators.gauss_newton(objective), rng, largest=2)
        frame = torch.linalg.qr(torch.from_numpy(rng.standard_normal((objective.dim, 4))))[0]
        terms = projected(objective, frame.to(objective.device))
        vectors = torch.from_numpy(np.ascontiguousarray(top.vectors)).to(objective.device)
        own = sample_directions(objective, vectors, rng, probes=3).statistics
        return [top.values, terms.hessian.cpu().numpy(), own.largest, own.background, own.spread]

    here = found(_problem("cpu"))
    with pretended() as counts:
        there = found(_problem(NAME))
    for one, other in zip(here, there, strict=True):
        assert_allclose(other, one, rtol=1e-7, atol=1e-12)
    assert counts.host_share < 0.2
