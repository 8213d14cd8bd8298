"""From scores to verdicts: intervals, estimands, what is asked of a claim, and errors planted to be caught."""
