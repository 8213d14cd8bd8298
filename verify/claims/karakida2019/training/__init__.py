"""Gradient descent of wide networks: Figures 1 and 2."""
