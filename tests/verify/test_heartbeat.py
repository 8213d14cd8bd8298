"""No silence while the main thread is busy, and no word where something is said anyway."""

import re
import time

import pytest

from verify.heartbeat import Heartbeat


def test_a_long_call_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Heartbeat, "EVERY", 0.02)
    said = []

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
    said = []

    with Heartbeat(said.append, "loading"):
        pass
    assert said == []
