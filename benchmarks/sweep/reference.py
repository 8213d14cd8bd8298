"""Dense matrices of a model of the sweep by double backward on the plain loss of the whole data, as training sees it.

No code of the product takes part. What computes in single or half precision is doubled first, and torch's weight
normalisation, whose second derivative is wrong, is written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from benchmarks.sweep.listing import Listed, N, built


def _rows(ends: Tensor, leaves: Sequence[Tensor]) -> Tensor:
    """Derivative of every number by all leaves."""
    if not ends.requires_grad:
        return ends.new_zeros(len(ends), sum(p.numel() for p in leaves))
    each = [torch.autograd.grad(e, leaves, retain_graph=True, materialize_grads=True) for e in ends]
    return torch.stack([torch.cat([g.flatten() for g in row]) for row in each]).detach()


def _twice(function: Callable[[], Tensor], leaves: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """First and second derivative of one number."""
    slope = torch.autograd.grad(function(), leaves, create_graph=True, materialize_grads=True)
    flat = torch.cat([s.flatten() for s in slope])
    return flat.detach(), _rows(flat, leaves)


def _weight_norm(v: Tensor, g: Tensor, dim: int) -> Tensor:
    axes = [i for i in range(v.ndim) if i != dim % v.ndim] if dim >= 0 else list(range(v.ndim))
    return g * v / v.square().sum(axes, keepdim=dim >= 0).sqrt()


def _of_all(change: Callable[[Tensor], Tensor], part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple(map(change, part))
    return change(part) if isinstance(part, Tensor) else type(part)(*map(change, vars(part).values()))


def _double(part: Tensor) -> Tensor:
    return part.double() if part.is_floating_point() else part


class Reference:
    """Value, gradient, matrices and Hessians of single samples."""

    def __init__(self, name: str, listed: Listed) -> None:
        self.model, inputs, targets = built(name, listed)
        self.module = isinstance(self.model, nn.Module)
        if self.module:
            self.model.double().eval()
        leaves = self.model.parameters() if self.module else self.model.leaves
        self.leaves = [p.requires_grad_() for p in leaves if p.requires_grad or not self.module]
        self.loss, self.inputs, self.targets = listed.loss, _of_all(_double, inputs), _double(targets)
        cut = listed.cut or N
        self.batches = [slice(i, i + cut) for i in range(0, N, cut)]
        with mock.patch("torch._weight_norm", _weight_norm):
            outputs = self.outputs()
            self.value = float(self.loss(outputs, self.targets))
            self.gradient, self.hessian = _twice(lambda: self.loss(self.outputs(), self.targets), self.leaves)
            self.jacobian = _rows(outputs.flatten(), self.leaves)
            each = [] if listed.mixed else [self._sample(i) for i in range(N)]
        self.samples = torch.stack(each) if each else None
        self.logits = outputs.detach().requires_grad_()
        self.slope, self.outer = _twice(lambda: self.loss(self.logits, self.targets), [self.logits])
        self.gauss_newton = self.jacobian.mT @ self.outer @ self.jacobian

    def outputs(self, *batches: slice) -> Tensor:
        """Return the outputs that the loss takes, batch by batch."""
        found: list[Tensor] = []
        for batch in batches or self.batches:
            part = _of_all(lambda x, batch=batch: x[batch], self.inputs)
            given = part if isinstance(part, tuple) else (part,)
            found.append(self.model(*given) if self.module else self.model(self.leaves, *given))
        return torch.cat([each if isinstance(each, Tensor) else each.logits for each in found])

    def _sample(self, i: int) -> Tensor:
        some = slice(i, i + 1)
        return _twice(lambda: self.loss(self.outputs(some), self.targets[some]), self.leaves)[1]

    def empirical_fisher(self) -> Tensor:
        """N times the sum of the squares of what the rows of the outputs add to the gradient."""
        steep = self.jacobian.view(N, -1, len(self.gradient))
        rows = torch.einsum("im,imp->ip", self.slope.view(N, -1), steep)
        return N * rows.mT @ rows

    def fisher(self) -> Tensor:
        """Return the Fisher matrix: of a softmax over classes, or of normal outputs of variance one."""
        if isinstance(self.loss, nn.MSELoss):
            return self.jacobian.mT @ self.jacobian / N
        p, steep = self.logits.softmax(1).detach(), self.jacobian.view(*self.logits.shape, -1)
        mean = torch.einsum("im,imp->ip", p, steep)
        return (torch.einsum("im,imp,imq->pq", p, steep, steep) - mean.mT @ mean) / N

    def factors(self) -> Tensor | None:
        """Blocks A (x) B of all linear layers, where each has one input of every sample and nothing else acts."""
        calls: list[Any] = []
        linear = [m for m in self.model.modules() if type(m) is nn.Linear and m.weight.requires_grad]
        hooks = [m.register_forward_hook(lambda m, x, z: calls.append((m, x[0], z))) for m in linear]
        outputs = self.outputs().flatten()
        _ = [hook.remove() for hook in hooks]
        places = torch.arange(len(self.gradient)).split([p.numel() for p in self.leaves])
        place = dict(zip(map(id, self.leaves), places, strict=True))
        known = [id(p) for m, _, _ in calls for p in m.parameters()]
        if sorted(known) != sorted(place) or any(x.shape[:-1] != (N,) for _, x, _ in calls):
            return None
        total = torch.zeros_like(self.hessian)
        for m, x, z in calls:
            steep = _rows(outputs, [z]).view(len(outputs), N, -1)
            B = torch.einsum("kio,kl,lip->op", steep, self.outer, steep)
            a = torch.cat([x.detach(), torch.ones(N, 1)], 1).to(B) if m.bias is not None else x.detach()
            K = torch.einsum("op,ij->oipj", B, a.mT @ a / N).flatten(2).flatten(0, 1)
            weights = place[id(m.weight)].view_as(m.weight)
            at = torch.cat([weights, place[id(m.bias)][:, None]], 1) if m.bias is not None else weights
            total[at.reshape(-1, 1), at.reshape(1, -1)] = K
        return total
