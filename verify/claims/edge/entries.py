"""What the papers on the edge of stability state, one line each."""

from verify.model.inventory import Entry

__all__ = ["ENTRIES"]

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
)
