"""Order parameters: averages over Gaussian pre-activations, fixed points, the tangent kernel."""
