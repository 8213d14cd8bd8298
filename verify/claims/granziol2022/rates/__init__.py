"""Learning rates against the batch size, momentum, and what one step does."""
