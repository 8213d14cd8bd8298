"""Modules that are loaded when they are first used behave like any other for who puts something in their place."""

import sys

import pytest

from simulate._later import submodules


def test_what_is_set_for_a_while_reaches_the_module_and_is_put_back() -> None:
    later = submodules("simulate.matrices")("reduced")
    before = later._band
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_band", "novelty"):
            patch.setattr(later, name, max, raising=False)
            assert getattr(sys.modules["simulate.matrices.reduced"], name) is max
    assert later._band is before and not hasattr(later, "novelty")


def test_a_module_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match=r"module 'simulate.matrices' has no attribute 'absent'"):
        submodules("simulate.matrices")("absent")
