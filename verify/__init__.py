"""Verdicts: the only place where prediction and measurement meet. ``pytest verify/`` is the correctness report."""
