"""Which learning rates train, and which rule finds them: networks, a grid of measured rates, rules and tables."""
