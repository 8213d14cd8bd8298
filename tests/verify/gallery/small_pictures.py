"""Sizes at which the pictures of the Goldilocks zone are drawn in a moment."""

from typing import Any

import numpy as np

from verify.gallery.goldilocks import (
    excess as goldilocks_excess,
    frames as goldilocks_frames,
    gamma as goldilocks_gamma,
    gradients as goldilocks_gradients,
    initialisations as goldilocks_initialisations,
    layers as goldilocks_layers,
    zone as goldilocks_zone,
)

__all__ = ["GOLDILOCKS"]

FEW = np.logspace(-0.5, 0.5, 3)

GOLDILOCKS: tuple[tuple[Any, dict[str, Any]], ...] = (
    (
        goldilocks_zone,
        {"SAMPLES": 4, "DIM": 5, "DRAWS": 2, "ALPHAS": np.logspace(-1, 1, 7), "COARSE": FEW},
    ),
    (
        goldilocks_excess,
        {
            "SAMPLES": 4,
            "DIM": 5,
            "DRAWS": 2,
            "ALPHAS": FEW,
            "EDGE_SAMPLES": np.array([8, 40]),
            "EDGE_DRAWS": 2,
            "EDGE_DIM": 4,
        },
    ),
    (
        goldilocks_gamma,
        {"SAMPLES": 4, "FRAMES": 2, "DIMS": np.array([4, 6]), "RANDOM": 12, "RAYS": 2},
    ),
    (
        goldilocks_gradients,
        {"NETWORKS": 2, "IMAGES": 8, "NOISE": 6, "PRIORS": 9, "ALPHAS": FEW},
    ),
    (goldilocks_initialisations, {"DRAWS": 3, "SAMPLES": 5}),
    (goldilocks_layers, {"SAMPLES": 6, "DRAWS": 2, "ALPHAS": FEW}),
    (
        goldilocks_frames,
        {"SAMPLES": 4, "DIM": 9, "FRAMES": 2, "PROBES": 3, "GROUPS": 2, "ALPHAS": FEW[:2], "FINE": FEW},
    ),
)
