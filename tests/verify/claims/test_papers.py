"""Papers as plug-ins: the example is put where pip would put it, and judged, reported and replayed like the others."""

import contextlib
import io
import json
import multiprocessing
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

import theory.derivations
from tests.interpreters import forked
from tests.refusals import refusal
from verify import cli
from verify.claims import registry
from verify.model import ALPHA
from verify.model.inventory import Entry, Paper
from verify.running import suite

EXAMPLE = Path(__file__).parents[3] / "examples" / "a_paper_of_your_own"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `pip install` would put there: the module, and the metadata with its entry point."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "wigner1955.py").write_text((EXAMPLE / "wigner1955.py").read_text(encoding="utf-8"))
    about = folder / "wigner1955-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: wigner1955\nVersion: 0.1.0\n")
    written = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    group = written.partition('[project.entry-points."losscurv.claims"]\n')[2].partition("\n\n")[0]
    (about / "entry_points.txt").write_text("[losscurv.claims]\n" + group.replace('"', "") + "\n")
    return folder


def printed(site: str, commands: list[list[str]]) -> list[str]:
    """Run each command where the paper is installed and return what it prints.

    Planted errors and derivations are those of every report, and take longer than all else.
    """
    sys.path.append(site)
    fork = multiprocessing.get_context("fork")  # a new interpreter takes seconds to load torch
    multiprocessing.get_context = lambda _: fork
    suite.PLANTED, suite._derivations = (), lambda *_: []
    outputs = []
    for words in commands:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert cli.main(words) == 0, words
        outputs.append(out.getvalue())
    return outputs


@pytest.mark.slow
def test_a_paper_of_ones_own_is_listed_judged_shown_and_replayed(installed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    commands = (
        ["claims", "--paper", "wigner1955", "--json"],
        ["report", "--paper", "wigner1955", "--workers", "2", "--report-dir", str(folder)],
        ["replay", str(folder), "--workers", "1"],
    )
    listed, judged, again = forked(printed, str(installed), commands)
    assert [row["status"] for row in json.loads(listed)] == ["judged"]
    assert "2 agrees" in judged

    made = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    (paper,) = [p for p in made["suite"]["papers"] if p["id"] == "wigner1955"]
    assert (paper["family_error"], paper["intervals"], paper["intervals_allowed"]) == (1e-3, 4, 16)
    assert all(all(p["rivals"]["rejected"]) for row in made["rows"] for p in row["points"])
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Wigner (1955): Characteristic Vectors" in page
    cards = "".join(made.read_text(encoding="utf-8") for made in (folder / "cards").iterdir())
    assert 'href="../claims/wigner1955.html#w1"' in cards
    beside = (folder / "claims" / "wigner1955.html").read_text(encoding="utf-8")
    assert 'id="w1"' in beside and "<math" in beside and 'class="latex"' not in beside
    assert "every score and verdict is the same" in again


def test_a_paper_that_cannot_be_loaded_stops_no_claim_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("_places", "_packages", "papers", "claims", "observations", "entries"):
        monkeypatch.setattr(registry, name, getattr(registry, name).__wrapped__)
    broken = EntryPoint("broken2020", "no_such_module", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [broken])

    assert [claim.id for claim in registry.select(claim=["edge/oscillation"])] == ["edge/oscillation"]
    with refusal("paper broken2020 must load from no_such_module"):
        registry.select(claim=["broken2020/law"])


def test_a_paper_of_others_does_not_check_the_derivations_of_this_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked = []
    monkeypatch.setattr(theory.derivations, "every_derivation", lambda: checked.append("theory") or [])
    monkeypatch.setattr(registry, "derivations", lambda only: checked.extend(only) or [])

    assert suite._derivations({"wigner1955"}) == [] and checked == ["wigner1955"]
    assert suite._derivations({"granziol2022"}) == [] and checked == ["wigner1955", "theory", "granziol2022"]


def test_the_error_of_a_claim_is_that_of_its_family(monkeypatch: pytest.MonkeyPatch) -> None:
    own = registry.claims()[0]
    assert registry.alpha(own) == ALPHA
    monkeypatch.setattr(registry, "papers", lambda *_: (Paper(own.paper, "A", "B", 1e-2, 10),))
    assert registry.alpha(own) == 1e-3


@pytest.mark.parametrize(
    ("name", "paper", "message"),
    [
        ("a_paper", None, "paper a_paper must have a PAPER of its name, got None"),
        ("a_paper", Paper("other", "A", "B", 1e-3, 8), "must have a PAPER of its name"),
        ("a_paper", Paper("a_paper", "A", "B"), "must declare a family_error"),
        ("a_paper", Paper("a_paper", "A", "B", 1.5, 8), "must declare a family_error"),
        (
            "beyond",
            Paper("beyond", "A", "B", 1e-3, 8),
            "paper beyond must have a name of its own, got another",
        ),
        ("absent", None, "paper absent must load from no_such_module, got ModuleNotFoundError"),
    ],
)
def test_a_paper_that_cannot_be_taken_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, paper: object, message: str
) -> None:
    module = ModuleType("a_paper")
    vars(module).update(PAPER=paper, ENTRIES=(Entry("E1", "one", "open"),))
    monkeypatch.setitem(sys.modules, "a_paper", module)
    place = "no_such_module" if name == "absent" else "a_paper"
    monkeypatch.setattr(registry, "_places", registry._places.__wrapped__)
    monkeypatch.setattr(registry, "entry_points", lambda group: [EntryPoint(name, place, group)])
    with refusal(message):
        registry._packages.__wrapped__()


def test_a_family_of_its_own_holds_no_more_than_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = registry.claims()
    monkeypatch.setattr(registry, "papers", lambda *_: (Paper(listed[0].paper, "A", "B", 1e-3, 1),))
    monkeypatch.setattr(registry, "problems", lambda _: [])
    (_, shared, _), (name, used, most) = registry.families(listed)
    assert name == listed[0].paper and used > most == 1 and shared > 0
    with refusal(f"claims of {name} must use at most 1 intervals"):
        registry.admit(listed, registry.entries())
