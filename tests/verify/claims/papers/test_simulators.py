"""Simulators behind claims that the table keeps: a statistical property runs each, or a reason says why none does."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch

from simulate.matrices import ensembles, reduced
from simulate.modules.homogeneous import Homogeneous
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature
from simulate.training import learnable_rates, lyapunov, optimisers
from simulate.wide import fisher_gram, layer_normed
from tests.verify.results.sample_results import outcome
from tests.verify.running.engine_runs import judge_claim
from verify.claims import registry
from verify.claims.places import functions_read
from verify.model import ALPHA, AnyClaim, StatisticalProperty, Verdict
from verify.running.explored import MANY
from verify.running.settings import Settings

pytestmark = pytest.mark.slow

WITHOUT = {
    "a record": ("activations.Nonlinearity training.grids.Cells wide.signals.WideNetwork"),
    "a part of what a property runs": (
        "activations.nonlinearity matrices.populations.every_batch networks.Mlp "
        "objectives.objective.Objective perceptrons.confident.gaps perceptrons.curvature.hessian_of "
        "training.wide_training.outputs wide.last_layer.outputs_of"
    ),
    "images, or a generator": (
        "data.images.opened data.images.sample monte_carlo.blocks.fixture "
        "perceptrons.own_direction.partitions perceptrons.per_sample.initial_parameters "
        "training.stacks.perceptrons_at_start"
    ),
    "nothing is drawn in it: exact properties and identities hold it over its domain": (
        "lanczos.gauss.quadrature lanczos.products.Operator "
        "matrices.populations.definite_matrices "
        "perceptrons.curvature.positive_excess perceptrons.curvature.spectral_norm "
        "perceptrons.sample_products.algorithm_1_probes perceptrons.sample_products.DenseSamples "
        "training.optimisers.descent_step training.optimisers.heavy_ball_step "
        "training.optimisers.nesterov_step training.optimisers.step_contraction "
        "training.scaled_training.uniform wide.batch_normed.batch_normed_gram "
        "wide.last_layer.mean_subtraction"
    ),
    "a unit test holds it to matrices drawn whole": (
        "matrices.ensembles.goe_norms perceptrons.own_direction.batch_tops "
        "perceptrons.own_direction.sample_pairs perceptrons.own_direction.statistics "
        "perceptrons.own_direction.top_eigenvectors perceptrons.own_direction.top_pairs "
        "perceptrons.sample_products.PerceptronSamples training.edges.gradient_curvatures "
        "training.stacks.ResidualPerceptrons"
    ),
    "a unit test holds it to closed forms and automatic differentiation": (
        "perceptrons.full_space.logit_products training.edges.flatten training.edges.shaped_like "
        "training.flows.central_flow training.flows.descent_path "
        "training.flows.gradient_flow training.lyapunov.mean_square_stable_rates training.noisy_descent.noisy_descent "
        "training.steepest.Steepest training.steepest.generalised_sharpness"
    ),
    "properties hold the same numbers of networks without convolutions or images": (
        "modules.logit_kernel.Kernel modules.logit_kernel.logit_kernel networks.LeNet5"
    ),
    "thirty milliseconds a network and more, at any size": ("perceptrons.per_sample.all_logit_derivatives"),
    "a distribution function: nothing in it but counting eigenvalues": ("spectra.distribution"),
    "a search or a record around steps that a property holds": (
        "training.edges.rising_rates training.grids.checkpoints training.grids.ends_measured "
        "training.learnable_rates.largest_rates training.lyapunov.first_unstable "
        "training.wide_training.descend training.wide_training.taught"
    ),
    "at sizes that cost little the width moves it by several margins": (
        "wide.batch_normed.measured_moments wide.gradient_span.top_span "
        "wide.last_layer.batch_normalisation wide.last_layer.projected_gram"
    ),
}
"""Simulators that no property runs, by the reason. The list only gets shorter."""


def read(claims: Iterable[AnyClaim]) -> set[str]:
    return {name.replace(":", ".") for claim in claims for name in functions_read(claim, "simulate")}


def test_every_simulator_behind_a_kept_claim_has_a_statistical_property_or_a_reason() -> None:
    claims = registry.claims()
    held = read(claim for claim in claims if isinstance(claim, StatisticalProperty))
    named = {f"simulate.{name}" for names in WITHOUT.values() for name in names.split()}
    assert read(claims) - held == named
    assert len(held) > 80


# --- planted errors: the properties of the default tier bite -----------------------------------------------------


def verdict(name: str, case: str) -> str:
    """Return the verdict at the first example of a case, with the error of one of many: one that fails decides."""
    (claim,) = (c for c in registry.claims() if c.id == name)
    first = next(p for p in claim.examples if p.case == case)
    (found,) = judge_claim(claim.claim_at(first), Settings(), alpha=ALPHA / MANY)
    return found.verdict


def times(factor: float, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **options: factor * function(*given, **options)


def at_large_scales(factor: float, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrong beyond a scale of 3 in three layers, and nowhere else."""

    def wrong(self: Homogeneous, alpha: Any = 1.0, temperature: Any = 1.0) -> Any:
        found = function(self, alpha, temperature)
        off = self.depth == 3 and bool((torch.as_tensor(alpha) > 3).all())
        return found * (factor if off else 1.0)

    return wrong


def test_an_h_term_that_is_wrong_at_large_scales_of_three_layers_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Homogeneous, "h_term", at_large_scales(1.05, Homogeneous.h_term))
    assert verdict("vysogorets2024/any-network", "framed") == Verdict.DISAGREES


def test_the_search_finds_it_without_named_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """By drawn points alone, as many as for a quick property."""
    from verify.claims.vysogorets2024 import any_network

    monkeypatch.setattr(Homogeneous, "h_term", at_large_scales(1.1, Homogeneous.h_term))
    ratios = [
        float(any_network.along_weights(Block((np.random.default_rng(i),)), point)["ratio"][0])
        for i, point in enumerate(drawn_framed(100))
    ]
    assert sum(abs(ratio - 1) > 0.02 for ratio in ratios) >= 3
    assert sum(abs(ratio - 1) < 0.02 for ratio in ratios) > 60


def drawn_framed(count: int) -> list[Point]:
    """Points as hypothesis draws them for the property, of the case that runs `Homogeneous`."""
    from hypothesis import strategies as st

    from verify.claims.vysogorets2024.any_network import CLAIMS
    from verify.judging.properties import explore
    from verify.model.domains import strategy

    (claim,) = CLAIMS
    found = []

    def note(point: Point) -> Any:
        found.append(point)
        return outcome()

    domain = {name: strategy(of) for name, of in claim.domain.items() if name != "case"}
    explore(
        note,
        st.fixed_dictionaries(domain),
        lambda drawn: Point(case="framed", **drawn),
        seed=1,
        max_examples=count,
    )
    return found


def field(name: str, factor: float, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*given: Any, **options: Any) -> Any:
        found = function(*given, **options)
        return found._replace(**{name: factor * getattr(found, name)})

    return wrong


SCALES, FRAMES, NOISE = "vysogorets2024/any-network", "vysogorets2024/any-frame", "granziol2022/any-noise"
OUTLIERS, WIDE, RATES = "granziol2022/any-outlier", "karakida2019/any-network", "beyond/any-rate"

EDITS = {
    "G-term": (Homogeneous, "scaled_g_term", lambda f: part_of_two(0, 1.03, f), SCALES, "framed"),
    "gradient": (
        learnable_rates,
        "losses_and_gradients",
        lambda f: gradients(1.02, f),
        SCALES,
        "classifiers",
    ),
    "frame": (curvature, "haar", lambda f: times(1.02, f), FRAMES, "whole"),
    "moment": (ensembles, "goe_moments", lambda f: part_of_two(1, 1.1, f), NOISE, "without the matrix"),
    "outlier": (reduced, "wigner_extreme", lambda f: field("eigenvalue", 1.05, f), OUTLIERS, "Wigner"),
    "Gram": (fisher_gram, "gram", lambda f: times(1.3, f), WIDE, "whole"),
    "layer norm": (layer_normed, "layer_normed_gram", lambda f: times(1.1, f), WIDE, "layer-norm-mean"),
    "limit of SGD": (optimisers, "largest_stable_rate", lambda f: field("rate", 1.3, f), RATES, "sgd"),
    "exponent": (lyapunov, "lyapunov_exponents", lambda f: times(1.1, f), RATES, "exponent"),
}
"""Where a number of a simulator is edited, how, and the property that is to see it."""


def part_of_two(part: int, factor: float, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*given: Any, **options: Any) -> Any:
        found = list(function(*given, **options))
        found[part] = factor * found[part]
        return tuple(found)

    return wrong


def gradients(factor: float, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*given: Any) -> Any:
        losses, found, dead = function(*given)
        return losses, tuple(factor * gradient for gradient in found), dead

    return wrong


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_simulator_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, attribute, edit, seen_by, case = EDITS[name]
    monkeypatch.setattr(place, attribute, edit(getattr(place, attribute)))
    assert verdict(seen_by, case) == Verdict.DISAGREES
