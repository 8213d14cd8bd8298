"""Scale and temperature of a homogeneous network."""
