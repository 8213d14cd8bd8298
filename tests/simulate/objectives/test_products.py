"""Products by forward mode against those by reverse mode, and what forward mode does not give."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from simulate.objectives import Objective
from simulate.objectives.derivatives import UnrecordedError, recorded
from simulate.objectives.products import Kept
from simulate.operators import empirical_fisher, gauss_newton, h_term, hessian
from tests.simulate.models_and_data import BUILDERS, case, dense_hessian
from tests.simulate.objectives.sweep.listing import own
from tests.simulate.objectives.sweep.stateful import Twice
from tests.simulate.small_perceptrons import assert_same

OUTPUTS = (
    "absolute error",
    "convolution",
    "cross-entropy",
    "inputs by name",
    "linear",
    "tied",
    "transformer",
)
"""All models, one of them with a loss of straight pieces too."""

MATRICES = {"hessian": hessian, "h-term": h_term, "outputs": gauss_newton}
X = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.arange(6) % 3


@pytest.fixture(autouse=True)
def _by_forward_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it takes longer than it saves."""
    monkeypatch.setattr(Kept, "_forward_is_faster", lambda _: True)


def vectors(dim: int) -> Tensor:
    return torch.randn(dim, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def objective(model: nn.Module, loss: Any = None, **options: Any) -> Objective:
    return Objective(model.double(), (X, LABELS), loss or nn.CrossEntropyLoss(), **options)


def network(*layers: nn.Module) -> nn.Module:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 5), *layers, nn.Linear(5, 3))


def by_reverse_mode(matrix: Callable[[Objective], Any], name: str, of: Objective) -> Tensor:
    other = of.with_data(of.data)
    other.recordable = {name: False}
    return matrix(other) @ vectors(of.dim)


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, "hessian") for name in sorted(BUILDERS)), *((name, "outputs") for name in OUTPUTS)],
)
def test_forward_and_reverse_mode_give_the_same(name: str, kind: str) -> None:
    of = case(name).objective()
    found = MATRICES[kind](of) @ vectors(of.dim)
    assert of.recordable[kind] == bool(
        found.any()
    )  # where all is zero nothing tells whether forward mode is right
    assert_same(found + 1, by_reverse_mode(MATRICES[kind], kind, of) + 1)


def test_what_is_known_of_the_outputs_holds_for_every_matrix_about_them() -> None:
    of = case("cross-entropy").objective()
    _ = gauss_newton(of) @ vectors(of.dim)
    of.recordable["outputs"] = False
    assert_same(empirical_fisher(of).dense(), empirical_fisher(case("cross-entropy").objective()).dense())


class Wrong(Twice):
    """Differentiated twice on the way back, with a forward mode that is wrong."""

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        return 2 * tangent


def through(call: Callable[[Tensor], Tensor]) -> Any:
    return own(lambda _, x: call(x))()


def _branching(x: Tensor) -> Tensor:
    return x.tanh() if float(x.detach().sum()) > -1e9 else x


def _in_place(x: Tensor) -> Tensor:
    y = x.sin() + x
    y.mul_(x)
    y[:, 0] = x[:, 1]
    return y


@pytest.mark.parametrize("call", [Twice.apply, Wrong.apply])
@pytest.mark.parametrize("kind", MATRICES)
def test_where_there_is_no_forward_mode_the_graph_is_differentiated(kind: str, call: Any) -> None:
    of = objective(network(through(call)))
    found = MATRICES[kind](of) @ vectors(of.dim)
    assert not of.recordable[kind]
    assert_same(found, MATRICES[kind](objective(network(nn.Tanh()))) @ vectors(of.dim))


@pytest.mark.parametrize("call", [_branching, _in_place])
def test_any_code_of_the_model_is_differentiated(call: Any) -> None:
    of = objective(network(through(call)))
    assert_same(hessian(of).dense(), dense_hessian(of))


def test_a_batch_without_forward_mode_draws_as_if_it_had_not_been_tried() -> None:
    """Forward mode fails for the second batch alone, which is larger, after dropout has drawn."""
    layers = nn.Dropout(0.5), through(lambda x: Twice.apply(x) if len(x) > 6 else x.tanh())
    data = [(X, LABELS), (X.repeat(2, 1), LABELS.repeat(2)), (X, LABELS)]
    of = Objective(network(*layers).double(), data, nn.CrossEntropyLoss(), training=True)
    found = hessian(of) @ vectors(of.dim)
    assert not of.recordable["hessian"]
    plain = Objective(network(layers[0], nn.Tanh()).double(), data, nn.CrossEntropyLoss(), training=True)
    assert_same(found, hessian(plain) @ vectors(of.dim))
    assert plain.recordable["hessian"]


def _looked_up(m: Any, x: Tensor) -> Tensor:
    found = (
        functional.embedding(x, m.words.weight, padding_idx=0) if m.words.padding_idx is None else m.words(x)
    )
    return m.last(found.mean(1).tanh())


WORDS = torch.tensor([[1, 2, 3], [4, 5, 6], [1, 5, 2], [3, 0, 0], [2, 6, 0], [4, 0, 0]])
"""Nothing stands in the first samples, which are those that forward mode is tried on."""


@pytest.mark.parametrize("padding", [0, None])
@pytest.mark.parametrize("kind", MATRICES)
def test_padding_has_no_derivative(kind: str, padding: int | None) -> None:
    """Told by the module or in the call."""
    words, last = (lambda: nn.Embedding(7, 4, padding_idx=padding)), (lambda: nn.Linear(4, 3))
    model = own(_looked_up, words=words, last=last)().double()
    with torch.no_grad():
        model.words.weight[0] = torch.randn(4, dtype=torch.float64)  # as trained networks may have it
    of = Objective(model, (WORDS, LABELS), nn.CrossEntropyLoss())
    assert_same(MATRICES[kind](of) @ vectors(of.dim), by_reverse_mode(MATRICES[kind], kind, of))


def test_what_is_told_of_a_matrix_of_zeros_is_nothing() -> None:
    """G of an L1 loss is zero by every way, a wrong one too; the gradients of its samples are not."""

    def of(*layers: nn.Module) -> Objective:
        targets = functional.one_hot(LABELS, 3).double()
        return Objective(network(*layers).double(), (X, targets), nn.L1Loss())

    wrong, right = of(through(Wrong.apply)), of(nn.Tanh())
    _ = gauss_newton(wrong) @ torch.ones(wrong.dim)
    assert_same(empirical_fisher(wrong).dense(), empirical_fisher(right).dense())


def test_data_that_are_written_into_between_products_are_refused() -> None:
    x = X.clone()
    matrix = hessian(Objective(network(nn.Tanh()).double(), (x, LABELS), nn.CrossEntropyLoss()))
    _ = matrix @ torch.ones(matrix.dim)
    x.add_(1.0)
    with pytest.raises(ValueError, match="data must not change while products are taken"):
        _ = matrix @ torch.ones(matrix.dim)


def _tangent(x: Tensor) -> Tensor:
    return torch.autograd.forward_ad.unpack_dual(x).tangent


@pytest.mark.parametrize(
    "call", [lambda x: x * float(_tangent(x).sum()), lambda x: torch.zeros(3).copy_(_tangent(x))]
)
def test_what_does_not_repeat_from_a_list_is_refused(call: Any) -> None:
    """A number that is read off changes, and changes written into values."""
    with pytest.raises(UnrecordedError):
        recorded(lambda x: [call(x[0])], [torch.ones(3)], [torch.ones(3)])


def test_values_written_into_after_they_were_used_are_refused() -> None:
    value = torch.ones(3)

    def product(x: Any) -> list[Tensor]:
        found = x[0] * value
        value.add_(1.0)
        return [found]

    with pytest.raises(UnrecordedError, match="values are written into after they were used"):
        recorded(product, [torch.ones(3)], [torch.ones(3)])


def test_conjugates_are_told_from_what_they_are_of() -> None:
    """Views of one memory with one shape and stride."""

    def function(at: tuple[Tensor, ...]) -> list[Tensor]:
        z = at[0] * (1 + 2j)
        other = z.conj()
        return [(z * (3 - 1j) + other * 5j).real, z.imag]

    x, v = torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([1.0, 10.0], dtype=torch.float64)
    first, second = recorded(function, [x], [v]).program([v])
    assert_same(first, 15 * v)  # (1 + 2i)(3 - i) + (1 - 2i) 5i = 15 + 10i
    assert_same(second, 2 * v)
