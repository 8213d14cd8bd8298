"""``benchmarks.products``: every way gives what derivatives in float64 give; absent and broken libraries are told."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks import products
from benchmarks.products import Bench, Timing, __main__ as command, bench, peers as bench_peers
from benchmarks.products.networks import NETWORKS, bench_perceptron
from benchmarks.products.peers import Library
from benchmarks.products.works import COLUMNS, EIGENVALUES, OURS, WORKS, Case, Way

pytestmark = pytest.mark.slow

NAMES = [work.name for work in WORKS]
PEERS = ["curvlinops", "PyHessian", "hessian-eigenthings", "nngeometry"]


@pytest.fixture(scope="module")
def small() -> Case:
    return Case(12, "cpu", network=bench_perceptron((16, 6, 5, 10), few=True), directions=5)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No library but this one and torch, whatever is installed."""
    monkeypatch.setattr(bench_peers, "import_module", absent)


@pytest.fixture(autouse=True)
def _without_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What torch traces writes down the stack, deep in a test, at each of thousands of operations."""
    monkeypatch.setattr(traceback, "extract_stack", lambda *_, **__: traceback.StackSummary())


def absent(name: str) -> Any:
    raise ModuleNotFoundError(f"No module named {name!r}")


def silent(_: str, share: float) -> None:
    assert 0 <= share <= 1


def fake(call: Callable[[], Any], *, exact: bool = True) -> tuple[Library, ...]:
    """A library that finds a trace by this call."""
    way = Way("trace", "by magic", exact, lambda _: call)
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
    return next(work for work in WORKS if work.name == name).truth(case)


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
        "dense": hessian,
        "trace": hessian.trace(),
    }
    for name, value in expected.items():
        torch.testing.assert_close(truth(name, small), value, rtol=1e-7, atol=1e-9, msg=name)
    torch.testing.assert_close(gauss_newton.trace(), hessian.trace())


def test_truth_of_the_gram_matrix_is_that_of_all_gradients(small: Case) -> None:
    parameters = list(small.of_one_output.parameters())
    gradients = [torch.autograd.grad(small.of_one_output(x[None])[0, 0], parameters) for x in small.x]
    rows = torch.stack([torch.cat([part.flatten() for part in parts]) for parts in gradients]).double()
    torch.testing.assert_close(truth("gram", small), rows @ rows.T, rtol=1e-5, atol=1e-5)


def test_every_way_gives_the_truth(small: Case) -> None:
    found = bench(small, repeats=1, tell=silent)
    assert {result.work for result in found.results} == set(NAMES)
    assert [(r.work, r.method) for r in found.results if r.library == "losscurv"] == [way[:2] for way in OURS]
    assert [r.method for r in found.results if r.library == "torch.func"] == [
        "linearize of grad",
        "linearize and vjp",
        "jacfwd of grad",
        "vmap of grad",
    ]
    for result in found.results:
        assert len(result.errors) == len(result.seconds) == 1
        assert max(result.errors) < (1e-5 if result.exact else 1e-3), result
        assert result.passes > 0 and result.median > 0
    assert 0 < found.farthest < 1e-5


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "lenet-300-100"])
def test_products_of_every_network_are_the_truth(name: str) -> None:
    """By two ways that share no code."""
    case = Case(4, "cpu", network=NETWORKS[name], directions=2)
    found = bench(case, only=["hessian", "gauss-newton", "columns"], repeats=1, tell=silent)
    assert not case.net.training
    assert {(r.library, r.work) for r in found.results} >= {
        ("losscurv", "columns"),
        ("torch.func", "hessian"),
    }
    for result in found.results:
        assert not result.failed
        assert max(result.errors) < 1e-5, result


def test_one_output_is_of_a_perceptron_alone() -> None:
    with pytest.raises(ValueError, match="network must be a perceptron to have one output, got LeNet-5"):
        _ = Case(2, "cpu", network=NETWORKS["lenet-5"]).of_one_output


def test_who_is_ahead_is_told() -> None:
    ours, units = result([2.0], [1.0]), [1.0]
    faster = result([1.0], units, library="other", method="magic")
    slower = result([3.0], units, library="third")
    (line,) = command._ahead([ours, faster, slower])
    assert line == "other by magic, Gram matrix of one output: 0.50 of our time, relative error 1e-07"


def test_libraries_that_are_not_installed_are_named(small: Case) -> None:
    assert list(bench(small, only=["gram"], repeats=1, tell=silent).missing) == PEERS


def test_a_wrong_result_shows_its_error(small: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, ours = truth("trace", small), bench_peers.LIBRARIES[:1]
    monkeypatch.setattr(bench_peers, "LIBRARIES", fake(lambda: expected * 1.25))
    found = bench(small, only=["trace"], repeats=1, tell=silent)
    assert found.results[-1].errors == pytest.approx([0.25])
    assert found.farthest == pytest.approx(0.25)
    monkeypatch.setattr(bench_peers, "LIBRARIES", (*ours, *fake(lambda: expected * 1.25, exact=False)))
    assert bench(small, only=["trace"], repeats=1, tell=silent).farthest < 1e-5


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (torch.tensor(torch.nan), "ValueError: result must be finite, got NaN or infinity"),
        (torch.ones(3), "ValueError: result must be 1 numbers, got 3"),
        (None, "TypeError: "),
    ],
)
def test_another_library_may_fail(
    result: Any, told: str, small: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_peers, "LIBRARIES", fake(lambda: result))
    found = bench(small, only=["trace"], repeats=3, tell=silent)
    assert found.results[-1].failed.startswith(told)
    assert found.results[-1].seconds == []
    assert told[:20] in command._table(found.results).splitlines()[-1]
    assert command._record(found.results[-1])["failed"].startswith(told)


def test_this_library_may_not_fail(small: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Way("trace", "ours", True, lambda _: absent("our own"))
    monkeypatch.setattr(bench_peers, "LIBRARIES", (Library("losscurv", "losscurv", lambda: (broken,)),))
    with pytest.raises(ModuleNotFoundError, match="our own"):
        bench(small, only=["trace"], repeats=1, tell=silent)


def test_slow_calls_are_repeated_less_often(small: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []
    expected = truth("trace", small)

    def slow() -> Tensor:
        calls.append(0.0)
        end = time.process_time() + 0.005
        while time.process_time() < end:
            pass
        return expected

    monkeypatch.setattr(bench_peers, "LIBRARIES", fake(slow))
    monkeypatch.setattr(products, "BUDGET", 0.005)
    found = bench(small, only=["trace"], repeats=4, tell=silent)
    assert len(found.results[-1].seconds) == len(calls) == 2  # the first call counts if it is long
    monkeypatch.setattr(products, "BUDGET", 60.0)
    assert len(bench(small, only=["trace"], repeats=4, tell=silent).results[-1].seconds) == 4


def test_what_others_draw_and_print_leaves_no_trace(
    small: Case, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def noisy() -> Tensor:
        print("noise")
        return torch.rand(())

    monkeypatch.setattr(bench_peers, "LIBRARIES", fake(noisy))
    before = torch.get_rng_state()
    bench(small, only=["trace"], repeats=2, tell=silent)
    assert torch.equal(torch.get_rng_state(), before)
    assert capsys.readouterr().out == ""


def result(seconds: list[float], units: list[float], **more: Any) -> Timing:
    return Timing(
        **{"work": "gram", "library": "losscurv", "version": "1", "method": "gram", "exact": True, **more},
        seconds=seconds,
        units=units,
        errors=[1e-7],
    )


def test_costs_are_in_passes_of_the_same_work() -> None:
    one = result([6.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    other = result([20.0], one.units, library="other")
    assert (one.passes, one.median, one.quartiles) == (2.0, 2.0, (1.5, 2.5))
    cells = [line.split("|") for line in command._table([one, other]).splitlines()]
    assert [line[7].strip() for line in cells] == ["times ours", "-" * 10, "", "10.0"]
    assert Bench(results=(one, other), missing=()).units == one.units


@pytest.mark.parametrize(("units", "busy"), [([1.0, 1.1, 1.1], False), ([1.0, 1.3, 1.3], True)])
def test_a_busy_machine_is_told(units: list[float], busy: bool) -> None:
    assert Bench(results=(result([1.0], units),), missing=()).busy is busy


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    threads = torch.get_num_threads()
    words = ["--samples", "5", "--repeats", "1", "--only", "gauss-newton", "--only", "hessian"]
    assert command.main([*words, "--threads", str(threads + 1)]) == 0
    told = capsys.readouterr().out
    assert "LeNet-300-100 on 5 digits, float32" in told
    assert [line.split("|")[1].strip() for line in told.splitlines() if "losscurv" in line] == [
        "H times a vector",
        "G times a vector",
    ]
    assert f"not installed: {', '.join(PEERS)}" in told
    assert torch.get_num_threads() == threads


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--samples", "5", "--repeats", "2", "--only", "hessian", "--json", "--device", "auto"]
    assert command.main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["setting"]["samples"] == 5 and told["setting"]["threads"] == 1
    assert told["missing"] == PEERS
    only, other = told["results"]
    assert (other["library"], other["method"]) == ("torch.func", "linearize of grad")
    assert (only["work"], only["library"], only["runs"]) == ("hessian", "losscurv", 2)
    assert only["relative error"] < 1e-5 and only["passes"] > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--only", "trance"],
            "columns, projected, eigenvalue, eigenvalues, density, trace, gram",
        ),
        (
            ["--network", "vgg", "--only", "gram"],
            "columns, projected, eigenvalue, eigenvalues, density, got 'gram'",
        ),
        (["--only", "hesian"], "; did you mean hessian?"),
        (["--network", "lenet5"], "; did you mean lenet-5"),
        (
            ["--network", "alexnet"],
            "network must be one of lenet-300-100, lenet-5, vgg, residual, attention, tiny",
        ),
        (["--samples", "1798"], "samples must be 1 to the 1797 digits there are, got 1798"),
        (["--samples", "0"], "samples must be"),
        (["--repeats", "0"], "repeats must be"),
        (["--threads", "0"], "threads must be"),
        (["--device", "tpu"], "device must be auto, cpu, cuda or cuda:<index>"),
    ],
)
def test_bad_words_are_refused(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(words) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and told in lines[0]
