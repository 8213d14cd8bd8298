"""Devices and workers: what is there, and how many."""

import pytest
import torch

from simulate import monte_carlo
from simulate.monte_carlo import devices


@pytest.mark.parametrize(("present", "auto"), [(False, "cpu"), (True, "cuda")])
def test_auto_takes_what_is_there(present: bool, auto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: present)
    assert monte_carlo.resolve_device("auto") == auto
    assert monte_carlo.resolve_device("cpu") == "cpu"


def test_devices_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [monte_carlo.resolve_device(name) for name in ("cuda", "cuda:0", "cuda:1")] == [
        "cuda",
        "cuda:0",
        "cuda:1",
    ]
    with pytest.raises(
        ValueError, match=r"device must be present on this machine, got 'cuda:2'; use --device cpu"
    ):
        monte_carlo.resolve_device("cuda:2")


@pytest.mark.parametrize(
    "name", ["gpu", "cpu:0", "cuda:", "cpu:", "cuda:x", "cuda:-1", "cuda:²", "", "CPU", "cuda\n"]
)
def test_unknown_devices_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"device must be auto, cpu, cuda or cuda:<index>, got"):
        monte_carlo.resolve_device(name)


def test_absent_cuda_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"device must be present on this machine, got 'cuda'"):
        monte_carlo.resolve_device("cuda")


def test_a_cluster_may_have_what_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert monte_carlo.resolve_device("cuda", here=False) == "cuda"
    with pytest.raises(ValueError, match="device must be auto, cpu, cuda or cuda:<index>"):
        monte_carlo.resolve_device("gpu", here=False)


@pytest.mark.parametrize(("workers", "gpus"), [(1, 1), (4, 1), (3, 2), (2, 4), (8, 4)])
def test_no_gpu_is_dealt_out_more_than_once_over(workers: int, gpus: int) -> None:
    shares = [devices.dealt_out(i, workers, gpus) for i in range(workers)]
    taken = [sum(s.memory for s in shares if s.device == f"cuda:{gpu}") for gpu in range(gpus)]
    assert taken == pytest.approx([1.0] * min(workers, gpus) + [0.0] * (gpus - workers))


def test_a_worker_that_stands_in_for_a_lost_one_has_a_gpu_too() -> None:
    assert devices.dealt_out(5, 2, 2) == ("cuda:1", 1.0)


def test_a_worker_runs_on_the_gpu_that_is_dealt_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds: list[tuple[float, torch.device]] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda *bound: bounds.append(bound))
    monkeypatch.setattr(devices, "_beside", 4)
    assert devices.own_gpu("cuda") == "cuda"  # no worker: the process itself
    devices._bound_memory.cache_clear()
    process = type("Process", (), {"_identity": (4,)})
    monkeypatch.setattr(devices.multiprocessing, "current_process", process)
    assert [devices.own_gpu(name) for name in ("cuda", "cuda", "cuda:0", "cpu")] == [
        "cuda:1",
        "cuda:1",
        "cuda:0",
        "cpu",
    ]
    assert bounds == [(0.5, torch.device("cuda:1"))]
    devices._bound_memory.cache_clear()


@pytest.mark.parametrize(("device", "workers"), [("cuda", 3), ("cuda:2", 1)])
def test_there_is_a_worker_for_each_gpu(device: str, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert monte_carlo.default_workers(device) == workers


def test_workers_default_to_the_cores_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert monte_carlo.default_workers() >= 1
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert monte_carlo.default_workers() == 1
