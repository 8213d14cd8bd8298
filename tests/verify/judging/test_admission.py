"""The rules of admission, each with claims that break it and claims that just keep it, and what a claim costs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from simulate.monte_carlo import Point
from tests.verify.judging.by_hand import SIZES, claim, exact, identity, never, statistical
from verify.judging.admission import intervals, problems
from verify.judging.judge import PRINTED
from verify.model import ABSOLUTE, KNOWN, OURS, AnyClaim, Claim, Experiment, Kind, Passage, Standing, Verdict

POINT = Point(scale=3.7)
GRID = Point(scale=3.7, x=(0.3, 0.7, 1.9))

AT = {Kind.LIMIT: SIZES, Kind.EXPONENT: SIZES}
BOUNDS = {Kind.NEVER_BELOW: 9.0, Kind.AT_LEAST: 9.0, Kind.NEVER_ABOVE: 1.0, Kind.AT_MOST: 1.0}
"""With a bound that is stronger than that of the claim."""

MORE = {
    Kind.LIMIT: {"terms": (1, 2)},
    Kind.EXPONENT: {"terms": (1,)},
    Kind.RATIO: {"score": ("x", "y")},
    Kind.PROPORTION: {"predict": lambda p: 0.3, "rivals": {"other": lambda p: 0.9}},
    Kind.DISTRIBUTION: {
        "predict": lambda p: lambda t: np.clip(t, 0, 1),
        "rivals": {"wider": lambda p: lambda t: np.clip(t / 3, 0, 1)},
    },
    **{kind: {"rivals": {"stronger": lambda p, b=bound: b}} for kind, bound in BOUNDS.items()},
}


def drawn(*points: Point, **changes) -> Experiment:
    return Experiment(id="paper/x", replicate="one x", simulate=never, points=points, **changes)


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


def doubling(count: int) -> Point:
    return Point(sizes=tuple(10 * 2**i for i in range(count)))


def sometimes(right: float, wrong: float):
    return lambda p: right if p.scale < 5 else wrong


SIXTH = Point(scale=7.3)
ABSOLUTE_MARGIN = "have an absolute margin below 1, which is in probability"
MARGIN = "have a positive margin, at most 0.5 if relative"
TUPLE = "have a tuple of different values of 'x' at every point"
DOUBLE = "have sizes each twice the one before"
FAR = "have a point where rival 'r' is 2 margins away"
BOUND = "have a point where rival 'r' is a"
WRONG = "say what is wrong with the formula as our copy reads"
TOLERANCE = "have a tolerance in (0, 1), with its reason"
ORDER = "name the claim on the order of its correction: same experiment, the limit as its offset"
CONTRADICTS = "quote the passage that it contradicts"
OWN_WORDS = "quote the paper's own words, with their place"
SHOWN_BY = "name in its source those who have shown it, with the year"
PILOT = "say what pilot draws set of its bound or margin"
LEAST = [
    (Kind.LIMIT, (1, 2), 5),
    (Kind.LIMIT, (1, 2, 3), 6),
    (Kind.EXPONENT, (1,), 4),
    (Kind.EXPONENT, (1, 2), 5),
]
MISPRINT = Passage(Standing.MISPRINT, "for all x", "below eq. (1)")

BROKEN = [
    # what fits no kind
    (made(Kind.RATIO, score="x"), "name numerator and denominator of its ratio"),
    (made(score=("x", "y")), "name one score, as it is no ratio"),
    *((made(k, inputs={"y": 1.0}), "be a mean or a bound, if it reads") for k in (Kind.RATIO, Kind.PROPORTION)),
    *((made(k, numerical=0.1), "be a mean or a bound, if its scores") for k in (Kind.EXPONENT, Kind.RATIO)),
    *((made(k, **c), ABSOLUTE_MARGIN) for k in ABSOLUTE for c in ({"relative": True}, {"margin": 1.0})),
    (made(Kind.LIMIT, offset=lambda p: 2.0), "be an exponent, if it has an"),
    *((made(Kind.LIMIT, terms=t), "have terms of growing positive powers") for t in ((2, 1), (1, 1), (0, 1))),
    # with the leading term alone the interval of a limit misses the truth
    *(
        (made(k, terms=t), "have the powers of the correction, two at least for a limit, if and only if it")
        for k, t in ((Kind.LIMIT, ()), (Kind.LIMIT, (1,)), (Kind.EXPONENT, ()), (Kind.MEAN, (1, 2)))
    ),
    # sizes and vectors
    *((made(k, along=""), "say along which parameter its sizes run") for k in AT),
    *((made(Kind.MEAN, GRID, p, along="x"), TUPLE) for p in (POINT, Point(x=3.7), Point(x=()), Point(x=(1.3, 1.3)))),
    *((made(Kind.LIMIT, Point(sizes=s)), DOUBLE) for s in ((10, 20, 40, 80, 150), (-2, -4, -8, -16, -32))),
    *((made(k, doubling(n - 1), terms=t), f"have at least {n} sizes") for k, t, n in LEAST),
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
    *((make(margin=m), MARGIN) for make in (made, statistical) for m in (0.0, math.nan, 0.51)),
    (made(margin=math.inf, relative=False), MARGIN),
    (made(margin_reason=""), "say why its margin is as wide as it is"),
    (made(predict=lambda p: 0.0), "have a margin in its own unit where it predicts 0, at Point(scale=3.7)"),
    (made(rivals={"far": lambda p: 0.0, "r": lambda p: 1.19 * 3.7}), FAR),
    (statistical(rivals={"r": lambda p: 1.19 * p.scale}), FAR),
    *((made(k, rivals={"r": lambda p, b=7.4 - b: b}), BOUND) for k, b in BOUNDS.items()),
    (made(Kind.NEVER_BELOW, rivals={"r": lambda p: 3.7}), f"{BOUND} stronger bound"),
    *((made(k, rivals={"r": lambda p, b=b: b}), f"{BOUND} bound stronger by 2")
      for k, b in ((Kind.AT_LEAST, 4.3), (Kind.AT_MOST, 3.1))),
    (made(Kind.NEVER_ABOVE, predict=lambda p: math.inf), "have a finite bound, at Point(scale=3.7)"),
    # the largest distance of x and x/3 on (0, 1) is 2/3
    (made(Kind.DISTRIBUTION, margin=0.34), "have a point where rival 'wider' is 2 margins away"),
    # axes
    (made(axis="width"), "have its axis 'width' among the parameters"),
    (made(Kind.LIMIT, axis="sizes"), "have one number at each point on its axis 'sizes'"),
    (made(Kind.NEVER_BELOW, GRID, along="x", axis="x"), "have no axis: what is judged is a share or a distance"),
    # points
    (made(experiment=drawn()), "have points, all"),
    (made(Kind.MEAN, POINT, POINT), "have points, all different"),
    *((at(other=v), f"keep other away from {v:g}, where wrong formulas") for v in (0.0, 0.5, 1.0, 2.0)),
    (at(width=30, samples=30), "keep width and samples apart, both are 30"),
    (identity(points=()), "have at least one point"),
    *((make(examples=()), "have at least one point") for make in (exact, statistical)),
    *((exact(tolerance=t), TOLERANCE) for t in (0.0, 1.0)),
    (identity(tolerance_reason=""), TOLERANCE),
    # forms as our copy reads, and passages
    *((made(printed=p), WRONG) for p in (lambda p: 0.0, "as_read")),
    (identity(printed="d"), WRONG),
    (made(printed=lambda p: 1.1 * 3.7, finding="a tenth"), f"have a point where rival '{PRINTED}' is 2 margins"),
    *((identity(**c), CONTRADICTS) for c in (
        {"printed": "d", "finding": "wrong"}, {"finding": "wrong"}, {"expected": Verdict.DISAGREES}
    )),
    *((identity(passage=Passage(Standing.AS_STATED, *w)), OWN_WORDS) for w in ((), ("exactly", " "))),
    (identity(passage=Passage(Standing.MISPRINT, "so " * 31, "Eq 1")), "quote at most 30 words"),
    (identity(passage=Passage(Standing.CORRECTED, "exactly", "Eq 1")), "say what is corrected: a misprint"),
    (identity(printed="d", finding="wrong", passage=OURS), "say how the form as our copy reads stands"),
    (identity(passage=KNOWN, source="ours, beside eq. (6)"), SHOWN_BY),
    # its own paper is no other
    (identity(passage=KNOWN, id="poole2016/identity", source="Poole, Lahiri and Ganguli (2016), eq. (6)"), SHOWN_BY),
    # a margin that comes from earlier draws says so
    *((made(margin_reason=words), PILOT) for words in (
        "below what was seen, 0.5", "networks were seen to lie above", "from a pilot", "had never seen"
    )),
    (exact(tolerance_reason="from a pilot"), PILOT),
]  # fmt: skip

KEPT = [
    *map(made, Kind), identity(), exact(), statistical(),
    *(made(k, doubling(n), terms=t) for k, t, n in LEAST),
    made(Kind.MEAN, GRID, along="x", axis="x"),
    made(margin=3.0, relative=False, predict=lambda p: 0.0), made(Kind.DISTRIBUTION, margin=0.33),
    # one point, or one component, that tells a rival apart is enough, and so is a rival without a real value
    made(Kind.MEAN, POINT, SIXTH, rivals={"sometimes": sometimes(3.7, 0.0)}),
    made(Kind.MEAN, GRID, along="x", rivals={"root": lambda p: 3.7 * (1 if p.x < 1 else 2)}),
    *(made(rivals={"r": lambda p, v=v: v}) for v in (math.nan, 1j)),
    made(Kind.NEVER_BELOW, POINT, SIXTH, rivals={"sometimes": sometimes(1.0, 6.4)}),
    at(other=1), at(width=1, bias=True),
    made(experiment=drawn(Point(scale=3.7, other=1.0, width=30, samples=30), special="the limit")),
    identity(printed="d", finding="wrong", passage=MISPRINT),
    identity(passage=OURS, expected=Verdict.DISAGREES, finding="not at three layers"),
    identity(passage=KNOWN, id="poole2016/identity", source="Poole et al. (2016); Schoenholz et al. (2017)"),
    made(margin_reason="from a pilot", pilot="the margin"), made(margin_reason="violations in 5 % would be seen"),
]  # fmt: skip


@pytest.mark.parametrize(("broken", "rule"), BROKEN, ids=range(len(BROKEN)))
def test_a_rule_that_is_broken_is_named(broken: AnyClaim, rule: str) -> None:
    assert any(found.startswith(rule) for found in problems(broken))


@pytest.mark.parametrize("kept", KEPT, ids=range(len(KEPT)))
def test_who_keeps_the_rules_is_let_in(kept: AnyClaim) -> None:
    assert list(problems(kept)) == []


# --- the family


@pytest.mark.parametrize("kind", Kind)
def test_intervals_of_each_kind(kind: Kind) -> None:
    """Model-based claims stand outside the family."""
    cost = {Kind.LIMIT: 0, Kind.EXPONENT: 0}.get(kind, 1)
    assert intervals([made(kind)]) == cost
    if kind is not Kind.RATIO:
        assert intervals([made(kind, printed="other", finding="wrong")]) == 2 * cost


def test_intervals_count_points_components_and_the_readings_that_need_their_own() -> None:
    vector = made(Kind.MEAN, GRID, Point(scale=7.3, x=(0.3, 0.7)), along="x")
    assert intervals([vector]) == 5
    assert intervals([identity(), exact(), statistical()]) == 1
    paired = {"inputs": {"y": 3.7}, "predict": lambda p: p.y, "along": "x"}
    for printed, count in ((None, 3), (lambda p: 2 * p.y, 6), (lambda p: p.y * (1 if p.x < 1 else 2), 4)):
        assert intervals([made(Kind.MEAN, GRID, **paired, printed=printed, finding="wrong")]) == count
