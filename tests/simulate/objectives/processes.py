"""Measurements by the processes of a group, each of its samples, and by one process of all samples."""

import atexit
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import torch
from numpy.random import default_rng
from torch import Tensor, distributed, nn
from torch.multiprocessing.spawn import start_processes

from simulate import operators, spectra
from simulate.eigenvalues import extremes
from simulate.factors.kronecker import kfac
from simulate.modules import diagonals, hessian_variance
from simulate.modules.empirical_kernel import kernel_of
from simulate.modules.projected import projected
from simulate.modules.sample_directions import SampleDirections, sample_directions
from simulate.objectives import Objective
from simulate.objectives.ranks import Ranks
from tests.interpreters import LOADED
from tests.simulate.objectives.losses import network

SHARDS = {
    "unequal": ((5, 11), (7,)),
    "one has none": ((9, 14), ()),
    "of a sum": ((3,), (10, 10)),
}
"""Sizes of the batches of each process."""

MATRICES = (
    operators.hessian,
    operators.gauss_newton,
    operators.h_term,
    operators.fisher,
    operators.empirical_fisher,
)


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    targets = torch.randint(3, (23,), generator=generator)
    targets[[1, 8, 9, 20]] = -100
    return torch.randn(23, 4, generator=generator, dtype=torch.float64), targets


def loss(case: str) -> nn.Module:
    """Return a loss that weighs classes and ignores some, so that its denominator is not the number of rows."""
    weights = torch.tensor([1.0, 0.3, 2.5], dtype=torch.float64)
    return nn.CrossEntropyLoss(weights, reduction="sum" if case == "of a sum" else "mean")


def objective(case: str, rank: int | None = None, **options: Any) -> Objective:
    """Return the objective of one process of a group, or of all samples in one batch."""
    inputs, targets = data()
    sizes = [size for shard in SHARDS[case] for size in shard]
    batches = list(zip(inputs.split(sizes), targets.split(sizes), strict=True))
    if rank is None:
        return Objective(network(), [(inputs, targets)], loss(case), **options)
    first = sum(map(len, SHARDS[case][:rank]))
    own = batches[first : first + len(SHARDS[case][rank])]
    return Objective(network(), own, loss(case), group=distributed.group.WORLD, **options)


def measured(of: Objective) -> dict[str, Any]:
    """Numbers of all kinds that there are of an objective."""
    rng = default_rng(1)
    vectors = torch.from_numpy(rng.standard_normal((2, of.dim)))
    hessian, forms = operators.hessian(of), hessian_variance.quadratic_forms
    columns = np.linalg.qr(vectors.mT.numpy())[0]
    directions = sample_directions(of, columns, default_rng(2), probes=4, heavy=3)
    parts = directions.statistics._asdict() | {
        "overlaps": np.abs(directions.statistics.overlaps)  # signs are of eigenvectors
    }
    return {
        **{make.__name__: make(of)(vectors) for make in MATRICES},
        **{f"samples' {name}": part for name, part in parts.items()},
        "value": of.value(),
        "gradient": of.gradient(),
        "share": of.share,
        "samples": float(of.samples),
        "coupling": of.coupling,
        "sums": of.sums(),
        "rows": of.rows,
        "renewed": of.at_current_parameters().value(),
        "eigenvalues": extremes(hessian, rng, largest=2, smallest=1).values,
        "trace": spectra.trace(hessian, rng, probes=4).value,
        "diagonal of G": diagonals.gauss_newton_diagonal(of),
        "diagonal of H": diagonals.hessian_diagonal(of),
        "forms": forms(of, vectors.mT),
        "variance": hessian_variance.total_variance(of, rng, probes=2).value,
        "heavy": directions.heavy,
        "samples' forms": directions.forms,
        "projected": torch.stack(tuple(projected(of, vectors.mT))),
        "kfac": kfac(of) @ vectors.mT,
    }


TURN = "it got its turn"
"""File of the parent of two processes."""


def in_two_processes(folder: Path) -> list[Any]:
    """Return the results of `all_cases` in each of two processes, whose parent then opens a group of its own."""
    parent = LOADED.Process(target=_both, args=(folder,))
    parent.start()
    parent.join()
    assert parent.exitcode == 0
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(2)]


def _both(folder: Path) -> None:
    atexit._clear()  # of what was loaded before, which may take its time
    start_processes(_one, (folder,), nprocs=2, start_method="fork")
    with group_of_one(folder) as group:
        Ranks(group).gathered("a word", "here")
    Thread(target=lambda: (time.sleep(0.1), (folder / TURN).touch()), daemon=True).start()
    atexit._run_exitfuncs()
    os._exit(0)  # processes of this kind end without exit functions


def _one(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=2)
    torch.save(all_cases(rank), folder / f"{rank}.pt")
    distributed.destroy_process_group()


# --- what is refused ----------------------------------------------------------------------------------------------


def all_cases(rank: int) -> dict[str, Any]:
    """The numbers of each way to deal out the samples, then what is refused."""
    found = {case: measured(objective(case, rank)) for case in SHARDS}
    return found | {"refused": dict(_refused(rank))}


def _refused(rank: int) -> Iterator[tuple[str, str]]:
    of = objective("unequal", rank)
    vectors = torch.ones(1, of.dim, dtype=torch.float64)
    yield "vectors", _told(lambda: operators.hessian(of)(vectors + rank))
    signs = 2.0 * default_rng(rank).integers(0, 2, (1, of.dim)) - 1.0
    signs[0, 0] *= np.prod(signs)  # as many with a minus, even or odd, in both
    yield "signs", _told(lambda: operators.hessian(of)(torch.from_numpy(signs)))
    yield "forms", _told(lambda: hessian_variance.bilinear_forms(of, vectors.mT, vectors[0] + rank))
    yield "order", _told(of.gradient if rank else lambda: operators.hessian(of)(vectors))
    yield "directions", _told(lambda: _directions(of, seed=rank))
    yield "kernel", _told(lambda: kernel_of(of))
    yield "training", _told(lambda: objective("unequal", rank, training=True))
    yield "chunk", _told(lambda: objective("unequal", rank, chunk=0 if rank else 2))
    yield "parameters", _told(lambda: _with_others(rank))
    yield "buffers", _told(lambda: _with_others(rank, buffers=True))
    yield "raises", _told(lambda: _with(_raising, rank).gradient())
    yield "coupled", _told(lambda: _with(_coupling, rank).gradient())
    yield "passes", _told(lambda: _with(nn.CrossEntropyLoss(), rank, changing=True).value())
    yield "still works", _told(lambda: of.value())
    if rank == 0:  # the other one is gone
        yield "lost", _told(lambda: of.value())


def _directions(of: Objective, seed: int) -> SampleDirections:
    return sample_directions(of, torch.eye(of.dim, 1), default_rng(seed), probes=4)


def _told(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:  # whatever it is, it is told
        return f"{type(error).__name__}: {error}"
    return "nothing"


def _with(criterion: Any, rank: int, *, changing: bool = False) -> Objective:
    inputs, targets = (part[rank::2].clone() for part in data())
    targets[targets < 0] = 0
    own = _Changing(inputs, targets) if changing and rank else [(inputs, targets)]
    return Objective(network(), own, criterion, group=distributed.group.WORLD)


class _Changing:
    """Data that are others at the third pass."""

    def __init__(self, inputs: Tensor, targets: Tensor) -> None:
        self._own, self._passes = (inputs, targets), 0

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        self._passes += 1
        yield self._own[0] + (self._passes > 2), self._own[1]


def _raising(outputs: Tensor, targets: Tensor) -> Tensor:
    """Fails with all samples of the second process, which has eleven."""
    if len(targets) == 11:
        raise KeyError("eleven")
    return nn.functional.cross_entropy(outputs, targets)


def _coupling(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs, targets).sqrt()


def _with_others(rank: int, *, buffers: bool = False) -> Objective:
    """Parameters, or buffers, that are not the same in all processes."""
    model = nn.Sequential(network(), nn.BatchNorm1d(3, dtype=torch.float64))
    with torch.no_grad():
        if buffers:
            model.get_buffer("1.running_mean").fill_(rank)
        else:
            model.get_parameter("0.0.weight")[0, 0] += 1e-15 * rank
    return Objective(model, data(), loss(""), group=distributed.group.WORLD)


@contextmanager
def group_of_one(folder: Path) -> Iterator[Any]:
    """Run within a group of this process only."""
    distributed.init_process_group("gloo", f"file://{folder}/alone", rank=0, world_size=1)
    try:
        yield distributed.group.WORLD
    finally:
        distributed.destroy_process_group()
