"""Time means of training at the edge of stability: Cohen et al. (2025), Damian, Nichani and Lee (2023).

`ENTRIES` lists their statements; the modules hold the experiments and claims that judge them.
"""

from verify.model.inventory import Entry, Paper

PAPER = Paper(
    "central_flows",
    "Cohen et al. (2025); Damian, Nichani and Lee (2023)",
    "Central flows: time means of training at the edge of stability",
    family_error=1e-3,
    family_size=64,
)

ROOMS = ("networks", "rmsprop")

ONE = "small perceptrons with tanh, one eigenvalue at the edge"

ENTRIES = (
    Entry("L1", "gradient descent follows the central flow on average, not gradient flow", scope=ONE),
    Entry("L2", "variance of the oscillation along the top eigenvector", scope=ONE),
    Entry("L3", "time mean of the training loss", scope=ONE),
    Entry("L4", "progressive sharpening: gradient flow raises the largest eigenvalue", scope=ONE),
    Entry("L5", "stationary preconditioner of RMSprop", scope="at a minimum, on quadratics"),
    Entry(
        "L6",
        "covariance of the oscillation along several eigenvectors",
        "open",
        "the flow is integrated with one eigenvalue at the edge",
    ),
)

SYMBOLS = {
    r"\eta": "learning rate",
    r"w_t": "parameters after a step of gradient descent",
    r"w(t)": "parameters of the central flow",
    r"v(t)": "parameters of gradient flow",
    r"S": "largest eigenvalue of the Hessian",
    r"u": "its unit eigenvector",
    r"\sigma^2": "variance of the oscillation along u",
    r"L": "mean loss of all samples",
}
"""Letters that mean the same in every statement, as LaTeX; those that change are left out."""
