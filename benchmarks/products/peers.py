"""Works by other libraries, each as its documentation shows; all libraries are optional."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.products.works import (
    COLUMNS,
    EIGENVALUES,
    OURS,
    PROBES,
    STEPS,
    TOLERANCE,
    Call,
    Case,
    Way,
    hessian_products,
    largest_of,
    times,
)

PRODUCTS = 100
"""Number of products for an estimate of a trace, to about 1 %."""

VECTORS = 8
"""Vectors that ARPACK keeps for one eigenvalue."""


class Library(NamedTuple):
    """Library: its name here, the name of its distribution, and its ways; loading them may fail."""

    name: str
    distribution: str
    ways: Callable[[], tuple[Way, ...]]


def installed() -> Iterator[tuple[Library, tuple[Way, ...] | None]]:
    """Yield every library with its ways; None if it is not installed."""
    for library in LIBRARIES:
        try:
            yield library, library.ways()
        except ImportError:
            yield library, None


def reads(make: Callable[[Case], Any], read: Callable[[Any, Case], Any]) -> Callable[[Case], Call]:
    """Return a way that makes an object before the call, and reads numbers from it in the call."""

    def prepare(case: Case) -> Call:
        made = make(case)
        return lambda: torch.as_tensor(read(made, case))

    return prepare


def _curvlinops() -> tuple[Way, ...]:
    library: Any = import_module("curvlinops")

    def hessian(case: Case, kind: Any = library.HessianLinearOperator) -> Any:
        return kind(case.net, case.loss, case.parameters, [case.batch], check_deterministic=False)

    def gauss_newton(case: Case) -> Any:
        return hessian(case, library.GGNLinearOperator)

    def projected(case: Case) -> Call:
        matrices, frame = (gauss_newton(case), hessian(case)), case.frame

        def call() -> Tensor:
            g, h = (frame.T @ (matrix @ frame) for matrix in matrices)
            return torch.stack([g, h - g])[..., :COLUMNS]

        return call

    def largest(count: int) -> Callable[[Case], Call]:
        return reads(
            hessian, lambda matrix, case: largest_of(matrix.__matmul__, count, case.vector, TOLERANCE)
        )

    def density(case: Case) -> Call:
        tools: Any = import_module("curvlinops.papyan2020traces.spectrum")
        matrix = hessian(case)
        return lambda: torch.stack([tools.fast_lanczos(matrix, STEPS)[0].max() for _ in range(PROBES)]).max()

    h, g, eigsh = "HessianLinearOperator", "GGNLinearOperator", "HessianLinearOperator, scipy eigsh"
    return (
        Way("hessian", h, lambda case: times(hessian(case), case.vector)),
        Way("gauss-newton", g, lambda case: times(gauss_newton(case), case.vector)),
        Way("columns", h, lambda case: times(hessian(case), case.block, COLUMNS)),
        Way("projected", f"{g}, {h}", projected),
        Way("eigenvalue", eigsh, largest(1)),
        Way("eigenvalues", eigsh, largest(EIGENVALUES)),
        Way("density", "fast_lanczos, not orthogonalised", density),
        Way(
            "trace",
            f"xtrace, {PRODUCTS} products",
            lambda case: lambda: library.xtrace(gauss_newton(case), PRODUCTS),
        ),
    )


def _pyhessian() -> tuple[Way, ...]:
    library: Any = import_module("pyhessian")
    tools: Any = import_module("pyhessian.utils")

    def of(case: Case) -> Any:
        # a copy: it leaves gradients with graphs in the module
        net = copy.deepcopy(case.net)
        return library.hessian(net, case.loss, data=case.batch, cuda=case.device.type == "cuda")

    def product(case: Case) -> Call:
        found, vector = of(case), case.like_parameters(case.vector)
        return lambda: tools.hessian_vector_product(found.gradsH, found.params, vector)

    def largest(count: int) -> Callable[[Case], Call]:
        return reads(of, lambda h, _: sorted(h.eigenvalues(tol=TOLERANCE, top_n=count)[0], reverse=True))

    return (
        Way("hessian", "hessian_vector_product", product),
        Way("eigenvalue", "hessian.eigenvalues", largest(1)),
        Way("eigenvalues", "hessian.eigenvalues", largest(EIGENVALUES)),
        Way(
            "density",
            "hessian.density",
            reads(of, lambda h, _: np.max(h.density(iter=STEPS, n_v=PROBES)[0])),
        ),
        Way(
            "trace",
            f"hessian.trace, at most {PRODUCTS} products",
            reads(of, lambda h, _: float(np.mean(h.trace(maxIter=PRODUCTS)))),
        ),
    )


def _nngeometry() -> tuple[Way, ...]:
    metrics: Any = import_module("nngeometry.metrics")
    objects: Any = import_module("nngeometry.object")
    gram_matrix: Any = import_module("nngeometry.gram").GramMatrix
    collection: Any = import_module("nngeometry.layercollection").LayerCollection

    def fisher(case: Case) -> Any:
        return metrics.FIM(
            case.net, case.batch, objects.PMatImplicit, variant="classif_logits", device=case.device
        )

    def product(case: Case) -> Call:
        matrix = fisher(case)
        vector = objects.PVector(collection.from_model(case.net), vector_repr=case.vector)
        return lambda: matrix.mv(vector).to_torch()

    def gram(case: Case) -> Call:
        size = len(case.x)
        return lambda: gram_matrix(case.of_one_output, case.batch).to_torch().reshape(size, size)

    return (
        Way("gauss-newton", "FIM, PMatImplicit", product),
        Way("trace", "FIM, PMatImplicit", lambda case: fisher(case).trace),
        Way("gram", "GramMatrix", gram),
    )


def _torch() -> tuple[Way, ...]:
    func = torch.func

    def gram(case: Case) -> Call:
        state = {name: p.detach() for name, p in case.of_one_output.named_parameters()}

        def output(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
            return func.functional_call(case.of_one_output, parameters, (x[None],))[0, 0]

        def call() -> Tensor:
            parts = func.vmap(func.grad(output), in_dims=(None, 0))(state, case.x)
            return torch.stack([part.flatten(1) @ part.flatten(1).T for part in parts.values()]).sum(0)

        return call

    def named(case: Case) -> tuple[dict[str, Tensor], dict[str, Tensor], Callable[..., Tensor]]:
        """Return parameters, the vector in their shapes, and outputs as a function of the parameters."""
        state = {name: p.detach() for name, p in case.net.named_parameters()}
        vector = dict(zip(state, case.like_parameters(case.vector), strict=True))
        return state, vector, lambda parameters: func.functional_call(case.net, parameters, (case.x,))

    def hessian(case: Case) -> Call:
        state, vector, outputs = named(case)
        slope = func.grad(lambda parameters: case.loss(outputs(parameters), case.labels))
        _, product = func.linearize(slope, state)
        return lambda: [*product(vector).values()]

    def gauss_newton(case: Case) -> Call:
        state, vector, outputs = named(case)
        logits, tangents = func.linearize(outputs, state)
        back: Any = func.vjp(outputs, state)[1]
        p = logits.softmax(1)

        def call() -> list[Tensor]:
            change = tangents(vector)
            return [*back(p * (change - (p * change).sum(1, keepdim=True)) / len(p))[0].values()]

        return call

    def kept_graph(case: Case) -> Callable[[Tensor], Tensor]:
        return hessian_products(case, case.net, case.parameters, case.x)

    def largest(count: int, vectors: int | None = None) -> Callable[[Case], Call]:
        return reads(kept_graph, lambda h, case: largest_of(h, count, case.vector, TOLERANCE, vectors))

    return (
        Way("hessian", "kept graph", lambda case: partial(kept_graph(case), case.vector)),
        Way("eigenvalue", f"kept graph, scipy eigsh, ncv={VECTORS}", largest(1, VECTORS)),
        Way("eigenvalues", "kept graph, scipy eigsh", largest(EIGENVALUES)),
        Way("hessian", "linearize of grad", hessian),
        Way("gauss-newton", "linearize and vjp", gauss_newton),
        Way("gram", "vmap of grad", gram),
    )


LIBRARIES = (
    Library("losscurv", "losscurv", lambda: OURS),
    Library("curvlinops", "curvlinops-for-pytorch", _curvlinops),
    Library("PyHessian", "PyHessian", _pyhessian),
    Library("nngeometry", "nngeometry", _nngeometry),
    Library("torch", "torch", _torch),
)
