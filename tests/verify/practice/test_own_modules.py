"""A user's modules named like our packages: theirs get theirs, ours get ours, in any order and however late."""

import builtins
import importlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.verify.command_line import ROOT
from verify.practice.loading import load_problem, own_modules
from verify.practice.loading.foreign import build, function

NET = """
from torch import nn
import {name}
from {name} import WIDTH

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, WIDTH)

    def forward(self, x):
        from {name} import scaled
        return scaled(self.layer(x))
"""
OWN = """
WIDTH = 4

def scaled(x):
    import helper
    return helper.FACTOR * x
"""


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remove the import hooks after each test, as they stay in place while a model runs."""
    before, modules = list(sys.meta_path), set(sys.modules)
    monkeypatch.setattr(builtins, "__import__", builtins.__import__)
    monkeypatch.setattr(importlib, "import_module", importlib.import_module)
    monkeypatch.setattr(own_modules, "_folders", [])
    monkeypatch.setattr(own_modules, "_kept", {})
    yield
    sys.meta_path[:] = before
    for name in set(sys.modules) - modules:
        if name.startswith("_losscurv_") or name in ("helper", "net"):
            del sys.modules[name]


def write(folder: Path, **files: str) -> None:
    folder.mkdir(exist_ok=True, parents=True)
    for name, text in files.items():
        path = folder / f"{name.replace('__in__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    np.savez(folder / "data.npz", x=np.eye(6, 3) + 1, y=np.arange(6) % 2)


@pytest.mark.parametrize("name", ["theory", "verify"])
@pytest.mark.parametrize("package", [False, True], ids=["module", "package"])
@pytest.mark.parametrize("model", ["net.py:Net", "net:Net", "folder/net.py:Net"])
def test_a_model_imports_its_own_and_we_ours(name: str, package: bool, model: str) -> None:
    folder = Path("folder") if model.startswith("folder") else Path()
    write(folder, net=NET.format(name=name), helper="FACTOR = 2.0")
    write(folder, **{f"{name}__in____init__" if package else name: OWN})
    write(Path())
    ours = sys.modules[name]

    found = load_problem(model, "data.npz")

    assert found.outputs == (4,)
    assert found.objective.value() > 0  # a call after the import
    assert sys.modules[name] is ours
    assert Path(str(importlib.import_module(name).__file__)).is_relative_to(ROOT)
    from theory import fisher, zone
    from verify.page import wording

    assert all(Path(module.__file__).is_relative_to(ROOT) for module in (fisher, zone, wording))


def test_a_package_of_their_own_is_whole() -> None:
    """Its modules by absolute and relative names, with `from` and without, by `import_module`; no __init__ needed."""
    write(
        Path(),
        net="""
import importlib
import theory.nets.small
import theory.nets.small as small
from theory import nets
from theory.nets import small as third
from torch import nn

same = theory.nets.small is small is third is nets.small is importlib.import_module("theory.nets.small")
net = small.Small() if same and theory.nets.other.here() else None
""",
        theory__in__base="class Base: pass",
        theory__in__nets__in____init__="from . import small\nfrom theory.nets import other",
        theory__in__nets__in__other="def here():\n    import theory.base\n    return theory.base.Base",
        theory__in__nets__in__small="""
from torch import nn
from ..base import Base
from theory import base
class Small(Base, nn.Linear):
    def __init__(self):
        assert Base is base.Base
        super().__init__(3, 2)
""",
    )

    made = build("net.py:net")

    assert type(made).__name__ == "Small"
    assert type(pickle.loads(pickle.dumps(made))) is type(made)


@pytest.mark.parametrize("words", ["theory.py:Net", "verify:Net", "simulate:Net"])
def test_the_model_itself_may_have_such_a_name(words: str) -> None:
    write(Path(), **{words.partition(":")[0].removesuffix(".py"): NET.format(name="helper")})
    write(Path(), helper=OWN.replace("helper.FACTOR", "3.0").replace("import helper", ""))

    assert load_problem(words, "data.npz").outputs == (4,)


def test_each_folder_has_its_own() -> None:
    for name in ("one", "two"):
        write(
            Path(name),
            net="import theory\nnet = theory.net",
            loss="def f(*_):\n    import theory\n    return theory.name",
        )
        write(
            Path(name),
            theory=f"from torch import nn\nname = '{name}'\nnet = nn.Linear(2, 2)\nnet.name = name",
        )

    first, second = build("one/net.py:net"), build("two/net.py:net")
    losses = [function(f"{name}/loss.py:f") for name in ("one", "two")]

    assert (first.name, second.name) == ("one", "two")
    assert [loss() for loss in losses] == ["one", "two"]


def test_ours_can_be_had_where_there_is_no_other() -> None:
    """And a folder without modules, of results say, is none."""
    write(
        Path(),
        net="""
import theory
from simulate import networks
from torch import nn
net = nn.Linear(2, 2)
net.of = theory, networks
""",
    )
    for name in ("theory", "simulate", "verify"):
        Path(name).mkdir()
        (Path(name) / "notes.txt").touch()

    assert all(Path(module.__file__).is_relative_to(ROOT) for module in build("net.py:net").of)


def test_what_fails_in_theirs_is_told_by_its_own_name() -> None:
    write(Path(), net="import theory.absent\nnet = None", theory__in____init__="")

    with pytest.raises(
        ValueError,
        match=r"imported: ModuleNotFoundError: No module named 'theory\.absent' \(net\.py, line 1\)",
    ):
        build("net.py:net")
    write(Path(), net="import simulate\nnet = None", simulate="raise KeyError('early')")
    for _ in range(2):  # a half of it is not kept
        with pytest.raises(
            ValueError, match=r"cannot be imported: KeyError: 'early' \(simulate\.py, line 1\)"
        ):
            build("net.py:net")


def test_what_is_imported_late_need_not_be_named_like_ours() -> None:
    write(
        Path("far"),
        net="from torch import nn\ndef build():\n    import helper\n    return nn.Linear(3, helper.WIDTH)",
        helper="WIDTH = 5",
    )
    path = list(sys.path)

    assert build("far/net.py:build").out_features == 5
    assert sys.path == path


@pytest.mark.slow
def test_a_command_runs_where_such_names_come_first_on_the_path() -> None:
    write(
        Path(),
        net=NET.format(name="theory") + "import simulate",
        helper="FACTOR = 2.0",
        theory=OWN,
        simulate="",
    )
    words = "measure --top 1 --probes 2 --tolerance 1 --model net.py:Net --data data.npz --json"
    run = subprocess.run(
        [sys.executable, "-m", "verify.cli", *words.split()],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 0 and json.loads(run.stdout)["samples"] == 6, run.stderr
