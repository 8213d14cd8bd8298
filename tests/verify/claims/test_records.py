"""Statements as data: what --json prints fits the printed schema, and its code can be found."""

import copy
import inspect
import json
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from typing import Any

import pytest

from verify.claims import registry
from verify.claims.records import stated_readings
from verify.cli import main
from verify.estimate import FUNCTIONS
from verify.estimate.catalogue import theory_function
from verify.judging.judge import labels
from verify.model import Verdict

KINDS = {"object": dict, "array": list, "string": str, "boolean": bool}


def misfits(value: Any, schema: dict[str, Any], where: str = "$") -> Iterator[str]:
    """Return the places of a value that break a JSON Schema; handles only the keywords that `json_schema` writes."""
    rest = {word: part for word, part in schema.items() if word != "description"}
    if "enum" in rest:
        if value not in rest.pop("enum"):
            yield where
    elif "type" in rest and not isinstance(value, KINDS[rest.pop("type")]):
        yield where
        return
    if isinstance(value, list) and "items" in rest:
        items = rest.pop("items")
        for place, each in enumerate(value):
            yield from misfits(each, items, f"{where}[{place}]")
    if isinstance(value, dict):
        known, others = rest.pop("properties", {}), rest.pop("additionalProperties", {})
        yield from (f"{where}.{name} missing" for name in rest.pop("required", ()) if name not in value)
        for name, each in value.items():
            part = known.get(name, others)
            if part is False:
                yield f"{where}.{name} unknown"
            else:
                yield from misfits(each, part, f"{where}.{name}")
    assert not rest, f"words of a schema that are not checked: {rest}"


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(words) == 0
    return json.loads(capsys.readouterr().out)


def found(path: str) -> Any:
    module, _, name = path.partition(":")
    return reduce(getattr, name.split("."), import_module(module))


@pytest.mark.parametrize("words", ["claims", "estimate"])
def test_what_is_printed_fits_its_schema_and_what_is_damaged_does_not(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, value = printed(capsys, words, "--json", "--schema"), printed(capsys, words, "--json")
    assert not list(misfits(value, schema))

    first = (lambda made: made[0]) if isinstance(value, list) else (lambda made: next(iter(made.values())))
    for damage in (
        lambda one: one.pop("claims"),
        lambda one: one.update(claims="none"),
        lambda one: one.update(new=1),
        lambda one: one.update(next((k, 1) for k, v in one.items() if isinstance(v, str)) for _ in "x"),
    ):
        wrong = copy.deepcopy(value)
        damage(first(wrong))
        assert list(misfits(wrong, schema))


def test_every_claim_has_its_formula_condition_verdict_and_code() -> None:
    for claim in registry.claims():
        readings = stated_readings(claim)
        assert [each.reading for each in readings] == list(labels(claim))
        assert readings[0].verdict == claim.expected and readings[0].formula == claim.statement
        assert all(each.verdict == Verdict.DISAGREES for each in readings[1:])
        for each in readings:
            assert each.source and each.domain and each.formula
            assert all(callable(found(path)) for path in each.theory)
            assert any(one.id == claim.id for one in import_module(each.module).CLAIMS)
            if claim.passage and claim.passage.words:
                assert claim.passage.words in {one.words for one in readings}


def test_a_misprint_has_the_formula_of_our_copy_and_the_papers_words() -> None:
    claims = {claim.id: claim for claim in registry.claims()}
    own, misprint = stated_readings(claims["vysogorets2024/eq-8"])
    assert (own.reading, misprint.reading) == ("corrected", "as our copy reads")
    assert own.formula != misprint.formula == claims["vysogorets2024/eq-8"].reads
    assert own.theory == ["theory.gauss_newton:expected_excess", "theory.softmax:gamma"]


def test_every_function_has_the_domain_of_its_arguments_and_its_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, record in printed(capsys, "estimate", "--list", "--json").items():
        function = theory_function(name)
        assert found(record["code"]) is function
        assert record["summary"] and all(
            n in record["domain"] for n in inspect.signature(function).parameters
        )
    assert name == list(FUNCTIONS)[-1]


def test_a_function_names_the_claims_that_read_it(capsys: pytest.CaptureFixture[str]) -> None:
    record = printed(capsys, "estimate", "learning_rates", "--json")["learning_rates.stability_limit"]
    assert record["formula"] == [r"2/\lambda_{max}"] and "eq. (22)" in record["source"]
    assert "not positive" in record["conditions"]
    claims = {claim.id: claim for claim in registry.claims()}
    assert record["claims"] and all(claims[name].expected == word for name, word in record["claims"].items())
