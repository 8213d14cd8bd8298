"""Measurements: draws, networks and curvature. Import the module of a topic, e.g. ``from simulate import ensembles``."""
