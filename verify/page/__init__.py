"""Report, plots and terminal text, made from results alone."""
