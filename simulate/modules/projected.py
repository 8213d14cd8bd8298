r"""Curvature of any model along a frame: R'GR and R'HtR for the columns of R as directions of its parameters.

Both follow from what the directions V_1..V_d change at the sites of the model (`simulate.modules.sites`). With e_i the
change that V_i makes there directly, c the loss linearised in the outputs, and delta its derivative by the nudges,

| term | entry |
|---|---|
| G | z_i' A z_j, with z_i = dz/de . e_i the change of the outputs and A the curvature of the loss in them |
| Ht | e_i' C e_j + m_ij + m_ji, C the second derivative of c by the nudges |

where m_ij sums <delta, layer with V_j applied to the change of its input along V_i> over the sites. It is the
derivative along e_i of a scalar, so that one backward pass for each direction gives a row. Changes of the first layer,
which has most of the parameters, cost one matrix product, and no derivative by parameters is ever taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import grad

from simulate import _memory, operators
from simulate.lanczos.precision import in_full_precision
from simulate.lanczos.rows import identity
from simulate.modules import sites
from simulate.modules.homogeneous import Terms
from simulate.modules.sample_parts import parameter_columns, rows_by_sample
from simulate.modules.sites import Site
from simulate.objectives import Batch, Objective, require_objective
from simulate.objectives.batches import cuts
from simulate.objectives.derivatives import normal, slopes
from simulate.results import Columns, Result

if TYPE_CHECKING:
    from simulate.results import Axes

_BYTES = 1 << 28
"""Most bytes of changes at the sites held at once."""


class Projected(Result, Terms):
    """Curvature along the d columns of a frame R: R'GR of the Gauss-Newton matrix, R'HtR of the rest of the Hessian."""

    __slots__ = ()

    def _headline(self) -> str:
        trace, norm = float(self.hessian.trace()), float(self.hessian.norm())
        return f"R'HR along {len(self.g_term)} directions, trace {trace:.5g}, Frobenius norm {norm:.5g}"

    def _columns(self) -> Columns:
        matrices = {"Hessian": self.hessian, "Gauss-Newton": self.g_term, "H-term": self.h_term}
        return {
            name: torch.linalg.eigvalsh(matrix.double()).flip(0).tolist() for name, matrix in matrices.items()
        }

    def _draw(self, axes: Axes) -> None:
        for name, values in self._columns().items():
            axes.plot(range(1, len(values) + 1), values, marker="o", ms=3, label=name)
        axes.set(title="eigenvalues along the frame", xlabel="rank")
        axes.locator_params(axis="x", integer=True)
        axes.legend(frameon=False)


def projected(objective: Objective, frame: Any) -> Projected:
    """Return the Gauss-Newton matrix and the H-term, whose sum is the Hessian, along the columns of a frame.

    Parameters
    ----------
    objective
        Loss of a model on data. If `sites.covers` it and samples do not see each other, each direction costs about one
        product with all layers; otherwise two products with a curvature matrix.
    frame
        R of shape (dim, d), any matrix; its rows are ordered as the flat parameters.

    Returns
    -------
    R'GR and R'HtR, each (d, d), symmetric to the last bit, of the type of the parameters.

    Raises
    ------
    ValueError
        If the frame is of another shape or not finite, or the changes of one sample do not fit into memory.

    References
    ----------
    Schraudolph (2002), Fast curvature matrix-vector products for second-order gradient descent.

    Examples
    --------
    >>> x, weight = torch.tensor([[1.0, 2.0], [3.0, -1.0]]).double(), torch.zeros(1, 2).double()
    >>> line = Objective(lambda p, x: x @ p[0].T, (x, x[:, :1]), nn.MSELoss(), parameters=[weight])
    >>> projected(line, [[1.0], [1.0]])
    Projected: R'HR along 1 directions, trace 13, Frobenius norm 13
    Hessian  Gauss-Newton  H-term
         13            13       0
    """
    require_objective("projected", objective)
    with in_full_precision():
        columns = parameter_columns(objective, "frame", frame)
        found = _terms_at_sites(objective, columns) if sites.by_sample(objective) else None
        if found is None:  # parameters act elsewhere, at least for some of the samples
            matrices = operators.gauss_newton(objective), operators.h_term(objective)
            found = [columns.mT @ (matrix @ columns) for matrix in matrices]
        if not all(bool(m.isfinite().all()) for m in found):
            raise ValueError(
                "frame must be finite and small enough for its products not to overflow, got NaN or infinity"
            )
        return Projected(*((m + m.mT) / 2 for m in found))


# --- by the sites -------------------------------------------------------------------------------------------------


class _Pass(NamedTuple):
    """Outputs and sites of `size` samples of a batch."""

    outputs: Tensor
    sites: Sequence[Site]
    samples: slice

    @property
    def size(self) -> int:
        return self.samples.stop - self.samples.start

    @property
    def nudges(self) -> list[Tensor]:
        return [site.nudge for site in self.sites]


def _terms_at_sites(objective: Objective, columns: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return both terms, or None if parameters act elsewhere for some of the samples."""
    count, directions = columns.shape[1], directions_of(objective, columns)
    g_term, h_term = (columns.new_zeros(count, count) for _ in range(2))
    ranks, elsewhere = objective.ranks, False
    with ranks.together("a frame", vectors=[columns]), objective.measured():
        try:
            for batch in objective.batches():
                g_part, h_part = _batch_terms(objective, batch, directions)
                g_term += g_part
                h_term += h_part
        except sites.ElsewhereError:
            elsewhere = True
    if ranks.any(elsewhere):
        return None
    return ranks.total(g_term), ranks.total(h_term + h_term.mT)


def _batch_terms(objective: Objective, batch: Batch, directions: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the contribution of a batch to the G-term, and half of its contribution to the H-term."""
    passes = list(_passes(objective, batch, len(directions[0])))
    # the loss is one of the whole batch, so its derivatives need all outputs together
    free = torch.cat([p.outputs.detach() for p in passes]).requires_grad_()
    (slope,) = torch.autograd.grad(objective.loss(free, batch), free, create_graph=True)
    tangents, h_terms = list[Tensor](), list[Tensor]()
    for part in passes:
        changes = [rows_by_sample(sites.moved(s, directions), part.size) for s in part.sites]
        # by whichever takes fewer backward passes
        few = part.outputs.numel() // part.size <= len(directions[0])
        tangents.append((_tangents_by_jacobian if few else _tangents_by_pulling)(part, changes))
        h_terms.append(_half_h_term(part, slope.detach()[part.samples], directions, changes))
    # a model may hand on what it computed in single precision as double
    return _g_term(slope, free, torch.cat(tangents).to(free.dtype)), torch.stack(h_terms).sum(0)


def directions_of(objective: Objective, columns: Tensor) -> list[Tensor]:
    """Return the directions split by parameter, each contiguous, (d, *shape)."""
    what = f"{columns.shape[1]} directions, apart by parameters"
    _memory.require_free("frame", columns.nbytes, what, device=objective.device, advice="use fewer columns")
    return [part.contiguous() for part in objective.split(columns.mT)]


def _passes(objective: Objective, batch: Batch, count: int) -> Iterator[_Pass]:
    """Yield a batch in parts whose changes along all directions fit into memory."""
    size = batch.samples
    outputs, found = sites.visited(objective, batch)
    most = _samples_at_once(objective, outputs, found, count)
    if most >= size:
        yield _Pass(outputs, found, slice(0, size))
        return
    del outputs, found
    for part in cuts(size, most):
        yield _Pass(*sites.visited(objective, batch.part(part)), part)


def _samples_at_once(objective: Objective, outputs: Tensor, found: Sequence[Site], count: int) -> int:
    """Return how many samples fit into memory at once."""
    # the changes, the rows of Ht before they are contracted (twice), and what comes back through convolutions
    numbers = sum(3 * site.nudge.numel() for site in found) + 2 * outputs.numel()
    numbers += sum(site.inputs.numel() for site in found if plain_convolution(site.layer))
    each = -(-count * numbers // len(outputs)) * objective.dtype.itemsize
    what = f"the changes of one sample along {count} directions"
    _memory.require_free("frame", each, what, device=objective.device, advice="use fewer columns")
    return max(1, _BYTES // each)


def _g_term(slope: Tensor, free: Tensor, tangents: Tensor) -> Tensor:
    """Return z_i' A z_j, (d, d), for changes of the outputs z (N, d, o) and the curvature A of the loss."""
    rows = tangents.movedim(1, 0)
    if not slope.requires_grad:  # a loss of straight pieces
        return tangents.new_zeros(len(rows), len(rows))
    bent = _several_slopes([slope], [free], ([t.reshape_as(free)] for t in rows), len(rows))
    return rows.flatten(1) @ torch.stack([row for (row,) in bent]).flatten(1).mT


def _tangents_by_jacobian(part: _Pass, changes: Sequence[Tensor]) -> Tensor:
    """Return the changes of the outputs from one backward pass for each output of a sample."""
    flat = part.outputs.reshape(part.size, -1)
    units = identity(flat.shape[1], flat)
    rows = _several_slopes([flat], part.nudges, ([unit.expand_as(flat)] for unit in units), len(units))
    total = changes[0].new_zeros(part.size, changes[0].shape[1], len(units))
    for change, *row in zip(changes, *rows, strict=True):
        jacobian = torch.stack([r.reshape(part.size, -1) for r in row], dim=1)
        total.baddbmm_(change, jacobian.mT)
    return total


def _tangents_by_pulling(part: _Pass, changes: Sequence[Tensor]) -> Tensor:
    """Return the changes as the derivative in u of d<u, outputs>, about two backward passes for each direction."""
    weights = torch.zeros_like(part.outputs, requires_grad=True)
    pulled = slopes(part.outputs, part.nudges, weights, again=True)
    directions = [_like_nudges(changes, i, pulled) for i in range(changes[0].shape[1])]
    rows = _several_slopes(pulled, [weights], directions, len(directions))
    return torch.stack([row.reshape(part.size, -1) for (row,) in rows], dim=1)


def _half_h_term(
    part: _Pass, slope: Tensor, directions: Sequence[Tensor], changes: Sequence[Tensor]
) -> Tensor:
    """Return m_ij + e_i' C e_j / 2, (d, d), from one backward pass to the nudges for each direction."""
    delta = slopes(part.outputs, part.nudges, slope, again=True)
    inner = [(s, d.detach()) for s, d in zip(part.sites, delta, strict=True) if s.inputs.requires_grad]
    bent = [k for k, d in enumerate(delta) if d.requires_grad] if has_curvature(delta, part.nudges) else []
    total = slope.new_zeros(changes[0].shape[1], changes[0].shape[1])
    if not inner and not bent:
        return total
    ends = [site.inputs for site, _ in inner] + [delta[k] for k in bent]
    pulls = [pull(site, d, directions) for site, d in inner]
    found = [torch.empty_like(change) for change in changes]

    def start(i: int) -> list[Tensor]:
        # half of the symmetric part: the caller adds the transpose
        change = _like_nudges(changes, i, delta) if bent else []
        return [pull(i) for pull in pulls] + [change[k] / 2 for k in bent]

    rows = _several_slopes(ends, part.nudges, map(start, range(len(total))), len(total))
    for i, row in enumerate(rows):
        for across, one in zip(found, row, strict=True):
            across[:, i] = one.reshape(part.size, -1)
    for change, across in zip(changes, found, strict=True):
        total += torch.bmm(change, across.mT).sum(0)
    return total


def _several_slopes(
    ends: Sequence[Tensor], by: Sequence[Tensor], weights: Iterable[Sequence[Tensor]], count: int
) -> Iterator[Sequence[Tensor]]:
    """Yield the derivatives of <weights, ends> for `count` weights."""
    # on a device all at once, since calls take the time there
    if ends[0].device.type == "cpu" or count == 1:
        yield from (slopes(ends, by, each) for each in weights)
        return
    listed = list(weights)
    try:
        found = slopes(ends, by, [torch.stack(parts) for parts in zip(*listed, strict=True)], several=True)
    except RuntimeError:  # of an operation that does not take several at once, or for want of memory
        yield from (slopes(ends, by, each) for each in listed)
    else:
        yield from zip(*found, strict=True)


def pull(site: Site, delta: Tensor, directions: Sequence[Tensor]) -> Callable[[int], Tensor]:
    """Return a function of i: d<delta, layer with direction i in place of its parameters>/d input."""
    layer, own = site.layer, {name: directions[place] for name, place in site.places.items()}
    if "weight" in own and isinstance(layer, nn.Linear):
        return lambda i: delta @ own["weight"][i]
    if "weight" in own and plain_convolution(layer):
        pulled = _pull_through_convolution(layer, site.inputs, own["weight"], delta)
        return lambda i: pulled[:, i]
    return lambda i: _pull_by_autograd(site, delta, {name: v[i] for name, v in own.items()})


def plain_convolution(layer: nn.Module) -> bool:
    """Whether a layer is a convolution whose transpose torch offers as a function."""
    if not isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        return False
    return layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)


def _pull_through_convolution(layer: Any, inputs: Tensor, weights: Tensor, delta: Tensor) -> Tensor:
    """Pull `delta` through all directions (d, out, in, *kernel), stacked as input channels: (n, d, in, *size)."""
    size, count = inputs.shape, len(weights)
    back = getattr(grad, f"conv{len(layer.kernel_size)}d_input")
    stacked = weights.transpose(0, 1).flatten(1, 2)
    found = back(
        (size[0], count * size[1], *size[2:]), stacked, delta, layer.stride, layer.padding, layer.dilation
    )
    return found.unflatten(1, (count, -1))


def _pull_by_autograd(site: Site, delta: Tensor, own: Mapping[str, Tensor]) -> Tensor:
    inputs = site.inputs.detach().requires_grad_()
    output = sites.called(site, own, inputs)
    if not output.requires_grad:  # a bias alone
        return torch.zeros_like(inputs)
    return torch.autograd.grad(output, inputs, delta)[0]


def _like_nudges(changes: Sequence[Tensor], i: int, like: Sequence[Tensor]) -> list[Tensor]:
    """Return direction i of the changes, shaped like the nudges."""
    return [change[:, i].reshape_as(tensor) for change, tensor in zip(changes, like, strict=True)]


def has_curvature(delta: Sequence[Tensor], nudges: Sequence[Tensor]) -> bool:
    """Whether the linearised loss has a second derivative by the nudges; piecewise linear networks have none."""
    ends = [d for d in delta if d.requires_grad]
    if not ends:
        return False
    # along a random combination, which vanishes with probability 0 if any derivative does not
    return any(bool(s.any()) for s in slopes(ends, nudges, [normal(end) for end in ends]))
