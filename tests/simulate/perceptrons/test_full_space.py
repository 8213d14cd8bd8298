"""Norms in all coordinates against dense matrices, and against the projection with the identity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate.perceptrons import curvature, full_space
from simulate.perceptrons.curvature import ProjectedMlp
from tests.simulate.small_perceptrons import (
    SCALES,
    WIDTHS,
    dense_g_term,
    dense_hessian,
    problem,
)

NET = problem(2)


@pytest.mark.parametrize("depth", WIDTHS)
@pytest.mark.parametrize(("alpha", "temperature"), SCALES)
def test_norms_are_those_of_the_dense_matrices(depth: int, alpha: float, temperature: float) -> None:
    net = problem(depth)
    hessian, g_term = dense_hessian(net, alpha, temperature), dense_g_term(net, alpha, temperature)
    h_term = hessian - g_term
    norms = full_space.norms(*net, alpha, temperature)
    scale = float(hessian.norm())
    assert_allclose(norms.trace_g, float(g_term.trace()), rtol=1e-12)
    assert_allclose(norms.norm_g, float(g_term.norm()), rtol=1e-12)
    assert_allclose(norms.norm_h_term, float(h_term.norm()), rtol=1e-11, atol=1e-14 * scale)
    assert_allclose(norms.inner, float((g_term * h_term).sum()), rtol=1e-11, atol=1e-14 * scale**2)
    assert_allclose(norms.trace_hessian, float(hessian.trace()), rtol=1e-12)
    assert_allclose(norms.norm_hessian, scale, rtol=1e-12)
    assert_allclose(norms.excess_g, float(curvature.positive_excess(g_term)), rtol=1e-12)
    assert_allclose(norms.excess_hessian, float(curvature.positive_excess(hessian)), rtol=1e-12)


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((NET.x[:, :3], NET.labels), r"x must be of shape \(N, 6\) with N >= 1, got \(11, 3\)"),
        ((NET.x * np.nan, NET.labels), "x must be finite"),
        ((NET.x, NET.labels[:5]), r"labels must be 11 integers, got torch.int64 of shape \(5,\)"),
        ((NET.x, NET.labels + 1), r"labels must be between 0 and 4, got 1\.\.5"),
        ((NET.x, NET.labels, 0.0), "alpha must be finite and positive, got 0.0"),
        ((NET.x, NET.labels, 1e160), r"alpha must keep the scaled logits finite, got 1e\+160"),
    ],
)
def test_errors_name_the_argument(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        full_space.norms(NET.weights, *arguments)


def test_a_network_that_cannot_move_has_no_excess() -> None:
    with pytest.raises(ValueError, match="weights must move the logits at some input, got a G-term of zero"):
        full_space.norms(NET.weights, 0 * NET.x, NET.labels)
