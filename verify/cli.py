"""``losscurv``: the report, quick estimates, the inventory, plots and replays from the shell.

Exit status 0 as expected, 1 a surprise in a verdict, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verify.engine import Session
    from verify.options import Plan
    from verify.results import Results

__all__ = ["main"]

REPORT_DIR = "losscurv-report"
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; bad input and a full disk end in one line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone; the interpreter would complain while closing
        return 0
    except (ValueError, OSError) as error:
        print(f"losscurv: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("losscurv: interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    from verify import estimate
    from verify.model import Status

    parser = argparse.ArgumentParser(prog="losscurv", description="Theory against simulation for loss curvature.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    report = _command(commands, "report", _report, "judge the claims and write the report")
    _run_options(report)
    report.add_argument("--json", action="store_true", help="print the results as JSON instead of the table")

    replay = _command(commands, "replay", _replay, "repeat a recorded run and compare every score")
    replay.add_argument("file", metavar="RESULTS.JSON")
    _run_options(replay, without=("--replay", "--seed", "--vary-seed", "--tier", "--replicates"))

    claims = _command(commands, "claims", _claims, "list every statement of the papers and where it stands")
    claims.add_argument("--paper", action="append", metavar="NAME", help="this paper only (repeatable)")
    claims.add_argument("--status", choices=[s.value for s in Status], help="this status only")
    claims.add_argument("--json", action="store_true", help="print as JSON")

    estimates = _command(commands, "estimate", estimate.run, "evaluate a theory function")
    estimate.add_arguments(estimates)

    plot = _command(commands, "plot", _plot, "redraw report and plots from a results file, without a rerun")
    plot.add_argument("file", nargs="?", default=f"{REPORT_DIR}/results.json", metavar="RESULTS.JSON")
    plot.add_argument("--output", metavar="FOLDER", help="where to draw (default: beside the results file)")
    return parser


class _Version(argparse.Action):
    """Looks the version up only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from verify.suite import version

        parser.exit(message=f"losscurv {version()}\n")


def _command(commands: Any, name: str, run: Callable[..., int], help_text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=help_text, description=help_text[0].upper() + help_text[1:] + ".")
    command.set_defaults(run=run)
    return command


def _run_options(parser: argparse.ArgumentParser, *, without: Sequence[str] = ()) -> None:
    from verify.options import OPTIONS

    for flag, keywords in OPTIONS:
        if flag not in without:
            parser.add_argument(flag, **keywords)


def _report(options: argparse.Namespace) -> int:
    from verify.model import Tier
    from verify.options import plan

    return _judge(plan(vars(options), tier=Tier.DEFAULT, report_dir=REPORT_DIR), as_json=options.json)


def _replay(options: argparse.Namespace) -> int:
    from verify.model import Tier
    from verify.options import plan

    values = {**vars(options), "replay": options.file}
    return _judge(plan(values, tier=Tier.DEFAULT, report_dir=None), as_json=False)


def _judge(chosen: Plan, *, as_json: bool) -> int:
    from simulate.monte_carlo import open_executor
    from verify import suite
    from verify.engine import Session

    settings = chosen.settings
    print(f"tier {settings.tier}, seed {settings.seed}, {settings.workers} workers", file=sys.stderr)
    interrupted = False
    with open_executor(settings.workers, chosen.executor) as executor:
        session = Session(chosen.claims, settings, executor)
        try:
            with _Progress(session):
                for claim in chosen.claims:
                    session.rows(claim)
        except KeyboardInterrupt:  # what is finished is kept
            interrupted = True
    results = suite.collect(session, chosen, interrupted=interrupted)
    return _conclude(results, chosen, as_json=as_json, interrupted=interrupted)


def _conclude(results: Results, chosen: Plan, *, as_json: bool, interrupted: bool) -> int:
    from rich.console import Console

    from verify import report, suite, terminal

    written = report.write(results, chosen.report_dir) if chosen.report_dir else None
    bad = [row for row in results.rows if suite.failed(row, strict_undecided=chosen.strict_undecided)]
    changed = suite.differences(chosen.replay, results) if chosen.replay else []
    if as_json:
        from verify.results import dumps

        sys.stdout.write(dumps(results))
    else:
        Console(highlight=False).print(terminal.table(results.rows))
        for row in bad:
            print(f"\n{row.error or terminal.surprise_block(row)}")
        for line in changed:
            print(f"replay differs: {line}")
        if chosen.replay and not changed:
            print("replay: every score and verdict is the same")
        if written:
            print(f"report: {written}")
        print(terminal.tally(results.rows))
    if interrupted:
        print(f"losscurv: interrupted after {len(results.rows)} rows, which are kept", file=sys.stderr)
        return INTERRUPTED
    return 1 if bad or changed or _uncaught(results) else 0


def _uncaught(results: Results) -> bool:
    """A planted error that was not caught makes the whole run worthless."""
    missed = [row.claim for row in results.planted if row.verdict != "disagrees"]
    if missed:
        print(f"planted errors not caught: {', '.join(missed)}", file=sys.stderr)
    return bool(missed)


def _claims(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from rich.console import Console

    from verify import registry, terminal

    registry.select(paper=options.paper or [])
    rows = [
        row
        for row in registry.inventory()
        if (not options.paper or row.paper in options.paper) and (not options.status or row.status == options.status)
    ]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        Console(highlight=False).print(terminal.inventory_table(rows))
    return 0


def _plot(options: argparse.Namespace) -> int:
    from verify import plots, report
    from verify.results import load

    file = Path(options.file)
    results = load(file)
    folder = Path(options.output) if options.output else file.parent
    folder.mkdir(parents=True, exist_ok=True)
    written = plots.save_all(results, folder / "plots")
    print(f"{len(written)} plots in {folder / 'plots'}")
    print(f"report: {report.write(results, folder)}")
    return 0


class _Progress:
    """A live bar with the time left on a terminal; a line every ten seconds elsewhere."""

    EVERY = 10.0

    def __init__(self, session: Session) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self.session = session
        console = Console(stderr=True)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("claims"),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("judging", total=len(session.claims), left="")
        self.spoken = time.monotonic()

    def __enter__(self) -> None:
        self.session.listener = self._update
        self.bar.start()

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def _update(self) -> None:
        progress = self.session.progress()
        left = f"{progress.elapsed:.0f} s, about {progress.left:.0f} s left"
        self.bar.update(self.task, completed=progress.done, left=left)
        if self.bar.disable and time.monotonic() - self.spoken > self.EVERY:
            self.spoken = time.monotonic()
            print(f"  {progress.done} of {progress.total} claims, {left}", file=sys.stderr)


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'output'}: {error.strerror}"
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
