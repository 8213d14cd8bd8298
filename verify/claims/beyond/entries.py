"""Laws of our own beyond the papers, one line each."""

from verify.model.inventory import Entry

ENTRIES = (
    Entry("D1", "top eigenvalue of a batch matrix from own directions"),
    Entry("D2", "largest mean-square stable learning rate of SGD"),
)
