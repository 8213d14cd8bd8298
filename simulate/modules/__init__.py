"""Curvature of any `nn.Module`, by the sites at which its parameters act: frames, single samples, kernels of logits."""

from simulate._later import submodules

__getattr__ = submodules(__name__)
