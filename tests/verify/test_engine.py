"""The engine: the same scores and verdicts however a run is cut, and one failure that stays one failure."""

import dataclasses
import hashlib
import itertools
import math
import re
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest
import torch

from simulate.monte_carlo import BLOCK, Block, Point, SerialExecutor, stream
from tests.verify.sample_results import sample
from verify import engine, suite
from verify.engine import Progress, Session, Settings, judge_claim
from verify.intervals import FEWEST, mean_interval
from verify.judge import PRINTED, decide, looks
from verify.model import (
    ALPHA,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    Kind,
    StatisticalProperty,
    Tier,
    Verdict,
)
from verify.results import Results, Row, load, save

SETTINGS = Settings(seed=7)


def gammas(block: Block, point: Point) -> dict[str, np.ndarray]:
    """Skewed scores of mean `shape`, a matrix decomposition among them, so that bits could differ."""
    x = np.stack([rng.gamma(point.shape, size=60) for rng in block.streams])
    matrix = torch.from_numpy(x[:, :25].reshape(-1, 5, 5))
    top = torch.linalg.eigvalsh(matrix @ matrix.mT)[:, -1]
    return {"mean": x.mean(axis=1), "square": (x**2).mean(axis=1), "top": top, "above": x[:, 0] > point.shape}


POINTS = (Point(shape=1.7, widths=(3, 4)), Point(shape=4.3, widths=(5, 6)))
GAMMAS = Experiment(
    id="paper/gammas", replicate="60 gamma variables", simulate=gammas, points=POINTS, budget=512
)


def claim(name: str = "mean", **changes) -> Claim:
    plain = {
        "id": f"paper/{name}",
        "entries": ("A1",),
        "source": "a paper",
        "statement": "x = k",
        "experiment": GAMMAS,
        "score": "mean",
        "predict": lambda p: p.shape,
        "margin": 0.12,
        "margin_reason": "a test",
    }
    return Claim(**{**plain, **changes})


MEAN = claim()
HARD = claim("hard", margin=0.03)
MISPRINT = claim(
    "misprint", printed=lambda p: 2 * p.shape, finding="twice", rivals={"square": lambda p: p.shape**2}
)
RATIO = claim(
    "ratio",
    kind=Kind.RATIO,
    score=("square", "mean"),
    predict=lambda p: p.shape + 1,
    margin=0.15,
)
EVENT = claim(
    "event", kind=Kind.PROPORTION, score="above", predict=lambda p: 0.4, relative=False, margin=0.25
)
PAIRED = claim(
    "paired", score="square", inputs={"mean": 2.0}, predict=lambda p: p.mean * (p.shape + 1), margin=0.3
)
ALL = (MEAN, HARD, MISPRINT, RATIO, EVENT, PAIRED)


def session(*claims, settings: Settings = SETTINGS, executor: Executor | None = None) -> Session:
    return Session(claims, settings, executor or SerialExecutor())


def run(*claims, **options) -> list[Row]:
    made = session(*claims, **options)
    return [row for tested in claims for row in made.rows(tested)]


def timeless(rows: list[Row]) -> list[Row]:
    return [dataclasses.replace(row, seconds=0.0) for row in rows]


def columns(
    point: Point, count: int, experiment: Experiment = GAMMAS, seed: int = 7
) -> dict[str, np.ndarray]:
    """The replicates of a point, drawn without the engine."""
    streams = [stream(seed, experiment.id, point, i) for i in range(count)]
    blocks = [
        experiment.simulate(Block(tuple(streams[i : i + BLOCK])), point) for i in range(0, count, BLOCK)
    ]
    return {
        name: np.concatenate([np.asarray(block[name], dtype=float) for block in blocks]) for name in blocks[0]
    }


# --- sameness


def test_two_workers_give_the_same_scores_and_verdicts_to_the_bit(two_workers: Executor) -> None:
    one, two = (
        session(*ALL),
        session(*ALL, settings=dataclasses.replace(SETTINGS, workers=2), executor=two_workers),
    )
    rows = [[row for tested in ALL for row in made.rows(tested)] for made in (one, two)]
    assert timeless(rows[0]) == timeless(rows[1])
    hashes = [[(r.replicates, r.sha256) for r in made.records()] for made in (one, two)]
    assert hashes[0] == hashes[1] and len(hashes[0]) == len(POINTS)


def test_a_verdict_does_not_depend_on_what_else_is_selected() -> None:
    together = session(*ALL)
    for tested in reversed(ALL):  # nor on the order in which rows are asked for
        assert timeless(together.rows(tested)) == timeless(run(tested))
    assert [row.claim for row in together.finished_rows()] == [
        "paper/mean",
        "paper/hard",
        *["paper/misprint"] * 2,
        "paper/ratio",
        "paper/event",
        "paper/paired",
    ]


@pytest.mark.parametrize("tested", ALL, ids=lambda c: c.id)
def test_a_claim_alone_is_judged_as_in_a_session(tested: Claim) -> None:
    assert judge_claim(tested, SETTINGS, SerialExecutor()) == run(tested)[0].points


def test_scores_are_those_of_the_named_streams() -> None:
    made = session(HARD)
    made.rows(HARD)
    for record, point in zip(made.records(), POINTS, strict=True):
        drawn = columns(point, record.replicates)
        digest = hashlib.sha256()
        for name in sorted(drawn):
            digest.update(name.encode() + b"\0" + drawn[name].astype("<f8").tobytes())
        assert record.sha256 == digest.hexdigest()
        assert (record.experiment, record.parameters) == ("paper/gammas", dict(point))


def test_another_seed_gives_other_scores() -> None:
    made = [session(MEAN, settings=Settings(seed=seed)) for seed in (7, 8, 7)]
    for one in made:
        one.rows(MEAN)
    first, other, again = ([r.sha256 for r in one.records()] for one in made)
    assert first == again and not set(first) & set(other)


# --- looks and budget


def test_a_verdict_is_that_of_the_first_look_that_decides() -> None:
    row = run(HARD)[0]
    for outcome, point in zip(row.points, POINTS, strict=True):
        drawn = columns(point, looks(GAMMAS.budget)[-1])["mean"]
        for n in looks(GAMMAS.budget):
            interval = mean_interval(drawn[:n], alpha=ALPHA)
            verdict = decide(interval, 0.97 * point.shape, 1.03 * point.shape)
            if verdict is not Verdict.UNDECIDED:
                break
        assert (outcome.replicates, outcome.verdict) == (n, verdict)
        assert (outcome.measured, outcome.lower, outcome.upper) == (
            interval.estimate,
            interval.lower,
            interval.upper,
        )
        assert [look.replicates for look in outcome.looks] == [k for k in looks(GAMMAS.budget) if k <= n]
        assert outcome.looks[-1].lower == outcome.lower


def test_readings_of_one_claim_stop_by_themselves() -> None:
    corrected, printed = run(claim("two", margin=0.04, printed=lambda p: 2 * p.shape, finding="twice"))
    assert (corrected.verdict, printed.verdict) == ("agrees", "disagrees")
    assert printed.id == f"paper/two [{PRINTED}]" and not printed.surprise
    for one, other in zip(printed.points, corrected.points, strict=True):
        assert one.replicates == FEWEST < other.replicates


def test_the_budget_ends_a_run() -> None:
    row = run(claim(margin=0.001))[0]
    assert row.verdict == "undecided" and not row.surprise
    assert all(p.replicates == 512 and p.reason == "budget" and p.needed > 512 for p in row.points)
    few = run(claim(margin=0.001), settings=Settings(seed=7, replicates=150))[0]
    assert [p.replicates for p in few.points] == [160, 160]  # whole blocks
    assert few.points[0].looks == row.points[0].looks[: len(few.points[0].looks)]


@pytest.mark.parametrize(("tier", "budget"), [(Tier.SMOKE, 512), (Tier.DEFAULT, 512), (Tier.FULL, 4096)])
def test_the_full_tier_has_eight_times_the_budget(tier: Tier, budget: int) -> None:
    assert Settings(tier=tier).budget(GAMMAS) == budget
    assert Settings(tier=tier, replicates=5).budget(GAMMAS) == 5


def test_exactly_so_many_replicates_are_judged_where_asked() -> None:
    first = judge_claim(MEAN, SETTINGS, SerialExecutor())[0].replicates
    for outcome in judge_claim(MEAN, SETTINGS, SerialExecutor(), replicates=4 * first):
        assert outcome.replicates == 4 * first and len(outcome.looks) == 1


def test_a_reading_is_judged_only_where_it_differs() -> None:
    tested = claim(printed=lambda p: p.shape if p.shape < 2 else 2 * p.shape, finding="only for large shapes")
    corrected, printed = run(tested)
    assert [len(row.points) for row in (corrected, printed)] == [2, 1]
    assert printed.points[0].parameters == dict(POINTS[1]) and printed.verdict == "disagrees"


# --- failures


def crashing(block: Block, point: Point) -> dict[str, np.ndarray]:
    raise ArithmeticError("planted crash")


def misshapen(block: Block, point: Point) -> dict[str, np.ndarray]:
    return {"mean": np.zeros(3)}


def fickle(block: Block, point: Point) -> dict[str, np.ndarray]:
    first = block.streams[0].random()
    return {"mean" if first < 0.7 else "other": np.array([rng.random() for rng in block.streams])}


def undefined(block: Block, point: Point) -> dict[str, np.ndarray]:
    mean = np.array([rng.gamma(point.shape, size=9).mean() for rng in block.streams])
    return {"mean": mean, "undefined": np.where(mean > 1.5 * point.shape, math.nan, mean)}


def lazy(block: Block, point: Point) -> None:
    return None


def experiment(simulate, name: str = "other") -> Experiment:
    return dataclasses.replace(GAMMAS, id=f"paper/{name}", simulate=simulate)


@pytest.mark.parametrize(
    ("simulate", "message"),
    [
        (crashing, "ArithmeticError: planted crash"),
        (misshapen, "score 'mean' must be one number or one vector per replicate"),
        (fickle, "scores must be (mean|other) in every block, got (mean|other)"),
        (lazy, "'NoneType' object has no attribute 'items'"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_failing_experiment_breaks_its_claims_and_no_others(
    simulate, message: str, workers: int, request: pytest.FixtureRequest
) -> None:
    bad = claim("bad", experiment=experiment(simulate), margin=0.001)
    worse = claim("worse", experiment=bad.experiment, printed=lambda p: 0.0)
    executor = request.getfixturevalue("two_workers") if workers == 2 else SerialExecutor()
    made = session(
        bad, MEAN, worse, settings=dataclasses.replace(SETTINGS, workers=workers), executor=executor
    )

    for tested in (bad, worse):
        (row,) = made.rows(tested)
        assert (row.verdict, row.surprise, row.points) == ("broken", True, [])
        assert row.experiment == "paper/other" and "Traceback" in row.error
        assert re.search(message, row.error)
    assert timeless(made.rows(MEAN)) == timeless(run(MEAN))
    assert {r.experiment for r in made.records()} == {"paper/gammas"}  # half a run is no record


def test_a_score_that_is_no_number_breaks_only_the_claims_that_read_it() -> None:
    other = experiment(undefined)
    bad, good = claim("bad", experiment=other, score="undefined"), claim("good", experiment=other, margin=0.4)
    made = session(bad, good)
    (row,) = made.rows(bad)
    assert row.verdict == "broken" and "score 'undefined' must be finite, got nan in replicate" in row.error
    assert made.rows(good)[0].verdict == "agrees"


@pytest.mark.parametrize(
    "changes",
    [
        {"predict": lambda p: p.nonsense},
        {"predict": lambda p: 1 / 0, "printed": lambda p: 1.0},
        {"printed": lambda p: 1 / 0},
        {"rivals": {"undefined": lambda p: 1 / 0}},
        {"score": "nonsense"},
        {"inputs": {"nonsense": 1.0}},
    ],
)
def test_a_crashing_formula_breaks_its_own_claim_only(changes: dict) -> None:
    bad = claim("bad", **changes)
    made = session(bad, MEAN)
    (row,) = made.rows(bad)
    assert row.verdict == "broken" and row.error
    assert timeless(made.rows(MEAN)) == timeless(run(MEAN))


class Dying(SerialExecutor):
    """Workers that are lost after so many calls, at submission or underway."""

    def __init__(self, calls: int, *, at_once: bool) -> None:
        self.calls, self.at_once = calls, at_once

    def submit(self, fn, /, *args, **kwargs) -> Future:
        self.calls -= 1
        if self.calls >= 0:
            return super().submit(fn, *args, **kwargs)
        if self.at_once:
            raise BrokenProcessPool("a worker died")
        future: Future = Future()
        future.set_exception(BrokenProcessPool("a worker died"))
        return future


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("calls", [0, 3, 9])
@pytest.mark.parametrize("workers", [1, 4])
def test_a_run_ends_when_the_workers_die(at_once: bool, calls: int, workers: int) -> None:
    """Every claim that still needs replicates is broken; none waits for a block that never comes."""
    claims = [claim(f"c{i}", margin=0.03) for i in range(12)]
    settings = dataclasses.replace(SETTINGS, workers=workers)
    rows = run(*claims, settings=settings, executor=Dying(calls, at_once=at_once))
    assert [row.verdict for row in rows] == ["broken"] * 12
    assert all("a worker died" in row.error for row in rows)


def test_an_interruption_passes_through() -> None:
    def interrupted(block: Block, point: Point) -> dict[str, np.ndarray]:
        raise KeyboardInterrupt

    made = session(MEAN, stopped := claim("stopped", experiment=experiment(interrupted)))
    made.rows(MEAN)
    with pytest.raises(KeyboardInterrupt):
        made.rows(stopped)
    assert [row.claim for row in made.finished_rows()] == ["paper/mean"]


# --- identities and properties in a session


def two_routes(rng: np.random.Generator, point: Point) -> dict[str, object]:
    a = torch.from_numpy(rng.standard_normal((point.dim, point.dim)))
    trace = torch.linalg.eigvals(a).sum()
    return {
        "trace": a.trace(),
        "eigenvalues": trace.real,
        "complex": trace.numpy(),
        "imaginary": (trace + 1e-3j).numpy(),
        "twice": 2 * a.trace(),
        "pair": np.ones(2),
        "infinite": math.inf,
        "close": a.trace() * (1 + 1e-12),
    }


def identity(**changes) -> Identity:
    plain = {
        "id": "paper/identity",
        "entries": ("A1",),
        "source": "a paper",
        "statement": "tr A",
        "routes": two_routes,
        "points": (Point(dim=5), Point(dim=8)),
        "measured": "trace",
        "theory": "eigenvalues",
        "tolerance": 1e-10,
        "tolerance_reason": "rounding",
        "rivals": ("twice",),
    }
    return Identity(**{**plain, **changes})


def test_two_routes_agree_within_rounding(two_workers: Executor) -> None:
    (row,) = run(identity())
    assert row.verdict == "agrees" and [r.margins for p in row.points for r in p.rivals] == [0.5e10, 0.5e10]
    assert timeless([row]) == timeless(run(identity(), executor=two_workers))


def test_the_printed_route_is_a_row_of_its_own() -> None:
    corrected, printed = run(identity(printed="twice", finding="twice"))
    assert (corrected.verdict, corrected.reading) == ("agrees", "corrected")
    assert (printed.verdict, printed.reading, printed.surprise) == ("disagrees", PRINTED, False)


@pytest.mark.parametrize(
    ("theory", "verdict"), [("complex", "agrees"), ("imaginary", "disagrees"), ("infinite", "disagrees")]
)
def test_routes_are_compared_as_the_numbers_they_are(theory: str, verdict: str) -> None:
    (row,) = run(identity(theory=theory))
    assert row.verdict == verdict


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"theory": "pair"}, r"routes must have one shape, got \(\) and \(2,\)"),
        ({"theory": "nonsense"}, "KeyError: 'nonsense'"),
        (
            {"rivals": ("close",)},
            "rival 'close' must differ by two tolerances at one point, this check cannot fail",
        ),
    ],
)
def test_an_identity_that_cannot_be_checked_is_broken(changes: dict, message: str) -> None:
    (row,) = run(identity(**changes))
    assert row.verdict == "broken"
    assert re.search(message, row.error)


def scales() -> dict:
    from hypothesis import strategies as st

    return {"shape": st.floats(1.1, 6.0)}


def test_properties_keep_to_the_settings() -> None:
    """`replicates` holds for them too, and the same seed gives the same examples."""
    tested = StatisticalProperty(
        id="paper/property",
        entries=("A1",),
        source="a paper",
        statement="for all shapes",
        strategies=scales,
        simulate=gammas,
        replicate="60 gamma variables",
        examples=(Point(shape=2.3),),
        score="mean",
        predict=lambda p: p.shape,
        margin=0.1,
        margin_reason="a test",
        rivals={"square": lambda p: p.shape**2},
    )
    (row,) = run(tested)
    assert row.verdict == "agrees" and row.points[0].parameters == {"shape": 2.3}
    assert timeless([row]) == timeless(run(tested))
    (few,) = run(tested, settings=Settings(seed=7, replicates=40))
    assert {p.replicates for p in few.points} == {48} and few.verdict == "undecided"
    (other,) = run(tested, settings=Settings(seed=8))
    assert [p.parameters for p in other.points[1:]] != [p.parameters for p in row.points[1:]]


def test_a_property_that_crashes_is_broken() -> None:
    def violation(rng: np.random.Generator, point: Point) -> float:
        raise ArithmeticError("planted crash")

    tested = ExactProperty(
        id="paper/exact",
        entries=("A1",),
        source="a paper",
        statement="x",
        strategies=scales,
        violation=violation,
        examples=(),
        tolerance=1e-9,
        tolerance_reason="rounding",
        rivals={},
    )
    broken, row = run(tested, MEAN)
    assert broken.verdict == "broken" and "planted crash" in broken.error and row.verdict == "agrees"


# --- progress


def test_progress_counts_claims_and_runs_down() -> None:
    claims = [*ALL, identity()]
    made = session(*claims)
    seen: list[Progress] = []
    made.listener = lambda: seen.append(made.progress())

    start = made.progress()
    assert (start.done, start.total) == (0, 7) and start.left == pytest.approx(2 * 1.0 + 1.0)
    for tested in claims:
        made.rows(tested)
    end = made.progress()
    assert (end.done, end.total, end.left) == (7, 7, 0.0)
    assert [p.done for p in seen] == sorted(p.done for p in seen) and seen[-1].done == 7
    assert len(seen) > 7 and all(p.elapsed <= q.elapsed for p, q in itertools.pairwise(seen))
    calls = len(seen)
    made.rows(MEAN)
    assert len(seen) == calls  # what is known is not run again


def test_more_workers_leave_less_time() -> None:
    one, four = (session(MEAN, settings=Settings(workers=w)).progress().left for w in (1, 4))
    assert one == 4 * four


# --- replays


def results(*claims, **options) -> Results:
    made = session(*claims, **options)
    rows = [row for tested in claims for row in made.rows(tested)]
    return Results(suite=sample().suite, rows=rows, runs=made.records(), inventory=[])


@pytest.fixture
def recorded(tmp_path) -> Results:
    """A run read back from its file, where the tuples among the parameters are lists."""
    save(results(*ALL, identity()), tmp_path / "results.json")
    return load(tmp_path / "results.json")


def test_a_replay_finds_every_score_and_verdict_the_same(recorded: Results) -> None:
    assert suite.differences(recorded, results(*ALL, identity())) == []


def test_a_replay_of_fewer_claims_compares_those(recorded: Results) -> None:
    """The others may have drawn more of the same replicates."""
    again = results(MEAN)
    assert again.runs[0].replicates < recorded.runs[0].replicates
    assert suite.differences(recorded, again) == []


def shifted(block: Block, point: Point) -> dict[str, np.ndarray]:
    """Another score changes in its last bit, the one that is judged does not."""
    found = gammas(block, point)
    return found | {"square": np.nextafter(found["square"], math.inf)}


def test_a_replay_finds_a_score_that_changed_in_its_last_bit(recorded: Results) -> None:
    moved = dataclasses.replace(GAMMAS, simulate=shifted)
    again = results(*(dataclasses.replace(c, experiment=moved) for c in ALL))
    found = suite.differences(recorded, again)
    hashes = [line for line in found if "scores differ" in line]
    assert len(hashes) == len(POINTS) and all("paper/gammas at" in line for line in hashes)
    assert not any(line.startswith("paper/mean:") for line in found)
    assert any(line.startswith("paper/ratio: measured") for line in found)


def test_a_replay_finds_measured_values_and_verdicts_that_changed(recorded: Results) -> None:
    changed = claim(predict=lambda p: 2 * p.shape)
    assert suite.differences(recorded, results(changed)) == ["paper/mean: agrees was recorded, now disagrees"]
    (line,) = suite.differences(recorded, results(identity(theory="close")))
    assert line.startswith("paper/identity: measured ")
    seed = suite.differences(recorded, results(MEAN, settings=Settings(seed=8)))
    assert any(line.startswith("paper/mean: measured ") for line in seed)


def test_public_names_exist() -> None:
    assert all(hasattr(engine, name) for name in engine.__all__)
