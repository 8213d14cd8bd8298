"""Results of a check: texts, a table, plain data, a plot; and points that hypothesis draws."""

import builtins
import json
import pickle
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import verify.checking
from tests.refusals import refusal
from tests.verify.checking.simulators import constant, harmonic, largest, logarithm, many_largest, normal
from verify.checking import Checked, check
from verify.judging.properties import SHRINKS

POINTS = [{"n": 10}, {"n": 30}]


@pytest.fixture(scope="module")
def found() -> Checked:
    return check(harmonic, many_largest, POINTS, margin=0.05, rivals={"log n": logarithm}, vectorised=True)


@pytest.fixture(scope="module")
def mixed() -> Checked:
    """Forty points, of which one disagrees and one is undecided."""

    def predict(mean: float) -> float:
        return {7.0: 8.0, 9.0: 9.0 / 1.0999}.get(mean, mean)

    points = [{"mean": float(k)} for k in range(1, 41)]
    return check(predict, normal, points, margin=0.1, budget=320, rivals={"half": lambda mean: mean / 2})


def test_a_result_has_no_truth_value(found: Checked) -> None:
    with pytest.raises(TypeError, match=r"use result\.agrees"):
        bool(found)


def test_the_text_shows_first_what_needs_a_look(found: Checked, mixed: Checked) -> None:
    lines = repr(found).splitlines()
    assert lines[0].startswith(
        "agrees at 2 of 2 points, within 5 % (chance of a wrong verdict at most 0.1 %; "
    )
    assert lines[1].startswith("  n = 10   predicted 2.93   measured 2.") and " +- 0." in lines[2]
    assert "log n: rejected" in lines[1] and lines[3].startswith("  not seen: an event rarer than 1 in ")
    lines = repr(mixed).splitlines()
    assert len(lines) <= 12
    assert lines[0].startswith("disagrees at 1 of 40 points, by more than 10 % (")
    assert lines[1].startswith("  mean = 7   disagrees   predicted 8.0")
    assert lines[2].startswith("  mean = 9   undecided   predicted 8.1")
    assert all(f"  mean = {k} " in mixed.summary() for k in range(1, 41))
    assert mixed._repr_html_().count("<tr>") > 10


@pytest.mark.parametrize(
    ("words", "predict", "options"),
    [
        ("agrees, within 0.1 (chance of", 1.0, {"relative": False}),
        ("(upper bound on every replicate; chance", 2.0, {"kind": "upper bound on every replicate"}),
        ("  distance 0.", stats.norm(1.0, 0.1), {"kind": "distribution"}),
        ("5 of 5 rivals", 1.0, {"rivals": {f"{k} times": lambda k=k: float(k) for k in range(2, 7)}}),
    ],
)
def test_the_text_names_what_was_measured(words: str, predict: Any, options: dict[str, Any]) -> None:
    assert words in repr(check(lambda: predict, normal, margin=0.1, **options))


def test_plain_data_survives_json(mixed: Checked) -> None:
    data = json.loads(json.dumps(mixed.to_dict()))

    assert data["verdict"] == "disagrees" and data["draws"] == mixed.draws
    assert [p["point"] for p in data["points"]] == [p.point for p in mixed.points]
    assert data["points"][0]["rivals"][0]["rejected"] is True
    assert data["points"][8]["reason"] and data["points"][8]["needed"] > 320


def test_a_frame_has_a_row_for_each_point(mixed: Checked) -> None:
    pytest.importorskip("pandas")
    frame = mixed.to_frame()

    assert list(frame["mean"]) == [p.point["mean"] for p in mixed.points]
    assert set(frame["rival half"]) == {"rejected"} and (frame["reason"] != "").sum() == 1


def test_the_plot_has_the_prediction_as_a_line_and_rivals_dashed(found: Checked) -> None:
    axes = found.plot()
    lines = {line.get_label(): line for line in axes.lines}

    assert lines["predicted"].get_linestyle() == "-" and lines["log n"].get_linestyle() == "--"
    assert lines["predicted"].get_xdata().tolist() == list(range(10, 31))
    assert axes.get_xlabel() == "n"
    assert found.plot(axes) is axes


@pytest.mark.parametrize(
    ("points", "simulate"),
    [
        ([{"mean": [1.0, 2.0]}], normal),
        ([{"mean": 1.0, "sd": 0.1}, {"mean": 2.0, "sd": 0.2}], normal),
        ([{"mean": 1.0}, {"mean": 2.0}], lambda rng, mean: rng.standard_cauchy()),
    ],
)
def test_every_result_can_be_drawn(points: Any, simulate: Any) -> None:
    """Components, several parameters at a time, and points without an interval."""
    twice = {"twice": lambda **p: 2 * np.array(p["mean"])}
    result = check(constant, simulate, points, margin=0.2, rivals=twice, budget=400)

    result.plot().figure.canvas.draw()
    plt.close("all")


def test_a_result_is_saved_as_a_page_or_a_picture(mixed: Checked, tmp_path: Path) -> None:
    mixed.save(tmp_path / "check.html")
    page = (tmp_path / "check.html").read_text()
    assert page.count("<svg") == 1 and page.count("<tr>") == 1 + len(mixed.points)
    assert "disagrees at 1 of 40 points" in page and "http" not in page.replace("http://www.w3.org", "")
    mixed.save(tmp_path / "check.svg")
    with refusal("format must be one of"):
        mixed.save(tmp_path / "check.xyz")


def test_a_result_of_lambdas_can_be_pickled() -> None:
    """Names and numbers stay; what is drawn between the points needs the functions."""
    found = check(
        lambda n: harmonic(n), largest, [{"n": 3}, {"n": 9}], margin=0.2, rivals={"log": lambda n: 1.0}
    )
    again = pickle.loads(pickle.dumps(found))
    assert again == found and again.to_dict() == found.to_dict() and repr(again) == repr(found)
    assert again.rivals == {"log": True} and again.plot().has_data() and found.plot().has_data()


# --- hypothesis ----------------------------------------------------------------------------------------------


def breaks(n: int) -> float:
    return harmonic(n) if n < 7 else 9.0


@pytest.mark.parametrize("points", [{"n": st.integers(2, 60)}, [{"n": 3}, {"n": st.integers(2, 60)}]])
def test_a_failure_is_shrunk_and_its_call_printed(points: Any) -> None:
    found = check(breaks, many_largest, points, margin=0.1, vectorised=True, seed=5)

    assert found.verdict == "disagrees"
    assert found.points[-1].point == found.failing == {"n": 7}
    assert sum(point.verdict == "disagrees" for point in found.points) == 1
    call = found.reproduce
    assert f"  reproduce: {call}" in repr(found)
    assert call.startswith("losscurv.check(breaks, many_largest, [{'n': 7}], margin=0.1, error=")
    names = {"losscurv": verify.checking, "breaks": breaks, "many_largest": many_largest}
    again = eval(call, {**vars(builtins), **names})
    assert again.points[0] == found.points[-1]


def test_examples_that_agree_share_the_error() -> None:
    found = check(harmonic, many_largest, {"n": st.integers(2, 60)}, margin=0.2, vectorised=True)

    assert found.agrees and found.failing is None and found.reproduce == ""
    assert len({point.point["n"] for point in found.points}) == len(found.points) <= verify.checking.EXAMPLES
    assert {point.error for point in found.points} == {1e-3 / (verify.checking.EXAMPLES + SHRINKS)}


def test_an_exception_at_an_example_is_shrunk_and_raised() -> None:
    def predict(n: int) -> float:
        return 1 / 0 if n > 20 else harmonic(n)

    with pytest.raises(
        RuntimeError, match=r"^predict failed at n = 21: ZeroDivisionError: division by zero$"
    ):
        check(predict, many_largest, {"n": st.integers(2, 60)}, margin=0.2, vectorised=True)


def test_a_test_of_hypothesis_hands_its_own_points_over() -> None:
    @settings(max_examples=3, database=None, deadline=None)
    @given(st.integers(2, 9))
    def repeated(n: int) -> None:
        assert check(harmonic, many_largest, {"n": n}, margin=0.2, vectorised=True).agrees
        with refusal("points must be plain inside a test that hypothesis repeats"):
            check(harmonic, many_largest, {"n": st.just(3)}, margin=0.2, vectorised=True)

    repeated()
