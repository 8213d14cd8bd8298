"""Curvature of fully connected networks given as matrices: routes of their own, fast enough for thousands."""

from simulate._later import submodules

__getattr__ = submodules(__name__)
