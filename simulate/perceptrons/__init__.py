"""Curvature of fully connected networks given as matrices: routes of their own, fast enough for thousands."""
