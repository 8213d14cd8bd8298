"""Statistics of whole spectra, a block of replicates as one stacked tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["distribution"]


def distribution(matrices: Tensor, x: Sequence[float]) -> Tensor:
    """Share of the eigenvalues of each symmetric matrix that is at most x: (n, dim, dim) -> (n, len(x)).

    One matrix, one number per x: the eigenvalues of a matrix repel each other and are no sample of their law.

    Examples
    --------
    >>> distribution(torch.diag_embed(torch.tensor([[1.0, 2.0, 3.0, 4.0]])), (0.5, 2.0, 9.0)).tolist()
    [[0.0, 0.5, 1.0]]
    """
    values = torch.linalg.eigvalsh(matrices)
    at = torch.as_tensor(x, dtype=values.dtype, device=values.device).expand(len(values), -1).contiguous()
    return torch.searchsorted(values, at, right=True).to(values.dtype) / values.shape[1]
