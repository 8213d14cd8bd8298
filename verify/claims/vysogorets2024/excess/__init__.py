"""The excess of positive curvature: Eq. 8, projections and frames."""
