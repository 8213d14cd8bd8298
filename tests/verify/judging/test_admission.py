"""The rules for kinds of claims, each with a claim that breaks it, and the intervals that each kind costs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from simulate.monte_carlo import Block, Point, SerialExecutor
from verify.claims.registry import admit, intervals
from verify.judging.admission import problems
from verify.judging.estimands import variance
from verify.judging.judge import PRINTED
from verify.model import ABSOLUTE, Claim, Experiment, Kind, Verdict
from verify.model.inventory import Entry
from verify.running.engine import Session, Settings

SIZES = Point(sizes=(10, 20, 40, 80, 160))
PAIR = Point(sizes=(80, 160))
POINT = Point(scale=3.7)
GRID = Point(scale=3.7, x=(0.3, 0.7, 1.9))

AT = {Kind.SETTLED: PAIR, Kind.LIMIT: SIZES, Kind.EXPONENT: SIZES}
MORE = {
    Kind.SETTLED: {"along": "sizes"},
    Kind.LIMIT: {"along": "sizes", "terms": (1, 2)},
    Kind.EXPONENT: {"along": "sizes", "terms": (1,)},
    Kind.RATIO: {"score": ("x", "y")},
    Kind.PROPORTION: {"predict": lambda p: 0.3, "rivals": {"other": lambda p: 0.9}},
    Kind.GROUPS: {"statistic": variance, "group": 30},
    Kind.DISTRIBUTION: {
        "relative": False,
        "predict": lambda p: lambda t: np.clip(t, 0, 1),
        "rivals": {"wider": lambda p: lambda t: np.clip(t / 3, 0, 1)},
    },
    Kind.NEVER_BELOW: {"relative": False, "rivals": {"stronger": lambda p: 9.0}},
    Kind.NEVER_ABOVE: {"relative": False, "rivals": {"stronger": lambda p: 1.0}},
    Kind.AT_LEAST: {"rivals": {"stronger": lambda p: 9.0}},
    Kind.AT_MOST: {"rivals": {"stronger": lambda p: 1.0}},
}


ENTRIES = {"paper": (Entry("A1", "one", "open"),)}


def ones(block: Block, point: Point) -> dict[str, np.ndarray]:
    return {"x": np.ones((len(block), len(point.x)))}


def claim(kind: Kind, *points: Point, **changes) -> Claim:
    plain = {
        "id": "paper/claim",
        "entries": ("A1",),
        "source": "a paper",
        "statement": "x",
        "experiment": Experiment(
            id="paper/x", replicate="one x", simulate=ones, points=points or (AT.get(kind, POINT),), budget=64
        ),
        "kind": kind,
        "score": "x",
        "predict": lambda p: 3.7,
        "margin": 0.1,
        "margin_reason": "a test",
        "rivals": {"twice": lambda p: 7.4},
    }
    made = Claim(**{**plain, **MORE.get(kind, {}), **changes})
    return replace(made, order=order_of(made)) if kind is Kind.LIMIT and "order" not in changes else made


def order_of(limit: Claim, **changes) -> Claim:
    order = replace(
        limit,
        kind=Kind.EXPONENT,
        terms=(1,),
        offset=limit.predict,
        predict=lambda p: -1.0,
        axis="",
        order=None,
    )
    return replace(order, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": Kind.MEAN},
        {"offset": None},
        {"offset": lambda p: 3.8},
        {"along": "others"},
        {"experiment": Experiment(id="paper/other", replicate="one x", simulate=ones, points=(SIZES,))},
    ],
)
def test_a_limit_names_the_claim_on_its_order(changes: dict) -> None:
    """A wrong order that is not resolved passes every test of fit: it has to be measured."""
    rule = "name the claim on the order of its correction: same experiment, the limit as its offset"
    limit = claim(Kind.LIMIT)
    assert list(problems(replace(limit, order=order_of(limit, **changes)))) == [rule]
    assert list(problems(replace(limit, order=None))) == [rule]


@pytest.mark.parametrize("kind", Kind)
def test_a_claim_of_each_kind_is_let_in(kind: Kind) -> None:
    assert list(problems(claim(kind))) == []


@pytest.mark.parametrize(
    ("kind", "changes", "rule"),
    [
        (Kind.RATIO, {"score": "x"}, "name numerator and denominator of its ratio"),
        (Kind.MEAN, {"score": ("x", "y")}, "name one score, as it is no ratio"),
        (Kind.GROUPS, {"score": ("x", "y")}, "name one score, as it is no ratio"),
        (Kind.EXPONENT, {"numerical": 0.1}, "be a mean or a bound, if its scores have a numerical error"),
        (Kind.DISTRIBUTION, {"numerical": 0.1}, "be a mean or a bound, if its scores have a numerical error"),
        (Kind.GROUPS, {"numerical": 0.1}, "be a mean or a bound, if its scores have a numerical error"),
        *((k, {"inputs": {"y": 1.0}}, "be a mean or a bound, if it reads measured inputs") for k in AT),
        (Kind.GROUPS, {"inputs": {"y": 1.0}}, "be a mean or a bound, if it reads measured inputs"),
        (Kind.DISTRIBUTION, {"inputs": {"y": 1.0}}, "be a mean or a bound, if it reads measured inputs"),
        *(
            (kind, changes, "have an absolute margin below 1, which is in probability")
            for kind in (Kind.DISTRIBUTION, Kind.NEVER_BELOW, Kind.NEVER_ABOVE)
            for changes in ({"relative": True}, {"margin": 1.0})
        ),
        (Kind.GROUPS, {"statistic": None}, "have a statistic and groups of at least 30, if and only if"),
        (Kind.GROUPS, {"group": 29}, "have a statistic and groups of at least 30, if and only if"),
        (Kind.GROUPS, {"group": 0}, "have a statistic and groups of at least 30, if and only if"),
        (
            Kind.MEAN,
            {"statistic": variance, "group": 30},
            "have a statistic and groups of at least 30, if and",
        ),
        (Kind.MEAN, {"statistic": variance}, "have a statistic and groups of at least 30, if and only if"),
        (Kind.MEAN, {"group": 64}, "have a statistic and groups of at least 30, if and only if"),
        (Kind.LIMIT, {"offset": lambda p: 2.0}, "be an exponent, if it has an offset"),
        (Kind.MEAN, {"offset": lambda p: 2.0}, "be an exponent, if it has an offset"),
        (Kind.LIMIT, {"terms": (2, 1)}, "have terms of growing positive powers"),
        (Kind.LIMIT, {"terms": (1, 1)}, "have terms of growing positive powers"),
        (Kind.LIMIT, {"terms": (0, 1)}, "have terms of growing positive powers"),
        (Kind.EXPONENT, {"terms": (-1,)}, "have terms of growing positive powers"),
    ],
)
def test_what_fits_no_kind_is_refused(kind: Kind, changes: dict, rule: str) -> None:
    with pytest.raises(ValueError, match=f"claim paper/claim must {rule}"):
        admit([claim(kind, **changes)], ENTRIES)


@pytest.mark.parametrize(
    ("kind", "terms"),
    [
        (Kind.LIMIT, ()),
        (Kind.LIMIT, (1,)),  # with the leading one alone the interval misses the truth
        (Kind.EXPONENT, ()),
        (Kind.SETTLED, (1, 2)),
        (Kind.MEAN, (1, 2)),
    ],
)
def test_the_powers_of_the_correction_are_declared(kind: Kind, terms: tuple[float, ...]) -> None:
    rule = "have the powers of the correction, two at least for a limit, if and only if it extrapolates"
    assert rule in list(problems(claim(kind, terms=terms)))


@pytest.mark.parametrize("kind", AT)
def test_sizes_run_along_a_parameter(kind: Kind) -> None:
    assert "say along which parameter its sizes run" in list(problems(claim(kind, along="")))


@pytest.mark.parametrize(
    "point", [Point(scale=3.7), Point(x=3.7), Point(x=()), Point(x=(1.3, 1.3)), Point(x="ab")], ids=repr
)
def test_a_vector_runs_along_a_tuple_of_different_values(point: Point) -> None:
    rule = "have a tuple of different values of 'x' at every point"
    assert rule in list(problems(claim(Kind.MEAN, GRID, point, along="x")))
    assert rule not in list(problems(claim(Kind.MEAN, GRID, along="x")))


@pytest.mark.parametrize(
    "sizes", [(10, 20, 40, 80, 150), (160, 80, 40, 20, 10), (0, 1, 2, 4, 8), (-2, -4, -8, -16, -32)]
)
@pytest.mark.parametrize("kind", [Kind.LIMIT, Kind.EXPONENT])
def test_sizes_double(kind: Kind, sizes: tuple[int, ...]) -> None:
    assert "have sizes each twice the one before" in list(problems(claim(kind, Point(sizes=sizes))))


@pytest.mark.parametrize(
    ("kind", "terms", "least"),
    [
        (Kind.LIMIT, (1, 2), 5),
        (Kind.LIMIT, (1, 2, 3), 6),
        (Kind.EXPONENT, (1,), 4),
        (Kind.EXPONENT, (1, 2), 5),
    ],
)
def test_sizes_leave_a_contrast_when_the_smallest_is_dropped(
    kind: Kind, terms: tuple[float, ...], least: int
) -> None:
    for count in (least - 1, least):
        found = list(problems(claim(kind, Point(sizes=tuple(10 * 2**i for i in range(count))), terms=terms)))
        assert found == ([f"have at least {least} sizes"] if count < least else [])


@pytest.mark.parametrize("sizes", [(80,), (40, 80, 160)])
def test_a_mean_settles_between_two_sizes(sizes: tuple[int, ...]) -> None:
    assert list(problems(claim(Kind.SETTLED, Point(sizes=sizes)))) == ["have two sizes"]


@pytest.mark.parametrize(("kind", "weaker"), [(Kind.NEVER_BELOW, 1.0), (Kind.NEVER_ABOVE, 9.0)])
def test_a_rival_of_a_bound_on_every_replicate_is_stronger_somewhere(kind: Kind, weaker: float) -> None:
    rivals = {"weaker": lambda p: weaker}
    assert list(problems(claim(kind, rivals=rivals))) == [
        "have a point where rival 'weaker' is a stronger bound"
    ]
    assert list(problems(claim(kind, rivals={"same": lambda p: 3.7}))) == [
        "have a point where rival 'same' is a stronger bound"
    ]
    stronger_at_one = {"sometimes": lambda p: weaker if p.scale < 5 else 7.4 - weaker}
    assert list(problems(claim(kind, POINT, Point(scale=7.3), rivals=stronger_at_one))) == []


@pytest.mark.parametrize(("kind", "bound"), [(Kind.NEVER_ABOVE, math.inf), (Kind.NEVER_BELOW, -math.inf)])
def test_a_bound_that_nothing_can_violate_is_refused(kind: Kind, bound: float) -> None:
    with pytest.raises(
        ValueError, match=r"claim paper/claim must have a finite bound, at Point\(scale=3.7\)"
    ):
        admit([claim(kind, predict=lambda p: bound)], ENTRIES)


@pytest.mark.parametrize(("kind", "weaker", "near"), [(Kind.AT_LEAST, 0.1, 4.3), (Kind.AT_MOST, 9.0, 3.1)])
def test_a_rival_of_a_bound_on_a_mean_is_stronger_by_two_margins(
    kind: Kind, weaker: float, near: float
) -> None:
    found = list(problems(claim(kind, rivals={"weaker": lambda p: weaker})))
    assert found == ["have a point where rival 'weaker' is a bound stronger by 2 margins"]
    rule = "have a point where rival 'near' is a bound stronger by 2 margins"
    assert rule in list(problems(claim(kind, rivals={"near": lambda p: near})))


def test_rival_distributions_are_two_margins_apart() -> None:
    """The largest distance of x and x/3 on (0, 1) is 2/3."""
    assert list(problems(claim(Kind.DISTRIBUTION, margin=0.33))) == []
    assert list(problems(claim(Kind.DISTRIBUTION, margin=0.34))) == [
        "have a point where rival 'wider' is 2 margins away"
    ]


def test_a_rival_need_be_told_apart_at_one_component_only() -> None:
    rivals = {"root": lambda p: 3.7 * (1 if p.x < 1 else 2)}
    assert list(problems(claim(Kind.MEAN, GRID, along="x", rivals=rivals))) == []
    near = Point(scale=3.7, x=(0.3, 0.7))
    assert list(problems(claim(Kind.MEAN, near, along="x", rivals=rivals))) == [
        "have a point where rival 'root' is 2 margins away"
    ]


def test_an_axis_holds_one_number_at_each_component() -> None:
    assert list(problems(claim(Kind.MEAN, GRID, along="x", axis="x"))) == []
    rule = "have one number at each point on its axis"
    assert list(problems(claim(Kind.LIMIT, axis="sizes"))) == [f"{rule} 'sizes'"]
    assert list(problems(claim(Kind.MEAN, GRID, axis="x"))) == [f"{rule} 'x'"]
    assert list(problems(claim(Kind.MEAN, Point(scale=3.7, law="a"), axis="law"))) == [f"{rule} 'law'"]
    for kind in (Kind.NEVER_BELOW, Kind.NEVER_ABOVE):  # measured are shares, the bound is in another unit
        (rule,) = problems(claim(kind, GRID, along="x", axis="x"))
        assert rule.startswith("have no axis: what is judged is a share or a distance")
    assert list(problems(claim(Kind.MEAN, GRID, along="x", axis="y"))) == [
        "have its axis 'y' among the parameters"
    ]


# --- the family


COSTS = {Kind.LIMIT: 0, Kind.EXPONENT: 0, Kind.SETTLED: 2}


@pytest.mark.parametrize("kind", Kind)
def test_intervals_of_each_kind(kind: Kind) -> None:
    """Model-based claims stand outside the family, a settled mean has an interval for its drift."""
    cost = COSTS.get(kind, 1)
    assert intervals([claim(kind)]) == cost
    printed = {"printed": lambda p: 0.0, "finding": "wrong"}
    if kind is Kind.DISTRIBUTION:
        printed["printed"] = lambda p: lambda t: np.clip(t / 9, 0, 1)
    own = kind in ABSOLUTE
    assert intervals([claim(kind, **printed)]) == (2 if own else cost)
    if kind is not Kind.RATIO:
        assert intervals([claim(kind, printed="other", finding="wrong")]) == 2 * cost


def test_a_vector_has_an_interval_for_each_component_where_it_is_judged() -> None:
    vector = claim(Kind.MEAN, GRID, Point(scale=7.3, x=(0.3, 0.7)), along="x")
    assert intervals([vector]) == 5
    bound = claim(Kind.NEVER_ABOVE, GRID, along="x", printed=lambda p: 1.0, finding="wrong")
    assert intervals([bound]) == 6
    paired = {"inputs": {"y": 3.7}, "predict": lambda p: p.y, "finding": "wrong"}
    assert intervals([claim(Kind.MEAN, GRID, along="x", **paired, printed=lambda p: 2 * p.y)]) == 6
    somewhere = {"printed": lambda p: p.y * (1 if p.x < 1 else 2)}
    assert intervals([claim(Kind.MEAN, GRID, along="x", **paired, **somewhere)]) == 4


@pytest.mark.parametrize("kind", [Kind.MEAN, Kind.NEVER_ABOVE])
def test_a_session_judges_the_intervals_that_are_counted(kind: Kind) -> None:
    tested = claim(
        kind, GRID, along="x", printed=lambda p: 3.7 if p.x < 1 else 0.5, finding="wrong", rivals={}
    )
    rows = Session((tested,), Settings(seed=1), SerialExecutor()).rows(tested)
    assert [row.reading for row in rows] == ["corrected", PRINTED] and not any(row.error for row in rows)
    judged = sum(len(row.points) for row in rows)
    assert judged == (6 if kind is Kind.NEVER_ABOVE else 4)
    assert intervals([tested]) == (judged if kind is Kind.NEVER_ABOVE else 3)
    assert {row.expected for row in rows} == {Verdict.AGREES, Verdict.DISAGREES}
