"""Headless Chromium by the DevTools protocol over two pipes: pages are loaded, asked, and photographed.

Nothing but the standard library: ``--remote-debugging-pipe`` reads JSON with a zero byte after it from descriptor 3 and
writes it to descriptor 4.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

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


def installed() -> str:
    """The path of a browser of the family of Chromium.

    Raises
    ------
    SystemExit
        If none is installed.
    """
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"one of {', '.join(BROWSERS)} must be installed, got none")
    return browser


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
        """What an expression of JavaScript gives on the page, awaited where it is a promise.

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
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=pixels,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def theme(self, name: str) -> None:
        """Show the page as one who prefers ``light`` or ``dark``."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def photograph(self, path: Path, longest: int = 0) -> None:
        """Write the window as PNG, or the page from its top to `longest` pixels."""
        wide, high = self.value(
            "[document.documentElement.clientWidth, document.documentElement.scrollHeight]"
        )
        clip = {"x": 0, "y": 0, "width": wide, "height": min(high, longest), "scale": 1}
        more = {"clip": clip, "captureBeyondViewport": True} if longest else {}
        shot = self.ask("Page.captureScreenshot", format="png", **more)
        path.write_bytes(base64.b64decode(shot["data"]))

    def print(self, path: Path) -> None:
        """Write the page as PDF, A4."""
        made = self.ask("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=True)
        path.write_bytes(base64.b64decode(made["data"]))

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
    into, out = os.pipe(), os.pipe()
    theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 16) for fd in (into[0], out[1])]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = installed()
        pid = os.posix_spawn(
            browser,
            [browser, *OPTIONS, f"--user-data-dir={profile}"],
            dict(os.environ),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, theirs[0], 3),
                (os.POSIX_SPAWN_DUP2, theirs[1], 4),
            ],
        )
        for fd in (into[0], out[1], *theirs):
            os.close(fd)
        try:
            tab = Tab(into[1], out[0])
            tab.attach()
            yield tab
        finally:
            os.close(into[1])
            os.close(out[0])
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
