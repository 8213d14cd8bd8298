"""Verdicts: the only place where prediction and measurement meet. ``pytest verify/`` is the correctness report.

Part of losscurv, which looks for this sentence before it uses the package.
"""
