"""The calibration of the verdict engine: ``python -m benchmarks.calibration``."""
