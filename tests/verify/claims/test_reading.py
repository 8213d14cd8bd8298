"""Every claim reads theory or says why not; every output of theory is read by a claim or has a reason."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from simulate.monte_carlo import Block, Point
from tests.verify import toy_claims
from tests.verify.claims.reads import Reads, reading, reason, theory_outputs
from theory import fisher, order_parameters, outliers, rmt
from verify.claims import registry
from verify.claims.places import UNREAD
from verify.model import Tier

CLAIM = toy_claims.RIGHT

# --- the laws ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_claim_reads_theory_or_says_why_not(readings: dict[str, Reads]) -> None:
    """A formula typed beside a claim is no reason: it moves to theory, where a shell can ask for it too."""
    neither = [c.id for c in registry.claims() if not readings[c.id].any and c.no_theory is None]
    both = [c.id for c in registry.claims() if readings[c.id].predicted and c.no_theory is not None]
    assert (neither, both) == ([], [])


@pytest.mark.slow
def test_every_output_of_theory_is_read_or_has_a_reason(readings: dict[str, Reads]) -> None:
    """An output that no claim reads could be wrong, and no verdict would tell."""
    read = set[str]().union(*(found.outputs for found in readings.values()))
    missing = [name for name in theory_outputs() if name not in read and not reason(name)]
    assert missing == []


@pytest.mark.slow
def test_the_default_tier_reads_what_any_tier_reads(readings: dict[str, Reads]) -> None:
    default = {claim.id for claim in registry.select(Tier.DEFAULT)}
    read = set[str]().union(*(found.outputs for name, found in readings.items() if name in default))
    assert set[str]().union(*(found.outputs for found in readings.values())) == read


@pytest.mark.slow
def test_what_has_a_reason_is_there_and_is_not_read(readings: dict[str, Reads]) -> None:
    read = set[str]().union(*(found.outputs for found in readings.values()))
    left = set(theory_outputs()) - read
    listed = [f"theory.{name}" for names in UNREAD.values() for name in names]
    stale = [n for n in listed if not any(f"{other}.".startswith(f"{n}.") for other in left)]
    assert stale == []
    assert not set(listed) & read


# --- what is found -------------------------------------------------------------------------------------------


def found(formula: object, simulate: object = None) -> Reads:
    experiment = replace(CLAIM.experiment, simulate=simulate or CLAIM.experiment.simulate)
    return reading(replace(CLAIM, predict=formula, experiment=experiment))


def kappa(p: Point) -> float:
    return fisher.kappas("relu", depth=3, weight_variance=2.0 * p.scale, bias_variance=0.1).kappa1


def through_a_helper(scale: float) -> float:
    return rmt.Semicircle(sigma=scale).mean()


MEAN = "rmt.semicircle.Semicircle.mean"


@pytest.mark.parametrize(
    ("formula", "read", "other"),
    [
        (lambda p: through_a_helper(p.scale), MEAN, "rmt.semicircle.Semicircle.pdf"),
        (partial(lambda p, of: of(p.scale), of=through_a_helper), MEAN, "rmt.semicircle.Semicircle.pdf"),
        (
            lambda p: outliers.additive_wigner(3 * p.scale, sigma=p.scale).overlap,
            "outliers.Outlier.overlap",
            "outliers.Outlier.threshold",
        ),
        (kappa, "activations.Kernels.value", "fisher.Kappas.kappa2"),
    ],
)
def test_methods_fields_and_helpers_are_followed(formula: object, read: str, other: str) -> None:
    """The moments of a network are kept: the second claim on them reads all that the first one ran."""
    for seen in (found(formula), found(formula)):
        assert seen.predicted and f"theory.{read}" in seen.outputs
        assert f"theory.{other}" in theory_outputs().keys() - seen.outputs


@pytest.mark.parametrize("take", [sum, lambda e: sum(e._asdict().values())])
def test_a_record_that_is_taken_whole_has_all_its_fields_read(take: Callable[[Any], float]) -> None:
    """Unpacked, or as a dictionary; one of its fields alone is one."""
    kappas = partial(fisher.kappas, "relu", depth=3, weight_variance=2.0, bias_variance=0.1)
    fields = {f"theory.fisher.Kappas.{name}" for name in fisher.Kappas._fields}
    assert fields <= found(lambda _: take(kappas())).outputs
    assert len(fields & found(lambda _: kappas().kappa2).outputs) == 1


def as_a_dictionary(block: Block, point: Point) -> dict:
    known = fisher.kappas("relu", depth=2, weight_variance=2.0, bias_variance=0.1)._asdict()
    return {"x": toy_claims.uniform(block, point)["x"] / known["kappa1"]}


def test_a_score_may_take_a_record_whole() -> None:
    assert "theory.fisher.Kappas.kappa2" in found(lambda _: 1.0, as_a_dictionary).outputs


def test_a_formula_typed_beside_a_claim_reads_nothing() -> None:
    typed = found(lambda p: 0.5 * p.scale)
    assert typed == Reads(predicted=False, any=False, outputs=frozenset())


def compared(block: Block, point: Point) -> dict:
    known = order_parameters.order_parameters(
        "relu", depth=2, weight_variance=2.0 * point.scale, bias_variance=0.1
    )
    return {"x": toy_claims.uniform(block, point)["x"] / known.q_hat_t[-1]}


def test_a_score_that_is_compared_names_its_theory() -> None:
    read = found(lambda _: 1.0, compared)
    assert read.any
    assert not read.predicted
    assert "theory.order_parameters.order_parameters" in read.outputs


def test_nothing_is_left_behind() -> None:
    """Classes look up names as before, and an error in a prediction passes through."""
    with pytest.raises(ZeroDivisionError):
        found(lambda p: p.scale / 0)
    assert not [name for name in theory_outputs() if "._" in name or "Error" in name]
    records = {record for record in theory_outputs().values() if isinstance(record, type)}
    assert not [r for r in records if {"__getattribute__", "__iter__"} & set(vars(r))]
