"""The rules a claim must keep to be let in, and the real inventory under these rules."""

import math
import pickle
from collections import Counter

import pytest
from hypothesis import strategies as st

from simulate.monte_carlo import Point, SerialExecutor
from verify.claims import registry
from verify.claims.registry import admit, select
from verify.judging.estimands import components
from verify.judging.judge import SEPARATION, applies, readings, separation
from verify.model import (
    FAMILY_SIZE,
    OURS,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    Kind,
    Passage,
    Standing,
    StatisticalProperty,
    Tier,
    Verdict,
)
from verify.model.inventory import Entry, Status
from verify.running.engine import Session, Settings

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
        "measured": "a",
        "theory": "b",
        "tolerance": 1e-9,
        "tolerance_reason": "rounding",
        "rivals": ("c",),
    }
    return Identity(**{**COMMON, **plain, **changes})


def exact(**changes) -> ExactProperty:
    plain = {
        "id": "paper/exact",
        "strategies": dict,
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
        "strategies": lambda: {"scale": st.floats(1.1, 3.0)},
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
        ({"rivals": {}}, r"claim paper/\w+ must name a rival formula that it rejects"),
    ],
)
def test_what_every_claim_must_say(make, changes: dict, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        admit([make(**changes)], ENTRIES)


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


@pytest.mark.parametrize("changes", [{"theory": "a"}, {"rivals": ("a",)}, {"printed": "a", "finding": "x"}])
def test_a_route_is_not_compared_with_itself(changes: dict) -> None:
    with pytest.raises(ValueError, match="claim paper/identity must compare routes that differ"):
        admit([identity(**changes)], ENTRIES)


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


# --- the real registry


def judged_intervals(made: Session) -> int:
    """What a session would judge: one interval per run, component and distinct measurement, two where it settles."""
    judged = {
        (r.claim.id, i, r.component, r.reading.score, r.reading.predict if reads_alone(r.claim) else None): r
        for i, run in enumerate(made._runs.values())
        for r in run.readings
    }
    direct = [r.claim.kind for r in judged.values() if not r.claim.kind.model_based]
    return len(direct) + direct.count(Kind.SETTLED)


def reads_alone(claim: Claim) -> bool:
    """Whether two readings of one score do not share an interval."""
    return bool(claim.inputs) or claim.kind.bounds_every_replicate or claim.kind is Kind.DISTRIBUTION


def test_the_registry_fits_its_family_and_a_session_judges_what_is_counted() -> None:
    claims = registry.claims()
    made = Session(claims, Settings(), SerialExecutor())
    properties = sum(isinstance(c, StatisticalProperty) for c in claims)
    assert judged_intervals(made) + properties == registry.intervals(claims) <= FAMILY_SIZE
    assert not any(r.error for run in made._runs.values() for r in run.readings)


def numbering() -> list[str]:
    a = [f"A{i}" for i in range(1, 60)]
    b = [f"B{i}" for i in range(1, 68)]
    b += [f"B-A{i}" for i in range(1, 4)] + [f"B-B{i}" for i in range(1, 6)] + ["B-C1"]
    c = [f"C{i}" for i in range(1, 61)]
    return [*a, *b, *c, "D1", "D2"]


def test_the_inventory_holds_each_of_the_197_entries_once() -> None:
    ids = [entry.id for listed in registry.entries().values() for entry in listed]
    assert Counter(ids) == Counter(numbering()) and len(ids) == 197
    letters = {"vysogorets2024": "A", "granziol2022": "B", "karakida2019": "C", "beyond": "D"}
    assert list(registry.entries()) == [paper.id for paper in registry.papers()]
    for paper, listed in registry.entries().items():
        assert {entry.id[0] for entry in listed} == {letters[paper]}


def test_the_inventory_says_where_each_entry_stands() -> None:
    rows = registry.inventory()
    assert len(rows) == 197 and {row.status for row in rows} <= {s.value for s in Status}
    for row in rows:
        assert row.title
        assert (row.status in (Status.JUDGED, Status.PARTLY)) == bool(row.claims)
        assert row.status != Status.PARTLY or row.reason, row.id
        needs_reason = row.status in (Status.DEFINITION, Status.OBSERVED, Status.NOT_CHECKABLE)
        assert not needs_reason or row.reason or row.observations, row.id
    covered = {name for row in rows for name in row.claims}
    assert covered == {c.id for c in registry.claims()}


def test_every_entry_of_a_table_has_a_status_of_the_list() -> None:
    written = {entry.status for listed in registry.entries().values() for entry in listed}
    assert written <= {s.value for s in Status} - {Status.JUDGED.value, Status.PARTLY.value}


STATISTICAL = [
    c if isinstance(c, Claim) else c.claim_at(c.examples[0])
    for c in registry.claims()
    if isinstance(c, Claim | StatisticalProperty)
]


@pytest.mark.parametrize("tested", STATISTICAL, ids=lambda c: c.id)
def test_every_rival_lies_two_margins_away_at_some_point(tested: Claim) -> None:
    """A rival of an inequality that must always hold is a stronger one: whether it is broken only a run can tell."""
    points = [at for point in tested.experiment.points for at in components(tested, point)]
    assert tested.rivals
    for formula in tested.rivals.values() if not tested.kind.bounds_every_replicate else ():
        assert max(separation(tested, point, formula) for point in points) >= SEPARATION
    assert all(any(applies(tested, r, point) for point in points) for r in readings(tested))
    assert tested.expected is Verdict.AGREES or tested.finding


# --- selection


def test_a_selection_keeps_the_order_of_the_report() -> None:
    everything = registry.claims()
    assert select() == select(Tier.DEFAULT) == everything
    names = [everything[-1].id, everything[0].id]
    assert select(claim=names) == (everything[0], everything[-1])


def test_a_paper_selects_its_claims() -> None:
    parts = [select(paper=[paper.id]) for paper in registry.papers()]
    assert sum(map(len, parts)) == len(registry.claims())
    for paper, part in zip(registry.papers(), parts, strict=True):
        assert {c.paper for c in part} <= {paper.id}
    assert select(paper=["granziol2022", "karakida2019"]) == parts[1] + parts[2]


def test_the_smoke_tier_is_the_cheap_part_but_a_named_claim_is_always_taken() -> None:
    cheap = select(Tier.SMOKE)
    assert 0 < len(cheap) < len(registry.claims())
    assert all(c.experiment.smoke if isinstance(c, Claim) else c.smoke for c in cheap)
    costly = next(c for c in registry.claims() if c not in cheap)
    assert select(Tier.SMOKE, claim=[costly.id]) == (costly,)
    assert select(Tier.SMOKE, claim=[costly.id], paper=["beyond"]) == ()


def test_unknown_names_are_refused_with_a_suggestion() -> None:
    known = registry.claims()[0].id
    with pytest.raises(ValueError, match=rf"got '{known}x'; did you mean {known}\?"):
        select(claim=[known + "x"])
    with pytest.raises(ValueError, match=r"claim must be one of those that losscurv claims lists, got '§'$"):
        select(claim=["§"])
    with pytest.raises(ValueError, match=r"paper must be one of vysogorets2024, .*, got 'nobody'"):
        select(paper=["nobody"])


def test_every_experiment_can_be_sent_to_a_worker() -> None:
    """Workers find a simulation by its name in a module."""
    for tested in STATISTICAL:
        simulate = tested.experiment.simulate
        assert pickle.loads(pickle.dumps(simulate)) is simulate
    for tested in registry.claims():
        if isinstance(tested, Identity):
            assert pickle.loads(pickle.dumps(tested.routes)) is tested.routes


def test_public_names_exist() -> None:
    assert all(hasattr(registry, name) for name in registry.__all__)
