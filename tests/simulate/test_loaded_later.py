"""Modules that are loaded when they are first used behave like any other for who puts something in their place."""

import sys

import pytest

from simulate._later import submodules


def test_what_is_set_for_a_while_reaches_the_module_and_is_put_back() -> None:
    later = submodules("simulate.matrices")("reduced")
    before = later._band
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(later, "_band", max)
        assert sys.modules["simulate.matrices.reduced"]._band is max is later._band
    assert sys.modules["simulate.matrices.reduced"]._band is before is later._band


def test_what_was_not_there_is_not_there_afterwards() -> None:
    later = submodules("simulate.matrices")("reduced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(later, "novelty", 1, raising=False)
        assert sys.modules["simulate.matrices.reduced"].novelty == 1
    assert not hasattr(later, "novelty")


def test_a_module_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match=r"module 'simulate.matrices' has no attribute 'absent'"):
        submodules("simulate.matrices")("absent")
