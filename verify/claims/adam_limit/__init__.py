"""Adam against the batch size, and at the edge of its stability: papers of 2022 to 2025.

`ENTRIES` says what they state; the rooms hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.model.inventory import Entry, Paper

PAPER = Paper(
    "adam_limit",
    "Malladi et al. (2022); Li et al. (2024); Marek et al. (2025); Cohen et al. (2022)",
    "Adam against the batch size, and its edge of stability",
    family_error=1e-3,
    family_size=64,
)

ROOMS = (
    "scaling",
    "signs",
    "stability",
)

ENTRIES = (
    Entry("I1", "the square root rule keeps the moments of the weights, where noise dominates the gradients"),
    Entry(
        "I2",
        "the square root rule keeps the loss after the same samples",
        scope="small perceptrons on digits",
    ),
    Entry("I3", "the best rate of sign descent rises with the batch size and falls from the noise scale on"),
    Entry("I4", "beta_2 to the power B'/B keeps the half-life of second moments in samples"),
    Entry("I5", "Adam with a fixed preconditioner is stable up to (2 + 2 beta_1) / ((1 - beta_1) eta)"),
    Entry(
        "I6",
        "under full-batch Adam the preconditioned Hessian hovers there, at 38 / eta for beta_1 = 0.9",
        scope="small perceptrons on digits",
    ),
)

SYMBOLS = {
    r"\eta": "learning rate",
    r"\beta_1": "share of the average of gradients that Adam keeps in a step",
    r"\beta_2": "share of the average of squared gradients that Adam keeps in a step",
    r"\kappa": "factor by which the batch grows",
    r"B": "batch size",
    r"H": "Hessian of the whole loss",
    r"\sigma_i": "standard deviation of the gradient of one sample by one weight",
    r"v": "average of squared gradients",
}
"""Letters that mean the same in every statement, as LaTeX; those that change are left out."""
