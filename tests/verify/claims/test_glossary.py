"""The letters on a card: what a statement has of those that its paper lists, and where its scores are made."""

import functools
from pathlib import Path

import pytest

from verify.claims import registry
from verify.claims.registry import in_statement
from verify.page.formulas import formula

LISTED = {
    "T": "temperature",
    r"\lambda_1": "the largest",
    r"\alpha": "scale",
    r"\tilde H": "a part",
    "H": "Hessian",
}


@pytest.mark.parametrize(
    ("latex", "found"),
    [
        (r"\mathrm{Tr}\,\tilde H^3 = T", [r"\tilde H", "T"]),
        (r"\tilde H + H", [r"\tilde H", "H"]),
        (r"\text{at all T}", []),
        (r"\lambda_1(H_B) > \alpha_{\rm high}", []),
        (r"\lambda_{12} \lVert G\rVert_T", []),
        (r"v^\top v", []),
    ],
)
def test_letters_that_stand_for_something_else_are_not_explained(latex: str, found: list[str]) -> None:
    assert list(in_statement(latex, LISTED)) == found


def test_most_claims_have_letters_that_are_explained_and_every_listed_one_is_used() -> None:
    claims = registry.claims()
    explained = {claim.id: registry.symbols(claim) for claim in claims}
    assert sum(map(bool, explained.values())) > 0.8 * len(claims)
    for paper in registry.paper_ids():
        letters = registry._glossary(paper)
        used = {
            letter
            for claim in claims
            if claim.paper == paper
            for letter in explained[claim.id]
            if letter not in claim.symbols
        }
        assert used == set(letters)
        assert all('class="latex"' not in formula(letter, False) for letter in letters)


def test_a_letter_means_what_its_claim_says_before_what_its_paper_lists() -> None:
    claims = {claim.id: claim for claim in registry.claims()}
    bound = registry.symbols(claims["granziol2022/kaniel-paige-saad"])
    assert bound[r"\phi_1"] == "angle between the start and the eigenvector of the largest eigenvalue"
    assert registry.symbols(claims["granziol2022/theorem-10"])[r"\phi_1"].startswith("eigenvector")
    for claim in claims.values():
        assert set(claim.symbols) <= set(registry.symbols(claim))
        assert all('class="latex"' not in formula(letter, False) for letter in claim.symbols)


def test_every_claim_names_the_line_where_its_scores_are_made() -> None:
    from verify.claims.places import _line, code_of

    root = Path(__file__).parents[3]
    for claim in registry.claims():
        file, _, line = code_of(claim).rpartition(":")
        lines = (root / file).read_text(encoding="utf-8").splitlines()
        assert (
            lines[int(line) - 1].lstrip().startswith(("def ", "@", "lambda"))
            or "lambda" in lines[int(line) - 1]
        )
    assert _line(functools.partial(in_statement, "")) == _line(in_statement) != ""
    assert _line(len) == ""


def test_every_claim_has_a_topic() -> None:
    assert {claim.id for claim in registry.claims()} == set(registry.claim_topics())
    assert registry.claim_topics()["granziol2022/theorem-4"] == "outliers"
