"""Devices and workers: what is there, and how many."""

import pytest
import torch

from simulate import monte_carlo


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


def test_workers_default_to_the_cores_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert monte_carlo.default_workers() >= 1
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert monte_carlo.default_workers() == 1
