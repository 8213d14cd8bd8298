"""Why the claims on blocks of the Hessian have no closed form that slips are planted in."""

__all__ = ["WITHOUT_FORM"]

WITHOUT_FORM = {
    "structure/classifiers": "moments of the softmax by an integral: rivals are other moments, and "
    "test_class_blocks.py holds it to a second route",
    "structure/neurons": "known to a seventh, where most slips are smaller: rivals are the larger ones, and "
    "test_class_blocks.py holds it to drawn weights",
}
