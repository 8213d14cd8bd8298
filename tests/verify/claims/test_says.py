"""What each claim says in a sentence: the rules for it, over the claims of this package."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.verify import toy_claims
from verify.claims import registry
from verify.model import AnyClaim, Claim, Identity

FEWEST, MOST = 6, 40
"""Words of a sentence."""


def prints_a_form(claim: AnyClaim) -> bool:
    """Whether a form as our copy reads is judged beside it."""
    return isinstance(claim, Claim | Identity) and claim.printed is not None and claim.printed != ""


def flaws(claim: AnyClaim) -> list[str]:
    """What is wrong with the sentence of a claim, or missing beside it."""
    words = len(claim.says.split())
    wrong = {
        "is no sentence that ends with a full stop": not claim.says.endswith("."),
        f"has {words} words": not FEWEST <= words <= MOST,
        "holds a formula": any(sign in claim.says for sign in "$\\"),
        "does not say how our copy reads": prints_a_form(claim) and not claim.reads,
    }
    return [flaw for flaw, found in wrong.items() if found]


def shared(claims: Iterable[AnyClaim]) -> list[list[str]]:
    """Claims of one sentence."""
    claims = [claim for claim in claims if claim.says]
    often = {says for says, count in Counter(claim.says for claim in claims).items() if count > 1}
    return [[claim.id for claim in claims if claim.says == says] for says in sorted(often)]


@pytest.mark.parametrize("paper", registry.OWN)
def test_every_claim_says_what_it_says_in_a_sentence(paper: str) -> None:
    """And beside a form as our copy reads, how that reads."""
    found = {claim.id: flaws(claim) for claim in registry.claims() if claim.paper == paper}
    assert found
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_no_two_claims_share_a_sentence() -> None:
    assert shared(registry.claims()) == []


SAID = replace(toy_claims.RIGHT, says="The mean of a uniform number is half of its scale.")
MISREAD = replace(SAID, printed=lambda p: p.scale)


def test_flaws_of_sentences_are_found() -> None:
    assert flaws(SAID) == [] == flaws(replace(MISREAD, reads="x = s"))
    bad = (
        SAID.says[:-1],
        "The mean.",
        5 * SAID.says.replace(".", " ") + ".",
        "The mean of a number is $s/2$.",
    )
    found = [flaws(replace(SAID, says=says))[0].split()[:2] for says in bad]
    assert found == [["is", "no"], ["has", "2"], ["has", "56"], ["holds", "a"]]
    assert flaws(MISREAD) == ["does not say how our copy reads"]


def test_a_sentence_of_two_claims_is_found() -> None:
    other = replace(SAID, id="toys/other")
    assert shared([SAID, other, replace(other, id="toys/third", says="Another one.")]) == [
        [SAID.id, "toys/other"]
    ]
