"""Lines of the outliers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.theory.fuzz.laws import laws_of_noise
from tests.theory.fuzz.line import Line, between
from tests.theory.fuzz.strategies import signed, sizes
from theory import outliers

RECTANGULAR = {"spike": sizes, "q": sizes, "variance": sizes}


def outlier_lies_beyond_its_edge(arguments: Mapping[str, Any], top: outliers.Outlier) -> None:
    assert np.all((top.overlap >= 0) & (top.overlap <= 1))
    assert np.all(np.abs(top.eigenvalue) >= np.abs(top.edge))
    assert np.all(
        ~top.visible | (np.abs(top.eigenvalue) >= np.abs(np.asarray(arguments["spike"], dtype=np.float64)))
    )
    assert np.all(top.visible | (top.eigenvalue == top.edge))
    assert np.all(top.visible | (top.overlap == 0))


MODULES = {
    "outliers": ("Outlier",),
}

TABLE: dict[str, Line] = {
    **{
        f"outliers.{f.__name__}": Line(f, RECTANGULAR, outlier_lies_beyond_its_edge)
        for f in (outliers.additive_wishart, outliers.information_plus_noise, outliers.spiked_covariance)
    },
    "outliers.additive_wigner": Line(
        outliers.additive_wigner, {"spike": signed, "sigma": sizes}, outlier_lies_beyond_its_edge
    ),
    "outliers.additive": Line(
        outliers.additive,
        {"spike": signed, "law": laws_of_noise},
        lambda _, top: between(0, 1)(_, top.overlap),
    ),
}
