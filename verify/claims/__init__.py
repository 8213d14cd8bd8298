"""The inventory: what each paper states, and which experiment judges it."""
