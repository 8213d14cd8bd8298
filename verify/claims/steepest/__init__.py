"""The edge of stability of steepest descent in other norms: Islamov, Crawshaw, Cohen and Gower (2026).

`ENTRIES` lists its statements; the module holds the experiments and claims that judge them.
"""

from verify.model.inventory import Entry, Paper

PAPER = Paper(
    "steepest",
    "Islamov, Crawshaw, Cohen and Gower (2026)",
    "Non-Euclidean gradient descent operates at the edge of stability",
    family_error=1e-3,
    family_size=64,
)

ROOMS = ("norms",)

ENTRIES = (
    Entry("M1", "generalised sharpness of spectral descent at 2 over the rate", scope="small perceptrons"),
    Entry("M2", "generalised sharpness of block descent at 2 over the rate", scope="small perceptrons"),
    Entry(
        "M3",
        "generalised sharpness of sign descent at 2 over the rate, scaled by the gradient",
        scope="small perceptrons",
    ),
    Entry(
        "M4",
        "generalised sharpness of descent along signs at or above 2 over the rate",
        scope="small perceptrons",
    ),
    Entry("M5", "largest eigenvalue of the Hessian below 2 over the rate under spectral descent", ours=True),
    Entry(
        "M6", "Muon with momentum, Shampoo and SOAP", "open", "rules with memory, which the paper leaves out"
    ),
)

SYMBOLS = {
    r"\eta": "learning rate",
    r"g": "gradient of the loss of all samples",
    r"H": "Hessian of this loss",
    r"d": "direction of norm 1",
}
"""Letters that mean the same in every statement, as LaTeX; those that change are left out."""
