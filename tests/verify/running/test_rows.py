"""Rows: one verdict over all points, what a run could have seen, curves, and the command that repeats it."""

import math
import shlex
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from simulate.monte_carlo import Point, SerialExecutor
from verify.judging.guards import MISFIT, UNTRUSTED
from verify.model import Claim, Experiment, Kind, Tier, Verdict
from verify.results import Row
from verify.running import rows
from verify.running.engine import Session, Settings
from verify.running.rows import combine, rerun_command


def steady(block, point) -> dict[str, np.ndarray]:
    """Replicates of mean `scale` whose spread is a fiftieth of it."""
    return {"x": np.array([point.scale * rng.normal(1.0, 0.02) for rng in block.streams])}


EXPERIMENT = Experiment(
    id="paper/steady",
    replicate="one x",
    simulate=steady,
    points=(Point(scale=3.7, kind="a"), Point(scale=7.3, kind="b")),
    budget=256,
)

SETTINGS = Settings(seed=1)


def rows_of(settings: Settings = SETTINGS, **changes) -> list[Row]:
    plain = {
        "id": "paper/claim",
        "entries": ("A1",),
        "source": "a paper",
        "statement": "x",
        "experiment": EXPERIMENT,
        "score": "x",
        "predict": lambda p: p.scale,
        "margin": 0.05,
        "margin_reason": "a test",
        "axis": "scale",
    }
    claim = Claim(**{**plain, **changes})
    return Session((claim,), settings, SerialExecutor()).rows(claim)


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        (["agrees"] * 3, "agrees"),
        (["agrees", "undecided"], "undecided"),
        (["agrees", "undecided", "disagrees"], "disagrees"),
        ([], "undecided"),  # nothing judged is nothing confirmed
    ],
)
def test_any_point_disagrees_and_all_must_agree(verdicts: list[str], verdict: str) -> None:
    assert combine(verdicts) == verdict


@pytest.mark.parametrize(
    ("predict", "expected", "verdict", "surprise"),
    [
        (lambda p: p.scale, Verdict.AGREES, "agrees", False),
        (lambda p: p.scale, Verdict.DISAGREES, "agrees", True),
        (lambda p: 2 * p.scale, Verdict.AGREES, "disagrees", True),
        (lambda p: 2 * p.scale, Verdict.DISAGREES, "disagrees", False),
        (lambda p: 1.05 * p.scale, Verdict.AGREES, "undecided", True),
        (lambda p: 1.05 * p.scale, Verdict.DISAGREES, "undecided", True),
        (lambda p: 1.05 * p.scale, Verdict.UNDECIDED, "undecided", False),
    ],
)
def test_a_verdict_other_than_expected_is_a_surprise(predict, expected, verdict, surprise) -> None:
    (row,) = rows_of(predict=predict, expected=expected, margin=0.0475, finding="known")
    assert (row.verdict, row.surprise) == (verdict, surprise)
    assert row.finding == ("known" if expected is Verdict.DISAGREES else "")


@pytest.mark.parametrize(
    ("why", "settings", "surprise"),
    [
        ("", Settings(seed=1), True),
        (" ", Settings(seed=1), True),
        ("its margin is narrow", Settings(seed=1), False),
        ("", Settings(seed=1, replicates=128), False),  # fewer than it declares
        ("", Settings(seed=1, replicates=256), True),
        ("", Settings(seed=1, data="images.npz"), True),  # reads none
    ],
)
def test_undecided_is_a_surprise_unless_it_may_be_or_its_budget_was_lowered(
    why: str, settings: Settings, surprise: bool
) -> None:
    (row,) = rows_of(settings, predict=lambda p: 1.05 * p.scale, margin=0.0475, may_be_undecided=why)
    assert (row.verdict, row.surprise, row.may_be_undecided) == ("undecided", surprise, why)


def test_other_images_than_those_that_a_claim_is_registered_with_may_leave_it_undecided() -> None:
    on_images = replace(EXPERIMENT, data="digits")
    off = {"predict": lambda p: 1.05 * p.scale, "margin": 0.0475, "experiment": on_images}
    for images, surprise in (("digits", True), ("images.npz", False)):
        (row,) = rows_of(Settings(seed=1, data=images), **off)
        assert (row.verdict, row.surprise) == ("undecided", surprise)


SIZES = (10, 20, 40, 80, 160)


def misfitting(block, point) -> dict[str, np.ndarray]:
    """Five sizes whose mean no two powers of them describe, by less than chance excludes or by more."""
    sizes = np.array(point.sizes, dtype=float)
    bent = np.array([0.0, 0.0, point.bent, 0.0, 0.0])
    drawn = [3 + 5 / sizes + bent + rng.normal(0.0, 0.01, len(sizes)) for rng in block.streams]
    return {"x": np.array(drawn)}


@pytest.mark.parametrize(
    ("bent", "theory", "may", "reason", "surprise"),
    [
        (0.0, 3.0, "", "", False),
        (0.006, 3.0, "", UNTRUSTED, False),  # once in a thousand runs of a right model
        (0.006, 3.5, "", UNTRUSTED, True),  # its mean lies five margins away
        (0.006, 3.5, "the fit is poor at few sizes", UNTRUSTED, True),
        (0.1, 3.0, "", MISFIT, True),
        (0.1, 3.0, "the fit is poor at few sizes", MISFIT, False),
    ],
)
def test_a_size_model_that_chance_may_have_refused_is_no_surprise_unless_its_mean_is_far(
    bent: float, theory: float, may: str, reason: str, surprise: bool
) -> None:
    spans = replace(EXPERIMENT, simulate=misfitting, points=(Point(sizes=SIZES, bent=bent),), budget=96)
    (row,) = rows_of(
        experiment=spans,
        kind=Kind.LIMIT,
        along="sizes",
        terms=(1, 2),
        axis="",
        predict=lambda _: theory,
        margin=0.1,
        relative=False,
        may_be_undecided=may,
    )
    assert (row.points[0].reason, row.surprise) == (reason, surprise)


def test_power_says_what_is_excluded_and_what_would_have_been_caught() -> None:
    """|m - theta| + h and delta + 2 h, relative, at the least sharp point."""
    (row,) = rows_of()
    half = [max(p.upper - p.measured, p.measured - p.lower) for p in row.points]
    excluded = max(
        (abs(p.measured - p.predicted) + h) / p.predicted for p, h in zip(row.points, half, strict=True)
    )
    caught = max((p.margin + 2 * h) / p.predicted for p, h in zip(row.points, half, strict=True))
    sharpest = min((p.margin + 2 * h) / p.predicted for p, h in zip(row.points, half, strict=True))
    assert row.power == (
        f"A deviation beyond {100 * excluded:.2g} % is excluded by this run; "
        f"one beyond {100 * caught:.2g} % would have been caught."
        f" A theory off by {100 * sharpest:.2g} % at every point would have been told from the truth."
    )
    assert row.sensitivity == pytest.approx(caught)


def test_an_error_beyond_the_sensitivity_is_told_and_one_well_inside_it_is_not() -> None:
    """The number that the results give, tried on the same draws."""
    (row,) = rows_of()
    assert row.sensitivity is not None
    for factor, verdict in (
        (1 + 1.001 * row.sensitivity, "disagrees"),
        (1 + 0.1 * row.sensitivity, "agrees"),
    ):
        (off,) = rows_of(predict=lambda p, factor=factor: factor * p.scale)
        assert off.verdict == verdict


def test_an_absolute_margin_says_its_sensitivity_in_its_own_unit() -> None:
    """A prediction may be an exponent or a share, and 0: a percentage of it says nothing."""
    (row,) = rows_of(relative=False, rivals={"far": lambda p: 9.0})
    caught = [p.margin + 2 * max(p.upper - p.measured, p.measured - p.lower) for p in row.points]
    assert row.sensitivity == pytest.approx(max(caught))
    assert f"one beyond {max(caught):.2g} would have been caught." in row.power and "%" not in row.power
    sharpest = f" A theory off by {min(caught):.2g} at every point would have been told from the truth."
    assert (sharpest in row.power) == (f"{min(caught):.2g}" != f"{max(caught):.2g}")


@pytest.mark.parametrize(
    ("factor", "sentence"),
    [
        (1.5, "At its worst point it is off by at least 49 % of what was measured."),
        (4, "At its worst point it is off by at least 3 times what was measured."),
        (math.inf, "It gives no finite number."),
        (1j, "It gives no finite number."),
    ],
)
def test_a_rejected_formula_says_by_how_much_it_is_off(factor: complex, sentence: str) -> None:
    _, row = rows_of(printed=lambda p: factor * p.scale, finding="wrong")
    assert row.verdict == "disagrees" and row.power.startswith(sentence)
    finite = "finite" not in sentence
    assert (row.sensitivity is not None) == finite == ("on it would be seen." in row.power)


def test_a_lower_bound_says_how_loose_it_is() -> None:
    (row,) = rows_of(kind=Kind.AT_LEAST, predict=lambda p: 0.8 * p.scale)
    assert row.verdict == "agrees"
    tightest = min(row.points, key=lambda o: (o.measured - o.predicted) / o.margin)
    broken = tightest.upper + tightest.margin
    assert (
        f"the bound {tightest.predicted:.3g}; a bound above {broken:.3g}, "
        f"stronger by {100 * (broken / tightest.predicted - 1):.2g} %, would have been broken." in row.power
    )
    assert row.sensitivity == pytest.approx(broken / tightest.predicted - 1)
    assert row.power.endswith("It holds, loose by a factor of 1.2.")


def test_nothing_is_claimed_without_an_interval() -> None:
    claim_rows = rows_of(experiment=Experiment(**{**vars(EXPERIMENT), "id": "paper/few", "budget": 32}))
    assert claim_rows[0].verdict == "undecided"
    assert claim_rows[0].power == "No interval yet: this run excludes nothing."
    assert claim_rows[0].sensitivity is None


def test_curves_show_theory_rivals_and_the_other_reading_with_gaps_where_undefined() -> None:
    corrected, printed = rows_of(
        printed=lambda p: 2 * p.scale, finding="twice", rivals={"complex": lambda p: (p.scale - 5) ** 0.5}
    )
    assert [curve.at for curve in corrected.curves] == [{"kind": "a"}, {"kind": "b"}]
    curve = corrected.curves[0]
    assert curve.predicted == curve.x and set(curve.rivals) == {"complex", "as our copy reads"}
    for x, value, twice in zip(
        curve.x, curve.rivals["complex"], curve.rivals["as our copy reads"], strict=True
    ):
        assert math.isnan(value) if x < 5 else value == pytest.approx(math.sqrt(x - 5))
        assert twice == rows._as_drawn(2 * x)
    assert set(printed.curves[0].rivals) == {"corrected"}
    assert rows_of(axis="")[0].curves == []


GRIDS = [(np.asarray, np.linspace(0.1, 1, 97)), (np.log, np.geomspace(0.01, 1, 97))]


@pytest.mark.parametrize(
    "formula",
    [
        lambda x: x**3,
        lambda x: abs(x - 0.61),
        lambda x: 1.0 * (x > 0.37),
        lambda x: math.exp(-9 * x),
        lambda x: 1e-4 / x,
    ],
)
@pytest.mark.parametrize(("axis", "grid"), GRIDS)
def test_a_curve_has_the_places_at_which_it_bends(
    formula: Callable[[float], float], axis: Callable[..., np.ndarray], grid: np.ndarray
) -> None:
    """Lines between them pass where the formula does on all of the grid: a corner or a step is as sharp as that."""
    places = grid.tolist()
    drawn = rows._bends(places, {places[11]}, lambda x: [formula(x), 1 - formula(x)])
    assert {places[0], places[11], places[-1]} <= drawn.keys() and list(drawn) == sorted(drawn)
    there = np.array(list(drawn.values()))
    whole = np.array([formula(x) for x in places])
    lines = np.interp(axis(grid), axis(np.array(list(drawn))), there[:, 0])
    assert np.abs(lines - whole).max() < 2 * rows.STRAIGHT * np.ptp(whole)
    assert np.allclose(there[:, 1], 1 - there[:, 0])


@pytest.mark.parametrize(("axis", "grid"), GRIDS)
def test_a_step_is_as_steep_as_it_can_be_drawn(axis: Callable[..., np.ndarray], grid: np.ndarray) -> None:
    """And no number is looked for between whole numbers that follow each other."""
    step = (grid[40] + grid[41]) / 2.1
    drawn = rows._bends(grid.tolist(), set(), lambda x: [float(x > step)])
    x, y = np.array(list(drawn)), np.array([values[0] for values in drawn.values()])
    (k,) = np.flatnonzero(np.diff(y))
    assert x[k] <= step < x[k + 1] and x[k + 1] - x[k] < (grid[41] - grid[40]) / 50

    whole = rows._bends([float(n) for n in range(1, 98)], set(), lambda n: [float(n > 40)], whole=True)
    assert all(n.is_integer() for n in whole) and {40.0, 41.0} <= whole.keys()


@pytest.mark.parametrize(("axis", "grid"), GRIDS)
def test_a_straight_line_needs_few_places_and_a_rival_that_bends_more(
    axis: Callable[..., np.ndarray], grid: np.ndarray
) -> None:
    places = grid.tolist()
    straight = rows._bends(places, {places[11]}, lambda x: [1 + float(axis(x))])
    bent = rows._bends(places, {places[11]}, lambda x: [1 + float(axis(x)), 9 * float(axis(x)) ** 2])
    assert len(straight) <= 27 < len(bent)


@pytest.mark.parametrize(("axis", "grid"), GRIDS)
def test_beside_a_prediction_of_0_a_rival_is_drawn_to_its_own_scale(
    axis: Callable[..., np.ndarray], grid: np.ndarray
) -> None:
    """Which then gives no scale, by which every other formula would bend at every place."""
    drawn = rows._bends(grid.tolist(), set(), lambda x: [0.0, float(axis(x)) ** 2])
    assert 2 < len(drawn) <= len(grid)
    scale = np.ptp([float(axis(x)) ** 2 for x in grid])
    between = np.interp(axis(grid), axis(np.array(list(drawn))), [values[1] for values in drawn.values()])
    assert np.abs(between - axis(grid) ** 2).max() < 2 * rows.STRAIGHT * scale


@pytest.mark.parametrize(
    "formula", [lambda p: math.sqrt(p.scale - 3.6), lambda p: float(np.log(p.scale - 3.6))]
)
def test_a_curve_has_gaps_where_its_formula_is_not_defined(formula) -> None:
    (row,) = rows_of(rivals={"rival": formula})
    gaps = [math.isnan(v) for v in row.curves[0].rivals["rival"]]
    assert row.verdict == "agrees" and gaps == [x < 3.6 for x in row.curves[0].x]


def test_the_command_repeats_the_run() -> None:
    settings = Settings(seed=9, tier=Tier.FULL, replicates=77, device="cuda:1")
    assert shlex.split(rerun_command("paper/a claim", settings)) == [
        "losscurv",
        "report",
        "--claim",
        "paper/a claim",
        "--seed",
        "9",
        "--tier",
        "full",
        "--replicates",
        "77",
        "--device",
        "cuda:1",
    ]
    assert "--replicates" not in rerun_command("a", Settings()) and "--device" not in rerun_command(
        "a", Settings()
    )
