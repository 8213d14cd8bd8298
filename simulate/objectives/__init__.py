"""The loss of a model on data as one function of its parameters, to which every matrix of its curvature belongs.

A model is an `nn.Module`, or a function of parameters and inputs; the loss is any twice differentiable function of
outputs and targets, its mean or its sum over the samples of a batch; data are batches of inputs and targets. With
batches of unequal size the mean is over the samples, not over the batches.

If the loss is not such a mean or sum, or if the samples of a batch affect each other, the loss of all data is defined
only for a single batch: the batch is never cut, and data in several batches are refused. See `Objective.separable`.

The parameters are copied, so measurements refer to their values at that time. The model's mode, buffers and gradients
and the random generators are restored afterwards. During a measurement the parameters of the model are exchanged, so
only one thread may use it.

Before the first derivative, torch's derivatives are checked, in `Objective.measured`: see
`simulate.objectives.soundness`. In one process this is done once for the same model, loss and shapes. Whether samples
affect each other, and such questions, are asked once for the same data too: see `simulate.objectives.fingerprints`.
"""

from simulate.objectives import batches, parameters
from simulate.objectives.batches import Batch, OtherDataError
from simulate.objectives.losses import Reduction
from simulate.objectives.objective import Objective, require_objective

__all__ = ["Batch", "Objective", "OtherDataError", "Reduction", "batches", "parameters", "require_objective"]
