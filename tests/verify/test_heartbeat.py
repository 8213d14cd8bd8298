"""No silence while the main thread is busy, and no word where something is said anyway."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from verify.heartbeat import Heartbeat
from verify.reporting import _counted


def test_a_long_call_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Heartbeat, "EVERY", 0.02)
    monkeypatch.setattr(Heartbeat, "TICK", 0.01)
    said: list[str] = []

    with Heartbeat(said.append, "loading") as heart:
        until = time.monotonic() + 5.0
        while not said and time.monotonic() < until:
            pass  # busy, as a long import is
        heart.doing(lambda: "3 of 4 claims")
        while said[-1] != "3 of 4 claims" and time.monotonic() < until:
            pass
    assert re.fullmatch(r"loading, \d+ s", said[0]) and said[-1] == "3 of 4 claims"
    spoken = len(said)
    time.sleep(0.05)
    assert len(said) == spoken


def test_what_is_quick_is_not_told() -> None:
    said: list[str] = []

    with Heartbeat(said.append, "loading") as heart:
        heart.beat()
    assert said == []


def test_cards_are_counted_while_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    told: list[str | Callable[[], str]] = []

    drawn = _counted(map, told.append)(abs, [-1, 2, 3])
    said = list[str]()
    for _ in drawn:
        now += 2.0
        far = told[-1]
        assert callable(far)
        said.append(far())
    assert said == [
        "writing the page: 1 of 3 cards drawn, 2 s, about 4 s left",
        "writing the page: 2 of 3 cards drawn, 4 s, about 2 s left",
        "writing the page: 3 of 3 cards drawn, 6 s, about 0 s left",
    ]
    assert told[1:] == ["writing the page"]
