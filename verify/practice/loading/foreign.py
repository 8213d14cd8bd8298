"""Code of others: all it can raise becomes one line, its draws leave no trace, and what it prints is no result."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import torch
from torch import nn

from simulate._checks import did_you_mean
from simulate.lanczos.precision import in_full_precision
from simulate.objectives import Objective
from simulate.objectives.losses import LOSSES
from simulate.objectives.restoring import preserve_state, seed_generators
from verify.practice.loading.own_modules import PREFIX, imported
from verify.signals import by_signal

_NO_MEMORY = ("out of memory", "can't allocate memory", "alloc_cpu")
_USED = ("torch", "numpy", "scipy")
"""Installed packages whose errors may be due to our call of them."""

_SHOWN = 6
"""Names in a message."""


@contextlib.contextmanager
def restored(seed: int) -> Iterator[None]:
    """Seed the generators of torch, numpy and Python, and restore them afterwards."""
    with preserve_state(None, training=False):
        seed_generators(seed)
        yield


@contextlib.contextmanager
def forward_passes(objective: Objective, what: str) -> Iterator[None]:
    """Call the model without derivatives, in all processes together, and restore its state; `what` names the aim."""
    with (
        objective.ranks.together(what),
        preserve_state(objective.model, objective.training),
        torch.no_grad(),
    ):
        yield


@contextlib.contextmanager
def output_apart() -> Iterator[TextIO]:
    """Send what code of others prints, in Python or in C, to standard error; yield a stream for the results."""
    stream, kept = sys.stdout, os.dup(1)
    stream.flush()  # what is buffered so far belongs to standard output
    # Also the file descriptor, for code in C does not write through Python's streams.
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr), _leading_to(stream, kept) as results:
            yield results
    finally:
        os.dup2(kept, 1)
        os.close(kept)


@contextlib.contextmanager
def calling(name: str, what: str) -> Iterator[None]:
    """Turn whatever code of others raises into a `ValueError`: `name` cannot do `what`."""
    try:
        with in_full_precision():
            yield
    except BaseException as error:
        # A `ValueError` of ours says already in one line what is wrong.
        if by_signal(error) or (
            isinstance(error, ValueError) and _is_ours(traceback.extract_tb(error.__traceback__)[-1])
        ):
            raise
        raise ValueError(_memory_line(error) or f"{name} cannot {what}: {_describe_error(error)}") from error


def require_given_file(what: str, path: str) -> None:
    """Refuse a path at which there is no file, before a library does so in words of its own."""
    if not Path(path).is_file():
        folder = f"{what} {path} must be a file, got a folder"
        raise ValueError(folder if Path(path).is_dir() else f"file not found: {path}")


@contextlib.contextmanager
def measured() -> Iterator[None]:
    """Turn errors of foreign code or torch during a measurement into a ValueError; our own errors pass."""
    try:
        with in_full_precision():
            yield
    except BaseException as error:
        failure = _failure(error)
        if by_signal(error) or not failure:
            raise
        raise ValueError(
            _memory_line(error) or f"model and loss {failure}: {_describe_error(error)}"
        ) from error


def _failure(error: BaseException) -> str:
    """Return what the model failed to do, judged by who raised the error; empty if we did."""
    by_torch = isinstance(error, RuntimeError | MemoryError)
    # torch raises these from C++ while it differentiates: no frame of the user's code is on the stack.
    if by_torch and ("derivative" in str(error) or not _foreign_frames(error)):
        return "have no second derivatives"
    return "cannot run on all samples" if _foreign_frames(error) else ""


def build(words: str) -> nn.Module:
    """The module that ``pkg.module:build`` or ``path/file.py:build`` names, or the one it makes when called.

    Raises
    ------
    ValueError
        If there is none, with what its code raised.
    """
    found = _load_attribute("model", words)
    if isinstance(found, nn.Module):
        return found
    _require_no_arguments(f"model {words}", found)
    with calling(f"model {words}", "be built"):
        made = found()
    if not isinstance(made, nn.Module):
        raise ValueError(f"model {words} must return a torch.nn.Module, got {type(made).__name__}")
    return made


def function(words: str) -> Callable[..., Any]:
    """The loss function that ``pkg.module:function`` names; of a class of losses, one made without arguments.

    Raises
    ------
    ValueError
        If there is none.
    """
    if ":" not in words:
        near = did_you_mean(words, LOSSES)
        raise ValueError(f"loss must be {', '.join(LOSSES)} or pkg.module:function, got {words!r}{near}")
    found = _load_attribute("loss", words)
    if inspect.isclass(found):
        _require_no_arguments(f"loss {words}", found)
        with calling(f"loss {words}", "be made"):
            found = found()
    if not callable(found):
        raise ValueError(f"loss {words} must be a function, got {type(found).__name__}")
    return found


def given_data(words: str) -> Any:
    """The data that ``pkg.module:name`` or ``path/file.py:name`` names, or those that it gives when called.

    Raises
    ------
    ValueError
        If there are none, with what its code raised.
    """
    found = _load_attribute("data", words)
    if inspect.isclass(found) or not any(hasattr(found, way) for way in ("__iter__", "__getitem__")):
        _require_no_arguments(f"data {words}", found, "data")
        with calling(f"data {words}", "be made"):
            return found()
    return found


def _load_attribute(what: str, words: str) -> Any:
    place, _, name = words.rpartition(":")
    if not place or not name:
        hint = f"; a configuration is hf:{words}" if what == "model" and words.endswith(".json") else ""
        raise ValueError(f"{what} must be pkg.module:name or path/file.py:name, got {words!r}{hint}")
    if os.sep in place and not place.endswith(".py"):  # an import would look for a module of this name
        got = f"{place}, a folder" if Path(place).is_dir() else place
        raise ValueError(f"{what} {words} must be path/file.py:name or pkg.module:name, got {got}")
    with calling(f"{what} {words}", "be imported"):
        found: Any = imported(place)
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{what} {words}: {place} has no {part!r}; {_list_names(found)}")
        found = getattr(found, part)
    return found


def _list_names(module: Any) -> str:
    own = getattr(module, "__name__", None)
    names = [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == own and not name.startswith("_")
    ]
    return f"it has {', '.join(names[:_SHOWN])}" if names else "it defines no function"


def _require_no_arguments(words: str, found: Any, else_: str = "a module") -> None:
    if not callable(found):
        raise ValueError(f"{words} must be a function, a class or {else_}, got {type(found).__name__}")
    try:
        needed = [p.name for p in inspect.signature(found).parameters.values() if _required(p)]
    except (ValueError, TypeError):  # written in C: the call will tell
        return
    if needed:
        raise ValueError(f"{words} needs arguments ({', '.join(needed)}); wrap it in a function without any")


def _required(parameter: inspect.Parameter) -> bool:
    several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not several


@contextlib.contextmanager
def _leading_to(stream: TextIO, copy: int) -> Iterator[TextIO]:
    """The stream, or if it writes to number 1, which leads elsewhere now, one that writes to its copy."""
    if _number(stream) != 1:
        yield stream
        return
    with os.fdopen(os.dup(copy), "w", encoding=stream.encoding, errors=stream.errors) as results:
        yield results


def _number(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):  # of a stream into memory
        return None


def _memory_line(error: BaseException) -> str:
    # On the CPU torch raises a plain RuntimeError, so only its words tell.
    short = isinstance(error, MemoryError) or any(word in str(error) for word in _NO_MEMORY)
    return "memory must suffice, got none left; use a smaller batch size or fewer samples" if short else ""


def _describe_error(error: BaseException) -> str:
    what = "exit()" if isinstance(error, SystemExit) else type(error).__name__
    text = " ".join(str(error).replace(PREFIX, "").split())  # torch writes several lines
    return f"{what}: {text}{_where(error)}" if text else f"{what}{_where(error)}"


def _where(error: BaseException) -> str:
    """Return the line of foreign code that was running, unless the error names one."""
    frames = _foreign_frames(error)
    if not frames or isinstance(error, SyntaxError):
        return ""
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


def _foreign_frames(error: BaseException) -> list[traceback.FrameSummary]:
    frames = traceback.extract_tb(error.__traceback__)
    return [f for f in frames if not _is_ours(f) and not _is_library(f)]


def _is_ours(frame: traceback.FrameSummary) -> bool:
    root = Path(__file__).parents[3]
    return any(Path(frame.filename).is_relative_to(root / package) for package in ("simulate", "verify"))


def _is_library(frame: traceback.FrameSummary) -> bool:
    """Return whether a frame is in Python or in a package that our own calls use; other packages are foreign code."""
    path = Path(frame.filename)
    installed = [
        inner for outer, inner in pairwise(path.parts) if outer in ("site-packages", "dist-packages")
    ]
    if installed:
        return installed[-1] in _USED
    return frame.filename.startswith("<") or path.is_relative_to(Path(os.__file__).parent)
