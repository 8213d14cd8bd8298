"""Why the claim on rates of training has no closed form that slips are planted in."""

__all__ = ["WITHOUT_FORM"]

WITHOUT_FORM = {
    "granziol2022/sgd-rates-clean-linear-then-flat": "an interpolation between two measured rates, within 0.1 "
    "of an exponent: other shapes are its rivals, and test_rates_of_batches.py holds it to its formula"
}
