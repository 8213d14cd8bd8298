"""Subtracting the mean of the outputs: Theorem 3.3 and what fluctuates."""
