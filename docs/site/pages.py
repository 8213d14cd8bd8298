"""Hooks of mkdocs: run tutorials, add pages that are generated or kept elsewhere, resolve links, draw formulas."""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import html
import io
import itertools
import logging
import os
import re
import runpy
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from matplotlib import pyplot
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import losscurv
import simulate
import theory
from verify import cli
from verify.page.formulas import formula

LOG = logging.getLogger("mkdocs.hooks.formulas")
ROOT = Path(__file__).parents[2]

TEXTS = {
    "index.md": ("README.md", ""),
    "my-claim.md": ("CONTRIBUTING.md", "Add a claim"),
    "my-paper.md": ("CONTRIBUTING.md", "Add a paper"),
    "contributing.md": ("CONTRIBUTING.md", ""),
    "examples.md": ("examples/README.md", ""),
    "changelog.md": ("CHANGELOG.md", ""),
}
"""Pages kept elsewhere: name, source file relative to the root, and the section shown (empty: all of it)."""

TUTORIALS = {f"tutorials/{file.stem}.md": file for file in sorted((ROOT / "examples").glob("*.py"))}
"""Scripts that are run, by the name of their page."""

MODULES = {
    "api/verify.model.md": "verify.model",
    **{f"api/theory/{topic}.md": f"theory.{topic}" for topic in theory.__all__},
    **{f"api/simulate/{topic}.md": f"simulate.{topic}" for topic in simulate.__all__},
}
MAPS = {"api/losscurv.md": losscurv, "api/theory/index.md": theory, "api/simulate/index.md": simulate}
"""Pages of packages whose docstring is a map of topics."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the topics of a package to the navigation, below the entry of the package."""
    # topics come from __all__, so that a new module of theory or simulate appears without a change of mkdocs.yml
    for section in config.nav or []:
        for listed in section.values():
            for place in (
                [i for i, item in enumerate(listed) if _maps(item)] if isinstance(listed, list) else []
            ):
                name, page = next(iter(listed[place].items()))
                package = MAPS[page].__name__
                topics = [{t: f"api/{package}/{t}.md"} for t in MAPS[page].__all__]
                listed[place] = {name: [page, *topics]}
    return config


def _maps(item: Any) -> bool:
    return isinstance(item, dict) and str(next(iter(item.values()))).startswith(
        ("api/theory/", "api/simulate/")
    )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages: texts outside docs/, the reference, the commands and the equations."""
    made = {page: _text(*place) for page, place in TEXTS.items()}
    made |= {page: _module(name) for page, name in MODULES.items()}
    made |= {page: f"::: {of.__name__}\n    options: {{members: false}}\n" for page, of in MAPS.items()}
    # losscurv only re-exports: names of theory and simulate have pages of their own, names of verify are shown here
    verify = [f"{room}.{name}" for name, room in losscurv._ROOMS.items() if room.startswith("verify.")]
    made["api/losscurv.md"] += "".join(
        f"\n::: {name}\n    options: {{heading_level: 2}}\n" for name in verify
    )
    equations = runpy.run_path(str(ROOT / "docs/site/equations.py"))["equations"]
    made |= {"equations.md": equations(), "commands.md": _commands()}
    for page, script in TUTORIALS.items():
        made[page], pictures = tutorial(script.read_text(encoding="utf-8"))
        for name, picture in pictures.items():
            files.append(File.generated(config, f"tutorials/{name}", content=picture))
    for page, content in made.items():
        files.append(File.generated(config, page, content=content))
    return files


@functools.cache  # `mkdocs serve` builds again after a change of any page
def tutorial(source: str) -> tuple[str, dict[str, bytes]]:
    """Run a script; return its page in Markdown, and the pictures that it saves by their names.

    The docstring is title and introduction. Comments at the left margin are prose. The code between them is shown,
    and below it what it prints.
    """
    tree = ast.parse(source)
    title, _, introduction = (ast.get_docstring(tree) or "").partition("\n")
    page, space = [f"# {title.rstrip('.')}", introduction.strip()], {"__name__": "__main__"}
    rest = source.splitlines()[tree.body[0].end_lineno :]
    pyplot.close("all")  # a script draws on no figure of another one
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for prose, lines in itertools.groupby(rest, lambda line: line.startswith("#")):
            text = "\n".join(line[2:] if prose else line for line in lines).strip()
            if prose or not text:
                page.append(text)
                continue
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(text, title, "exec"), space)  # noqa: S102 - our own scripts
            page += [
                f"```python\n{text}\n```",
                f"```text\n{printed.getvalue()}```" if printed.getvalue() else "",
            ]
        pictures = {file.name: file.read_bytes() for file in Path(folder).iterdir()}
    return "\n\n".join(filter(None, page)) + "\n", pictures


def _commands() -> str:
    """Return the page with the help of each command."""
    parser = cli._parser()
    (listed,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    helps = {name: command.format_help() for name, command in listed.choices.items()}
    return "# Commands\n" + "".join(f"\n## {name}\n\n```text\n{text}```\n" for name, text in helps.items())


def _module(name: str) -> str:
    """Return the mkdocstrings directive for a module; a package without ``__all__`` shows its submodules."""
    face = ROOT / name.replace(".", "/") / "__init__.py"
    bare = face.is_file() and "__all__" not in face.read_text(encoding="utf-8")
    return f"::: {name}\n    options: {{show_submodules: {str(bare).lower()}}}\n"


def _text(file: str, section: str) -> str:
    """Return the text of a file, or of one of its sections with the heading as title."""
    text = (ROOT / file).read_text(encoding="utf-8")
    if not section:
        return text
    return f"# {section}\n" + text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Resolve links to pages of the site; replace links to files that are not on the site by their text."""
    # a page of a paper has several headings of the first level, but the theme's table of contents expects one title
    if page.file.src_uri.startswith("claims/") and len(re.findall(r"^# ", markdown, re.MULTILINE)) > 1:
        markdown = re.sub(r"(?<=\n)(?=#+ )", "#", markdown)
    # README names files without relative links, because these would be dead on a package index
    if page.file.src_uri == "index.md":
        markdown = re.sub(r"`(docs/[\w/-]+\.md|[A-Z]+\.md)`", r"[`\1`](\1)", markdown)
    source = PurePosixPath(TEXTS.get(page.file.src_uri, (f"docs/{page.file.src_uri}",))[0])
    pages = {file: name for name, (file, section) in TEXTS.items() if not section}
    pages |= {f"examples/{script.name}": name for name, script in TUTORIALS.items()}

    def lead(found: re.Match[str]) -> str:
        words, target, anchor = found.groups()
        if ":" in target:  # a URL
            return found.group()
        place = os.path.normpath(source.parent / target)
        name = pages.get(place, place.removeprefix("docs/"))
        if files.get_file_from_path(name) is None:  # code, say: strict builds refuse a dead link
            return words[words.index("[") + 1 : -1]
        return f"{words}({os.path.relpath(name, PurePosixPath(page.file.src_uri).parent)}{anchor or ''})"

    return re.sub(r"(!?\[[^\]]*\])\(([^\s()#]+)(#[\w-]*)?\)", lead, markdown)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Convert formulas to MathML, which browsers draw without a script or a network."""
    return re.sub(r'<(span|div) class="arithmatex">(.*?)</\1>', _formula, content, flags=re.DOTALL)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Warn, which fails a strict build, of resources that need a network and of formulas left as LaTeX."""
    for found in re.findall(r'<(?:script|img|link|iframe)[^>]+(?:src|href)="https?:[^"]*"|:math:`', output):
        LOG.warning("%s needs a network or shows LaTeX: %s", page.file.src_uri, found)
    return output


def _formula(found: re.Match[str]) -> str:
    display = found[1] == "div"
    latex = re.sub(
        r"\\text\{[^}]*\}", lambda text: text[0].replace(r"\_", "_"), html.unescape(found[2])[2:-2]
    )
    made = formula(latex, display)
    if made.startswith("<code"):  # `formula` falls back to the source of what it cannot draw
        LOG.warning("formula cannot be drawn: %s", found[2])
    return f'<div class="formula">{made}</div>' if display else made
