"""Random matrices: noise, spikes and samples of them, whole or smaller ones with the same extreme eigenvalues."""
