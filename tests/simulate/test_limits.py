"""Limits that a container, a scheduler or a shell sets are found, however the control groups are nested."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulate import _limits, _memory
from simulate.monte_carlo import default_workers

GIB = 1 << 30
V2 = "31 23 0:27 {top} /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
MEMORY = "36 31 0:30 {top} /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory"
CPU = "37 31 0:31 {top} /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty system."""
    monkeypatch.setattr(_limits, "_ROOT", tmp_path)
    monkeypatch.setattr(_limits, "resource", None)
    (tmp_path / "proc/self").mkdir(parents=True)
    return tmp_path


def process(root: Path, groups: str, *mounts: str, top: str = "/") -> None:
    (root / "proc/self/cgroup").write_text(groups)
    lines = ["22 1 8:1 / / rw - ext4 /dev/root rw", *(mount.format(top=top) for mount in mounts)]
    (root / "proc/self/mountinfo").write_text("\n".join(lines))


def group(root: Path, place: str, **files: str | int) -> None:
    folder = root / "sys/fs/cgroup" / place
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("_", ".", 1)).write_text(f"{content}\n")


def granted() -> tuple[float, float]:
    return _limits.memory(), _limits.cores()


def test_without_limits_there_are_none(root: Path) -> None:
    assert granted() == (math.inf, math.inf)
    process(root, "0::/\n", V2)
    for files in (
        {},  # the top has no limits of its own
        {"memory_max": "max", "memory_current": GIB, "cpu_max": "max 100000"},
        {"memory_max": "many", "cpu_max": "1", "memory_stat": "x\ny z\n"},
    ):
        group(root, "", **files)
        assert granted() == (math.inf, math.inf)


def test_the_tightest_of_nested_groups_counts(root: Path) -> None:
    process(root, "0::/slice/job/step\n", V2)
    group(root, "slice", memory_max=8 * GIB, memory_current=7 * GIB, cpu_max="400000 100000")
    group(root, "slice/job", memory_max=4 * GIB, memory_current=2 * GIB, cpu_max="150000 100000")
    group(root, "slice/job/step", memory_max="max", memory_current=2 * GIB, cpu_max="max 100000")

    assert granted() == (GIB, 1.5)


def test_what_is_kept_of_files_is_to_be_had(root: Path) -> None:
    process(root, "0::/job\n", V2)
    stat = f"anon {GIB}\ninactive_file {GIB // 2}\nactive_file {GIB // 4}\nslab 7"
    group(root, "job", memory_max=4 * GIB, memory_current=2 * GIB, memory_stat=stat)

    assert _limits.memory() == 2.75 * GIB
    group(root, "job", memory_current=9 * GIB)
    assert _limits.memory() == 0


def test_the_first_version_has_a_tree_for_each(root: Path) -> None:
    process(root, "4:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/job\n0::/job\n", MEMORY, CPU)
    stat = f"active_file 1\ntotal_inactive_file {GIB}\ntotal_active_file 0"
    group(root, "memory", memory_limit_in_bytes=2**63 - 4096, memory_usage_in_bytes=9 * GIB)
    group(root, "memory/job", memory_limit_in_bytes=3 * GIB, memory_usage_in_bytes=2 * GIB, memory_stat=stat)
    group(root, "cpu,cpuacct", cpu_cfs_quota_us=-1, cpu_cfs_period_us=100000)
    group(root, "cpu,cpuacct/job", cpu_cfs_quota_us=250000, cpu_cfs_period_us=100000)

    assert granted() == (2 * GIB, 2.5)


@pytest.mark.parametrize(
    ("path", "top"), [("/docker/abc", "/docker/abc"), ("/docker/abc", "/"), ("/", "/"), ("/../../other", "/")]
)
def test_a_container_sees_its_own_group_at_the_top(root: Path, path: str, top: str) -> None:
    process(root, f"0::{path}\n", V2, top=top)
    group(root, "", memory_max=2 * GIB, memory_current=GIB, cpu_max="50000 100000")

    assert granted() == (GIB, 0.5)


@pytest.mark.parametrize(
    ("quota", "workers"), [("50000", 1), ("100000", 1), ("150000", 2), ("99900000", 8), ("max", 8)]
)
def test_workers_are_as_many_as_there_is_time_for(
    root: Path, monkeypatch: pytest.MonkeyPatch, quota: str, workers: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    process(root, "0::/\n", V2)
    group(root, "", cpu_max=f"{quota} 100000")

    assert default_workers() == workers


def test_free_memory_is_within_the_limits(root: Path) -> None:
    process(root, "0::/job\n", V2)
    group(root, "job", memory_max=3 << 20, memory_current=1 << 20)

    assert _memory.available("cpu") == 2 << 20
    with pytest.raises(
        ValueError, match=r"size must be small enough for memory: arrays need about 1\.0 GiB, got 0\.0"
    ):
        _memory.require_free("size", GIB, "arrays")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("kind", ["v", "d"])
def test_ulimit_counts(kind: str) -> None:
    """The limit counts for this process, less the memory that it already uses."""
    program = "from simulate import _limits; print(_limits.memory())"
    command = f"ulimit -{kind} 4000000; '{sys.executable}' -c '{program}'"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment)

    assert run.returncode == 0, run.stderr
    assert 1e9 < float(run.stdout) < 4000000 * 1024 - 1e6
