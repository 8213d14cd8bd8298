"""Every page of a report in headless Chromium: errors, requests, width, links, and whether the search finds each line.

``python -m benchmarks.page_check losscurv-report [--shots DIR]`` after a run; the status is 1 where something is wrong.
With `--shots`, the first screens of every page, narrow and wide, light and dark, and the page as it prints.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

from benchmarks.browser import Tab, opened

WIDTHS = (400, 1400)
LONGEST = 3600
"""Pixels of a page that a picture shows."""

LINKS = "Array.from(document.querySelectorAll('a[href]'), (a) => a.href)"
IDS = "Array.from(document.querySelectorAll('[id]'), (e) => e.id)"
UNFOLD = "document.querySelectorAll('details').forEach((d) => { d.open = true; })"
WIDER = """(() => {
  const wide = document.documentElement.clientWidth, over = document.documentElement.scrollWidth - wide;
  if (over <= 0) return [];
  const held = (e) => e && (/auto|scroll|hidden/.test(getComputedStyle(e).overflowX) || held(e.parentElement));
  const out = Array.from(document.body.querySelectorAll("*")).filter(
    (e) => e.getBoundingClientRect().right > wide + 1 && !held(e));
  const said = (e) => `${e.tagName.toLowerCase()} in ${e.closest("[id]")?.id}: ${e.textContent.trim().slice(0, 40)}`;
  return [over + " px", ...out.slice(0, 3).map(said)];
})()"""
CUT = """Array.from(document.querySelectorAll("h1, h2, h3, h4, p, li, dt, dd, th, td, summary, label"))
  .filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "auto"
    && !e.closest(".scroll, .sheet, .chart, .display, .long, .statement, pre"))
  .slice(0, 4).map((e) => e.tagName.toLowerCase() + ": " + e.textContent.trim().slice(0, 60))"""
MISSED = """(() => {
  const box = document.getElementById("query"), missed = [];
  if (!box) return null;
  const find = (text) => { box.value = text; box.dispatchEvent(new Event("input", { bubbles: true })); };
  const hits = Array.from(document.querySelectorAll("li.hit")), lines = new Map();
  for (const hit of hits) {
    const said = hit.querySelector("a span").firstChild.textContent.trim();
    const first = hit.closest(".entryline")?.querySelector("p").textContent.trim().split(" ")[0] ?? said.split(" ")[0];
    const others = Array.from(hit.querySelectorAll(".sections a"), (a) => a.textContent);
    for (const entry of [first, ...others]) lines.set(entry, [...lines.get(entry) ?? [], hit]);
    find(said);
    if (hit.hidden || !hit.offsetParent) missed.push(said);
  }
  for (const [entry, own] of lines) {
    find(entry);
    for (const hit of own) if (entry && hit.hidden) missed.push(entry + ": " + hit.textContent.trim());
  }
  find("");
  return { lines: hits.length, entries: lines.size, missed };
})()"""


def complaints(tab: Tab, folder: Path) -> Iterator[str]:
    """What the browser said while a page was loaded: errors of its console, and requests outside of the folder."""
    for event in tab.events:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            yield f"script: {params['exceptionDetails'].get('text')}"
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            yield f"console: {params['args']}"
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            yield f"log: {params['entry']['text']}"
        elif method == "Network.requestWillBeSent" and not _inside(params["request"]["url"], folder):
            yield f"request: {params['request']['url']}"


def _inside(address: str, folder: Path) -> bool:
    return address.startswith((f"{folder.as_uri()}/", "data:", "about:"))


def overflows(tab: Tab) -> Iterator[str]:
    """What is wider than the window, at each width, with all that is folded opened; the columns that are cut."""
    tab.value(UNFOLD)
    for width in WIDTHS:
        tab.width(width)
        wide, cut = tab.value(WIDER), tab.value(CUT)
        yield from [f"overflow at {width} px: {', '.join(wide)}"] if wide else []
        yield from [f"cut at {width} px: {text}" for text in cut]


def unresolved(links: Sequence[str], ids: Mapping[str, set[str]], folder: Path) -> Iterator[str]:
    """Links that lead to no page of the folder, or to no place on it; what lies outside is counted apart."""
    for link in dict.fromkeys(links):
        page, place = urldefrag(link)
        if not page.startswith(f"{folder.as_uri()}/"):
            continue
        if page not in ids:
            yield f"link to no page: {link}"
        elif place and not place.startswith("?") and unquote(place) not in ids[page]:
            yield f"link to no place: {link}"


def checked(tab: Tab, folder: Path, shots: Path | None = None) -> Iterator[tuple[str, str]]:
    """What is wrong, page by page, each with its page."""
    pages = sorted(folder.rglob("*.html"))
    links: dict[str, list[str]] = {}
    ids: dict[str, set[str]] = {}
    for page in pages:
        address, name = page.as_uri(), page.relative_to(folder).as_posix()
        tab.width(WIDTHS[-1])
        tab.load(address)
        links[name], ids[address] = tab.value(LINKS), set(tab.value(IDS))
        found = [*_searched(tab), *_photographed(tab, name, shots), *overflows(tab), *complaints(tab, folder)]
        yield from ((name, wrong) for wrong in found)
    for name, led in links.items():
        yield from ((name, wrong) for wrong in unresolved(led, ids, folder))
    outside = {link for led in links.values() for link in led if not _inside(link, folder)}
    print(
        f"{len(pages)} pages, {sum(map(len, links.values()))} links, {len(outside)} of them leave the folder"
    )


def _searched(tab: Tab) -> Iterator[str]:
    """Lines of the index that their own name does not find, and entries that miss one of their lines."""
    said: Mapping[str, Any] | None = tab.value(MISSED)
    if said:
        print(f"search: {said['lines']} lines, {said['entries']} entries")
        yield from (f"not found by its name: {name}" for name in said["missed"])


def _photographed(tab: Tab, name: str, shots: Path | None) -> Iterator[str]:
    """Pictures of a page, which say nothing of what is wrong."""
    if shots is None:
        return
    shots.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"\W+", "-", name.removesuffix(".html"))
    for theme in ("light", "dark"):
        tab.theme(theme)
        for width in WIDTHS:
            tab.width(width)
            tab.photograph(shots / f"{stem}-{width}-{theme}.png", LONGEST)
    tab.theme("light")
    tab.print(shots / f"{stem}.pdf")
    yield from ()


def main() -> None:
    """A line for each thing that is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shots", type=Path)
    options = parser.parse_args()
    with opened() as tab:
        wrong = list(checked(tab, options.folder.resolve(), options.shots))
    for name, text in wrong:
        print(f"{name}: {text}")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
