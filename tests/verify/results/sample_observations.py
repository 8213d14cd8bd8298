"""Observations made by hand: tables of ratios, one without a parameter, and one that crashed."""

import math
from typing import Any

from tests.verify.results.sample_rows import PAPERS
from verify.results import Observed, ObservedColumn, ObservedGroup, ObservedRow, Spread


def observed(name: str, **more: Any) -> Observed:
    """An observation of one column of ratios, with the given differences."""
    paper = name.partition("/")[0]
    plain = {
        "id": name,
        "paper": paper,
        "entries": ["B17"],
        "source": f"{PAPERS.get(paper, paper)}, Theorem 4",
        "title": "The batch Hessian of a network on digits",
        "note": "The noise of a network is not of one variance & the outlier is too large by up to a factor <3>.",
        "replicate": "one network with its images",
        "data": "digits (scikit-learn)",
        "along": "batch_size",
        "axis": "batch size",
        "columns": [ObservedColumn(score="outlier", heading="outlier", ratio=True)],
        "replicates": 6,
        "seconds": 96.3,
        "rerun": f"losscurv report --claim {name} --seed 20240501 --tier default",
    }
    return Observed(**{**plain, **more})


def spread(mean: float, part: float = 0.06) -> Spread:
    return Spread(mean=mean, lowest=mean * (1 - part), highest=mean * (1 + 1.4 * part))


def _batches(matrix: str, state: str, start: float, power: float) -> ObservedGroup:
    rows = []
    for batch in (8, 16, 32, 64, 128, 256):
        off = 1 + start * (batch / 8) ** power
        measured = 11.3 * batch**-0.4
        ratios = (spread(off), spread(0.93), spread(off**-0.9, 0.15))
        cells = [spread(measured), spread(measured * off, 0.0), *ratios]
        rows.append(ObservedRow(at=float(batch), cells=cells))
    return ObservedGroup(parameters={"matrix": matrix, "state": state, "samples": 1536}, rows=rows)


def observations() -> list[Observed]:
    """A table over batch sizes, one without such a parameter, and one that crashed."""
    names = (
        ("measured", "outlier, measured", False),
        ("predicted", "outlier, predicted", False),
        ("outlier", "outlier, predicted over measured", True),
        ("edge", "edge of the bulk, predicted over measured", True),
        ("overlap", "squared overlap of the top eigenvectors, predicted over measured", True),
    )
    columns = [ObservedColumn(score=score, heading=heading, ratio=ratio) for score, heading, ratio in names]
    lone = [
        ObservedGroup(
            parameters={"depth": depth, "activation": name}, rows=[ObservedRow(at=None, cells=[spread(r)])]
        )
        for depth, name, r in ((3, "relu", 0.97), (5, "tanh", 0.41), (7, "erf", math.nan))
    ]
    error = "Traceback (most recent call last):\nRuntimeError: <out> of memory\n"
    return [
        observed(
            "granziol2022/batches",
            columns=columns,
            groups=[
                _batches("Hessian", "initial", 2.6, -0.6),
                _batches("Hessian", "trained", 0.04, 0.3),
                _batches("Gauss-Newton", "trained", 0.5, -0.3),
            ],
        ),
        observed("karakida2019/depths", along="", axis="", groups=lone, entries=["C11", "C99"], data=""),
        observed("beyond/lost", error=error),
    ]
