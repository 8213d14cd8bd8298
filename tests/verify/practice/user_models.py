"""Models and data in the folder of a user."""

from pathlib import Path
from typing import Any

import numpy as np

from verify.practice import loading
from verify.practice.loading import load_problem

N = 12


SOURCE = """
import random
import sys
import numpy as np
import torch
from torch import nn

print("printed while importing")

def build():
    print("printed while building")
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 3), nn.ReLU(), nn.Linear(3, 10))

def drawn():
    net = nn.Linear(64, 10)
    net.bias.data[0] += float(np.random.standard_normal())
    net.bias.data[1] += random.random()
    return net

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 10)

    def forward(self, x):
        print("printed while running")
        return self.layer(x.flatten(1))

class Fails(Net):
    def forward(self, x):
        raise KeyError("no such thing")

class Pair(Net):
    def forward(self, x):
        return self.layer(x.flatten(1)), x

class Few(Net):
    def forward(self, x):
        return self.layer(x.flatten(1)).sum()

class Full(Net):
    def forward(self, x):
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")

class Noisy(Net):
    def forward(self, x):
        return self.layer(x.flatten(1) + torch.randn(()))

class Lazy(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.LazyLinear(10))

class Cut(Net):
    def forward(self, x):
        return self.layer(x.flatten(1)).detach()

class Uncopied(Net):
    def __deepcopy__(self, memo):
        raise TypeError("holds a lock")

def wide():
    return nn.Linear(63, 10)

def on_meta():
    with torch.device("meta"):
        return Net()

def needs(width):
    return Net()

def stops():
    sys.exit(3)

def word():
    return "a model"

def infinite():
    net = Net()
    net.layer.weight.data[0, 0] = float("inf")
    return net

def one():
    return nn.Linear(64, 1)

def empty():
    return nn.Flatten()

def cube(outputs, targets):
    return (outputs**4).mean()

def rows(outputs, targets):
    return (outputs**2).sum(1)

def summed(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, reduction="sum")

def nothing(outputs, targets):
    return (outputs.mean() * 0).log() - (outputs.mean() * 0).log()

class Loss(nn.Module):
    def forward(self, outputs, targets):
        return outputs.square().mean()

net = Net()
number = 3
"""


def furnish(folder: Path) -> None:
    """Models and data of a user."""
    (folder / "user_net.py").write_text(SOURCE)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, 64))
    save("data", x, np.arange(N) % 10)
    save("values", x, rng.standard_normal((N, 10)))
    save("numbers", x, rng.standard_normal(N))


def save(name: str, x: Any, y: Any, names: tuple[str, str] = ("x_train", "y_train")) -> None:
    np.savez(f"{name}.npz", **{names[0]: np.asarray(x), names[1]: np.asarray(y)})


def load(model: str = "Net", data: str = "data.npz", **options: Any) -> loading.Problem:
    return load_problem(f"user_net.py:{model}", data, **options)
