"""Factors and operators beside those of curvlinops, where it is installed."""

from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from simulate import eigenvalues, operators
from simulate.factors import ekfac, kfac
from tests.simulate.dense_matrices import rng
from tests.simulate.factors.written_out import convolutions, drawn, perceptron

peer = pytest.importorskip("curvlinops", reason="an optional library; others hold factors to dense matrices")


def like(name: str, objective: Any, **options: Any) -> Any:
    """An operator of the peer on the same model and data."""
    data = [(b.inputs, b.targets) for b in objective.batches()]
    return getattr(peer, name)(
        objective.model, objective.criterion, list(objective.model.parameters()), data, **options
    )


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
        objective = objective.on((drawn(20, 40, 2, 4, 4), drawn(21, 40, 2)))
    other = like(name, objective, fisher_type=theirs, kfac_approx=sharing, separate_weight_and_bias=False)
    outputs = 2 if isinstance(objective.criterion, nn.MSELoss) and kind == "empirical" else 1
    dense = other @ torch.eye(objective.dim).double() / outputs

    assert_allclose(method(objective, kind=kind, sharing=sharing).dense(), dense, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")  # what the peer calls in torch
def test_operators_of_the_peer_are_matrices_like_ours() -> None:
    objective = perceptron()
    own, other = operators.gauss_newton(objective), like("GGNLinearOperator", objective)
    found, expected = (eigenvalues.extremes(m, rng(), largest=2).values for m in (other, own))

    assert_allclose(found, expected, rtol=1e-9)
    assert float(((own - other) @ torch.ones(own.dim).double()).norm()) < 1e-12
