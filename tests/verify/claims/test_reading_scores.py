"""Scores behind statements judged as the paper has them: what each is where they hold, and where they do not."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.random import default_rng
from numpy.testing import assert_allclose

from simulate import networks
from simulate.monte_carlo import Block, Point, fixture
from verify.claims.karakida2019.wide_networks import by_width
from verify.claims.vysogorets2024 import priors, training as uniform, zone


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "LENET_300_100", (784, 30, 20, 10))


def block(count: int) -> Block:
    return Block(tuple(fixture(i, "net") for i in range(count)))


@pytest.mark.parametrize(
    ("holds", "place", "edges"),
    [("0110", 1, (1, 2)), ("1111", 2, (0, 3)), ("1011", 3, (2, 3)), ("0100", 3, (3, 3))],
)
def test_a_zone_is_the_run_around_its_peak(holds: str, place: int, edges: tuple[int, int]) -> None:
    """The last one does not hold at its peak: nothing but the place is left."""
    assert zone._run(np.array([h == "1" for h in holds]), place) == edges


def test_edges_are_read_off_to_parts_of_a_step_on_either_network(monkeypatch: pytest.MonkeyPatch) -> None:
    points = (
        Point(images="digits", network="LeNet-300-100", samples=6, dim=5, alphas=9),
        Point(images="digits", network="LeNet-5", pooling="average", samples=3, dim=2, alphas=9),
    )
    for point in points:
        found = zone.edges(block(1), point)
        assert found["apart"] == max(found["lower"], found["upper"])
        assert 0 <= found["apart"] < 9 and 8 * found["apart"] == round(8 * found["apart"][0])
    # an excess that the norms know nothing of: at every scale
    monkeypatch.setattr(
        "simulate.perceptrons.curvature.positive_excess",
        lambda matrices: torch.full(matrices.shape[:-2], 2.0),
    )
    found = zone.edges(block(1), points[0])
    assert found["lower"] > 1 and found["upper"] > 1


def test_gradients_of_a_balanced_batch_cancel_where_labels_say_nothing(tmp_path: Path) -> None:
    """Noise with labels in turn keeps to the random model; digits do not."""
    rng = default_rng(0)
    np.savez(tmp_path / "noise.npz", x_train=rng.random((1000, 28, 28)), y_train=np.arange(1000) % 10)
    sizes = {"samples": 640, "fewer": 40}
    noise = priors.balanced_batches(block(4), Point(images=str(tmp_path / "noise.npz"), **sizes))["exponent"]
    digits = priors.balanced_batches(block(4), Point(images="digits", **sizes))["exponent"]
    assert_allclose(noise.mean(), -1, atol=0.15)
    assert (digits > -0.5).all()


def test_a_network_scaled_far_down_is_the_one_with_uniform_outputs() -> None:
    point = Point(images="digits", depth=3, hidden=7, samples=8, steps=5, rate=0.006)
    far, near = (uniform.uniform_paths(fixture(0, "net"), point | {"alpha": a}) for a in (1e-6, 0.1))
    assert_allclose(far["scaled weights / alpha"], far["uniform outputs"], rtol=0, atol=1e-13)
    apart = (near["scaled weights / alpha"] - near["uniform outputs"]).abs().max()
    assert 1e-8 < apart < 1e-2


def test_gradients_of_parts_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    point = Point(images="digits", samples=20, pooling="average")
    whole = priors.unrelated(block(1), point)
    monkeypatch.setattr(priors, "AT_ONCE", 7)
    parts = priors.unrelated(block(1), point)
    for name, cosine in whole.items():
        assert_allclose(parts[name], cosine, atol=1e-4)


def test_a_mean_over_networks_draws_each_anew_from_the_stream_of_its_replicate() -> None:
    point = Point(widths=(4,), networks=(3,))
    found = by_width(block(2), point, lambda several, n: {"x": several.normal(n)[:, 1]})["x"][:, 0]
    expected = [rng.standard_normal((3, 4))[:, 1].mean() for rng in block(2).streams]
    assert_allclose(found, expected)
