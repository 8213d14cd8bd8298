"""``losscurv measure``: of the parameters as they are, of a checkpoint, or of several one after the other."""

from __future__ import annotations

import argparse
import io
import zipfile
from functools import partial
from pathlib import Path

import numpy as np

from verify.escapes import escaped
from verify.files import replace_files
from verify.practice.loading import Problem, from_options
from verify.practice.loading.foreign import output_apart
from verify.practice.measure import Keep, StoppingRule, measure_problem, pages, series
from verify.practice.measure.measurement import Measurement
from verify.practice.work import Tell, on_terminal
from verify.running.options import require_seed, require_writable

EIGENVALUES = "eigenvalues"
"""Name of the array of eigenvalues, next to those of the parameters."""


def run_measure(options: argparse.Namespace) -> int:
    """``losscurv measure``: measure, write the page and the JSON, print."""
    require_seed(options.seed)
    if options.top < 1:
        raise ValueError(f"--top must be at least 1, got {options.top}")
    stopping = StoppingRule(probes=options.probes, tolerance=options.tolerance, budget=options.budget)
    folder = Path(options.output)
    files = series.checkpoint_files(options.checkpoint) if options.checkpoint else []
    if len(files) > 1:
        return _run_series(options, files, stopping)
    with output_apart() as output:
        problem = from_options(series.with_checkpoint(options, files[0]) if files else options)
        # Now, not after the measurement.
        require_writable(folder, "--output")
        vectors = options.save_vectors and Path(options.save_vectors)
        if vectors:
            require_writable(vectors.parent, "--save-vectors")
            if EIGENVALUES in problem.objective.blocks():
                raise ValueError(
                    f"--save-vectors writes an array {EIGENVALUES}, but a parameter has that name; rename the parameter"
                )
        kept: list[tuple[np.ndarray, np.ndarray]] = []
        with on_terminal("measuring") as tell:
            found = _measured(options, problem, stopping, lambda *both: kept.append(both), tell)
        text = pages.measurement_json(found) if options.json else pages.measurement_text(found)
        try:
            page = pages.write_measurement(found, folder)
            if vectors:
                _save(problem, vectors, *kept[0])
        finally:  # a full disk does not take away what was measured
            output.write(text)
        if not options.json:
            output.write(f"page: {escaped(str(page))}\n")
            if vectors:
                output.write(f"eigenvectors of the Hessian: {escaped(str(vectors))}\n")
    return 0


def _run_series(options: argparse.Namespace, files: list[Path], stopping: StoppingRule) -> int:
    """Measure one checkpoint after the other; after an interruption or error the finished ones are still written."""
    folder, found = Path(options.output), list[series.Checkpoint]()
    if options.save_vectors:
        raise ValueError(f"--save-vectors works with one checkpoint only, got {len(files)}")
    with output_apart() as output:
        require_writable(folder, "--output")
        try:
            with on_terminal("measuring") as tell:
                for k, (file, at) in enumerate(zip(files, series.places(files), strict=True)):
                    problem = from_options(series.with_checkpoint(options, file))
                    part = partial(_part, tell, escaped(file.name), k, len(files))
                    each = _measured(options, problem, stopping, lambda *_: None, part)
                    found.append(series.Checkpoint(file=str(file), at=at, found=each))
        # An interruption must not take away the checkpoints that are finished.
        finally:
            if found:
                output.write(series.series_json(found) if options.json else series.series_text(found))
                page = series.write_series(found, folder)
                if not options.json:
                    output.write(f"page: {escaped(str(page))}\n")
    return 0


def _part(tell: Tell, name: str, place: int, count: int, what: str, share: float) -> None:
    tell(f"{name}, {what}", (place + share) / count)


def _measured(
    options: argparse.Namespace, problem: Problem, stopping: StoppingRule, keep: Keep, tell: Tell
) -> Measurement:
    return measure_problem(
        problem,
        top=options.top,
        seed=options.seed,
        stopping=stopping,
        layers=options.layers,
        factors=options.factors,
        keep=keep,
        tell=tell,
    )


def _save(problem: Problem, file: Path, values: np.ndarray, vectors: np.ndarray) -> None:
    """Write an archive of one array (k, *shape) for each parameter, under its name, and the eigenvalues (k,)."""
    objective = problem.objective
    parts = zip(objective.blocks().items(), objective.shapes, strict=True)
    arrays = {name: vectors[place].T.reshape(-1, *shape) for (name, place), shape in parts}
    held = io.BytesIO()
    # Written here, for a parameter may have the name of an argument of numpy.savez.
    with zipfile.ZipFile(held, "w") as archive:
        for name, array in {EIGENVALUES: values, **arrays}.items():
            # The size is not known when the entry is opened, so zip must be told that it may exceed 2 GiB.
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
    try:
        replace_files({file: held.getvalue()})
    except OSError as error:
        raise ValueError(f"--save-vectors: cannot write {file}: {error.strerror or error}") from None
