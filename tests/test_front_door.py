"""The front door: every name leads to its room, nothing is loaded before it is asked for, and tools know the names."""

import ast
import inspect
import pydoc
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import losscurv
import simulate
import theory
from simulate import operators
from tests.interpreters import forked, fresh
from tests.refusals import refusal


@pytest.mark.parametrize("name", losscurv._ROOMS)
def test_a_name_is_that_of_its_room(name: str) -> None:
    assert getattr(losscurv, name) is getattr(import_module(losscurv._ROOMS[name]), name)


def test_formulas_and_operators_of_one_name_are_kept_apart() -> None:
    assert losscurv.theory is theory
    assert losscurv.fisher is operators.fisher
    assert losscurv.theory.fisher.kappas is import_module("theory.fisher").kappas


@pytest.mark.parametrize(
    ("package", "names"),
    [
        (losscurv, ["__version__", "theory", *losscurv._ROOMS]),
        (theory, theory.__all__),
        (simulate, simulate.__all__),
    ],
)
def test_what_there_is_shows_and_is_on_the_map_and_what_is_not_is_refused(package, names: list[str]) -> None:
    assert dir(package) == sorted(names)
    assert all(f"`{name}`" in package.__doc__ for name in names if not name.startswith("_"))
    with pytest.raises(AttributeError, match="has no attribute 'curvature_of_all'"):
        package.curvature_of_all  # noqa: B018 - that it is asked for is the test


@pytest.mark.parametrize("package", [theory, simulate])
def test_tools_and_folders_know_the_names(package) -> None:
    """Completion and type checkers read what is imported for them alone."""
    file = Path(package.__file__)
    branches = [node for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.If)]
    imports = [node for branch in branches for node in branch.body if hasattr(node, "names")]
    assert sorted(n.asname or n.name for node in imports for n in node.names) == sorted(package.__all__)
    topics = {p.stem for p in file.parent.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert {name for name in topics if not name.startswith("_")} == set(package.__all__)


def test_help_fits_one_screen() -> None:
    lines = pydoc.plain(pydoc.render_doc(losscurv)).splitlines()
    assert len(lines) <= 45 and max(map(len, lines[:-4])) <= 80  # the last lines hold the path


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    program = (
        "import sys, losscurv, theory, simulate\n"
        "assert not {'numpy', 'torch', 'scipy'} & set(sys.modules)\n"
        "assert float(losscurv.estimate('stability_limit', 4.0)) == 0.5\n"
        "assert losscurv.theory.rmt.Semicircle(sigma=1.0).edges == (-2.0, 2.0)\n"
        "assert 'torch' not in sys.modules\n"
    )
    fresh(program)


def use_late() -> None:
    """Use two modules that nobody has used yet: inspection does not load them, and a patch reaches the module."""
    from simulate.matrices import ensembles
    from simulate.wide import few_signals

    late = {"simulate.matrices.ensembles", "simulate.wide.few_signals"}
    assert not late & set(sys.modules)
    inspect.getmodule(sys._getframe(), "no such file")  # looks at every module there is
    assert not late & set(sys.modules)
    before = few_signals.DEPENDENT
    for _ in range(2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(few_signals, "DEPENDENT", 0.5)
            from simulate.wide.few_signals import DEPENDENT

            assert few_signals.DEPENDENT == DEPENDENT == 0.5
        assert few_signals.DEPENDENT is sys.modules["simulate.wide.few_signals"].DEPENDENT is before
    assert "wigner" in dir(ensembles)
    assert ensembles.wigner is sys.modules["simulate.matrices.ensembles"].wigner


def use_by_eight_threads() -> None:
    from simulate import factors

    assert "simulate.factors" not in sys.modules
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(lambda _: factors.kfac, range(8)))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("use", [use_late, use_by_eight_threads])
def test_what_stands_for_a_module_is_that_module_to_all_who_use_it(use: Callable[[], None]) -> None:
    forked(use)


# --- first calls of a new user ------------------------------------------------------------------------------------


def _objective() -> losscurv.Objective:
    torch.manual_seed(0)
    return losscurv.Objective(nn.Linear(3, 2), (torch.eye(3), torch.tensor([0, 1, 0])))


@pytest.mark.parametrize(
    "name", ["hessian", "gauss_newton", "fisher", "kfac", "hessian_diagonal", "projected"]
)
def test_an_operator_of_a_model_is_told_to_take_an_objective(name: str) -> None:
    more = [[[1.0]]] * (name == "projected")
    with refusal(rf"^{name} takes an Objective, got Linear.*: call {name}\(Objective\("):
        getattr(losscurv, name)(_objective().model, *more)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda o: losscurv.extremes(o),
            r"got Objective; of an Objective take .* such as hessian\(objective\)",
        ),
        (lambda o: losscurv.trace(o.model), "matrix must be an operator or a symmetric array, got Linear"),
    ],
)
def test_a_wrong_call_is_told_the_right_one(call: Callable[[Any], object], message: str) -> None:
    with refusal(message):
        call(_objective())
