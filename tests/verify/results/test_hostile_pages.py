"""Results made to take over the page, or to write elsewhere: drawn without harm."""

import contextlib
import dataclasses
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from tests.verify.page.test_pages import Page
from tests.verify.results.hostile_files import RAW, leaves, place, read, small
from tests.verify.results.sample_results import sample
from verify.cli import main
from verify.heartbeat import Heartbeat
from verify.page import plots, report, wording
from verify.page.formulas import formula
from verify.results import Results, dumps
from verify.results.file import NOT_FINITE
from verify.results.records import WORDS

PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></title><script>alert(1)</script>",
    "' onmouseover='alert(1)",
    "]]><script>alert(1)</script><!--",
    "&lt;script&gt;",
    "{{ 7 * 7 }}{% raw %}",
    "$\\frac{1}{$",
    "\\href{javascript:alert(1)}{x}",
    "a\x00b\x1b[31m\x07\x9b",
    "\ud800\udfff\ufffe\uffff",
    "\u202e\u2028漢字😀",
    "",
    "x" * 3000,
)


# --- drawing whatever loads


HOSTILE_FLOATS = (0.0, 1e308, -1e308, 5e-324, 1e100, -1.0, "nan", "inf", "-inf")


def figures(made: Results, parts: set[str]) -> Iterator[Figure]:
    """The figures of these parts of a results file; what was left as it was is drawn elsewhere."""
    if "rows" in parts:
        yield from (plots.agreement(row) for row in made.rows if row.points)
    if "observations" in parts:
        yield from filter(None, (plots.observation(table) for table in made.observations))


@pytest.mark.parametrize("seed", range(12))
def test_any_values_are_drawn_or_refused(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    raw = small(seed % len(RAW["rows"]))
    held = {path: leaf for path, leaf in leaves(raw) if path[0] in ("rows", "observations")}
    changed = rng.sample(list(held), 1 + seed % 4)
    for path in changed:
        old = held[path]
        number = isinstance(old, float) or old in NOT_FINITE
        new = rng.choice((0, 1, 2**100) if type(old) is int else HOSTILE_FLOATS if number else PAYLOADS)
        place(raw, path, not old if isinstance(old, bool) else new)
    with contextlib.suppress(ValueError):
        made = read(tmp_path, raw)
        for figure in figures(made, {path[0] for path in changed}):
            plots.to_svg(figure)


# --- the page


def replaced(record: Any, change: Callable[[str], str]) -> Any:
    """The record with each of its texts, at any depth, changed, but for words of which only some are read."""
    if isinstance(record, str):
        return change(record)
    if dataclasses.is_dataclass(record):
        kept = {name for kind, name in WORDS if isinstance(record, kind)}
        fields = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
        return type(record)(**{n: v if n in kept else replaced(v, change) for n, v in fields.items()})
    if isinstance(record, dict):
        free = not {"name", "statement", "packages", "commit"} & record.keys()
        return {change(k) if free else k: replaced(v, change) for k, v in record.items()}
    return [replaced(item, change) for item in record] if isinstance(record, list) else record


def poisoned(payload: str, *, all_fields: bool) -> Results:
    """Some of the sample with the payload at the end of every text; `curves` decide which figure is drawn."""
    few = sample()
    rows = [few.rows[i] for i in (0, 1, 4, len(few.rows) - 1)]
    rows = [replace(row, points=row.points[:2]) for row in rows]
    few = replace(
        few, observations=few.observations[1:],  # one with a table, one that crashed
        rows=rows, runs=few.runs[:2], inventory=few.inventory[:3], planted=few.planted[:1],
    )  # fmt: skip
    made = replace(replaced(few, lambda text: f"{text}{payload}"), sha256="")
    for k, (row, old) in enumerate(zip(made.rows, rows, strict=True)):
        own = {"id": f"{row.id}{k}"} if all_fields else {"curves": old.curves}
        made.rows[k] = replace(row, **own)
    return made


OWN_FORM = re.compile(r'<form action="(\.\./)?report\.html" method="get" role="search">')
"""The search on the pages of cards."""

OWN_LINKS = r"#.*|data:,|(\.\./)?((cards|claims)/)?[A-Za-z0-9.-]+\.html(#.*)?"


def without_own_script(page: str) -> str:
    """The page without the one script that it brings, and nothing else taken away."""
    script = Path(report.__file__).parents[1].joinpath("templates/report/find.js").read_text(encoding="utf-8")
    assert page.count(f"<script>{script}</script>") == 1
    return page.replace(f"<script>{script}</script>", "")


@pytest.mark.parametrize("all_fields", [True, False])
def test_no_text_of_a_results_file_acts_on_any_page(tmp_path: Path, all_fields: bool) -> None:
    made = poisoned("../" + "".join(PAYLOADS[:11]), all_fields=all_fields)
    pages = report.documents(read(tmp_path, dumps(made).encode()))
    assert len(pages) > 3
    for name, page in pages.items():
        assert re.fullmatch(r"report\.html|about\.html|cards/[A-Za-z0-9][A-Za-z0-9.-]*\.html", name)
        bare = OWN_FORM.sub("", page).replace("</form>", "")
        text = without_own_script(page) if name == "report.html" else bare
        assert Page(text, OWN_LINKS).acting == [] and "<script" not in text.lower()
        assert page.encode("utf-8") and not re.search("[\x00-\x08\x0e-\x1f\ud800-\udfff]", page)


def test_the_test_of_the_page_sees_what_acts() -> None:
    text = '<p onclick="x"><script></script><a href="javascript:x"></a><a href="#x"></a><mi href="http://x"/></p>'
    assert Page(text).acting == ["p onclick=x", "script", "a href=javascript:x", "mi href=http://x"]


@pytest.mark.parametrize(
    "latex",
    [
        r"a + \href{https://example.org}{b}",
        r"\style{position:fixed}{x}",
        r"\class{surprise}{x}",
        r"\text{<script>alert(1)</script>}",
        "x" * 100_000,
        "{" * 4000,
        r"\left(" * 800,
        "a\x00\ud800",
    ],
)
def test_a_formula_stays_a_formula(latex: str) -> None:
    started = time.process_time()
    made = str(formula(latex))
    assert made.startswith('<code class="latex">') and Page(made).acting == []
    assert time.process_time() - started < 1.0


# --- names of files


NAMES = (
    "../../../escape", "/etc/escape", "..", ".", "", "con", "NUL.txt", "aux", "overview", "seconds", "a/b", "a-b",
    "A-B", "x" * 500, "-rf", "\x00", "\ud800", "a\nb", "~", "C:\\x", "$HOME", "名",
)  # fmt: skip


def test_names_of_figures_stay_in_their_folder_and_equal_ones_are_told_apart_at_once() -> None:
    slugs = wording.slugs(NAMES)
    assert len({slug.lower() for slug in slugs.values()}) == len(NAMES)
    for slug in slugs.values():
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]{0,150}", slug)
        assert not re.match(r"(con|nul|aux|prn)(\.|$)", slug.lower())
    started = time.process_time()
    assert len({*wording.slugs("!" * k for k in range(1, 5000)).values()}) == 4999
    assert time.process_time() - started < 1.0


# --- as a user meets it


def test_a_hostile_file_is_plotted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Heartbeat, "EVERY", 1e6)  # a busy machine draws for seconds, and says so
    made = poisoned("/../<b>\x1b\ud800漢$_{", all_fields=True)
    few = replace(made, rows=[replace(r, points=r.points[:1]) for r in made.rows[:1]])
    (tmp_path / "results.json").write_text(dumps(few))
    before = {path.name for path in tmp_path.parent.iterdir()}

    assert main(["plot", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""
    assert {path.name for path in tmp_path.parent.iterdir()} == before
    assert "/../<b>" not in (tmp_path / "report.html").read_text()
