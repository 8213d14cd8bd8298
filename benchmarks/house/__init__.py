"""Guards of a move inside of the house: edits that tests notice, public signatures."""
