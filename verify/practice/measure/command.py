"""``losscurv measure``: measure a model, write the page and the JSON, print the table."""

from __future__ import annotations

import argparse
from pathlib import Path

from verify.escapes import escaped
from verify.practice.loading import from_options
from verify.practice.loading.foreign import output_apart
from verify.practice.measure import measure_problem, pages
from verify.practice.work import on_terminal
from verify.running.options import require_seed, require_writable


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
        with on_terminal("measuring") as tell:
            found = measure_problem(
                problem,
                top=options.top,
                seed=options.seed,
                budget=options.budget,
                tolerance=options.tolerance,
                layers=options.layers,
                batches=options.batches,
                tell=tell,
            )
        text = pages.measurement_json(found) if options.json else pages.measurement_text(found)
        try:
            page = pages.write_measurement(found, folder)
        finally:  # a full disk does not take away what was measured
            output.write(text)
        if not options.json:
            output.write(f"page: {escaped(str(page))}\n")
    return 0
