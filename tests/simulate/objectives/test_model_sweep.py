"""Many models against differences of nothing but their loss: every number is right, or an error says why not.

The truth is what the model itself gives with parameters written into it, by no code of the engine. Steps and margins
are those of second differences in double precision, whose error is near 1e-7 of what is differenced.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from simulate.modules.diagonals import gauss_newton_diagonal, hessian_diagonal
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.hessian_variance import quadratic_forms, total_variance
from simulate.modules.projected import projected
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.objectives import Objective
from simulate.objectives.products import Kept
from simulate.operators import gauss_newton, h_term, hessian
from tests.simulate.objectives.sweep.differences import Differences
from tests.simulate.objectives.sweep.listing import N, Swept
from tests.simulate.objectives.sweep.models import RECOMPUTED, REPORTED, SHARED, TYPES
from tests.simulate.objectives.sweep.stateful import STATEFUL

SWEEP = RECOMPUTED | REPORTED | SHARED | STATEFUL | TYPES


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(seed)
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(torch.float32)


def made(swept: Swept) -> tuple[Differences, Objective]:
    with seeded(1):
        model, inputs, options = swept.build(), swept.inputs(), dict[str, Any](training=swept.training)
        if isinstance(model, nn.Module):
            model.train(swept.training)
            options["parameters"] = name = swept.parameters
            named = model.named_parameters(remove_duplicate=False)
            parameters = [p for n, p in named if n.startswith(name)] if name else [*model.parameters()]
            parameters = [p for p in parameters if p.requires_grad]
        else:
            parameters = options["parameters"] = swept.parameters()
        single = bool(parameters) and parameters[0].dtype == torch.float32
        inputs, step = inputs.float() if single else inputs, 3e-3 if single else 1e-4
        truth = Differences(model, inputs, swept.loss(model), parameters, step=step)
        try:  # by a copy that is thrown away; of what does not run, any
            shape = truth.called(copy.deepcopy(model)).shape
        except Exception:
            shape = (N, 2)
        truth.targets = torch.randn(shape, dtype=torch.float64)
    given = tree_map(Tensor.clone, inputs), truth.targets.clone()
    return truth, Objective(model, given, truth.loss, **options)


def check(truth: Differences, objective: Objective, swept: Swept) -> None:
    """Compare all measures of a model with finite differences."""
    margin = 2e-2 if objective.dtype == torch.float32 else 2e-5

    def close(found: Any, expected: Any, scale: Any, name: str) -> None:
        assert abs(found - expected) <= margin * max(abs(expected), float(scale)), (name, found, expected)

    vectors = torch.randn(2, objective.dim, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    vectors[:, : swept.padding] = 0
    dense, gradient = hessian(objective).dense().double(), objective.gradient().double()
    close(objective.value(), truth.loss_at(0 * vectors[0]), 1e-3, "value")
    for v in vectors:
        close(float(gradient @ v), truth.slope(v), gradient.norm(), "gradient")
        close(float(v @ dense @ v), truth.bend(v), dense.norm(), "v'Hv")
    close(float(vectors[0] @ dense @ vectors[1]), truth.cross(*vectors), dense.norm(), "w'Hv")
    left, own = vectors[0], vectors[0].to(objective.dtype)
    product, rest = ((matrix(objective) @ own).double() for matrix in (gauss_newton, h_term))
    close(float(left @ product), truth.outer(truth.tangent(left)), product.norm(), "v'Gv")
    close(float(left @ (product + rest)), truth.bend(left), dense.norm(), "v'(G + Ht)v")

    tangents = [truth.tangent(unit) for unit in torch.eye(objective.dim).double()[swept.padding :]]
    each = torch.tensor([*map(truth.outer, tangents)], dtype=torch.float64)
    diagonals = hessian_diagonal(objective), gauss_newton_diagonal(objective)[swept.padding :]
    for found, known in zip(diagonals, (dense.diagonal(), each), strict=True):
        close(float((found.double() - known).norm()), 0.0, dense.norm(), "diagonal")
    if objective.model is not None and not swept.training:
        names = list(objective.names)
        kernel = empirical_kernel(truth.model, truth.inputs, parameters=names, traced=True)
        squares = sum(float(tangent.square().sum()) for tangent in tangents)
        close(float(kernel.trace()), squares, 1e-3, "tr K")
    trace = float(each.sum())
    close(trace_gauss_newton(objective), trace, 1e-3, "tr G")
    if swept.training or not swept.apart:
        return

    frame = vectors.mT.to(objective.dtype)
    forms, terms = quadratic_forms(objective, frame), projected(objective, frame)
    scale = (dense @ frame.double()).norm()
    for k, v in enumerate(vectors):
        for i in (0, N - 1):
            close(forms[i, k], truth.bend(v, slice(i, i + 1)), np.abs(forms).max(), "v'H_i v")
        close(float(terms.hessian[k, k]), truth.bend(v), scale, "R'HR")
        close(float(terms.g_term[k, k]), truth.outer(truth.tangent(v)), scale, "R'GR")
    close(float(terms.hessian[0, 1]), truth.cross(*vectors), scale, "R'HR, off")
    total_variance(objective, np.random.default_rng(0), probes=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", SWEEP)
@pytest.mark.filterwarnings("ignore")
def test_every_number_of_a_model_is_right_or_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By forward mode wherever torch has it, which is compared with reverse mode on the way."""
    monkeypatch.setattr(Kept, "_forward_is_faster", lambda _: True)
    swept = SWEEP[name]
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(2)
        if not swept.refused:
            check(*made(swept), swept)
            return
        with pytest.raises((ValueError, RuntimeError), match=swept.refused):
            _asked(swept)


def _asked(swept: Swept) -> None:
    _, objective = made(swept)
    objective.value()
    objective.gradient()
    hessian(objective).dense()
