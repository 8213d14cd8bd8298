"""What the system grants this process of its memory and cores: control groups, versions 1 and 2, and ulimit."""

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
    """Bytes that may still be allocated before the nearest limit; infinite where there is none."""
    groups = (left for folder in _groups("memory") for left in _memory_left(folder))
    return max(0.0, min((*groups, *_process_left()), default=math.inf))


def cores() -> float:
    """Cores whose whole time the control groups grant, not always an integer; infinite without a quota."""
    return min((quota for folder in _groups("cpu") for quota in _quotas(folder)), default=math.inf)


def _groups(controller: str) -> Iterator[Path]:
    """Folders of the group of this process and of all that it is nested in, each of which may set a limit."""
    for line, mount in itertools.product(_lines("proc/self/cgroup"), _lines("proc/self/mountinfo")):
        _, names, path = line.split(":", 2)
        where, _, what = mount.partition(" - ")
        kind, _, controllers = what.split(" ", 2)
        first = kind == "cgroup" and controller in names.split(",") and controller in controllers.split(",")
        if not first and (kind != "cgroup2" or names):
            continue
        # a container may see its own group at the top of the tree, or nothing but it
        top, place = where.split(" ")[3:5]
        below = path.removeprefix(top.rstrip("/")) if path.startswith(top) else ""
        highest = _ROOT / place.lstrip("/")
        folder = highest / below.lstrip("/")
        if not folder.is_dir() or ".." in folder.parts:
            folder = highest
        yield from (each for each in (folder, *folder.parents) if each.is_relative_to(highest))


def _memory_left(group: Path) -> Iterator[float]:
    """The limit less what is used, but for what the system kept of files and would give back."""
    for limit, used, prefix in (
        ("memory.max", "memory.current", ""),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    ):
        most, now = _text(group / limit), _text(group / used)
        if most.isdigit() and now.isdigit():
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
        if time.isdigit() and of.isdigit() and int(time) and int(of):  # "max" and -1 stand for none
            yield int(time) / int(of)


def _process_left() -> Iterator[float]:
    """Of the address space and of the data of this process, see ``ulimit -v`` and ``ulimit -d``."""
    if resource is None:
        return
    used = _table(_ROOT / "proc/self/status")
    for limit, name in ((resource.RLIMIT_AS, "VmSize:"), (resource.RLIMIT_DATA, "VmData:")):
        most, _ = resource.getrlimit(limit)
        if most != resource.RLIM_INFINITY:
            yield most - 1024 * used.get(name, 0)


def _table(path: Path) -> dict[str, int]:
    """The first number of each line, by the word before it."""
    rows = (line.split() for line in _text(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}


def _lines(path: str) -> list[str]:
    return _text(_ROOT / path).splitlines()


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").strip()
    return ""
