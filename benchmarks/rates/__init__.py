"""Learning rates that train, and rules that find them: networks, a grid of measured rates, rules and tables."""
