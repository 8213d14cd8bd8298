"""Rules for the sentence of each claim, over the claims of this package."""

from collections import Counter

import pytest

from verify.claims import registry
from verify.model import AnyClaim, Claim, Identity

FEWEST, MOST = 6, 40
"""Words of a sentence."""


def prints_a_form(claim: AnyClaim) -> bool:
    """Whether a form as our copy reads is judged beside it."""
    return isinstance(claim, Claim | Identity) and claim.printed is not None and claim.printed != ""


def flaws(claim: AnyClaim) -> list[str]:
    """Return what is wrong with the sentence of a claim, or missing."""
    words = len(claim.says.split())
    wrong = {
        "is no sentence that ends with a full stop": not claim.says.endswith("."),
        f"has {words} words": not FEWEST <= words <= MOST,
        "holds a formula": any(sign in claim.says for sign in "$\\"),
        "does not say how our copy reads": prints_a_form(claim) and not claim.reads,
    }
    return [flaw for flaw, found in wrong.items() if found]


@pytest.mark.parametrize("paper", registry.OWN)
def test_every_claim_says_what_it_says_in_a_sentence(paper: str) -> None:
    """And beside a form as our copy reads, how that reads."""
    found = {claim.id: flaws(claim) for claim in registry.claims() if claim.paper == paper}
    assert found
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_no_two_claims_share_a_sentence() -> None:
    often = Counter(claim.says for claim in registry.claims() if claim.says)
    assert [says for says, count in often.items() if count > 1] == []
