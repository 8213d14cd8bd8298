"""The examples as documents; that they run is seen by running them, each by itself."""

import ast
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_says_what_it_shows_and_runs_only_when_called(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert len((ast.get_docstring(tree) or "").split()) > 20
    last = tree.body[-1]
    assert isinstance(last, ast.If) and ast.unparse(last) == "if __name__ == '__main__':\n    main()"
    assert f"{path.stem}.png" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_that_trains_sets_one_thread_and_says_so(path: Path) -> None:
    """Large rates blow up what several threads round otherwise: another machine would print other numbers."""
    text = path.read_text(encoding="utf-8")
    if ".backward()" in text:
        assert "torch.set_num_threads(1)" in text
        assert "One thread is set" in (ast.get_docstring(ast.parse(text)) or "")


def test_every_example_is_listed() -> None:
    listed = re.findall(
        r"^\| \[(\w+\.py)\]\((\w+\.py)\) \|", (FOLDER / "README.md").read_text(), re.MULTILINE
    )
    assert sorted(name for name, _ in listed) == [path.name for path in EXAMPLES]
    assert all(name == target for name, target in listed)
