"""Edits of a room: drawn by a seed, tried against the tests of the room, and found again where code has moved."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks.house.room_edits import again, in_room, kept, main, mirror_of
from benchmarks.mutants.edits import Edit

LAW = """
def larger(a, b):
    if a is None or b == 3:
        raise ValueError("a")
    return not a > b, True


def twice(x):
    return x + x
"""
WEAK = "from room import law\n\ndef test_twice():\n    assert law.twice(2) == 4\n"
STRONG = (
    WEAK
    + """

def test_larger():
    for b in (3, 4):
        try:
            assert law.larger(2, b) == (True, True)
            assert b == 4
        except ValueError:
            assert b == 3
"""
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {
        "room/__init__.py": "",
        "room/law.py": LAW,
        "tests/room/test_law.py": STRONG,
        "tests/test_room_of_two.py": "",
        "tests/test_other.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return tmp_path


def test_decisions_are_edited_beside_quantities(tree: Path) -> None:
    found = {(edit.before, edit.after) for edit in in_room(tree, "room") if edit.kind == "logic"}

    assert found == {
        ("a is None or b == 3", "a is None and b == 3"),
        ("a is None", "a is not None"),
        ("b == 3", "b != 3"),
        ("not a > b", "a > b"),
        ("True", "False"),
    }
    assert {edit.kind for edit in in_room(tree, "room/law.py")} >= {"sign", "branch", "off by one"}


def test_the_mirror_of_a_room_mirror_it(tree: Path) -> None:
    assert mirror_of(tree, "room") == ["tests/room", "tests/test_room_of_two.py", "room"]
    assert mirror_of(tree, "room/law.py") == ["tests/room/test_law.py", "room/law.py"]
    with pytest.raises(ValueError, match="no tests mirror attic: name some with --tests"):
        mirror_of(tree, "attic")


def test_an_edit_is_found_again_where_the_code_has_gone(tree: Path) -> None:
    every = in_room(tree, "room")
    rows = [kept(edit, tree, every) for edit in every]
    assert [again(row, tree, every) for row in rows] == every

    head, law = LAW.split("\n\n\n")
    (tree / "room/law.py").write_text("# moved\n\n\n" + head, encoding="utf-8")
    (tree / "room/doubles.py").write_text("\n" + law.replace("x + x", "(x + x)"), encoding="utf-8")
    now = in_room(tree, "room")
    names = [(edit.function, edit.before, edit.after) for edit in every]
    assert [(e.function, e.before, e.after) for row in rows if (e := again(row, tree, now))] == names

    (tree / "room/doubles.py").unlink()
    now = in_room(tree, "room")
    assert {row["function"] for row in rows if again(row, tree, now) is None} == {"twice"}


def test_equal_edits_of_one_function_are_told_apart(tree: Path) -> None:
    def signs(text: str) -> list[Edit]:
        (tree / "room/law.py").write_text(text, encoding="utf-8")
        return [edit for edit in in_room(tree, "room") if edit.kind == "sign"]

    every = signs("def f(x):\n    y = x + 1\n    x = x + 1\n    return x + 1\n")
    rows = [kept(edit, tree, every) for edit in every]
    now = signs("def f(x):\n    x = x + 1\n    return x + 1\n")
    assert len(rows) == 3 and [again(row, tree, now) for row in rows[1:]] == now


@pytest.mark.slow
def test_tests_that_notice_less_than_before_are_reported(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tree / "before.json"

    assert main(["room", "--count", "2", "--seed", "3", "--out", str(out)], tree) == 0
    rows = json.loads(out.read_text(encoding="utf-8"))["edits"]
    assert "2 of 2 edits are noticed" in capsys.readouterr().out
    assert {row["killed_by"] for row in rows} == {
        "tests/room/test_law.py::test_twice",
        "tests/room/test_law.py::test_larger",
    }
    assert (tree / "room/law.py").read_text(encoding="utf-8") == LAW

    (tree / "tests/room/test_law.py").write_text(WEAK, encoding="utf-8")
    assert main(["--again", str(out)], tree) == 1
    assert "no longer noticed: room/law.py larger" in capsys.readouterr().out
    (tree / "tests/room/test_law.py").write_text("def test_it():\n    assert False\n", encoding="utf-8")
    assert main(["--again", str(out)], tree) == 2
    assert "without any edit tests/room" in capsys.readouterr().err


def test_a_room_or_a_file_is_needed() -> None:
    with pytest.raises(SystemExit, match="2"):
        main([])
