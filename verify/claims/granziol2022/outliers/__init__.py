"""Spikes in noise: Theorems 4, 7 and 10 on random matrices, and what they rest on."""
