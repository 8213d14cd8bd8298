"""Data by name, and language models: batches with labels, logits by chunks, the output that the loss takes."""

import sys
from pathlib import Path

import pytest
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.objectives import heads
from tests.refusals import refusal
from tests.simulate.objectives.language import CausalModel, V, batch, tokens
from verify.practice import plan
from verify.practice.loading import load_problem, problem
from verify.practice.measure import measure_problem

DATA = """
import torch
from torch.utils.data import DataLoader, TensorDataset

x, y = torch.randn(9, 3), torch.arange(9).remainder(3)
pair = (x, y)
samples = TensorDataset(x, y)

def loader():
    return DataLoader(samples, 4)

def batches():
    yield x[:5], y[:5]
    yield x[5:], y[5:]

class Columns:
    column_names = ["input", "label"]
    def __len__(self):
        return 9
    def __getitem__(self, i):
        return {"input": x[i].tolist(), "label": int(y[i])}
"""
MODEL = "import torch\nbuild = torch.nn.Linear(3, 3)\n"


@pytest.mark.parametrize("name", ["pair", "samples", "loader", "batches", "Columns"])
@pytest.mark.parametrize("place", ["own_data", "own_data.py"])
def test_data_are_named_as_models_are(name: str, place: str) -> None:
    Path("own_data.py").write_text(DATA)
    Path("own_net.py").write_text(MODEL)
    found = load_problem("own_net.py:build", f"{place}:{name}")
    assert (found.samples, found.classes) == (9, 3)
    sys.modules.pop("own_data", None)


def test_a_field_that_is_not_there_is_told() -> None:
    Path("own_data.py").write_text(DATA)
    Path("own_net.py").write_text(MODEL)
    with refusal("^field 'logits' not found"):
        load_problem("own_net.py:build", "own_data.py:pair", field="logits")


def test_a_batch_of_transformers_is_measured_and_planned() -> None:
    """Padding is left out of the means of the loss, the softmax and trial runs."""
    model, given = CausalModel(), batch()
    found = problem(model, given, dtype="float64")
    kept = int((given["labels"][:, 1:] != -100).sum())

    assert (found.objective.samples, found.samples, found.shifted) == (kept, 5, True)
    assert_allclose(found.objective.value(), model(**given)["loss"].item(), rtol=1e-12)
    measured = measure_problem(found, top=1)
    logits = model(**{k: v for k, v in given.items() if k != "labels"})["logits"].detach()
    chosen = logits[:, :-1][given["labels"][:, 1:] != -100].softmax(-1)
    assert_allclose(measured.zone.softmax.confidence, chosen.amax(-1).mean(), rtol=1e-9)
    planned = plan.plan_problem(found, [2], steps=4)
    assert planned.samples == 5


def test_logits_by_chunks_are_measured_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is measured of single sequences, and the softmax."""
    given = {"dtype": "float64", "parameters": ["block"]}
    plain = measure_problem(problem(CausalModel(tied=False), batch(), **given), top=1)
    monkeypatch.setattr(heads, "LARGE", 1)
    monkeypatch.setattr(heads, "AT_ONCE", 4 * V)
    chunked = problem(CausalModel(tied=False), batch(), **given)
    assert chunked.objective.head_of(chunked.objective.few()) is not None
    found = measure_problem(chunked, top=1)

    assert_allclose(found.hessian.trace.value, plain.hessian.trace.value, rtol=1e-8)
    assert_allclose(found.noise.along_top.value, plain.noise.along_top.value, rtol=1e-8)
    assert_allclose(found.noise.row.value, plain.noise.row.value, rtol=1e-8)
    seen = [vars(each.zone.softmax) for each in (found, plain)]
    assert seen[0] == pytest.approx(seen[1], rel=1e-12)


def test_the_field_is_handed_on() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = CausalModel()

        def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
            logits = self.body(ids)["logits"]
            return logits * 0, logits

    data = tokens(), tokens(1)
    found = problem(Both(), data, field=1, dtype="float64")
    assert found.outputs == (11, 6)
    assert measure_problem(found, top=1).loss.value == pytest.approx(found.objective.value())
    assert plan.plan_problem(found, [2], steps=4).samples == 5
