"""Public entries that every model is asked, and how far each answer is from the dense reference."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import losscurv
from benchmarks.sweep.listing import Listed, N
from benchmarks.sweep.reference import Reference

_ERRORS = 8
"""Standard errors within which an estimate must lie."""


class FarError(Exception):
    """An answer that is of another kind than the reference says."""


def distance(found: Any, expected: Any) -> float:
    """Largest error relative to the largest number."""
    one, other = (torch.as_tensor(x).detach().double() for x in (found, expected))
    if one.shape != other.shape:
        raise FarError(f"shape {tuple(one.shape)} for {tuple(other.shape)}")
    return float((one - other).abs().max()) / (float(other.abs().max()) or 1.0)


def estimate(value: Any, error: Any, expected: Any) -> float:
    """Zero if an estimate is within its errors."""
    value, error, expected = (np.asarray(each, float) for each in (value, error, expected))
    scale = float(np.abs(expected).max()) or 1.0
    return max(0.0, float((np.abs(value - expected) / scale - _ERRORS * error / scale).max()) - 1e-6)


def number(found: Any, expected: float) -> float:
    """Error of a number of `measure`."""
    return estimate(found.value, 0.0 if found.kind == "exact" else found.error, expected)


def entries(
    listed: Listed, model: Any, inputs: Any, targets: Tensor, right: Reference
) -> Iterator[tuple[str, Callable[[Any], float]]]:
    """Yield every entry with a function from the objective to its error."""
    H, G = right.hessian, right.gauss_newton
    frame = torch.eye(len(G), 4, dtype=torch.float64).roll(3, 0) + 0.1
    yield "value", lambda o: distance(o.value(), right.value)
    yield "gradient", lambda o: distance(o.gradient(), right.gradient)
    yield "hessian", lambda o: distance(losscurv.hessian(o).dense(), H)
    yield "gauss_newton", lambda o: distance(losscurv.gauss_newton(o).dense(), G)
    yield "h_term", lambda o: distance(losscurv.h_term(o).dense().double() + G, H)
    yield (
        "empirical_fisher",
        lambda o: distance(losscurv.empirical_fisher(o).dense(), right.empirical_fisher()),
    )
    if listed.loss is nn.functional.cross_entropy or isinstance(listed.loss, nn.MSELoss):
        family = "gaussian" if isinstance(listed.loss, nn.MSELoss) else "categorical"
        yield "fisher", lambda o: distance(losscurv.fisher(o, likelihood=family).dense(), right.fisher())
    yield "extremes", lambda o: _extremes(o, H)
    yield "trace", lambda o: estimate(*losscurv.trace(losscurv.hessian(o), probes=30), float(H.trace()))
    yield "density", lambda o: _density(o, H)
    yield "solve", lambda o: _solve(o, G)
    yield "hessian_diagonal", lambda o: distance(losscurv.hessian_diagonal(o), H.diagonal())
    yield "gauss_newton_diagonal", lambda o: distance(losscurv.gauss_newton_diagonal(o), G.diagonal())
    yield "estimated_diagonal", lambda o: _estimated(o, H)
    yield "projected", lambda o: _projected(o, frame, H, G)
    if listed.cut is None:
        yield "empirical_kernel", lambda _: _kernel(model, inputs, right)
    yield "blocks of layers", lambda o: _blocks(o, H)
    yield "kfac", lambda o: _kfac(o, right)
    yield "ekfac", lambda o: _ekfac(o, G)
    yield "measure", lambda o: _measure(o, listed, right)
    if isinstance(model, nn.Module) and listed.cut is None:
        yield "measure of a module", lambda _: _of_module(model, listed, inputs, targets, right)
    if isinstance(model, nn.Module) and listed.cut is None:
        yield "watch", lambda _: _watch(model, listed, inputs, targets, right)
    if isinstance(model, nn.Module):
        yield "plan", _plan


def _extremes(o: Any, H: Tensor) -> float:
    found, values = losscurv.extremes(losscurv.hessian(o), largest=2, smallest=1), torch.linalg.eigvalsh(H)
    return estimate(found.values, found.bounds / _ERRORS, values[[-1, -2, 0]])


def _density(o: Any, H: Tensor) -> float:
    """Against the eigenvalues smeared as widely as it says, within 1 % of the largest value and its errors."""
    values, values_of = torch.linalg.eigvalsh(H).numpy(), losscurv.density(losscurv.hessian(o), probes=20)
    z = (np.asarray(values_of.x)[:, None] - values) / values_of.width
    expected = np.exp(-z * z / 2).mean(1) / (values_of.width * math.sqrt(2 * math.pi))
    error = np.asarray(values_of.standard_error) + np.asarray(values_of.truncation) / _ERRORS
    return estimate(values_of.value, error + 0.01 * expected.max() / _ERRORS, expected)


def _solve(o: Any, G: Tensor) -> float:
    damping, right = 0.1 * float(G.diagonal().max()), torch.linspace(-1, 1, len(G), dtype=torch.float64)
    found = losscurv.solve(losscurv.gauss_newton(o), right.to(o.dtype), damping=damping, tolerance=1e-5)
    expected = torch.linalg.solve(G + damping * torch.eye(len(G)), right)
    return max(0.0, distance(found.vectors, expected) - 1e-4)


def _estimated(o: Any, H: Tensor) -> float:
    found = losscurv.estimated_diagonal(losscurv.hessian(o), probes=40)
    return estimate(found.value, found.standard_error, H.diagonal())


def _projected(o: Any, frame: Tensor, H: Tensor, G: Tensor) -> float:
    found = losscurv.projected(o, frame)
    return max(distance(m, frame.mT @ e @ frame) for m, e in ((found.hessian, H), (found.g_term, G)))


def _kernel(model: Any, inputs: Any, right: Reference) -> float:
    more = {} if isinstance(model, nn.Module) else {"parameters": model.leaves}
    expected = right.jacobian @ right.jacobian.mT
    whole = losscurv.empirical_kernel(model, inputs, **more).flatten(2).flatten(0, 1)
    traced = losscurv.empirical_kernel(model, inputs, traced=True, **more)
    over = expected.view(N, len(expected) // N, N, -1).diagonal(dim1=1, dim2=3).sum(2)
    return max(distance(whole, expected), distance(traced, over))


def _blocks(o: Any, H: Tensor) -> float:
    matrix, scale = losscurv.hessian(o), float(H.abs().max())
    each = ((matrix.block(name).dense().double(), H[at, at]) for name, at in o.blocks().items())
    return max(float((found - expected).abs().max()) / scale for found, expected in each)


def _kfac(o: Any, right: Reference) -> float:
    """Factors by hooks where that is possible, and their error as `factor_errors` has it."""
    found, G, expected = losscurv.kfac(o), right.gauss_newton, right.factors()
    told = losscurv.factor_errors(losscurv.gauss_newton(o), found).whole.value
    error = abs(told - float((found.dense().double() - G).norm() / G.norm()))
    return error if expected is None else max(error, distance(found.dense(), expected))


def _ekfac(o: Any, G: Tensor) -> float:
    """Its trace is that of the matrix, block by block."""
    blocks, places = losscurv.ekfac(o).blocks, o.blocks()
    expected = [sum(float(G.diagonal()[places[n]].sum()) for n in block.places) for block in blocks]
    return distance([float(block.diagonal.double().sum()) for block in blocks], expected)


def _measure(o: Any, listed: Listed, right: Reference) -> float:
    found, H, G = losscurv.measure(o, top=2, layers=True), right.hessian, right.gauss_newton
    errors = [number(found.loss, right.value), number(found.gradient_norm, float(right.gradient.norm()))]
    for matrix, dense in ((found.hessian, H), (found.gauss_newton, G)):
        top = zip(matrix.top, torch.linalg.eigvalsh(dense).flip(0).tolist(), strict=False)
        errors += [estimate(each.value, each.bound / _ERRORS, value) for each, value in top]
        errors += [number(matrix.trace, float(dense.trace())), number(matrix.frobenius, float(dense.norm()))]
    errors.append(number(found.h_term_frobenius, float((H - G).norm())))
    errors += [number(b.trace, float(_sub(o, H, b.name).trace())) for b in found.layers]
    if (found.noise is None) != (listed.mixed or "noise" in listed.refuses):
        raise FarError(
            f"noise of samples {'missing' if found.noise is None else 'of samples that see each other'}"
        )
    if found.noise is not None and right.samples is not None:
        vector = torch.linalg.eigh(H).eigenvectors[:, -1]
        forms = torch.einsum("p,ipq,q->i", vector, right.samples, vector)
        total = float((right.samples - right.samples.mean(0)).square().sum() / (N - 1))
        errors += [number(found.noise.along_top, float(forms.var())), number(found.noise.total, total)]
    return max(errors)


def _of_module(model: nn.Module, listed: Listed, inputs: Any, targets: Tensor, right: Reference) -> float:
    """Return the error of `measure` on a copy of the model, with its data loaded and cut anew."""
    found = losscurv.measure(model, (inputs, targets), listed.loss, top=1)
    each = ((found.hessian, right.hessian), (found.gauss_newton, right.gauss_newton))
    errors = [estimate(m.top[0].value, m.top[0].bound, float(torch.linalg.eigvalsh(e)[-1])) for m, e in each]
    return max(*errors, number(found.loss, right.value))


def _sub(o: Any, H: Tensor, layer: str) -> Tensor:
    names = [n for n in o.blocks() if n == layer or n.rpartition(".")[0] == layer]
    at = torch.cat([torch.arange(len(H))[o.blocks()[n]] for n in names])
    return H[at][:, at]


def _watch(model: nn.Module, listed: Listed, inputs: Any, targets: Tensor, right: Reference) -> float:
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.01)
    record = losscurv.watch(optimizer, model.eval(), listed.loss).step(inputs, targets)
    if record is None or record.eigenvalue is None or record.loss is None:
        raise FarError(f"no eigenvalue: {record.outcome if record else 'not measured'}")
    largest = float(torch.linalg.eigvalsh(right.hessian)[-1])
    return max(distance(record.loss, right.value), estimate(record.eigenvalue, record.error, largest))


def _plan(o: Any) -> float:
    """A rate, or none and the reason."""
    with redirect_stderr(io.StringIO()):
        trial = losscurv.plan(copy.copy(o), batch_sizes=10, steps=20, linearised=False).trials[0]
    if trial.start is not None and not 0 < trial.start < math.inf:
        raise FarError(f"rate {trial.start}")
    return 0.0
