"""Pretended device: rules of a GPU, arithmetic of the CPU.

| symbol | meaning |
|---|---|
| `NAME` | name of the device; ``torch.device("pretend")`` |
| `POSSIBLE` | whether this version of torch supports it |
| `pretended` | context in which tensors may be moved there; operations are counted |
| `Counts` | launches, synchronisations, transfers and work of the two sides |
| `RefusedError` | raised where CUDA would raise |
| `Rounding` | rounding other than that of the CPU |
| `Trial`, `tried` | one small block of an experiment there |
"""

from benchmarks.pretend.counts import Counts
from benchmarks.pretend.device import NAME, POSSIBLE, pretended
from benchmarks.pretend.rules import RefusedError, Rounding
from benchmarks.pretend.trials import Trial, tried

__all__ = ["NAME", "POSSIBLE", "Counts", "RefusedError", "Rounding", "Trial", "pretended", "tried"]
