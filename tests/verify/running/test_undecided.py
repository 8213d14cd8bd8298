"""Claims that may end undecided."""

from verify.claims import registry
from verify.model import Tier

MOST = 0.05
"""Part of the default tier that may end undecided."""


def test_few_claims_may_end_undecided_and_each_says_why() -> None:
    default = registry.select(Tier.DEFAULT)
    may = [claim.may_be_undecided for claim in default if claim.may_be_undecided]
    assert len(may) <= MOST * len(default) and all(len(why.split()) > 3 for why in may)
