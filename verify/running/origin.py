"""Origin of a block: the code, packages, machine and images of the process that draws it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import json
import os
import platform
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from simulate.monte_carlo import BlockResult, Point
from verify.claims.images import DIGITS
from verify.model import value_at

PACKAGES = ("numpy", "scipy", "torch")

OWN = ("theory", "simulate", "verify")

UNREADABLE = ""
"""Stands for the content of a file that cannot be read."""


class Key(NamedTuple):
    """All that the numbers of a block depend on, except its index."""

    experiment: str
    point: str
    seed: str
    device: str
    fingerprint: str


class Origin(NamedTuple):
    """Code, packages, machine and images with which a process draws a block.

    `code` is the same wherever the same code runs with the same packages on the same images; `files` are the hashes
    of all files that a user's experiment may depend on, by module, as far as they are loaded.
    """

    code: str
    hardware: str
    files: dict[str, str]


class OtherCodeError(RuntimeError):
    """A block was drawn by other code than that of this process."""


def filed_under(
    simulate: Callable[..., Any], experiment: str, point: Point, seed: int, device: str, place: str = ""
) -> Key | None:
    """Return the key of the blocks of a run in the store; None if their code or images cannot be identified.

    `place`, if given, replaces the device in the key, to tell apart more than devices.

    Code is known if `simulate` is what its module, one with a source file, holds under its name. A user's function
    must also neither wrap nor close over anything: whatever else there is may depend on values that no file shows.
    """
    try:
        parts = [_module(simulate), _images(point.get("images", DIGITS))]
    except (OSError, TypeError):
        return None
    here = origin(simulate, point, device)
    # A file that cannot be read may change unnoticed.
    if UNREADABLE in (*parts, *here.files.values()):
        return None
    fingerprint = hashlib.sha256(json.dumps([*parts, *here], sort_keys=True).encode()).hexdigest()
    return Key(experiment, point.canonical(), str(seed), place or device, fingerprint)


def origin(simulate: Callable[..., Any], point: Point, device: str) -> Origin:
    """Return the origin of blocks that this process draws; the first call is slow, later ones take microseconds."""
    code = [_sources(), *_versions(), _images(point.get("images", DIGITS))]
    # workers know the main program of a run as `__mp_main__`
    name = str(getattr(simulate, "__module__", "")).replace("__mp_main__", "__main__")
    # `_sources` covers all code of ours. The number of modules is part of the cache key, for an
    # experiment may import more of them while it draws.
    files = {} if name.partition(".")[0] in OWN else _files(name, len(sys.modules))
    return Origin(hashlib.sha256("\n".join(code).encode()).hexdigest(), _hardware(device), files)


def draw_here(
    draw: Callable[..., BlockResult],
    simulate: Callable[..., Any],
    point: Point,
    device: str,
    indices: Sequence[int],
    **arguments: Any,
) -> tuple[list[BlockResult], Origin]:
    """Return what `draw` makes of each block, and the origin of this process, which may be a worker."""
    # First, for this drops the cached images of a file that was replaced: a draw from them would be filed
    # under the hash of the new file.
    _images(point.get("images", DIGITS))
    results = [draw(simulate=simulate, point=point, device=device, index=i, **arguments) for i in indices]
    return results, origin(simulate, point, device)


def why_not_stored(here: Origin, there: Origin) -> str:
    """Why a block drawn there cannot be filed as one drawn here; empty if it can.

    Raises
    ------
    OtherCodeError
        If the code, the packages or the images differ: then the block is of no use at all.
    """
    # A module that only one of the two processes has loaded cannot be compared.
    shared = here.files.keys() & there.files.keys() if here.files != there.files else ()
    if here.code != there.code or any(here.files[name] != there.files[name] for name in shared):
        raise OtherCodeError(
            "a worker runs different code or library versions than this process; install the same versions on the"
            " cluster, or run again if code or images changed during the run"
        )
    if here.hardware != there.hardware:
        return "blocks drawn on other hardware than this process runs on"
    # The fingerprint was taken before the draw and lacks these modules: an edit of them would go unnoticed.
    if there.files.keys() - here.files.keys():
        return "blocks whose experiment imports modules while it draws"
    return ""


def refresh() -> None:
    """Forget hashes of files and values of formulas, since a long process may have reloaded code or replaced images."""
    for cached in (_sources, _files, _hash_of_version, value_at):
        cached.cache_clear()


@cache
def _sources() -> str:
    """Hash of the code that draws and predicts, and of the embedded digits."""
    root = Path(__file__).parents[2]
    parts = ("theory", "simulate", "verify/claims")
    found = (
        f"{at}{os.sep}{name}" for part in parts for at, _, names in os.walk(root / part) for name in names
    )
    digest = hashlib.sha256()
    for file in sorted(file for file in found if file.endswith((".py", ".csv.gz"))):
        path = file.removeprefix(f"{root}{os.sep}").replace(os.sep, "/")
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        digest.update(f"{path}\0{_hash_when_loaded(name, file)}\n".encode())
    return digest.hexdigest()


def _module(simulate: Callable[..., Any]) -> str:
    """Hash of the module that defines the function."""
    # `_sources` covers what a function of ours wraps or closes over.
    wraps = not inspect.isfunction(simulate) or hasattr(simulate, "__wrapped__") or simulate.__closure__
    if wraps and getattr(simulate, "__module__", "").partition(".")[0] not in OWN:
        raise TypeError(
            "a plain function is needed, not a closure, method or wrapper: its source must identify it"
        )
    module, source = sys.modules.get(simulate.__module__), inspect.getsourcefile(simulate)
    if source is None or getattr(module, "__dict__", {}).get(simulate.__qualname__) is not simulate:
        raise TypeError(
            "the function must be the one that its module has under its name: its source must identify it"
        )
    return f"{simulate.__module__}.{simulate.__qualname__} {_hash_when_loaded(simulate.__module__, source)}"


@lru_cache(maxsize=8)
def _files(experiment: str, _modules: int) -> dict[str, str]:
    """Hashes of the loaded modules that a user's experiment may depend on; their number tells of new ones."""
    found: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        # Through `__dict__`, because `getattr` may trigger the import of a lazy module.
        file = getattr(module, "__dict__", {}).get("__file__")
        if isinstance(file, str) and _is_users(name, file, experiment):
            try:
                found[name] = _hash_when_loaded(name, file)
            except OSError:
                found[name] = UNREADABLE
    return found


def _is_users(name: str, file: str, experiment: str) -> bool:
    """Return whether an experiment of a user may depend on a module: not an installed one, and not ours."""
    # The main program matters only if it defines the experiment.
    if name in ("__main__", "__mp_main__"):
        return name == experiment
    # An installed package of the user counts too if the experiment is in it.
    own = name.partition(".")[0] == experiment.partition(".")[0]
    return own or not ("site-packages" in file or "dist-packages" in file or file.startswith(_installed()))


@cache
def _installed() -> tuple[str, ...]:
    """Folders of the standard library, of installed commands, and of our own code."""
    installed = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "scripts")]
    own = [Path(__file__).parents[2] / name for name in OWN]
    # A virtual environment may reach the library through a link: compare both spellings.
    folders = [*installed, *(folder.resolve() for folder in installed), *own]
    return tuple(f"{folder}{os.sep}" for folder in folders)


def _hash_when_loaded(name: str, file: str) -> str:
    """Hash of a module's file, as it was when first asked for after the module was loaded or reloaded."""
    module = sys.modules.get(name)
    if module is None or getattr(module, "__file__", None) != file:
        return _content(file)
    # The code that runs is the code that was loaded, whatever has been saved to the file since.
    load = module.__spec__ or module  # a reload brings a new one
    if file not in _HASHES_WHEN_LOADED or _HASHES_WHEN_LOADED[file][0] is not load:
        _HASHES_WHEN_LOADED[file] = (load, _content(file))
    return _HASHES_WHEN_LOADED[file][1]


_HASHES_WHEN_LOADED: dict[str, tuple[Any, str]] = {}
"""Hashes of loaded modules by file, and which loading of the module each belongs to."""


def _images(source: Any) -> str:
    """Hash of the images; the embedded ones are among the sources."""
    if source == DIGITS:
        return DIGITS
    try:
        found = _content(str(source))
    except OSError:
        return UNREADABLE
    if _IMAGE_HASHES.get(source) != found:
        data = sys.modules.get("simulate.data")
        if data is not None:
            data.opened.cache_clear()  # of a file that was overwritten it holds the images of before
        _IMAGE_HASHES[source] = found
    return found


_IMAGE_HASHES: dict[Any, str] = {}
"""Hashes of the images this process draws from."""


def _content(file: str) -> str:
    status = Path(file).stat()
    # Time and size are part of the cache key, so an unchanged file is read once.
    return _hash_of_version(file, status.st_mtime_ns, status.st_size)


@cache
def _hash_of_version(file: str, _changed: int, _size: int) -> str:
    with Path(file).open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@cache
def _versions() -> tuple[str, ...]:
    """Packages and interpreter."""
    python = f"python {sys.version_info.major}.{sys.version_info.minor}"
    return (*(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES), python)


@cache
def _hardware(device: str) -> str:
    """Return a hash of system and processors, which need not round alike."""
    parts = (platform.system(), platform.machine(), _processor(), _accelerator(device))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _processor() -> str:
    """Return the abilities of the processor, by which linear algebra chooses its kernels, if the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    # Only Linux has this file.
    except OSError:
        return platform.processor()
    # The line is called `flags` on x86 and `Features` on ARM.
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def _accelerator(device: str) -> str:
    if not device.startswith("cuda"):
        return ""
    import torch

    # the process that asks a cluster may have none
    return torch.cuda.get_device_name(device) if torch.cuda.is_available() else "elsewhere"
