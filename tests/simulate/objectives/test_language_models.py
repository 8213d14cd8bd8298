"""Language models: a mapping with labels in, logits (N, T, V) out, and curvature as that of the model's own loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.data import DataLoader

from simulate.objectives import Objective
from simulate.operators import empirical_fisher, gauss_newton, h_term, hessian
from tests.simulate.objectives.language import (
    IGNORED,
    CausalModel,
    MaskedModel,
    N,
    OddModel,
    T,
    batch,
    part,
    tokens,
)
from tests.simulate.small_perceptrons import assert_same

LOSS = nn.CrossEntropyLoss()
MODELS = [CausalModel, MaskedModel]


def flat(model: nn.Module) -> tuple[Tensor, Callable[[Tensor], dict[str, Tensor]]]:
    """Parameters as one vector, and back."""
    named = dict(model.named_parameters())
    sizes = [p.numel() for p in named.values()]

    def split(vector: Tensor) -> dict[str, Tensor]:
        pieces = zip(named.items(), vector.split(sizes), strict=True)
        return {name: piece.view_as(p) for (name, p), piece in pieces}

    return torch.cat([p.detach().reshape(-1) for p in named.values()]), split


def second(loss: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    """Second derivatives by the plain kernel of attention, which has them."""
    with sdpa_kernel(SDPBackend.MATH):
        return torch.func.jacrev(torch.func.grad(loss))(at)


class Truth:
    """Dense matrices of the model's own loss, by `torch.func` alone."""

    def __init__(self, model: CausalModel, given: Any) -> None:
        self.model, self.given = model, dict(given)
        self.start, self.split = flat(model)
        labels = self.given["labels"]
        moved = functional.pad(labels[:, 1:], (0, 1), value=IGNORED) if model.moves else labels
        self.kept, self.classes = moved != IGNORED, moved.clamp(min=0)

    def logits(self, vector: Tensor) -> Tensor:
        inputs = {name: part for name, part in self.given.items() if name != "labels"}
        with sdpa_kernel(SDPBackend.MATH):
            return torch.func.functional_call(self.model, self.split(vector), (), inputs)["logits"]

    def loss(self, vector: Tensor) -> Tensor:
        return torch.func.functional_call(self.model, self.split(vector), (), self.given)["loss"]

    def hessian(self) -> Tensor:
        return second(self.loss, self.start)

    def gauss_newton(self) -> Tensor:
        jacobian = torch.func.jacrev(self.logits)(self.start)[self.kept]
        p = self.logits(self.start)[self.kept].softmax(-1)
        bend = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
        return torch.einsum("nap,nab,nbq->pq", jacobian, bend, jacobian) / len(p)

    def empirical_fisher(self) -> Tensor:
        def each(vector: Tensor) -> Tensor:
            chosen = self.logits(vector).log_softmax(-1).gather(-1, self.classes[..., None])[..., 0]
            return (chosen * self.kept).sum(1)

        gradients = torch.func.jacrev(each)(self.start)
        return gradients.T @ gradients / self.kept.sum()


@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize("build", MODELS)
def test_a_batch_of_transformers_has_the_curvature_of_the_model_s_own_loss(
    build: type[CausalModel], chunk: int | None
) -> None:
    model, given = build(), batch()
    truth = Truth(model, given)
    objective = Objective(model, given, LOSS, chunk=chunk)

    assert objective.shifted == model.moves
    assert (objective.rows, objective.samples) == (N, int(truth.kept.sum()))
    assert abs(objective.value() - truth.loss(truth.start).item()) < 1e-12
    assert_same(objective.gradient(), torch.func.grad(truth.loss)(truth.start), 1e-11)
    assert_same(hessian(objective).dense(), truth.hessian(), 1e-10)
    assert_same(gauss_newton(objective).dense(), truth.gauss_newton(), 1e-10)
    assert_same(h_term(objective).dense(), truth.hessian() - truth.gauss_newton(), 1e-10)
    assert_same(empirical_fisher(objective).dense(), truth.empirical_fisher(), 1e-10)


def test_labels_taken_where_they_stand_would_be_seen() -> None:
    """A planted error: the comparison with the model's own loss is no empty one."""
    model, given = CausalModel(), batch()
    inputs = {name: given[name] for name in ("input_ids", "attention_mask")}
    found = Objective(model, (inputs, given["labels"]), LOSS)

    assert not found.shifted
    assert abs(found.value() - Truth(model, given).loss(flat(model)[0]).item()) > 1e-2


FORMS: dict[str, Callable[[Any], Any]] = {
    "a batch": lambda given: given,
    "batches": lambda given: [part(given, slice(0, 2)), part(given, slice(2, N))],
    "a pair of batches": lambda given: (part(given, slice(0, 2)), part(given, slice(2, N))),
    "single sequences": lambda given: [part(given, slice(i, i + 1)) for i in range(N)],
    "a loader": lambda given: DataLoader(rows(given), 2),  # type: ignore[arg-type]
    "a generator": lambda given: (part(given, slice(i, i + 1)) for i in range(N)),
    "a data set": lambda given: Table(rows(given)),
    "a data set of lists": lambda given: Table([listed(row) for row in rows(given)]),
}


class Table:
    """Samples by number and by column, as `datasets` has them."""

    def __init__(self, samples: list[dict[str, Any]]) -> None:
        self._samples = samples

    @property
    def column_names(self) -> list[str]:
        return list(self._samples[0])

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, place: int) -> dict[str, Any]:
        return self._samples[place]

    def __iter__(self) -> Any:
        return iter(self._samples)


def rows(given: Any) -> list[dict[str, Tensor]]:
    return [{name: tensor[i] for name, tensor in given.items()} for i in range(N)]


def listed(row: dict[str, Tensor]) -> dict[str, Any]:
    """With a column of text, which no model takes."""
    return {name: tensor.tolist() for name, tensor in row.items()} | {"text": "some words"}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_batch_are_no_matter(form: str) -> None:
    """Batches weigh what they keep: sequences of other lengths do not count alike."""
    model, given = CausalModel(), batch()
    truth = Truth(model, given)
    objective = Objective(model, FORMS[form](given), LOSS, chunk=2)
    vector = torch.arange(1.0, objective.dim + 1, dtype=torch.float64).cos()

    assert objective.samples == int(truth.kept.sum())
    for _ in range(2):
        assert abs(objective.value() - truth.loss(truth.start).item()) < 1e-12
        assert_same(hessian(objective) @ vector, truth.hessian() @ vector, 1e-10)


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("loss", [LOSS, functional.cross_entropy, nn.CrossEntropyLoss(ignore_index=3)])
def test_classes_lie_along_axis_1_or_the_last(axis: int, loss: Any) -> None:
    """Pairs (inputs, targets): (N, V, T) as losses of torch want it, (N, T, V) as language models give it."""
    model, ids, labels = CausalModel(), tokens(), tokens(1)
    ignored = getattr(loss, "ignore_index", IGNORED)
    labels[0, 2:] = labels[3] = ignored
    names, own = list(dict(model.named_parameters())), [p.detach() for p in model.parameters()]

    def logits(leaves: Any, x: Tensor) -> Tensor:
        found = torch.func.functional_call(model, dict(zip(names, leaves, strict=True)), (x,))
        return found["logits"].movedim(-1, axis)

    objective = Objective(logits, (ids, labels), loss, parameters=own, chunk=2)
    start, split = flat(model)

    def expected(vector: Tensor) -> Tensor:
        found = torch.func.functional_call(model, split(vector), (ids,))["logits"]
        return functional.cross_entropy(found.flatten(0, 1), labels.flatten(), ignore_index=ignored)

    assert objective.separable and objective.samples == int((labels != ignored).sum())
    assert abs(objective.value() - expected(start).item()) < 1e-12
    assert_same(hessian(objective).dense(), second(expected, start), 1e-10)


REFUSED: list[tuple[Any, Any, Any, str]] = [
    (
        OddModel,
        LOSS,
        batch,
        "labels must be those of a model whose own loss is the cross-entropy .* got neither: .* give pairs",
    ),
    (
        CausalModel,
        lambda z, y: z.square().mean() + 0 * y.sum(),
        batch,
        "loss must be a cross-entropy of torch where the model moves labels .* got <lambda>; give pairs",
    ),
    (
        CausalModel,
        LOSS,
        lambda: [{"input_ids": tokens(), "targets": tokens()}],
        "data must give batches .* or mappings with labels, got dict of input_ids, targets",
    ),
    (
        CausalModel,
        LOSS,
        lambda: {**batch(), "speaker": torch.zeros(N)},
        "inputs must be what forward takes, input_ids, attention_mask, labels, got speaker too; leave out",
    ),
    (
        CausalModel,
        LOSS,
        lambda: ({"attention_mask": tokens()}, tokens()),
        "inputs must be what forward takes, .* got no input_ids; leave out or add",
    ),
    (
        CausalModel,
        LOSS,
        lambda: {**batch(), "labels": torch.full((N, T), IGNORED)},
        "at least one sample, got none",
    ),
]


@pytest.mark.parametrize(("build", "loss", "data", "message"), REFUSED)
def test_what_is_no_such_batch_is_told(build: Any, loss: Any, data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Objective(build(), data(), loss).value()


def test_a_model_whose_logits_are_all_zero_is_asked_beside_its_parameters() -> None:
    """There both losses are log V, whatever the labels."""
    for build, expected in zip(MODELS, (True, False), strict=True):
        model = build(tied=False)
        nn.init.zeros_(model.head.weight)
        assert Objective(model, batch(), LOSS).shifted is expected


def test_a_model_whose_logits_hardly_differ_is_told_all_the_same() -> None:
    """As in a fresh network: both losses are near log V, within what sums in another order may differ by."""
    for build, expected in zip(MODELS, (True, False), strict=True):
        model = build(tied=False)
        with torch.no_grad():
            model.head.weight.mul_(1e-3)
        assert Objective(model, batch(), LOSS).shifted is expected


class Encoder(nn.Module):
    """An encoder and decoder, whose decoder sees the labels before."""

    def __init__(self) -> None:
        super().__init__()
        self.body = MaskedModel()

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        return functional.pad(labels[:, :-1].clamp(min=0), (1, 0))

    def forward(self, input_ids: Tensor, decoder_input_ids: Tensor | None = None, labels: Any = None) -> Any:
        if decoder_input_ids is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        found = self.body(decoder_input_ids, labels=labels)
        found["logits"] = found["logits"] + self.body(input_ids)["logits"].mean(1, keepdim=True)
        if labels is not None:
            found["loss"] = self.body.own_loss(found["logits"], labels)
        return found


def test_a_decoder_sees_the_labels_before() -> None:
    model, given = Encoder(), {k: v for k, v in batch().items() if k != "attention_mask"}
    objective = Objective(model, given, LOSS)
    assert not objective.shifted
    assert abs(objective.value() - model(**given)["loss"].item()) < 1e-12
