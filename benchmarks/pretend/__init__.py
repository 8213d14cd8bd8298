"""A device that is not there: rules of a GPU, arithmetic of the CPU.

| symbol | meaning |
|---|---|
| `NAME` | what the device is called; ``torch.device("pretend")`` |
| `POSSIBLE` | whether this torch can do it |
| `pretended` | within it tensors may be moved there, and all that happens is counted |
| `Counts` | launches, synchronisations, transfers and work of the two sides |
| `RefusedError` | raised where CUDA would raise |
| `Rounding` | makes it round otherwise than the CPU |
| `Trial`, `tried` | one small block of an experiment there |
"""

from benchmarks.pretend.counts import Counts
from benchmarks.pretend.device import NAME, POSSIBLE, pretended
from benchmarks.pretend.rules import RefusedError, Rounding
from benchmarks.pretend.trials import Trial, tried

__all__ = ["NAME", "POSSIBLE", "Counts", "RefusedError", "Rounding", "Trial", "pretended", "tried"]
