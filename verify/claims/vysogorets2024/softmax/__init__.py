"""Softmax: Gamma, confidence, collapse, gradients, losses."""
