"""Networks for Kronecker factors, and the factors by loops over samples and cotangents with autograd alone."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from simulate.objectives import Objective
from simulate.operators import CurvatureOperator, empirical_fisher, gauss_newton

N = 6


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def built(build: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """Build a module in double precision with a fixed seed."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(seed)
        return build().double()


def perceptron() -> Objective:
    model = built(lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)))
    return Objective(model, (drawn(1, N, 4), torch.arange(N) % 3), nn.CrossEntropyLoss())


def convolutions() -> Objective:
    model = built(
        lambda: nn.Sequential(
            nn.Conv2d(2, 3, 2, padding=1, stride=2), nn.ReLU(), nn.Conv2d(3, 2, 2, bias=False), nn.Tanh(),
            nn.Flatten(), nn.Linear(8, 2),
        )
    )  # fmt: skip
    return Objective(model, (drawn(2, N, 2, 4, 4), drawn(3, N, 2)), nn.MSELoss())


def tokens() -> Objective:
    """A layer on every token, and a loss that is the mean over samples and tokens."""
    model = built(lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    return Objective(
        model,
        (drawn(4, N, 3, 3), torch.arange(3 * N).view(N, 3) % 2),
        lambda z, y: nn.functional.cross_entropy(z.mT, y),
    )


class Mixed(nn.Module):
    """Layers with factors beside layers without, and one that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.grouped = nn.Conv1d(4, 4, 2, groups=2)
        self.norm = nn.LayerNorm(4)
        self.twice = nn.Linear(4, 4)
        self.up = nn.ConvTranspose1d(2, 1, 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.norm(self.grouped(self.embed(x).mT).mT)
        return self.up(self.twice(self.twice(hidden).tanh()).tanh()).flatten(1)


def mixed() -> Objective:
    return Objective(built(Mixed), (torch.arange(3 * N).view(N, 3) % 5, drawn(5, N, 5)), nn.MSELoss())


KINDS = {"perceptron": perceptron, "convolutions": convolutions, "tokens": tokens, "mixed": mixed}


def by_loops(objective: Objective, layer: str, kind: str, sharing: str) -> tuple[Tensor, Tensor]:
    """A and B of a linear layer or a convolution without groups, its bias last."""
    model = objective.model
    module, seen = model.get_submodule(layer), list[tuple[Tensor, Tensor]]()
    handle = module.register_forward_hook(lambda _, inputs, output: seen.append((inputs[0].detach(), output)))
    a = b = torch.zeros(())
    ((x, y),) = [(batch.inputs, batch.targets) for batch in objective.batches()]
    for row, target in zip(x.split(1), y.split(1), strict=True):
        seen.clear()
        outputs = model(row)

        def loss(z: Tensor, target: Tensor = target) -> Tensor:
            return objective.criterion(z, target)

        cotangents = torch.func.grad(loss)(outputs.detach())[None]
        if kind == "gauss-newton":
            bend = torch.autograd.functional.hessian(loss, outputs.detach())
            values, vectors = torch.linalg.eigh(bend.reshape(outputs.numel(), -1))
            cotangents = (vectors * values.clamp(min=0).sqrt()).mT.reshape(-1, *outputs.shape)
        inputs = torch.cat([_positions(module, i) for i, _ in seen])
        calls = [output for _, output in seen]
        axis = 1 if isinstance(module, nn.Conv2d) else -1
        own = [
            torch.cat(
                [g.movedim(axis, -1).flatten(0, -2) for g in torch.autograd.grad(outputs, calls, c, True)]
            )
            for c in cotangents
        ]
        if sharing == "reduce":
            inputs, own = inputs.mean(0, keepdim=True), [g.sum(0, keepdim=True) for g in own]
        a = a + inputs.T @ inputs / len(inputs) / len(y)
        b = b + sum(g.T @ g for g in own) * objective.share
    handle.remove()
    return a, b


def _positions(module: nn.Module, inputs: Tensor) -> Tensor:
    if isinstance(module, nn.Conv2d):
        shape = {"padding": module.padding, "stride": module.stride}
        inputs = nn.functional.unfold(inputs, module.kernel_size, **shape).mT
    rows = inputs.flatten(0, -2)
    return rows if module.bias is None else torch.cat([rows, torch.ones(len(rows), 1).double()], 1)


def matrix_of(objective: Objective, kind: str) -> CurvatureOperator:
    """Return the matrix that factors of this kind approximate."""
    return (gauss_newton if kind == "gauss-newton" else empirical_fisher)(objective)
