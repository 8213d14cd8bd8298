"""Measurements too long for a test."""
