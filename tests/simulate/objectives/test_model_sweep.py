"""Many models against differences of nothing but their loss: every number is right, or an error says why not.

The truth is what the model itself gives with parameters written into it, by no code of the engine. Steps and margins
are those of second differences in double precision, whose error is near 1e-7 of what is differenced.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from simulate.modules.diagonals import gauss_newton_diagonal, hessian_diagonal
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.hessian_variance import quadratic_forms, total_variance
from simulate.modules.projected import projected_terms
from simulate.modules.sample_grams import sample_grams, trace_gauss_newton
from simulate.objectives import Objective
from simulate.objectives.products import Kept
from simulate.operators import gauss_newton, h_term, hessian
from tests.simulate.objectives.sweep.listing import N, Swept
from tests.simulate.objectives.sweep.recomputed import RECOMPUTATION
from tests.simulate.objectives.sweep.reported import REPORTED
from tests.simulate.objectives.sweep.shared import SHARED
from tests.simulate.objectives.sweep.stateful import STATEFUL
from tests.simulate.objectives.sweep.tensors import TYPES

FAMILIES = {
    "recomputation": RECOMPUTATION, "reported": REPORTED, "shared": SHARED, "stateful": STATEFUL, "types": TYPES
}  # fmt: skip
SWEEP = {f"{family}: {name}": swept for family, group in FAMILIES.items() for name, swept in group.items()}
STEP = 1e-4

Theta = Sequence[Tensor]


class Case(NamedTuple):
    """A model with its parameters, its loss and its data, and the objective of them."""

    model: Any
    parameters: list[Tensor]
    loss: Any
    inputs: Any
    targets: Any
    objective: Callable[[], Objective]
    training: bool


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(seed)
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(torch.float32)


def case(swept: Swept) -> Case:
    with seeded(1):
        model, inputs = swept.build(), swept.inputs()
        options = {name: o() if callable(o) else o for name, o in swept.options.items()}
        training = options.get("training", False)
        loss = swept.loss(model)
        if isinstance(model, nn.Module):
            model.train(training)
        parameters = chosen(model, options)
        if parameters and parameters[0].dtype == torch.float32:
            inputs = inputs.float()
        targets = torch.randn(shape(model, inputs, parameters), dtype=torch.float64)
    given = copied(inputs), targets.clone()
    return Case(
        model=model,
        parameters=parameters,
        loss=loss,
        inputs=inputs,
        targets=targets,
        objective=lambda: Objective(model, given, loss, **options),
        training=training,
    )


def copied(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: value.clone() for name, value in part.items()}
    return tuple(value.clone() for value in part) if isinstance(part, tuple) else part.clone()


def chosen(model: Any, options: Mapping[str, Any]) -> list[Tensor]:
    """What is differentiated by, found by the words of the options alone."""
    names = options.get("parameters")
    if not isinstance(model, nn.Module):
        return list(names)
    if names is None:
        return [p for p in model.parameters() if p.requires_grad]
    parts = [names] if isinstance(names, str) else names
    found: list[Tensor] = []
    for name, p in model.named_parameters(remove_duplicate=False):
        if any(name == part or name.startswith(f"{part}.") for part in parts) and not any(
            p is q for q in found
        ):
            found.append(p)
    first = [id(p) for p in model.parameters()]
    return sorted(found, key=lambda p: first.index(id(p)))


def shape(model: Any, inputs: Any, parameters: list[Tensor]) -> tuple[int, ...]:
    """Of the outputs, by a copy that is thrown away; of what does not run, any."""
    try:
        return tuple(called(copy.deepcopy(model), parameters, copied(inputs)).shape)
    except Exception:
        return (N, 2)


def called(model: Any, parameters: list[Tensor], inputs: Any) -> Tensor:
    if not isinstance(model, nn.Module):
        return model(parameters, inputs)
    if isinstance(inputs, dict):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple) else model(inputs)


def at(found: Case, theta: Theta | None, ask: Callable[[], Any]) -> Any:
    """What is asked of the model with these parameters written into it; left as found."""
    module = isinstance(found.model, nn.Module)
    state = {name: value.clone() for name, value in found.model.state_dict().items()} if module else {}
    before = [p.detach().clone() for p in found.parameters]
    with torch.random.fork_rng(), torch.no_grad():
        for p, value in zip(found.parameters, theta or before, strict=True):
            p.copy_(value)
        answer = ask()
        if module:  # by copies: load_state_dict would take longer than all else
            for name, value in found.model.state_dict().items():
                value.copy_(state[name])
        for p, value in zip(found.parameters, before, strict=True):
            p.copy_(value)
    return answer


def loss_at(found: Case, theta: Theta | None = None, rows: slice = slice(None)) -> float:
    return at(found, theta, lambda: float(found.loss(outputs_of(found, rows), found.targets[rows])))


def outputs_of(found: Case, rows: slice = slice(None)) -> Tensor:
    return called(found.model, found.parameters, part(found.inputs, rows))


def part(inputs: Any, rows: slice) -> Any:
    if isinstance(inputs, dict):
        return {name: value[rows].clone() for name, value in inputs.items()}
    return tuple(v[rows].clone() for v in inputs) if isinstance(inputs, tuple) else inputs[rows].clone()


class Truth:
    """Differences of the loss, of the outputs, and of the loss of outputs."""

    def __init__(self, found: Case, step: float) -> None:
        self.found, self.step = found, step
        self.start = [p.detach().clone() for p in found.parameters]
        self.outputs = at(found, None, lambda: outputs_of(found).clone())

    def split(self, vector: Tensor) -> list[Tensor]:
        parts = vector.split([p.numel() for p in self.start])
        return [v.view(p.shape) for v, p in zip(parts, self.start, strict=True)]

    def moved(self, vector: Tensor) -> list[Tensor]:
        return [p + self.step * v for p, v in zip(self.start, self.split(vector), strict=True)]

    def slope(self, vector: Tensor, rows: slice = slice(None)) -> float:
        up, down = (loss_at(self.found, self.moved(sign * vector), rows) for sign in (1, -1))
        return (up - down) / (2 * self.step)

    def bend(self, vector: Tensor, rows: slice = slice(None)) -> float:
        """v'Hv."""
        up, here, down = (loss_at(self.found, self.moved(s * vector), rows) for s in (1, 0, -1))
        return (up - 2 * here + down) / self.step**2

    def cross(self, left: Tensor, right: Tensor) -> float:
        """w'Hv."""
        return (self.bend(left + right) - self.bend(left - right)) / 4

    def tangent(self, vector: Tensor) -> Tensor:
        """Jv."""
        up, down = (
            at(self.found, self.moved(s * vector), lambda: outputs_of(self.found).clone()) for s in (1, -1)
        )
        return (up - down) / (2 * self.step)

    def outer(self, change: Tensor) -> float:
        """Second difference of the loss along a change of the outputs."""
        ends = [self.outputs + s * self.step * change for s in (1, 0, -1)]
        with torch.no_grad():
            up, here, down = (float(self.found.loss(end, self.found.targets)) for end in ends)
        return (up - 2 * here + down) / self.step**2


def directions(dim: int, padding: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(7)
    found = torch.randn(2, dim, generator=generator, dtype=torch.float64)
    found[:, :padding] = 0
    return list(found)


def close(found: float, expected: float, scale: float, name: str, margin: float) -> None:
    assert abs(found - expected) <= margin * max(abs(expected), scale), (name, found, expected)


def check_whole(
    found: Case, truth: Truth, objective: Objective, dense: Tensor, vectors: list[Tensor], margin: float
) -> None:
    """Value, gradient, the Hessian, and products with G and the rest."""
    value, gradient = objective.value(), objective.gradient().double()
    matrix = gauss_newton(objective)
    close(value, loss_at(found), 1e-3, "value", margin)
    for v in vectors:
        close(float(gradient @ v), truth.slope(v), float(gradient.norm()), "gradient", margin)
        close(float(v @ dense @ v), truth.bend(v), float(dense.norm()), "v'Hv", margin)
    close(float(vectors[0] @ dense @ vectors[1]), truth.cross(*vectors), float(dense.norm()), "w'Hv", margin)
    left = vectors[0]
    product = (matrix @ left.to(objective.dtype)).double()
    close(float(left @ product), truth.outer(truth.tangent(left)), float(product.norm()), "v'Gv", margin)
    rest = (h_term(objective) @ left.to(objective.dtype)).double()
    close(float(left @ (product + rest)), truth.bend(left), float(dense.norm()), "v'(G + Ht)v", margin)


def check_diagonals(truth: Truth, objective: Objective, dense: Tensor, padding: int, margin: float) -> None:
    """Those of both matrices, the trace of G, and the squares of the Jacobian, which are the trace of the kernel."""
    units = torch.eye(objective.dim, dtype=torch.float64)[padding:]
    tangents = [truth.tangent(unit) for unit in units]
    each = torch.tensor([truth.outer(tangent) for tangent in tangents], dtype=torch.float64)
    expected = float(each.sum())
    for found, known in (
        (hessian_diagonal(objective), dense.diagonal()),
        (gauss_newton_diagonal(objective)[padding:], each),
    ):
        close(float((found.double() - known).norm()), 0.0, float(dense.norm()), "diagonal", margin)
    if isinstance(truth.found.model, nn.Module) and not truth.found.training:
        kernel = empirical_kernel(
            truth.found.model, truth.found.inputs, parameters=list(objective.names), traced=True
        )
        squares = sum(float(tangent.square().sum()) for tangent in tangents)
        close(float(kernel.trace()), squares, 1e-3, "tr K", margin)
    close(trace_gauss_newton(objective), expected, 1e-3, "tr G", margin)
    grams = sample_grams(objective)
    close(objective.share * float(grams.traces.sum()), expected, 1e-3, "sum of tr G_i", margin)


def check_samples(
    truth: Truth, objective: Objective, dense: Tensor, vectors: list[Tensor], margin: float
) -> None:
    frame = torch.stack(vectors, 1).to(objective.dtype)
    forms = quadratic_forms(objective, frame)
    for i in (0, N - 1):
        for k, v in enumerate(vectors):
            rows = slice(i, i + 1)
            close(forms[i, k], truth.bend(v, rows), float(np.abs(forms).max()), "v'H_i v", margin)
    terms, scale = projected_terms(objective, frame), float((dense @ frame.double()).norm())
    for k, v in enumerate(vectors):
        close(float(terms.hessian[k, k]), truth.bend(v), scale, "R'HR", margin)
        close(float(terms.g_term[k, k]), truth.outer(truth.tangent(v)), scale, "R'GR", margin)
    close(float(terms.hessian[0, 1]), truth.cross(*vectors), scale, "R'HR, off", margin)
    total_variance(objective, np.random.default_rng(0), probes=2)


def asked(swept: Swept) -> None:
    """All that the engine gives for a model."""
    found = case(swept)
    objective = found.objective()
    objective.value()
    if swept.refused:
        objective.gradient()
        hessian(objective).dense()
        return
    single = objective.dtype == torch.float32
    truth, margin = Truth(found, 3e-3 if single else STEP), 2e-2 if single else 2e-5
    vectors = directions(objective.dim, swept.padding)
    dense = hessian(objective).dense().double()
    check_whole(found, truth, objective, dense, vectors, margin)
    check_diagonals(truth, objective, dense, swept.padding, margin)
    if swept.apart:
        check_samples(truth, objective, dense, vectors, margin)


@pytest.mark.parametrize("name", SWEEP)
@pytest.mark.filterwarnings("ignore")
def test_every_number_of_a_model_is_right_or_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By forward mode wherever torch has it, which is compared with reverse mode on the way."""
    monkeypatch.setattr(Kept, "_pays", lambda _: True)
    swept = SWEEP[name]
    with seeded(2):
        torch.set_default_dtype(torch.float32)
        if not swept.refused:
            asked(swept)
            return
        with pytest.raises((ValueError, RuntimeError), match=swept.refused):
            asked(swept)
