"""Devices and workers: what is there, and how many."""

import pytest
import torch

from simulate.monte_carlo import default_workers, devices, resolve_device
from tests.refusals import refusal


def gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


@pytest.mark.parametrize(
    ("count", "here", "names", "absent"),
    [
        (0, True, {"auto": "cpu"}, ("cuda", "cuda:0")),
        (2, True, {"auto": "cuda", "cuda": "cuda", "cuda:0": "cuda:0", "cuda:1": "cuda:1"}, ("cuda:2",)),
        (0, False, {"cuda": "cuda"}, ()),  # a cluster may have what is not here
    ],
)
def test_devices_are_those_that_are_there(
    count: int, here: bool, names: dict[str, str], absent: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus(monkeypatch, count)
    for name, found in (names | {"cpu": "cpu"}).items():
        assert resolve_device(name, here=here) == found
    for name in absent:
        with refusal(f"device '{name}' not found, GPUs on this machine: {count}; use"):
            resolve_device(name)
    for name in ("gpu", "cpu:0", "cuda:", "cuda:x", "cuda:-1", "cuda:²", "", "CPU", "cuda\n"):
        with refusal(r"device must be auto, cpu, cuda or cuda:<index>, got"):
            resolve_device(name, here=here)


@pytest.mark.parametrize(("workers", "count"), [(1, 1), (4, 1), (3, 2), (2, 4), (8, 4)])
def test_no_gpu_is_dealt_out_more_than_once_over(workers: int, count: int) -> None:
    shares = [devices.dealt_out(i, workers, count) for i in range(workers)]
    taken = [sum(s.memory for s in shares if s.device == f"cuda:{gpu}") for gpu in range(count)]
    assert taken == pytest.approx([1.0] * min(workers, count) + [0.0] * (count - workers))
    # one that stands in for a lost one has a GPU too
    assert devices.dealt_out(5, 2, 2) == ("cuda:1", 1.0)


def test_a_worker_runs_on_the_gpu_that_is_dealt_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = []
    gpus(monkeypatch, 2)
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda *bound: bounds.append(bound))
    monkeypatch.setattr(devices, "_pool_size", 4)
    assert devices.own_gpu("cuda") == "cuda"  # no worker: the process itself
    devices._bound_memory.cache_clear()
    process = type("Process", (), {"_identity": (4,)})
    monkeypatch.setattr(devices.multiprocessing, "current_process", process)
    for name, own in (("cuda", "cuda:1"), ("cuda", "cuda:1"), ("cuda:0", "cuda:0"), ("cpu", "cpu")):
        assert devices.own_gpu(name) == own
    assert bounds == [(0.5, torch.device("cuda:1"))]
    devices._bound_memory.cache_clear()


def test_there_is_a_worker_for_each_gpu_or_core(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 3)
    assert default_workers("cuda") == 3 and default_workers("cuda:2") == 1 and default_workers() >= 1
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert default_workers() == 1
