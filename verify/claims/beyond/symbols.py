"""Letters that mean the same in every statement of this paper, as LaTeX; those that change are left out."""

SYMBOLS = {
    r"\lambda_1": "largest eigenvalue of a matrix",
    r"H_B": "Hessian of a batch",
    r"H_i": "Hessian of one sample",
    r"H": "Hessian of all samples",
    r"B": "batch size",
    r"\alpha_{\rm ms}": "largest learning rate at which SGD stays bounded in the mean square",
}
