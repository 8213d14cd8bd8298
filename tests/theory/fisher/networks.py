"""Networks that several tests of the Fisher information look at."""

RELU = {"activation": "relu", "depth": 3, "weight_variance": 2.0, "bias_variance": 0.0}


TANH = {"activation": "tanh", "depth": 3, "weight_variance": 3.0, "bias_variance": 0.64}


NAMES = ["relu", "leaky_relu", "linear", "tanh", "erf", "sigmoid", "softplus", "gelu"]
