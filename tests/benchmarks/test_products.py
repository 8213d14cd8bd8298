"""``benchmarks.products``: every way gives what derivatives in float64 give; absent and broken libraries are told."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from benchmarks.products import __main__ as command, peers as bench_peers
from benchmarks.products.__main__ import Timing, bench
from benchmarks.products.peers import Library
from benchmarks.products.works import (
    COLUMNS,
    EIGENVALUES,
    NETWORKS,
    OURS,
    WORKS,
    Case,
    Way,
    bench_perceptron,
)

pytestmark = pytest.mark.slow

ALLOWED = dict.fromkeys(("eigenvalue", "eigenvalues", "density", "measure"), 1e-3) | {"sampled": 1.0}
"""Error allowed to estimates, and to products with the factors of twelve labels that are drawn."""
PEERS = ["curvlinops", "PyHessian"]


@pytest.fixture(scope="module")
def small() -> Case:
    return Case(12, "cpu", network=bench_perceptron((16, 6, 5, 10)), directions=5)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No library but this one and torch, whatever is installed."""
    monkeypatch.setattr(bench_peers, "import_module", absent)


@pytest.fixture(autouse=True)
def _without_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch off the stacks that torch records at each traced operation, which take long in a test."""
    monkeypatch.setattr(traceback, "extract_stack", lambda *_, **__: traceback.StackSummary())


def absent(name: str) -> Any:
    raise ModuleNotFoundError(f"No module named {name!r}")


def fake(call: Callable[[], Any]) -> tuple[Library, ...]:
    """A library that finds a trace by this call."""
    way = Way("trace", "by magic", lambda _: call)
    return (Library("other", "no-such-distribution", lambda: (way,)),)


def outputs(case: Case, parameters: Tensor) -> Tensor:
    sizes = [p.numel() for p in case.parameters]
    parts = [part.view_as(p) for part, p in zip(parameters.split(sizes), case.parameters, strict=True)]
    signal = case.x.double()
    for weight in parts[:-1]:
        signal = (signal @ weight.T).relu()
    return signal @ parts[-1].T


def dense(case: Case) -> tuple[Tensor, Tensor]:
    """Hessian and Gauss-Newton matrix in float64, entry by entry."""
    at = torch.cat([p.detach().flatten() for p in case.parameters]).double()
    hessian = torch.func.jacrev(torch.func.grad(lambda t: case.loss(outputs(case, t), case.labels)))(at)
    jacobian = torch.func.jacrev(lambda t: outputs(case, t))(at)
    p = outputs(case, at).softmax(1)
    bent = (torch.diag_embed(p) - p[:, :, None] * p[:, None]) @ jacobian / len(p)
    return hessian, torch.einsum("nkp,nkq->pq", jacobian, bent)


def truth(name: str, case: Case) -> Tensor:
    return WORKS[name].truth(case.double())


def test_truths_are_those_of_the_dense_matrices(small: Case) -> None:
    hessian, gauss_newton = dense(small)
    vector, frame = small.vector.double(), small.frame.double()
    terms = torch.stack([frame.T @ matrix @ frame for matrix in (gauss_newton, hessian - gauss_newton)])
    expected = {
        "hessian": hessian @ vector,
        "gauss-newton": gauss_newton @ vector,
        "projected": terms[..., :COLUMNS],
        "columns": hessian @ small.block[:, :COLUMNS].double(),
        "eigenvalue": torch.linalg.eigvalsh(hessian)[-1:],
        "eigenvalues": torch.linalg.eigvalsh(hessian).flip(0)[:EIGENVALUES],
        "density": torch.linalg.eigvalsh(hessian)[-1:],
        "trace": hessian.trace(),
        "diagonal": hessian.diagonal(),
        "dense": hessian,
    }
    for name, value in expected.items():
        assert_close(truth(name, small), value, rtol=1e-7, atol=1e-9, msg=name)
    assert_close(gauss_newton.trace(), hessian.trace())


def test_truth_of_the_gram_matrix_is_that_of_all_gradients(small: Case) -> None:
    at = torch.cat([p.detach().flatten() for p in small.parameters]).double()
    rows = torch.func.jacrev(lambda t: outputs(small, t)[:, 0])(at)
    assert_close(truth("gram", small), rows @ rows.T)


def test_every_way_gives_the_truth(small: Case) -> None:
    found, missing = bench(small, repeats=1)
    assert missing == PEERS
    assert {result.way.work for result in found} == set(WORKS)
    assert [r.way for r in found if r.library.startswith("losscurv ")] == list(OURS)
    assert len([r for r in found if r.library.startswith("torch ")]) == 14
    for result in found:
        assert len(result.errors) == len(result.seconds) == 1
        assert max(result.errors) < ALLOWED.get(result.way.work, 1e-5), result
        assert result.passes > 0


@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in ("lenet-300-100", "large")])
def test_products_of_every_network_are_the_truth(name: str) -> None:
    """By two ways that share no code; the large network is a wider one of attention."""
    case = Case(2, "cpu", network=NETWORKS[name])
    assert not case.net.training and torch.equal(case.net(case.x), case.net(case.x))
    for way in OURS[:2]:
        found, expected = way.prepare(case)(), truth(way.work, case)
        assert float((found - expected).norm()) < 1e-5 * float(expected.norm()), way


def test_every_way_multiplies_a_network_with_convolutions_and_biases() -> None:
    found, _ = bench(Case(2, "cpu", network=NETWORKS["lenet-5"]), only=["hessian", "columns"], repeats=1)
    assert [result.library.split()[0] for result in found] == ["losscurv", "torch", "torch", "losscurv"]
    assert all(max(result.errors) < 1e-5 for result in found), found


def timed(call: Callable[[], Any], case: Case, monkeypatch: pytest.MonkeyPatch, repeats: int = 3) -> Timing:
    """Time a library that computes a trace by this call."""
    monkeypatch.setattr(bench_peers, "LIBRARIES", fake(call))
    (found,), _ = bench(case, only=["trace"], repeats=repeats)
    return found


def test_a_wrong_result_shows_its_error(small: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = truth("trace", small)
    assert timed(lambda: expected * 1.25, small, monkeypatch).errors == pytest.approx([0.25] * 3)


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (torch.tensor(torch.nan), "ValueError: result must be 1 finite numbers, got"),
        (torch.ones(3), "ValueError: result must be 1 finite numbers, got"),
        (None, "TypeError: "),
    ],
)
def test_another_library_may_fail(
    result: Any, told: str, small: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = timed(lambda: result, small, monkeypatch)
    assert found.failed.startswith(told) and found.seconds == []
    assert told in command._cells(found, [found])[6]


def test_this_library_may_not_fail(small: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Way("trace", "ours", lambda _: absent("our own"))
    monkeypatch.setattr(bench_peers, "LIBRARIES", (Library("losscurv", "losscurv", lambda: (broken,)),))
    with pytest.raises(ModuleNotFoundError, match="our own"):
        bench(small, only=["trace"], repeats=1)


def test_costs_are_in_passes_of_the_same_work() -> None:
    def of(seconds: list[float], units: list[float], library: str) -> Timing:
        way = Way("gram", "gram", lambda _: absent("nothing"))
        return Timing(way=way, library=library, units=units, seconds=seconds, errors=[1e-7])

    one = of([6.0, 2.0, 4.0], [1.0, 3.0, 2.0], "losscurv")
    other = of([20.0], one.units, "other")
    assert (one.passes, one.median) == (2.0, 2.0)
    assert [command._cells(r, [one, other])[5] for r in (one, other)] == ["", "10"]


@pytest.fixture
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_threads")
def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--samples=5", "--repeats=2", "--device=auto", "--only=gauss-newton", "--only=hessian"]
    assert command.main(words) == 0
    told = capsys.readouterr().out
    assert "LeNet-300-100 on 5 digits, float32" in told
    assert [line.split("|")[1].strip() for line in told.splitlines() if "| losscurv" in line] == [
        "H times a vector",
        "G times a vector",
    ]
    assert f"not installed: {', '.join(PEERS)}" in told


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--only", "trance"], "invalid choice: 'trance'"),
        (
            ["--network", "vgg", "--only", "trace"],
            "--only must name works of VGG-like, five convolutions, got trace",
        ),
        (["--samples", "1798"], "samples must be 1 to the 1797 digits there are, got 1798"),
    ],
)
def test_bad_words_are_refused(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(words)
    assert told in capsys.readouterr().err
