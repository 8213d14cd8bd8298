"""``losscurv measure``: measure a model, write the page and the JSON, print the table."""

from __future__ import annotations

import argparse
import io
import zipfile
from pathlib import Path

import numpy as np

from verify.escapes import escaped
from verify.files import replace_files
from verify.practice.loading import Problem, from_options
from verify.practice.loading.foreign import output_apart
from verify.practice.measure import measure_problem, pages
from verify.practice.work import on_terminal
from verify.running.options import require_seed, require_writable

EIGENVALUES = "eigenvalues"
"""Name of the array of eigenvalues, next to those of the parameters."""


def run_measure(options: argparse.Namespace) -> int:
    """``losscurv measure``: measure, write the page and the JSON, print."""
    require_seed(options.seed)
    if options.top < 1:
        raise ValueError(f"--top must be at least 1, got {options.top}")
    folder = Path(options.output)
    with output_apart() as output:
        problem = from_options(options)
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
            found = measure_problem(
                problem,
                top=options.top,
                seed=options.seed,
                budget=options.budget,
                tolerance=options.tolerance,
                layers=options.layers,
                factors=options.factors,
                keep=lambda *both: kept.append(both),
                tell=tell,
            )
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
