"""The command ``losscurv``: measurements, plans, reports, the inventory, estimates and plots.

`verify.endings` describes the exit status and the messages of errors.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
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
    ended,
    fit_to_line,
    one_line,
    refuse,
    show_traceback,
)
from verify.escapes import escaped
from verify.heartbeat import Heartbeat
from verify.practice import commands as practice

if TYPE_CHECKING:
    from verify.results import Results
    from verify.running.request import Request

CLEAR = "\x1b[2K"
"""Empties the line of a terminal."""

EPILOG = """\
Options of a command: losscurv COMMAND --help

Exit status: 0 as expected; 1 not as expected (an unexpected verdict, a replay
that differs, a registered claim that is missing, too few claims decided);
2 bad input or a crash; 130 interrupted. Set LOSSCURV_TRACEBACK=1 in the
environment to see the traceback of an error.
"""


def _near(name: str, known: Any, **options: Any) -> str:
    """Return a suggestion for a mistyped name.

    Imported here: where a user's own ``simulate.py`` comes first, the command still starts.
    """
    from simulate._checks import did_you_mean

    return did_you_mean(name, known, **options)


def _require_ours() -> None:
    """Import `simulate` and `theory` from next to this package, whatever the path holds under their names."""
    for name in ("simulate", "theory"):
        # Looked for here alone: in the user's folder a file `simulate.py` would come first on the path.
        spec = PathFinder.find_spec(name, [str(Path(__file__).resolve().parents[1])])
        if spec is not None and spec.loader is not None and name not in sys.modules:
            sys.modules[name] = module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])


_require_ours()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; bad input ends in one line that says what to do."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return ended(lambda: _run(words))


def _run(words: list[str]) -> int:
    if words[:1] == ["estimate"]:  # its words belong to the function: argparse would take -1,2 for an option
        from verify import estimate

        return estimate.run(words[1:], _readers)
    try:
        with Heartbeat(_say, "loading"):
            parser = _parser()
            if not words:
                parser.print_help()
                return AS_EXPECTED
            options, unknown = parser.parse_known_args(words)
        if unknown:
            claim = len(unknown) == 1 and "/" in unknown[0] and hasattr(options, "claim")  # its id alone
            meant = f"; did you mean --claim {unknown[0]}?" * claim
            if getattr(options, "batch_sizes", None) and all(word.isdecimal() for word in unknown):
                meant = f"; write --batch-sizes {','.join([options.batch_sizes, *unknown])}"
            options.refuse(f"unrecognized arguments: {' '.join(unknown)}{meant}")
    except SystemExit as end:  # after --help, --version or a wrong option
        return int(end.code or 0)
    from verify.running.options import require_words

    require_words(vars(options))
    return options.run(options)


def _readers() -> dict[str, dict[str, str]]:
    from verify.claims.records import readers_of_theory

    return readers_of_theory()


class _Parser(argparse.ArgumentParser):
    """Parser whose errors are one line, with the option or choice that was probably meant."""

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - of its overloads only the general one
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        """Refuse an unknown option first: argparse would complain about missing ones instead."""
        known = [name for action in self._actions for name in action.option_strings]
        for word in args or ():
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                break  # no options of this parser behind it
            name = word.partition("=")[0]
            # A word with a space is the value of an option, not an option.
            if name.startswith("--") and name not in known and " " not in word:
                plain = {option.lstrip("-"): option for option in known}
                near = _near(name.lstrip("-"), plain, suggest=plain)
                self.error(f"unrecognized arguments: {word}{near}")
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known, near = ", ".join(map(repr, action.choices)), _near(str(value), action.choices)
            raise argparse.ArgumentError(action, f"unknown value {value!r}{near or f'; choose from {known}'}")

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {fit_to_line(message)}; see {self.prog} --help\n")


class _Version(argparse.Action):
    """Looks the version up only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        # Imported late, as in all commands, so that `losscurv --help` loads neither torch nor matplotlib.
        from verify.running.suite import version

        print(f"losscurv {version()}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="losscurv",
        description=(
            "Measure the curvature of the loss of a neural network, choose learning rates,\n"
            "and compare published formulas for curvature with simulation."
        ),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_report(commands)
    _add_claims(commands)
    estimate = _command(
        commands, "estimate", _run, "evaluate a theory function; without one, list the topics"
    )
    estimate.add_argument("function", nargs="?", metavar="TOPIC.FUNCTION")
    compare = _command(
        commands, "compare", _compare, "compare verdicts and estimates of two runs", "RECORDED NOW"
    )
    compare.add_argument(
        "files", nargs=2, metavar="RESULTS.JSON", help="results file of a run, or its folder"
    )
    _add_plot(commands)
    _add_gallery(commands)
    practice.add(commands, _command)
    return parser


def _command(
    commands: Any, name: str, run: Callable[..., int], help_text: str, required: str = ""
) -> argparse.ArgumentParser:
    """Add a command; its usage line names the required arguments alone, since all others fill a third of a screen."""
    command = commands.add_parser(
        name,
        help=help_text,
        description=help_text[0].upper() + help_text[1:] + ".",
        # Only the required words: all options of a run fill a third of a screen.
        usage=f"losscurv {name} {required}{' ' * bool(required)}[OPTIONS]",
        allow_abbrev=False,
    )
    command.set_defaults(run=run, refuse=command.error)
    return command


def _add_report(commands: Any) -> None:
    report = _command(commands, "report", _report, "judge the claims by simulation and write the report")
    _add_options(report)
    replay = _command(
        commands, "replay", _report, "repeat a recorded run and compare every score", "RESULTS.JSON"
    )
    replay.add_argument("file", metavar="RESULTS.JSON", help="results file of the earlier run, or its folder")
    _add_options(replay, without=("--replay", "--seed", "--vary-seed", "--tier", "--replicates", "--fresh"))
    for command in (report, replay):
        command.add_argument("--json", action="store_true", help="print JSON instead of the table")


def _add_claims(commands: Any) -> None:
    about = "count the statements of the papers, or list those with all of some words"
    add = _command(commands, "claims", _claims, about, "[WORD ...]").add_argument
    add(
        "words",
        nargs="*",
        metavar="WORD",
        help="paper, id, status, topic or any other part of a statement or of its claims",
    )
    add("--paper", action="append", metavar="NAME", help="list this paper only (repeatable)")
    add(
        "--scorecard",
        nargs="?",
        const=True,
        metavar="RESULTS.JSON",
        help="count outcomes by paper, of a report (default: losscurv-report, else the verdicts as registered)",
    )
    add("--json", action="store_true", help="print as JSON, with formulas, conditions, sources and code")
    add("--schema", action="store_true", help="print the JSON Schema of the statements")


def _add_plot(commands: Any) -> None:
    add = _command(
        commands, "plot", _plot, "draw the report of a run again, or one figure", "[RESULTS.JSON]"
    ).add_argument
    add(
        "file",
        nargs="?",
        metavar="RESULTS.JSON",
        help="results of a run, file or folder (default: losscurv-report)",
    )
    add("--output", metavar="FOLDER", help="folder for the report (default: as the results)")
    add("--one-file", action="store_true", help="write the whole report into report.html")
    add("--claim", metavar="ID", help="draw this claim or observation; judge it first if the results lack it")
    add("--main", action="store_true", help="draw one figure with the main plots of the run")
    add("--paper", metavar="NAME", help="draw one figure with the main plots of this paper")
    add(
        "--panels",
        metavar="WHICH",
        choices=("main", "all"),
        help="of --claim; all adds the deviations in margins",
    )
    add("--width", metavar="INCHES", type=float, help="width of the figure (default: about 7)")
    add(
        "--out",
        metavar="FILE",
        help="file of the figure, .svg, .pdf or .png (default: CLAIM.svg in this folder)",
    )


def _add_gallery(commands: Any) -> None:
    parser = _command(
        commands, "gallery", _gallery, "draw pictures of laws against simulations", "[PICTURE ...]"
    )
    add, folder = parser.add_argument, "losscurv-gallery"
    add("names", nargs="*", metavar="PICTURE", help="pictures to draw (default: all); --list names them")
    add("--list", action="store_true", help="name the pictures with their claims and draw nothing")
    add("--output", metavar="FOLDER", default=folder, help=f"folder for the pictures (default: {folder})")
    _add_options(parser, only=("--seed", "--device", "--data", "--workers"))


def _add_options(
    parser: argparse.ArgumentParser, *, only: Sequence[str] = (), without: Sequence[str] = ()
) -> None:
    from verify.running.options import OPTIONS

    for flag, keywords in OPTIONS:
        if flag not in without and (flag in only or not only):
            parser.add_argument(flag, **keywords)


def _report(options: argparse.Namespace) -> int:
    from verify.model import Tier
    from verify.running.options import REPORT_DIR
    from verify.running.request import requested

    values = vars(options)
    again = {"replay": values["file"]} if "file" in values else {}
    with Heartbeat(_say, "loading the claims"):
        request = requested({**values, **again}, tier=Tier.DEFAULT, report_dir=REPORT_DIR)
    return _judge(request, as_json=options.json)


def _judge(request: Request, *, as_json: bool) -> int:
    from verify.reporting import publish
    from verify.running import suite

    session, interrupted = None, False
    for line in request.heading:
        _tell(fit_to_line(line))
    written, problem = None, ""
    with Heartbeat(_say, "reading earlier replicates and starting workers") as heart:
        try:
            with suite.open_session(request, _tell) as session:
                progress = session.progress
                heart.doing(lambda: str(progress()))
                session.judge_all()
                heart.doing("stopping the workers")
        except KeyboardInterrupt:
            # Before anything is finished there is nothing to report.
            if session is None or not (session.finished_rows() or session.finished_observations()):
                raise
            interrupted = True  # what is finished is kept
            _tell("interrupted; finished claims are kept")
        results = suite.collect(session, request, interrupted=interrupted, doing=heart.doing)
        heart.doing("writing the page")
        if request.report_dir is not None:  # before anything is printed: nobody may read the terminal
            try:
                one_file = request.options.one_file
                written = publish(results, request.report_dir, request.settings.workers, one_file=one_file)
            except Exception as error:  # the numbers are printed all the same
                show_traceback(error)
                problem = one_line(error)
    _line("", "")
    status = _conclude(results, request, written, problem, as_json=as_json)
    return INTERRUPTED if interrupted and status != BAD_INPUT else status


def _conclude(
    results: Results, request: Request, written: Path | None, problem: str, *, as_json: bool
) -> int:
    """Print the results and return the exit status."""
    from verify.page import summary
    from verify.results import dumps
    from verify.running import suite

    made = (*results.rows, *results.observations)
    bad = [row for row in made if suite.failed(row, strict_undecided=request.options.strict_undecided)]
    notes, changed = suite.replayed(results, request)
    doubts = suite.doubts(results)
    # The exit status still counts if the reader, such as `head`, has gone.
    with contextlib.suppress(BrokenPipeError):
        if as_json:
            sys.stdout.write(dumps(results))
            for note in notes:
                _tell(fit_to_line(note))
        else:
            notes = [
                escaped(note) for note in (*map(fit_to_line, notes), *[f"report: {written}"] * bool(written))
            ]
            print(summary.closing_text(results, bad, notes, table=request.options.table))
    # On standard error, so that JSON on standard output stays JSON.
    for doubt in doubts:
        _tell(doubt)
    if problem:
        return refuse(problem)
    return SURPRISE if bad or changed or doubts else AS_EXPECTED


def _line(text: str, end: str = "\n") -> None:
    """Write a line on standard error; on a terminal it replaces the line that shows progress."""
    print(f"{CLEAR * sys.stderr.isatty()}{text}", end=end, file=sys.stderr, flush=True)


def _say(line: str) -> None:
    """Print progress: on a terminal a line that the next one replaces."""
    _line(f"  {line}", "\r" if sys.stderr.isatty() else "\n")


def _tell(line: str) -> None:
    _line(f"losscurv: {escaped(line)}")


def _claims(options: argparse.Namespace) -> int:
    from verify.claims import registry
    from verify.claims.records import Statement, statement_record
    from verify.claims.search import with_words
    from verify.model.schema import json_schema
    from verify.page import terminal

    registry.require_papers(options.paper or [])
    narrowed = options.words or options.paper
    if options.scorecard:
        if narrowed or options.schema:
            raise ValueError("--scorecard counts all statements and takes no other option but --json")
        _scorecard(options)
        return AS_EXPECTED
    claims = {claim.id: claim for claim in registry.claims()}
    asked = [row for row in registry.inventory() if not options.paper or row.paper in options.paper]
    rows, near = with_words(asked, claims, options.words)
    if options.schema:
        _print_json(json_schema(list[Statement]))
    elif options.json:
        _print_json([statement_record(row, claims) for row in rows])
    elif narrowed:
        nothing = "no statement has all of these" + (near or "; for the papers, see losscurv claims")
        print("\n".join(terminal.statement_lines(rows, claims) or [nothing]))
    else:
        print("\n".join(terminal.statements_by_paper(rows, claims, registry.papers())))
    return AS_EXPECTED


def _scorecard(options: argparse.Namespace) -> None:
    from verify.page.counts import scorecard
    from verify.page.terminal import score_lines
    from verify.page.wording import legible
    from verify.running.options import REPORT_DIR

    here = options.scorecard is True
    absent = here and not Path(REPORT_DIR, "results.json").exists()
    card = legible(scorecard(None if absent else _load(REPORT_DIR if here else options.scorecard)))
    if options.json:
        _print_json(card)
    else:
        print("\n".join(score_lines(card)))


def _print_json(value: Any) -> None:
    from dataclasses import asdict

    print(json.dumps(value, indent=1, ensure_ascii=False, default=asdict))


def _compare(options: argparse.Namespace) -> int:
    from verify.running.replays import largest_change, run_differences

    recorded, now = map(_load, options.files)
    found = run_differences(recorded, now)
    lines = [*found, f"{len(found)} verdicts differ or are lacking; {largest_change(recorded, now)}"]
    print("\n".join(map(escaped, lines)))
    return SURPRISE if found else AS_EXPECTED


def _load(file: str) -> Results:
    """Load a results file, and say so if it was edited after its run."""
    from verify.results import edited
    from verify.running.options import load_results

    results = load_results(file)
    if edited(results):
        _tell(f"results file {file} was edited after its run (its sha256 does not match)")
    return results


def _plot(options: argparse.Namespace) -> int:
    from simulate.monte_carlo import default_workers
    from verify.reporting import publish
    from verify.running.options import REPORT_DIR, require_writable

    if options.claim is not None or options.main or options.paper is not None:
        return _plot_one(options)
    for name in ("out", "panels", "width"):
        if getattr(options, name) is not None:
            raise ValueError(f"--{name} needs --claim ID, --main or --paper NAME")
    file = Path(options.file or REPORT_DIR)
    if options.file is None and not file.exists():
        raise ValueError(f"no results in {file}: run losscurv report first, or name a results file")
    results = _load(str(file))
    folder = Path(options.output) if options.output else (file if file.is_dir() else file.parent)
    require_writable(folder, "--output")
    with Heartbeat(_say, "drawing the figures"):
        page = publish(results, folder, default_workers(), one_file=options.one_file)
    _line("", "")
    print(f"report: {escaped(str(page))}")
    return AS_EXPECTED


def _plot_one(options: argparse.Namespace) -> int:
    """Draw one figure into one file, from the results at hand or from a run of this claim alone."""
    from verify import reporting
    from verify.page import plots, wording
    from verify.running.options import REPORT_DIR, load_results

    if options.output is not None:
        raise ValueError("--output cannot be combined with --claim, --main or --paper; use --out FILE")
    source, claim = options.file, options.claim or ""
    name = claim or options.paper or "main"
    out = Path(options.out or f"{wording.slugs([name])[name]}.svg")
    plots.format_of(out)  # now, not after a run
    if source is None and Path(REPORT_DIR, "results.json").exists():
        source = load_results(REPORT_DIR)
    if source is None and claim:
        _tell(f"no results in {REPORT_DIR}; judging {fit_to_line(claim)} first")
    # A file that was named is not replaced by a run: the error of `reporting.plot` says what it lacks.
    elif source is not None and claim and not options.file and not reporting.holds(source, claim):
        _tell(f"{fit_to_line(claim)} is not in the results in {REPORT_DIR}; judging it first")
        source = None
    figure = reporting.plot(
        source, claim, panels=options.panels or "main", width=options.width, main=options.main,
        paper=options.paper or "",
    )  # fmt: skip
    plots.save_as(figure, out)
    print(f"figure: {escaped(str(out))}")
    return AS_EXPECTED


def _gallery(options: argparse.Namespace) -> int:
    from simulate.monte_carlo import default_workers
    from verify import reporting
    from verify.page import plots
    from verify.running.options import require_writable

    chosen, folder = reporting.pictures(options.names), Path(options.output)
    if options.list:
        print("\n".join(f"{name:18}{claim}" for name, claim in chosen.items()))
        return AS_EXPECTED
    require_writable(folder, "--output")
    asked = {name: getattr(options, name) for name in ("seed", "device", "data")}
    with Heartbeat(_say, "judging the claims of the pictures"):
        found = reporting.report([*chosen.values()], workers=options.workers or default_workers(), **asked)
    _line("", "")
    for name, claim in chosen.items():
        plots.save_as(reporting.plot(found, claim), folder / f"{name}.png")
        print(f"{escaped(str(folder / name))}.png  {claim}", flush=True)
    return AS_EXPECTED


if __name__ == "__main__":
    sys.exit(main())
