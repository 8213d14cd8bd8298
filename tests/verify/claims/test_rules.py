"""The rules a claim must keep to be let in."""

import math
from dataclasses import replace

import pytest

from simulate.monte_carlo import Point
from verify.claims import registry
from verify.claims.registry import admit
from verify.judging import admission
from verify.model import (
    FAMILY_SIZE,
    KNOWN,
    OURS,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    Kind,
    Passage,
    Standing,
    StatisticalProperty,
    Verdict,
)
from verify.model.domains import Between
from verify.model.inventory import Entry

ENTRIES = {
    "paper": (Entry("A1", "one", "open"), Entry("A2", "two", "open")),
    "other": (Entry("B1", "x", "open"),),
}


def never(block, point):
    raise AssertionError("nothing is simulated here")


def experiment(*points: Point, **changes) -> Experiment:
    plain = {
        "id": "paper/x",
        "replicate": "one x",
        "simulate": never,
        "points": points or (Point(scale=3.7),),
    }
    return Experiment(**{**plain, **changes})


COMMON = {"entries": ("A1",), "source": "a paper", "statement": "x"}
MISPRINT = Passage(Standing.MISPRINT, "for all x", "below eq. (1)")
EXPERIMENT = experiment()


def claim(**changes) -> Claim:
    plain = {
        "id": "paper/claim",
        "experiment": EXPERIMENT,
        "score": "x",
        "predict": lambda p: p.scale,
        "margin": 0.1,
        "margin_reason": "a test",
        "rivals": {"twice": lambda p: 2 * p.scale},
    }
    return Claim(**{**COMMON, **plain, **changes})


def identity(**changes) -> Identity:
    plain = {
        "id": "paper/identity",
        "routes": never,
        "points": (Point(dim=3),),
        "tolerance": 1e-9,
        "tolerance_reason": "rounding",
    }
    return Identity(**{**COMMON, **plain, **changes})


def exact(**changes) -> ExactProperty:
    plain = {
        "id": "paper/exact",
        "domain": {},
        "violation": lambda rng, p: 0.0,
        "examples": (Point(dim=3),),
        "tolerance": 1e-9,
        "tolerance_reason": "rounding",
        "rivals": {"r": lambda rng, p: 1.0},
    }
    return ExactProperty(**{**COMMON, **plain, **changes})


def statistical(**changes) -> StatisticalProperty:
    plain = {
        "id": "paper/statistical",
        "domain": {"scale": Between(1.1, 3.0)},
        "simulate": never,
        "replicate": "one x",
        "examples": (Point(scale=3.7),),
        "score": "x",
        "predict": lambda p: p.scale,
        "margin": 0.1,
        "margin_reason": "a test",
        "rivals": {"twice": lambda p: 2 * p.scale},
    }
    return StatisticalProperty(**{**COMMON, **plain, **changes})


def test_claims_that_keep_the_rules_are_admitted() -> None:
    admit(
        [claim(), claim(id="paper/second", entries=("other/B1", "A2")), identity(), exact(), statistical()],
        ENTRIES,
    )
    admit([], ENTRIES)


@pytest.mark.parametrize("make", [claim, identity, exact, statistical])
@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"id": "nowhere/claim"}, r"claim nowhere/claim must begin with one of paper, other"),
        ({"entries": ()}, r"claim paper/\w+ must cover an entry of the inventory"),
        ({"entries": ("A1", "A3")}, r"claim paper/\w+ must cover known entries, not A3"),
        ({"entries": ("other/A1",)}, r"claim paper/\w+ must cover known entries, not other/A1"),
        ({"entries": ("nowhere/A1",)}, r"claim paper/\w+ must cover known entries, not nowhere/A1"),
        ({"source": ""}, r"claim paper/\w+ must name its source and statement"),
        ({"statement": ""}, r"claim paper/\w+ must name its source and statement"),
    ],
)
def test_what_every_claim_must_say(make, changes: dict, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        admit([make(**changes)], ENTRIES)


@pytest.mark.parametrize("make", [claim, identity, exact, statistical])
@pytest.mark.parametrize(
    "words", ["below what was seen, 0.5", "networks were seen to lie above", "from a pilot", "had never seen"]
)
def test_whose_margin_comes_from_earlier_draws_says_so(make, words: str) -> None:
    reason = "margin_reason" if make in (claim, statistical) else "tolerance_reason"
    with pytest.raises(ValueError, match="must say what pilot draws set of its bound or margin"):
        admit([make(**{reason: words})], ENTRIES)
    admit([make(**{reason: words}, pilot="the margin")], ENTRIES)
    admit([make(**{reason: "violations in 5 % would be seen"})], ENTRIES)


@pytest.mark.parametrize("make", [claim, exact, statistical])
def test_every_formula_has_a_rival(make) -> None:
    with pytest.raises(ValueError, match=r"claim paper/\w+ must name a rival formula that it rejects"):
        admit([make(rivals={})], ENTRIES)


def test_ids_are_unique() -> None:
    with pytest.raises(ValueError, match="claim paper/claim must have an id of its own"):
        admit([claim(), claim()], ENTRIES)


def test_claims_on_one_stream_share_one_experiment() -> None:
    """Two experiments under one id would draw the same streams for different things."""
    with pytest.raises(ValueError, match="claim paper/b must share one experiment 'paper/x' with the claims"):
        admit([claim(id="paper/a"), claim(id="paper/b", experiment=experiment())], ENTRIES)


@pytest.mark.parametrize("make", [claim, statistical])
@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"margin": 0.0}, "have a positive margin, at most 0.5 if relative"),
        ({"margin": -0.1}, "have a positive margin"),
        ({"margin": math.nan}, "have a positive margin"),
        ({"margin": math.inf, "relative": False}, "have a positive margin"),
        ({"margin": 0.51}, "have a positive margin, at most 0.5 if relative"),
        ({"margin_reason": ""}, "say why its margin is as wide as it is"),
        (
            {"predict": lambda p: 0.0},
            r"have a margin in its own unit where it predicts 0, at Point\(scale=3.7\)",
        ),
        ({"rivals": {"near": lambda p: 1.19 * p.scale}}, "have a point where rival 'near' is 2 margins away"),
        (
            {"rivals": {"far": lambda p: 0.0, "same": lambda p: p.scale}},
            "have a point where rival 'same' is 2 margins away",
        ),
    ],
)
def test_margins_and_rivals(make, changes: dict, rule: str) -> None:
    with pytest.raises(ValueError, match=rf"claim paper/\w+ must {rule}"):
        admit([make(**changes)], ENTRIES)


def test_an_absolute_margin_may_be_wide_and_the_prediction_zero() -> None:
    admit([claim(margin=3.0, relative=False, predict=lambda p: 0.0)], ENTRIES)


def test_one_point_that_tells_a_rival_apart_is_enough() -> None:
    def rival(p: Point) -> float:
        return p.scale if p.scale < 5 else 0.0

    apart = experiment(Point(scale=3.7), Point(scale=7.3))
    admit([claim(experiment=apart, rivals={"sometimes": rival})], ENTRIES)
    with pytest.raises(ValueError, match="rival 'sometimes'"):
        admit([claim(rivals={"sometimes": rival})], ENTRIES)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1j])
def test_a_rival_without_a_real_value_is_told_apart(value: complex) -> None:
    admit([claim(rivals={"undefined": lambda p: value})], ENTRIES)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"kind": Kind.RATIO}, "name numerator and denominator of its ratio"),
        (
            {"kind": Kind.PROPORTION, "inputs": {"y": 1.0}},
            "be a mean or a bound, if it reads measured inputs",
        ),
        ({"kind": Kind.LIMIT, "inputs": {"y": 1.0}}, "be a mean or a bound, if it reads measured inputs"),
        (
            {"kind": Kind.PROPORTION, "numerical": 0.1},
            "be a mean or a bound, if its scores have a numerical error",
        ),
        (
            {"kind": Kind.RATIO, "score": ("x", "y"), "numerical": 0.1},
            "be a mean or a bound, if its scores have a numerical",
        ),
        ({"axis": "width"}, "have its axis 'width' among the parameters"),
        ({"printed": lambda p: 0.0}, "say what is wrong with the formula as our copy reads"),
        ({"printed": "as_read"}, "say what is wrong with the formula as our copy reads"),
        (
            {"printed": lambda p: 1.1 * p.scale, "finding": "ten percent"},
            "have a point where rival 'as our copy reads' is 2 margins away",
        ),
        (
            {"experiment": Experiment(id="e", replicate="r", simulate=never, points=())},
            "have points, all",
        ),
        ({"experiment": experiment(Point(scale=3.7), Point(scale=3.7))}, "have points, all different"),
    ],
)
def test_what_a_statistical_claim_must_say(changes: dict, rule: str) -> None:
    with pytest.raises(ValueError, match=f"claim paper/claim must {rule}"):
        admit([claim(**changes)], ENTRIES)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0, 2.0])
def test_values_at_which_wrong_formulas_may_be_right_are_refused(value: float) -> None:
    point = Point(scale=3.7, other=value)
    with pytest.raises(
        ValueError, match=f"keep other away from {value:g}, where wrong formulas may be right"
    ):
        admit([claim(experiment=experiment(point))], ENTRIES)
    admit([claim(experiment=experiment(point, special="the limit is what is checked"))], ENTRIES)
    admit([claim(experiment=experiment(Point(scale=3.7, other=int(value))))], ENTRIES)


def test_equal_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="keep width and samples apart, both are 30"):
        admit([claim(experiment=experiment(Point(scale=3.7, width=30, samples=30)))], ENTRIES)
    admit([claim(experiment=experiment(Point(scale=3.7, width=1, bias=True)))], ENTRIES)
    admit([claim(experiment=experiment(Point(scale=3.7, width=30, samples=30), special="square"))], ENTRIES)


@pytest.mark.parametrize("make", [identity, exact])
@pytest.mark.parametrize(
    "changes", [{"tolerance": 0.0}, {"tolerance": 1.0}, {"tolerance": -1.0}, {"tolerance_reason": ""}]
)
def test_exact_checks_need_a_tolerance_with_its_reason(make, changes: dict) -> None:
    with pytest.raises(ValueError, match=r"have a tolerance in \(0, 1\), with its reason"):
        admit([make(**changes)], ENTRIES)


@pytest.mark.parametrize(
    ("make", "name"), [(identity, "points"), (exact, "examples"), (statistical, "examples")]
)
def test_every_check_needs_a_point(make, name: str) -> None:
    with pytest.raises(ValueError, match="must have at least one point"):
        admit([make(**{name: ()})], ENTRIES)


def test_a_printed_route_needs_a_finding() -> None:
    with pytest.raises(ValueError, match="say what is wrong with the formula as our copy reads"):
        admit([identity(printed="d")], ENTRIES)
    admit([identity(printed="d", finding="wrong", passage=MISPRINT)], ENTRIES)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"printed": "d", "finding": "wrong"}, "quote the passage that it contradicts"),
        ({"finding": "wrong"}, "quote the passage that it contradicts"),
        ({"expected": Verdict.DISAGREES}, "quote the passage that it contradicts"),
        ({"passage": Passage(Standing.OUTSIDE)}, "quote the paper's own words, with their place"),
        ({"passage": Passage(Standing.AS_STATED, "exactly", " ")}, "quote the paper's own words, with their"),
        ({"passage": Passage(Standing.MISPRINT, "so " * 31, "Eq 1")}, "quote at most 30 words"),
        ({"passage": Passage(Standing.CORRECTED, "exactly", "Eq 1")}, "say what is corrected: a misprint"),
        (
            {"printed": "d", "finding": "wrong", "passage": OURS},
            "say how the form as our copy reads stands to the paper",
        ),
    ],
)
def test_whoever_contradicts_a_paper_quotes_it(changes: dict, rule: str) -> None:
    with pytest.raises(ValueError, match=f"claim paper/identity must {rule}"):
        admit([identity(**changes)], ENTRIES)


def test_what_others_have_shown_names_them() -> None:
    admit([identity(passage=KNOWN, source="Poole et al. (2016), eq. (6)")], ENTRIES)
    with pytest.raises(ValueError, match="must name in its source those who have shown it, with the year"):
        admit([identity(passage=KNOWN, source="ours, beside eq. (6)")], ENTRIES)


def test_its_own_paper_is_no_other() -> None:
    own = identity(
        passage=KNOWN, id="poole2016/identity", source="beside Poole, Lahiri and Ganguli (2016), eq. (6)"
    )
    assert "name in its source those who have shown it, with the year" in [*admission._passage_problems(own)]
    other = replace(own, source=f"{own.source}; Schoenholz et al. (2017)")
    assert not [*admission._passage_problems(other)]


def test_a_law_of_our_own_quotes_nothing() -> None:
    admit([identity(passage=OURS, expected=Verdict.DISAGREES, finding="not at three layers")], ENTRIES)


# --- the family of intervals


def family(count: int) -> list[Claim]:
    points = tuple(Point(scale=3.7 + i) for i in range(count))
    return [claim(experiment=experiment(*points))]


def test_the_family_has_a_size() -> None:
    admit(family(FAMILY_SIZE), ENTRIES)
    with pytest.raises(ValueError, match="claims of this package must use at most 1024 intervals, got 1025"):
        admit([*family(FAMILY_SIZE), statistical()], ENTRIES)


def test_intervals_count_points_and_the_readings_that_need_their_own() -> None:
    two = experiment(Point(scale=3.7), Point(scale=7.3))
    printed = {"printed": lambda p: 3 * p.scale}
    assert registry.intervals([claim(experiment=two)]) == 2
    assert registry.intervals([claim(experiment=two, **printed)]) == 2  # the same interval, read twice
    assert registry.intervals([claim(experiment=two, printed="as_read")]) == 4
    inputs = {"inputs": {"y": 2.3}, "predict": lambda p: p.y}
    assert registry.intervals([claim(experiment=two, **inputs)]) == 2
    assert registry.intervals([claim(experiment=two, **inputs, printed=lambda p: 3 * p.y)]) == 4
    once = {"printed": lambda p: p.y if p.scale < 5 else 3 * p.y}
    assert registry.intervals([claim(experiment=two, **inputs, **once)]) == 3
    assert registry.intervals([identity(), exact(), statistical()]) == 1
