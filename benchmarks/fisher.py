"""The Fisher spectrum through the layer-wise Gram matrix beside a Jacobian by automatic differentiation, in one run.

    python -m benchmarks.fisher

Both give K = J J^T of a ReLU network of three layers. The Jacobian is that of `torch.func`: `vmap` over the samples of
`jacrev` over the outputs. Seconds are CPU seconds on one thread, the best of three; memory is
the peak of what torch allocates, both from its profiler. A Jacobian beyond the limit is not formed; the table gives its
size with a "~".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.timing import machine, seconds, table
from simulate.monte_carlo import Block, fixture, one_thread
from simulate.wide import fisher_gram, signals
from simulate.wide.signals import WideNetwork

ACTIVATION = "relu"
DEPTH = 3
LARGEST = 2**31
"""Bytes of a Jacobian that is still formed."""


class Size(NamedTuple):
    """Units of a layer, samples and outputs."""

    width: int
    samples: int
    outputs: int

    def __str__(self) -> str:
        return f"M = {self.width}, T = {self.samples}, C = {self.outputs}"


SIZES = (
    Size(100, 100, 1), Size(100, 100, 10), Size(300, 300, 1), Size(300, 50, 10), Size(1000, 1000, 1),
    Size(1000, 1000, 10),
)  # fmt: skip


def network_of(size: Size) -> WideNetwork:
    """One network of that size with its inputs."""
    return signals.wide_network(
        Block((fixture(0, str(size)),)),
        widths=(size.width,) * DEPTH + (size.outputs,),
        samples=size.samples,
        weight_variance=2.0,
        bias_variance=0.1,
    )


def by_layers(network: WideNetwork) -> Tensor:
    """K of shape (C, C, T, T), ours."""
    return fisher_gram.gram(network, ACTIVATION)[0]


def by_jacobian(network: WideNetwork) -> Tensor:
    """K of shape (C, C, T, T) from the Jacobian of `torch.func`."""
    parameters = [t[0] for t in (*network.weights, *network.biases)]

    def outputs(theta: list[Tensor], x: Tensor) -> Tensor:
        for layer in range(DEPTH):
            x = theta[layer] @ (torch.relu(x) if layer else x) + theta[DEPTH + layer]
        return x

    parts = torch.func.vmap(torch.func.jacrev(outputs), in_dims=(None, 0))(parameters, network.inputs[0])
    flat = torch.cat([part.flatten(2) for part in parts], dim=2).transpose(0, 1).flatten(0, 1)
    size = network.outputs, network.inputs.shape[1]
    return (flat @ flat.mT).view(*size, *size).transpose(1, 2)


def peak_bytes(function: Callable[[], object]) -> int:
    """Most bytes that torch holds during a call, beside what is there before."""
    cpu = torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[cpu], profile_memory=True) as profile:
        function()
    used = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            used += event.nbytes()
            peak = max(peak, used)
    return peak


def comparison(sizes: tuple[Size, ...] = SIZES, largest: int = LARGEST) -> Iterator[list[str]]:
    """Rows: seconds and memory of both, and by how much their Gram matrices differ."""
    for size in sizes:
        network = network_of(size)
        here, there = partial(by_layers, network), partial(by_jacobian, network)
        own = seconds(here)
        row = [str(size), f"{own:.3g}", _mib(peak_bytes(here))]
        parameters = sum(t[0].numel() for t in (*network.weights, *network.biases))
        needed = 8 * parameters * size.outputs * size.samples
        if needed > largest:
            yield [*row, "-", f"~{_mib(needed)}", "-"]
            continue
        other, expected = seconds(there), there()
        row += [f"{other:.3g} ({other / own:.0f} x)", _mib(peak_bytes(there))]
        yield [*row, f"{float((here() - expected).abs().max() / expected.abs().max()):.0e}"]


def _mib(size: float) -> str:
    return f"{size / 2**20:.3g} MiB"


def main() -> None:
    """Print the table."""
    print(machine("torch"), end="\n\n")
    head = ["K = J J^T", "CPU s", "memory", "vmap(jacrev) CPU s", "its memory", "rel. difference"]
    with one_thread():
        by_layers(network_of(SIZES[0]))  # torch starts up
        print(table(head, comparison(SIZES)))


if __name__ == "__main__":
    main()
