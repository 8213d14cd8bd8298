"""Code and images that change: those of users, and in processes that live long."""

import importlib
import os
import sys
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from simulate.monte_carlo import Point
from tests.verify import toy_claims
from tests.verify.running.stored_draws import COUNTED, _forgotten, judged, where
from verify.model import Claim
from verify.running import origin
from verify.running.store import FILE

__all__ = ["_forgotten"]

# --- code of users


class Written:
    """A user's package on the path: an experiment, what it imports, and what it does not."""

    SOURCE = """
from users.table import FACTOR
DRAWN = []
def simulate(block, point):
    DRAWN.append(1)
    return {"x": [FACTOR * rng.random() for rng in block.streams]}
def lazy(block, point):
    from users.later import FACTOR
    return {"x": [FACTOR * rng.random() for rng in block.streams]}
"""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "users"
        self.folder.mkdir()
        self.write("__init__", "")
        self.write("table", "FACTOR = 1.0")
        self.write("later", "FACTOR = 1.0")
        self.write("experiment", self.SOURCE)

    def write(self, name: str, text: str) -> None:
        (self.folder / f"{name}.py").write_text(text, encoding="utf-8")

    def loaded(self) -> ModuleType:
        """The experiment as a new process has it."""
        forget()
        importlib.invalidate_caches()
        return importlib.import_module("users.experiment")


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        sys, "dont_write_bytecode", True
    )  # two sources within a tick would share their bytecode
    monkeypatch.syspath_prepend(tmp_path)
    yield Written(tmp_path)
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "users"]:
        del sys.modules[name]


def claim_of(drawing: Callable) -> Claim:
    return replace(COUNTED, experiment=replace(COUNTED.experiment, simulate=drawing, budget=64))


def test_a_change_in_what_an_experiment_imports_is_seen(users: Written, tmp_path: Path) -> None:
    for factor, drawn, read in ((1.0, 4, 0), (1.0, 0, 64), (1.7, 4, 0), (1.0, 0, 64)):
        users.write("table", f"FACTOR = {factor}")
        experiment = users.loaded()
        assert judged(tmp_path, claim_of(experiment.simulate))[1] == read
        assert len(experiment.DRAWN) == drawn


def test_our_own_experiments_do_not_depend_on_code_of_users(users: Written) -> None:
    from verify.judging.planted import sums

    before, toy = where(simulate=sums), where(simulate=toy_claims.uniform)
    users.loaded()
    assert where(simulate=sums) == before != toy != where(simulate=toy_claims.uniform)


def test_installed_code_counts_in_the_package_of_the_experiment_only() -> None:
    names = origin._files("numpy.linalg", 0).keys()
    assert {"numpy", "numpy.linalg", __name__} <= names
    assert not {"scipy", "os", "json", "verify.running.store", "pytest", "__main__"} & names


def test_the_main_program_counts_only_as_the_home_of_the_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The main program of a worker is another one, or the same under another name."""

    def drawing(block, point):
        return {}

    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)
    for name in ("__main__", "__mp_main__"):
        assert not origin._is_users(name, "/home/user/run.py", "experiment")
        drawing.__module__ = name
        origin.refresh()
        assert "__main__" in origin.origin(drawing, Point(dim=2), "cpu").files


def test_a_module_that_cannot_be_read_is_not_known(users: Written) -> None:
    drawing = users.loaded().simulate
    (users.folder / "table.py").unlink()
    assert where(simulate=drawing) is None


def test_what_is_imported_while_drawing_is_not_stored(
    users: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        _, read, (row,), _ = judged(tmp_path, claim_of(users.loaded().lazy))
        assert (read, row.verdict != "broken") == (0, True)
    line = f"{tmp_path / FILE}: blocks whose experiment imports modules while it draws are not stored\n"
    assert capsys.readouterr().out == 2 * line


# --- processes that live long


def test_a_reloaded_module_is_new_code_and_its_old_functions_are_no_code(users: Written) -> None:
    experiment = users.loaded()
    old = experiment.simulate
    first = where(simulate=old)
    users.write("experiment", users.SOURCE.replace("FACTOR *", "2 * FACTOR *"))
    origin.refresh()
    assert where(simulate=old) == first is not None  # the file is another, the code is still that of before
    importlib.reload(experiment)
    origin.refresh()
    assert where(simulate=old) is None
    assert where(simulate=experiment.simulate) not in (first, None)
    users.write("experiment", users.SOURCE)
    importlib.reload(experiment)
    origin.refresh()
    assert where(simulate=experiment.simulate) == first


def test_our_own_reloaded_code_is_new_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from theory import softmax

    before = where()
    content = origin._content
    monkeypatch.setattr(
        origin,
        "_content",
        lambda file: content(file) + "edited" * file.endswith("theory/softmax/__init__.py"),
    )
    origin.refresh()
    assert where() == before
    monkeypatch.setattr(softmax, "__spec__", copy(softmax.__spec__))  # as a reload does
    origin.refresh()
    assert where() != before


def test_images_that_are_overwritten_are_read_again(tmp_path: Path) -> None:
    from simulate import data

    file, pixels, keys = tmp_path / "images.npz", [], []
    for number in (1, 2, 1):
        drawn = np.random.default_rng(number).integers(0, 255, (8, 4, 4)).astype(np.uint8)
        np.savez(file, x_train=drawn, y_train=np.arange(8) % 2)
        origin.refresh()
        keys.append(where(point=Point(images=str(file))))
        pixels.append(data.opened(str(file), (1, 4, 4)).images.tobytes())
    none = where(point=Point(images=str(tmp_path / "gone.npz")))
    assert keys[0] == keys[2] != keys[1] and where(point=Point(images="digits")) not in keys and none is None
    assert pixels[0] == pixels[2] != pixels[1]


def test_a_session_looks_at_the_files_anew(tmp_path: Path) -> None:
    """Also where time and size of a file are as before."""
    file = tmp_path / "images.npz"
    points = (Point(scale=1.0, images=str(file)),)
    claim = replace(COUNTED, experiment=replace(COUNTED.experiment, points=points))
    for content in (b"1", b"2"):
        file.write_bytes(content)
        os.utime(file, ns=(1, 1))
        assert judged(tmp_path, claim)[:2] == (16, 0)
