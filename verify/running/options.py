"""The options of a run, the same for pytest and for the command line, and what a single word of them may be."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verify.model import Tier
from verify.results import Results, load
from verify.running.settings import COUNTED, STREAMS

__all__ = [
    "ALL_CLAIMS",
    "LARGEST_SEED",
    "MOST_REPLICATES",
    "OPTIONS",
    "REPORT_DIR",
    "SEED",
    "WORKERS_PER_CORE",
    "load_results",
    "require_between",
    "require_seed",
    "require_words",
    "require_writable",
]

SEED = 2024
LARGEST_SEED = 2**128 - 1
MOST_REPLICATES = 10**8
"""Scores of so many fill a gigabyte each, and their drawing takes days."""

WORKERS_PER_CORE = 16
"""More local processes than this would only wait for each other, each with a library in memory."""

PLACES = {"file": "RESULTS.JSON", "names": "PICTURE"}
"""What stands on the command line without an option, as its help calls it."""

WANTED = {"batch_sizes": "at least one positive integer, such as 16,32,64"}
"""Of an option that takes more than some word: what is said where it is given none."""

REPORT_DIR = "losscurv-report"
ALL_CLAIMS = "all claims"

OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--claim",
        {
            "action": "append",
            "metavar": "ID",
            "help": "judge this claim, or make this observation, only (repeatable), from any tier",
        },
    ),
    (
        "--paper",
        {
            "action": "append",
            "metavar": "NAME",
            "help": "this paper's claims and observations only (repeatable)",
        },
    ),
    (
        "--tier",
        {
            "choices": [t.value for t in Tier],
            "help": "cheap checks only (smoke), all but the dearest claims and observations (default), or everything,"
            " claims with up to eight times the replicates and observations with four times theirs (full)",
        },
    ),
    ("--seed", {"type": int, "metavar": "N", "help": f"suite seed, an integer >= 0 (default {SEED})"}),
    ("--vary-seed", {"action": "store_true", "help": "draw a new suite seed and print it"}),
    (
        "--replicates",
        {
            "type": int,
            "metavar": "N",
            "help": "most replicates per point, in place of each experiment's own number (observations: or fewer)",
        },
    ),
    (
        "--data",
        {
            "metavar": "FILE.npz",
            "help": "images for the real networks (x_train, y_train) in place of the embedded digits",
        },
    ),
    ("--device", {"default": "cpu", "metavar": "NAME", "help": "cpu (default), cuda, cuda:<index> or auto"}),
    (
        "--draws",
        {
            "choices": [STREAMS, COUNTED],
            "help": "where normal numbers come from: streams of the CPU, or a generator that counts, on the device"
            " (default: streams on the CPU, counted elsewhere; a replay draws as the recorded run)",
        },
    ),
    (
        "--workers",
        {
            "type": int,
            "metavar": "N",
            "help": "local processes (default: one per core, with --device cuda one per GPU)",
        },
    ),
    (
        "--executor",
        {"metavar": "dask://HOST:PORT", "help": "run on this Dask cluster instead of local processes"},
    ),
    (
        "--report-dir",
        {
            "metavar": "FOLDER",
            "help": "where report.html and results.json go; those of an earlier run are replaced, "
            "what it drew is read and not drawn again",
        },
    ),
    (
        "--one-file",
        {
            "action": "store_true",
            "help": "the whole report in report.html, in place of a first page with pages of cards beside it",
        },
    ),
    (
        "--fresh",
        {
            "action": "store_true",
            "help": "draw every replicate anew, whatever earlier runs left in the folder",
        },
    ),
    (
        "--replay",
        {
            "metavar": "FILE",
            "help": "repeat the run of a results file, with its seed, and compare every score",
        },
    ),
    (
        "--table",
        {
            "action": "store_true",
            "help": "print a line for each claim and observation, however many there are",
        },
    ),
    (
        "--strict-undecided",
        {
            "action": "store_true",
            "help": "what is undecided fails the run though something excuses it",
        },
    ),
)


def load_results(name: str) -> Results:
    """A results file, named by itself or by its folder.

    Raises
    ------
    ValueError
        If it is missing or corrupt.
    """
    path = Path(name)
    return load(path / "results.json" if path.is_dir() else path)


def require_words(values: Mapping[str, Any]) -> None:
    """Refuse an option given without its value, which would else be silently left out.

    Raises
    ------
    ValueError
        Naming the option.
    """
    for name, value in values.items():
        several = isinstance(value, list) and (value or name in PLACES)
        for given in value if several else [value]:
            word = "--" if given == [] else given  # what argparse makes of --option=--
            if isinstance(word, str) and (word in ("", "--") or "\0" in word):
                option = PLACES.get(name) or f"--{name.replace('_', '-')}"
                rule = "given a value, without NUL characters" if "\0" in word else "given a value"
                raise ValueError(f"{option} must be {WANTED.get(name, rule)}, got {word!r}")


def require_seed(seed: int) -> int:
    """The seed, if it is one.

    Raises
    ------
    ValueError
        If it is negative or too large.
    """
    return require_between("--seed", 0, LARGEST_SEED, seed)


def require_writable(folder: Path, option: str = "--report-dir") -> None:
    """Fail before the run, not after it; `option` is what named the folder.

    Raises
    ------
    ValueError
        If nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"{option} must be a folder that can be written, got {folder}: {error.strerror}"
        ) from None


def require_between(option: str, least: int, most: int, value: int) -> int:
    """The number, if it lies between these; `option` is what it was given to.

    Raises
    ------
    ValueError
        If it does not.
    """
    if value < least:
        raise ValueError(f"{option} must be at least {least}, got {value}")
    if value > most:
        raise ValueError(f"{option} must be at most {most}, got more")
    return value
