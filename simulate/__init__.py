"""Measurements: draws, networks and curvature. Import the module of a topic: ``from simulate import ensembles``."""
