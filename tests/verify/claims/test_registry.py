"""The real inventory under the rules of admission, and what is selected from it."""

import pickle
import re
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from simulate.monte_carlo import SerialExecutor
from tests.refusals import refusal
from verify.claims import registry
from verify.claims.registry import entry_of, select
from verify.judging.estimands import components
from verify.judging.judge import applies, labels, passage, readings
from verify.model import (
    ABSOLUTE,
    FAMILY_SIZE,
    MODEL_BASED,
    Claim,
    Identity,
    Standing,
    StatisticalProperty,
    Tier,
    Verdict,
)
from verify.model.inventory import Status
from verify.running.engine import Session, Settings

# --- the real registry


def judged_intervals(made: Session) -> int:
    """Count the intervals of a session: one per run, component and distinct measurement."""
    judged = {
        (r.claim.id, i, r.component, r.reading.score, r.reading.predict if reads_alone(r.claim) else None): r
        for i, run in enumerate(made.sampled.runs)
        for r in run.trials
    }
    return sum(r.claim.kind not in MODEL_BASED for r in judged.values())


def reads_alone(claim: Claim) -> bool:
    """Whether two readings of one score do not share an interval."""
    return bool(claim.inputs) or claim.kind in ABSOLUTE


def test_the_registry_fits_its_family_and_a_session_judges_what_is_counted() -> None:
    claims = registry.claims()
    made = Session(claims, Settings(), SerialExecutor())
    properties = sum(isinstance(c, StatisticalProperty) for c in claims)
    assert judged_intervals(made) + properties == registry.intervals(claims) <= FAMILY_SIZE
    assert not any(r.error for run in made.sampled.runs for r in run.trials)


def test_the_intervals_in_use_are_those_that_the_documentation_states() -> None:
    text = (Path(__file__).parents[3] / "docs" / "verdicts.md").read_text()
    stated = re.search(r"at most (\d+) intervals \((\d+) in use\)", text)
    assert stated
    name, used, most = registry.families(registry.claims())[0]
    assert name == "this package" and most == FAMILY_SIZE
    assert [int(n) for n in stated.groups()] == [most, used]


def test_every_file_with_claims_is_found() -> None:
    folder = Path(registry.__file__).parent
    holds = {str(f.relative_to(folder)) for f in folder.rglob("*.py") if "\nCLAIMS = " in f.read_text()}
    found = {
        str(Path(module.__file__ or "").relative_to(folder)) for _, module in registry.rooms(registry.OWN)
    }
    assert holds - found == set(), "name them in ROOMS of their paper, or add __init__.py to their folder"


LETTERS = {
    "vysogorets2024": "A", "granziol2022": "B", "karakida2019": "C", "beyond": "D", "edge": "E", "catapult": "F",
    "structure": "G", "noise_scale": "H", "adam_limit": "I", "width": "J",
    "warm_up": "K", "central_flows": "L", "steepest": "M",
}  # fmt: skip
"""With which the numbers of the entries of a paper begin."""


def numbering() -> list[str]:
    """Return the ids of the entries of the three papers."""
    a = [f"A{i}" for i in range(1, 60)]
    b = [f"B{i}" for i in range(1, 68)]
    b += [f"B-A{i}" for i in range(1, 4)] + [f"B-B{i}" for i in range(1, 6)] + ["B-C1"]
    c = [f"C{i}" for i in range(1, 61)]
    return [*a, *b, *c]


def test_the_inventory_holds_each_entry_once() -> None:
    ids = {paper: [entry.id for entry in listed] for paper, listed in registry.entries().items()}
    assert list(ids) == [paper.id for paper in registry.papers()] == [p for p in LETTERS if p in ids]
    assert Counter(chain(*list(ids.values())[:3])) == Counter(numbering())
    for paper in list(ids)[3:]:
        assert ids[paper] == [f"{LETTERS[paper]}{i + 1}" for i in range(len(ids[paper]))]
    for paper, listed in ids.items():
        assert {name[0] for name in listed} == {LETTERS[paper]}


def test_the_inventory_says_where_each_entry_stands() -> None:
    rows = registry.inventory()
    assert len(rows) == sum(map(len, registry.entries().values())) and {row.status for row in rows} <= {
        s.value for s in Status
    }
    for row in rows:
        assert row.title
        assert (row.status in (Status.JUDGED, Status.PARTLY)) == bool(row.claims)
        assert row.status != Status.PARTLY or row.reason, row.id
        needs_reason = row.status in (Status.DEFINITION, Status.OBSERVED, Status.NOT_CHECKABLE)
        assert not needs_reason or row.reason or row.observations, row.id
    covered = {name for row in rows for name in row.claims}
    assert covered == {c.id for c in registry.claims()}


STATISTICAL = [
    c if isinstance(c, Claim) else c.claim_at(c.examples[0])
    for c in registry.claims()
    if isinstance(c, Claim | StatisticalProperty)
]


def test_every_reading_is_judged_somewhere_and_a_claim_that_should_disagree_has_a_finding() -> None:
    for tested in STATISTICAL:
        points = [at for point in tested.experiment.points for at in components(tested, point)]
        assert all(any(applies(tested, r, point) for point in points) for r in readings(tested)), tested.id
        assert tested.expected is Verdict.AGREES or tested.finding, tested.id


# --- selection


def test_a_selection_keeps_the_order_of_the_report() -> None:
    everything, chosen = registry.claims(), [claim.id for claim in select(Tier.DEFAULT)]
    assert select() == everything
    assert [claim.id for claim in everything if claim.id in chosen] == chosen
    names = [everything[-1].id, everything[0].id]
    assert select(claim=names) == (everything[0], everything[-1])


def test_a_claim_named_by_its_id_is_admitted_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    admitted = []
    monkeypatch.setattr(registry, "problems", lambda claim: admitted.append(claim.id) or [])
    named = registry.claims()[3].id

    assert [c.id for c in select(claim=[named])] == admitted == [named]


def test_papers_that_are_asked_for_are_admitted_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    admitted = []
    monkeypatch.setattr(registry, "problems", lambda claim: admitted.append(claim.paper) or [])
    monkeypatch.setattr(registry, "_admit_papers", registry._admit_papers.__wrapped__)

    assert select(paper=["edge"]) and set(admitted) == {"edge"}
    assert select(Tier.SMOKE) and set(admitted) == {paper.id for paper in registry.papers()}


def test_a_named_claim_that_breaks_a_rule_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "problems", lambda claim: ["be another"])
    with refusal(f"claim {registry.claims()[0].id} must be another"):
        select(claim=[registry.claims()[0].id])


def test_the_inventory_of_some_items_holds_the_entries_that_they_cover() -> None:
    whole = {(row.paper, row.id): row for row in registry.inventory()}
    for item in (*registry.claims()[::40], *registry.observations()):
        rows = registry.inventory([item])
        assert {(row.paper, row.id) for row in rows} == {entry_of(item, name) for name in item.entries}
        assert all(row.status == whole[row.paper, row.id].status for row in rows)
        assert all({item.id} & {*row.claims, *row.observations} for row in rows)


def test_a_paper_selects_its_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    # `test_a_selection_keeps_the_order_of_the_report` admits all of them: once is enough, for it takes a second
    monkeypatch.setattr(registry, "_admit_papers", lambda only: None)
    parts = [select(paper=[paper.id]) for paper in registry.papers()]
    assert sum(map(len, parts)) == len(registry.claims())
    for paper, part in zip(registry.papers(), parts, strict=True):
        assert {c.paper for c in part} <= {paper.id}
    assert select(paper=["granziol2022", "karakida2019"]) == parts[1] + parts[2]


def test_the_smoke_tier_is_the_cheap_part_but_a_named_claim_is_always_taken() -> None:
    cheap = select(Tier.SMOKE)
    assert 0 < len(cheap) < len(registry.claims())
    assert all(registry.tier_of(c) == Tier.SMOKE for c in cheap)
    costly = next(c for c in registry.claims() if c not in cheap)
    assert select(Tier.SMOKE, claim=[costly.id]) == (costly,)
    assert select(Tier.SMOKE, claim=[costly.id], paper=["beyond"]) == ()


def test_unknown_names_are_refused_with_a_suggestion() -> None:
    known = registry.claims()[0].id
    with refusal(rf"got '{known}x'; did you mean {known}\?"):
        select(claim=[known + "x"])
    with refusal(r"claim must be an id such as .*, got '§'; .*: losscurv claims §$"):
        select(claim=["§"])
    with refusal("got 'b17'; the claims of b17 are granziol2022/theorem-10, "):
        select(claim=["b17"])
    with refusal(r"paper must be one of vysogorets2024, .*, got 'nobody'"):
        select(paper=["nobody"])


def test_every_experiment_can_be_sent_to_a_worker() -> None:
    """Workers find a simulation by its name in a module."""
    for tested in STATISTICAL:
        simulate = tested.experiment.simulate
        assert pickle.loads(pickle.dumps(simulate)) is simulate
    for tested in registry.claims():
        if isinstance(tested, Identity):
            assert pickle.loads(pickle.dumps(tested.routes)) is tested.routes


CONSISTENT = (
    "granziol2022/theorem-7-ratios",
    "granziol2022/theorem-7-edge",
    "granziol2022/algorithm-1-second-term",
    "granziol2022/mixed-moment",
    "granziol2022/vgg-16",
    "vysogorets2024/base-rate-exponent-deep",
    "vysogorets2024/prior-slope",
)


def test_an_error_that_nothing_in_its_paper_contradicts_is_no_misprint() -> None:
    claims = [claim for claim in registry.claims() if claim.id in CONSISTENT]
    assert len(claims) == len(CONSISTENT)
    for claim in claims:
        told = passage(claim, labels(claim)[-1])
        assert told.standing is Standing.AS_STATED and told.words and claim.finding, claim.id
