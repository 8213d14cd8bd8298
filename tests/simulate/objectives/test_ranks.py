"""Processes that share the samples measure what one process measures of all, each the same; or all are told why not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from torch import nn

from simulate.objectives import Objective
from simulate.objectives.ranks import Ranks
from tests.refusals import refusal
from tests.simulate.objectives import processes


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("two")
    return folder, processes.in_two_processes(folder)


@pytest.mark.slow
@pytest.mark.parametrize("case", processes.SHARDS)
def test_two_processes_measure_what_one_does(case: str, ran: Any) -> None:
    """By samples, neither by processes, by batches nor by rows; and each has the same to the last bit."""
    first, second = (each[case] for each in ran[1])
    for name, number in processes.measured(processes.objective(case)).items():
        assert np.array_equal(np.asarray(first[name]), np.asarray(second[name])), name
        if isinstance(number, str | int | bool):  # no matter of rounding
            assert first[name] == number, name
        else:
            scale = np.abs(np.asarray(number)).max()
            assert_allclose(first[name], number, rtol=0, atol=1e-9 * scale, err_msg=name)


def both(told: str) -> tuple[str, str]:
    return f"ValueError: {told}", f"ValueError: {told}"


VECTORS = both(
    "vectors must be the same in all processes of a group, got others: draw them from generators of"
)
PARAMETERS = both("parameters must be the same in all processes of a group, got others: load one checkpoint")
CHUNK = "chunk must be a positive integer, got 0"
PASSES = "data must be the same at every pass, got 11 others"
REFUSED = {
    "vectors": VECTORS,
    "signs": VECTORS,
    "forms": VECTORS,
    "directions": VECTORS,
    "order": both("processes of a group must make the same calls in the same order, got a "),
    "kernel": both("group must be None for a quantity that is not a sum over samples"),
    "training": both("training must be False with a group"),
    "chunk": (f"ValueError: process 1 of 2: {CHUNK}", f"ValueError: {CHUNK}"),
    "parameters": PARAMETERS,
    "buffers": PARAMETERS,
    "raises": ("ValueError: process 1 of 2: KeyError: 'eleven'", "KeyError: 'eleven'"),
    "coupled": both("loss must be a mean over samples, each for itself"),
    "passes": (f"ValueError: process 1 of 2: {PASSES}", f"OtherDataError: {PASSES}"),
    "still works": ("nothing", "nothing"),
    "lost": ("LostProcessError: processes of a group must all go on to the end, got one that no longer", ""),
}
"""Errors in both processes, by case. If one process fails, the other quotes it; if one is killed, one error remains."""


@pytest.mark.slow
@pytest.mark.parametrize("what", REFUSED)
def test_what_one_process_cannot_do_ends_all(what: str, ran: Any) -> None:
    for told, expected in zip((each["refused"].get(what, "") for each in ran[1]), REFUSED[what], strict=True):
        assert told.startswith(expected) and "\n" not in told


@pytest.mark.parametrize("group", [3, "nccl", object()])
def test_what_is_no_group_is_refused(group: Any) -> None:
    with refusal(r"^group must be a process group of torch\.distributed .* got "):
        Ranks(group)


@pytest.mark.filterwarnings("ignore:DTensor random operators:UserWarning")  # of torch 2.5, to itself
def test_a_group_of_one_process_is_that_process_and_takes_the_module_itself(tmp_path: Path) -> None:
    """Parameters that are sharded have no second derivatives in torch; those of wrappers synchronise on their own."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    (x, y), loss = processes.data(), nn.CrossEntropyLoss()
    with processes.group_of_one(tmp_path) as group:
        grouped = Objective(processes.network(), (x, y), loss, group=group)
        value, alone = grouped.value(), grouped.with_data([(x[:4], y[:4])], alone=True)
        assert value == Objective(processes.network(), (x, y), loss).value()
        assert (alone.ranks.several, alone.rows) == (False, 4)

        wrapped, sharded = nn.parallel.DistributedDataParallel(nn.Linear(4, 3)), nn.Linear(4, 3)
        mesh = init_device_mesh("cpu", (1,))
        sharded.weight = nn.Parameter(distribute_tensor(sharded.weight.detach(), mesh, [Shard(0)]))
        for model, message in (
            (wrapped, r"^model must be the module itself, got a DistributedDataPar"),
            (sharded, r"^model must have whole parameters .* got 'weight' sharded"),
        ):
            with refusal(message):
                Objective(model, (x, y), loss)


@pytest.mark.slow
def test_a_thread_of_a_group_has_its_turn_before_python_ends(ran: Any) -> None:
    """One that comes later, to let go of the tensors of the last exchange, aborts the process with its work done."""
    assert (ran[0] / processes.TURN).exists()
