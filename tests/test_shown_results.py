"""Results show themselves in one way; seeds and generators are accepted where random numbers are drawn."""

import html
import json
import math
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from torch import nn

import losscurv
from simulate import spectra
from simulate.lanczos import Operator
from simulate.modules.hessian_variance import total_variance
from simulate.modules.projected import projected
from simulate.objectives import Objective
from simulate.results import Columns, Result, draw_bars, plain
from tests.refusals import refusal
from tests.verify.page.test_pages import Page
from tests.verify.practice.small_measurements import small_data, small_net, small_problem
from tests.verify.results.sample_results import sample
from verify.practice.measure import measure_problem
from verify.practice.plan import plan_problem
from verify.practice.watch import watch


def objective() -> Objective:
    return Objective(small_net(nn.Tanh()), small_data(), nn.CrossEntropyLoss())


@cache
def hessian() -> Operator:
    return losscurv.hessian(objective())


def watcher() -> Any:
    net, (inputs, targets) = small_net(nn.Tanh()), small_data()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    found = watch(
        optimizer, net, nn.CrossEntropyLoss(), every=1, most=0.999, clock=iter(range(10**6)).__next__
    )
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), targets).backward()
        optimizer.step()
        found.step(inputs, targets)
    return found


RESULTS = {
    "extremes": (lambda: losscurv.extremes(hessian(), largest=3, smallest=1), lambda r: r.values[0]),
    "trace": (lambda: losscurv.trace(hessian()), lambda r: r.value),
    "density": (lambda: spectra.density(hessian()), lambda r: r.value.max()),
    "solution": (
        lambda: losscurv.solve(losscurv.gauss_newton(objective()), torch.ones(hessian().dim), damping=0.1),
        lambda r: float(r.vectors.norm()),
    ),
    "diagonal": (lambda: losscurv.estimated_diagonal(hessian()), lambda r: float(r.value[0])),
    "kfac": (lambda: losscurv.kfac(objective()), lambda r: float(r.blocks[0].diagonal.sum())),
    "ekfac": (lambda: losscurv.ekfac(objective()), lambda r: float(r.blocks[0].diagonal.sum())),
    "factor errors": (
        lambda: losscurv.factor_errors(losscurv.gauss_newton(objective()), losscurv.kfac(objective())),
        lambda r: r.whole.value,
    ),
    "projected": (
        lambda: projected(objective(), torch.eye(hessian().dim, 4)),
        lambda r: float(torch.linalg.eigvalsh(r.hessian).max()),
    ),
    "measurement": (lambda: measure_problem(small_problem()), lambda r: r.hessian.top[0].value),
    "certificate": (lambda: losscurv.certify([1.0, 0.5], objective()), lambda r: r.upper[0]),
    "plan": (lambda: plan_problem(small_problem(), [2, 4]), lambda r: r.trials[-1].start or "nan"),
    "watcher": (watcher, lambda r: r.records[-1].eigenvalue),
    "record": (lambda: watcher().records[-1], lambda r: r.eigenvalue),
    "report": (sample, lambda r: r.rows[0].id),
    "reading": (lambda: sample().rows[0], lambda r: r.points[0].measured),
}

HEAVIEST = 1_200
"""Characters of a `repr`."""


@cache
def made(name: str) -> Result:
    return RESULTS[name][0]()


def number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


each_name = pytest.mark.parametrize("name", RESULTS)


@each_name
def test_a_repr_is_short_and_says_the_main_number(name: str) -> None:
    found, of = made(name), RESULTS[name][1]
    lines = repr(found).splitlines()
    assert len(lines) <= 12 and max(map(len, lines)) <= 100 and len(repr(found)) <= HEAVIEST
    if name != "density":  # whose highest point need not be among those shown
        assert number(of(found)) in repr(found)
    assert repr(found).startswith(f"{type(found).__name__}: ")
    assert str(found) == repr(found)


@each_name
def test_a_notebook_gets_a_table_with_a_picture(name: str) -> None:
    before = pyplot.get_fignums()
    page = made(name)._repr_html_()
    assert pyplot.get_fignums() == before  # or the notebook would show the picture once more
    tags = Page(page).tags
    assert "table" in tags and 'src="data:image/png;base64,' in page and len(page) < 400_000
    assert {*tags} <= {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "img"}


@each_name
def test_all_of_it_is_plain_data_a_frame_and_text(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    found, of = made(name), RESULTS[name][1]
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))
    frame = found.to_frame()
    assert isinstance(frame, pandas.DataFrame) and len(frame) > 0
    value = of(found)
    cells = frame.to_numpy().ravel().tolist()
    assert any(
        cell == value or (isinstance(cell, float) and math.isclose(cell, float(value))) for cell in cells
    )
    assert len(found.summary().splitlines()) >= 2 and found.summary().endswith("\n")


@each_name
def test_a_plot_is_of_its_own_or_in_axes_that_are_given(name: str) -> None:
    before = pyplot.get_fignums()
    alone = made(name).plot()
    assert isinstance(alone, Axes) and alone.has_data()
    assert pyplot.gcf() is alone.figure  # what a notebook shows, and plt.show()
    pyplot.close()
    given = Figure().add_subplot()
    assert made(name).plot(ax=given) is given and given.has_data()
    assert pyplot.get_fignums() == before


@pytest.mark.parametrize(
    "name", ["extremes", "density", "solution", "projected", "measurement", "plan", "report"]
)
def test_results_stay_records(name: str) -> None:
    found = made(name)
    again = pickle.loads(pickle.dumps(found))
    assert again.to_dict() == found.to_dict() and type(again) is type(found)
    with pytest.raises(AttributeError):
        found.other = 1  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True, repr=False)
class Named(Result):
    """Result with names given by others."""

    names: tuple[str, ...]

    def _headline(self) -> str:
        return f"{len(self.names)} of {self.names[0]}"

    def _columns(self) -> Columns:
        return {"layer": self.names, "error": [math.nan] * len(self.names)}

    def _draw(self, axes: Axes) -> None:
        draw_bars(axes, self.names, [1.0] * len(self.names))


HOSTILE = "<script>alert(1)</script> & $x$ \x1b[31m\n名" + "w" * 200


def test_names_of_others_neither_command_a_terminal_nor_a_page() -> None:
    found = Named(names=(HOSTILE, *map(str, range(40))))
    assert "\x1b" not in repr(found) and len(repr(found).splitlines()) == 12
    assert "\x1b" not in found.summary() and len(found.summary().splitlines()) == 43
    page = found._repr_html_()
    assert "<script>" not in page and html.escape("<script>") in page
    assert found.to_dict() == {"names": [HOSTILE, *map(str, range(40))]}


def test_a_result_of_nothing_shows_itself_too() -> None:
    empty = replace(sample(), rows=[], observations=[])
    assert repr(empty) == "Results: 0 agrees, 0 disagrees (0 expected)"
    assert len(empty.to_frame()) == 0 and "<img" in empty._repr_html_()
    broken = replace(sample().rows[0], points=[], verdict="broken")
    assert "broken" in repr(broken) and isinstance(broken.plot(), Axes)


def test_a_run_draws_its_readings_by_verdict() -> None:
    names = [label.get_text() for label in sample().plot().get_yticklabels()]
    assert {*names} == {row.verdict for row in sample().rows} and len(names) > 1


def test_without_pandas_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"^to_frame needs pandas: pip install pandas$"):
        made("extremes").to_frame()


def test_what_is_not_finite_is_none_in_plain_data() -> None:
    given = {
        "a": np.array([1.0, np.nan]),
        ("b", "c"): torch.tensor([math.inf]),
        "d": torch.float32,
        "e": np.bool_(True),
    }
    assert plain(given) == {"a": [1.0, None], "b, c": [None], "d": "torch.float32", "e": True}


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (lambda: hessian(), "CurvatureOperator(hessian, 39 x 39, float64 on cpu)"),
        (
            lambda: losscurv.fisher(objective()),
            "CurvatureOperator(categorical fisher, 39 x 39, float64 on cpu)",
        ),
        (lambda: 2 * hessian(), "Operator(39 x 39, float64 on cpu)"),
        (objective, "Objective(Sequential, P = 39, N = 9, loss CrossEntropyLoss)"),
        (
            lambda: Objective(
                lambda p, x: x @ p[0], small_data(), _mean, parameters=[torch.ones(5).double()]
            ),
            "Objective(a function, P = 5, N = 9, loss _mean)",
        ),
    ],
)
def test_operators_and_objectives_say_in_a_line_what_they_are(of: Callable[[], Any], said: str) -> None:
    assert repr(of()) == said


def _mean(outputs: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    return outputs.square().mean()


@pytest.mark.parametrize(
    "kind", [np.asarray, torch.as_tensor, np.ndarray.tolist], ids=["numpy", "torch", "list"]
)
@pytest.mark.parametrize("shape", [(39,), (1, 39), (3, 39)])
def test_a_vector_multiplies_from_the_left(kind: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
    given = np.random.default_rng(0).standard_normal(shape)
    found = kind(given) @ hessian()
    assert found.shape == shape
    assert_allclose(
        found, torch.stack([hessian() @ row for row in given.reshape(-1, 39)]).reshape(shape), atol=1e-12
    )
    assert_allclose(found, given @ hessian().dense().numpy(), atol=1e-12)


@pytest.mark.parametrize("shape", [(38,), (2, 38), (39, 2), (0, 39), (1, 1, 39), ()])
def test_a_factor_of_another_size_is_refused_in_a_sentence(shape: tuple[int, ...]) -> None:
    with refusal(r"must be of shape \(39,\) or \(k, 39\) on the left, got \("):
        _ = np.ones(shape) @ hessian() if shape else hessian().__rmatmul__(1.0)
    with refusal(r"must be of shape \(39,\) or \(39, k\) on the right, got \("):
        _ = hessian() @ np.ones(shape).T


SEEDED = {
    "extremes": lambda *seed: losscurv.extremes(hessian(), *seed).values,
    "trace": lambda *seed: spectra.trace(hessian(), *seed),
    "norm": lambda *seed: spectra.frobenius_norm(hessian(), *seed),
    "density": lambda *seed: spectra.density(hessian(), *seed).value,
    "diagonal": lambda *seed: losscurv.estimated_diagonal(hessian(), *seed).value,
    "variance": lambda *seed: total_variance(objective(), *seed),
    "errors": lambda *seed: tuple(
        losscurv.factor_errors(
            losscurv.gauss_newton(objective()), losscurv.kfac(objective()), *seed, rows=0
        ).whole
    ),
    "sampled": lambda *seed: losscurv.kfac(
        objective(), kind="sampled", **dict(zip(("seed",), seed, strict=False))
    ).eigenvalues(),
}


@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_is_optional_and_may_be_an_integer_or_a_generator(name: str) -> None:
    draw = SEEDED[name]
    default, integer, generator = draw(), draw(np.int64(0)), draw(np.random.default_rng(0))
    assert np.array_equal(default, integer) and np.array_equal(default, generator)
    wrong = (0.5, "zero", None, True, -1, np.random.RandomState(0))
    for seed in wrong:
        with refusal(r"^seed must be an integer >= 0 or a numpy Generator, got "):
            draw(seed)


def test_a_density_finds_its_own_points() -> None:
    found = spectra.density(np.diag([0.0] * 60 + [1.0] * 40), probes=40)
    mass = np.trapezoid(found.value, found.x)
    assert abs(mass - 1) < 1e-3 and found.x[0] < 0 and found.x[-1] > 1
    near = np.abs(found.x - 1) < 0.1
    assert abs(np.trapezoid(found.value[near], found.x[near]) - 0.4) < 0.05
    same = spectra.density(3 * np.eye(4))
    assert same.width == pytest.approx(0.03) and same.value.max() == pytest.approx(
        1 / (math.sqrt(2 * math.pi) * 0.03)
    )
