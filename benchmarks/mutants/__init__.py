"""Campaigns of planted errors: see `benchmarks.mutants.__main__`."""
