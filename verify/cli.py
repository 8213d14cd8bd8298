"""``losscurv``: the report, quick estimates, the inventory, plots and replays from the shell.

How they end, and the exit status, stands in `verify.endings`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from verify.endings import (
    AS_EXPECTED,
    BAD_INPUT,
    INTERRUPTED,
    SURPRISE,
    close_off,
    ended,
    one_line,
    refuse,
    show_traceback,
    told,
)
from verify.escapes import escaped
from verify.practice import commands as practice

if TYPE_CHECKING:
    from verify.results import Observed, Results, Row
    from verify.running.engine import Session
    from verify.running.options import Plan

__all__ = ["main"]


def _require_ours() -> None:
    """Our packages are those beside this one, whatever the current folder or the path holds under their names."""
    for name in ("simulate", "theory"):
        spec = PathFinder.find_spec(name, [str(Path(__file__).resolve().parents[1])])
        if spec is not None and spec.loader is not None and name not in sys.modules:
            sys.modules[name] = module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])


_require_ours()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; bad input ends in one line that says what to do."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    status = ended(lambda: _run(words))
    if arguments is None:
        close_off()
    return status


def _run(words: list[str]) -> int:
    if words[:1] == ["estimate"]:  # its words belong to the function: argparse would take -1,2 for an option
        from verify import estimate

        return estimate.run(words[1:])
    try:
        options, unknown = _parser().parse_known_args(words)
        if unknown:
            options.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    except SystemExit as end:  # after --help, --version or a wrong option
        return int(end.code or 0)
    from verify.running.options import require_words

    require_words(vars(options))
    return options.run(options)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {told(message)}; see {self.prog} --help\n")


class _Version(argparse.Action):
    """Looks the version up only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from verify.running.suite import version

        print(f"losscurv {version()}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="losscurv",
        description="Theory against simulation for the curvature of neural-network losses.",
        epilog="Exit status: 0 as expected, 1 not as expected (a surprise, a replay that differs), 2 bad input or a"
        " crash, 130 interrupted. LOSSCURV_TRACEBACK=1 in the environment shows the traceback of an error.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_report(commands)
    _add_claims(commands)
    _command(commands, "estimate", _run, "evaluate a theory function; without one, list them")
    _add_plot(commands)
    _add_gallery(commands)
    _add_replay(commands)
    practice.add(commands, _command)
    return parser


def _command(commands: Any, name: str, run: Callable[..., int], help_text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name, help=help_text, description=help_text[0].upper() + help_text[1:] + ".", allow_abbrev=False
    )
    command.set_defaults(run=run, refuse=command.error)
    return command


def _add_report(commands: Any) -> None:
    report = _command(
        commands, "report", _report, "judge the claims, make the observations and write the report"
    )
    _add_options(report)
    report.add_argument("--json", action="store_true", help="print the results as JSON instead of the table")


def _add_replay(commands: Any) -> None:
    replay = _command(commands, "replay", _replay, "repeat a recorded run and compare every score")
    replay.add_argument("file", metavar="RESULTS.JSON", help="what an earlier run left, or its folder")
    _add_options(replay, without=("--replay", "--seed", "--vary-seed", "--tier", "--replicates", "--fresh"))
    replay.add_argument(
        "--json", action="store_true", help="print the new results as JSON instead of the table"
    )


def _add_claims(commands: Any) -> None:
    claims = _command(commands, "claims", _claims, "list every statement of the papers and where it stands")
    claims.add_argument("--paper", action="append", metavar="NAME", help="this paper only (repeatable)")
    claims.add_argument(
        "--status",
        action="append",
        metavar="STATUS",
        help="this status only: judged, open, definition, ... (repeatable)",
    )
    claims.add_argument("--json", action="store_true", help="print as JSON")


def _add_plot(commands: Any) -> None:
    plot = _command(commands, "plot", _plot, "redraw report and plots from a results file, without a rerun")
    plot.add_argument(
        "file",
        nargs="?",
        metavar="RESULTS.JSON",
        help="what a run left, or its folder (default: losscurv-report)",
    )
    plot.add_argument("--output", metavar="FOLDER", help="where to draw (default: beside the results file)")


def _add_gallery(commands: Any) -> None:
    gallery = _command(commands, "gallery", _gallery, "draw pictures of the laws beside fresh draws")
    gallery.add_argument(
        "names", nargs="*", metavar="PICTURE", help="these only (default: all); --list names them"
    )
    gallery.add_argument("--list", action="store_true", help="name the pictures and draw nothing")
    gallery.add_argument(
        "--output",
        metavar="FOLDER",
        default="losscurv-gallery",
        help="where to draw (default: losscurv-gallery)",
    )
    gallery.add_argument(
        "--seed", type=int, metavar="N", default=2024, help="seed of the draws (default 2024)"
    )
    gallery.add_argument(
        "--device", metavar="NAME", default="cpu", help="cpu (default), cuda, cuda:<index> or auto"
    )
    gallery.add_argument(
        "--data", metavar="FILE.npz", default="digits", help="images in place of the embedded digits"
    )


def _add_options(parser: argparse.ArgumentParser, *, without: Sequence[str] = ()) -> None:
    from verify.running.options import OPTIONS

    for flag, keywords in OPTIONS:
        if flag not in without:
            parser.add_argument(flag, **keywords)


def _report(options: argparse.Namespace) -> int:
    from verify.model import Tier
    from verify.running.options import REPORT_DIR, plan

    return _judge(plan(vars(options), tier=Tier.DEFAULT, report_dir=REPORT_DIR), as_json=options.json)


def _replay(options: argparse.Namespace) -> int:
    from verify.model import Tier
    from verify.running.options import plan

    values = {**vars(options), "replay": options.file}
    return _judge(plan(values, tier=Tier.DEFAULT, report_dir=None), as_json=options.json)


def _judge(chosen: Plan, *, as_json: bool) -> int:
    from verify.claims import registry
    from verify.running import suite
    from verify.running.engine import Session
    from verify.running.options import require_writable
    from verify.running.store import replicates_read
    from verify.running.suite import open_store
    from verify.running.workers import open_workers

    if chosen.report_dir:
        require_writable(chosen.report_dir)
    for line in (str(chosen), *chosen.waiting):
        _tell(told(line))
    session, interrupted = None, False
    try:
        with (
            open_store(chosen, _tell) as store,
            open_workers(chosen.settings.workers, chosen.executor) as executor,
        ):
            session = Session(
                chosen.claims,
                chosen.settings,
                executor,
                alpha=registry.alpha,
                store=store,
                observations=chosen.observations,
            )
            if store is not None and store.replicates:
                _tell(replicates_read(store.replicates, store.path.parent))
            with _Progress(session):
                for claim in chosen.claims:
                    session.rows(claim)
                for observation in chosen.observations:
                    session.observed(observation)
    except KeyboardInterrupt:
        if session is None or not (session.finished_rows() or session.finished_observations()):
            raise
        interrupted = True  # what is finished is kept
        print("losscurv: interrupted, keeping what is finished", file=sys.stderr)
    results = suite.collect(session, chosen, interrupted=interrupted)
    status = _conclude(results, chosen, as_json=as_json)
    return INTERRUPTED if interrupted and status != BAD_INPUT else status


def _conclude(results: Results, chosen: Plan, *, as_json: bool) -> int:
    """Write the report first and print after: the page is there even if nobody reads the terminal."""
    from verify.page import report
    from verify.running import replays, suite
    from verify.running.workers import shared

    try:
        written = None
        if chosen.report_dir:
            with shared(len(results.rows), chosen.settings.workers) as each:
                written = report.write(results, chosen.report_dir, each)
        problem = ""
    except Exception as error:  # the numbers are printed all the same
        show_traceback(error)
        written, problem = None, one_line(error)
    made = (*results.rows, *results.observations)
    bad = [row for row in made if suite.failed(row, strict_undecided=chosen.strict_undecided)]
    changed = replays.differences(chosen.replay, results, chosen.asked) if chosen.replay else []
    doubts = suite.doubts(results)
    with contextlib.suppress(BrokenPipeError):
        if as_json:
            _print_json(results, changed)
        else:
            _print_table(results, chosen, bad, changed, written)
    for doubt in doubts:
        print(f"losscurv: {doubt}", file=sys.stderr)
    if problem:
        return refuse(problem)
    return SURPRISE if bad or changed or doubts else AS_EXPECTED


def _tell(line: str) -> None:
    print(f"losscurv: {escaped(line)}", file=sys.stderr)


def _print_json(results: Results, changed: list[str]) -> None:
    from verify.results import dumps

    sys.stdout.write(dumps(results))
    for line in changed:
        _tell(f"replay differs: {told(line)}")


def _print_table(
    results: Results, chosen: Plan, bad: list[Row | Observed], changed: list[str], written: Path | None
) -> None:
    from verify.page import terminal
    from verify.page.wording import legible

    if results.rows:
        terminal.console().print(terminal.table(legible(results.rows)))
    if results.observations:
        print("\n" * bool(results.rows) + terminal.observed_block(legible(results.observations)))
    for row in legible(bad):
        print(f"\n{row.error}{terminal.surprise_block(row)}")
    for line in changed:
        print(f"replay differs: {told(line)}")
    if chosen.replay and not changed:
        print("replay: every score and verdict is the same")
    if written:
        print(f"report: {escaped(str(written))}")
    print(terminal.tally(results.rows, results.observations))


def _claims(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from verify.claims import registry
    from verify.model.inventory import Status
    from verify.page import terminal

    papers, asked = options.paper or [], options.status or []
    statuses = [s.value for s in Status]
    for status in asked:
        if status not in statuses:
            raise ValueError(f"--status must be one of {', '.join(statuses)}, got {status!r}")
    registry.require_papers(papers)
    rows = [
        row
        for row in registry.inventory()
        if (not papers or row.paper in papers) and (not asked or row.status in asked)
    ]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False))
    else:
        terminal.console().print(terminal.inventory_table(rows))
        count = {s: sum(row.status == s for row in rows) for s in statuses}
        print(f"{len(rows)} entries: {', '.join(f'{n} {s}' for s, n in count.items() if n)}")
    return AS_EXPECTED


def _plot(options: argparse.Namespace) -> int:
    from simulate.monte_carlo import default_workers
    from verify.page import plots, report
    from verify.results import edited
    from verify.running.options import REPORT_DIR, load_results, require_writable
    from verify.running.workers import shared

    file = Path(options.file or REPORT_DIR)
    results = load_results(str(file))
    if edited(results):
        _tell(f"results file {file} was edited after its run: its sha256 does not fit; the page says so")
    folder = Path(options.output) if options.output else (file if file.is_dir() else file.parent)
    require_writable(folder, "--output")
    written = plots.save_all(results, folder / "plots")
    with shared(len(results.rows), default_workers()) as each:
        page = report.write(results, folder, each)
    print(f"{len(written)} plots: {escaped(str(folder / 'plots'))}")
    print(f"report: {escaped(str(page))}")
    return AS_EXPECTED


def _gallery(options: argparse.Namespace) -> int:
    from simulate.monte_carlo import resolve_device
    from verify import gallery
    from verify.claims.images import require_images
    from verify.running.options import require_seed, require_writable

    chosen = gallery.named(options.names)
    if options.list:
        print("\n".join(f"{picture.name:18}{picture.shows}" for picture in chosen))
        return AS_EXPECTED
    require_images(options.data, max(picture.images for picture in chosen))
    setting = gallery.Setting(
        seed=require_seed(options.seed), device=resolve_device(options.device), data=options.data
    )
    require_writable(Path(options.output), "--output")
    for picture in chosen:
        started = time.monotonic()
        _, png = gallery.save(picture, setting, Path(options.output))
        print(f"{escaped(str(png))}  {picture.shows}, {time.monotonic() - started:.1f} s", flush=True)
    return AS_EXPECTED


class _Progress:
    """A live bar with the time left on a terminal; a line every ten seconds elsewhere."""

    EVERY = 10.0

    def __init__(self, session: Session) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        from verify.page.terminal import console as console_of

        self.session = session
        console = console_of(sys.stderr)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(session.progress().what),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("judging", total=session.progress().total, left="")
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
            print(f"  {progress.done} of {progress.total} {progress.what}, {left}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
