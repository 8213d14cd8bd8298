"""Every public function of the theory, fed with anything: a right value, or a ValueError that names the argument.

Infinity counts as a value where the docstring promises it, NaN never does. A new public name fails the first
test until it has a line in the `TABLE` of its topic, a module of `tests.theory.fuzz`; a new module of the theory goes
into `MODULES` there.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

import pytest
from hypothesis import given, settings, strategies as st

from tests.theory.fuzz import merged
from tests.theory.fuzz.check import check
from tests.theory.fuzz.strategies import SETTINGS

MODULES = merged("MODULES")
TABLE = merged("TABLE")
WITHOUT_ARGUMENTS = merged("WITHOUT_ARGUMENTS")
STRATEGIES = {name: line.strategy() for name, line in TABLE.items()}


def public_names() -> Iterator[str]:
    for module, not_called in MODULES.items():
        loaded = importlib.import_module(f"theory.{module}")
        for name in loaded.__all__:
            if name in not_called:
                continue
            yield f"{module}.{name}"
            found = getattr(loaded, name)
            if inspect.isclass(found):
                methods = {
                    method
                    for cls in found.__mro__[:-1]
                    for method, value in vars(cls).items()
                    if inspect.isfunction(value) or isinstance(value, property)
                }
                yield from (f"{module}.{name}.{method}" for method in methods if not method.startswith("_"))


def test_every_public_name_has_a_line_in_the_table() -> None:
    assert set(public_names()) == TABLE.keys() | WITHOUT_ARGUMENTS.keys()


@pytest.mark.parametrize("name", WITHOUT_ARGUMENTS)
def test_names_left_out_of_the_table_take_no_arguments(name: str) -> None:
    module, _, function = name.rpartition(".")
    assert not inspect.signature(getattr(importlib.import_module(f"theory.{module}"), function)).parameters


SLOW = (
    "fisher.fluctuation_constants",
    "activations.gaussian.KinkedQuadrature.fluctuations",
    "activations.gaussian.KinkedQuadrature.value",
)
"""Double integrals of anything, which take longer than all the rest."""


@pytest.mark.parametrize("name", [name for name in TABLE if name not in SLOW])
@SETTINGS
@given(data=st.data())
def test_a_right_value_or_a_message_that_names_the_argument(name: str, data: st.DataObject) -> None:
    check(name, TABLE[name], data.draw(STRATEGIES[name]))


@pytest.mark.parametrize("name", SLOW)
@settings(SETTINGS, max_examples=8)
@given(data=st.data())
def test_a_right_value_or_a_message_of_what_is_slow(name: str, data: st.DataObject) -> None:
    check(name, TABLE[name], data.draw(STRATEGIES[name]))
