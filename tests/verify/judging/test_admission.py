"""The rules of admission, each with claims that break it and claims that just keep it, and what a claim costs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from simulate.monte_carlo import Block, Point, SerialExecutor
from tests.verify.judging.by_hand import PAIR, SIZES, claim, exact, identity, statistical
from verify.judging.admission import intervals, problems
from verify.judging.estimands import variance
from verify.judging.judge import PRINTED
from verify.model import ABSOLUTE, KNOWN, OURS, AnyClaim, Claim, Experiment, Kind, Passage, Standing, Verdict
from verify.running.engine import Session, Settings

POINT = Point(scale=3.7)
GRID = Point(scale=3.7, x=(0.3, 0.7, 1.9))

AT = {Kind.SETTLED: PAIR, Kind.LIMIT: SIZES, Kind.EXPONENT: SIZES}
BOUNDS = {Kind.NEVER_BELOW: 9.0, Kind.AT_LEAST: 9.0, Kind.NEVER_ABOVE: 1.0, Kind.AT_MOST: 1.0}
"""With a bound that is stronger than that of the claim."""

MORE = {
    Kind.LIMIT: {"terms": (1, 2)},
    Kind.EXPONENT: {"terms": (1,)},
    Kind.RATIO: {"score": ("x", "y")},
    Kind.PROPORTION: {"predict": lambda p: 0.3, "rivals": {"other": lambda p: 0.9}},
    Kind.GROUPS: {"statistic": variance, "group": 30},
    Kind.DISTRIBUTION: {
        "predict": lambda p: lambda t: np.clip(t, 0, 1),
        "rivals": {"wider": lambda p: lambda t: np.clip(t / 3, 0, 1)},
    },
    **{kind: {"rivals": {"stronger": lambda p, b=bound: b}} for kind, bound in BOUNDS.items()},
}


def ones(block: Block, point: Point) -> dict[str, np.ndarray]:
    return {"x": np.ones((len(block), len(point.x)))}


def drawn(*points: Point, **changes) -> Experiment:
    return Experiment(id="paper/x", replicate="one x", simulate=ones, points=points, budget=64, **changes)


def made(kind: Kind = Kind.MEAN, *points: Point, **changes) -> Claim:
    """A claim of a kind that keeps the rules, but for the changes."""
    plain = {
        "experiment": drawn(*(points or (AT.get(kind, POINT),))),
        "predict": lambda p: 3.7,
        "rivals": {"twice": lambda p: 7.4},
        "relative": kind not in ABSOLUTE,
    }
    found = claim(kind, **{**plain, **MORE.get(kind, {}), **changes})
    return replace(found, order=order_of(found)) if kind is Kind.LIMIT and "order" not in changes else found


def order_of(limit: Claim, **changes) -> Claim:
    plain = {"kind": Kind.EXPONENT, "terms": (1,), "offset": limit.predict, "predict": lambda p: -1.0}
    return replace(limit, **{**plain, "axis": "", "order": None, **changes})


def at(**parameters) -> Claim:
    """A mean at one point with these parameters."""
    return made(Kind.MEAN, Point(scale=3.7, **parameters))


def against(formula, **changes) -> Claim:
    return made(rivals={"r": formula}, **changes)


def doubling(count: int) -> Point:
    return Point(sizes=tuple(10 * 2**i for i in range(count)))


def sometimes(right: float, wrong: float):
    return lambda p: right if p.scale < 5 else wrong


SIXTH = Point(scale=7.3)
TERMS = "have the powers of the correction, two at least for a limit, if and only if it extrapolates"
GROUPED = "have a statistic and groups of at least 30, if and only if"
ABSOLUTE_MARGIN = "have an absolute margin below 1, which is in probability"
MEASURED = "be a mean or a bound, if it reads measured inputs"
NUMERICAL = "be a mean or a bound, if its scores have a numerical error"
MARGIN = "have a positive margin, at most 0.5 if relative"
TUPLE = "have a tuple of different values of 'x' at every point"
DOUBLE = "have sizes each twice the one before"
FAR = "have a point where rival 'r' is 2 margins away"
WRONG = "say what is wrong with the formula as our copy reads"
TOLERANCE = "have a tolerance in (0, 1), with its reason"
ORDER = "name the claim on the order of its correction: same experiment, the limit as its offset"
PILOT = "say what pilot draws set of its bound or margin"
LEAST = [
    (Kind.LIMIT, (1, 2), 5),
    (Kind.LIMIT, (1, 2, 3), 6),
    (Kind.EXPONENT, (1,), 4),
    (Kind.EXPONENT, (1, 2), 5),
]
LOOKED = ("below what was seen, 0.5", "networks were seen to lie above", "from a pilot", "had never seen")
MISPRINT = Passage(Standing.MISPRINT, "for all x", "below eq. (1)")
ELSEWHERE = "ours, beside eq. (6)"

BROKEN: list[tuple[AnyClaim, str]] = [
    # what fits no kind
    (made(Kind.RATIO, score="x"), "name numerator and denominator of its ratio"),
    *((made(k, score=("x", "y")), "name one score, as it is no ratio") for k in (Kind.MEAN, Kind.GROUPS)),
    *((made(k, inputs={"y": 1.0}), MEASURED) for k in (*AT, Kind.GROUPS, Kind.DISTRIBUTION, Kind.PROPORTION)),
    *(
        (made(k, numerical=0.1), NUMERICAL)
        for k in (Kind.EXPONENT, Kind.DISTRIBUTION, Kind.GROUPS, Kind.PROPORTION, Kind.RATIO)
    ),
    *((made(k, **c), ABSOLUTE_MARGIN) for k in ABSOLUTE for c in ({"relative": True}, {"margin": 1.0})),
    *((made(Kind.GROUPS, **c), GROUPED) for c in ({"statistic": None}, {"group": 29}, {"group": 0})),
    *((made(statistic=s, group=g), GROUPED) for s, g in ((variance, 30), (variance, 0), (None, 64))),
    *((made(k, offset=lambda p: 2.0), "be an exponent, if it has an") for k in (Kind.LIMIT, Kind.MEAN)),
    *((made(Kind.LIMIT, terms=t), "have terms of growing") for t in ((2, 1), (1, 1), (0, 1))),
    (made(Kind.EXPONENT, terms=(-1,)), "have terms of growing positive powers"),
    # with the leading term alone the interval of a limit misses the truth
    *((made(Kind.LIMIT, terms=t), TERMS) for t in ((), (1,))),
    *((made(k, terms=t), TERMS) for k, t in ((Kind.EXPONENT, ()), (Kind.SETTLED, (1, 2)), (Kind.MEAN, (1, 2)))),
    # sizes and vectors
    *((made(k, along=""), "say along which parameter its sizes run") for k in AT),
    *(
        (made(Kind.MEAN, GRID, p, along="x"), TUPLE)
        for p in (POINT, Point(x=3.7), Point(x=()), Point(x=(1.3, 1.3)), Point(x="ab"))
    ),
    *(
        (made(k, Point(sizes=sizes)), DOUBLE)
        for k in (Kind.LIMIT, Kind.EXPONENT)
        for sizes in ((10, 20, 40, 80, 150), (160, 80, 40, 20, 10), (0, 1, 2, 4, 8), (-2, -4, -8, -16, -32))
    ),
    *((made(k, doubling(n - 1), terms=t), f"have at least {n} sizes") for k, t, n in LEAST),
    *((made(Kind.SETTLED, Point(sizes=s)), "have two sizes") for s in ((80,), (40, 80, 160))),
    # a wrong order that is not resolved passes every test of fit: it has to be measured
    (made(Kind.LIMIT, order=None), ORDER),
    *(
        (made(Kind.LIMIT, order=order_of(made(Kind.LIMIT, order=None), **changes)), ORDER)
        for changes in (
            {"kind": Kind.MEAN},
            {"offset": None},
            {"offset": lambda p: 3.8},
            {"along": "others"},
            {"experiment": replace(drawn(SIZES), id="paper/other")},
        )
    ),
    # margins and rivals
    *((make(margin=m), MARGIN) for make in (made, statistical) for m in (0.0, -0.1, math.nan, 0.51)),
    (made(margin=math.inf, relative=False), MARGIN),
    *((make(margin_reason=""), "say why its margin is as wide as it is") for make in (made, statistical)),
    (made(predict=lambda p: 0.0), "have a margin in its own unit where it predicts 0, at Point(scale=3.7)"),
    (against(lambda p: 1.19 * 3.7), FAR),
    (made(rivals={"far": lambda p: 0.0, "r": lambda p: 3.7}), FAR),
    (statistical(rivals={"r": lambda p: 1.19 * p.scale}), FAR),
    (against(sometimes(3.7, 0.0)), FAR),
    *((made(k, rivals={"r": lambda p, b=7.4 - b: b}), "have a point where rival 'r' is a") for k, b in BOUNDS.items()),
    (made(Kind.NEVER_BELOW, rivals={"r": lambda p: 3.7}), "have a point where rival 'r' is a stronger bound"),
    (made(Kind.AT_LEAST, rivals={"r": lambda p: 4.3}), "have a point where rival 'r' is a bound stronger by 2"),
    (made(Kind.AT_MOST, rivals={"r": lambda p: 3.1}), "have a point where rival 'r' is a bound stronger by 2"),
    (made(Kind.NEVER_ABOVE, predict=lambda p: math.inf), "have a finite bound, at Point(scale=3.7)"),
    (made(Kind.NEVER_BELOW, predict=lambda p: -math.inf), "have a finite bound, at Point(scale=3.7)"),
    # the largest distance of x and x/3 on (0, 1) is 2/3
    (made(Kind.DISTRIBUTION, margin=0.34), "have a point where rival 'wider' is 2 margins away"),
    # axes
    (made(axis="width"), "have its axis 'width' among the parameters"),
    (made(Kind.LIMIT, axis="sizes"), "have one number at each point on its axis 'sizes'"),
    (made(Kind.MEAN, GRID, axis="x"), "have one number at each point on its axis 'x'"),
    (made(Kind.MEAN, Point(scale=3.7, law="a"), axis="law"), "have one number at each point on its axis 'law'"),
    *(
        (made(k, GRID, along="x", axis="x"), "have no axis: what is judged is a share or a distance")
        for k in (Kind.NEVER_BELOW, Kind.NEVER_ABOVE)
    ),
    # points
    (made(experiment=drawn()), "have points, all"),
    (made(Kind.MEAN, POINT, POINT), "have points, all different"),
    *((at(other=v), f"keep other away from {v:g}, where wrong formulas") for v in (0.0, 0.5, 1.0, 2.0)),
    (at(width=30, samples=30), "keep width and samples apart, both are 30"),
    (identity(points=()), "have at least one point"),
    *((make(examples=()), "have at least one point") for make in (exact, statistical)),
    *((make(tolerance=t), TOLERANCE) for make in (identity, exact) for t in (0.0, 1.0, -1.0)),
    *((make(tolerance_reason=""), TOLERANCE) for make in (identity, exact)),
    # forms as our copy reads, and passages
    *((made(printed=p), WRONG) for p in (lambda p: 0.0, "as_read")),
    (identity(printed="d"), WRONG),
    (made(printed=lambda p: 1.1 * 3.7, finding="a tenth"), f"have a point where rival '{PRINTED}' is 2 margins"),
    (identity(printed="d", finding="wrong"), "quote the passage that it contradicts"),
    (identity(finding="wrong"), "quote the passage that it contradicts"),
    (identity(expected=Verdict.DISAGREES), "quote the passage that it contradicts"),
    (identity(passage=Passage(Standing.OUTSIDE)), "quote the paper's own words, with their place"),
    (identity(passage=Passage(Standing.AS_STATED, "exactly", " ")), "quote the paper's own words, with their"),
    (identity(passage=Passage(Standing.MISPRINT, "so " * 31, "Eq 1")), "quote at most 30 words"),
    (identity(passage=Passage(Standing.CORRECTED, "exactly", "Eq 1")), "say what is corrected: a misprint"),
    (identity(printed="d", finding="wrong", passage=OURS), "say how the form as our copy reads stands"),
    (identity(passage=KNOWN, source=ELSEWHERE), "name in its source those who have shown it, with the year"),
    # its own paper is no other
    (
        identity(passage=KNOWN, id="poole2016/identity", source="Poole, Lahiri and Ganguli (2016), eq. (6)"),
        "name in its source those who have shown it, with the year",
    ),
    # a margin that comes from earlier draws says so
    *((make(margin_reason=words), PILOT) for make in (made, statistical) for words in LOOKED),
    *((make(tolerance_reason=words), PILOT) for make in (identity, exact) for words in LOOKED),
]  # fmt: skip

KEPT: list[AnyClaim] = [
    *map(made, Kind), identity(), exact(), statistical(),
    *(made(k, doubling(n), terms=t) for k, t, n in LEAST),
    made(Kind.MEAN, GRID, along="x"), made(Kind.MEAN, GRID, along="x", axis="x"),
    made(margin=3.0, relative=False, predict=lambda p: 0.0), made(Kind.DISTRIBUTION, margin=0.33),
    # one point, or one component, that tells a rival apart is enough, and so is a rival without a real value
    made(Kind.MEAN, POINT, SIXTH, rivals={"sometimes": sometimes(3.7, 0.0)}),
    made(Kind.MEAN, GRID, along="x", rivals={"root": lambda p: 3.7 * (1 if p.x < 1 else 2)}),
    *(against(lambda p, v=v: v) for v in (math.nan, math.inf, 1j)),
    made(Kind.NEVER_BELOW, POINT, SIXTH, rivals={"sometimes": sometimes(1.0, 6.4)}),
    made(Kind.NEVER_ABOVE, POINT, SIXTH, rivals={"sometimes": sometimes(9.0, -1.6)}),
    at(other=1), at(width=1, bias=True),
    made(experiment=drawn(Point(scale=3.7, other=1.0, width=30, samples=30), special="the limit")),
    identity(printed="d", finding="wrong", passage=MISPRINT),
    identity(passage=OURS, expected=Verdict.DISAGREES, finding="not at three layers"),
    identity(passage=KNOWN, source="Poole et al. (2016), eq. (6)"),
    identity(passage=KNOWN, id="poole2016/identity", source="Poole et al. (2016); Schoenholz et al. (2017)"),
    made(margin_reason=LOOKED[0], pilot="the margin"), made(margin_reason="violations in 5 % would be seen"),
]  # fmt: skip


@pytest.mark.parametrize(("broken", "rule"), BROKEN, ids=range(len(BROKEN)))
def test_a_rule_that_is_broken_is_named(broken: AnyClaim, rule: str) -> None:
    assert any(found.startswith(rule) for found in problems(broken))


@pytest.mark.parametrize("kept", KEPT, ids=range(len(KEPT)))
def test_who_keeps_the_rules_is_let_in(kept: AnyClaim) -> None:
    assert list(problems(kept)) == []


# --- the family


COSTS = {Kind.LIMIT: 0, Kind.EXPONENT: 0, Kind.SETTLED: 2}


@pytest.mark.parametrize("kind", Kind)
def test_intervals_of_each_kind(kind: Kind) -> None:
    """Model-based claims stand outside the family, a settled mean has an interval for its drift."""
    cost = COSTS.get(kind, 1)
    assert intervals([made(kind)]) == cost
    printed = {"printed": lambda p: 0.0, "finding": "wrong"}
    if kind is Kind.DISTRIBUTION:
        printed["printed"] = lambda p: lambda t: np.clip(t / 9, 0, 1)
    own = kind in ABSOLUTE
    assert intervals([made(kind, **printed)]) == (2 if own else cost)
    if kind is not Kind.RATIO:
        assert intervals([made(kind, printed="other", finding="wrong")]) == 2 * cost


def test_intervals_count_points_components_and_the_readings_that_need_their_own() -> None:
    vector = made(Kind.MEAN, GRID, Point(scale=7.3, x=(0.3, 0.7)), along="x")
    assert intervals([vector]) == 5
    bound = made(Kind.NEVER_ABOVE, GRID, along="x", printed=lambda p: 1.0, finding="wrong")
    assert intervals([bound]) == 6
    paired = {"inputs": {"y": 3.7}, "predict": lambda p: p.y, "finding": "wrong", "along": "x"}
    assert intervals([made(Kind.MEAN, GRID, **paired)]) == 3
    assert intervals([made(Kind.MEAN, GRID, **paired, printed=lambda p: 2 * p.y)]) == 6
    somewhere = {"printed": lambda p: p.y * (1 if p.x < 1 else 2)}
    assert intervals([made(Kind.MEAN, GRID, **paired, **somewhere)]) == 4
    assert intervals([identity(), exact(), statistical()]) == 1


@pytest.mark.parametrize("kind", [Kind.MEAN, Kind.NEVER_ABOVE])
def test_a_session_judges_the_intervals_that_are_counted(kind: Kind) -> None:
    tested = made(
        kind, GRID, along="x", printed=lambda p: 3.7 if p.x < 1 else 0.5, finding="wrong", rivals={}
    )
    rows = Session((tested,), Settings(seed=1), SerialExecutor()).rows(tested)
    assert [row.reading for row in rows] == ["corrected", PRINTED] and not any(row.error for row in rows)
    judged = sum(len(row.points) for row in rows)
    assert judged == (6 if kind is Kind.NEVER_ABOVE else 4)
    assert intervals([tested]) == (judged if kind is Kind.NEVER_ABOVE else 3)
    assert {row.expected for row in rows} == {Verdict.AGREES, Verdict.DISAGREES}
