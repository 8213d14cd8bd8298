"""The zone on networks: its edges, initialisations, figures 1 to 6."""
