"""What the system grants this process of its memory and cores: control groups, versions 1 and 2, and ulimit."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

try:
    import resource
except ImportError:  # on Windows there are no such limits
    resource = None

__all__ = ["cores", "memory"]

_ROOT = Path("/")


def memory() -> float:
    """Bytes that may still be allocated before the nearest limit; infinite where there is none."""
    groups = (left for folder in _groups("memory") for left in _memory_left(folder))
    return max(0.0, min((*groups, *_process_left()), default=math.inf))


def cores() -> float:
    """Cores whose whole time the control groups grant, not always an integer; infinite without a quota."""
    return min((quota for folder in _groups("cpu") for quota in _quotas(folder)), default=math.inf)


class _Mount(NamedTuple):
    """A tree of control groups: its group at the top, where that is mounted, and what it controls."""

    top: str
    place: str
    kind: str
    controllers: list[str]


def _groups(controller: str) -> Iterator[Path]:
    """Folders of the group of this process and of all that it is nested in, each of which may set a limit."""
    mounts = list(_mounts())
    for line in _lines("proc/self/cgroup"):
        _, names, path = line.split(":", 2)
        for mount in mounts:
            second = mount.kind == "cgroup2" and not names
            if second or (controller in names.split(",") and controller in mount.controllers):
                yield from _upwards(mount, path)


def _mounts() -> Iterator[_Mount]:
    for line in _lines("proc/self/mountinfo"):
        where, _, what = line.partition(" - ")
        kind, _, controllers = what.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            top, place = where.split(" ")[3:5]
            yield _Mount(top, place, kind, controllers.split(","))


def _upwards(mount: _Mount, path: str) -> Iterator[Path]:
    # a container may see its own group at the top of the tree, or nothing but it
    below = path.removeprefix(mount.top.rstrip("/")) if path.startswith(mount.top) else ""
    place = _ROOT / mount.place.lstrip("/")
    folder = place / below.lstrip("/")
    if not folder.is_dir() or ".." in folder.parts:
        folder = place
    while folder != place:
        yield folder
        folder = folder.parent
    yield place


def _memory_left(group: Path) -> Iterator[float]:
    """The limit less what is used, but for what the system kept of files and would give back."""
    for limit, used, prefix in (
        ("memory.max", "memory.current", ""),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    ):
        most, now = _number(group / limit), _number(group / used)
        if most is not None and now is not None:
            files = _table(group / "memory.stat")
            yield most - now + sum(files.get(f"{prefix}{age}_file", 0) for age in ("active", "inactive"))


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


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdigit() else None


def _lines(path: str) -> list[str]:
    return _text(_ROOT / path).splitlines()


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").strip()
    return ""
