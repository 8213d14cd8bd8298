"""A run of the whole registry, with made-up outcomes at the points that the claims have: as large as a page gets."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from markupsafe import Markup

from tests.verify.results.sample_results import sample
from tests.verify.results.sample_rows import point, rival
from verify.claims import registry
from verify.claims.places import code_of
from verify.judging.estimands import components
from verify.judging.judge import labels
from verify.model import AnyClaim, Claim, Identity
from verify.page import plots
from verify.page.markup import themed
from verify.results import PointOutcome, Results, Row
from verify.running.rows import row_of
from verify.running.settings import Settings

SENTENCE = "What is claimed, in a sentence that is as long as such sentences are, without a formula or a letter of one."


@cache
def full_size() -> Results:
    """The run."""
    rows = [row for claim in registry.claims() for row in rows_of(claim)]
    return dataclasses.replace(sample(), rows=rows, inventory=registry.inventory())


def rows_of(claim: AnyClaim) -> Iterable[Row]:
    """One for each reading of a claim."""
    names = list(labels(claim))
    for label in names:
        failing = label != names[0] or claim.expected == "disagrees"
        points = [_outcome(dict(part), claim, failing) for part in _parts(claim)]
        made = row_of(
            claim,
            label,
            Settings(),
            verdict=type(claim.expected)("disagrees" if failing else "agrees"),
            kind=claim.kind.value if isinstance(claim, Claim) else "identity",
            margin=0.01,
            relative=True,
            margin_reason="as such reasons are: the finite size is O(1/P) away, 0.1 % where it was measured",
            replicate="one replicate, in words",
            data="digits" if isinstance(claim, Claim) and claim.experiment.data else "",
            power="A deviation beyond 0.93 % is excluded by this run; one beyond 2.7 % would have been caught.",
            points=points,
            sensitivity=0.027,
        )
        more = {"says": SENTENCE, "topic": registry.claim_topics()[claim.id], "code": code_of(claim)}
        yield dataclasses.replace(
            made, **more, symbols=registry.symbols(claim), registered="declared 2026-11-21"
        )


def _parts(claim: AnyClaim) -> list[Any]:
    if isinstance(claim, Claim):
        return [part for at in claim.experiment.points for part in components(claim, at)]
    return list(claim.points if isinstance(claim, Identity) else claim.examples[:1] * 12)


def _outcome(parameters: dict[str, Any], claim: AnyClaim, failing: bool) -> PointOutcome:
    names = () if isinstance(claim, Identity) else tuple(claim.rivals)
    rivals = [rival(name, 1.2, 1.0, 0.01) for name in names]
    return point(parameters, 1.5 if failing else 1.0, 0.01, 1.002, 0.003, rivals=rivals)


@cache
def _figure() -> Markup:
    return themed(plots.agreement(sample().rows[1]))


def like_figures(_: Callable[[Row], Markup], rows: Sequence[Row]) -> list[Markup]:
    """Return copies of one figure of average size, each with its own ids, instead of drawing all figures."""
    shown = _figure()
    (own,) = set(re.findall(r'id="(f[0-9a-f]{10})-', shown))
    return [Markup(shown.replace(own, f"f{k:010x}")) for k in itertools.islice(itertools.count(), len(rows))]
