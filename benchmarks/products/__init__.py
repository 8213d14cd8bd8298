"""Cost of curvature products compared with other libraries."""
