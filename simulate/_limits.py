"""Limits of memory and cores of this process, from control groups (versions 1 and 2) and ulimit."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from pathlib import Path

try:
    import resource
except ImportError:  # on Windows there are no such limits
    resource = None

_ROOT = Path("/")


def memory() -> float:
    """Return the bytes that may still be allocated before the nearest limit; infinite if there is none."""
    groups = (left for folder in _groups("memory") for left in _memory_left(folder))
    return max(0.0, min((*groups, *_process_left()), default=math.inf))


def cores() -> float:
    """Return the CPU quota of the control groups, in cores, possibly a fraction; infinite if there is none."""
    return min((quota for folder in _groups("cpu") for quota in _quotas(folder)), default=math.inf)


def _groups(controller: str) -> Iterator[Path]:
    """Yield the folders of this process's group and of all its parents, each of which may set a limit."""
    for line, mount in itertools.product(_lines("proc/self/cgroup"), _lines("proc/self/mountinfo")):
        _, names, path = line.split(":", 2)
        where, _, what = mount.partition(" - ")
        kind, _, controllers = what.split(" ", 2)
        # version 1 names its controllers in both files; version 2 has one hierarchy and no names
        first = kind == "cgroup" and controller in names.split(",") and controller in controllers.split(",")
        if not first and (kind != "cgroup2" or names):
            continue
        # a container may see its own group at the top of the tree, or only that group
        top, place = where.split(" ")[3:5]
        below = path.removeprefix(top.rstrip("/")) if path.startswith(top) else ""
        highest = _ROOT / place.lstrip("/")
        folder = highest / below.lstrip("/")
        # a group outside of the namespace that this process sees is listed as /../..
        if not folder.is_dir() or ".." in folder.parts:
            folder = highest
        yield from (each for each in (folder, *folder.parents) if each.is_relative_to(highest))


def _memory_left(group: Path) -> Iterator[float]:
    """Yield the limit minus the memory in use; cached files do not count as in use, since they can be evicted."""
    for limit, used, prefix in (
        ("memory.max", "memory.current", ""),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    ):
        most, now = _text(group / limit), _text(group / used)
        if most.isdigit() and now.isdigit():
            # version 1 counts the groups below this one only in the entries with "total_"
            files = _table(group / "memory.stat")
            yield (
                int(most)
                - int(now)
                + sum(files.get(f"{prefix}{age}_file", 0) for age in ("active", "inactive"))
            )


def _quotas(group: Path) -> Iterator[float]:
    quota, _, period = _text(group / "cpu.max").partition(" ")
    pairs = (quota, period), (_text(group / "cpu.cfs_quota_us"), _text(group / "cpu.cfs_period_us"))
    for time, of in pairs:
        if time.isdigit() and of.isdigit() and int(time) and int(of):  # "max" and -1 mean no quota
            yield int(time) / int(of)


def _process_left() -> Iterator[float]:
    """Yield the bytes left of the address space and data of this process (``ulimit -v`` and ``ulimit -d``)."""
    if resource is None:
        return
    used = _table(_ROOT / "proc/self/status")
    for limit, name in ((resource.RLIMIT_AS, "VmSize:"), (resource.RLIMIT_DATA, "VmData:")):
        most, _ = resource.getrlimit(limit)
        if most != resource.RLIM_INFINITY:
            # /proc counts in KiB
            yield most - 1024 * used.get(name, 0)


def _table(path: Path) -> dict[str, int]:
    """Return the first number of each line of a file, by the word before it."""
    rows = (line.split() for line in _text(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}


def _lines(path: str) -> list[str]:
    return _text(_ROOT / path).splitlines()


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").strip()
    return ""
