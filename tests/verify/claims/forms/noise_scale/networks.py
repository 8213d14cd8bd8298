"""Closed forms of `verify.claims.noise_scale.networks`."""

__all__ = ["WITHOUT_FORM"]

FACTOR = (
    "the margin is a factor, of a quarter or a half, which hides many slips; on quadratics the same formula is held "
    "to a hundredth"
)

WITHOUT_FORM = {f"noise_scale/{name}": FACTOR for name in ("at-the-start", "later", "simple-scale-later")}
