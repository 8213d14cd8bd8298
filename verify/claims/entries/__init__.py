"""Statements of the papers, one table per paper."""
