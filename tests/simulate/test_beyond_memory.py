"""What no memory holds is refused by every measurement, with what it is that does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from simulate import _memory, networks, operators, spectra
from simulate.lanczos import Operator, solve, tridiagonal
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.hessian_variance import quadratic_forms
from simulate.modules.logit_kernel import logit_kernel
from simulate.modules.projected import projected_terms
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.objectives import Objective
from simulate.training.learnable_rates import Classifiers, learns
from simulate.training.scaled_training import descent
from tests.simulate.small_perceptrons import problem

NET = problem(2)
X, LABELS = torch.from_numpy(NET.x), torch.from_numpy(NET.labels)
FRAME = torch.ones(NET.size, 2, dtype=torch.float64)
STACK = tuple(w[None] for w in NET.weights)
MODEL = networks.Mlp((6, 7, 5), rng=np.random.default_rng(0))
VAST = Operator(product=torch.clone, dim=60)


def of() -> Objective:
    return Objective(MODEL, (X, LABELS), nn.CrossEntropyLoss())


def matrix() -> Any:
    return operators.hessian(of())


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "kernel": (lambda: empirical_kernel(MODEL, X), "the inner products of 11 samples and 5 outputs"),
    "traced": (lambda: empirical_kernel(MODEL, X, traced=True), "11 samples"),
    "logit kernel": (lambda: logit_kernel(MODEL, X), "the inner products of 11 samples"),
    "forms": (lambda: quadratic_forms(of(), FRAME), "the derivatives of one sample"),
    "trace": (lambda: trace_gauss_newton(of()), "the derivatives of one sample"),
    "frame": (lambda: projected_terms(of(), FRAME), "2 directions, apart by parameters"),
    "product": (lambda: matrix() @ FRAME, "the derivatives of .* smaller chunk"),
    "matrix": (lambda: matrix().dense(), "use products"),
    "rates": (
        lambda: learns(Classifiers(STACK, X[None], LABELS[None]), torch.ones(1), target=1.0, steps=1),
        "1 runs of 11 samples",
    ),
    "descent": (
        lambda: descent(list(NET.weights), [(X, LABELS)], rate=1.0, steps=1),
        "gradients and moves of 77",
    ),
    "chain": (lambda: tridiagonal(VAST, torch.ones(1, 60).double(), 9), "use fewer steps or starts"),
    "solution": (lambda: solve(np.eye(4), np.ones((4, 2))), "16 vectors need .* fewer columns"),
    "probes": (lambda: spectra.trace(VAST, probes=9), "vectors of 60 numbers"),
    "norm": (lambda: spectra.frobenius_norm(VAST, probes=9), "vectors of 60 numbers"),
    "xtrace": (lambda: spectra.xtrace(VAST, probes=9), "vectors of 60 numbers"),
    "density": (lambda: spectra.density(VAST, x=0.0, width=1.0, probes=9), "vectors of 60 numbers"),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_no_memory_holds_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, told = CALLS[name]
    monkeypatch.setattr(_memory, "available", lambda _: 1.0)
    monkeypatch.setattr(_memory, "_UNASKED", 0)
    with pytest.raises(ValueError, match=rf"must be small enough for memory.*{told}"):
        call()
