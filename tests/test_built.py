"""Builds hold their commit, the pages of the papers, the digits, and claims that an installed pytest runs."""

import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from unittest import mock

import pytest

import losscurv
from verify.running import commits

ROOT = Path(__file__).parents[1]
COPIED = (
    *("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "losscurv_pytest.py"),
    *(f"{package}/__init__.py" for package in ("losscurv", "theory", "simulate", "verify", "verify/running")),
    *("losscurv/__init__.pyi", "verify/running/commits.py"),
    *("simulate/data/digits.csv.gz", "simulate/data/digits.LICENSE"),
)
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("git"), reason="no git")]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much of the project as a build looks at, under version control."""
    root = tmp_path / "checkout"
    for name in ("losscurv", "theory", "simulate/data", "verify/running"):
        (root / name).mkdir(parents=True)
    for name in COPIED:
        shutil.copy(ROOT / name, root / name)
    shutil.copytree(ROOT / "docs/claims", root / "docs/claims")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "all")):
        subprocess.run([*GIT, *words], cwd=root, check=True)
    return root


def head(root: Path) -> str:
    words = [*GIT, "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(words, cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def built(root: Path, target: str, folder: Path, version: str = "standard") -> Path:
    """The archive that the build backend makes, as pip has it made."""
    pytest.importorskip("hatchling")
    words = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    code = "import sys; from hatchling.build import build_editable; print(build_editable(sys.argv[1]))"
    if version == "editable":
        pytest.importorskip("editables")
        folder.mkdir()
        words = [sys.executable, "-c", code, str(folder)]
    subprocess.run(words, cwd=root, check=True, capture_output=True)
    (made,) = folder.iterdir()
    return made


def test_a_checkout_tells_its_commit_and_its_changes(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert commits.commit_of(checkout) == head(checkout)
    (checkout / "LICENSE").write_text("changed", encoding="utf-8")
    assert commits.commit_of(checkout) == head(checkout) + "+"
    monkeypatch.setenv("PATH", "")  # nothing is told without git
    assert commits.commit_of(checkout) == ""


@pytest.mark.parametrize("by_way_of", ["checkout", "sdist"])
def test_a_wheel_tells_its_commit_and_holds_what_is_no_module(
    checkout: Path, by_way_of: str, tmp_path: Path
) -> None:
    """Also one that is built of a source archive, which holds it too: digits, stubs, the pages of the papers."""
    made, source = head(checkout), checkout
    if by_way_of == "sdist":
        shutil.unpack_archive(built(checkout, "sdist", tmp_path / "archive"), tmp_path)
        (source,) = tmp_path.glob("losscurv-*")
    installed = tmp_path / "installed"
    shutil.unpack_archive(built(source, "wheel", tmp_path / "dist"), installed, "zip")

    assert commits.commit_of(installed) == made != "" and not (checkout / "verify/COMMIT").exists()
    found = {p.relative_to(installed).as_posix(): p.read_bytes() for p in installed.rglob("docs.md")}
    pages = (ROOT / "docs/claims").glob("*.md")
    assert found == {f"verify/claims/{page.stem}/docs.md": page.read_bytes() for page in pages}
    for name in ("simulate/data/digits.csv.gz", "simulate/data/digits.LICENSE", "losscurv/__init__.pyi"):
        assert (source / name).read_bytes() == (installed / name).read_bytes() == (ROOT / name).read_bytes()
    (information,) = installed.rglob("METADATA")
    assert f"\nVersion: {losscurv.__version__}\n" in information.read_text(encoding="utf-8")


def test_digits_are_read_from_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for file in (ROOT / "simulate").rglob("*"):
            if "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(ROOT))
    with mock.patch.dict(sys.modules):
        for name in [name for name in sys.modules if name.partition(".")[0] == "simulate"]:
            del sys.modules[name]
        monkeypatch.syspath_prepend(tmp_path / "all.zip")
        data = importlib.import_module("simulate.data")
    assert data.__file__ == str(tmp_path / "all.zip/simulate/data/__init__.py")
    assert len(data.digits()) == 1797


def test_an_installed_wheel_judges_its_claims_by_pytest(tmp_path: Path) -> None:
    """Use a separate environment and an empty folder, with the other packages of this environment."""
    venv.create(tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(tmp_path / "venv")}))
    shutil.unpack_archive(built(ROOT, "wheel", tmp_path / "dist"), site, "zip")
    # a folder named in a .pth file comes after the wheel; its own .pth files (of an editable losscurv) are not read
    others = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    (site / "others.pth").write_text("\n".join(others), encoding="utf-8")
    (tmp_path / "empty").mkdir()
    words = ["-m", "pytest", "--pyargs", "verify", "--claim", "edge/oscillation", "--workers", "1"]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON"))
    }

    run = subprocess.run(
        [python, *words], cwd=tmp_path / "empty", env=environment, check=False, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1].strip("= ").startswith("1 agrees in ")
    assert (tmp_path / "empty/losscurv-report/results.json").is_file()


def test_an_editable_installation_runs_from_the_checkout_alone(checkout: Path, tmp_path: Path) -> None:
    names = zipfile.ZipFile(built(checkout, "wheel", tmp_path / "dist", "editable")).namelist()
    assert not [name for name in names if name.startswith("verify/")]


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_nothing_is_told_where_nothing_is_known(content: bytes | None, tmp_path: Path) -> None:
    (tmp_path / "verify").mkdir()
    if content is not None:
        (tmp_path / "verify/COMMIT").write_bytes(content)

    assert commits.commit_of(tmp_path) == ""
