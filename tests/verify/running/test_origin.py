"""The key of a block: code, libraries, machine and images, and nothing that does not count."""

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path

import pytest

from simulate.monte_carlo import Point
from tests.verify import toy_claims
from tests.verify.running.stored_draws import _forgotten, simulate, where
from verify.running import origin
from verify.running.origin import Key

__all__ = ["_forgotten"]


def test_a_key_is_stable_and_tells_everything_apart() -> None:
    first = where()
    assert first is not None and first == where()
    others = [
        where(experiment="f"),
        where(point=Point(dim=3)),
        where(seed=2),
        where(seed=2**80),
        where(simulate=toy_claims.uniform),
    ]
    assert len({first, *others}) == 6


def test_code_that_no_file_shows_is_not_stored() -> None:
    def inner(block, point):
        return {}

    in_no_file: dict = {}
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


def test_images_count_by_their_content(tmp_path: Path) -> None:
    file = tmp_path / "images.npz"
    found = []
    for content in (b"1", b"2", b"1"):
        origin.refresh()
        file.write_bytes(content)
        found.append(where(point=Point(images=str(file))))
    assert found[0] == found[2] != found[1]
    assert where(point=Point(images="digits")) != found[0]
    assert where(point=Point(images=str(tmp_path / "gone.npz"))) is None


@pytest.mark.parametrize(
    ("target", "name"),
    [("importlib.metadata", "version"), ("platform", "machine"), ("verify.running.origin", "_processor")],
)
def test_packages_and_machine_change_the_fingerprint(
    target: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = where()
    monkeypatch.setattr(f"{target}.{name}", lambda *_: "another")
    origin._versions.cache_clear()
    origin._hardware.cache_clear()
    assert where() != before


def test_the_python_version_changes_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = where()
    monkeypatch.setattr(origin.sys, "version_info", type("V", (), {"major": 3, "minor": 99}))
    origin._versions.cache_clear()
    assert where() != before


def test_a_gpu_counts_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    seen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for name in ("H100", "H200"):
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device, name=name: f"{name} {device}")
        origin._hardware.cache_clear()
        seen.append(where(device="cuda:0"))
    assert seen[0] != seen[1]


def test_who_asks_a_cluster_for_a_gpu_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    here = where()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    origin._hardware.cache_clear()
    assert where(device="cuda") != here


def test_a_system_that_tells_nothing_of_its_processor_has_a_name_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(*_: object, **__: object) -> str:
        raise OSError

    monkeypatch.setattr(Path, "read_text", gone)
    monkeypatch.setattr("platform.processor", lambda: "i386")
    assert origin._processor() == "i386"
