"""Verdicts of `losscurv.certify` on numbers (to 5 %) and operators (to 0.1 %) of other libraries: ten networks.

Each number is computed as the documentation of its library shows, in double precision; a loader gives batches of 20, 20
and 10 samples. Eigenvalues are compared in modulus. The claim "differences" confirms the Hessian that decides: it is
made of central differences of gradients. Needs curvlinops-for-pytorch, hessian-eigenthings, PyHessian, landscaper,
laplace-torch and nngeometry; without torchvision.

Run: python -m benchmarks.certify
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import losscurv

LIBRARIES = (
    "curvlinops hessian_eigenthings pyhessian landscaper.hessian laplace.curvature nngeometry.metrics"
    " nngeometry.object"
)
LAYERS = "Tanh ReLU GELU SiLU ELU Softplus Sigmoid Identity LayerNorm BatchNorm1d"


def claims(net: nn.Module, loss: Any, whole: Any) -> dict[str, Callable[[], Any]]:
    """Return functions that compute claims, by library, quantity and matrix."""
    c, e, p, s, g, n, o = map(import_module, LIBRARIES.split())
    batches = DataLoader(TensorDataset(*whole), 20)
    known = net, [whole], e.supervised_loss(loss)
    power, again = p.hessian(net, loss, whole, cuda=False), s.PyHessian(net, loss, batches, "cpu")
    order = {name: p.detach() for name, p in net.named_parameters()}

    def torch_func() -> torch.Tensor:
        blocks: Any = torch.func.hessian(
            lambda own: loss(torch.func.functional_call(net, own, whole[:1]), whole[1])
        )(order)
        rows = [torch.cat([blocks[a][b].reshape(order[a].numel(), -1) for b in order], 1) for a in order]
        return torch.cat(rows)

    return {
        "torch.func operator hessian": torch_func,
        "curvlinops operator hessian": lambda: c.HessianLinearOperator(
            net, loss, [*net.parameters()], batches
        ),
        "eigenthings-batches operator hessian": lambda: e.HessianOperator(net, batches, known[2]),
        "eigenthings eigenvalues hessian": lambda: e.lanczos(e.HessianOperator(*known), k=5).eigenvalues,
        "PyHessian eigenvalues hessian": lambda: power.eigenvalues()[0],
        "PyHessian trace hessian": lambda: np.mean(power.trace()),
        # its weights are a matrix for each run
        "landscaper density hessian": lambda: [
            np.real(part).reshape(-1, 40).sum(0) for part in again.density(40)
        ],
        "laplace operator gauss_newton": lambda: g.CurvlinopsGGN(net, "classification").full(*whole)[1],
        "curvlinops operator empirical_fisher": lambda: c.EFLinearOperator(
            net, loss, [*net.parameters()], batches
        ),
        "nngeometry operator fisher": lambda: n.FIM(net, batches, o.PMatDense).to_torch(),
        "differences operator hessian": lambda: e.HessianOperator(*known, method="finite_difference"),
    }


def main() -> None:
    """Print each verdict, or the error of the library."""
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    for layer in LAYERS.split():
        middle = getattr(nn, layer)(*[10] * ("Norm" in layer))
        net = nn.Sequential(nn.Linear(16, 10), middle, nn.Linear(10, 3)).eval()
        whole, loss = (torch.randn(50, 16), torch.randint(3, (50,))), nn.CrossEntropyLoss()
        objective = losscurv.Objective(net, whole, loss)
        for name, claim in claims(net, loss, whole).items():
            _, quantity, matrix = name.split()
            off = 0.001 if quantity == "operator" else 0.05
            try:
                said = losscurv.certify(
                    claim(),
                    objective,
                    quantity=quantity,
                    matrix=matrix,
                    which="LM",
                    tolerance=off,
                    budget=1e4,
                ).headline
            except Exception as error:
                said = error
            print(layer, name, said, flush=True)


if __name__ == "__main__":
    main()
