"""Seconds until headless Chromium has loaded, laid out and printed each page of a report, less those of an empty one.

``python -m benchmarks.page_load losscurv-report`` after a run; the goal for the first page is one second.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.browser import installed

REPEATS = 5


def seconds(browser: str, address: str, repeats: int) -> float:
    """Median wall time of a browser that is started, loads the page, and prints what it has become."""
    found = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as profile:
            options = [
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                f"--user-data-dir={profile}",
                "--dump-dom",
            ]
            started = time.perf_counter()
            subprocess.run([browser, *options, address], capture_output=True, check=True)
            found.append(time.perf_counter() - started)
    return statistics.median(found)


def main() -> None:
    """A line for each page: kilobytes, and seconds beyond an empty page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    browser = installed()
    for page in sorted(options.folder.resolve().rglob("*.html")):
        took = seconds(browser, page.as_uri(), options.repeats) - seconds(
            browser, "about:blank", options.repeats
        )
        print(
            f"{page.relative_to(options.folder.resolve())!s:44} {page.stat().st_size / 1e3:8.0f} kB {took:6.2f} s"
        )


if __name__ == "__main__":
    main()
