"""Rows: one verdict over all points, what a run could have seen, curves, and the command that repeats it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from simulate.monte_carlo import Point, SerialExecutor
from tests.verify.running.engine_runs import claim
from verify.judging.guards import MISFIT, UNTRUSTED
from verify.judging.judge import combine
from verify.model import Experiment, Kind, Tier, Verdict
from verify.results import Row
from verify.running import rows
from verify.running.engine import Session, Settings
from verify.running.rows import rerun_command


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


def rows_of(settings: Settings | None = None, **changes) -> list[Row]:
    plain = {"score": "x", "predict": lambda p: p.scale, "margin": 0.05, "axis": "scale"}
    made = claim(**{"experiment": EXPERIMENT, **plain, **changes})
    return Session((made,), settings or Settings(seed=1), SerialExecutor()).rows(made)


# --- verdicts


def test_any_point_disagrees_and_all_must_agree() -> None:
    assert combine(["agrees"] * 3) == "agrees"
    assert combine(["agrees", "undecided", "disagrees"]) == "disagrees"
    assert combine([]) == "undecided"  # nothing judged is nothing confirmed


IMAGES = {"experiment": replace(EXPERIMENT, data="digits")}
OTHER_IMAGES = {"data": "images.npz"}


@pytest.mark.parametrize(
    ("surprise", "verdict", "expected", "more", "settings"),
    [
        (True, "agrees", "disagrees", {}, {}),
        (False, "disagrees", "disagrees", {}, {}),
        (True, "undecided", "agrees", {}, {}),
        (True, "undecided", "disagrees", {}, {}),
        (False, "undecided", "undecided", {}, {}),
        # unless it may be, or its budget was lowered, or its images are others
        (True, "undecided", "agrees", {"may_be_undecided": " "}, {}),
        (False, "undecided", "agrees", {"may_be_undecided": "narrow"}, {}),
        (False, "undecided", "agrees", {}, {"replicates": 128}),
        (True, "undecided", "agrees", {}, {"replicates": 256}),
        (True, "undecided", "agrees", {}, OTHER_IMAGES),  # reads none
        (True, "undecided", "agrees", IMAGES, {}),
        (False, "undecided", "agrees", IMAGES, OTHER_IMAGES),
    ],
)
def test_a_verdict_other_than_expected_is_a_surprise(surprise, verdict, expected, more, settings) -> None:
    factor = {"agrees": 1.0, "disagrees": 2.0, "undecided": 1.05}[verdict]
    stated = {"margin": 0.0475, "expected": Verdict(expected), "finding": "known", **more}
    (row,) = rows_of(Settings(seed=1, **settings), predict=lambda p: factor * p.scale, **stated)
    assert (row.verdict, row.surprise) == (verdict, surprise)
    assert row.finding == "known" * (expected == "disagrees")


SIZES = (10, 20, 40, 80, 160)


def misfitting(block, point) -> dict[str, np.ndarray]:
    """Five sizes whose mean no two powers of them describe, by less than chance excludes or by more."""
    sizes = np.array(point.sizes, dtype=float)
    mean = 3 + 5 / sizes + np.array([0.0, 0.0, point.bent, 0.0, 0.0])
    return {"x": np.array([mean + rng.normal(0.0, 0.01, len(sizes)) for rng in block.streams])}


@pytest.mark.parametrize(
    ("bent", "theory", "may", "reason", "surprise"),
    [
        (0.006, 3.0, "", UNTRUSTED, False),  # once in a thousand runs of a right model
        (0.006, 3.5, "the fit is poor", UNTRUSTED, True),  # its mean lies five margins away
        (0.1, 3.0, "", MISFIT, True),
        (0.1, 3.0, "the fit is poor", MISFIT, False),
    ],
)
def test_a_size_model_that_chance_may_have_refused_is_no_surprise_unless_its_mean_is_far(
    bent, theory, may, reason, surprise
) -> None:
    (row,) = rows_of(
        experiment=replace(
            EXPERIMENT, simulate=misfitting, points=(Point(sizes=SIZES, bent=bent),), budget=96
        ),
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


# --- what a run could have seen


@pytest.mark.parametrize(("relative", "unit"), [(True, " %"), (False, "")])
def test_power_says_what_is_excluded_and_what_would_have_been_caught(relative: bool, unit: str) -> None:
    """|m - theta| + h and delta + 2 h at the least sharp point, in the unit of the margin."""
    (row,) = rows_of(relative=relative, margin=0.05 if relative else 0.3)
    size = [p.predicted / 100 if relative else 1.0 for p in row.points]
    half = [max(p.upper - p.measured, p.measured - p.lower) for p in row.points]
    both = list(zip(row.points, half, size, strict=True))
    excluded = max((abs(p.measured - p.predicted) + h) / s for p, h, s in both)
    caught = [(p.margin + 2 * h) / s for p, h, s in both]
    assert row.power == (
        f"A deviation beyond {excluded:.2g}{unit} is excluded by this run; "
        f"one beyond {max(caught):.2g}{unit} would have been caught."
    )
    assert row.sensitivity == pytest.approx(max(caught) / (100 if relative else 1))


def test_an_error_beyond_the_sensitivity_is_told_and_one_well_inside_it_is_not() -> None:
    """The number that the results give, tried on the same draws."""
    (row,) = rows_of()
    for times, verdict in ((1.001, "disagrees"), (0.1, "agrees")):
        factor = 1 + times * (row.sensitivity or math.nan)
        assert rows_of(predict=lambda p, f=factor: f * p.scale)[0].verdict == verdict


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
    assert (
        (row.sensitivity is not None) == ("finite" not in sentence) == ("on it would be seen." in row.power)
    )


def test_a_lower_bound_says_which_stronger_one_would_have_been_broken() -> None:
    (row,) = rows_of(kind=Kind.AT_LEAST, predict=lambda p: 0.8 * p.scale)
    tightest = min(row.points, key=lambda o: (o.measured - o.predicted) / o.margin)
    broken = tightest.upper + tightest.margin
    stronger = broken / tightest.predicted - 1
    assert row.verdict == "agrees"
    assert row.power == f"A bound stronger by {100 * stronger:.2g} % would have been broken."
    assert row.sensitivity == pytest.approx(stronger)


def test_nothing_is_claimed_without_an_interval() -> None:
    (row,) = rows_of(experiment=replace(EXPERIMENT, budget=32))
    assert (row.verdict, row.sensitivity) == ("undecided", None)
    assert row.power == "No interval yet: this run excludes nothing."


# --- curves


def test_curves_show_theory_rivals_and_the_other_reading_with_gaps_where_undefined() -> None:
    rivals = {
        "complex": lambda p: (p.scale - 3.6) ** 0.5,
        "raises": lambda p: math.sqrt(p.scale - 3.6),
        "warns": lambda p: float(np.sqrt(p.scale - 3.6)),
    }
    corrected, printed = rows_of(printed=lambda p: 2 * p.scale, finding="twice", rivals=rivals)
    assert [curve.at for curve in corrected.curves] == [{"kind": "a"}, {"kind": "b"}]
    curve = corrected.curves[0]
    assert curve.predicted == curve.x and set(curve.rivals) == {*rivals, "as our copy reads"}
    assert curve.rivals["as our copy reads"] == [rows._as_drawn(2 * x) for x in curve.x]
    roots = [rows._as_drawn(math.sqrt(x - 3.6)) if x >= 3.6 else math.nan for x in curve.x]
    for name in rivals:
        np.testing.assert_array_equal(curve.rivals[name], roots)
    assert min(curve.x) < 3.6 and set(printed.curves[0].rivals) == {"corrected"}
    assert rows_of(axis="")[0].curves == []


def test_a_curve_has_more_places_where_it_bends_on_the_scale_of_the_picture() -> None:
    """Far from 0 too: the range of the values counts, not their size."""
    grid = np.linspace(0.4, 1.0, 3)
    straight = rows._refined(grid.tolist(), lambda x: [100 + x])
    assert len(straight) == 2 * len(grid) - 1  # one look between each two places
    drawn = rows._refined(grid.tolist(), lambda x: [100 + x**3])
    x = np.linspace(0.4, 1.0, 999)
    lines = np.interp(x, list(drawn), [y for (y,) in drawn.values()])
    assert np.abs(lines - 100 - x**3).max() < 2 * rows.STRAIGHT * np.ptp(x**3)


def test_the_command_repeats_the_run() -> None:
    settings = Settings(seed=9, tier=Tier.FULL, replicates=77, device="cuda:1")
    words = "losscurv report --claim 'paper/a claim' --seed 9 --tier"
    assert rerun_command("paper/a claim", settings) == f"{words} full --replicates 77 --device cuda:1"
    assert rerun_command("paper/a claim", Settings(seed=9)) == f"{words} default"
