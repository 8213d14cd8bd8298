"""Layer normalisation: Theorem 4.1 and its constants."""
