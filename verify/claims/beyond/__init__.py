"""losscurv: Beyond the papers.

`ENTRIES` says what it states; the rooms hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.model.inventory import Entry, Paper

PAPER = Paper(
    "beyond",
    "losscurv",
    "Beyond the papers",
)

ROOMS = (
    "rates",
    "networks",
)

ENTRIES = (
    Entry("D1", "top eigenvalue of a batch matrix from own directions"),
    Entry("D2", "largest mean-square stable learning rate of SGD"),
)

SYMBOLS = {
    r"\lambda_1": "largest eigenvalue of a matrix",
    r"H_B": "Hessian of a batch",
    r"H_i": "Hessian of one sample",
    r"H": "Hessian of all samples",
    r"B": "batch size",
    r"\alpha_{\rm ms}": "largest learning rate at which SGD stays bounded in the mean square",
}
"""Letters that mean the same in every statement, as LaTeX; those that change are left out."""
