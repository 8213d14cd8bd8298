"""Predictions: pure functions of numbers. Import the module of a topic, e.g. ``from theory import fisher``."""
