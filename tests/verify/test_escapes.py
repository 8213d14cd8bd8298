"""Names and paths of others cannot break a line, turn it round or command a terminal, wherever they are shown."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.verify import toy_claims
from tests.verify.command_line import Planter, elsewhere, judged, words_of
from tests.verify.results.sample_results import sample
from tests.verify.toy_claims import plant
from verify import cli, results
from verify.escapes import escaped, printable
from verify.page import report, terminal, wording

__all__ = ["elsewhere", "plant"]

EVIL = "a\nb\x1b[2J\u202ec\u2066\u200f\x85\u2028\t\udc80"
SHOWN = r"a\nb\x1b[2J\u202ec\u2066\u200f\x85\u2028\t\udc80"
NAME = "a\nb\x1b[2J\u202ec"
NAME_SHOWN = r"a\nb\x1b[2J\u202ec"
"""Of a file."""


def test_each_kind_is_shown_by_its_escape() -> None:
    assert escaped(EVIL) == SHOWN
    assert escaped("é漢字 ×\u00a010 \\n") == "é漢字 ×\u00a010 \\n"
    assert printable("a\n\tb\x1b\u202e") == "a\n\tb\\x1b\\u202e"


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.text())
def test_what_is_shown_stays_on_its_line_and_is_shown_alike_again(text: str) -> None:
    shown = escaped(text)
    assert len(shown.splitlines()) <= 1 and escaped(shown) == shown
    shown.encode()  # no halves of pairs
    assert [printable(line) for line in text.split("\n")] == printable(text).split("\n")


def test_messages_show_paths_by_their_escapes(plant: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    plant(toy_claims.RIGHT)
    for words in (
        ["plot", EVIL],
        ["replay", EVIL],
        ["report", "--report-dir", f"/dev/null/{EVIL}"],
        ["report", EVIL],
    ):
        assert cli.main(words) == 2
        out, err = capsys.readouterr()
        told = [line for line in err.splitlines() if not line.startswith("losscurv: tier ")]
        assert out == "" and len(told) == 1 and SHOWN in told[0]


def test_a_run_shows_its_folder_and_its_images_by_their_escapes(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT, page=True)
    np.savez(f"{NAME}.npz", x_train=np.random.default_rng(0).random((70, 8, 8)), y_train=np.arange(70) % 10)

    assert judged("--report-dir", NAME, "--data", f"{NAME}.npz") == 0
    assert f"report: {NAME_SHOWN}/report.html\n" in capsys.readouterr().out
    page = "".join(file.read_text(encoding="utf-8") for file in Path(NAME).rglob("*.html"))
    assert f"{NAME_SHOWN}.npz" in page and "\u202e" not in page
    assert cli.main(["plot", NAME]) == 0
    assert f"report: {NAME_SHOWN}/report.html\n" in capsys.readouterr().out


def test_a_results_file_shows_its_names_by_their_escapes() -> None:
    row = sample().rows[0]
    point = replace(row.points[0], parameters={"law": EVIL})
    row = replace(row, id=f"x/{EVIL}", claim=f"x/{EVIL}", points=[point], finding=EVIL, surprise=True)
    file, page = Path("results.json"), Path("page.html")
    results.save(replace(sample(), rows=[row], observations=[]), file)
    assert "\\u202e" in file.read_text()  # JSON's own escape: nothing is lost there
    page.write_text(report.document(results.load(file)), encoding="utf-8")

    text = words_of(page)
    assert text.count(SHOWN) > 4 and not set("\x1b\u202e\u2066\u200f\x85\u2028") & set(text)
    block = terminal.surprise_block(wording.legible(row))
    assert "\u202e" not in block and r"a\nb\x1b[2J\u202ec" in block


def test_tracebacks_and_formulas_keep_their_lines() -> None:
    row = replace(sample().rows[0], error="Traceback\n  line\x1b", statement="a\nb")

    assert wording.legible(row).error == "Traceback\n  line\\x1b"
    assert wording.legible(row).statement == "a\nb"


@pytest.mark.slow
@pytest.mark.parametrize(("command", "more"), [("measure", "--top 1"), ("plan", "--batch-sizes 2")])
def test_a_model_of_such_a_name_is_shown_by_its_escapes(
    command: str, more: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(f"{NAME}.py").write_text("from torch import nn\nnet = nn.Linear(2, 2)\n")
    np.savez("data.npz", x=np.eye(4, 2), y=np.arange(4) % 2)
    model = ["--model", f"{NAME}.py:net"]
    words = [command, *model, "--data", "data.npz", "--output", NAME, *more.split()]

    assert cli.main(words) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{NAME_SHOWN}.py:net on data.npz") and f"{NAME_SHOWN}/{command}.html" in out
    assert not set("\x1b\u202e") & set(out + err + Path(NAME, f"{command}.html").read_text())
    assert json.loads(Path(NAME, f"{command}.json").read_text())["name"] == f"{NAME}.py:net on data.npz"
