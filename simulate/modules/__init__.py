"""Curvature of any `nn.Module` from the layer calls in which its parameters act: frames, single samples, kernels."""

from simulate._later import submodules

__getattr__ = submodules(__name__)
