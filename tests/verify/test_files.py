"""Files are written whole or not at all, and a process that is killed meanwhile leaves nothing for good."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from verify.files import replace_files
from verify.signals import Interrupted

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def forked(act: Callable[[], object]) -> int:
    """A process that does something and ends; its number."""
    process = os.fork()
    if process == 0:
        try:
            act()
        finally:
            os._exit(0)
    return process


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_a_kill_has_left_is_removed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {tmp_path / name: "new" for name in ("page.html", "data [1].json")}
    for strange in ("page.html.part", "other.html.7.part", "page.html.7.parts"):
        (tmp_path / strange).touch()

    def killed() -> None:
        monkeypatch.setattr(os, "fsync", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        replace_files(texts)

    process = forked(killed)
    os.waitpid(process, 0)
    left = ["data [1].json", "other.html.7.part", "page.html", "page.html.7.parts", "page.html.part"]
    part = tmp_path / f"page.html.{process}.part"
    replace_files(texts)
    assert names(tmp_path) == sorted([*left, part.name])  # it might still be written
    os.utime(part, (0, 0))
    replace_files(texts)

    assert names(tmp_path) == left


def test_a_file_that_another_process_writes_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, (reader, writer), (heard, told) = tmp_path / "page.html", os.pipe(), os.pipe()

    def slow() -> None:
        monkeypatch.setattr(os, "fsync", lambda _: (os.write(writer, b"x"), os.read(heard, 1)))
        replace_files({path: "theirs"})

    process = forked(slow)
    os.read(reader, 1)  # it has written, and not yet renamed
    replace_files({path: "ours"})
    assert path.read_text() == "ours" and len(names(tmp_path)) == 2
    os.write(told, b"x")
    assert os.waitpid(process, 0)[1] == 0

    assert path.read_text() == "theirs" and names(tmp_path) == ["page.html"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", lambda _: signal.raise_signal(number))

    with pytest.raises(KeyboardInterrupt) as caught:
        replace_files({path: "new", tmp_path / "data.json": "new"})

    assert isinstance(caught.value, Interrupted) == (number is signal.SIGTERM)
    assert names(tmp_path) == ["page.html"] and path.read_text() == "old"
