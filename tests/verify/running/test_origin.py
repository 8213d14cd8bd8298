"""The key of a block: code, libraries, machine and images, and nothing that does not count."""

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from simulate.monte_carlo import Point
from tests.verify import toy_claims
from tests.verify.running.stored_draws import _forgotten, simulate, where
from verify.running import origin
from verify.running.origin import Key

__all__ = ["_forgotten"]


def test_a_key_is_stable_and_tells_everything_apart() -> None:
    others = [
        {"experiment": "f"}, {"point": Point(dim=3)}, {"seed": 2}, {"seed": 2**80}, {"simulate": toy_claims.uniform},
    ]  # fmt: skip
    assert where() == where() is not None
    assert len({where(), *(where(**other) for other in others)}) == 6


def test_code_that_no_file_shows_is_not_stored() -> None:
    def inner(block, point):
        return {}

    in_no_file = {}
    exec("def typed(block, point): return {}", in_no_file)
    for unknown in (
        inner,
        lambda block, point: {},
        in_no_file["typed"],
        simulate.__call__,
        partial(simulate),
        wrapping,
        disguised,
        *NAMELESS,
    ):
        assert where(simulate=unknown) is None
    assert where(simulate=simulate) is not None


def scaled(factor: float) -> Callable:
    def wrapping(block, point):
        return {"x": factor}

    return wrapping


wrapping = wraps(simulate)(scaled(2.0))
disguised = scaled(3.0)
disguised.__name__ = disguised.__qualname__ = "disguised"
NAMELESS = (lambda block, point: {},)


@pytest.mark.parametrize(
    "part", ["theory/a.py", "simulate/deep/b.py", "verify/claims/c.py", "simulate/digits.csv.gz"]
)
def test_a_change_of_code_changes_the_fingerprint(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origin, "__file__", str(tmp_path / "verify/running/origin.py"))
    for name in (part, "theory/a.py", "simulate/deep/b.py", "verify/claims/c.py", "verify/page/report.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1", encoding="utf-8")

    def now() -> Key | None:
        origin.refresh()
        return where()

    before = now()
    (tmp_path / "verify/page/report.py").write_text("2", encoding="utf-8")
    assert now() == before
    (tmp_path / part).write_text("2", encoding="utf-8")
    assert now() != before


@pytest.mark.parametrize(
    ("target", "value"),
    [
        ("importlib.metadata.version", lambda _: "another"),
        ("platform.machine", lambda: "another"),
        ("verify.running.origin._processor", lambda: "another"),
        ("sys.version_info", SimpleNamespace(major=3, minor=99)),
    ],
)
def test_packages_and_machine_change_the_fingerprint(
    target: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = where()
    monkeypatch.setattr(target, value)
    origin._versions.cache_clear()
    origin._hardware.cache_clear()
    assert where() != before


def test_a_gpu_counts_by_its_name_and_who_asks_a_cluster_for_one_needs_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    seen = [where()]
    for name in ("H100", "H200", ""):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=bool(name): there)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device, name=name: f"{name} {device}")
        origin._hardware.cache_clear()
        seen.append(where(device="cuda:0"))
    assert len(set(seen)) == 4
