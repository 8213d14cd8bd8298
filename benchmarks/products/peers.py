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
    diagonal,
    gauss_newton_products,
    hessian_products,
    kfac_product,
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
            "trace",
            f"hessian.trace, at most {PRODUCTS} products",
            reads(of, lambda h, _: float(np.mean(h.trace(maxIter=PRODUCTS)))),
        ),
    )


def _torch() -> tuple[Way, ...]:
    func = torch.func

    def gram(case: Case) -> Call:
        state = {name: p.detach() for name, p in case.net.named_parameters()}

        def output(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
            return func.functional_call(case.net, parameters, (x[None],))[0, 0]

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

    def rows(case: Case, product: Callable[[Tensor], Tensor]) -> Tensor:
        return func.vmap(product)(torch.eye(len(case.vector), device=case.device))

    def powers(case: Case) -> Call:
        product = hessian_products(case)

        def call() -> Tensor:
            vector = case.vector
            for _ in range(PROBES * STEPS):
                vector = product(vector / vector.norm())
            return vector.norm()

        return call

    def largest(count: int, vectors: int | None = None) -> Callable[[Case], Call]:
        return reads(hessian_products, lambda h, case: largest_of(h, count, case.vector, TOLERANCE, vectors))

    return (
        Way("hessian", "kept graph", lambda case: partial(hessian_products(case), case.vector)),
        Way("gauss-newton", "kept graph", lambda case: partial(gauss_newton_products(case), case.vector)),
        Way("first", "double backward", lambda case: lambda: hessian_products(case)(case.vector)),
        Way("dense", "kept graph, vmap", lambda case: partial(rows, case, hessian_products(case))),
        Way("dense anew", "double backward, vmap", lambda case: lambda: rows(case, hessian_products(case))),
        Way("diagonal", "by layers", lambda case: partial(diagonal, case)),
        Way("kfac", "by layers", lambda case: partial(kfac_product, case)),
        Way("sampled", "by layers", lambda case: partial(kfac_product, case, sampled=True)),
        Way("density", f"kept graph, {PROBES * STEPS} products alone", powers),
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
    Library("torch", "torch", _torch),
)
