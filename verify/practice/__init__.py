"""Theory and measurement joined for a network of one's own: curvature and learning rates; no verdicts."""
