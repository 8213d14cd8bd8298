"""Lines of the Hessian of a batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.theory.fuzz.line import Line, below_the_dataset, between, real
from tests.theory.fuzz.strategies import (
    BATCH,
    HESSIAN,
    batches,
    counts,
    datasets,
    dims,
    flags,
    hostile,
    mostly,
    shares,
    signed,
    sizes,
    widths,
)
from theory import batch_hessian, own_direction


@st.composite
def samples_on_directions(draw: st.DrawFn) -> dict[str, Any]:
    """Statistics of three samples on two directions that belong together, or not."""
    entry = st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1e-300, 1e90, 5e-324]))
    raw = np.reshape(draw(st.lists(entry, min_size=24, max_size=24)), (2, 3, 2, 2))
    projected, squared = raw + raw.swapaxes(2, 3)
    numbers = draw(st.lists(st.floats(-0.7, 0.7), min_size=9, max_size=9))
    found = {
        "projected": projected,
        "squared": squared,
        "largest": draw(entry) * np.abs(numbers[:3]),
        "overlaps": np.reshape(numbers[3:], (3, 2)),
        "background": draw(entry),
        "spread": draw(entry),
    }
    spoilt = draw(st.sampled_from(["", "", "", *found]))
    return found | {spoilt: draw(hostile)} if spoilt else found


def law_of_batches(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the statistics and of batches, by the arguments of the statistics."""
    return lambda batches, **numbers: function(own_direction.own_directions(**numbers), batches)


def with_batches() -> st.SearchStrategy[dict[str, Any]]:
    batch = mostly(st.sampled_from([[[0]], [[0, 2], [1, 2]], [[0, 1, 2]], [[0, 0]], [[3]], [[-1]], [[0.0]]]))
    return st.builds(lambda numbers, drawn: numbers | {"batches": drawn}, samples_on_directions(), batch)


def beyond_the_batch(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(value >= np.asarray(arguments["batch_size"], dtype=np.float64) * (1 - 1e-15))


def no_weaker_than_the_data(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(
        np.abs(value) >= np.abs(np.asarray(arguments["eigenvalue"], dtype=np.float64)) * (1 - 1e-15)
    )


def no_stronger_than_the_data(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(np.abs(value) <= np.abs(np.asarray(arguments["eigenvalue"], dtype=np.float64)))


def bounds_are_ordered(_: Any, bounds: own_direction.BatchBounds) -> None:
    assert np.all(bounds.lower <= bounds.upper)


MODULES = {
    "batch_hessian": (),
    "own_direction": ("BatchBounds", "OwnDirections"),
}

TABLE: dict[str, Line] = {
    "batch_hessian.effective_batch_size": Line(
        batch_hessian.effective_batch_size, BATCH, beyond_the_batch, infinite=True
    ),
    "batch_hessian.element_fluctuation": Line(
        batch_hessian.element_fluctuation, {"variance": sizes, **BATCH}, between(0, math.inf)
    ),
    "batch_hessian.batch_eigenvalue": Line(batch_hessian.batch_eigenvalue, HESSIAN, no_weaker_than_the_data),
    "batch_hessian.batch_overlap": Line(batch_hessian.batch_overlap, HESSIAN, between(0, 1)),
    "batch_hessian.batch_ggn_eigenvalue": Line(
        batch_hessian.batch_ggn_eigenvalue,
        {"eigenvalue": sizes, "variance": sizes, "dim": dims, **BATCH},
        no_weaker_than_the_data,
    ),
    "batch_hessian.second_order_eigenvalue": Line(
        batch_hessian.second_order_eigenvalue, {"eigenvalue": signed, "coefficient": signed, **BATCH}
    ),
    "batch_hessian.element_skewness": Line(
        batch_hessian.element_skewness, {"skewness": signed, **BATCH}, real
    ),
    "batch_hessian.finite_population_fluctuation": Line(
        batch_hessian.finite_population_fluctuation,
        {"variance": sizes, **BATCH, "replacement": flags},
        between(0, math.inf),
    ),
    "batch_hessian.noise_bound": Line(
        batch_hessian.noise_bound, {"norm": sizes, **BATCH, "semidefinite": flags}, between(0, math.inf)
    ),
    "batch_hessian.second_order_coefficient": Line(
        batch_hessian.second_order_coefficient, {"eigenvalues": signed, "variances": sizes}, real, pooled=True
    ),
    "batch_hessian.batch_ggn_factor_eigenvalue": Line(
        batch_hessian.batch_ggn_factor_eigenvalue,
        {"eigenvalue": sizes, "variance": sizes, "dim": dims, **BATCH},
        no_weaker_than_the_data,
    ),
    "batch_hessian.noise_free_eigenvalue": Line(
        batch_hessian.noise_free_eigenvalue,
        {"eigenvalue": signed, "sigma": sizes, "dim": dims, "dataset_size": datasets},
        no_stronger_than_the_data,
    ),
    "batch_hessian.composed_batch_eigenvalue": Line(
        batch_hessian.composed_batch_eigenvalue, HESSIAN, no_weaker_than_the_data
    ),
    "batch_hessian.low_rank_noise": Line(
        batch_hessian.low_rank_noise,
        {"rank": dims, "variance": sizes, "dim": dims, "batch_size": batches, "positive_share": shares},
    ),
    "batch_hessian.ggn_rank_bound": Line(
        batch_hessian.ggn_rank_bound, {"batch_size": counts, "outputs": counts, "dim": counts}
    ),
    "batch_hessian.sample_rank_bound": Line(
        batch_hessian.sample_rank_bound, {"widths": widths, "biases": flags}
    ),
    "batch_hessian.sample_rank_bound_of_paths": Line(
        batch_hessian.sample_rank_bound_of_paths, {"inputs": counts, "widths": widths}
    ),
    "batch_hessian.dataset_rank_bound": Line(
        batch_hessian.dataset_rank_bound,
        {"sample_rank": counts, "samples": counts, "dim": counts, "symmetries": counts},
    ),
    "batch_hessian.element_variance": Line(
        batch_hessian.element_variance, {"total": sizes, "dim": dims}, between(0, math.inf)
    ),
    "batch_hessian.crossover_batch_size": Line(
        batch_hessian.crossover_batch_size,
        {"eigenvalue": signed, "sigma": sizes, "dim": dims, "dataset_size": datasets},
        below_the_dataset,
    ),
    "own_direction.own_directions": Line(own_direction.own_directions, samples_on_directions()),
    "own_direction.batch_eigenvalues": Line(
        law_of_batches(own_direction.batch_eigenvalues), with_batches(), real
    ),
    "own_direction.batch_bounds": Line(
        law_of_batches(own_direction.batch_bounds), with_batches(), bounds_are_ordered
    ),
    "own_direction.expected_eigenvalue": Line(
        law_of_batches(own_direction.expected_eigenvalue), with_batches(), real
    ),
}
