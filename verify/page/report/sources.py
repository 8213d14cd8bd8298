"""Links to the source of what a card shows, where this package says where its repository is."""

from __future__ import annotations

import importlib.metadata
import re
from functools import cache

__all__ = ["repository", "source_link"]


@cache
def repository() -> str:
    """The address of the repository that the metadata of this package names; empty without one."""
    try:
        listed = importlib.metadata.metadata("losscurv").get_all("Project-URL") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    urls = {
        label.strip().lower(): url.strip() for label, _, url in (str(line).partition(",") for line in listed)
    }
    url = urls.get("repository") or urls.get("source") or ""
    return url.rstrip("/") if url.startswith("https://") else ""


def source_link(home: str, commit: str, code: str) -> str:
    """Where a file and line of a commit are shown; empty without a repository, or for code of another package.

    >>> source_link("https://example.org/losscurv", "0123abc", "verify/claims/a.py:12")
    'https://example.org/losscurv/blob/0123abc/verify/claims/a.py#L12'
    >>> source_link("", "0123abc", "verify/claims/a.py:12")
    ''
    """
    known = re.fullmatch(r"([0-9a-f]+)\+?", commit)
    place = re.fullmatch(r"(verify/[\w/]+\.py):(\d+)", code)
    if not (home and known and place):
        return ""
    return f"{home}/blob/{known[1]}/{place[1]}#L{place[2]}"
