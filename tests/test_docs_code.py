"""Code blocks of README, CONTRIBUTING and docs run, in one process, page by page.

The language of a block says what becomes of it. ``python`` and ``sh`` run; ``console`` holds commands that take
minutes, or machines or data of the reader's own, and is read only; ``text`` is no code. `SHOWN` counts the last two.
"""

from __future__ import annotations

import doctest
import re
import runpy
import shlex
import shutil
import tomllib
from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import losscurv
from verify import cli, model
from verify.claims import registry
from verify.page import report
from verify.practice.measure import pages as measure_pages
from verify.practice.plan import pages as plan_pages
from verify.running import suite

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
SHOWN = {"console": 13, "text": 10}
"""Blocks that do not run."""

SMALLER = {
    "report": "--workers 1",
    "replay": "--workers 1",
    "measure": "--samples 40 --top 2 --tolerance 1",
    "plan": "--samples 64 --batch-sizes 4,16 --steps 3",
}
"""Options that are given last, and so hold, to make a command one of seconds."""


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """No derivations and drawings of pages, whose words no test compares."""
    monkeypatch.setattr(suite, "_derivations", lambda *_: [])
    monkeypatch.setattr(measure_pages, "measurement_page", lambda _: "a page")
    monkeypatch.setattr(plan_pages, "plan_page", lambda _: "a page")
    monkeypatch.setattr(plan_pages.plots, "save_figure", lambda *_: [])
    monkeypatch.setattr(report, "documents", lambda *_: {"report.html": "a page"})
    monkeypatch.setattr(report.paper_pages, "beside", lambda *_: {})


class Block(NamedTuple):
    """Its language, its text, and the line of the page where it begins."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    found, lines = list[Block](), page.read_text(encoding="utf-8").splitlines()
    start = None
    for number, line in enumerate(lines, 1):
        if line.startswith("```") and start is not None:
            found.append(Block(lines[start - 1][3:], "\n".join(lines[start : number - 1]) + "\n", start))
            start = None
        elif line.startswith("```"):
            start = number
    assert start is None
    return found


def commands(text: str) -> list[list[str]]:
    """The words of each command, those joined by ``&&`` apart."""
    lines = text.replace("\\\n", " ").splitlines()
    joined = [part for line in lines for part in line.split("&&")]
    return [words for part in joined if (words := shlex.split(part, comments=True))]


def test_every_block_says_what_it_is() -> None:
    kinds = Counter(block.language for page in PAGES for block in blocks(page))
    assert set(kinds) == {"python", "sh", *SHOWN}
    assert {kind: kinds[kind] for kind in SHOWN} == SHOWN
    for page in PAGES:
        prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"\n\n    \S", prose), f"{page.name}: an indented block has no language"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Create what the pages assume: the module of README, a package, data, weights, and names in Python."""
    monkeypatch.chdir(tmp_path)
    (module,) = [b.text for b in blocks(README) if b.text.startswith("# my_net.py\n")]
    (tmp_path / "my_net.py").write_text(module)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "module.py").write_text(module.replace("def build", "def Net"))
    space: dict[str, Any] = {}
    exec(module, space)
    torch.manual_seed(0)
    net = space["build"]()
    (tmp_path / "run").mkdir()
    for place in ("net.pt", "run/step-1.pt", "run/step-2.pt"):
        torch.save(net.state_dict(), tmp_path / place)
    x, y = np.random.default_rng(0).normal(size=(80, 784)).astype(np.float32), np.arange(80) % 10
    np.savez(tmp_path / "data.npz", x_train=x, y_train=y)
    small = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
    inputs, targets = torch.randn(1024, 6), torch.arange(1024) % 3
    loader = [(inputs[:32], targets[:32])] * 3
    return {
        "net": small, "x": inputs[:60], "y": targets[:60], "model": small, "inputs": inputs, "targets": targets,
        "loss": torch.nn.CrossEntropyLoss(), "loader": loader, "Any": Any, "Mapping": Mapping, **vars(model),
    }  # fmt: skip


@pytest.fixture(scope="module")
def left() -> dict[str, Path]:
    """Folder of each command that has run: a command that stands on several pages runs once."""
    return {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if {b.language for b in blocks(p)} & {"python", "sh"}],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_the_blocks_of_a_page_run(page: Path, desk: dict[str, Any], left: dict[str, Path]) -> None:
    for block in blocks(page):
        if block.language == "python" and ">>>" in block.text:
            where = f"{page.name}, line {block.line}"
            found = doctest.DocTestParser().get_doctest(block.text, {}, where, str(page), block.line)
            failed, tried = doctest.DocTestRunner(verbose=False).run(found)
            assert tried and not failed
        elif block.language == "python":
            exec(compile(block.text, f"{page.name}:{block.line}", "exec"), desk)
        elif block.language == "sh":
            for program, command, *words in commands(block.text):
                line, folder = f"{command} {words}", Path(f"losscurv-{command}")
                assert program == "losscurv"
                if line in left:
                    shutil.copytree(left[line], folder)
                    continue
                assert cli.main([command, *words, *SMALLER.get(command, "").split()]) == 0, words
                if folder.exists():
                    left[line] = folder.absolute()


def test_what_does_not_run_can_be_run() -> None:
    """Its options, modules and files are there."""
    for words in (w for p in PAGES for b in blocks(p) if b.language == "console" for w in commands(b.text)):
        if words[0] == "losscurv":
            options, unknown = cli._parser().parse_known_args(words[1:])
            assert callable(options.run) and not unknown
        elif words[0] == "python":
            assert find_spec(words[2]) if words[1] == "-m" else (ROOT / words[1]).is_file(), words


def test_what_readme_names_is_there() -> None:
    text = README.read_text(encoding="utf-8")
    shown = [w for b in blocks(README) if b.language in ("sh", "console") for w in commands(b.text)]
    assert {words[1] for words in shown if words[0] == "losscurv"} == {"report", "measure", "plan"}
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]*)\)", text)]
    assert len(links) > 15 and all((ROOT / link).exists() for link in links)


def test_readme_is_short_and_begins_with_code() -> None:
    text = README.read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```|<!--.*?-->|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    assert len(prose.split()) <= 900
    assert len(text.partition("```python")[0].split()) <= 200


def test_the_citation_is_of_this_version_and_of_the_papers() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {losscurv.__version__}\nlicense: MIT\n" in text
    for paper in registry.papers():
        gathered = paper.id == "beyond" or paper.family_size  # its page names its sources
        assert gathered or paper.title in text


def test_the_classifiers_are_what_ci_runs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    workflows = "".join(f.read_text(encoding="utf-8") for f in (ROOT / ".github/workflows").glob("*.yml"))
    stated = {v for c in project["classifiers"] for v in re.findall(r":: (3\.\d+)$", c)}
    assert stated == set(re.findall(r'python(?:-version)?: "(3\.\d+)"', workflows))
    assert set(re.findall(r"runs-on: (\S+)", workflows)) == {"ubuntu-latest"}


@pytest.mark.parametrize(
    "page", ["measure", "plan", "watch", "check", "language", "factors", "larger", "devices"]
)
def test_a_how_to_is_short(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    assert len([word for word in prose.split() if re.search(r"\w", word)]) <= 600


def test_the_picture_of_rules_is_that_of_their_table() -> None:
    drawn = runpy.run_path(str(ROOT / "docs/site/rates.py"))
    kept = (ROOT / "docs/gallery/rates.svg").read_text(encoding="utf-8")
    assert len(drawn["table"]()) == 12
    marks, names = (rf'<{tag} [^>]*x="([\d.]+)" y="([\d.]+)"' for tag in ("use", "text"))
    for pattern in (marks, names, "<text[^>]*>(.*?)</text>"):
        assert re.findall(pattern, drawn["picture"]()) == re.findall(pattern, kept) != []


def test_the_docs_are_no_longer_than_a_book() -> None:
    sizes = {page: page.stat().st_size for page in (ROOT / "docs").rglob("*.md")}
    assert sum(sizes.values()) <= 300_000
    assert sizes[ROOT / "docs/benchmarks.md"] <= 12_000 and sizes[ROOT / "docs/mutants.md"] <= 6144
    assert (ROOT / "CHANGELOG.md").stat().st_size <= 12_000
