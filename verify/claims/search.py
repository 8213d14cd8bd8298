"""Statements that have all of some words, in any spelling."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from simulate._checks import did_you_mean
from verify.model import AnyClaim
from verify.results import InventoryRow

_SHORTEST = 6
"""Letters from which a word is suggested for a mistyped one."""


def with_words(
    rows: Sequence[InventoryRow], claims: Mapping[str, AnyClaim], words: Sequence[str]
) -> tuple[list[InventoryRow], str]:
    """Return the statements that have all words, and suggestions for the words that none has.

    `claims` are those named by the rows; their formulas, sources and the words of their papers are searched too.
    """
    # a word without letters has no plain form, and is nowhere
    asked, found, known = [_plain(word) or word for word in words], list[InventoryRow](), set[str]()
    for row in rows:
        texts = [row.paper, row.id, row.status, row.title, row.reason, *row.claims, *row.observations]
        for claim in (claims[name] for name in row.claims):
            texts += [claim.says, claim.source, claim.statement, claim.passage.words if claim.passage else ""]
        said = _plain(" ".join(texts))
        known.update(said.split())
        # "eq. (1)" is not in "eq. (12)"
        ends = [r"(?!\d)" * word[-1:].isdecimal() for word in asked]
        if all(re.search(re.escape(word) + end, said) for word, end in zip(asked, ends, strict=True)):
            found.append(row)
    near = [
        did_you_mean(word, {other for other in known if other[0] == word[:1] and len(other) >= _SHORTEST})
        for word in asked
        if word not in known
    ]
    return found, "".join(near)


def _plain(text: str) -> str:
    r"""Return a text as it is searched for: without case, signs and LaTeX, Greek by name, spellings as one.

    Examples
    --------
    >>> _plain("Eq. (8), κ₂"), _plain(r"eq 8: \kappa_2"), _plain("normalization") == _plain("normalisation")
    ('eq 8 kappa2', 'eq 8 kappa2', True)
    """
    text = unicodedata.normalize("NFKC", text).lower().replace("_", "")
    text = re.sub("[α-ω]", lambda sign: unicodedata.name(sign[0]).split()[-1].lower(), text)
    words = re.sub(r"\W+", " ", text.replace("lamda", "lambda"))
    return re.sub(r"iz(?=[aei]|$)", "is", words).strip()
