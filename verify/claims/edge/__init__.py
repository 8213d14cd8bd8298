"""The edge of stability, with and without batches: papers of 2021 to 2026.

`ENTRIES` says what they state; the rooms hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.model.inventory import Entry, Paper

PAPER = Paper(
    "edge",
    "Cohen et al. (2021); Damian et al. (2023); Andreyev and Beneventano (2024); Liao et al. (2026)",
    "The edge of stability, with and without batches",
    family_error=1e-3,
    family_size=64,
)

ROOMS = (
    "model",
    "networks",
    "interventions",
    "stability",
)

ENTRIES = (
    Entry("E1", "full-batch descent hovers where the largest eigenvalue is 2 over the rate"),
    Entry("E2", "the mean largest eigenvalue of a batch hovers there under SGD"),
    Entry("E3", "batch sharpness hovers there under SGD"),
    Entry("E4", "squared oscillation that holds the eigenvalue still", scope="in the two-variable model"),
    Entry(
        "E5",
        "gap that the noise of gradients opens below the edge",
        scope="in the two-variable model",
    ),
    Entry(
        "E6",
        "SGD comes to rest where the rate at which it turns unstable, linearised, is its own",
        ours=True,
    ),
    Entry("E7", "a larger rate or smaller batch at the edge: batch sharpness rises above it and comes back"),
    Entry("E8", "a smaller rate or larger batch: curvature rises again", scope="a larger batch", ours=True),
    Entry("E9", "full-batch descent with noise of the size of that of batches: batch sharpness", ours=True),
    Entry(
        "E10",
        "the noise kernel norm is 1 where SGD turns unstable",
        scope="on least squares with inputs of one length",
    ),
    Entry("E11", "SGD ends at a minimum by the sign of its Lyapunov exponent", scope="at two rates"),
    Entry(
        "E12",
        "interaction-aware sharpness at the edge",
        "open",
        "the abstract, which we have, gives no level",
    ),
    Entry(
        "E13",
        "largest eigenvalues of batches at the edge by the own-direction law",
        "open",
        "the law needs statistics of every sample along training; it is judged elsewhere on networks at rest",
        ours=True,
    ),
)

SYMBOLS = {
    r"\eta": "learning rate",
    r"\lambda_1": "largest eigenvalue of a Hessian",
    r"H_B": "Hessian of a batch",
    r"g_B": "gradient of a batch",
    r"B": "batch size",
    r"\alpha": "progressive sharpening: how fast descent would raise the largest eigenvalue",
    r"\beta": "self-stabilisation: squared gradient of the largest eigenvalue",
    r"\sigma": "standard deviation of the gradient of a batch along the top eigenvector",
    r"x": "place along the top eigenvector",
    r"y": "how far the largest eigenvalue lies above 2 over the rate",
}
"""Letters that mean the same in every statement, as LaTeX; those that change are left out."""
