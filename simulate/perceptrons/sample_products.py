"""Curvature of every single sample as products with vectors, without a matrix of the size of the parameters.

The Hessian of a sample depends on the weights of a layer only through its activations a below and its gradient d above:
it maps any change of that layer to some p a' + d r'. So it acts on coordinates (p, r) of all layers, some hundreds for
hundreds of thousands of parameters. With a and d of length one, and r orthogonal to a, the coordinates keep lengths and
angles, H_i = E_i K_i E_i' with E_i' E_i = 1, and eigenvalues can be found there. The largest eigenvalues of 20 samples
take 1/100 of the time of `simulate.eigenvalues` on one Hessian after the other. The noise along a vector takes 1/65 of
the time of `simulate.modules.hessian_variance.variance_along` on 208 weights, and a third on LeNet-300-100.

Axes: groups of samples ``g`` (batches, or all samples as one group), samples of a group ``B``, vectors ``m``,
coordinates ``D``, parameters ``P``. The loss is the softmax cross-entropy at temperature 1.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from simulate import _checks, activations
from simulate.lanczos.rows import identity
from simulate.modules import softmax
from simulate.perceptrons import _flat

Matrix = Literal["hessian", "gauss-newton"]

_MATRICES = ("hessian", "gauss-newton")


class Samples(ABC):
    """Symmetric matrices H_i = E_i K_i E_i' of samples in groups of equal size."""

    dtype: torch.dtype
    device: torch.device

    dim: int
    """Number of parameters P."""

    coordinates: int
    """Number of coordinates D."""

    groups: int
    size: int
    """Number of groups, and of samples in each."""

    @abstractmethod
    def on(self, groups: Any) -> Samples:
        """Return the samples with these indices (groups, samples), from all samples as one group."""

    @abstractmethod
    def project(self, vectors: Tensor) -> Tensor:
        """Return the coordinates E_i'v of vectors given group by group: (g, m, P) -> (g, B, m, D)."""

    @abstractmethod
    def apply(self, coordinates: Tensor) -> Tensor:
        """Return K_i times coordinates: (g, B, m, D) -> (g, B, m, D)."""

    @abstractmethod
    def back(self, coordinates: Tensor) -> Tensor:
        """Return the mean of E_i c_i over the samples of a group: (g, B, m, D) -> (g, m, P)."""

    def mean(self, vectors: Tensor) -> Tensor:
        """Return the product of the mean matrix of each group with vectors: (g, m, P) -> (g, m, P)."""
        return self.back(self.apply(self.project(vectors)))

    def inner(self) -> Tensor:
        """Return the matrices K_i, with the same Frobenius norms as H_i: (g, B, D, D)."""
        return self.apply(identity(self.coordinates, self).expand(self.groups, self.size, -1, -1))

    @abstractmethod
    def matrices(self, inner: Tensor, *, ordered: bool = True) -> Tensor:
        """Return the mean matrix of each group, from `inner`: (g, P, P).

        If not `ordered`, parameters may be in another order, as eigenvalues allow, at half of the time.
        """


class DenseSamples(Samples):
    """Samples given as matrices (N, P, P), for tests and for models that are not perceptrons.

    Examples
    --------
    >>> two = DenseSamples(torch.stack([torch.eye(2), 3 * torch.eye(2)]))
    >>> two.mean(torch.ones(1, 1, 2)).tolist()
    [[[2.0, 2.0]]]
    """

    def __init__(self, matrices: Tensor) -> None:
        self._matrices = matrices[None]
        self.dtype, self.device = matrices.dtype, matrices.device
        self.groups, self.size, self.dim, self.coordinates = self._matrices.shape

    def on(self, groups: Any) -> DenseSamples:
        """Return the samples with these indices (groups, samples)."""
        chosen = copy.copy(self)
        chosen._matrices = self._matrices[0][torch.as_tensor(groups)]
        chosen.groups, chosen.size, chosen.dim, chosen.coordinates = chosen._matrices.shape
        return chosen

    def project(self, vectors: Tensor) -> Tensor:
        """Return the vectors themselves, once for each sample."""
        return vectors[:, None].expand(-1, self.size, -1, -1)

    def apply(self, coordinates: Tensor) -> Tensor:
        """Return matrix times vector."""
        return coordinates @ self._matrices

    def back(self, coordinates: Tensor) -> Tensor:
        """Return the mean over the samples."""
        return coordinates.mean(dim=1)

    def matrices(self, inner: Tensor, *, ordered: bool = True) -> Tensor:  # noqa: ARG002 - as for other samples
        """Return the mean over the samples."""
        return inner.mean(dim=1)


class ProbePieces(NamedTuple):
    """Statistics per probe v: mean_i |H_i v|^2, |mean_i H_i v|^2 and (v' mean_i H_i v)^2, each (probes,)."""

    mean_square: Tensor
    square_of_mean: Tensor
    quadratic_form_squared: Tensor


def algorithm_1_probes(samples: Samples, probes: Any) -> ProbePieces:
    """Return the statistics from which estimators of the variance of per-sample matrices are built.

    Parameters
    ----------
    samples
        All N samples as one group.
    probes
        Unit vectors (probes, P).

    Examples
    --------
    >>> matrices = torch.stack([torch.diag(torch.tensor([1.0, 3.0])), torch.diag(torch.tensor([3.0, 3.0]))])
    >>> [piece.item() for piece in algorithm_1_probes(DenseSamples(matrices), [[1.0, 0.0]])]
    [5.0, 4.0, 4.0]
    """
    probes = torch.as_tensor(probes, dtype=samples.dtype, device=samples.device)
    image = samples.apply(samples.project(probes[None]))
    mean = samples.back(image)[0]
    return ProbePieces(
        image.square().sum(-1).mean((0, 1)), mean.square().sum(1), (mean * probes).sum(1).square()
    )


class _Layer(NamedTuple):
    """Values of each sample at a layer, (g, B, in) and (g, B, out), and its weights (out, in)."""

    weight: Tensor
    below: Tensor  # activations, with a 1 for the bias if there is one; of length one
    length: Tensor  # their length (g, B, 1)
    above: Tensor  # gradient by the pre-activations, of length one or 0
    strength: Tensor  # its length (g, B, 1)
    slope: Tensor  # derivative of the activation that follows, and second derivative times gradient by its output
    bend: Tensor


class _Part(NamedTuple):
    """Coordinates for changes of a layer: p a', by rows, or d r', by columns."""

    layer: int
    place: slice  # among all coordinates
    vector: Tensor  # their factor, a or d of each sample
    rows: bool


class PerceptronSamples(Samples):
    """Hessian or Gauss-Newton matrix of the cross-entropy of each sample of a perceptron.

    Parameters
    ----------
    widths
        Units of the input, of each hidden layer and of the output.
    theta
        Flat parameters (P,): layer by layer from the input, the matrix row by row and then the biases, if any.
    x, labels
        Inputs (N, in) and classes (N,).
    activation
        Name of the activation of the hidden layers. The Hessian needs its second derivative, which is 0 for relu.
    matrix
        ``hessian`` or ``gauss-newton``.

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class, or the activation or the matrix is unknown.

    Examples
    --------
    >>> theta = torch.linspace(-1, 1, 4 * 3 + 3 + 3 * 2 + 2, dtype=torch.float64)
    >>> net = PerceptronSamples((4, 3, 2), theta, torch.eye(4, dtype=torch.float64), [0, 1, 1, 0])
    >>> net.dim, net.coordinates, net.mean(theta[None, None]).shape
    (23, 9, torch.Size([1, 1, 23]))
    """

    def __init__(
        self,
        widths: Sequence[int],
        theta: Tensor,
        x: Any,
        labels: Any,
        activation: str = "tanh",
        *,
        matrix: Matrix = "hessian",
    ) -> None:
        _checks.one_of("matrix", matrix, _MATRICES)
        shapes = list(_checks.layer_sizes(widths))
        self._bias = _flat.biased(widths, theta)
        inputs, classes = _checks.labelled(x, labels, widths, theta)
        self._is_hessian = matrix == "hessian"
        self._shapes = shapes
        self.dim, self.dtype, self.device = len(theta), theta.dtype, theta.device
        self.groups, self.size = 1, len(inputs)
        parts = self._blocks(theta.detach()[None])
        self._layers, self._softmax = _passes(parts, inputs, classes, activation, bias=self._bias)
        self.coordinates = sum(self._sizes())

    def on(self, groups: Any) -> PerceptronSamples:
        """Return the samples with these indices (groups, samples)."""
        chosen, groups = copy.copy(self), torch.as_tensor(groups)
        chosen.groups, chosen.size = groups.shape
        chosen._layers = [
            _Layer(layer.weight, *(part[0][groups] for part in layer[1:])) for layer in self._layers
        ]
        chosen._softmax = self._softmax[0][groups]
        return chosen

    def project(self, vectors: Tensor) -> Tensor:
        """Return p = V a, and r = d'V without its part along a, for each layer."""
        groups, count, _ = vectors.shape
        found: list[Tensor] = []
        for index, (block, layer) in enumerate(zip(self._blocks(vectors), self._layers, strict=True)):
            out, fan_in = block.shape[-2:]
            p = (block.reshape(groups, -1, fan_in) @ layer.below.mT).view(groups, count, out, -1)
            found.append(p.permute(0, 3, 1, 2))
            if self._depends_on_below(index):
                across = block.permute(0, 2, 1, 3).reshape(groups, out, -1)
                r = (layer.above @ across).view(groups, -1, count, fan_in)
                # its part along the activations is in p already
                found.append(_orthogonal_part(r, layer.below))
        return torch.cat(found, dim=-1)

    def apply(self, coordinates: Tensor) -> Tensor:
        """Return K_i times coordinates by the product rule, forward through the layers and back."""
        changes = self._split(coordinates)
        pre, moved = self._forward(changes)
        rate = self._softmax_rate(pre[-1])
        found: list[Tensor] = []
        for index in reversed(range(len(self._layers))):
            layer, (p, r) = self._layers[index], changes[index]
            length, above, strength = (
                part[:, :, None] for part in (layer.length, layer.above, layer.strength)
            )
            image = rate * length
            if self._depends_on_below(index):
                shift = _pad(moved[index], self._bias)
                along = shift @ layer.below[..., None]
                image = image + strength * along * above
                found.append(strength * _orthogonal_part(shift, layer.below))
            found.append(image)
            if index:
                rate = rate @ layer.weight
                if self._is_hessian:
                    change = (p @ layer.above[..., None]) * layer.below[:, :, None] + r
                    rate = rate + (strength * change)[..., : layer.weight.shape[1]]
                lower = self._layers[index - 1]
                rate = lower.slope[:, :, None] * rate
                if self._is_hessian:
                    rate = rate + lower.bend[:, :, None] * pre[index - 1]
        return torch.cat(found[::-1], dim=-1)

    def back(self, coordinates: Tensor) -> Tensor:
        """Sum outer products over the samples, by one matrix product for each layer."""
        groups, size, count, _ = coordinates.shape
        found: list[Tensor] = []
        for layer, (p, r) in zip(self._layers, self._split(coordinates), strict=True):
            out, fan_in = p.shape[-1], layer.below.shape[-1]
            block = p.permute(0, 2, 3, 1).reshape(groups, count * out, size) @ layer.below
            block = block.view(groups, count, out, fan_in)
            if r.numel():
                across = layer.above.mT @ r.reshape(groups, size, count * fan_in)
                block = block + across.view(groups, out, count, fan_in).permute(0, 2, 1, 3)
            block = block / size
            found += [block[..., :-1].flatten(-2), block[..., -1]] if self._bias else [block.flatten(-2)]
        return torch.cat(found, dim=-1)

    def matrices(self, inner: Tensor, *, ordered: bool = True) -> Tensor:
        """Sum outer products over the samples, by one matrix product for each pair of parts of the coordinates."""
        widths = [(part.above.shape[-1], part.below.shape[-1]) for part in self._layers]
        sizes = [out * fan_in for out, fan_in in widths]
        total = inner.new_zeros(self.groups, sum(sizes), sum(sizes))
        blocks = [row.split(sizes, dim=2) for row in total.split(sizes, dim=1)]
        parts, inner = self._parts(), inner / self.size
        for i, one in enumerate(parts):
            for other in parts[i:]:
                # each part is coordinates times a vector of the sample; both are summed over samples
                k = inner[..., one.place, other.place].flatten(2)
                fixed = (one.vector[..., None] * other.vector[..., None, :]).flatten(2)
                ends = one.vector.shape[-1], other.vector.shape[-1]
                found = (
                    (k.mT @ fixed).unflatten(2, ends).unflatten(1, (-1, other.place.stop - other.place.start))
                )
                order = (*((1, 3) if one.rows else (3, 1)), *((2, 4) if other.rows else (4, 2)))
                found = found.permute(0, *order).flatten(3).flatten(1, 2)
                blocks[one.layer][other.layer].add_(found)
                if one is not other:
                    blocks[other.layer][one.layer].add_(found.mT)
        if not ordered:
            return total
        # from the order of the blocks, with biases as last columns, to that of the flat parameters
        flat = torch.cat([b.flatten() for b in self._blocks(torch.arange(self.dim))]).argsort()
        return total[:, flat][:, :, flat]

    def _parts(self) -> list[_Part]:
        """Return the coordinates p of every layer, and r if it has one."""
        ends = torch.tensor([0, *self._sizes()]).cumsum(0).tolist()
        found: list[_Part] = []
        for index, layer in enumerate(self._layers):
            start, middle, end = ends[2 * index : 2 * index + 3]
            found.append(_Part(index, slice(start, middle), layer.below, rows=True))
            if end > middle:
                found.append(_Part(index, slice(middle, end), layer.above, rows=False))
        return found

    def _forward(self, changes: list[tuple[Tensor, Tensor]]) -> tuple[list[Tensor], list[Tensor]]:
        """Return the changes of the pre-activations of each layer, and of the activations below it."""
        pre: list[Tensor] = []
        moved: list[Tensor] = [changes[0][0].new_zeros(0)]
        for index, (layer, (p, _)) in enumerate(zip(self._layers, changes, strict=True)):
            step = p * layer.length[:, :, None]
            pre.append(step + moved[-1] @ layer.weight.mT if index else step)
            if index + 1 < len(self._layers):
                moved.append(layer.slope[:, :, None] * pre[-1])
        return pre, moved

    def _softmax_rate(self, moved: Tensor) -> Tensor:
        """Return (diag p - p p') times vectors."""
        p = self._softmax[:, :, None]
        top = p.argmax(-1, keepdim=True).expand(*moved.shape[:-1], 1)
        # relative to the likeliest class, so that nothing cancels near one-hot
        contrast = moved - moved.gather(-1, top)
        return p * (contrast - (p * contrast).sum(-1, keepdim=True))

    def _depends_on_below(self, index: int) -> bool:
        """Whether the matrix depends on changes of the activations below a layer."""
        return self._is_hessian and index > 0

    def _sizes(self) -> list[int]:
        """Return the number of coordinates p and r of each layer."""
        return [
            size
            for index, (fan_in, out) in enumerate(self._shapes)
            for size in (out, (fan_in + self._bias) * self._depends_on_below(index))
        ]

    def _split(self, coordinates: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return p and r of each layer; a part of r along a, which is in p already, is removed."""
        pieces = coordinates.split(self._sizes(), dim=-1)
        return [
            (p, _orthogonal_part(r, layer.below) if r.shape[-1] else r)
            for p, r, layer in zip(pieces[::2], pieces[1::2], self._layers, strict=True)
        ]

    def _blocks(self, flat: Tensor) -> list[Tensor]:
        """Return flat vectors (..., P) as matrices (..., out, in) of the layers, with the bias as last column."""
        sizes = [size for fan_in, out in self._shapes for size in (fan_in * out, out * self._bias)]
        parts = flat.split(sizes, dim=-1)
        blocks = [
            matrix.unflatten(-1, (out, fan_in))
            for (fan_in, out), matrix in zip(self._shapes, parts[::2], strict=True)
        ]
        if not self._bias:
            return blocks
        return [torch.cat([w, b[..., None]], -1) for w, b in zip(blocks, parts[1::2], strict=True)]


def _passes(
    blocks: Sequence[Tensor], inputs: Tensor, classes: Tensor, activation: str, *, bias: bool
) -> tuple[list[_Layer], Tensor]:
    """Pass forward and backward once; return the layers' values for every sample, and the class probabilities."""
    weights = [block[0] for block in blocks]
    below, pre = [inputs], list[Tensor]()
    function, derivative = activations.nonlinearity(activation)
    for index, weight in enumerate(weights):
        below[-1] = _pad(below[-1], bias, value=1.0)
        pre.append(below[-1] @ weight.mT)
        if index + 1 < len(weights):
            below.append(function(pre[-1]))
    gradient = softmax.residuals(pre[-1], classes)
    layers: list[_Layer] = []
    slope = bend = inputs.new_zeros(len(inputs), 0)
    for index in reversed(range(len(weights))):
        weight = weights[index][:, : weights[index].shape[1] - bias]
        pair = below[index], gradient
        length, strength = (part.norm(dim=-1, keepdim=True) for part in pair)
        # torch divides by max(length, eps), and its eps of 1e-12 would shorten small gradients
        unit, direction = (functional.normalize(part, dim=-1, eps=1e-300) for part in pair)
        values = unit, length, direction, strength, slope, bend
        layers.append(_Layer(weight, *(value[None] for value in values)))
        if index:
            arriving = gradient @ weight
            slope, second = _slopes(derivative, pre[index - 1])
            bend, gradient = second * arriving, slope * arriving
    return layers[::-1], functional.softmax(pre[-1], -1)[None]


def _slopes(derivative: Any, pre: Tensor) -> tuple[Tensor, Tensor]:
    """Return first and second derivative of an activation; piecewise linear ones have second derivative 0."""
    with torch.enable_grad():
        at = pre.detach().requires_grad_()
        slope = derivative(at)
        if not slope.requires_grad:
            return slope, torch.zeros_like(slope)
        second = torch.autograd.grad(slope.sum(), at)[0]
    return slope.detach(), second


def _orthogonal_part(vectors: Tensor, unit: Tensor) -> Tensor:
    """Return vectors (g, B, m, n) minus their part along a unit vector of each sample (g, B, n)."""
    return vectors - (vectors @ unit[..., None]) * unit[:, :, None]


def _pad(vectors: Tensor, bias: bool, value: float = 0.0) -> Tensor:
    return functional.pad(vectors, (0, 1), value=value) if bias else vectors
