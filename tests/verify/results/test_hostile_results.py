"""Results files made to crash, to stall or to take over the page: drawn without harm, or refused in one line."""

import contextlib
import dataclasses
import html.parser
import json
import os
import re
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from matplotlib.figure import Figure

from tests.verify.results.sample_results import sample
from verify.cli import main
from verify.page import plots, report, wording
from verify.results import Results, dumps, load
from verify.results.file import NOT_FINITE
from verify.results.records import WORDS

RAW = json.loads(dumps(sample()))
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


def text_of(raw: Any) -> str:
    return json.dumps(raw)


def small(row: int = 0) -> Any:
    """A results file with one row, its points and looks few, a table of few rows, and one of everything else."""
    made = json.loads(json.dumps(RAW))
    made["rows"] = made["rows"][row : row + 1]
    made["rows"][0]["points"] = made["rows"][0]["points"][:2]
    for name in ("runs", "inventory", "planted"):
        made[name] = made[name][:1]
    made["observations"] = made["observations"][:1]
    table = made["observations"][0]
    table["groups"] = [{**group, "rows": group["rows"][:2]} for group in table["groups"][:2]]
    return made


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value that is no list or record, with the way to it."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else None
    if items is None:
        yield path, node
    else:
        for key, value in items:
            yield from leaves(value, (*path, key))


def place(raw: Any, path: tuple[Any, ...], value: Any) -> None:
    *way, last = path
    for step in way:
        raw = raw[step]
    raw[last] = value


def read(folder: Path, content: Any) -> Results:
    path = folder / "results.json"
    path.write_bytes(content if isinstance(content, bytes) else text_of(content).encode())
    return load(path)


def refused(folder: Path, content: Any, match: str = "") -> None:
    with pytest.raises(ValueError, match=match) as caught:
        read(folder, content)
    told = str(caught.value)
    assert "results.json" in told and len(told) < 500 and told.isprintable()


# --- files


def test_a_cut_anywhere_is_refused(tmp_path: Path) -> None:
    text = text_of(small()).encode()
    for at in range(0, len(text), len(text) // 150):
        refused(tmp_path, text[:at], "is corrupt: not JSON; run losscurv report again")
    read(tmp_path, text)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"\xff\xfe{\x00}\x00", "not JSON"),
        (b'{"schema": "\xc0\xaf"}', "not JSON"),
        (b"9" * 10**6, "not JSON"),
        (b'{"schema": ' + b"9" * 10**6 + b"}", "not JSON"),
        (b"[" * 10**6, "not JSON"),
        (b'{"schema":0}', "must have schema"),
        (b'{"schema":"3"}', "must have schema"),
        (b'{"schema":99}', "must have schema"),
        (b'{"schema":NaN}', "must have schema"),
        (b'{"schema":4,"schema":4}', "a name stands twice among schema"),
        (b'{"rows":[{"id":1,"id":2}]}', "a name stands twice among id"),
        (b"\x00" * 1000, "not JSON"),
    ],
)
def test_what_is_no_results_file_is_refused(tmp_path: Path, content: bytes, match: str) -> None:
    refused(tmp_path, content, match)


def test_a_file_of_many_megabytes_is_not_read(tmp_path: Path) -> None:
    path, started = tmp_path / "results.json", time.process_time()
    with path.open("wb") as file:
        file.truncate(700 << 20)
    with pytest.raises(ValueError, match="must have at most 64 MiB, got 700 MiB"):
        load(path)
    assert time.process_time() - started < 0.5


def test_what_never_ends_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(ValueError, match="must be a plain file, got a pipe or a device"):
            load(path)


# --- counts


def lists(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(value, list):
            yield (*path, key)
        if isinstance(value, list | dict):
            yield from lists(value, (*path, key))


def test_no_list_may_be_absurdly_long(tmp_path: Path) -> None:
    started = time.process_time()
    for path in {tuple(k for k in way if not isinstance(k, int)): way for way in lists(small())}.values():
        raw = small()
        *way, last = path
        node = raw
        for step in way:
            node = node[step]
        node[last] = [0] * 10_001
        refused(tmp_path, raw, "at most 10000 items, got 10001")
    raw = small()
    raw["suite"]["host"]["deep"] = [0] * 10_001
    refused(tmp_path, raw, "at most 10000 items")
    assert time.process_time() - started < 5.0


def test_a_million_rows_are_refused_in_seconds(tmp_path: Path) -> None:
    raw, started = small(), time.process_time()
    raw["rows"] = [{}] * 10**6
    refused(tmp_path, raw, "results.rows must have at most 10000 items, got 1000000")
    assert time.process_time() - started < 4.0


def test_depth_in_a_free_field_ends(tmp_path: Path) -> None:
    for depth in (18, 400, 900):
        raw = small()
        raw["suite"]["host"]["deep"] = json.loads("[" * depth + "]" * depth)
        refused(tmp_path, raw, "must be nested at most 16 deep")


@pytest.mark.parametrize("value", [-1, 2**128, 10**400, -(10**400), 10**4000])
def test_every_integer_is_a_count(tmp_path: Path, value: int) -> None:
    places = [path for path, leaf in leaves(small()) if type(leaf) is int and path != ("schema",)]
    free = ("parameters", "at", "host")
    assert len(places) > 10
    for path in {tuple(k for k in p if not isinstance(k, int)): p for p in places}.values():
        raw = small()
        place(raw, path, value)
        if value != -1 or not set(path) & set(free):
            refused(tmp_path, raw, r"below 2\*\*128")


# --- parts that do not fit each other


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        (("rows", 0, "curves", 0, "x"), [], "have places on its axis"),
        (("rows", 0, "curves", 0, "x", 3), "nan", "have places on its axis, all of a size that can be drawn"),
        (("rows", 0, "curves", 0, "x", 3), "inf", "have places on its axis, all of a size that can be drawn"),
        (
            ("rows", 0, "curves", 0, "x", 3),
            5e-324,
            "have places on its axis, all of a size that can be drawn",
        ),
        (
            ("rows", 0, "curves", 0, "x", 3),
            -1e300,
            "have places on its axis, all of a size that can be drawn",
        ),
        (("rows", 0, "curves", 0, "predicted"), [1.0], "have one value for each place"),
        (("rows", 0, "curves", 0, "predicted"), [], "have one value for each place"),
        (("rows", 0, "curves", 0, "rivals"), {"r": [1.0] * 200}, "have one value for each place"),
        (("suite", "host"), {"wall_seconds": "long"}, "have a host with a number as wall_seconds"),
        (("suite", "host"), {"packages": ["numpy"]}, "names of packages"),
        (("suite", "host"), {"commit": 7}, "a text as commit"),
        (("derivations",), [{"name": "x"}], "have a name and a statement in each of its derivations"),
    ],
)
def test_parts_that_do_not_fit_are_named(tmp_path: Path, path: Any, value: Any, match: str) -> None:
    raw = small()
    place(raw, path, value)
    refused(tmp_path, raw, rf"is corrupt: results.* must {match}|{match}")


def test_rows_have_names_of_their_own(tmp_path: Path) -> None:
    raw = small()
    raw["rows"] *= 2
    refused(tmp_path, raw, "results must have rows with different ids")


# --- drawing whatever loads


HOSTILE_FLOATS = (0.0, 1e308, -1e308, 5e-324, 1e100, -1.0, "nan", "inf", "-inf")


def figures(made: Results, parts: set[str]) -> Iterator[Figure]:
    """The figures of these parts of a results file; what was left as it was is drawn elsewhere."""
    if "rows" in parts:
        yield from (plots.agreement(row) for row in made.rows if row.points)
    if "observations" in parts:
        yield from filter(None, (plots.observation(table) for table in made.observations))
    if "runs" in parts:
        yield plots.seconds_chart(made)


@settings(deadline=None, max_examples=12, derandomize=True)
@given(st.data())
def test_any_values_are_drawn_or_refused(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    raw = small(data.draw(st.integers(0, len(RAW["rows"]) - 1)))
    drawn = ("rows", "observations")
    places = [p for p, leaf in leaves(raw) if p[0] in drawn or (p[0] == "runs" and p[-1] == "seconds")]
    changed = data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=4))
    for path in changed:
        old = dict(leaves(raw))[path]
        number = isinstance(old, float | int) or old in NOT_FINITE
        kind = HOSTILE_FLOATS if number else PAYLOADS
        new = not old if isinstance(old, bool) else data.draw(st.sampled_from(kind))
        place(raw, path, data.draw(st.sampled_from([0, 1, 2**100])) if type(old) is int else new)
    with contextlib.suppress(ValueError):
        made = read(tmp_path_factory.getbasetemp(), raw)
        for figure in figures(made, {path[0] for path in changed}):
            plots.to_svg(figure)


# --- the page


class Page(html.parser.HTMLParser):
    """What could act on a page: scripts, handlers and links that leave it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "iframe", "object", "embed", "img", "base", "form", "foreignobject", "animate"):
            self.found.append(tag)
        for name, value in attrs:
            if name.startswith("on") or (
                name.endswith("href") and not re.fullmatch("#.*|data:,", value or "", re.DOTALL)
            ):
                self.found.append(f"{tag} {name}={value}")


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


KEPT = ("axis",)
"""Decides which figure is drawn: it is changed too, after the others."""


def poisoned(payload: str, *, all_fields: bool) -> Results:
    """The sample with the payload at the end of every text."""
    few = sample()
    rows = [few.rows[i] for i in (0, 1, 4, len(few.rows) - 1)]
    rows = [dataclasses.replace(row, points=row.points[:2]) for row in rows]
    few = dataclasses.replace(few, observations=few.observations[1:])  # one with a table, one that crashed
    few = dataclasses.replace(
        few, rows=rows, runs=few.runs[:2], inventory=few.inventory[:3], planted=few.planted[:1]
    )
    count = iter(range(10**6))
    made = dataclasses.replace(replaced(few, lambda text: f"{text}{payload}"), sha256="")
    if all_fields:
        return dataclasses.replace(
            made, rows=[dataclasses.replace(row, id=f"{row.id}{next(count)}") for row in made.rows]
        )
    kept = [
        dataclasses.replace(
            row, **{name: getattr(old, name) for name in KEPT if hasattr(old, name)}, curves=old.curves
        )
        for row, old in zip(made.rows, rows, strict=True)
    ]
    return dataclasses.replace(made, rows=kept)


@pytest.mark.parametrize(
    "payload", [*PAYLOADS[:3], "\\href{javascript:alert(1)}{x}" + PAYLOADS[9] + PAYLOADS[10]]
)
def test_no_text_of_a_results_file_acts_on_the_page(tmp_path: Path, payload: str) -> None:
    made = poisoned(payload, all_fields=payload == PAYLOADS[0])
    page = report.document(read(tmp_path, dumps(made).encode()))
    assert Page(page).found == []
    assert "<script" not in page.lower()
    assert page.encode("utf-8") and not re.search("[\x00-\x08\x0e-\x1f\ud800-\udfff]", page)


def test_the_test_of_the_page_sees_what_acts() -> None:
    text = '<p onclick="x"><script></script><a href="javascript:x"></a><a href="#x"></a><mi href="http://x"/>'
    assert Page(text).found == ["p onclick=x", "script", "a href=javascript:x", "mi href=http://x"]


@pytest.mark.parametrize(
    "latex",
    [
        r"\href{javascript:alert(1)}{x}",
        r"a + \href{https://example.org}{b}",
        r"\style{position:fixed}{x}",
        r"\class{surprise}{x}",
        r"\cssId{matrix}{x}",
        r"\text{<script>alert(1)</script>}",
        "x" * 100_000,
        "{" * 4000,
        r"\left(" * 800,
        "a\x00\ud800",
    ],
)
def test_a_formula_stays_a_formula(latex: str) -> None:
    started = time.process_time()
    made = str(report.formula(latex))
    assert made.startswith('<code class="latex">') and Page(made).found == []
    assert time.process_time() - started < 1.0


def test_a_formula_keeps_its_harmless_attributes() -> None:
    assert "<math" in report.formula(r"\color{red}{\tfrac{1}{2}} \left( x \right)")


# --- names of files


NAMES = (
    "../../../escape", "/etc/escape", "..", ".", "", "con", "NUL.txt", "aux", "overview", "seconds", "a/b", "a-b",
    "A-B", "x" * 500, "-rf", "\x00", "\ud800", "a\nb", "~", "C:\\x", "$HOME", "名",
)  # fmt: skip


def test_names_of_figures_stay_in_their_folder() -> None:
    slugs = wording.slugs(NAMES)
    assert len({slug.lower() for slug in slugs.values()}) == len(NAMES)
    for slug in slugs.values():
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]{0,150}", slug)
        assert not re.match(r"(con|nul|aux|prn)(\.|$)", slug.lower())


def test_many_equal_names_are_told_apart_at_once() -> None:
    started = time.process_time()
    slugs = wording.slugs("!" * k for k in range(1, 5000))
    assert len(set(slugs.values())) == 4999 and time.process_time() - started < 1.0


def test_plots_of_any_names_are_written_once_and_below_the_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(plots, "save_figure", lambda figure, stem: [stem])
    monkeypatch.setattr(plots, "agreement", lambda row, mark: None)
    monkeypatch.setattr(plots, "observation", lambda table, mark: "a figure")
    row = sample().rows[0]
    rows = [dataclasses.replace(row, id=name) for name in NAMES]
    table = sample().observations[1]
    tables = [dataclasses.replace(table, id=f"{name}/o") for name in NAMES]
    made = dataclasses.replace(sample(), rows=rows, observations=tables)
    written = plots.save_all(made, tmp_path / "plots")
    assert len({str(path).lower() for path in written}) == 2 * len(NAMES) + 2
    assert {path.parent for path in written} == {tmp_path / "plots"}


# --- as a user meets it


def test_a_hostile_file_is_plotted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = poisoned("/../<b>\x1b\ud800漢$_{", all_fields=True)
    few = dataclasses.replace(made, rows=[dataclasses.replace(r, points=r.points[:1]) for r in made.rows[:1]])
    (tmp_path / "results.json").write_text(dumps(few))
    before = {path.name for path in tmp_path.parent.iterdir()}

    assert main(["plot", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""
    assert {path.name for path in tmp_path.parent.iterdir()} == before
    assert len(list((tmp_path / "plots").iterdir())) == 8
    for path in (tmp_path / "plots").glob("*.svg"):
        ElementTree.parse(path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"schema": 5}', b"[" * 10**5])
def test_a_corrupt_file_is_one_line(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results.json").write_bytes(content)
    for words in (["plot"], ["replay"], ["report", "--replay"]):
        assert main([*words, str(tmp_path)]) == 2
        printed = capsys.readouterr()
        assert printed.out == "" and len(printed.err.splitlines()) == 1
        assert printed.err.startswith("losscurv: results file") and "run losscurv report again" in printed.err
