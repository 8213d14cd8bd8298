"""The correctness report, drawn from the results alone: a first page, pages of cards, and details of the run.

| page | holds |
|---|---|
| ``report.html`` | verdict, main plots, all claims with their index, findings, misprints and errors |
| ``cards/<paper>-<topic>.html`` | the cards of one topic of a paper |
| ``about.html`` | deviations, margins, limits, planted errors, derivations, the inventory |
| ``claims/<paper>.html`` | what a paper states and how it is derived (`verify.page.report.paper_pages`) |

`document` puts the first three into one page. No page needs a network or a server, and none runs a script but its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from pathlib import Path

from verify.claims import registry
from verify.files import replace_files, writing
from verify.page import wording
from verify.page.report import paper_pages
from verify.page.report.contents import ABOUT, CARDS, NO_PAGES, REPORT, Contents, Each, Pages
from verify.page.report.pages import one_page, several_pages
from verify.results import Results, dumps, edited
from verify.running.store import exclusive

__all__ = ["MADE_BY", "document", "documents", "write"]

MADE_BY = '<meta name="generator" content="losscurv'
"""What the head of every page says, within so many letters of its start."""

HEAD = 2000


def write(results: Results, folder: Path, each: Each = map, *, one_file: bool = False) -> Path:
    """Write the report, ``results.json`` and the pages of its papers, all or none; returns the first page.

    Of two runs that end in one folder at once, all files are those of the one that was later; pages of cards that an
    earlier run has left there are removed. The figures are drawn by `each`, a ``map`` that may share them among
    processes. `one_file` puts all but the pages of papers into the first page.

    Raises
    ------
    ValueError
        If the folder cannot be written.
    """
    with writing("report", folder):
        folder.mkdir(parents=True, exist_ok=True)
        shown = Contents(wording.legible(results), NO_PAGES)
        inventory = REPORT if one_file else ABOUT
        docs = registry.docs(tuple(paper.id for paper in results.suite.papers))
        pages = paper_pages.beside(results, docs, shown.anchors, inventory)
        texts = {"results.json": dumps(results)} | {made.file: made.html for made in pages.values()}
        texts |= {REPORT: document(results, each, pages)} if one_file else documents(results, each, pages)
        for name in texts:
            (folder / name).parent.mkdir(exist_ok=True)
        with exclusive(folder):
            replace_files({folder / name: text for name, text in texts.items()})
            _remove_stale(folder, texts)
    return folder / REPORT


def document(results: Results, each: Each = map, pages: Pages = NO_PAGES) -> str:
    """The report as one page, its figures drawn by `each`; an entry leads to its section on a page beside it."""
    return one_page(Contents(wording.legible(results), pages), each, edited(results))


def documents(results: Results, each: Each = map, pages: Pages = NO_PAGES) -> Mapping[str, str]:
    """The report as pages, by their paths as the first one sees them."""
    return several_pages(Contents(wording.legible(results), pages), each, edited(results))


def _remove_stale(folder: Path, kept: Collection[str]) -> None:
    """Remove the pages of an earlier report that this one has no use for; files of others stay."""
    for path in [folder / ABOUT, *sorted((folder / CARDS).glob("*.html"))]:
        if path.relative_to(folder).as_posix() not in kept and path.is_file():
            with path.open(encoding="utf-8", errors="replace") as file:
                ours = MADE_BY in file.read(HEAD)
            if ours:
                path.unlink()
    with contextlib.suppress(OSError):  # not there, or not empty
        (folder / CARDS).rmdir()
