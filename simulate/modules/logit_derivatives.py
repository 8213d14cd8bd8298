r"""First and second derivatives of the logits of any model along a frame, and the two curvature terms made of them.

With z(t) the logits at parameters theta + R t, R a frame of shape (P, d), the terms are written down from their
definitions, each sample and pair of classes by itself, at any temperature and any mixing of the classes; they share
nothing with the products of `simulate.operators` but the model. For few directions and few samples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from simulate.objectives.derivatives import slopes
from simulate.objectives.parameters import parametric
from simulate.objectives.restoring import preserve_state


class LogitDerivatives(NamedTuple):
    """Logits z (N, K), Jacobian dz/dt (N, K, d) and second derivatives (N, K, d, d) along d directions."""

    logits: Tensor
    jacobian: Tensor
    second: Tensor

    def gradient(self, residuals: Tensor) -> Tensor:
        """Return the mean over the samples of sum_k r_k dz_k/dt for weights (N, K): (d,)."""
        return torch.einsum("nk,nki->i", residuals, self.jacobian) / len(residuals)

    def g_term(self, mixing: Tensor) -> Tensor:
        """Return the mean over the samples of sum_kc dz_k/dt_i M_kc dz_c/dt_j for matrices (N, K, K): (d, d)."""
        return torch.einsum("nki,nkc,ncj->ij", self.jacobian, mixing, self.jacobian) / len(mixing)

    def h_term(self, residuals: Tensor) -> Tensor:
        """Return the mean over the samples of sum_k r_k d2z_k/dt_i dt_j for weights (N, K): (d, d)."""
        return torch.einsum("nk,nkij->ij", residuals, self.second) / len(residuals)


def logit_derivatives(model: nn.Module, x: Any, frame: Tensor) -> LogitDerivatives:
    """Return the derivatives of the logits of a model along the columns of a frame, by automatic differentiation.

    With u free weights of the logits, the derivative of <u, z> by t is linear in u. Its derivative by u is the
    Jacobian; one more derivative by t gives the second derivatives. This takes d + d^2 backward passes, whatever the
    number of samples and classes.

    Parameters
    ----------
    model
        Logits (N, K) of inputs; not changed.
    x
        Inputs, of the type of the parameters.
    frame
        R of shape (P, d), any matrix; its rows are ordered as the flat parameters.

    Raises
    ------
    ValueError
        If the frame is of another shape.

    Examples
    --------
    >>> model = nn.Linear(2, 3, bias=False, dtype=torch.float64)
    >>> found = logit_derivatives(model, torch.eye(2, dtype=torch.float64), torch.eye(6, 4, dtype=torch.float64))
    >>> found.jacobian.shape, bool(found.second.any())  # linear in the parameters
    (torch.Size([2, 3, 4]), False)
    """
    own = parametric(model)
    sizes = [p.numel() for p in own.parameters]
    if frame.ndim != 2 or frame.shape[0] != sum(sizes) or frame.shape[1] == 0:
        raise ValueError(f"frame must be of shape ({sum(sizes)}, d) with d >= 1, got {tuple(frame.shape)}")
    with preserve_state(model, training=False), torch.enable_grad():
        t = frame.new_zeros(frame.shape[1], requires_grad=True)
        moved = (frame @ t).split(sizes)
        leaves = [p + m.view_as(p) for p, m in zip(own.parameters, moved, strict=True)]
        logits = own.call(leaves, x)
        u = torch.zeros_like(logits, requires_grad=True)
        (slope,) = slopes(logits, t, u, again=True)
        jacobian = torch.stack([slopes(s, u)[0] for s in slope], dim=-1)
        bends = (slopes(s, t, again=True)[0] for s in slope)
        rows = [torch.stack([slopes(b, u)[0] for b in bend], dim=-1) for bend in bends]
    return LogitDerivatives(logits.detach(), jacobian, torch.stack(rows, dim=-2))
