"""Products with derivatives of an objective, by forward or reverse mode, and what is kept of them for further products.

A product with the derivative of a gradient, or of outputs, runs what `recorded` has taken down once for a batch. Where
torch has no forward mode, parts of the model run again on the way back, or forward mode gives something else than
reverse mode for a few samples, as functions with derivatives of their own may, the graph of the gradient is
differentiated once more instead. So it is too where there is no memory to keep anything for the next product.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from simulate import _memory
from simulate.objectives import soundness
from simulate.objectives.batches import Batch, cuttable, rows
from simulate.objectives.derivatives import alike, behind, bytes_held, normal, recorded, slopes
from simulate.objectives.heads import Head
from simulate.objectives.objective import Objective
from simulate.objectives.output_curvature import Bend
from simulate.objectives.parameters import Leaves
from simulate.objectives.restoring import as_found, drawing_once

VECTORS = 4
"""As long as the parameters, that a product takes beside its graph: the gradient, what comes back twice, the sum."""

_FEW = 3
"""Samples that tell what all hold: with one less, what each holds and what is held once."""

_LITTLE, _LITTLE_THERE = 1 << 21, 1 << 26
"""Bytes of the graph of the outputs. What is kept of their derivatives, the second too, is a few times as much.

Up to there calls take longer than what is done in them; on a GPU that is so up to more. On the CPU, where products with
large parameters take time by themselves, these count with every few samples.
"""

Product = Callable[[Tensor], Leaves]
"""Of the part of the matrix that one batch adds, with a vector (dim,): tensors like the parameters."""


class Built(NamedTuple):
    """A product.

    Attributes
    ----------
    product
        With one vector.
    block
        With several, (k, dim), stacked along a first axis of each tensor; None where one after the other is faster.
    held
        How many bytes are kept, the graphs of reverse mode left out.
    first
        The product with the vector that it was built along, if that is new.
    """

    product: Product
    block: Product | None
    held: Callable[[], int] = int
    first: Leaves | None = None


class Derivative(NamedTuple):
    """Two ways to the same product for one batch.

    Attributes
    ----------
    name
        Of what is recorded.
    forward, reverse
        From the parameters and a batch, forward mode along a first vector too.
    by_head
        A third way, by chunks of positions, for a batch whose logits come from a head.
    targets
        Whether targets enter: where they do not, a batch that adds nothing to the loss counts like any other.
    """

    name: str
    forward: Callable[[Leaves, Batch, Leaves], Built]
    reverse: Callable[[Leaves, Batch], Built]
    by_head: Callable[[Head, Leaves, Batch], Callable[[Leaves], Leaves]] | None = None
    targets: bool = True


def of_scalar(objective: Objective, name: str, scalar: Callable[[Leaves, Batch], Tensor]) -> Derivative:
    """Second derivative of a scalar of the parameters."""

    def forward(leaves: Leaves, batch: Batch, along: Leaves) -> Built:
        def gradient(duals: Leaves) -> Sequence[Tensor | None]:
            return torch.autograd.grad(scalar(duals, batch), duals, allow_unused=True)

        _, first, program = recorded(gradient, leaves, along)
        product, block = _of_flat(objective, program), _of_flat(objective, program.block)
        several = block if program.small and _plain(leaves) else None
        return Built(product, several, lambda: bytes_held(tuple, also=program.values), first)

    def reverse(leaves: Leaves, batch: Batch) -> Built:
        # one end for the vector as it is: to part it, and check every part, takes as long as a small product
        gradient = objective.flat(slopes(scalar(leaves, batch), leaves, again=True))
        return Built(partial(slopes, gradient, leaves), partial(slopes, gradient, leaves, several=True))

    return Derivative(name, forward, reverse)


def about_outputs(objective: Objective, bend: Callable[[Tensor, Batch], Bend]) -> Derivative:
    """J' A J, with J the derivative of the outputs and A what bends their changes."""

    def built(outputs: Tensor, leaves: Leaves, bent: Bend, change: Product, changes: Product | None) -> Built:
        def product(vector: Tensor) -> Leaves:
            return slopes(outputs, leaves, bent(*change(vector)))

        if changes is None:
            return Built(product, None)

        def block(vectors: Tensor) -> Leaves:
            return slopes(outputs, leaves, torch.stack([*map(bent, changes(vectors)[0])]), several=True)

        return Built(product, block)

    def forward(leaves: Leaves, batch: Batch, along: Leaves) -> Built:
        found = recorded(lambda duals: [objective.outputs(duals, batch.inputs)], leaves, along)
        outputs: Any = found.values[0]
        program, bent = found.program, bend(outputs, batch)

        def held() -> int:
            return bytes_held(lambda: objective.outputs(leaves, batch.inputs), also=program.values)

        several = _of_flat(objective, program.block) if program.small and _plain(leaves) else None
        first = slopes(outputs, leaves, bent(*found.changes))
        product = _of_flat(objective, program)
        return built(outputs, leaves, bent, product, several)._replace(held=held, first=first)

    def reverse(leaves: Leaves, batch: Batch) -> Built:
        outputs = objective.outputs(leaves, batch.inputs)
        bent = bend(outputs, batch)
        # tangents as derivative of J'u in u; one zero in all places, since logits may be larger than all else
        weights = outputs.new_zeros(()).expand_as(outputs).requires_grad_()
        change = partial(slopes, objective.flat(slopes(outputs, leaves, weights, again=True)), weights)
        return built(outputs, leaves, bent, change, partial(change, several=True))

    return Derivative("outputs", forward, reverse)


def _of_flat(objective: Objective, product: Callable[[Leaves], Leaves]) -> Product:
    return lambda vectors: product(objective.split(vectors))


def _plain(leaves: Leaves) -> bool:
    """Whether a row of several vectors lies in memory as the parameters do."""
    return all(leaf.is_contiguous() for leaf in leaves)


class Kept:
    """The product of every batch: kept from one pass to the next if all fit into half of the free memory.

    To be gone through within `Objective.measured`.
    """

    def __init__(self, objective: Objective, derivative: Derivative) -> None:
        self._objective, self._derivative = objective, derivative
        self._leaves = objective.leaves()
        self._products: list[Built] | None = None
        self._keeps: bool | None = None
        self._forward = self._little = False

    @property
    def complete(self) -> bool:
        """Whether the next pass builds nothing."""
        return self._products is not None

    def along(self, vector: Tensor) -> Iterator[Built]:
        """What every batch has, built along a vector (dim,) where it is built anew."""
        if self._products is not None:
            yield from self._products
            return
        kept, parts = list[Built](), self._objective.split(vector)
        for batch in self._objective.batches(empty=not self._derivative.targets):
            if self._keeps is None:
                self._keeps = self._affordable(batch)
            built = self._built(batch, parts)
            if self._keeps:
                kept.append(built._replace(first=None))
            yield built
        if self._keeps:
            self._products = kept

    def _by_head(self, batch: Batch) -> Product | None:
        head = self._objective.head_of(batch)
        if head is None or self._derivative.by_head is None:
            return None
        return _of_flat(self._objective, self._derivative.by_head(head, self._leaves, batch))

    def _built(self, batch: Batch, vector: Leaves) -> Built:
        product = self._by_head(batch)
        if product is not None:
            return Built(product, None)
        if self._forward:
            # whatever is raised, reverse mode meets it too or does not
            with contextlib.suppress(Exception), drawing_once():
                return self._derivative.forward(self._leaves, batch, vector)
            self._forward = self._objective.recordable[self._derivative.name] = False
        built = self._derivative.reverse(self._leaves, batch)
        return built if self._little and not self._objective.runs_again else built._replace(block=None)

    def _affordable(self, batch: Batch) -> bool:
        """Whether all is kept; by forward mode only what is, since it takes longer to take down than to go back."""
        device = self._objective.device
        if self._objective.head_of(batch) is not None and self._derivative.by_head is not None:
            return self._fits(batch)
        # which way is faster is asked of samples, which a process of a group may lack
        if not self._objective.ranks.several:
            self._little = self._is_little(batch)
            self._forward = self._pays() and self._recordable()
        if self._forward and _memory.is_free(self._needed(*self._cost(batch), whole=True), device):
            return True
        self._forward = False
        return self._little or self._fits(batch)

    def _fits(self, batch: Batch) -> bool:
        """Whether all may be kept; what does not fit for one batch is refused."""
        device = self._objective.device
        cost = self._cost(batch)
        what, advice = f"the derivatives of {cost[0]} samples", "pass a smaller chunk or fewer samples"
        _memory.require_free("data", self._needed(*cost), what, device=device, advice=advice)
        return _memory.is_free(self._needed(*cost, whole=True), device)

    def _pays(self) -> bool:
        """Whether forward mode is the faster one from a few products on, as measured.

        Of gradients where there are convolutions, whose second derivatives torch takes by slower ones on the way back.
        Not on the CPU where calls take longer than what is done in them; on a GPU several at once are then faster so.
        """
        objective = self._objective
        calls = self._little and objective.device.type == "cpu"
        if calls or self._derivative.name == "outputs":
            return not calls
        with contextlib.suppress(Exception), as_found(objective.model, objective.training):
            nodes = behind([objective.outputs(self._leaves, objective.few().inputs)])
            return any("Convolution" in node.name() for node in nodes)
        return False

    def _is_little(self, batch: Batch) -> bool:
        """Whether all is so little that to ask how much it is would take longer than the products."""
        objective, here = self._objective, self._objective.device.type == "cpu"
        cut = self._cuttable(batch) and rows(batch.targets) >= _FEW
        few = batch.part(slice(_FEW)) if cut else batch

        def graph(some: Batch) -> int:  # bytes, with the parameters that it keeps
            return bytes_held(lambda: objective.outputs(self._leaves, some.inputs))

        with contextlib.suppress(Exception), as_found(objective.model, objective.training):
            held, samples, once = graph(few), rows(few.targets), 0
            each = -(-held // samples)
            if cut and not here:  # a device has memory and time to tell the parameters from what samples take
                each = max(held - graph(batch.part(slice(samples - 1))), 0)
                once = max(held - samples * each, 0)
            needed = self._needed(samples, each, once, whole=True)
            most = _LITTLE if here else _LITTLE_THERE
            return needed <= most and _memory.is_free(needed, objective.device)
        return False

    def _cuttable(self, batch: Batch) -> bool:
        return not self._objective.training and cuttable(batch.inputs, batch.targets)

    def _needed(self, samples: int, each: int, once: int, *, whole: bool = False) -> int:
        """Bytes for one batch, or twice those for all."""
        objective = self._objective
        once += VECTORS * objective.dim * torch.finfo(objective.dtype).bits // 8
        return 2 * (objective.own_rows * each + once) if whole else samples * each + once

    def _cost(self, batch: Batch) -> tuple[int, int, int]:
        """Samples of the batch, bytes that are held for each of them, and once for all."""
        size, objective = rows(batch.targets), self._objective
        with as_found(objective.model, objective.training):  # what it draws is drawn again for the product
            if size >= _FEW and self._cuttable(batch):
                with contextlib.suppress(Exception):  # of a model or a loss for one size of batch alone
                    two, three = (self._held(batch.part(slice(n))) for n in (_FEW - 1, _FEW))
                    return size, max(three - two, 0), max(3 * two - 2 * three, 0)
            return size, -(-self._held(batch) // size), 0

    def _held(self, batch: Batch) -> int:
        batch = batch._replace(factor=0.0)
        if self._forward:
            return self._derivative.forward(self._leaves, batch, self._leaves).held()
        return bytes_held(lambda: self._by_head(batch) or self._derivative.reverse(self._leaves, batch))

    def _recordable(self) -> bool:
        """Whether forward mode gives what reverse mode gives, for a few samples; asked once for each derivative."""
        objective, name = self._objective, self._derivative.name
        if name not in objective.recordable:
            own = not objective.runs_again
            objective.recordable[name] = own and (soundness.trusted(objective) or self._agree())
        return objective.recordable[name]

    def _agree(self) -> bool:
        objective = self._objective
        with as_found(objective.model, objective.training):
            if soundness.pads(objective.outputs(self._leaves, objective.few().inputs)):
                return False  # what is computed hangs on a row that the few samples may not have
        vector = normal(torch.empty(objective.dim, dtype=objective.dtype, device=objective.device))
        along = objective.split(vector)
        for whole in (False, True):
            batch = objective.few(whole=whole)
            with contextlib.suppress(
                Exception
            ):  # of what is for one size of batch alone, or has no forward mode
                with as_found(objective.model, objective.training):
                    found = self._derivative.forward(self._leaves, batch, along).product(vector)
                with as_found(objective.model, objective.training):
                    expected = self._derivative.reverse(self._leaves, batch).product(vector)
                found, expected = objective.flat(found), objective.flat(expected)
                return bool(expected.any()) and alike(found, expected)  # zeros are zeros by wrong ways too
        return False
