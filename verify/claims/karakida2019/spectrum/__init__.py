"""Eigenvalues of the Fisher information: Theorem 2.2, its span, its exceptions."""
