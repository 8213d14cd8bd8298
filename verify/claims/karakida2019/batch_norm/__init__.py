"""Batch normalisation of the last layer and of those in the middle."""
