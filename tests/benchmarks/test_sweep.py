"""The sweep of models that mix, reorder, rescale or wrap: as many as it says, and some of them asked."""

from __future__ import annotations

import pytest

from benchmarks.sweep import FAMILIES
from benchmarks.sweep.__main__ import main, outcomes
from benchmarks.sweep.listing import built

SOME = {
    "mixing": ["neighbours in pairs", "whitened by the batch, in two batches"],
    "reordering": ["equal samples once", "ragged tensors"],
    "rescaling": ["single precision, double head", "outputs of 1e-12, single precision"],
    "wrapping": ["a record as inputs", "weights from another network, under vmap"],
}


def test_there_are_sixty_models_fifteen_of_each_family() -> None:
    assert [len(models) for models in FAMILIES.values()] == [15] * 4
    assert len({name for models in FAMILIES.values() for name in models}) == 60


def test_models_and_data_are_the_same_each_time() -> None:
    listed = FAMILIES["mixing"]["neighbours in pairs"]
    (one, x, _), (other, again, _) = (built("neighbours in pairs", listed) for _ in range(2))
    assert bool((x == again).all()) and bool((one.a.weight == other.a.weight).all())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("family", "name"), [(family, name) for family, names in SOME.items() for name in names]
)
def test_models_of_every_family_are_right_or_refused_as_expected(family: str, name: str) -> None:
    for found in outcomes(family, name, FAMILIES[family][name], ["hessian", "fisher", "projected", "kfac"]):
        assert found.expected, found


def test_the_command_says_how_many_were_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--models", "equal samples", "--entries", "value"]) == 0
    assert capsys.readouterr().out == "{'right': 1}, 0 not as expected\n"
