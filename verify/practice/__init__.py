"""Theory and measurement joined for a network of one's own: curvature, learning rates, a schedule; no verdicts."""
