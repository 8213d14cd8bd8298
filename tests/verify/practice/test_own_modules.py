"""A user's module and those next to it are imported; names of our packages are refused."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.refusals import refusal
from tests.verify.command_line import ROOT
from verify.practice.loading import load_problem
from verify.practice.loading.foreign import build

NET = """
from torch import nn
from helper import WIDTH

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, WIDTH)

    def forward(self, x):
        import late
        return late.FACTOR * self.layer(x)
"""


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    modules = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - modules:
        if name.startswith("_losscurv_") or name in ("helper", "late", "net"):
            del sys.modules[name]


def write(folder: Path, **files: str) -> None:
    folder.mkdir(exist_ok=True, parents=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    np.savez("data.npz", x=np.eye(6, 3) + 1, y=np.arange(6) % 2)


@pytest.mark.parametrize("model", ["net.py:Net", "net:Net", "folder/net.py:Net"])
def test_a_model_imports_the_modules_next_to_it_now_and_while_it_runs(model: str) -> None:
    folder = Path("folder") if model.startswith("folder") else Path()
    write(folder, net=NET, helper="WIDTH = 4", late="FACTOR = 2.0")
    first = sys.path[0]

    found = load_problem(model, "data.npz")

    assert found.outputs == (4,) and found.objective.value() > 0
    assert sys.path[0] == first  # what is imported later is searched there last


def test_a_file_is_run_anew_and_a_broken_one_is_not_kept() -> None:
    write(Path(), net="raise KeyError('early')")
    for _ in range(2):
        with refusal(r"cannot be imported: KeyError: 'early' \(net\.py, line 1\)"):
            build("net.py:net")
    write(Path(), net="from torch import nn\nnet = nn.Linear(2, 5)")
    assert build("net.py:net").out_features == 5


@pytest.mark.parametrize("line", ["import theory", "from theory import f", "    from theory.nets import g"])
def test_a_module_named_like_our_package_is_refused(line: str) -> None:
    write(Path(), net=f"if True:\n    pass\n{'def f():' * line.startswith(' ')}\n{line}", theory="")
    with refusal(r"^net.py imports theory of its folder, .*: rename yours$"):
        build("net.py:net")
    write(Path(), verify="from torch import nn\nnet = nn.Linear(2, 2)")
    with refusal(r"^verify imports verify of its folder"):
        build("verify:net")


def test_ours_can_be_had_where_there_is_no_other() -> None:
    """And a folder without modules, of results say, is none."""
    write(
        Path(),
        net="import theory\nfrom simulate import networks\nfrom torch import nn\n"
        "net = nn.Linear(2, 2)\nnet.of = theory, networks",
        verify="",
    )
    for name in ("theory", "simulate"):
        Path(name).mkdir()
        (Path(name) / "notes.txt").touch()

    assert all(Path(module.__file__).is_relative_to(ROOT) for module in build("net.py:net").of)
