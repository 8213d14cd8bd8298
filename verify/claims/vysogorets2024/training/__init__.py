"""Training inside and outside of the zone."""
