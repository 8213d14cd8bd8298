"""Random matrices: noise, spikes and samples of them, whole or smaller ones with the same extreme eigenvalues."""

from simulate._later import submodules

__getattr__ = submodules(__name__)
