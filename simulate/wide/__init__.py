"""Wide random networks: signals, gradients and the Fisher spectrum, with and without normalisation."""
