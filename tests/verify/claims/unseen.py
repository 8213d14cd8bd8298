"""What the run points of claims cannot see: mutants that none of them tells from the prediction, with the reason."""

__all__ = ["UNSEEN"]

STRICTER = "a domain too small for other points, but not for these, which lie inside of either"
BROADENING = (
    "the term in 1/N is too small against 1/B, or the broadening against the eigenvalue, at these points"
)
ONE_OUTPUT = "one output is drawn, C = 1: the largest of C nearly equal eigenvalues would be biased"
LARGE = "in more than ten dimensions the law of one component hardly depends on their number"
BIASES = "derivatives by the biases are at most 3 % of the whole at this width, less than two margins"
KAPPA1_IS_ALPHA = "kappa1 is 1.81, near alpha = 2, and the bound is flat where the spike is near sqrt(c2)"


def _edits_of_small(name: str, *others: str, place: str = "") -> tuple[str, ...]:
    """What can be done to a term that is too small to be seen."""
    swaps = (f"{name} -> {other}{place}" for other in others)
    return (*swaps, *(f"{power} of {name}{place}" for power in ("square root", "inverse", "square")))


def _edits_of_one(name: str, place: str) -> tuple[str, ...]:
    """What can be done to a factor of 1."""
    powers = (f"{power} of {name} in {place}" for power in ("square root", "inverse", "square"))
    return (f"without factor {name} of {place}", *powers)


def _edits_of_term(term: str) -> tuple[str, ...]:
    return (f"without term {term}", *(f"{factor} times {term}" for factor in ("-1", "2", "1/2")))


UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "granziol2022/probe-overlap": {
        LARGE: (
            "square root of dim in squared_component(x, dim)",
            "square of dim in squared_component(x, dim)",
        ),
    },
    "granziol2022/theorem-4": {
        STRICTER: (
            "domain: inverse of eigenvalue in eigenvalue > threshold",
            "domain: threshold -> sigma in eigenvalue > threshold",
        ),
    },
    "granziol2022/theorem-10": {
        STRICTER: (
            "domain: inverse of eigenvalue in eigenvalue > threshold",
            "domain: threshold -> sigma in eigenvalue > threshold",
        ),
    },
    "granziol2022/theorem-7": {
        BROADENING: (
            "square root of variance in -dim*variance*(-1/dataset_size + 1/batch_size)",
            *_edits_of_term("-1/dataset_size"),
            "-1 -> -2 in 1/dataset_size",
        ),
    },
    "karakida2019/mean-eigenvalue": {
        BIASES: (
            *_edits_of_term("bias1"),
            *_edits_of_small("bias1", "alpha", "back1", "back2", "fore1", "fore2", "outputs"),
        ),
    },
    "karakida2019/lower-bound-with-c1": {
        ONE_OUTPUT: _edits_of_one("outputs", "outputs*(alpha*(kappa1 - kappa2))"),
        KAPPA1_IS_ALPHA: ("everywhere: kappa1 -> alpha",),
    },
    "karakida2019/upper-bound": {
        ONE_OUTPUT: _edits_of_one("outputs", "alpha**2*outputs*(kappa1 - kappa2)**2"),
    },
}
"""Per claim and reason; of the claims whose forms stand in `closed_forms`."""
