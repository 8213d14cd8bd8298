"""The cost of our curvature products beside those of other libraries."""
