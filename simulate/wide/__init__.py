"""Wide random networks: signals, gradients and the Fisher spectrum, with and without normalisation."""

from simulate._later import submodules

__getattr__ = submodules(__name__)
