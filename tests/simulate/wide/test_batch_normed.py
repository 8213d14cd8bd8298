"""Batch normalised hidden layers: signals by torch's own normalisation, the Gram matrix against autograd."""

import dataclasses

import pytest
import torch
from numpy.testing import assert_allclose

from simulate.wide import batch_normed
from tests.simulate.wide.by_autograd import network_of
from tests.simulate.wide.test_grams import in_layers, over_samples

# --- signals


def test_outputs_are_those_of_torch() -> None:
    network = network_of((3, 2, 7, 4, 2), 5)
    expected = in_layers(network, "gelu", over_samples, last=False)
    found = batch_normed.batch_normed_signals(network, "gelu").outputs
    assert_allclose(found, expected, rtol=0, atol=1e-13 * expected.abs().max().item())


def test_moments_and_rayleigh_quotient_are_those_of_inner_products() -> None:
    found = batch_normed.batch_normed_signals(network_of((4, 6, 5, 3), 5), "gelu")
    moments = batch_normed.measured_moments(found)

    for layer, h in enumerate(found.activations[1:]):
        inner = h @ h.mT / h.shape[2]
        own, whole = inner.diagonal(dim1=1, dim2=2).sum(1), inner.sum((1, 2))
        assert_allclose(moments["q_hat_t"][:, layer], own / 5, rtol=1e-12)
        assert_allclose(moments["q_hat_st"][:, layer], (whole - own) / 20, rtol=1e-12, atol=1e-14)
    last = found.activations[-1]
    assert_allclose(batch_normed.last_layer_rayleigh(found), (last @ last.mT).sum((1, 2)) / 25, rtol=1e-12)
    shallow = batch_normed.measured_moments(batch_normed.batch_normed_signals(network_of((3, 2)), "relu"))
    assert [tuple(values.shape) for values in shallow.values()] == [(2, 0), (2, 0)]


# --- gradients


def test_rows_of_the_gram_are_added_up_in_parts_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    network = network_of((3, 2, 7, 4, 2), 5)
    whole = batch_normed.batch_normed_gram(network, "tanh")
    monkeypatch.setattr(batch_normed, "_ROWS", 3)
    in_parts = batch_normed.batch_normed_gram(network, "tanh")
    assert_allclose(in_parts, whole, rtol=0, atol=1e-14 * whole.abs().max().item())


def test_equal_preactivations_have_no_deviation() -> None:
    blind = dataclasses.replace(network_of(), inputs=torch.ones(2, 4, 4, dtype=torch.float64))
    with pytest.raises(ValueError, match="network must have different pre-activations at different samples"):
        batch_normed.batch_normed_gram(blind, "relu")
