"""The loss of a model on data as one function of its parameters, to which every matrix of its curvature belongs.

A model is an `nn.Module`, or a function of parameters and inputs; the loss is any twice differentiable function of
outputs and targets, its mean or its sum over the samples of a batch; data are batches of inputs and targets. With
batches of unequal size the mean is over the samples, not over the batches.

A loss that is no such mean or sum, or a model whose samples see each other, has a value for all data only if these
are one batch: then it is never cut, and data in several batches are refused. See `Objective.separable`.

The parameters are copied: what is measured belongs to the values they had, and the model is left as found, with its
mode, its buffers, its gradients and the state of the random generators. While it is measured its parameters are
exchanged, so that a model is for one thread at a time.

All that takes derivatives asks first, once for each objective, whether those of torch are those of the loss: see
`simulate.objectives.soundness`. `Objective.measured` is where it does so.
"""

from simulate.objectives import batches, parameters
from simulate.objectives.batches import Batch, OtherDataError
from simulate.objectives.objective import Objective, Reduction, require_objective

__all__ = ["Batch", "Objective", "OtherDataError", "Reduction", "batches", "parameters", "require_objective"]
