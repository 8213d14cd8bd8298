"""Letters that mean the same in every statement of this paper, as LaTeX; those that change are left out."""

SYMBOLS = {
    r"\lambda_1": "largest eigenvalue of the whole Hessian",
    r"\lambda_1'": "largest eigenvalue with the noise of a batch",
    r"\sigma": "scale of the noise",
    r"P": "number of parameters",
    r"B": "batch size",
    r"H_B": "Hessian of a batch",
    r"H_i": "Hessian of one sample",
    r"\varepsilon_{jk}": "element of the noise matrix",
    r"\varepsilon": "noise: batch Hessian less the whole one",
    r"\phi_1": "eigenvector of the largest eigenvalue",
    r"\phi_1'": "that of the matrix with noise",
    r"d_y": "number of outputs",
    r"d_x": "number of inputs",
}
