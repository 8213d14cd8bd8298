"""Write the table, the outputs and the picture of README.md from a run, or check that they are still right.

    losscurv report && python docs/site/readme.py losscurv-report/results.json
    python docs/site/readme.py losscurv-report/results.json --check    # words equal, numbers within 5 %

The table and the picture come from the results file. The outputs are lines of the commands that README shows.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from verify.page.main.sheet import main_figure
from verify.page.outcomes import CORRECTED, FAILS, HOLDS, LIMITS, mark_of
from verify.page.plots import save_as, to_svg
from verify.page.statements import how_closely, how_far
from verify.results import Results, load

ROOT = Path(__file__).parents[2]
README, PICTURE = ROOT / "README.md", ROOT / "docs" / "main.svg"

SHARE = 0.05
"""Largest relative difference between a number of README and of a new run: other machines round otherwise."""

PRINTED = " [as our copy reads]"
NUMBER = re.compile(r"(?<![\w.])[−-]?\d[\d,]*(?:\.\d+)?")

TABLE = (
    (
        "Theorem 4 of Granziol: λ₁′ = λ₁ + Pσ²/(bλ₁), for P, B → ∞ (`granziol2022/theorem-4`)",
        "{granziol2022/theorem-4}",
        "{granziol2022/theorem-4-on-networks} at B ≤ 24; at B = 128 after training up to 10 % (VGG),"
        " 28 % (LeNet-5), 63 % (perceptrons) too small ([more](docs/networks.md))",
        "no misprint",
    ),
    (
        "Lemma 11 of Granziol: eigenvectors of λ₁ and λ₁′ do not overlap if λ₁ < 2s (`granziol2022/theorem-10`)",
        "with s (Theorem 10) {granziol2022/theorem-10}",
        "not judged",
        f"misprint, {{granziol2022/theorem-10{PRINTED}}}",
    ),
    (
        "Section 10.1 of Granziol: by Theorem 4 the largest rate is ∝ B at small B"
        " (`granziol2022/linear-rate-of-small-batches`)",
        "Theorem 4 gives ∝ √B there",
        "∝ B, then flat (SGD, small perceptrons), not by Theorem 4",
        "error, outside the formula's range, {granziol2022/linear-rate-of-small-batches}",
    ),
    (
        "Eq. (8) of Vysogorets: excess of G from the softmax (`vysogorets2024/eq-8`)",
        "{vysogorets2024/eq-8}",
        "10 to 30 % too large on digits, more where outputs are certain",
        f"misprint, excess {{vysogorets2024/eq-8{PRINTED}}}",
    ),
    (
        "Theorem 2.2 of Karakida: mean Fisher eigenvalue (`karakida2019/mean-eigenvalue`)",
        "{karakida2019/mean-eigenvalue}",
        "wide random networks only",
        f"misprint, {{karakida2019/mean-eigenvalue{PRINTED}}}",
    ),
    (
        "Section 2.3 of Karakida: if activations have zero Gaussian mean, λ₁ of the Fisher matrix does not grow with"
        " width (`karakida2019/not-centred`)",
        "only where every layer has variance 1",
        "not judged",
        f"error, λ₁ {{karakida2019/not-centred{PRINTED}}}",
    ),
)
"""Statement, on its own model, on real networks, as printed; row ids in braces stand for how closely or how far."""

COMMANDS: Mapping[str, Sequence[str]] = {
    "report --claim granziol2022/theorem-4": ("verdict", "●"),
    "measure --model my_net.py:build --data digits --top 2": (
        " " * 20,
        "eigenvalue 1",
        "trace   ",
    ),
    "plan --model my_net.py:build --data digits --batch-sizes 16,64": (
        "batch size",
        " " * 8 + "16",
        " " * 8 + "64",
    ),
}
"""Commands, with the beginnings of the lines of their output that are shown; … stands for others."""

GLYPHS = {HOLDS: "●", LIMITS: "▲", CORRECTED: "▼", FAILS: "◆"}
"""Marks of outcomes, as in the picture."""


def main() -> int:
    """Write README and its picture, or compare them with the run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path, help="results.json of a default run")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    results = load(options.results)
    before = README.read_text(encoding="utf-8")
    text = _filled(before, "statements", _table(results))
    for command, starts in COMMANDS.items():
        text = _filled(text, command.partition(" ")[0], _output(before, command, starts))
    figure = main_figure(results)
    picture = to_svg(figure)
    if not options.check:
        README.write_text(text, encoding="utf-8")
        save_as(figure, PICTURE)
        return 0
    old = [*before.splitlines(), *_texts(PICTURE.read_text(encoding="utf-8"))]
    new = [*text.splitlines(), *_texts(picture)]
    wrong = [(a, b) for a, b in zip(old, new, strict=False) if not alike(a, b)]
    for was, now in wrong:
        print(f"README has  {was}\nthe run has {now}", file=sys.stderr)
    return int(bool(wrong) or len(old) != len(new))


def alike(one: str, other: str) -> bool:
    """Whether two lines have the same words and nearly the same numbers.

    >>> alike("within 0.93 %", "within 0.94 %"), alike("within 0.93 %", "within 1.93 %"), alike("a 1", "b 1")
    (True, False, False)
    """
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(math.isclose(_value(a), _value(b), rel_tol=SHARE) for a, b in pairs)


def _value(number: str) -> float:
    return float(number.replace(",", "").replace("−", "-"))


def _texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL)


def _filled(text: str, name: str, content: str) -> str:
    """Replace what is between the marks of this name."""
    start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    head, _, rest = text.partition(start)
    _, found, tail = rest.partition(end)
    if not found:
        raise ValueError(f"README.md must have the marks {start.strip()} and {end}")
    return f"{head}{start}{content}{end}{tail}"


def _table(results: Results) -> str:
    rows = {row.id: row for row in results.rows}

    def said(cell: str) -> str:
        def words(found: re.Match[str]) -> str:
            row = rows[found[1]]
            return how_far(row) or how_closely(row)

        return re.sub(r"\{([^}]*)\}", words, cell)

    def mark(statement: str) -> str:
        (claim,) = re.findall(r"`(.*)`", statement)
        return GLYPHS[mark_of(row for row in results.rows if row.claim == claim)]

    lines = [f"| {mark(line[0])} " + " | ".join(said(cell) for cell in line) + " |" for line in TABLE]
    head = "| statement | on its own model | on real networks | as our copy prints it |\n|---|---|---|---|\n"
    return head + "\n".join(lines) + "\n"


def _output(readme: str, command: str, starts: Sequence[str]) -> str:
    """Return the chosen lines of what a command of README prints."""
    (module,) = re.findall(r"```python\n(# my_net\.py\n.*?)```", readme, re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "my_net.py").write_text(module, encoding="utf-8")
        words = [sys.executable, "-m", "verify.cli", *command.split()]
        # sums of one thread: their last digits, and with them a rate, depend on the number of threads
        environment = {**os.environ, "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
        made = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True, env=environment)
    # a long line goes on below its value
    lines = list(filter(str.strip, re.sub(r"\n {21,}(?=\S)", " ", made.stdout).splitlines()))
    wanted, text = list(starts), list[str]()
    end = None
    for line in lines:
        if wanted and line.startswith(wanted[0]):
            wanted.pop(0)
            end = line.find("CPU s") if "CPU s" in line else end  # seconds differ from run to run
            text.append(line[:end].rstrip())
        elif text[-1:] != ["…"]:
            text.append("…")
    if wanted:
        raise ValueError(f"losscurv {command} must print lines that start with {starts}, got\n{made.stdout}")
    return "\n".join(["```text", *text, "```", ""])


if __name__ == "__main__":
    sys.exit(main())
