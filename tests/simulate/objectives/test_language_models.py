"""Language models: a mapping with labels in, logits (N, T, V) out, and curvature as that of the model's own loss."""

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
from tests.simulate.objectives.language import IGNORED, CausalModel, MaskedModel, N, batch, part, tokens
from tests.simulate.objectives.sweep.listing import own
from tests.simulate.objectives.test_forms import Listed
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

    def product(self, vector: Tensor) -> Tensor:
        """Return the product with the Hessian."""
        with sdpa_kernel(SDPBackend.MATH):
            return torch.func.grad(lambda at: torch.func.grad(self.loss)(at) @ vector)(self.start)

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


@pytest.mark.parametrize("build", MODELS)
def test_a_batch_of_transformers_has_the_curvature_of_the_model_s_own_loss(build: type[CausalModel]) -> None:
    model, given = build(), batch()
    truth = Truth(model, given)
    whole, outer, fisher = truth.hessian(), truth.gauss_newton(), truth.empirical_fisher()
    for chunk in (None, 2):
        objective = Objective(model, given, LOSS, chunk=chunk)
        assert objective.shifted == model.moves
        assert (objective.rows, objective.samples) == (N, int(truth.kept.sum()))
        assert abs(objective.value() - truth.loss(truth.start).item()) < 1e-12
        assert_same(objective.gradient(), torch.func.grad(truth.loss)(truth.start), 1e-11)
        assert_same(hessian(objective).dense(), whole, 1e-10)
        assert_same(gauss_newton(objective).dense(), outer, 1e-10)
        assert_same(h_term(objective).dense(), whole - outer, 1e-10)
        assert_same(empirical_fisher(objective).dense(), fisher, 1e-10)


def test_labels_taken_where_they_stand_would_be_seen() -> None:
    """A planted error: the comparison with the model's own loss is no empty one."""
    given = batch()
    truth = Truth(CausalModel(), given)
    found = Objective(truth.model, (given, given.pop("labels")), LOSS)
    assert not found.shifted
    assert abs(found.value() - truth.loss(truth.start).item()) > 1e-2


def rows(given: Any, kind: Callable[[Tensor], Any] = Tensor.clone, **more: Any) -> list[dict[str, Any]]:
    return [{name: kind(tensor[i]) for name, tensor in given.items()} | more for i in range(N)]


class Table(Listed):
    """Samples by number and by column, as `datasets` has them."""

    column_names = ("input_ids", "attention_mask", "labels", "text")


FORMS = {
    "a pair of batches": lambda given: (part(given, slice(0, 2)), part(given, slice(2, N))),
    "a generator of single sequences": lambda given: (part(given, slice(i, i + 1)) for i in range(N)),
    "a loader": lambda given: DataLoader(rows(given), 2),  # type: ignore[arg-type]
    "a data set of lists and text": lambda given: Table(rows(given, Tensor.tolist, text="a").__getitem__, N),
    "nothing kept later, in the first batch": lambda given: [
        part(given, slice(0, 2)),
        part(given, slice(2, N)),
    ],
    "nothing kept later, in the last batch": lambda given: [
        part(given, slice(2, N)),
        part(given, slice(0, 2)),
    ],
}


@pytest.mark.parametrize("build", MODELS)
@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_batch_are_no_matter(form: str, build: type[CausalModel]) -> None:
    """Batches weigh what they keep: sequences of other lengths do not count alike.

    A model that moves labels predicts nothing at the first position, one that does not predicts it.
    """
    model, given = build(), batch()
    if form.startswith("nothing"):
        given["labels"][:2, 1:] = IGNORED
    truth = Truth(model, given)
    objective = Objective(model, FORMS[form](given), LOSS, chunk=2)
    vector = torch.arange(1.0, objective.dim + 1, dtype=torch.float64).cos()

    assert objective.shifted == model.moves and objective.samples == int(truth.kept.sum())
    for _ in range(2):
        assert abs(objective.value() - truth.loss(truth.start).item()) < 1e-12
        assert_same(objective.gradient(), torch.func.grad(truth.loss)(truth.start), 1e-11)
        assert_same(hessian(objective) @ vector, truth.product(vector), 1e-10)


class Bare(CausalModel):
    """Takes no labels."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Any:  # type: ignore[override]
        return super().forward(input_ids, attention_mask)


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: own(_handed, body=lambda: model)()])
def test_a_model_that_takes_no_labels_gets_targets_as_they_stand(wrap: Any) -> None:
    """By itself, or in one that hands on whatever it is given."""
    given = batch()
    found = Objective(wrap(Bare()), given, LOSS)
    logits = Bare()(given["input_ids"], given["attention_mask"])["logits"]
    expected = functional.cross_entropy(logits.flatten(0, 1), given["labels"].flatten()).item()
    assert not found.shifted and abs(found.value() - expected) < 1e-12


def _handed(m: Any, **given: Any) -> Any:
    return m.body(**given)


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("loss", [LOSS, functional.cross_entropy, nn.CrossEntropyLoss(ignore_index=3)])
def test_classes_lie_along_axis_1_or_the_last(axis: int, loss: Any) -> None:
    """Pairs (inputs, targets): (N, V, T) as losses of torch want it, (N, T, V) as language models give it."""
    model, ids, labels = CausalModel(), tokens(), tokens(1)
    ignored = getattr(loss, "ignore_index", IGNORED)
    labels[0, 2:] = labels[3] = ignored

    def logits(leaves: Any, x: Tensor) -> Tensor:
        return torch.func.functional_call(model, leaves, (x,))["logits"].movedim(-1, axis)

    start, split = flat(model)
    names, own = zip(*split(start).items(), strict=True)
    objective = Objective(
        lambda leaves, x: logits(dict(zip(names, leaves, strict=True)), x), (ids, labels), loss,
        parameters=own, chunk=2,
    )  # fmt: skip

    def expected(vector: Tensor) -> Tensor:
        found = logits(split(vector), ids).movedim(axis, -1)
        return functional.cross_entropy(found.flatten(0, 1), labels.flatten(), ignore_index=ignored)

    assert objective.separable and objective.samples == int((labels != ignored).sum())
    assert abs(objective.value() - expected(start).item()) < 1e-12
    assert_same(hessian(objective).dense(), second(expected, start), 1e-10)


@pytest.mark.parametrize("size", [0.0, 1e-3])
def test_a_model_whose_logits_hardly_differ_is_asked_beside_its_parameters(size: float) -> None:
    """As a fresh network: both losses are log V, or near it within what sums in another order may differ by."""
    for build in MODELS:
        model = build(tied=False)
        with torch.no_grad():
            model.head.weight.mul_(size)
        assert Objective(model, batch(), LOSS).shifted is build.moves


class Encoder(MaskedModel):
    """An encoder and decoder, whose decoder sees the labels before."""

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        return functional.pad(labels[:, :-1].clamp(min=0), (1, 0))

    def forward(self, input_ids: Tensor, decoder_input_ids: Any = None, labels: Any = None) -> Any:  # type: ignore[override]
        if decoder_input_ids is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        found = super().forward(decoder_input_ids)
        found["logits"] = found["logits"] + super().forward(input_ids)["logits"].mean(1, keepdim=True)
        if labels is not None:
            found["loss"] = self.own_loss(found["logits"], labels)
        return found


def test_a_decoder_sees_the_labels_before() -> None:
    model, given = Encoder(), {k: v for k, v in batch().items() if k != "attention_mask"}
    objective = Objective(model, given, LOSS)
    assert not objective.shifted
    assert abs(objective.value() - model(**given)["loss"].item()) < 1e-12
