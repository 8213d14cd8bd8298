"""``losscurv plot --claim``, one figure into one file, and ``losscurv gallery``, several."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.refusals import refusal
from tests.verify.command_line import elsewhere
from tests.verify.results.sample_results import sample
from verify import reporting, results
from verify.claims import registry
from verify.cli import main
from verify.page import main as pages_main
from verify.page.canvas import Scale, dress
from verify.page.main import MainPlot, MainRun

__all__ = ["elsewhere"]

CLAIM = "vysogorets2024/softmax-rank"


@pytest.fixture
def stored() -> str:
    """A results file, and the id of one of its rows."""
    small = replace(sample(), rows=sample().rows[2:3], planted=[], observations=[])
    Path("run").mkdir()
    results.save(small, Path("run/results.json"))
    return small.rows[0].id


@pytest.mark.parametrize(("form", "start"), [("pdf", b"%PDF-"), ("svg", b"<svg "), ("png", b"\x89PNG")])
def test_a_figure_is_written_in_the_format_that_was_asked_for(stored: str, form: str, start: bytes) -> None:
    for name in ("one", "again"):
        assert main(["plot", "run", "--claim", stored, "--out", f"{name}.{form}"]) == 0
    first = Path(f"one.{form}").read_bytes()
    assert first.startswith(start) and Path(f"again.{form}").read_bytes() == first


def test_a_claim_that_the_last_report_does_not_hold_is_judged_first(
    stored: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As README has it: the report of one claim, then the figure of another; without any report too."""
    assert reporting.plot(None, CLAIM).get_label() == f"{CLAIM}: agrees"
    Path("run").rename("losscurv-report")
    before = Path("losscurv-report/results.json").read_bytes()
    assert main(["plot", "--claim", CLAIM, "--out", "rank.svg"]) == 0
    said = capsys.readouterr().err
    assert said == f"losscurv: {CLAIM} is not in the results in losscurv-report; judging it first\n"
    assert f'aria-label="{CLAIM}: agrees"' in Path("rank.svg").read_text(encoding="utf-8")
    assert Path("losscurv-report/results.json").read_bytes() == before
    assert main(["plot", "--claim", stored, "--out", "stored.svg"]) == 0
    assert capsys.readouterr().err == ""


def test_all_panels_stand_below_the_main_one_and_a_width_is_in_inches(stored: str) -> None:
    curved = "granziol2022/theorem-4"
    main_one, every = (reporting.plot(sample(), curved, panels=panels) for panels in ("main", "all"))
    assert (len(main_one.axes), len(every.axes)) == (1, 2)
    assert main_one.get_figwidth() == every.get_figwidth() > main_one.get_figheight()
    assert main(["plot", "run", "--claim", stored, "--panels", "all", "--width", "6", "--out", "f.svg"]) == 0
    assert '<svg width="576"' in Path("f.svg").read_text(encoding="utf-8")


def test_main_plots_stand_side_by_side_as_many_as_fit(stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    two = [
        MainPlot(where, "x", f"{paper}/x", words="Right.", number=lambda _: "",
                 draw=lambda axes, _: dress(axes, Scale("x", (0, 1), (0, 1)), Scale("y", (0, 1), (0, 1))))
        for where, paper in (("One", "granziol2022"), ("Two", "granziol2022"), ("Three", "karakida2019"))
    ]  # fmt: skip
    monkeypatch.setattr(pages_main, "PLOTS", two)
    monkeypatch.setattr(MainRun, "has", lambda *_: True)
    assert len(reporting.plot("run", main=True).axes) == 3
    assert len(reporting.plot("run", paper="karakida2019").axes) == 1
    wide, narrow = (reporting.plot("run", main=True, width=width) for width in (15, 6))
    assert (
        wide.get_figwidth() > 2.8 * narrow.get_figwidth()
        and narrow.get_figheight() > 2.8 * wide.get_figheight()
    )
    assert main(["plot", "run", "--main"]) == 0 and Path("main.svg").exists()
    assert main(["plot", "run", "--paper", "karakida2019"]) == 0 and Path("karakida2019.svg").exists()
    with refusal("plot needs either a claim, with its panels, or main or a paper"):
        reporting.plot("run")
    with refusal("main plots need results: run losscurv report first"):
        reporting.plot(None, main=True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--claim", CLAIM], f"judge it first, losscurv report --claim {CLAIM}"),
        (["gone", "--claim", CLAIM], "file not found: gone"),
        (["--claim", "a/nothing"], "a/nothing"),
        (["run", "--claim", "STORED", "--out", "x.jpeg"], "format must be one of pdf, svg, png, got 'jpeg'"),
        (["run", "--claim", "STORED", "--out", "run/results.json/x.svg"], "figure cannot be written to run"),
        (["run", "--out", "x.pdf"], "--out needs --claim"),
        (["run", "--claim", CLAIM, "--output", "x"], "--output cannot be combined with --claim"),
        (["run", "--width", "5"], "--width needs --claim"),
        (["run", "--claim", "STORED", "--width", "2"], "width must be 6 to 30 inches, got 2"),
        (
            ["run", "--main", "--panels", "all"],
            "plot needs either a claim, with its panels, or main or a paper",
        ),
        (["run", "--paper", "karakida2019"], "this run has no main plot of karakida2019"),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_line(
    words: list[str], said: str, stored: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plot", *(stored if word == "STORED" else word for word in words)]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("losscurv: ") and said in last and len(last) < 600


def test_the_gallery_judges_claims_and_draws_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(reporting.PICTURES.values()) <= {c.id for c in (*registry.claims(), *registry.observations())}
    assert main(["gallery", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in reporting.PICTURES)
    assert main(["gallery", "semicircle", "--workers", "1", "--seed", "7", "--output", "drawn"]) == 0
    assert Path("drawn/semicircle.png").read_bytes().startswith(b"\x89PNG")
    with refusal("picture must be one of semicircle, .*, got 'circle'"):
        reporting.pictures(["circle"])
