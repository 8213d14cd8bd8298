"""Rules of a paper for its claims: known entries, unique ids and streams."""

import pytest

from simulate.monte_carlo import Point
from tests.refusals import refusal
from tests.verify.judging.by_hand import claim, exact, identity, never, statistical
from verify.claims.registry import admit
from verify.model import FAMILY_SIZE, Claim, Experiment
from verify.model.inventory import Entry

ENTRIES = {
    "paper": (Entry("A1", "one", "open"), Entry("A2", "two", "open")),
    "other": (Entry("B1", "x", "open"),),
}
TWICE = {"twice": lambda p: 6.0}
EXPERIMENT = Experiment(id="paper/x", replicate="one x", simulate=never, points=(Point(scale=3.0),))


def mean(**changes) -> Claim:
    return claim(**{"rivals": TWICE, "experiment": EXPERIMENT, **changes})


def test_claims_that_keep_the_rules_are_admitted() -> None:
    second = mean(id="paper/second", entries=("other/B1", "A2"))
    admit([mean(), second, identity(), exact(), statistical()], ENTRIES)
    admit([], ENTRIES)


@pytest.mark.parametrize("make", [mean, identity, exact, statistical])
@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"id": "nowhere/claim"}, "begin with one of paper, other"),
        ({"entries": ()}, "cover an entry of the inventory"),
        ({"entries": ("A1", "A3")}, "cover known entries, not A3"),
        ({"entries": ("other/A1",)}, "cover known entries, not other/A1"),
        ({"source": ""}, "name its source and statement"),
        ({"statement": ""}, "name its source and statement"),
    ],
)
def test_what_every_claim_must_say(make, changes: dict, rule: str) -> None:
    with refusal(rf"claim \w+/\w+ must {rule}"):
        admit([make(**changes)], ENTRIES)


@pytest.mark.parametrize("make", [mean, exact, statistical])
def test_every_formula_has_a_rival(make) -> None:
    with refusal(r"claim paper/\w+ must name a rival formula that it rejects"):
        admit([make(rivals={})], ENTRIES)


def test_ids_and_streams_are_unique() -> None:
    """Two experiments under one id would draw the same streams for different things."""
    with refusal("claim paper/claim must have an id of its own"):
        admit([mean(), mean()], ENTRIES)
    with refusal("claim paper/b must share one experiment 'paper/x' with the claims"):
        admit([mean(id="paper/a"), claim(id="paper/b", rivals=TWICE)], ENTRIES)


def test_the_family_has_a_size() -> None:
    points = tuple(Point(scale=3.7 + i) for i in range(FAMILY_SIZE))
    experiment = Experiment(id="paper/x", replicate="one x", simulate=never, points=points)
    whole = mean(experiment=experiment)
    admit([whole], ENTRIES)
    with refusal("claims of this package must use at most 1024 intervals, got 1025"):
        admit([whole, statistical()], ENTRIES)
