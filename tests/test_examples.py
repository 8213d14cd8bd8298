"""The tutorials as documents. Building the documentation runs them, and fails on an error or a missing picture."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "examples" / "gallery.py"
TUTORIALS = sorted({*(ROOT / "examples").glob("*.py")} - {GALLERY})


each_path = pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)


@each_path
def test_a_tutorial_introduces_itself_shows_a_picture_and_ends_with_what_to_try(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len((ast.get_docstring(ast.parse(text)) or "").split()) > 50
    assert re.findall(r"^# !\[.{20,}\]\((.*)\)$", text, re.MULTILINE) == [f"{path.stem}.png"]
    assert re.search(r"\n# ## What to try next\n#\n(# - .*\n(#   .*\n)*){3,}$", text)


@pytest.mark.parametrize("path", [*TUTORIALS, GALLERY], ids=lambda path: path.stem)
def test_a_tutorial_makes_public_calls_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    taken_from = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    known = {"losscurv", "matplotlib.pyplot", "numpy", "torch", "torch.utils.data", "transformers"}
    assert imported | taken_from <= known
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not any(re.match(r"_[a-z]", name) for name in attributes)


@each_path
def test_a_tutorial_that_trains_sets_one_thread(path: Path) -> None:
    """Large rates amplify how several threads round: another machine would print other numbers."""
    text = path.read_text(encoding="utf-8")
    assert "losscurv.check" in text or "torch.set_num_threads(1)" in text


def test_every_tutorial_is_listed() -> None:
    readme, nav = ((ROOT / name).read_text(encoding="utf-8") for name in ("examples/README.md", "mkdocs.yml"))
    listed = re.findall(r"^\| \[(\w+\.py)\]\((\w+\.py)\) \|", readme, re.MULTILINE)
    assert sorted(listed) == [(path.name, path.name) for path in TUTORIALS]
    pages = re.findall(r": tutorials/(\w+)\.md$", nav, re.MULTILINE)
    assert sorted(pages) == sorted(path.stem for path in (*TUTORIALS, GALLERY))


def test_code_of_a_picture_in_the_gallery_is_short() -> None:
    text = GALLERY.read_text(encoding="utf-8")
    codes = re.findall(r"((?:^(?!#).*\n)+)^# !\[.{20,}\]\((.*)\.png\)$", text, re.MULTILINE)
    assert len(codes) == 9
    for code, name in codes:
        assert f'save("{name}", ' in code and len(code.strip().splitlines()) <= 15, name
