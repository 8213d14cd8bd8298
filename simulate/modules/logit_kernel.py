r"""Inner products of the logit gradients of all samples, and the scales and cosines that follow from them.

The kernel of a model with K outputs at N samples is the Gram matrix (N, K, N, K) of the gradients J_nk of logit k at
sample n by all parameters (`simulate.modules.empirical_kernel`). With it every gradient of a loss, of whatever samples
at whatever weight, is known up to a rotation:

| quantity | definition |
|---|---|
| class mean c_k | mean of J_nk over samples |
| residual e_nk | J_nk - c_k |
| gradient of the cross-entropy | sum over n, k of w_n (p_nk - y_nk) J_nk, weights w_n of sum one |

Not to be confused with the kernel of wide networks, of unit variance, in `simulate.wide.fisher_gram`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from simulate._checks import Floats
from simulate.modules.empirical_kernel import kernel_of, outputs_alone


class Scales(NamedTuple):
    """Standard deviations per parameter of class means and residuals, unbiased, and the lengths |c_k|, (K,).

    The lengths are of the sample means; only `sigma_c` is corrected for the scatter of the residuals.
    """

    sigma_c: float
    sigma_e: float
    lengths: Floats


class Cosines(NamedTuple):
    """Mean cosines of logit gradients.

    Attributes
    ----------
    same, different
        Mean over all pairs of samples, of the same logit and of two different ones.
    means
        Cosines of the class means c_k and c_l, (K (K - 1) / 2,).
    """

    same: float
    different: float
    means: Floats


class Kernel(NamedTuple):
    """Inner products of logit gradients.

    Attributes
    ----------
    logits
        (N, K).
    gram
        (N, K, N, K).
    dim
        Number of parameters P.
    """

    logits: Tensor
    gram: Tensor
    dim: int

    def scales(self) -> Scales:
        """Return the scales of the model c_k + e_nk; needs two samples."""
        n = _at_least_two(len(self.logits))
        means = self.gram.diagonal(dim1=1, dim2=3).mean((0, 1))  # |c_k|^2
        squares = self.gram.flatten(2).flatten(0, 1).diagonal().mean()  # of |J_nk|
        # n / (n - 1): the residuals are about the mean of the same samples
        error = (squares - means.mean()) / self.dim * n / (n - 1)
        return Scales(
            # a mean of n samples is longer than the true one by the scatter over n
            float((means.mean() / self.dim - error / n).clamp(min=0).sqrt()),
            float(error.clamp(min=0).sqrt()),
            means.sqrt().cpu().numpy(),
        )

    def cosines(self) -> Cosines:
        """Return the cosines of logit gradients within and between logits; needs two samples."""
        n, classes = _at_least_two(len(self.logits)), self.logits.shape[1]
        flat = self.gram.reshape(n * classes, n * classes)
        lengths = flat.diagonal().sqrt()
        by_pair = (flat / torch.outer(lengths, lengths)).view(n, classes, n, classes)
        # without pairs of a sample with itself, whose cosine is one
        total = by_pair.sum((0, 2)) - by_pair.diagonal(dim1=0, dim2=2).sum(-1)
        mean = total / (n * (n - 1))
        means = self.gram.mean((0, 2))
        sizes = means.diagonal().sqrt()
        apart = (means / torch.outer(sizes, sizes))[tuple(torch.triu_indices(classes, classes, 1))]
        same = float(mean.diagonal().mean())
        different = float((mean.sum() - mean.diagonal().sum()) / (classes * (classes - 1)))
        return Cosines(same, different, apart.cpu().numpy())

    def sample_gram(self, slope: Tensor) -> Tensor:
        """Return the inner products (N, N) of sum_k slope_nk J_nk, the gradients of samples with residuals (N, K)."""
        return torch.einsum("nk,nkml,ml->nm", slope, self.gram, slope)


def logit_kernel(model: nn.Module, inputs: Any) -> Kernel:
    """Return logits and kernel of a module on inputs (N, ...), float64 on its device.

    Raises
    ------
    ValueError
        As `empirical_kernel`.

    Examples
    --------
    A linear model: the gradients are the inputs, each in the row of its own logit.

    >>> x = torch.tensor([[3.0, 4.0], [4.0, 3.0]], dtype=torch.float64)
    >>> found = logit_kernel(nn.Linear(2, 2, bias=False, dtype=torch.float64), x)
    >>> found.gram[:, 0, :, 0].tolist(), bool(found.gram[:, 0, :, 1].any())
    ([[25.0, 24.0], [24.0, 25.0]], False)
    """
    objective = outputs_alone(model, inputs)
    gram = kernel_of(objective)
    with objective.measured(), torch.no_grad():
        (batch,) = objective.batches()
        logits = objective.outputs(objective.leaves, batch.inputs)
    if logits.ndim != 2:
        raise ValueError(f"model must return logits (N, K), got shape {tuple(logits.shape)}")
    return Kernel(logits, gram, objective.dim)


def _at_least_two(samples: int) -> int:
    if samples < 2:
        raise ValueError(f"logits must have at least two samples, got {samples}")
    return samples
