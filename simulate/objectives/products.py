"""Products with derivatives of an objective, by forward or reverse mode, with intermediate results kept for later ones.

A product with the derivative of a gradient, or of outputs, runs the program that `recorded` has made once for a batch.
Reverse mode differentiates the graph of the gradient once more. It is used instead if torch has no forward mode for an
operation, if parts of the model run again in the backward pass, if both modes differ on a few samples, as they may for
user-defined derivatives, or if there is no memory to keep the programs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from simulate import _memory
from simulate.objectives import soundness
from simulate.objectives.batches import Batch
from simulate.objectives.derivatives import Program, alike, bytes_held, graph_nodes, normal, recorded, slopes
from simulate.objectives.heads import Head
from simulate.objectives.objective import Objective
from simulate.objectives.output_curvature import OutputHessian
from simulate.objectives.parameters import Leaves
from simulate.objectives.restoring import drawing_once

VECTORS = 4
"""Vectors of parameter length that a product needs besides its graph: gradient, two of the backward pass, the sum."""

_TRIAL_SAMPLES = 3
"""Samples in the larger of two trials that tell memory per sample from memory needed once."""

_SMALL_CPU, _SMALL_GPU = 1 << 21, 1 << 26
"""Bytes of the graph of the outputs up to which the overhead of calls dominates, on the CPU and on a GPU.

Their first and second derivatives need a few times as much. On the CPU, where products with large parameters take time
themselves, the parameters are counted once for every few samples.
"""

_DERIVATIVES = 20
"""Bound of the memory of second derivatives, as a multiple of that of the graph of the outputs: where so much is free,
nothing else is tried."""

Product = Callable[[Tensor], Leaves]
"""Product of the part of the matrix that one batch adds with a vector (dim,), as tensors like the parameters."""


class Built(NamedTuple):
    """The product with the part of a matrix that one batch adds.

    Attributes
    ----------
    product
        Product with one vector.
    block
        Product with several vectors (k, dim), along a first axis of each tensor; None if one by one is faster.
    held
        Returns the number of bytes kept, without the graphs of reverse mode.
    first
        Product with the vector along which forward mode ran; None if none was computed.
    """

    product: Product
    block: Product | None
    held: Callable[[], int] = int
    first: Leaves | None = None


class Derivative(NamedTuple):
    """Ways to build the same product for one batch.

    Attributes
    ----------
    name
        Name of the recorded function.
    forward, reverse
        Build the product from a batch; forward mode also takes a first vector.
    by_head
        A third way, by chunks of positions, for a batch whose logits come from a head.
    targets
        Whether targets enter. If not, a batch that adds nothing to the loss counts like any other.
    """

    name: str
    forward: Callable[[Batch, Leaves], Built]
    reverse: Callable[[Batch], Built]
    by_head: Callable[[Head, Batch], Product] | None = None
    targets: bool = True


def of_scalar(objective: Objective, name: str, scalar: Callable[[Leaves, Batch], Tensor]) -> Derivative:
    """Second derivative of a scalar of the parameters."""
    leaves = objective.leaves

    def forward(batch: Batch, along: Leaves) -> Built:
        def gradient(duals: Leaves) -> Sequence[Tensor | None]:
            return torch.autograd.grad(scalar(duals, batch), duals, allow_unused=True)

        _, first, program = recorded(gradient, leaves, along)
        held = partial(bytes_held, tuple, also=program.values)
        return Built(*_on_flat_vectors(objective, program), held, first)

    def reverse(batch: Batch) -> Built:
        # one flat gradient: splitting the vector and checking every part takes as long as a small product
        gradient = objective.flat(slopes(scalar(leaves, batch), leaves, again=True))
        return Built(partial(slopes, gradient, leaves), partial(slopes, gradient, leaves, several=True))

    return Derivative(name, forward, reverse)


def about_outputs(
    objective: Objective, output_hessian: Callable[[Tensor, Batch], OutputHessian]
) -> Derivative:
    """J' A J, with J the derivative of the outputs and A a matrix of each batch that acts on their changes."""
    leaves = objective.leaves

    def built(outputs: Tensor, curvature: OutputHessian, change: Product, changes: Product | None) -> Built:
        def product(vector: Tensor) -> Leaves:
            return slopes(outputs, leaves, curvature(*change(vector)))

        if changes is None:
            return Built(product, None)

        def block(vectors: Tensor) -> Leaves:
            return slopes(outputs, leaves, torch.stack([*map(curvature, changes(vectors)[0])]), several=True)

        return Built(product, block)

    def forward(batch: Batch, along: Leaves) -> Built:
        found = recorded(lambda duals: [objective.outputs(duals, batch.inputs)], leaves, along)
        outputs: Any = found.values[0]
        program, curvature = found.program, output_hessian(outputs, batch)

        def held() -> int:
            return bytes_held(lambda: objective.outputs(leaves, batch.inputs), also=program.values)

        first = slopes(outputs, leaves, curvature(*found.changes))
        changes = _on_flat_vectors(objective, program)
        return built(outputs, curvature, *changes)._replace(held=held, first=first)

    def reverse(batch: Batch) -> Built:
        outputs = objective.outputs(leaves, batch.inputs)
        curvature = output_hessian(outputs, batch)
        # tangents are the derivative of J'u in u; u is one expanded zero, since logits may be larger than all else
        weights = outputs.new_zeros(()).expand_as(outputs).requires_grad_()
        change = partial(slopes, objective.flat(slopes(outputs, leaves, weights, again=True)), weights)
        return built(outputs, curvature, change, partial(change, several=True))

    return Derivative("outputs", forward, reverse)


def _on_flat_vectors(objective: Objective, program: Program) -> tuple[Product, Product | None]:
    """Return products with one vector and with several; None for the latter if one by one is faster."""
    # rows of several vectors are contiguous, and the recorded operations need parameters like them
    together = program.small and all(leaf.is_contiguous() for leaf in objective.leaves)
    several = (lambda vectors: program.block(objective.split(vectors))) if together else None
    return lambda vector: program(objective.split(vector)), several


@dataclass(eq=False)
class Kept:
    """Products of all batches, kept from one pass to the next if all fit into half of the free memory.

    Iterate within `Objective.measured`.
    """

    _objective: Objective
    _derivative: Derivative
    _products: list[Built] | None = None
    _keeps: bool | None = None
    _forward: bool = False
    _small: bool = False
    _convolves: bool = False
    _ample: bool = False

    @property
    def complete(self) -> bool:
        """Whether the next pass builds nothing."""
        return self._products is not None

    def along(self, vector: Tensor) -> Iterator[Built]:
        """Yield the product of every batch, built along a vector (dim,) if it is not kept."""
        if self._products is not None:
            yield from self._products
            return
        kept, parts = list[Built](), self._objective.split(vector)
        for batch in self._objective.batches(empty=not self._derivative.targets):
            if self._keeps is None:
                self._keeps = self._affordable(batch)
            built = self._build(batch, parts)
            if self._keeps:
                # `first` is the product with this vector only
                kept.append(built._replace(first=None))
            yield built
        if self._keeps:
            self._products = kept

    def _by_head(self, batch: Batch) -> Product | None:
        head = self._objective.head_of(batch)
        if head is None or self._derivative.by_head is None:
            return None
        return self._derivative.by_head(head, batch)

    def _build(self, batch: Batch, vector: Leaves) -> Built:
        product = self._by_head(batch)
        if product is not None:
            return Built(product, None)
        if self._forward:
            # a real error is raised again by reverse mode; one of forward mode alone is not
            with contextlib.suppress(Exception), drawing_once():
                return self._derivative.forward(batch, vector)
            self._forward = self._objective.recordable[self._derivative.name] = False
        built = self._derivative.reverse(batch)
        return built if self._small and not self._objective.runs_again else built._replace(block=None)

    def _affordable(self, batch: Batch) -> bool:
        """Choose the mode, and return whether products are kept; forward mode only pays if they are."""
        if self._objective.head_of(batch) is not None and self._derivative.by_head is not None:
            return self._fits(batch)
        # the faster mode is found by trials on samples, and a process of a group may have none
        if not self._objective.ranks.several:
            self._small = self._is_small(batch)
            self._forward = self._forward_is_faster() and self._recordable()
        if self._forward and self._all_fit(batch):
            return True
        self._forward = False
        return self._small or self._fits(batch)

    def _fits(self, batch: Batch) -> bool:
        """Return whether all products fit into memory; refuse data if those of one batch do not."""
        if self._all_fit(batch):
            return True
        device, cost = self._objective.device, self._cost(batch, trials=2)
        what, advice = f"the derivatives of {cost[0]} samples", "pass a smaller chunk or fewer samples"
        _memory.require_free("data", self._needed(*cost), what, device=device, advice=advice)
        return False

    def _all_fit(self, batch: Batch) -> bool:
        # one trial counts what is needed once for every few samples: a second one tells if that is too much
        costs = (self._needed(*self._cost(batch, trials=trials), whole=True) for trials in (1, 2))
        return self._ample or any(_memory.is_free(needed, self._objective.device) for needed in costs)

    def _forward_is_faster(self) -> bool:
        """Return whether forward mode is faster than reverse mode from a few products on.

        Measured: for gradients it is faster if there are convolutions, whose second derivatives are slow in reverse
        mode. It is slower on the CPU if the overhead of calls dominates; on a GPU, blocks of vectors then make it fast.
        """
        calls = self._small and self._objective.device.type == "cpu"
        return not calls and (self._convolves or self._derivative.name == "outputs")

    def _is_small(self, batch: Batch) -> bool:
        """Return whether all graphs are so small that measuring their size would take longer than the products."""
        objective, here = self._objective, self._objective.device.type == "cpu"
        cut = self._cuttable(batch) and batch.samples >= _TRIAL_SAMPLES
        few = batch.part(slice(_TRIAL_SAMPLES)) if cut else batch

        def outputs(some: Batch) -> Tensor:
            found = objective.outputs(objective.leaves, some.inputs)
            self._convolves |= any("Convolution" in node.name() for node in graph_nodes([found]))
            return found

        def graph(some: Batch) -> int:  # bytes, with the parameters that it keeps
            return bytes_held(lambda: outputs(some))

        with contextlib.suppress(Exception), objective.own_mode():
            held, samples, once = graph(few), few.samples, 0
            each = -(-held // samples)
            if (
                cut and not here
            ):  # on a GPU a second trial is cheap, and tells the parameters from what samples take
                each = max(held - graph(batch.part(slice(samples - 1))), 0)
                once = max(held - samples * each, 0)
            needed = self._needed(samples, each, once, whole=True)
            most = _SMALL_CPU if here else _SMALL_GPU
            self._ample = _memory.is_free(_DERIVATIVES * needed, objective.device)
            return needed <= most and _memory.is_free(needed, objective.device)
        return False

    def _cuttable(self, batch: Batch) -> bool:
        return not self._objective.training and batch.cuttable

    def _needed(self, samples: int, each: int, once: int, *, whole: bool = False) -> int:
        """Return the bytes needed for one batch, or twice those for all batches."""
        objective = self._objective
        once += VECTORS * objective.dim * objective.dtype.itemsize
        return 2 * (objective.own_rows * each + once) if whole else samples * each + once

    def _cost(self, batch: Batch, *, trials: int) -> tuple[int, int, int]:
        """Return the samples of the batch, the bytes kept for each of them, and with two trials those kept once."""
        size, objective = batch.samples, self._objective
        with objective.own_mode():  # random draws repeat in the product itself
            if size >= _TRIAL_SAMPLES and self._cuttable(batch):
                with contextlib.suppress(Exception):  # model or loss may take one size of batch only
                    three = self._bytes_kept(batch.part(slice(_TRIAL_SAMPLES)))
                    if trials == 1:
                        return size, -(-three // _TRIAL_SAMPLES), 0
                    two = self._bytes_kept(batch.part(slice(_TRIAL_SAMPLES - 1)))
                    # from two and three samples: what each one takes, and by extrapolation what none takes
                    return size, max(three - two, 0), max(3 * two - 2 * three, 0)
            return size, -(-self._bytes_kept(batch) // size), 0

    def _bytes_kept(self, batch: Batch) -> int:
        batch = batch._replace(factor=0.0)
        if self._forward:
            return self._derivative.forward(batch, self._objective.leaves).held()
        return bytes_held(
            lambda: self._by_head(batch) or self._derivative.reverse(batch), without=self._objective.leaves
        )

    def _recordable(self) -> bool:
        """Return whether forward and reverse mode agree on a few samples; tested once for each derivative."""
        objective, name = self._objective, self._derivative.name
        if name not in objective.recordable:
            own = not objective.runs_again
            known = soundness.trusted(objective) or objective.proven.get(name, False)
            objective.recordable[name] = own and (known or self._modes_agree())
            if objective.recordable[name]:
                objective.proven[name] = True
        return objective.recordable[name]

    def _modes_agree(self) -> bool:
        objective = self._objective
        with objective.own_mode():
            outputs = objective.outputs(objective.leaves, objective.few().inputs)
            if soundness.padding_rows(outputs, objective.leaves):
                return False  # forward mode moves the padding row, which the few samples may not contain
        vector = normal(torch.empty(objective.dim, dtype=objective.dtype, device=objective.device))
        along = objective.split(vector)
        for whole in (False, True):
            batch = objective.few(whole=whole)
            with contextlib.suppress(
                Exception
            ):  # model or loss may take one size of batch only, or have no forward mode
                with objective.own_mode():
                    found = self._derivative.forward(batch, along).product(vector)
                with objective.own_mode():
                    expected = self._derivative.reverse(batch).product(vector)
                found, expected = objective.flat(found), objective.flat(expected)
                return bool(expected.any()) and alike(found, expected)  # agreement of zeros proves nothing
        return False
