"""Curvature of fully connected networks given as matrices, fast enough for thousands of networks."""

from simulate._later import submodules

__getattr__ = submodules(__name__)
