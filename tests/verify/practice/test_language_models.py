"""Language models by the words of the shell: a configuration, a text, data by name; transformers is a stand-in here."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.objectives import heads
from tests.refusals import refusal
from tests.simulate.objectives.language import CausalModel, V, batch
from verify.practice import plan
from verify.practice.loading import load_problem, problem
from verify.practice.measure import measure_problem

CONFIGURATION = {"model_type": "tiny", "architectures": ["TinyModel"], "vocab_size": 128, "n_positions": 12}
TEXT = "To be, or not to be, that is the question: " * 6


class Tiny(nn.Module):
    """Model that the stand-in builds."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.embed, self.head = (
            nn.Embedding(config.vocab_size, 3),
            nn.Linear(3, config.vocab_size, bias=False),
        )

    def forward(self, input_ids: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        logits = self.head(self.embed(input_ids).cumsum(1).tanh())
        if labels is None:
            return {"logits": logits}
        return {"logits": logits, "loss": nn.functional.cross_entropy(logits[:, :-1].mT, labels[:, 1:])}


class Tokenizer:
    """Two characters are a token."""

    def __call__(self, text: str, *, add_special_tokens: bool) -> dict[str, list[int]]:
        assert not add_special_tokens
        return {"input_ids": [ord(c) for c in text[::2]]}


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The current one, with a configuration and a text in it, and a stand-in of transformers."""
    Path("config.json").write_text(json.dumps(CONFIGURATION))
    Path("words.txt").write_text(TEXT)
    stand_in = ModuleType("transformers")
    stand_in.AutoConfig = SimpleNamespace(for_model=_for_model)
    stand_in.AutoModelForCausalLM = SimpleNamespace(from_config=Tiny)
    stand_in.AutoTokenizer = SimpleNamespace(from_pretrained=_from_pretrained)
    stand_in.TinyModel = Tiny
    monkeypatch.setitem(sys.modules, "transformers", stand_in)


def _for_model(kind: str, **own: Any) -> Any:
    if kind != "tiny":
        raise KeyError(f"unrecognised {kind}")
    return SimpleNamespace(**own)


def _from_pretrained(place: str, *, local_files_only: bool, config: Any = None) -> Tokenizer:
    """Files of a vocabulary alone need to be told their kind, which must not overrule what others say."""
    assert local_files_only and (config is None) == (Path(place) / "tokenizer.json").is_file()
    return Tokenizer()


@pytest.mark.parametrize("words", ["hf:config.json", "hf:."])
@pytest.mark.parametrize("architectures", [["TinyModel"], None])
def test_a_configuration_and_a_text_are_a_problem(folder: None, words: str, architectures: Any) -> None:
    Path("config.json").write_text(json.dumps(CONFIGURATION | {"architectures": architectures}))
    told = []
    found = load_problem(words, "words.txt", tokenizer="bytes", length=10, tell=told.append, dtype="float64")

    count = len(TEXT) // 10
    assert (found.samples, found.classes, found.outputs) == (count, 128, (128, 10)) and found.shifted
    assert told == [
        f"data words.txt: {count} sequences of 10 tokens, the last {len(TEXT) - 10 * count} tokens left out",
        "labels: shifted by one position, as the model's own loss does",
    ]
    ids = torch.tensor(list(TEXT.encode()))[: 10 * count].view(count, 10)
    assert_allclose(found.objective.value(), found.model(ids, labels=ids)["loss"].item(), rtol=1e-12)


@pytest.mark.parametrize(
    ("file", "tokenizer"), [("tokenizer.json", {}), ("words/vocab.json", {"tokenizer": "words"})]
)
def test_files_of_a_tokenizer_are_read(folder: None, file: str, tokenizer: Any) -> None:
    """Beside the configuration, or those of a vocabulary by the kind of the model."""
    Path("words").mkdir()
    Path(file).write_text("{}")
    found = load_problem("hf:config.json", "words.txt", **tokenizer)
    assert found.outputs == (128, 12)  # as many positions as the model takes
    assert found.inputs["input_ids"][0].tolist() == [ord(c) for c in TEXT[:24:2]]


def test_bytes_are_those_of_the_file(folder: None) -> None:
    Path("lines.txt").write_bytes(b"one\r\ntwo\n")
    found = load_problem("hf:config.json", "lines.txt", tokenizer="bytes")
    assert bytes(found.inputs["input_ids"].flatten().tolist()) == b"one\r\ntwo\n"


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
def test_data_are_named_as_models_are(folder: None, name: str, place: str) -> None:
    Path("own_data.py").write_text(DATA)
    Path("own_net.py").write_text(MODEL)
    found = load_problem("own_net.py:build", f"{place}:{name}")
    assert (found.samples, found.classes) == (9, 3)
    sys.modules.pop("own_data", None)


BYTES = {"tokenizer": "bytes"}


@pytest.mark.parametrize(
    ("model", "data", "options", "line"),
    [
        ("hf:words.txt", "words.txt", {}, "cannot be read as JSON: JSONDecodeError"),
        ("hf:list.json", "words.txt", {}, 'lacks the entry "model_type"'),
        ("hf:config.json", "words.txt", {}, "^tokenizer must be a folder with one of tokenizer.json"),
        ("hf:config.json", "empty.txt", BYTES, "at least 2 tokens, got 0 tokens .* give a longer text"),
        ("hf:config.json", "words.txt", BYTES | {"length": 13}, "the 12 positions that the model takes"),
        ("hf:small.json", "words.txt", BYTES, "gives token 117, but the model's vocabulary has 3"),
        ("own_net.py:build", "words.txt", {}, "^a text needs a tokenizer"),
        ("own_net.py:build", "own_data.py:pair", {"field": "logits"}, "^field 'logits' not found"),
    ],
)
def test_what_is_none_is_told(
    folder: None, model: str, data: str, options: dict[str, Any], line: str
) -> None:
    files = {
        "own_net.py": MODEL,
        "own_data.py": DATA,
        "list.json": "[]",
        "small.json": json.dumps(CONFIGURATION | {"vocab_size": 3}),
        "empty.txt": "",
    }
    for name, content in files.items():
        Path(name).write_text(content)
    with refusal(line):
        load_problem(model, data, **options)


def test_without_transformers_it_is_told_what_to_install(
    folder: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with refusal(r"hf:config.json needs transformers: .*; pip install trans"):
        load_problem("hf:config.json", "words.txt", tokenizer="bytes")


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
