"""What Lewkowycz et al. (2020) state, one line each."""

from verify.model.inventory import Entry

__all__ = ["ENTRIES"]

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
