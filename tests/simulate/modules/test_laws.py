"""Measures of curvature equal those of dense matrices by autograd, for every kind of model and every method."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from simulate.factors import kfac
from simulate.modules import projected, sample_parts, site_gradients, sites
from simulate.modules.diagonals import gauss_newton_diagonal, hessian_diagonal
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.hessian_variance import bilinear_forms, quadratic_forms, variance_along
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.objectives import Objective
from simulate.objectives.batches import joined
from simulate.operators import gauss_newton, hessian
from tests.refusals import refusal
from tests.simulate.models_and_data import BUILDERS, case
from tests.simulate.modules.layer_kinds import (
    AROUND,
    LAYERS,
    MIXING,
    REORDERING,
    SECOND,
    Between,
    inputs,
    labels,
    objective_of,
    on_batches,
)

MIXED = "the outputs for a sample depend on the other samples of its batch"
MATRICES = ("hessian", "gauss_newton")
FEW = ("absolute error", "convolution", "normalisations", "sum", "tied", "tokens")
"""Kinds of models whose single samples are compared for both matrices."""

LOSSES = ("binary", "class probabilities", "cross-entropy", "squared error")
"""Kinds that differ from another one by the loss alone; `test_output_curvature` has the curvature of each loss."""

ALONE = [name for name in (*BUILDERS, *LAYERS, *AROUND, *REORDERING) if name not in LOSSES]
"""Kinds of models that do not mix samples."""


class Dense(NamedTuple):
    """Matrices (dim, dim) of all data; of each sample derivatives of the outputs, G_i, and H_i times two columns."""

    gauss_newton: Tensor
    hessian: Tensor
    jacobian: Tensor
    gauss_newtons: Tensor
    of_hessians: Tensor


def dense(objective: Objective) -> Dense:
    """By autograd alone."""
    vector, v = objective.flat(objective.leaves).detach(), columns(objective.dim, 2)
    whole, found = torch.zeros(2, objective.dim, objective.dim, dtype=torch.float64), []
    with objective.own_mode():
        for batch in objective.batches(empty=True):

            def outputs(theta: Tensor, given: Any = batch.inputs) -> Tensor:
                return objective.outputs(objective.split(theta), given)

            def loss(z: Tensor, b: Any = batch) -> Tensor:
                return objective.loss(z, b) if b.factor else 0 * z.sum()

            z = outputs(vector).detach()
            rows = torch.func.jacrev(outputs)(vector).reshape(len(z), -1, objective.dim)
            slope, size = torch.func.grad(loss)(z), z.numel()
            bend, flat = torch.func.jacrev(torch.func.grad(loss))(z).view(size, size), rows.flatten(0, 1)
            whole[0] += flat.mT @ bend @ flat
            whole[1] += torch.func.jacrev(torch.func.grad(lambda t: loss(outputs(t))))(vector)

            theta = vector.clone().requires_grad_()
            each = (slope * outputs(theta)).reshape(len(z), -1).sum(1)
            gradients = [torch.autograd.grad(one, theta, create_graph=True)[0] for one in each]
            # torch.func has third derivatives of normalisations wrong
            own = [
                torch.stack(
                    [torch.autograd.grad(g @ c + 0 * theta.sum(), theta, retain_graph=True)[0] for c in v.mT]
                )
                for g in gradients
            ]
            blocks = bend.view(*rows.shape[:2], *rows.shape[:2]).diagonal(dim1=0, dim2=2).permute(2, 0, 1)
            g = rows.mT @ blocks @ rows / objective.share
            found.append((rows, g, g @ v + torch.stack(own).mT / objective.share))
    return Dense(*whole.detach(), *(torch.cat(each).detach() for each in zip(*found, strict=True)))


@functools.cache
def known(name: str) -> Dense:
    return dense(objective_of(name))


def columns(dim: int, count: int) -> Tensor:
    return torch.randn(dim, count, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def two(objective: Objective) -> Tensor:
    return columns(objective.dim, 2)


def along(matrix: Tensor, count: int) -> Tensor:
    return columns(len(matrix), count).mT @ matrix @ columns(len(matrix), count)


def kernel(objective: Objective, **options: Any) -> Tensor:
    found = joined([x for x, _ in objective.data])
    return empirical_kernel(objective.model, found, parameters=list(objective.names), **options)


def images(d: Dense, matrix: str) -> Tensor:
    return d.of_hessians if matrix == "hessian" else d.gauss_newtons @ columns(len(d.hessian), 2)


def forms(d: Dense, matrix: str) -> Tensor:
    return columns(len(d.hessian), 2).mT @ images(d, matrix)


def spread(products: Tensor) -> Tensor:
    return (products - products.mean(0)).square().sum() / (len(products) - 1)


def spectra(d: Dense) -> Tensor:
    values = torch.linalg.eigvalsh(d.gauss_newtons)
    return torch.stack([values.sum(1), values[:, -1], values.square().sum(1)])


Law = tuple[Callable[[Objective], Any], Callable[[Dense], Any]]
LAWS = {
    "trace of G": (trace_gauss_newton, lambda d: d.gauss_newton.trace()),
    "diagonal of G": (gauss_newton_diagonal, lambda d: d.gauss_newton.diagonal()),
    "diagonal of H": (hessian_diagonal, lambda d: d.hessian.diagonal()),
    "kernel": (kernel, lambda d: torch.einsum("nkp,mlp->nkml", d.jacobian, d.jacobian)),
    "traced kernel": (
        lambda o: kernel(o, traced=True), lambda d: torch.einsum("nkp,mkp->nm", d.jacobian, d.jacobian)
    ),
}  # fmt: skip
for _count in (2, 4):
    LAWS[f"along {_count} columns"] = (
        lambda o, k=_count: torch.stack([*projected.projected(o, columns(o.dim, k))]),
        lambda d, k=_count: torch.stack([along(d.gauss_newton, k), along(d.hessian - d.gauss_newton, k)]),
    )
OF_SAMPLES = {}
for _name in MATRICES:
    _matrix = _name
    OF_SAMPLES |= {
        f"forms of {_name}": (
            lambda o, m=_matrix: quadratic_forms(o, two(o), matrix=m),
            lambda d, m=_name: forms(d, m).diagonal(dim1=1, dim2=2),
        ),
        f"two forms of {_name}": (
            lambda o, m=_matrix: bilinear_forms(o, two(o), two(o)[:, 1], matrix=m),
            lambda d, m=_name: forms(d, m)[:, :, 1],
        ),
        f"variance of {_name}": (
            lambda o, m=_matrix: variance_along(o, two(o)[:, 1], matrix=m),
            lambda d, m=_name: spread(images(d, m)[:, :, 1]),
        ),
    }
WHOLE = {
    "G": (lambda o: gauss_newton(o).dense(), lambda d: d.gauss_newton),
    "H": (lambda o: hessian(o).dense(), lambda d: d.hessian),
}
FORMS = {name: law for name, law in OF_SAMPLES.items() if not name.startswith("forms")}
"""Without the forms of one vector, which are found like those of two."""

ALONG = {name: law for name, law in LAWS.items() if "along" in name}
BY_PARTS = {name: law for name, law in LAWS.items() if name not in ALONG and "H" not in name}
WAYS = {
    "no layer known": ((sites, "covers", lambda _: False), {**LAWS, **OF_SAMPLES}),
    "no sample apart at the layers": ((sites, "by_sample", lambda _: False), {**LAWS, **OF_SAMPLES}),
    "windows of one sample": ((sample_parts, "_WINDOW", 0), BY_PARTS),
    "windows of some samples": ((sample_parts, "_WINDOW", 1 << 15), BY_PARTS),
    "derivatives of one at a time": ((sample_parts, "_HELD", 1), FORMS),
    "gradients of one at a time": ((site_gradients, "_BYTES", 1), BY_PARTS),
    "changes of one at a time": ((projected, "_BYTES", 1), ALONG),
}
"""Each way replaces an attribute of a module, and is compared by the laws that depend on it."""


def assert_laws(objective: Objective, expected: Dense, laws: Mapping[str, Law] = LAWS) -> None:
    for name, (measured, of) in laws.items():
        found, right = torch.as_tensor(measured(objective), dtype=torch.float64), of(expected)
        assert found.shape == right.shape, name
        assert float((found - right).norm()) <= 1e-9 * float(right.norm()), name


@pytest.mark.parametrize("name", [*ALONE, *MIXING])
def test_what_is_measured_is_that_of_dense_matrices(name: str) -> None:
    objective = objective_of(name)
    if name in FEW:
        assert_laws(objective, known(name), {**LAWS, **OF_SAMPLES})
        return
    assert_laws(objective, known(name), {n: law for n, law in LAWS.items() if "traced" not in n})
    own = WHOLE if name in MIXING else {n: law for n, law in FORMS.items() if "gauss_newton" not in n}
    assert_laws(objective, known(name), own)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "way"), [
    *(("ignored class", way) for way in (*WAYS, "chunks")),
    *((name, way) for name in ("tokens", "twice") for way in [*WAYS][2:]),
])  # fmt: skip
def test_other_ways_give_the_same(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of one ignored sample adds nothing to the loss, but has its row."""
    objective, laws = objective_of(name, **({"chunk": 1} if way == "chunks" else {})), {**LAWS, **OF_SAMPLES}
    if way in WAYS:
        replaced, laws = WAYS[way]
        monkeypatch.setattr(*replaced)
    assert_laws(objective, known(name), laws)


@pytest.mark.parametrize("name", [*SECOND, "attention", "attention, samples second"])
def test_as_many_samples_as_positions_are_not_taken_for_these(name: str) -> None:
    """No shape tells which axis is whose; in training mode too."""
    whole = objective_of(name)
    ((x, y),) = whole.data
    objective = Objective(whole.model, (x[:2], y[:2]), whole.criterion, training=True)
    assert sites.covers(objective) and sites.by_sample(objective)
    assert_laws(objective, dense(objective), {**BY_PARTS, **ALONG})
    assert not any("forward" in vars(module) for module in objective.model.modules())


def test_a_loss_of_straight_pieces_has_no_gauss_newton_matrix() -> None:
    objective = case("squared error")._replace(loss=lambda z, y: (z * y).mean()).objective()
    assert_laws(objective, dense(objective))


def test_samples_are_rows_of_the_targets() -> None:
    """Tokens of a flattened sequence: their outputs are rows, though the inputs have fewer."""
    model = nn.Sequential(nn.Linear(4, 6), nn.Unflatten(1, (2, 3)), nn.Flatten(0, 1)).double()
    objective = Objective(model, [(inputs(3), torch.arange(6) % 3)], nn.CrossEntropyLoss())
    assert_laws(objective, dense(objective), {"trace of G": LAWS["trace of G"]})


# --- samples that meet, or are reordered -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*MIXING, *REORDERING])
def test_what_is_had_of_samples_apart_alone_is_refused(name: str) -> None:
    objective = objective_of(name)
    with refusal("without randomness and each sample on its own"):
        kfac(objective)
    if name in REORDERING:
        assert objective.separable and objective.apart
        assert sum(REORDERING[name][1]) != 9 or not sites.by_sample(objective)
        return
    assert objective.coupling == objective.mixing == MIXED
    for ask in (quadratic_forms, lambda o, v: variance_along(o, v[:, 0])):
        with refusal("got samples that see each other"):
            ask(objective, two(objective))


def test_samples_that_meet_in_batches_of_the_size_that_is_used_are_found() -> None:
    """A batch of 120 is passed in parts of 30 samples, which do not meet, or of 60, which do."""
    model = Between(lambda h: h - h.mean(0) if len(h) > 40 else h)
    assert on_batches(model, [120], chunk=30).coupling == ""
    coupled = on_batches(model, [120], chunk=60)
    assert coupled.coupling == MIXED and coupled.chunk is None


@pytest.mark.parametrize("sizes", [[12, 40], [20, 9]])
def test_samples_that_meet_in_batches_of_one_size_are_found(sizes: list[int]) -> None:
    """They meet in the second batch, which is larger, or in the last one, which is smaller."""
    objective = on_batches(Between(lambda h: h - h.mean(0) if len(h) in (40, 9) else h), sizes)
    assert objective.mixing == MIXED and not objective.apart
    with refusal("pass all samples as one batch"):
        objective.gradient()


class Routed(nn.Module):
    """Each of two experts takes samples of one sign."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(4, 3).double() for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        found = x.new_zeros(len(x), 3)
        for i, expert in enumerate(self.experts):
            taken = ((x[:, 0] > 0) == bool(i)).nonzero()[:, 0]
            found = found.index_add(0, taken, expert(x[taken])) if len(taken) else found
        return found


def test_a_batch_that_a_layer_takes_in_part_is_not_taken_for_a_whole_one() -> None:
    """All samples of the first batch go to one expert, not those of the second."""
    x = inputs(12)
    x[:6, 0] = x[:6, 0].abs()
    x[6:, 0] = -x[6:, 0].abs() * torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    batches = list(zip(x.split(6), labels(x).split(6), strict=True))
    objective = Objective(Routed(), batches, nn.CrossEntropyLoss())
    assert not sites.by_sample(objective)
    objective.answers["by_sample"] = True  # as if the samples that are asked had not shown it
    assert_laws(objective, dense(objective))
    with refusal("must affect the outputs"):
        kfac(objective)


# --- refusals --------------------------------------------------------------------------------------------------------

ASKED = {
    "vectors": quadratic_forms,
    "left": lambda o, v: bilinear_forms(o, v, torch.ones(o.dim)),
    "right": lambda o, v: bilinear_forms(o, torch.ones(o.dim, 1), v[:, 0] if v.numel() else v),
    "vector": lambda o, v: variance_along(o, v[:, 0] if v.numel() else v),
    "frame": projected.projected,
}


@pytest.mark.parametrize("name", ASKED)
def test_vectors_that_are_none_are_refused(name: str) -> None:
    for wrong, rule in (
        (torch.zeros(3, 2), r"of shape \(10, k\) with k >= 1, got \(3, "),
        (torch.zeros(10, 0), r"of shape \(10,.* got \(10, 0\)"),
        (torch.zeros(10, 2, dtype=torch.complex128), "real, got torch.complex128"),
        (torch.full((10, 2), torch.nan), "finite"),
    ):
        with refusal(f"{name} must be {rule}"):
            ASKED[name](objective_of("linear"), wrong)
