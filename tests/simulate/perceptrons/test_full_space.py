"""Norms in all coordinates against dense matrices, and against the projection with the identity."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate import networks
from simulate.modules.logit_kernel import logit_kernel
from simulate.perceptrons import curvature, full_space
from simulate.perceptrons.curvature import ProjectedMlp
from tests.simulate.small_perceptrons import (
    SCALES,
    WIDTHS,
    dense,
    problem,
)

NET = problem(2)


@pytest.mark.parametrize("depth", WIDTHS)
@pytest.mark.parametrize(("alpha", "temperature"), SCALES)
def test_norms_are_those_of_the_dense_matrices(depth: int, alpha: float, temperature: float) -> None:
    g_term, hessian = dense(depth, alpha, temperature)
    h_term, scale = hessian - g_term, float(hessian.norm())
    found = full_space.norms(*problem(depth), alpha, temperature)
    for name, expected, unit in (
        ("trace_g", g_term.trace(), 0.0),
        ("norm_g", g_term.norm(), 0.0),
        ("norm_h_term", h_term.norm(), scale),
        ("inner", (g_term * h_term).sum(), scale**2),
        ("trace_hessian", hessian.trace(), 0.0),
        ("norm_hessian", hessian.norm(), 0.0),
        ("excess_g", curvature.positive_excess(g_term), 0.0),
        ("excess_hessian", curvature.positive_excess(hessian), 0.0),
    ):
        assert_allclose(getattr(found, name), float(expected), rtol=1e-11, atol=1e-14 * unit)


def test_a_linear_model_has_no_h_term() -> None:
    norms = full_space.norms(*problem(1))
    assert norms.norm_h_term == norms.inner == 0


def test_a_sample_that_nothing_moves_leaves_the_others_their_digits() -> None:
    net = problem(3, samples=3)
    dark = 0 * net.x[:1]  # unsure at any scale
    more = net._replace(x=np.concatenate([net.x, dark]), labels=np.append(net.labels, net.labels[0]))
    frame = torch.eye(net.size, dtype=torch.float64)
    matrix, log_scale = ProjectedMlp(*more, frame).scaled_g_term(2e3)
    expected, scale = ProjectedMlp(*net, frame).scaled_g_term(2e3)
    assert_allclose(float(log_scale), float(scale), rtol=1e-14)
    assert_allclose(matrix * 4 / 3, expected, rtol=0, atol=1e-12 * float(expected.abs().max()))
    excess = full_space.norms(*more, alpha=2e3).excess_g
    assert_allclose(excess, full_space.norms(*net, alpha=2e3).excess_g, rtol=1e-12)


@pytest.mark.cuda
def test_cuda_gives_the_norms_of_the_cpu() -> None:
    net = problem(3)
    there = net._replace(weights=tuple(w.to("cuda") for w in net.weights))
    assert_allclose(full_space.norms(*there).norm_hessian, full_space.norms(*net).norm_hessian, rtol=1e-12)


def test_products_of_logit_gradients_are_those_of_automatic_differentiation() -> None:
    model = networks.Mlp((5, 7, 6, 3), rng=np.random.default_rng(4))
    x = torch.from_numpy(np.random.default_rng(5).standard_normal((4, 5)))
    logits, products = full_space.logit_products([w.detach() for w in model.parameters()], x)
    expected = logit_kernel(model, x)
    assert_allclose(logits, expected.logits, rtol=1e-12)
    assert_allclose(products, expected.gram, rtol=1e-10, atol=1e-12)
