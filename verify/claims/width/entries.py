"""What is stated of curvature across widths, one line each."""

from verify.model.inventory import Entry

__all__ = ["ENTRIES"]

ENTRIES = (
    Entry(
        "J1",
        "sharpness through training independent of the width under muP",
        scope="small perceptrons on digits",
    ),
    Entry(
        "J2",
        "sharpness through training proportional to the width under the standard parametrisation",
        scope="small perceptrons on digits",
        ours=True,
    ),
    Entry(
        "J3",
        "progressive sharpening under muP, and its absence in wide networks without",
        scope="small perceptrons on digits",
    ),
    Entry(
        "J4",
        "transfer of the best learning rate",
        "not checkable here",
        "asks for networks of many sizes and depths",
    ),
    Entry(
        "J5",
        "sharpness through training independent of the depth under muP and its extension to depth",
        "open",
        "only the width is varied; the extension to depth is for residual networks",
    ),
)
