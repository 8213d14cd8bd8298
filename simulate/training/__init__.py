"""Gradient descent where its learning rate is the question: quadratics, wide networks, classifiers, many at once."""

from simulate._later import submodules

__getattr__ = submodules(__name__)
