"""Formulas typed on a keyboard, as pages and figures show them; words for measured inputs."""

import re

import pytest
from markupsafe import Markup

from verify.claims import registry
from verify.claims.registry import count_statements
from verify.model import Claim
from verify.model.inventory import Status
from verify.page.formulas import lettered, typeset
from verify.page.vocabulary import inputs_named
from verify.results import InventoryRow


@pytest.mark.parametrize(
    ("typed", "shown", "drawn"),
    [
        ("sigma_c^4", "σ<sub>c</sub><sup>4</sup>", "σ_c⁴"),
        ("2 / E lambda_1(H_B)", "2 / E λ<sub>1</sub>(H<sub>B</sub>)", "2 / E λ₁(H_B)"),
        ("alpha^(L-1) norm of Ht", "α<sup>L−1</sup> norm of H̃", "α^(L-1) norm of H̃"),
        ("1 - |p|^2", "1 − |p|<sup>2</sup>", "1 − |p|²"),
        ("B^(-1/2), 10^3", "B<sup>−1/2</sup>, 10<sup>3</sup>", "B^(−1/2), 10³"),
        ("That Qhat is What", "That Q\u0302 is What", "That Q\u0302 is What"),
        ("sum_k Q_k (-log Qhat_k)", "Σ<sub>k</sub> Q<sub>k</sub> (−log Q̂<sub>k</sub>)", "Σ_k Q_k (−log Q̂_k)"),
        ("below -2 sigma", "below −2 σ", "below −2 σ"),
        ("dL_max of order B^-1/4", "dL<sub>max</sub> of order B<sup>−1/4</sup>", "dL_max of order B^−1/4"),
        ("sqrt(mu/L) -> 0", "√(μ/L) → 0", "√(μ/L) → 0"),
        ("eta1 and kappa2", "η<sub>1</sub> and κ<sub>2</sub>", "η₁ and κ₂"),
        ("within 0.5 %", "within 0.5\u00a0%", "within 0.5 %"),
        ("a <b>&amp;</b> & c", "a &lt;b&gt;&amp;amp;&lt;/b&gt; &amp; c", "a <b>&amp;</b> & c"),
        ("\ue000x\ue003", "x", "\ue000x\ue003"),
    ],
)
def test_a_formula_in_a_sentence_is_set(typed: str, shown: str, drawn: str) -> None:
    assert (lettered(typed), typeset(typed)) == (Markup(shown), drawn)


@pytest.mark.parametrize(
    "text",
    [
        "chi-square, beta-binomial and inverse chi-square laws",
        "theorem_7_read of weight_variance",
        "losscurv report --claim x/y --data file",
        "one of three, well-known, in the limit; 5e-6",
    ],
)
def test_words_stay_words(text: str) -> None:
    assert lettered(text) == Markup(text) and typeset(text) == text


def test_what_is_set_is_not_set_again() -> None:
    assert lettered(lettered("sigma_c < 1")) == Markup("σ<sub>c</sub> &lt; 1")


def test_every_tag_is_closed_in_what_claims_say() -> None:
    for claim in registry.claims():
        for text in (claim.says, claim.finding, claim.source, *getattr(claim, "rivals", ())):
            shown = lettered(text)
            assert re.sub("<(su[bp])>[^<]*</\\1>", "", shown).count("<") == 0, shown


def test_measured_inputs_have_words() -> None:
    """No name of a score stands on a card with an underscore in it, but for letters with an index."""
    named = [
        name
        for claim in registry.claims()
        if isinstance(claim, Claim) and claim.inputs
        for name in inputs_named(claim.id, dict.fromkeys(claim.inputs, 1.0))
    ]
    ours = {"q0", "q1", "q2", "g_frobenius", "h_norm", "excess_g", "any_label", "known_mean"}
    assert named and not ours & {*named}


def test_statements_of_papers_are_counted_by_where_they_stand() -> None:
    def entry(status: Status, ours: bool = False) -> InventoryRow:
        return InventoryRow(paper="p", id="A1", title="", status=status, reason="", claims=[], ours=ours)

    listed = [entry(Status.OPEN), entry(Status.JUDGED), entry(Status.JUDGED), entry(Status.OPEN, ours=True)]
    assert list(count_statements(listed).items()) == [("judged", 2), ("open", 1)]
