"""Which claims the default tier leaves to the full one: no entry but a few trainings hangs on these alone."""

import re
from pathlib import Path

from verify.claims import registry
from verify.claims.registry import entry_of
from verify.model import Claim, Tier

DEAR = {
    *(("edge", name) for name in ("E8", "E9")),  # larger batches, noise in place of batches
    ("granziol2022", "B57"),  # rates of Adam against the batch size
    ("granziol2022", "B58"),  # rates under unit damping
    *(("width", name) for name in ("J1", "J2", "J3")),  # training at two widths
}


def _judged(tier: Tier) -> set[tuple[str, str]]:
    return {entry_of(claim, name) for claim in registry.select(tier) for name in claim.entries}


def test_the_default_tier_judges_every_entry_but_dear_trainings() -> None:
    assert _judged(Tier.FULL) - _judged(Tier.DEFAULT) == DEAR


def test_no_formula_as_our_copy_reads_is_left_to_the_full_tier() -> None:
    left = [claim for claim in registry.claims() if registry.tier_of(claim) == Tier.FULL]
    assert left
    assert not [claim.id for claim in left if isinstance(claim, Claim) and claim.printed is not None]


def test_tiers_grow_and_the_documents_have_their_sizes() -> None:
    smoke, default, full = ({claim.id for claim in registry.select(tier)} for tier in Tier)
    assert smoke < default < full
    text = " ".join(Path("docs/verdicts.md").read_text(encoding="utf-8").split())
    rows = (f"| smoke | {len(smoke)} cheap", f"| default | {len(default)} |", f"| full | all {len(full)} |")
    assert all(row in text for row in rows)
    left = re.search(
        r"leaves out (\d+) expensive claims whose entries others judge and (\d+) on training", text
    )
    assert left and sum(map(int, left.groups())) == len(full) - len(default)
