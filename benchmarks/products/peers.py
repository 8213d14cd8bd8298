"""Works by other libraries, each as its documentation shows; all libraries are optional."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
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
    largest_of,
    times,
)

PRODUCTS = 100
"""Number of products for an estimate of a trace, to about 1 %."""

LEAST_STEPS, MANY_STEPS = 20, 80
"""Steps of a Lanczos iteration without stopping rule, for one eigenvalue and for several."""


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
        def prepare(case: Case) -> Call:
            matrix, rng = hessian(case).to_scipy(), np.random.default_rng(1)
            start = rng.standard_normal(len(case.vector)).astype(np.float32)
            return lambda: largest_of(matrix, count, start, TOLERANCE)

        return prepare

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

    def reads(read: Callable[[Any], Any]) -> Callable[[Case], Call]:
        def prepare(case: Case) -> Call:
            found = of(case)
            return lambda: torch.tensor(read(found))

        return prepare

    def product(case: Case) -> Call:
        found, vector = of(case), case.like_parameters(case.vector)
        return lambda: tools.hessian_vector_product(found.gradsH, found.params, vector)

    def largest(count: int) -> Callable[[Case], Call]:
        return reads(lambda h: sorted(h.eigenvalues(tol=TOLERANCE, top_n=count)[0], reverse=True))

    return (
        Way("hessian", "hessian_vector_product", product),
        Way("eigenvalue", "hessian.eigenvalues", largest(1)),
        Way("eigenvalues", "hessian.eigenvalues", largest(EIGENVALUES)),
        Way(
            "density",
            "hessian.density",
            reads(lambda h: np.max(h.density(iter=STEPS, n_v=PROBES)[0])),
        ),
        Way(
            "trace",
            f"hessian.trace, at most {PRODUCTS} products",
            reads(lambda h: float(np.mean(h.trace(maxIter=PRODUCTS)))),
        ),
    )


def _eigenthings() -> tuple[Way, ...]:
    library: Any = import_module("hessian_eigenthings")

    def hessian(case: Case) -> Any:
        return library.HessianOperator(case.net, [case.batch], library.supervised_loss(case.loss))

    def gauss_newton(case: Case) -> Any:
        of_output = library.supervised_loss_of_output(case.loss)
        return library.GGNOperator(case.net, [case.batch], library.supervised_forward, of_output)

    def reads(make: Callable[[Case], Any], read: Callable[[Any, Case], Any]) -> Callable[[Case], Call]:
        def prepare(case: Case) -> Call:
            matrix = make(case)
            return lambda: torch.as_tensor(read(matrix, case))

        return prepare

    def product(matrix: Any, case: Case) -> Any:
        return matrix.matvec(case.vector)

    def largest(count: int, steps: int) -> Callable[[Case], Call]:
        how = {"k": count, "max_iter": steps, "tol": TOLERANCE, "which": "LA"}
        return reads(hessian, lambda h, _: library.lanczos(h, **how).eigenvalues.sort(descending=True).values)

    def density(matrix: Any, _: Case) -> Any:
        return library.spectral_density(matrix, num_runs=PROBES, lanczos_steps=STEPS).raw_eigenvalues.max()

    def trace(matrix: Any, _: Case) -> Any:
        return library.trace(matrix, num_matvecs=PRODUCTS).estimate

    return (
        Way("hessian", "HessianOperator", reads(hessian, product)),
        Way("gauss-newton", "GGNOperator", reads(gauss_newton, product)),
        Way("eigenvalue", f"lanczos, {LEAST_STEPS} steps", largest(1, LEAST_STEPS)),
        Way("eigenvalues", f"lanczos, {MANY_STEPS} steps", largest(EIGENVALUES, MANY_STEPS)),
        Way("density", "spectral_density", reads(hessian, density)),
        Way("trace", f"Hutch++, {PRODUCTS} products", reads(gauss_newton, trace)),
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

    return (
        Way("hessian", "linearize of grad", hessian),
        Way("gauss-newton", "linearize and vjp", gauss_newton),
        Way("gram", "vmap of grad", gram),
    )


LIBRARIES = (
    Library("losscurv", "losscurv", lambda: OURS),
    Library("curvlinops", "curvlinops-for-pytorch", _curvlinops),
    Library("PyHessian", "PyHessian", _pyhessian),
    Library("hessian-eigenthings", "hessian-eigenthings", _eigenthings),
    Library("nngeometry", "nngeometry", _nngeometry),
    Library("torch.func", "torch", _torch),
)
