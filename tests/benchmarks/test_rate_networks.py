"""The networks of the rates: two halves that are each of everything, small, drawn by a seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.rates.networks import NETWORKS, SYMBOLS, Network, samples_of


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Colour images of some noise."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("images") / "noise.npz"
    np.savez(path, x_train=rng.random((80, 3, 32, 32)), y_train=np.arange(80) % 10)
    return str(path)


def named(network: Network) -> str:
    return network.name


def test_both_halves_have_every_start_and_source() -> None:
    design, holdout = ([n for n in NETWORKS if n.half == half] for half in ("design", "holdout"))
    assert len(design) + len(holdout) == len(NETWORKS) >= 14
    assert {n.start for n in design} == {"torch", "he"}
    assert {n.start for n in holdout} == {"torch", "he", "edge"}
    kinds = [{n.source.split("-")[0] for n in of} for of in (design, holdout)]
    assert kinds == [{"digits", "images", "text"}] * 2
    new = [n.name for n in holdout if n.name.startswith(("residual", "attention"))]
    assert len(new) == 4 and not any(n.name.startswith(("residual", "attention")) for n in design)


def test_names_are_of_one_network_each() -> None:
    assert len({n.name for n in NETWORKS}) == len(NETWORKS)


@pytest.mark.parametrize("network", NETWORKS, ids=named)
def test_a_network_fits_its_samples_and_depends_on_the_seed(network: Network, archive: str) -> None:
    few = samples_of(network.source, 0, images=archive, count=6)
    before = torch.get_rng_state()
    one, same, other = (network.built(seed).eval() for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert sum(p.numel() for p in one.parameters()) < 30_000
    outputs = one(few.inputs)
    assert outputs.shape == (6, SYMBOLS if network.source == "text" else 10)
    assert torch.equal(outputs, same(few.inputs))
    assert not torch.equal(outputs, other(few.inputs))
    assert network.loss(outputs, network.targets(few.targets)).isfinite()


def test_the_edge_is_the_he_start_with_logits_sixteen_times() -> None:
    edge = next(n for n in NETWORKS if n.start == "edge" and n.source == "digits-8")
    he = Network(**{**vars(edge), "start": "he"})
    x = samples_of("digits-8", 0, count=6).inputs
    torch.testing.assert_close(edge.built(3)(x), 16 * he.built(3)(x))


def test_he_draws_weights_of_variance_two_over_fan_in() -> None:
    he = next(n for n in NETWORKS if n.start == "he" and n.source == "digits-8").built(0)
    first = next(p for p in he.parameters() if p.ndim > 1)
    assert abs(float(first.detach().square().mean()) * first.shape[1] / 2 - 1) < 0.1
    assert not any(p.any() for p in he.parameters() if p.ndim == 1)


@pytest.mark.parametrize("source", ["digits-8", "images-8", "text"])
def test_seeds_draw_other_samples_of_about_one_scale(source: str, archive: str) -> None:
    one, same, other = (samples_of(source, seed, images=archive, count=64) for seed in (0, 0, 1))
    assert torch.equal(one.inputs, same.inputs)
    assert torch.equal(one.targets, same.targets)
    assert not torch.equal(one.inputs, other.inputs)
    if source != "text":
        assert 0.8 < float(one.inputs.std()) < 1.25
        assert int(one.targets.max()) < 10
    else:
        assert int(one.inputs.max()) < SYMBOLS
