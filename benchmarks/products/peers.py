"""The works done by other libraries, each as its documentation shows; none of them is needed."""

from __future__ import annotations

import copy
import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.products.works import COLUMNS, EIGENVALUES, OURS, PROBES, STEPS, TOLERANCE, Call, Case, Way
from simulate import _memory

__all__ = ["LIBRARIES", "Library", "installed"]

PRODUCTS = 100
"""Of an estimate of a trace, which is then good to about one per cent."""

LEAST_STEPS, MANY_STEPS = 20, 80
"""Of a Lanczos iteration that does not stop by itself, for one eigenvalue and for several."""


class Library(NamedTuple):
    """A library: its name here, that of its distribution, and what it does; loading it may fail."""

    name: str
    distribution: str
    ways: Callable[[], tuple[Way, ...]]

    @property
    def version(self) -> str:
        """Of what is installed; empty where the source alone is there."""
        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return ""


def installed() -> Iterator[tuple[Library, tuple[Way, ...] | None]]:
    """Every library with its ways, None for one that is not there."""
    for library in LIBRARIES:
        try:
            yield library, library.ways()
        except ImportError:
            yield library, None


def _curvlinops() -> tuple[Way, ...]:
    library: Any = import_module("curvlinops")
    hessian, gauss_newton = library.HessianLinearOperator, library.GGNLinearOperator

    def operator(kind: Any, case: Case) -> Any:
        return kind(case.net, case.loss, case.parameters, [case.batch], check_deterministic=False)

    def product(kind: Any) -> Callable[[Case], Call]:
        def prepare(case: Case) -> Call:
            matrix = operator(kind, case)
            return lambda: matrix @ case.vector

        return prepare

    def columns(case: Case) -> Call:
        matrix = operator(hessian, case)
        return lambda: (matrix @ case.block)[:, :COLUMNS]

    def projected(case: Case) -> Call:
        matrices, frame = (operator(gauss_newton, case), operator(hessian, case)), case.frame

        def call() -> Tensor:
            g, h = (frame.T @ (matrix @ frame) for matrix in matrices)
            return torch.stack([g, h - g])[..., :COLUMNS]

        return call

    def largest(count: int) -> Callable[[Case], Call]:
        from scipy.sparse import linalg

        eigsh: Any = linalg.eigsh

        def prepare(case: Case) -> Call:
            matrix, rng = operator(hessian, case).to_scipy(), np.random.default_rng(1)

            def call() -> Tensor:
                start = rng.standard_normal(len(case.vector)).astype(np.float32)
                values = eigsh(matrix, count, which="LA", tol=TOLERANCE, v0=start, return_eigenvectors=False)
                return torch.as_tensor(np.sort(values)[::-1].copy())

            return call

        return prepare

    def density(case: Case) -> Call:
        tools: Any = import_module("curvlinops.papyan2020traces.spectrum")
        matrix = operator(hessian, case)
        return lambda: torch.stack([tools.fast_lanczos(matrix, STEPS)[0].max() for _ in range(PROBES)]).max()

    def dense(case: Case) -> Call:
        matrix = operator(hessian, case)
        return lambda: matrix @ torch.eye(len(case.vector), device=case.device)

    def estimate(trace: Any) -> Callable[[Case], Call]:
        return lambda case: lambda: trace(operator(gauss_newton, case), PRODUCTS)

    return (
        Way("hessian", "HessianLinearOperator", True, product(hessian)),
        Way("gauss-newton", "GGNLinearOperator", True, product(gauss_newton)),
        Way("columns", "HessianLinearOperator", True, columns),
        Way("projected", "GGNLinearOperator, HessianLinearOperator", True, projected),
        Way("eigenvalue", "HessianLinearOperator, scipy eigsh", False, largest(1)),
        Way("eigenvalues", "HessianLinearOperator, scipy eigsh", False, largest(EIGENVALUES)),
        Way("density", "fast_lanczos, not orthogonalised", False, density),
        Way("dense", "HessianLinearOperator", True, dense),
        Way("trace", f"hutchinson_trace, {PRODUCTS} products", False, estimate(library.hutchinson_trace)),
        Way("trace", f"xtrace, {PRODUCTS} products", False, estimate(library.xtrace)),
    )


def _pyhessian() -> tuple[Way, ...]:
    library: Any = import_module("pyhessian")
    tools: Any = import_module("pyhessian.utils")

    def of(case: Case) -> Any:
        # a copy: it leaves gradients with graphs in the module
        net = copy.deepcopy(case.net)
        return library.hessian(net, case.loss, data=case.batch, cuda=case.device.type == "cuda")

    def product(case: Case) -> Call:
        found = of(case)
        parts = case.vector.split([p.numel() for p in case.parameters])
        vector = [part.view_as(p) for part, p in zip(parts, case.parameters, strict=True)]

        return lambda: tools.hessian_vector_product(found.gradsH, found.params, vector)

    def largest(count: int) -> Callable[[Case], Call]:
        def prepare(case: Case) -> Call:
            found = of(case)
            return lambda: torch.tensor(
                sorted(found.eigenvalues(tol=TOLERANCE, top_n=count)[0], reverse=True)
            )

        return prepare

    def density(case: Case) -> Call:
        found = of(case)
        return lambda: torch.tensor(np.max(found.density(iter=STEPS, n_v=PROBES)[0]))

    def trace(case: Case) -> Call:
        found = of(case)
        return lambda: torch.tensor(float(np.mean(found.trace(maxIter=PRODUCTS))))

    return (
        Way("hessian", "hessian_vector_product", True, product),
        Way("eigenvalue", "hessian.eigenvalues", False, largest(1)),
        Way("eigenvalues", "hessian.eigenvalues", False, largest(EIGENVALUES)),
        Way("density", "hessian.density", False, density),
        Way("trace", f"hessian.trace, at most {PRODUCTS} products", False, trace),
    )


def _eigenthings() -> tuple[Way, ...]:
    library: Any = import_module("hessian_eigenthings")

    def hessian(case: Case) -> Any:
        return library.HessianOperator(case.net, [case.batch], library.supervised_loss(case.loss))

    def gauss_newton(case: Case) -> Any:
        of_output = library.supervised_loss_of_output(case.loss)
        return library.GGNOperator(case.net, [case.batch], library.supervised_forward, of_output)

    def product(make: Callable[[Case], Any]) -> Callable[[Case], Call]:
        def prepare(case: Case) -> Call:
            matrix = make(case)
            return lambda: matrix.matvec(case.vector)

        return prepare

    def largest(count: int, steps: int) -> Callable[[Case], Call]:
        def prepare(case: Case) -> Call:
            matrix, how = hessian(case), {"max_iter": steps, "tol": TOLERANCE, "which": "LA"}
            return lambda: library.lanczos(matrix, k=count, **how).eigenvalues.sort(descending=True).values

        return prepare

    def density(case: Case) -> Call:
        matrix, how = hessian(case), {"num_runs": PROBES, "lanczos_steps": STEPS}
        return lambda: library.spectral_density(matrix, **how).raw_eigenvalues.max()

    def trace(case: Case) -> Call:
        matrix = gauss_newton(case)
        return lambda: torch.as_tensor(library.trace(matrix, num_matvecs=PRODUCTS).estimate)

    return (
        Way("hessian", "HessianOperator", True, product(hessian)),
        Way("gauss-newton", "GGNOperator", True, product(gauss_newton)),
        Way("eigenvalue", f"lanczos, {LEAST_STEPS} steps", False, largest(1, LEAST_STEPS)),
        Way("eigenvalues", f"lanczos, {MANY_STEPS} steps", False, largest(EIGENVALUES, MANY_STEPS)),
        Way("density", "spectral_density", False, density),
        Way("trace", f"Hutch++, {PRODUCTS} products", False, trace),
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

    def trace(case: Case) -> Call:
        matrix = fisher(case)
        return matrix.trace

    def gram(case: Case) -> Call:
        size = len(case.x)
        return lambda: gram_matrix(case.of_one_output, case.batch).to_torch().reshape(size, size)

    return (
        Way("gauss-newton", "FIM, PMatImplicit", True, product),
        Way("trace", "FIM, PMatImplicit", True, trace),
        Way("gram", "GramMatrix", True, gram),
    )


def _torch() -> tuple[Way, ...]:
    func = torch.func

    def gram(case: Case) -> Call:
        what = f"the gradients of {len(case.x)} samples"
        _memory.require_free("samples", 12 * len(case.x) * len(case.vector), what, device=case.device)
        state = {name: p.detach() for name, p in case.of_one_output.named_parameters()}

        def output(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
            return func.functional_call(case.of_one_output, parameters, (x[None],))[0, 0]

        def call() -> Tensor:
            parts = func.vmap(func.grad(output), in_dims=(None, 0))(state, case.x)
            return torch.stack([part.flatten(1) @ part.flatten(1).T for part in parts.values()]).sum(0)

        return call

    def parts(case: Case, vector: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        state = {name: p.detach() for name, p in case.net.named_parameters()}
        split = vector.split([p.numel() for p in state.values()])
        return state, {name: v.view_as(p) for v, (name, p) in zip(split, state.items(), strict=True)}

    def outputs(case: Case) -> Callable[[dict[str, Tensor]], Tensor]:
        return lambda parameters: func.functional_call(case.net, parameters, (case.x,))

    def hessian(case: Case) -> Call:
        state, vector = parts(case, case.vector)
        slope = func.grad(lambda parameters: case.loss(outputs(case)(parameters), case.labels))
        _, product = func.linearize(slope, state)
        return lambda: [*product(vector).values()]

    def gauss_newton(case: Case) -> Call:
        state, vector = parts(case, case.vector)
        logits, tangents = func.linearize(outputs(case), state)
        back: Any = func.vjp(outputs(case), state)[1]
        p = logits.softmax(1)

        def call() -> Sequence[Tensor]:
            change = tangents(vector)
            bent = p * (change - (p * change).sum(1, keepdim=True)) / len(p)
            return [*back(bent)[0].values()]

        return call

    def dense(case: Case) -> Call:
        state, _ = parts(case, case.vector)
        slope = func.jacfwd(func.grad(lambda parameters: case.loss(outputs(case)(parameters), case.labels)))

        def call() -> Tensor:
            rows = slope(state)
            sizes = {name: p.numel() for name, p in state.items()}
            blocks = [[rows[a][b].reshape(sizes[a], sizes[b]) for b in state] for a in state]
            return torch.cat([torch.cat(row, dim=1) for row in blocks])

        return call

    return (
        Way("hessian", "linearize of grad", True, hessian),
        Way("dense", "jacfwd of grad", True, dense),
        Way("gauss-newton", "linearize and vjp", True, gauss_newton),
        Way("gram", "vmap of grad", True, gram),
    )


LIBRARIES = (
    Library("losscurv", "losscurv", lambda: OURS),
    Library("curvlinops", "curvlinops-for-pytorch", _curvlinops),
    Library("PyHessian", "PyHessian", _pyhessian),
    Library("hessian-eigenthings", "hessian-eigenthings", _eigenthings),
    Library("nngeometry", "nngeometry", _nngeometry),
    Library("torch.func", "torch", _torch),
)
