"""Options of a run, shared by pytest, the command line and Python, and the checks of their values."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from verify.model import Tier
from verify.results import Results, load
from verify.running.settings import COUNTED, STREAMS

SEED = 2024
LARGEST_SEED = 2**128 - 1
MOST_REPLICATES = 10**8
"""With this many replicates each score fills a gigabyte and takes days to simulate."""

PLACES = {"file": "RESULTS.JSON", "files": "RESULTS.JSON", "words": "WORD", "names": "PICTURE"}
"""Names that the help gives to positional arguments."""

REPORT_DIR = "losscurv-report"


def _option(what: str, metavar: str, default: Any = None, **how: Any) -> Any:
    return field(default=default, metadata={"help": what, "metavar": metavar, **how})


def _repeatable(what: str, metavar: str) -> Any:
    return _option(f"{what} (repeatable)", metavar, (), action="append")


def _choice(what: str, metavar: str, *choices: str) -> Any:
    return _option(what, metavar, "", choices=choices)


def _switch(what: str) -> Any:
    return field(default=False, metadata={"help": what, "action": "store_true"})


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a run; those not given are None, empty or False."""

    claim: Sequence[str] = _repeatable("judge only this claim or observation, whatever its tier", "ID")
    paper: Sequence[str] = _repeatable("judge only claims and observations of this paper", "NAME")
    tier: str = _choice(
        "smoke: cheap checks only; default: all but the most expensive; full: all, with up to 8 times the replicates",
        "TIER",
        *(tier.value for tier in Tier),
    )
    seed: int | None = _option(f"random seed, an integer >= 0 (default {SEED})", "N", type=int)
    vary_seed: bool = _switch("choose a random seed and print it")
    replicates: int | None = _option(
        "most replicates per point (default: set by each experiment)", "N", type=int
    )
    data: str = _option(
        "images for the real networks (x_train, y_train) instead of the built-in digits", "FILE.npz", ""
    )
    device: str = _option("cpu (default), cuda, cuda:<index> or auto", "NAME", "cpu")
    draws: str = _choice(
        "normal random numbers: streams (CPU) or counted (counter-based, on the device); default: by device, or as"
        " recorded",
        "SOURCE",
        STREAMS,
        COUNTED,
    )
    workers: int | None = _option(
        "local processes (default: one per core; with --device cuda, one per GPU)", "N", type=int
    )
    executor: str | None = _option(
        "Dask cluster to run on (dask://HOST:PORT) instead of local processes", "URL"
    )
    report_dir: str = _option(
        "folder for report.html and results.json; replicates that are saved there are reused",
        "FOLDER",
        "",
    )
    one_file: bool = _switch("write the whole report into report.html, without further pages")
    fresh: bool = _switch("simulate every replicate again instead of reusing saved ones")
    replay: str = _option("repeat the run of this results file and compare every score", "FILE", "")
    table: bool = _switch("print a line for every claim and observation, even in a long run")
    strict_undecided: bool = _switch("exit with status 1 if any verdict is undecided, even one that may be")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Options:
        """Return options from those values that are options of a run and were given."""
        # argparse and pytest fill options that were not given with None, "" or [].
        return cls(
            **{f.name: values[f.name] for f in fields(cls) if values.get(f.name) not in (None, "", [])}
        )


OPTIONS = tuple((f"--{f.name.replace('_', '-')}", dict(f.metadata)) for f in fields(Options))
"""Flags and keywords of the options, for argparse and pytest."""


def load_results(name: str | Path) -> Results:
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
        # Positional arguments that are absent leave an empty list too: only an option must not be empty.
        several = isinstance(value, list) and (value or name in PLACES)
        for given in value if several else [value]:
            word = "--" if given == [] else given  # what argparse makes of --option=--
            if isinstance(word, str) and (word in ("", "--") or "\0" in word):
                option = PLACES.get(name) or f"--{name.replace('_', '-')}"
                kind = "a value without NUL characters" if "\0" in word else "a value"
                raise ValueError(f"{option} needs {kind}, got {word!r}")


def require_seed(seed: int) -> int:
    """Return a valid seed.

    Raises
    ------
    ValueError
        If it is negative or too large.
    """
    return require_between("--seed", 0, LARGEST_SEED, seed)


def require_writable(folder: Path, option: str = "--report-dir") -> None:
    """Create the folder and check that a file can be written to it, before the run and not after it.

    Raises
    ------
    ValueError
        If nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Mode bits show neither a read-only mount nor a full disk: only an attempt to write does.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"{option}: cannot write to folder {folder}: {error.strerror}") from None


def require_between(option: str, least: int, most: int, value: int) -> int:
    """Return a number that lies between two others; `option` names it in the error.

    Raises
    ------
    ValueError
        If it does not.
    """
    if value < least:
        raise ValueError(f"{option} must be at least {least}, got {value}")
    if value > most:
        raise ValueError(f"{option} must be at most {most}, got a larger number")
    return value
