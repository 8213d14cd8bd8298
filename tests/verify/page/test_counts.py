"""The page on what is registered, counted and promised, and on what pilot draws set: its words, not its figures."""

import re
from dataclasses import replace

import pytest

from tests.verify.page.full_size import like_figures, undrawn
from tests.verify.results.sample_results import sample
from verify.page.counts import promise_lines
from verify.page.report import document
from verify.results import Promise

__all__ = ["undrawn"]

pytestmark = pytest.mark.usefixtures("undrawn")


def words(html: str) -> str:
    """The text of a page, without its tags."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_what_is_missing_is_named_and_counted() -> None:
    text = words(document(sample(), like_figures))

    assert (
        "12 of 12 claims judged; 2 of 14 left out: 2 by --paper; missing, dropped or renamed: beyond/" in text
    )
    assert "Registered and missing, dropped or renamed" in text
    whole = replace(sample().suite, census=replace(sample().suite.census, missing=[]))
    assert "dropped or renamed" not in words(document(replace(sample(), suite=whole), like_figures))


def test_a_run_that_decided_nothing_by_sampling_promises_nothing() -> None:
    suite = replace(sample().suite, promises=[])
    text = words(document(replace(sample(), suite=suite), like_figures))
    assert "No verdict was decided by sampling." in text and "one run in 1000" not in text


def test_promises_of_several_families_add_up() -> None:
    """Errors, verdicts and what is undecided are sums over the families, not the largest of them."""
    families = [
        Promise(paper=name, error=error, decided=decided, undecided=undecided)
        for name, error, decided, undecided in (
            ("", 1e-3, 18, 3),
            ("edge", 2e-3, 7, 1),
            ("width", 1e-3, 4, 2),
        )
    ]
    assert promise_lines(families) == [
        "of all 29 verdicts decided by sampling, at most 0.4 % (one run in 250) chance that any is wrong",
        "papers that share one promise: of the 18 verdicts decided by sampling, at most 0.1 % (one run in 1000) chance "
        "that any is wrong; 3 undecided",
        "edge, width: of the 11 verdicts decided by sampling, at most 0.3 % (one run in 333) chance that any is wrong; "
        "3 undecided",
    ]


def test_what_pilot_draws_set_is_not_said_to_be_declared_before() -> None:
    pilot = "the bound 0.4: the first networks gave 0.5; the margin too"
    told = "declared 2026-01-01 (ab12); 2026-01-02: margin tightened from 0.02 to 0.01"
    first, second, *others = sample().rows
    rows = [
        replace(first, pilot=pilot),
        replace(second, registered=f"{told}; not registered: other run points"),
    ]
    html = document(replace(sample(), rows=[*rows, *others]), like_figures)

    card = next(m for m in re.findall(r"<article.*?</article>", html, re.DOTALL) if pilot in m)
    assert "<dt>set after pilot draws</dt>" in card and "before the run" not in card
    assert html.count("save those of 1 claim,") == 1 and "<small>after pilot draws</small>" in html
    section = html[html.index('id="registered"') :].partition("</section>")[0]
    assert f"<span>registered</span> {rows[1].registered}</p>" in html
    steps = ["declared 2026-01-01 (ab12)", "2026-01-02: margin tightened from 0.02 to 0.01"]
    assert "<br>".join([*steps, "not registered: other run points"]) in section
    assert f"set after pilot draws: {pilot}</td>" in html and "0123456789abcdef" * 4 in section
    assert "beyond/&lt;old&gt;, 2026-01-01 (ab12)" in section
    plain = document(sample(), like_figures)
    assert "save those of" not in plain and "set after pilot draws</dt>" not in plain
