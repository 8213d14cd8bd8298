"""Curvature of any `nn.Module`, by the sites at which its parameters act: frames, single samples, kernels of logits."""
