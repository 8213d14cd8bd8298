"""A run: its settings, its draws and the workers that make them, the store, and the rows that come of it."""
