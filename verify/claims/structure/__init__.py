"""The structure of the Hessian between classes: Dong, Zhang, Luo, Yao and Sun (2025).

`ENTRIES` says what it states; the rooms hold the experiments and claims that judge it, in the order of the report.
"""

from verify.model.inventory import Entry, Paper

PAPER = Paper(
    "structure",
    "Dong et al. (2025)",
    "Towards quantifying the Hessian structure of neural networks",
    family_error=1e-3,
    family_size=64,
)

ROOMS = ("blocks",)

ENTRIES = (
    Entry("G1", "blocks between classes over those of one, at equal probabilities: 1/(C - 1)", ours=True),
    Entry(
        "G2", "blocks between classes fall like 1/C against those of one class", scope="a softmax classifier"
    ),
    Entry(
        "G3",
        "how often the uniform value they are, at logits of some size and samples of some number",
        ours=True,
    ),
    Entry(
        "G4",
        "blocks between hidden neurons fall like the inverse root of C against those of one neuron",
        scope="one hidden layer of ReLU",
    ),
    Entry("G5", "their value for ReLU, with the squared error and with cross-entropy", ours=True),
)

SYMBOLS = {
    r"C": "number of classes",
    r"d": "dimension of the inputs",
    r"N": "number of samples",
    r"p_i": "probability that the network gives class i",
    r"H_{ij}": "block of the Hessian between the weights of class or neuron i and those of j",
}
"""Letters that mean the same in every statement, as LaTeX; those that change are left out."""
