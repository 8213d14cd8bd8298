"""The options of a run, the same for pytest, for the command line and for Python, and what a word of them may be."""

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
"""Scores of so many fill a gigabyte each, and their drawing takes days."""

PLACES = {"file": "RESULTS.JSON", "names": "PICTURE"}
"""What stands on the command line without an option, as its help calls it."""

REPORT_DIR = "losscurv-report"


def _option(what: str, metavar: str, default: Any = None, **how: Any) -> Any:
    return field(default=default, metadata={"help": what, "metavar": metavar, **how})


def _several(what: str, metavar: str) -> Any:
    return _option(f"{what} (repeatable)", metavar, (), action="append")


def _chosen(what: str, *words: str) -> Any:
    return field(default="", metadata={"help": what, "choices": words})


def _switch(what: str) -> Any:
    return field(default=False, metadata={"help": what, "action": "store_true"})


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a run; those not given are None, empty or False."""

    claim: Sequence[str] = _several("judge this claim, or make this observation, only, from any tier", "ID")
    paper: Sequence[str] = _several("this paper's claims and observations only", "NAME")
    tier: str = _chosen(
        "cheap checks (smoke), all but the dearest (default), or all with up to eight times the replicates (full)",
        *(tier.value for tier in Tier),
    )
    seed: int | None = _option(f"suite seed, an integer >= 0 (default {SEED})", "N", type=int)
    vary_seed: bool = _switch("draw a new suite seed and print it")
    replicates: int | None = _option(
        "most replicates per point, in place of each experiment's own", "N", type=int
    )
    data: str = _option(
        "images for the real networks (x_train, y_train) in place of the embedded digits", "FILE.npz", ""
    )
    device: str = _option("cpu (default), cuda, cuda:<index> or auto", "NAME", "cpu")
    draws: str = _chosen(
        "normal numbers from streams of the CPU, or counted on the device (default: as device or replay has it)",
        STREAMS,
        COUNTED,
    )
    workers: int | None = _option(
        "local processes (default: one per core, with --device cuda one per GPU)", "N", type=int
    )
    executor: str | None = _option("run on this Dask cluster instead of local processes", "dask://HOST:PORT")
    report_dir: str = _option(
        "where report.html and results.json go; what an earlier run drew there is not drawn again",
        "FOLDER",
        "",
    )
    one_file: bool = _switch("the whole report in report.html, without pages of cards beside it")
    fresh: bool = _switch("draw every replicate anew, whatever earlier runs left in the folder")
    replay: str = _option(
        "repeat the run of a results file, with its seed, and compare every score", "FILE", ""
    )
    table: bool = _switch("print a line for each claim and observation, however many there are")
    strict_undecided: bool = _switch("what is undecided fails the run though something excuses it")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Options:
        """Return options from those values that are options of a run and were given."""
        return cls(
            **{f.name: values[f.name] for f in fields(cls) if values.get(f.name) not in (None, "", [])}
        )


OPTIONS = tuple((f"--{f.name.replace('_', '-')}", dict(f.metadata)) for f in fields(Options))
"""As argparse and pytest take them."""


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
        several = isinstance(value, list) and (value or name in PLACES)
        for given in value if several else [value]:
            word = "--" if given == [] else given  # what argparse makes of --option=--
            if isinstance(word, str) and (word in ("", "--") or "\0" in word):
                option = PLACES.get(name) or f"--{name.replace('_', '-')}"
                rule = "given a value" + ", without NUL characters" * ("\0" in word)
                raise ValueError(f"{option} must be {rule}, got {word!r}")


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
