"""Checks of pages that need no browser."""

from pathlib import Path

import pytest

from benchmarks.page_check import Tab, complaints, unresolved

FOLDER = Path("/reports/one")
PAGE, OTHER = (f"{FOLDER.as_uri()}/{name}" for name in ("report.html", "cards/a.html"))


class Silent(Tab):
    """A tab without a browser, to which something has happened."""

    def __init__(self, *events: dict) -> None:
        super().__init__(-1, -1)
        self.events.extend(events)


def request(address: str) -> dict:
    return {"method": "Network.requestWillBeSent", "params": {"request": {"url": address}}}


def event(method: str, **params: object) -> dict:
    return {"method": method, "params": params}


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (request(OTHER), None),
        (request("data:,"), None),
        (request("https://example.org/a.js"), "request: https://example.org/a.js"),
        (request("file:///reports/elsewhere.css"), "request: file:///reports/elsewhere.css"),
        (event("Runtime.exceptionThrown", exceptionDetails={"text": "no name"}), "script: no name"),
        (event("Runtime.consoleAPICalled", type="log", args=["x"]), None),
        (event("Runtime.consoleAPICalled", type="error", args=["x"]), "console: ['x']"),
        (event("Log.entryAdded", entry={"level": "error", "text": "refused"}), "log: refused"),
        (event("Page.loadEventFired"), None),
    ],
)
def test_errors_and_requests_that_leave_the_folder_are_said(event: dict, said: str | None) -> None:
    assert list(complaints(Silent(event), FOLDER)) == ([said] if said else [])


@pytest.mark.parametrize(
    ("link", "said"),
    [
        (PAGE, None),
        (f"{PAGE}#find", None),
        (f"{PAGE}#?q=theorem", None),  # a state of the search
        (f"{PAGE}#a%20b", None),
        (f"{PAGE}#nowhere", "link to no place: "),
        (f"{OTHER}#x", "link to no page: "),
        ("https://example.org/#x", None),
    ],
)
def test_links_lead_to_a_page_and_a_place_on_it(link: str, said: str | None) -> None:
    found = list(unresolved([link, link], {PAGE: {"find", "a b"}}, FOLDER))
    assert found == ([said + link] if said else [])
