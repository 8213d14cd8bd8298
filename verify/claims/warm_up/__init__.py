"""Why a learning rate is warmed up, and the rates that a network bears at first: papers of 2023 to 2026.

`ENTRIES` says what they state; the rooms hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.model.inventory import Entry, Paper

PAPER = Paper(
    "warm_up",
    "Kalra and Barkeshli (2024); Kalra et al. (2026)",
    "Warm-up of the learning rate, and the rates that a network bears at first",
    family_error=1e-3,
    family_size=64,
)

ROOMS = ("descent", "adam")

SMALL = "small perceptrons on digits"

ENTRIES = (
    Entry("K1", "the largest rate that trains grows with the length of the warm-up", scope=SMALL),
    Entry("K2", "networks that start flat gain less from warm-up", scope=SMALL),
    Entry("K3", "under warm-up the sharpness at the edge falls as 2 over the rate of the step", scope=SMALL),
    Entry("K4", "at first the preconditioned sharpness of Adam is far above its threshold", scope=SMALL),
    Entry(
        "K5", "warm-up and GI-Adam raise the largest rate of Adam", scope="small ReLU perceptrons on digits"
    ),
    Entry(
        "K6",
        "the early fall of the sharpness, and the critical rate, grow with depth and 1 over width",
        scope="small ReLU perceptrons on digits",
    ),
    Entry("K7", "critical sharpness is at the edge of stability", scope=SMALL),
    Entry(
        "K8",
        "critical sharpness of large language models",
        "not checkable here",
        "asks for models of up to 7 billion parameters",
    ),
)

SYMBOLS = {
    r"\eta_t": "learning rate of step t",
    r"\eta_{max}": "largest target rate that trains",
    r"\lambda_1": "sharpness: largest eigenvalue of the Hessian",
    r"T": "steps of warm-up",
}
"""Letters that mean the same in every statement, as LaTeX; those that change are left out."""
