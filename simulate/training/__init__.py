"""Gradient descent at many learning rates: quadratics, wide networks, classifiers and stacks of networks."""

from simulate._later import submodules

__getattr__ = submodules(__name__)
