"""What a check says of itself: texts, a table, plain data, a plot; and points that hypothesis draws."""

import builtins
import json
import math
import pickle
import sys
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import verify.checking
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


def test_the_text_is_that_of_the_example(found: Checked) -> None:
    lines = repr(found).splitlines()

    assert lines[0] == (
        f"agrees at 2 of 2 points, within 5 % (chance of a wrong verdict at most 0.1 %; {found.draws:,} draws)"
    )
    assert lines[1].startswith("  n = 10   predicted 2.93   measured 2.") and lines[1].endswith(
        "   log n: rejected"
    )
    assert " +- 0." in lines[2]
    assert lines[3].startswith("  not seen: an event rarer than 1 in ")


def test_a_long_text_shows_first_what_needs_a_look(mixed: Checked) -> None:
    lines = repr(mixed).splitlines()

    assert len(lines) <= 12
    assert lines[0].startswith("disagrees at 1 of 40 points, by more than 10 % (")
    assert lines[1].startswith("  mean = 7   disagrees   predicted 8.0")
    assert lines[2].startswith("  mean = 9   undecided   predicted 8.1")
    assert lines[-2] == "  ... 32 more: summary()"


def test_the_summary_is_complete(mixed: Checked) -> None:
    text = mixed.summary()

    assert all(f"  mean = {k} " in text for k in range(1, 41))
    assert "nor replicates that depend on others drawn beside them" in text


def test_an_absolute_margin_and_no_parameters_read_well() -> None:
    found = check(lambda: 1.0, normal, margin=0.1, relative=False)

    assert repr(found).startswith("agrees, within 0.1 (chance of")
    assert repr(found).splitlines()[1].startswith("  predicted 1.00   measured ")
    assert repr(found.points[0]).startswith("CheckedPoint(no parameters: agrees, measured ")


def test_kinds_name_what_they_measure() -> None:
    never = check(lambda: 1.0, lambda rng: rng.random(), margin=0.05, kind="upper bound on every replicate")
    law = check(lambda: lambda x: np.clip(x, 0, 1), lambda rng: rng.random(), margin=0.2, kind="distribution")

    assert "(upper bound on every replicate; chance" in repr(never) and "  violations 0.000" in repr(never)
    assert "  distance 0." in repr(law) and "predicted" not in repr(law)


def test_many_rivals_are_counted() -> None:
    rivals = {f"{k} times": lambda k=k: float(k) for k in range(2, 7)}
    found = check(lambda: 1.0, normal, margin=0.1, rivals=rivals)

    assert "5 of 5 rivals rejected" in repr(found)


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


def test_no_frame_without_pandas(found: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"^to_frame needs pandas: pip install pandas$"):
        found.to_frame()


def test_a_notebook_shows_a_table_and_a_picture(mixed: Checked) -> None:
    text = mixed._repr_html_()

    assert text.count("<tr>") > 10 and "data:image/png;base64," in text and len(text) < 100_000


def test_the_plot_has_the_prediction_as_a_line_and_rivals_dashed(found: Checked) -> None:
    axes = found.plot()
    lines = {line.get_label(): line for line in axes.lines}

    assert lines["predicted"].get_linestyle() == "-" and lines["log n"].get_linestyle() == "--"
    assert lines["predicted"].get_xdata().tolist() == list(range(10, 31))
    assert axes.get_xlabel() == "n"
    assert found.plot(axes) is axes


@pytest.mark.parametrize(
    ("predict", "points"),
    [
        (constant, [{"mean": [1.0, 2.0]}]),
        (constant, [{"mean": 1.0, "sd": 0.1}, {"mean": 2.0, "sd": 0.2}]),
        (lambda mean: {1: 1.0, 100: 100.0}[mean], [{"mean": 1}, {"mean": 100}]),
    ],
)
def test_every_result_can_be_drawn(predict: Any, points: Any) -> None:
    """Components, several parameters at a time, and a formula that has no value between the points."""
    result = check(predict, normal, points, margin=0.2, rivals={"twice": lambda **p: 2 * np.array(p["mean"])})

    assert result.agrees
    result.plot().figure.canvas.draw()
    plt.close("all")


def test_an_undecided_point_without_an_interval_is_drawn() -> None:
    result = check(lambda: 1.0, lambda rng: rng.standard_cauchy(), margin=0.1, budget=96)

    assert math.isinf(result.points[0].upper)
    result.plot().figure.canvas.draw()


def test_a_result_of_lambdas_can_be_pickled() -> None:
    """Names and numbers stay; what is drawn between the points needs the functions."""
    found = check(
        lambda n: harmonic(n), largest, [{"n": 3}, {"n": 9}], margin=0.2, rivals={"log": lambda n: 1.0}
    )
    again = pickle.loads(pickle.dumps(found))
    assert again == found and again.to_dict() == found.to_dict() and repr(again) == repr(found)
    assert again.rivals == {"log": True} and again.plot().has_data() and found.plot().has_data()
    failing = check(breaks, many_largest, {"n": st.integers(2, 60)}, margin=0.1, vectorised=True)
    assert pickle.loads(pickle.dumps(failing)).reproduce == failing.reproduce != ""


# --- hypothesis ----------------------------------------------------------------------------------------------


def breaks(n: int) -> float:
    return harmonic(n) if n < 7 else 9.0


@pytest.mark.parametrize(
    "points",
    [
        {"n": st.integers(2, 60)},
        st.fixed_dictionaries({"n": st.integers(2, 60)}),
        [{"n": 3}, {"n": st.integers(2, 60)}],
    ],
    ids=["mapping", "strategy", "list"],
)
def test_a_failure_is_shrunk_and_its_call_printed(points: Any) -> None:
    found = check(breaks, many_largest, points, margin=0.1, vectorised=True, seed=5)

    assert found.verdict == "disagrees"
    assert found.points[-1].point == found.failing == {"n": 7}
    assert sum(point.verdict == "disagrees" for point in found.points) == 1
    call = found.reproduce
    assert f"  reproduce: {call}" in repr(found) and f"  reproduce: {call}" in found.summary()
    assert call.startswith("losscurv.check(breaks, many_largest, [{'n': 7}], margin=0.1, error=")
    assert call.endswith(", vectorised=True, seed=5)")
    names = {"losscurv": verify.checking, "breaks": breaks, "many_largest": many_largest}
    again = eval(call, {**vars(builtins), **names})
    assert again.points[0] == found.points[-1]


def test_examples_that_agree_share_the_error() -> None:
    found = check(harmonic, many_largest, {"n": st.integers(2, 60)}, margin=0.2, vectorised=True)

    assert found.agrees and found.failing is None and found.reproduce == ""
    assert len({point.point["n"] for point in found.points}) == len(found.points) <= verify.checking.EXAMPLES
    assert {point.error for point in found.points} == {1e-3 / (verify.checking.EXAMPLES + SHRINKS)}


def test_parameters_beside_a_strategy_stay_as_they_are() -> None:
    found = check(constant, normal, {"mean": st.floats(1, 9), "sd": 0.2}, margin=0.2)

    assert found.agrees and {point.point["sd"] for point in found.points} == {0.2}


def test_an_exception_at_an_example_is_shrunk_and_raised() -> None:
    def predict(n: int) -> float:
        return 1 / 0 if n > 20 else harmonic(n)

    with pytest.raises(
        RuntimeError, match=r"^predict failed at n = 21: ZeroDivisionError: division by zero$"
    ):
        check(predict, many_largest, {"n": st.integers(2, 60)}, margin=0.2, vectorised=True)


def test_a_point_without_a_prediction_is_no_simpler_failure() -> None:
    def predict(n: int) -> float:
        if 7 <= n < 9:
            raise ZeroDivisionError("no value here")
        return breaks(n)

    found = check(predict, many_largest, {"n": st.integers(2, 1000)}, margin=0.1, vectorised=True)
    assert found.verdict == "disagrees" and found.failing == {"n": 9}


@pytest.mark.parametrize(
    "points", [{"n": st.integers(2, 9)}, st.fixed_dictionaries({"n": st.integers(2, 9)})]
)
def test_a_test_of_hypothesis_hands_its_own_points_over(points: Any) -> None:
    seen: list[str] = []

    @settings(max_examples=3, database=None, deadline=None)
    @given(st.integers(2, 9))
    def repeated(n: int) -> None:
        assert check(harmonic, many_largest, {"n": n}, margin=0.2, vectorised=True).agrees
        with pytest.raises(ValueError, match="points must be plain inside a test that hypothesis repeats"):
            check(harmonic, many_largest, points, margin=0.2, vectorised=True)
        seen.append("both")

    repeated()
    assert seen

    @settings(max_examples=1, database=None, deadline=None, suppress_health_check=[HealthCheck.nested_given])
    @given(st.just(0.2))
    def allowed(margin: float) -> None:
        assert check(harmonic, many_largest, points, margin=margin, vectorised=True).agrees

    allowed()


def test_a_rival_near_at_every_example_is_refused() -> None:
    near = {"near": lambda n: 1.1 * harmonic(n)}
    with pytest.raises(ValueError, match=r"rival 'near' is 2 margins away"):
        check(harmonic, largest, {"n": st.integers(2, 3)}, margin=0.3, rivals=near)


def test_lambdas_have_a_name_in_the_call() -> None:
    found = check(lambda mean: -mean, lambda rng, mean: rng.normal(mean), {"mean": st.just(3)}, margin=0.1)

    assert found.reproduce.startswith("losscurv.check(predict, simulate, [{'mean': 3}], margin=0.1, error=")
