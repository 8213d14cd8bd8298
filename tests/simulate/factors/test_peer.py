"""Factors beside those of curvlinops, where it is installed."""

from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from simulate.factors import ekfac, kfac
from tests.simulate.factors.written_out import convolutions, drawn, perceptron

peer = pytest.importorskip("curvlinops", reason="an optional library; others hold factors to dense matrices")


@pytest.mark.parametrize("sharing", ["expand", "reduce"])
@pytest.mark.parametrize(("method", "name"), [(kfac, "KFACLinearOperator"), (ekfac, "EKFACLinearOperator")])
@pytest.mark.parametrize("build", [perceptron, convolutions])
@pytest.mark.parametrize(("kind", "theirs"), [("gauss-newton", "type-2"), ("empirical", "empirical")])
def test_factors_are_those_of_the_peer(
    build: Any, method: Any, name: str, sharing: str, kind: Any, theirs: str
) -> None:
    """But for the empirical kind with squared errors, which there is larger by the number of outputs.

    With more samples than a factor has rows: eigenvectors to eigenvalues that vanish together are anyone's choice.
    """
    objective = build()
    if build is convolutions:
        objective = objective.with_data((drawn(20, 40, 2, 4, 4), drawn(21, 40, 2)))
    data = [(b.inputs, b.targets) for b in objective.batches()]
    other = getattr(peer, name)(
        objective.model, objective.criterion, list(objective.model.parameters()), data,
        fisher_type=theirs, kfac_approx=sharing, separate_weight_and_bias=False,
    )  # fmt: skip
    outputs = 2 if isinstance(objective.criterion, nn.MSELoss) and kind == "empirical" else 1
    dense = other @ torch.eye(objective.dim).double() / outputs

    assert_allclose(method(objective, kind=kind, sharing=sharing).dense(), dense, atol=1e-12)
