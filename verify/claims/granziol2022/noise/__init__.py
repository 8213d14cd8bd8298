"""Noise of a batch: how its matrix fluctuates about that of all data."""
