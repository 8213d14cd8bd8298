"""Letters that mean the same in every statement of this paper, as LaTeX; those that change are left out."""

SYMBOLS = {
    r"T": "number of samples",
    r"M": "width",
    r"C": "number of outputs",
    r"F": "Fisher information matrix",
    r"\bar F": "Fisher matrix after mean subtraction",
    r"\kappa_1": "squared length of the gradient of an output, over alpha M",
    r"\kappa_2": "product of the gradients of two samples, over alpha M",
    r"\alpha": "sum of the products of neighbouring widths, over M squared",
    r"\lambda_{\max}": "largest eigenvalue of the Fisher matrix",
    r"m_\lambda": "mean of the eigenvalues of the Fisher matrix",
    r"s_\lambda": "second moment of its eigenvalues",
    r"\hat q_t^l": "forward order parameter of layer l: mean square of an activation",
    r"\hat q_{st}^l": "forward overlap of two samples",
    r"\tilde q_t^l": "backward order parameter of layer l",
    r"\tilde q_{st}^l": "backward overlap of two samples",
    r"\sigma_w": "deviation of the weights times the root of the width",
    r"\sigma_b": "deviation of the biases",
    r"\rho": "width over number of samples",
    r"\phi": "activation",
    r"K_{kk}": "Gram matrix of the gradients of output k",
}
