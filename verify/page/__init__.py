"""What is read: the report and its cards, panels and plots, and the words of the terminal; drawn from results alone."""
