"""Packages of our names that are not ours: the front door names the file or the distribution, and what to do."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("theory", "simulate", "verify")


def ran(folder: Path, *words: str, path: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Python in a folder, with the code of `path` behind what lies in the folder."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


def last_line(folder: Path, *words: str, path: Path = ROOT) -> str:
    run = ran(folder, *words, path=path)
    assert run.returncode, run.stdout
    return run.stderr.splitlines()[-1]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """As much of an installation as the guard looks at."""
    site = tmp_path / "site"
    for name in PACKAGES:
        (site / name).mkdir(parents=True)
        shutil.copy(ROOT / name / "__init__.py", site / name)
    shutil.copytree(ROOT / "losscurv", site / "losscurv")
    return site


def advice(name: str, file: Path) -> str:
    return (
        f"ImportError: losscurv needs its own package '{name}', but {file} is not it: rename that file or its folder;"
        " if another distribution wrote it, uninstall that one, then install losscurv again with pip install"
        " --force-reinstall"
    )


def write_over(site: Path, name: str) -> Path:
    """Write a package of the given name over what is there, as pip does for another distribution."""
    file = site / name / "__init__.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("import pydash\n", encoding="utf-8")
    return file


@pytest.mark.parametrize("place", ["theory.py", "simulate/__init__.py", "verify.py"])
def test_a_file_beside_the_script_is_named(place: str, tmp_path: Path) -> None:
    file = tmp_path / place
    file.parent.mkdir(exist_ok=True)
    file.write_text("1 / 0\n", encoding="utf-8")
    (tmp_path / "script.py").write_text("from losscurv import measure\n", encoding="utf-8")

    name = place.partition("/")[0].removesuffix(".py")
    assert last_line(tmp_path, "script.py") == advice(name, file)


def test_a_folder_without_modules_hides_nothing_and_the_command_runs_as_a_module(tmp_path: Path) -> None:
    (tmp_path / "theory").mkdir()
    run = ran(tmp_path, "-m", "losscurv", "estimate", "stability_limit", "4")
    assert (run.returncode, run.stderr) == (0, "") and "0.5" in run.stdout


@pytest.mark.parametrize("name", PACKAGES)
def test_a_distribution_that_writes_over_ours_is_named(name: str, installed: Path, tmp_path: Path) -> None:
    assert ran(tmp_path, "-c", "import losscurv", path=installed).returncode == 0
    file = write_over(installed, name)

    assert last_line(tmp_path, "-c", "import losscurv", path=installed) == advice(name, file)


def test_what_a_removed_distribution_took_along_is_named(installed: Path, tmp_path: Path) -> None:
    file = installed / "simulate/__init__.py"
    file.unlink()

    # -S: without what else is installed, where there may be one of ours too
    assert last_line(tmp_path, "-S", "-c", "import losscurv", path=installed) == advice("simulate", file)


def test_the_command_says_it_too(installed: Path, tmp_path: Path) -> None:
    write_over(installed, "verify")
    script = "from losscurv.__main__ import main\nmain()"

    for words in (("-m", "losscurv", "claims"), ("-c", script, "claims")):
        line = last_line(tmp_path, *words, path=installed)
        assert (
            line.startswith("ImportError: losscurv needs its own package 'verify'") and "pydash" not in line
        )
