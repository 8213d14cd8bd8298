"""Claims on networks: the parts of their curvature, their batches, Lanczos."""
