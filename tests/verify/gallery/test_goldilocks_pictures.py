"""Pictures of the Goldilocks zone: what they measure is what it says, and all of it can be read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.text import Text
from numpy.testing import assert_allclose

from simulate.modules.logit_kernel import Kernel
from tests.verify.gallery.small_pictures import GOLDILOCKS
from theory import gauss_newton, softmax
from verify import gallery
from verify.gallery.goldilocks import (
    excess as goldilocks_excess,
    frames as goldilocks_frames,
    gamma as goldilocks_gamma,
    gradients as goldilocks_gradients,
    initialisations as goldilocks_initialisations,
    layers as goldilocks_layers,
    lenet as goldilocks_lenet,
    zone as goldilocks_zone,
)
from verify.page.plots import to_svg

NAMES = ("zone", "excess-law", "gamma", "gradient", "initialisations", "first-layer", "hutchinson")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, sizes in GOLDILOCKS:
        for name, value in sizes.items():
            monkeypatch.setattr(module, name, value)


@pytest.fixture(name="rng")
def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(name="lenet", scope="module")
def _lenet() -> goldilocks_lenet.Lenet:
    return goldilocks_lenet.Lenet(np.random.default_rng(3), gallery.Setting(), 5)


def _drawn(name: str, seed: int = 2024) -> Any:
    (picture,) = gallery.pictures([name])
    return gallery.draw(picture, gallery.Setting(seed=seed))


@pytest.mark.parametrize("name", NAMES)
def test_no_text_leaves_the_figure(name: str) -> None:
    figure = _drawn(name)
    figure.canvas.draw()
    width, height = figure.bbox.size
    for text in _texts(figure):
        box = text.get_window_extent(figure.canvas.get_renderer())
        assert 0 <= box.x0 <= box.x1 <= width, text.get_text()
        assert 0 <= box.y0 <= box.y1 <= height, text.get_text()


def _texts(figure: Any) -> list[Text]:
    """Notes, titles, names of axes, and keys."""
    axes = [part for frame in figure.axes for part in (frame, *frame.child_axes)]
    named = [text for a in axes for text in (a.title, a.xaxis.label, a.yaxis.label)]
    keys = [text for a in axes if a.get_legend() for text in a.get_legend().get_texts()]
    return [text for text in (*figure.texts, *named, *keys) if text.get_text()]


def test_the_seed_is_all_that_chance_depends_on() -> None:
    first, again, other = (to_svg(_drawn("gradient", seed)) for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_images_of_two_classes_are_drawn_as_well(tmp_path: Any, rng: np.random.Generator) -> None:
    path = tmp_path / "two.npz"
    np.savez(path, x_train=rng.random((60, 9, 9)), y_train=np.arange(60) % 2)
    setting = gallery.Setting(data=str(path))
    for name in NAMES:
        (picture,) = gallery.pictures([name])
        assert gallery.draw(picture, setting).axes, name


# --- the zone ----------------------------------------------------------------------------------------------------


@pytest.fixture(name="net")
def _net(rng: np.random.Generator) -> Any:
    from simulate.monte_carlo import Point
    from verify.claims.vysogorets2024.framed_networks import lenet_300_100

    return lenet_300_100(rng, Point(images="digits", samples=6, dim=7)).net


def test_plain_products_are_right_until_probabilities_round(net: Any) -> None:
    """And then lose what a positive semidefinite matrix cannot: an excess of at least one."""
    from simulate.perceptrons import curvature

    alphas = np.array([0.3, 1.0, 2.0, 300.0])
    naive = goldilocks_zone._naive_excess(net, alphas)
    exact = curvature.positive_excess(net.scaled_g_term(alphas)[0]).numpy()
    assert_allclose(naive[:3], exact[:3], rtol=1e-6)
    assert exact[3] >= 1 - 1e-12
    assert not naive[3] >= 1


def test_the_law_is_of_the_networks_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are drawn from the same streams: in many dimensions the law is what each network shows."""
    from simulate.perceptrons import curvature
    from verify.claims.vysogorets2024.framed_networks import lenet_300_100

    monkeypatch.setattr(goldilocks_zone, "DIM", 40)
    monkeypatch.setattr(goldilocks_zone, "COARSE", np.array([1.0]))
    law = goldilocks_zone._law_of_full_space(gallery.Setting())[:, 0]
    nets = goldilocks_zone._drawn(gallery.Setting(), lenet_300_100)
    shown = np.array([float(curvature.positive_excess(net.terms().hessian)) for net in nets])
    assert abs(law[0] - law[1]) > 0.5
    assert_allclose(shown, law, atol=0.4)


# --- frames and probes -------------------------------------------------------------------------------------------


def test_frames_show_the_law_and_probes_the_whole(
    lenet: goldilocks_lenet.Lenet, rng: np.random.Generator
) -> None:
    """Four standard errors of a mean each, at a scale away from one."""
    exact = lenet.norms(0.8).excess_hessian
    seen = np.array([lenet.frame_excess(rng, 20, np.array([0.8]))[0] for _ in range(8)])
    law = float(gauss_newton.projected_excess(exact, dim=20))
    assert exact - law > 0.1
    assert abs(seen.mean() - law) < 4 * seen.std(ddof=1) / len(seen) ** 0.5
    probed = lenet.probe_excess(rng, 60, 4, 0.8)
    assert abs(probed.mean() - exact) < 4 * probed.std(ddof=1) / len(probed) ** 0.5


def test_the_correction_undoes_the_law() -> None:
    full = np.array([-1.7, 0.0, 0.4, 2.8])
    seen = gauss_newton.projected_excess(full, dim=goldilocks_frames.DIM)
    assert_allclose(goldilocks_frames._undone(np.asarray(seen)), full, rtol=1e-12)


def test_smaller_frames_are_parts_of_the_largest(
    lenet: goldilocks_lenet.Lenet, rng: np.random.Generator
) -> None:
    """Of a network in d dimensions, G from one pass for the largest frame: as each frame by itself has it."""
    from simulate.perceptrons import curvature

    state = rng.bit_generator.state
    found = goldilocks_gamma._projected(lenet, [rng])
    rng.bit_generator.state = state
    frame = lenet.frame(rng, int(goldilocks_gamma.DIMS[-1]))
    for dim, (excess,) in zip(goldilocks_gamma.DIMS, found, strict=True):
        net = curvature.ProjectedMlp(lenet.weights, lenet.x, lenet.labels, frame[:, :dim])
        assert_allclose(excess, float(curvature.positive_excess(net.terms().g_term)), rtol=1e-10)


# --- the random logit model --------------------------------------------------------------------------------------


def test_variances_in_a_frame_are_those_of_the_kernel(rng: np.random.Generator) -> None:
    """With a frame of everything, the two routes see the same gradients."""
    jacobian = rng.standard_normal((5, 3, 8)) + 2 * rng.standard_normal((3, 8))
    flat = torch.from_numpy(jacobian.reshape(15, 8))
    kernel = Kernel(torch.zeros(5, 3), (flat @ flat.T).view(5, 3, 5, 3), 8)
    scales = kernel.scales()
    assert_allclose(goldilocks_excess._variances(jacobian), [scales.sigma_c, scales.sigma_e], rtol=1e-12)


def test_eq_8_as_it_reads_is_right_where_both_variances_are_equal() -> None:
    size: dict[str, Any] = {"dim": 30, "sigma_c": 1.3, "sigma_e": 1.3}
    gamma = np.array([1.2, 2.5])
    assert_allclose(
        goldilocks_excess.as_it_reads(gamma, **size), gauss_newton.expected_excess(gamma, **size), rtol=1e-12
    )
    unequal: dict[str, Any] = {"dim": 30, "sigma_c": 1.0, "sigma_e": 1.3}
    high = goldilocks_excess.as_it_reads(gamma, **unequal) / gauss_newton.expected_excess(gamma, **unequal)
    assert (np.abs(high - 1) > 0.1).all()


def test_the_line_of_the_edges_is_the_law_through_their_middle() -> None:
    grid = np.array([8.0, 40.0, 200.0])
    edges = 2.3 * np.array([[0.5 * 8, 2 * 8], [0.5 * 40, 2 * 40]]) ** (1 / 3)
    line, _ = goldilocks_excess._law(edges, 0.9, grid, 3)
    assert_allclose(line, 2.3 * grid ** (1 / 3), rtol=1e-12)


def test_the_density_at_zero_is_that_of_the_gaps() -> None:
    """Gaps spread evenly from 0 to 2 have the density one half."""
    gaps = np.linspace(0, 2, 401)
    logits = np.stack([gaps, np.zeros(401), np.full(401, -5.0)], 1)
    assert_allclose(goldilocks_excess._density_at_zero(logits), 0.5, rtol=1e-2)


# --- Gamma -------------------------------------------------------------------------------------------------------


def test_dense_gammas_go_astray_only_where_probabilities_round() -> None:
    z = np.array([6.0, 1.0, 0.8, 0.6, 0.4])
    betas = np.array([0.1, 1.0, 3.0, 60.0])
    exact = softmax.gamma_from_logits(np.broadcast_to(z, (4, 5)), temperature=1 / betas) ** -2.0
    found = goldilocks_gamma._dense(z, betas)
    assert_allclose(found[:3], exact[:3], rtol=1e-6)
    assert not abs(found[3] - exact[3]) < 0.1


def test_random_probabilities_are_well_inside_floats(rng: np.random.Generator) -> None:
    """So that the dots beside the rays are Gamma, not rounding."""
    p = np.array([goldilocks_gamma._random_p(rng) for _ in range(200)])
    assert_allclose(goldilocks_gamma._dense_of(p), softmax.gamma(p), rtol=2e-4)


# --- gradients ---------------------------------------------------------------------------------------------------


def test_weighted_gradients_are_those_of_the_weighted_loss(rng: np.random.Generator) -> None:
    """Norm from the kernel against automatic differentiation; sums of weights as of the prior."""
    from simulate import networks
    from simulate.modules.logit_kernel import logit_kernel

    model = networks.Mlp((4, 6, 3), rng=rng)
    x, labels = torch.from_numpy(rng.standard_normal((7, 4))), np.array([0, 1, 2, 0, 1, 2, 0])
    net = goldilocks_gradients._Gradients(logit_kernel(model, x), np.eye(3)[labels], depth=2)
    prior = np.array([0.6, 0.3, 0.1])
    found = net.weighted(net.kernel.logits.numpy(), slice(0, 7), prior)
    weights = torch.from_numpy(prior / np.bincount(labels))[labels]
    loss = weights @ torch.nn.functional.cross_entropy(model(x), torch.from_numpy(labels), reduction="none")
    square = sum(g.square().sum() for g in torch.autograd.grad(loss, list(model.parameters())))
    (moved,) = goldilocks_gradients._moved(net, [found.slope])
    assert_allclose(found.slope.ravel() @ moved, float(square), rtol=1e-12)
    assert_allclose(found.prior, prior, rtol=1e-12)


def test_an_even_sample_is_as_noisy_as_its_weights_say() -> None:
    """error / samples is the sum of squared weights times squared errors, as theory takes it."""
    kernel = Kernel(torch.zeros(4, 2), torch.zeros(4, 2, 4, 2), 9)
    net = goldilocks_gradients._Gradients(kernel, np.eye(2)[[0, 0, 0, 1]], depth=2)
    logits = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    found = net.weighted(logits, slice(0, 4), np.array([0.3, 0.7]))
    weights = np.array([0.1, 0.1, 0.1, 0.7])
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    error = ((p - net.labels) ** 2).sum(1)
    assert_allclose(found.error / found.samples, weights**2 @ error, rtol=1e-12)
    assert 0 <= found.error <= 2 and found.samples == 1
    assert net.weighted(logits, slice(0, 3), np.array([1.0, 0.0])).samples == 3


def test_initialisations_agree_with_automatic_differentiation(rng: np.random.Generator) -> None:
    from simulate import data, networks

    images = data.sample(data.digits(), rng, 5).flat()
    frequencies = np.bincount(images.labels, minlength=10) / 5
    state = rng.bit_generator.state
    found = goldilocks_initialisations._one(rng, images, frequencies, "cpu")
    rng.bit_generator.state = state
    model = networks.Mlp(networks.LENET_300_100, rng=rng)
    logits = model(torch.from_numpy(images.images))
    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(images.labels))
    square = sum(g.square().sum() for g in torch.autograd.grad(loss, list(model.parameters())))
    entropy = torch.distributions.Categorical(logits=logits.detach()).entropy().mean()
    measured = (found.loss, found.gradient, found.entropy)
    assert_allclose(measured, (loss.item(), float(square) ** 0.5, float(entropy)), rtol=1e-10)
    assert found.square > found.line**2


def test_rank_correlations_are_by_differences_of_ranks(rng: np.random.Generator) -> None:
    """1 - 6 sum d^2 / (n^3 - n) where no value occurs twice."""
    x, y = rng.standard_normal((2, 9))
    apart = x.argsort().argsort() - y.argsort().argsort()
    found = goldilocks_initialisations._rank_correlation(x, y**3)
    assert_allclose(found, 1 - 6 * (apart**2).sum() / (9**3 - 9), rtol=1e-12)
    assert_allclose(goldilocks_initialisations._ranks(np.array([3.0, 1.0, 3.0, 7.0])), [2.5, 1.0, 2.5, 4.0])


# --- the first layer ---------------------------------------------------------------------------------------------


def test_the_eigenvector_ends_as_the_least_confident_image(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Of the sign that it has along the image, and of its shape."""
    monkeypatch.setattr(goldilocks_layers, "ALPHAS", np.array([0.1, 60.0]))
    net = goldilocks_layers._drawn(rng, gallery.Setting())
    assert_allclose([net.energy[1], net.share[1]], 1.0, rtol=1e-6)
    assert net.share[0] < 0.9
    shown, energy = net.seen[-1]
    cosine = (shown * net.image).sum() / np.linalg.norm(shown) / np.linalg.norm(net.image)
    assert_allclose([cosine, energy], 1.0, atol=1e-3)
