"""Large learning rates and the catapult: Lewkowycz, Bahri, Dyer, Sohl-Dickstein and Gur-Ari (2020).

`ENTRIES` says what it states; the rooms hold the experiments and claims that judge it, in the order of the report.
"""

from verify.model.inventory import Entry, Paper

PAPER = Paper(
    "catapult",
    "Lewkowycz et al. (2020)",
    "The large learning rate phase of deep learning: the catapult mechanism",
    family_error=1e-3,
    family_size=64,
)

ROOMS = ("linear", "networks")

ENTRIES = (
    Entry("F1", "output and curvature of a linear network after a step, exactly"),
    Entry("F2", "three phases: the loss falls, or grows first and then falls, or diverges"),
    Entry("F3", "the largest rate is 4 over the curvature at the start", scope="in the linear network"),
    Entry("F4", "the curvature ends below 2 over the rate"),
    Entry("F5", "how far below, in the mean over networks", ours=True),
    Entry("F6", "the loss grows for a time of order log n", scope="in the linear network"),
    Entry(
        "F7", "below 2 over the curvature this changes by a share of order 1/n", scope="in the linear network"
    ),
    Entry(
        "F8",
        "the largest rate is about 12 over the curvature for networks with ReLU",
        scope="small perceptrons with one to three hidden layers",
    ),
)

SYMBOLS = {
    r"\eta": "learning rate",
    r"\lambda": "curvature: largest eigenvalue of the tangent kernel over the number of samples",
    r"\lambda_0": "curvature at the start",
    r"n": "width of the hidden layer",
    r"f": "output of the network on its one sample, whose target is 0",
}
"""Letters that mean the same in every statement, as LaTeX; those that change are left out."""
