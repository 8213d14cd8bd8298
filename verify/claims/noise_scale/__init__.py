"""Gain from larger batches: the gradient noise scale, SGD with interpolation, its mean-square stability.

`ENTRIES` says what the papers of 2018 and 2024 state; the rooms hold the experiments and claims that judge it, in
the order of the report.
"""

from verify.model.inventory import Entry, Paper

PAPER = Paper(
    "noise_scale",
    "McCandlish et al. (2018); Ma, Bassily and Belkin (2018); Mulayoff and Michaeli (2024); Zhang et al. (2025)",
    "The gradient noise scale and critical batch sizes",
    family_error=1e-3,
    family_size=64,
)

ROOMS = ("quadratics", "interpolation", "networks", "critical")

ENTRIES = (
    Entry("H1", "the best rate of one step is eps_max / (1 + B_noise / B)"),
    Entry("H2", "the decrease of the loss in that step is dL_max / (1 + B_noise / B)"),
    Entry("H3", "the simple scale, tr S / |g|^2, where the Hessian is a multiple of the identity"),
    Entry("H4", "the best rate of one step on networks at the start", scope="small perceptrons on digits"),
    Entry(
        "H5", "the best rate of one step on networks later in training", scope="small perceptrons on digits"
    ),
    Entry(
        "H6", "the best rate of SGD with interpolation grows up to a critical batch size and then saturates"
    ),
    Entry("H7", "its descent is linear in the batch size below and that of full gradients above"),
    Entry("H8", "batches have the second moments of full steps mixed with single-sample steps"),
    Entry(
        "H9",
        "steps against samples: (S / S_min - 1) (E / E_min - 1) = 1",
        "open",
        "of whole runs; none is judged",
    ),
    Entry("H10", "second moments of SGD on least squares with Gaussian inputs obey a linear recursion"),
    Entry(
        "H11",
        "the critical batch size grows with the data, not with the model",
        scope="least squares with a power law",
    ),
    Entry(
        "H12",
        "the noise scale grows as the loss falls, and goes with the model size through the loss",
        scope="small perceptrons on digits",
    ),
)

SYMBOLS = {
    r"\epsilon": "learning rate of one step",
    r"\eta": "learning rate",
    r"g": "gradient of the whole loss",
    r"g_B": "gradient of a batch",
    r"H": "Hessian of the whole loss",
    r"H_i": "Hessian of one sample",
    r"S": "covariance of the gradient of one sample",
    r"B": "batch size",
    r"N": "number of samples",
    r"m": "batch size",
    r"\lambda_1": "largest eigenvalue of the second moment of the inputs",
    r"\lambda_n": "its smallest eigenvalue",
    r"\beta": "squared length of an input",
}
"""Letters that mean the same in every statement, as LaTeX; those that change are left out."""
