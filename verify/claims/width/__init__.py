"""Curvature through training at every width, under two parametrisations: Noci et al. (2024).

`ENTRIES` lists its statements; the module holds the experiments and claims that judge it.
"""

from verify.model.inventory import Entry, Paper

PAPER = Paper(
    "width",
    "Noci, Meterez, Hofmann and Orvieto (2024)",
    "Super consistency of neural network landscapes and learning rate transfer",
    family_error=1e-3,
    family_size=64,
)

ROOMS = ("sharpness", "depth")

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
        scope="small residual perceptrons on digits",
    ),
    Entry(
        "J6", "features of every layer move by order one in a step if steps are sized by the spectral norm"
    ),
)

SYMBOLS = {
    r"M": "width of the hidden layers",
    r"L": "number of residual branches",
    r"W_l": "weights of a layer",
    r"h_l": "signals of a layer",
    r"n_l": "number of its units",
    r"t": "steps of full-batch descent",
}
"""Letters that mean the same in every statement, as LaTeX; those that change are left out."""
