"""Every page of a report in headless Chromium: size, errors, requests, width, names, links, and the search.

``python -m benchmarks.page_check losscurv-report`` after a run; the status is 1 where something is wrong.

The browser is asked by the DevTools protocol over two pipes, with nothing but the standard library:
``--remote-debugging-pipe`` reads JSON with a zero byte after it from descriptor 3 and writes it to descriptor 4.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

from benchmarks.timing import command

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 60.0
"""Seconds until an answer that does not come is given up."""

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-ipc-flooding-protection",  # a page may be asked many times a second
    "--remote-debugging-pipe",
)


class Tab:
    """One page of a browser: `ask` sends a command and waits for its answer, `events` are what came meanwhile."""

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out, self._held, self._last, self._session = into, out, b"", 0, ""
        self.events: list[Mapping[str, Any]] = []

    def attach(self) -> None:
        """Open a page and listen to its console, its log and its requests."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a command.

        Raises
        ------
        RuntimeError
            If the browser refuses it.
        """
        self._last += 1
        session = {"sessionId": self._session} if self._session else {}
        told = {"id": self._last, "method": method, "params": params} | session
        _write_all(self._into, json.dumps(told).encode() + b"\0")
        while (message := self._next()).get("id") != self._last:
            self.events.append(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def value(self, expression: str) -> Any:
        """Evaluate a JavaScript expression on the page, and await it if it is a promise.

        Raises
        ------
        RuntimeError
            If it throws.
        """
        said = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in said:
            raise RuntimeError(str(said["exceptionDetails"]))
        return said["result"].get("value")

    def load(self, address: str) -> None:
        """Go to a page and wait until it has loaded; events of the page before are forgotten."""
        self.events.clear()
        self.ask("Page.navigate", url=address)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def width(self, pixels: int, height: int = 900) -> None:
        """Lay the page out for a window so wide."""
        size = {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._held:
            if not select.select([self._out], [], [], max(0.0, until - time.monotonic()))[0]:
                raise RuntimeError(f"the browser said nothing for {PATIENCE:g} s")
            more = os.read(self._out, 1 << 20)
            if not more:
                raise RuntimeError("the browser has gone")
            self._held += more
        message, _, self._held = self._held.partition(b"\0")
        return json.loads(message)


@contextlib.contextmanager
def opened() -> Iterator[Tab]:
    """A tab of a browser of its own, with an empty profile, which ends with the context."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"one of {', '.join(BROWSERS)} must be installed, got none")
    into, out = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        running = subprocess.Popen(
            # Chromium takes descriptors 3 and 4. `Popen` passes pipes under the
            # numbers that they have; bash renames them.
            ["bash", "-c", f'exec "$0" "$@" 3<&{into[0]} 4>&{out[1]}', browser, *OPTIONS, f"--user-data-dir={profile}"],
            pass_fds=(into[0], out[1]), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        # The pipe ends with the browser only if this process does not hold its other end.
        os.close(into[0])
        os.close(out[1])
        try:
            tab = Tab(into[1], out[0])
            tab.attach()
            yield tab
        finally:
            os.close(into[1])
            os.close(out[0])
            running.terminate()
            running.wait()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


# --- what is checked

WIDTHS = (400, 1400)

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
  const box = document.getElementById("query"), lines = Array.from(document.querySelectorAll("#find li"));
  if (!box) return null;
  const find = (text) => { box.value = text; box.dispatchEvent(new Event("input", { bubbles: true })); };
  const missed = [];
  for (const line of lines) {
    const said = line.querySelector("a").textContent;
    find(said);
    if (line.hidden || !line.offsetParent) missed.push(said);
  }
  find("");
  return { lines: lines.length, missed };
})()"""
UNNAMED = """Array.from(document.querySelectorAll("svg, a, input, select, button"))
  .filter((e) => !e.closest("[aria-hidden=true], a svg") && !(e.getAttribute("aria-label") || e.textContent.trim()
    || e.labels?.length))
  .slice(0, 4).map((e) => e.outerHTML.slice(0, 80))"""
FIRST = "report.html"
TALLEST, HEAVIEST = 6000, 700_000
"""Pixels of the first page at its widest, as it opens, and bytes."""


def complaints(tab: Tab, folder: Path) -> Iterator[str]:
    """Return console errors and requests outside of the folder while a page was loaded."""
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
    """Return elements wider than the window at each width, with all folds open, and columns that are cut."""
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


def checked(tab: Tab, folder: Path) -> Iterator[tuple[str, str]]:
    """Return the problems of all pages, each with its page."""
    pages = sorted(folder.rglob("*.html"))
    links: dict[str, list[str]] = {}
    ids: dict[str, set[str]] = {}
    for page in pages:
        address, name = page.as_uri(), page.relative_to(folder).as_posix()
        tab.width(WIDTHS[-1])
        tab.load(address)
        links[name], ids[address] = tab.value(LINKS), set(tab.value(IDS))
        found = [*_large(tab, page)] if name == FIRST else []
        found += [f"without a name: {element}" for element in tab.value(UNNAMED)]
        found += _searched(tab)
        yield from ((name, wrong) for wrong in (*found, *overflows(tab), *complaints(tab, folder)))
    for name, led in links.items():
        yield from ((name, wrong) for wrong in unresolved(led, ids, folder))
    outside = {link for led in links.values() for link in led if not _inside(link, folder)}
    print(
        f"{len(pages)} pages, {sum(map(len, links.values()))} links, {len(outside)} of them leave the folder"
    )


def _large(tab: Tab, page: Path) -> Iterator[str]:
    """Return what the first page has beyond its pixels and bytes."""
    height, size = tab.value("document.documentElement.scrollHeight"), page.stat().st_size
    print(f"{FIRST}: {height} px, {size / 1000:.0f} kB")
    yield from [f"{height} px are more than {TALLEST}"] * (height > TALLEST)
    yield from [f"{size} bytes are more than {HEAVIEST}"] * (size > HEAVIEST)


def _searched(tab: Tab) -> Iterator[str]:
    """Lines of the index that their own name does not find."""
    said: Mapping[str, Any] | None = tab.value(MISSED)
    if said:
        print(f"search: {said['lines']} lines")
        yield from (f"not found by its name: {name}" for name in said["missed"])


def main() -> None:
    """A line for each thing that is wrong."""
    parser = command("benchmarks.page_check", __doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    with opened() as tab:
        wrong = list(checked(tab, folder))
    for name, text in wrong:
        print(f"{name}: {text}")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
