"""Letters that mean the same in every statement of these papers, as LaTeX; those that change are left out."""

__all__ = ["SYMBOLS"]

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
