"""A run as asked for: what the options come to, with what is left out and why."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulate import data
from simulate._checks import did_you_mean
from simulate.monte_carlo import default_workers, free_memory, resolve_device
from verify.claims import registry
from verify.claims.images import DIGITS, images_there, on_images, unmet
from verify.judging.intervals import FEWEST
from verify.model import AnyClaim, Claim, StatisticalProperty, Tier
from verify.model.observation import Observation
from verify.results import OTHER_IMAGES, Results
from verify.running.drawn_again import left_by_rounding, roundings_of
from verify.running.options import (
    ALL_CLAIMS,
    MOST_REPLICATES,
    SEED,
    WORKERS_PER_CORE,
    load_results,
    require_between,
    require_seed,
    require_words,
)
from verify.running.programme import Programme, at_points, fitted
from verify.running.replays import INTERRUPTED
from verify.running.settings import Settings

__all__ = ["Request", "requested"]

WORTH_STARTING = 5.0
"""Seconds of work below which other processes are not started: each loads torch first."""

NAMED = "--claim"
"""What leaves out all claims but those that it names."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A run as asked for: what to judge and to observe, how, where, and what to compare it with.

    `named` says whether claims were asked for one by one; `papers` are those that are then loaded, empty for all.
    `waiting` is what of it is left out, with the images that it needs; `for_a_gpu` what only a GPU can draw, with what
    it takes by estimate, or why it is left out; `gone` are the ids of what a replayed file holds and this version no
    longer has, `not_drawn` those and the ids that need a GPU; `left_out` counts the claims that are not to be judged,
    by what leaves them out.
    """

    claims: tuple[AnyClaim, ...]
    papers: registry.Only
    named: bool
    settings: Settings
    executor: str | None
    report_dir: Path | None
    replay: Results | None
    fresh: bool
    strict_undecided: bool
    selection: str
    observations: tuple[Observation, ...] = ()
    one_file: bool = False
    table: bool = False
    waiting: tuple[str, ...] = ()
    for_a_gpu: tuple[str, ...] = ()
    not_drawn: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def asked(self) -> set[str]:
        """Ids of all that is to be judged and observed."""
        return {item.id for item in (*self.claims, *self.observations)}

    @property
    def single(self) -> set[str]:
        """Ids of the experiments and observations that are in single precision."""
        drawn = (c.experiment for c in self.claims if isinstance(c, Claim))
        return {item.id for item in (*drawn, *self.observations) if item.single}

    @property
    def rounding(self) -> dict[str, float]:
        """By which part the rounding of another machine may move a score that a claim reads, by the id of the claim."""
        drawn = [c for c in self.claims if isinstance(c, Claim)]
        left = left_by_rounding(drawn)
        read = {
            c.id: [left.get((c.experiment.id, score), 0.0) for _, score in roundings_of([c])] for c in drawn
        }
        return {claim: max(parts) for claim, parts in read.items() if any(parts)}

    @property
    def heading(self) -> tuple[str, ...]:
        """What is said before the start, line by line."""
        skipped = [f"replay: this version has no claim {', '.join(self.gone)}: skipped"] * bool(self.gone)
        return (str(self), *self.waiting, *self.for_a_gpu, *skipped)

    def __str__(self) -> str:
        s = self.settings
        where = self.executor or f"{s.workers} worker{'s' * (s.workers > 1)}"
        return f"tier {s.tier}, seed {s.seed}, {where}, {s.device}"


def requested(values: Mapping[str, Any], *, tier: Tier, report_dir: str | None) -> Request:
    """Check the options and resolve them; `tier` and `report_dir` are what holds where the option is not given.

    A replay leaves no report unless it is told where: it must not replace the one it is compared with. It draws
    everything itself: replicates that were read would show nothing.

    Raises
    ------
    ValueError
        Naming the option that cannot be used, and why.
    """
    require_words(values)
    replay = load_results(values["replay"]) if values.get("replay") else None
    _require_consistent(values)
    chosen_tier = _tier(values.get("tier") or (replay.suite.tier if replay else tier))
    folder = values.get("report_dir") or (None if replay else report_dir)
    device = _device(values.get("device") or "cpu", here=not values.get("executor"))
    if values.get("workers") is not None:
        require_between("--workers", 1, WORKERS_PER_CORE * default_workers(), values["workers"])
    replicates = replay.suite.replicates if replay else values.get("replicates")
    images = values.get("data") or (replay.suite.data if replay else DIGITS)
    _require_images(images, values.get("claim") or ())
    gone = _gone(values, replay)
    asked = _selected(values, replay, chosen_tier, gone)
    workers = values.get("workers") or _workers(asked, device)
    waiting = {item.id: needed for item in asked if (needed := unmet(item, images))}
    if waiting and (values.get("claim") or replay or len(waiting) == len(asked)):
        raise ValueError(_not_run(waiting, images))
    planned = Settings(tier=chosen_tier, device=device, workers=workers, replicates=replicates, data=images)
    programme = _programme(asked, values, replay, planned)
    absent = {*waiting, *programme.left_out}
    asked = (*(item for item in asked if not isinstance(item, Observation)), *programme.observations)
    selected = on_images([item for item in asked if item.id not in absent], images)
    papers = registry.papers_with(values.get("claim") or ())
    return Request(
        papers=papers,
        named=bool(values.get("claim")),
        claims=tuple(item for item in selected if not isinstance(item, Observation)),
        observations=tuple(item for item in selected if isinstance(item, Observation)),
        waiting=_waiting(waiting),
        for_a_gpu=programme.lines,
        not_drawn=(*gone, *programme.left_out),
        gone=gone,
        settings=Settings(
            seed=_seed(values, replay),
            tier=chosen_tier,
            device=device,
            workers=workers,
            replicates=None if replicates is None else _replicates(replicates, selected),
            data=images,
            draws=values.get("draws") or (replay.suite.draws if replay else ""),
        ),
        executor=values.get("executor"),
        report_dir=Path(folder) if folder else None,
        replay=replay,
        fresh=bool(values.get("fresh")) or replay is not None,
        strict_undecided=bool(values.get("strict_undecided")),
        selection=_selection(values, replay),
        one_file=bool(values.get("one_file")),
        table=bool(values.get("table")),
        left_out=_left_out(values, {item.id for item in selected}, waiting, chosen_tier, papers),
    )


def _require_consistent(values: Mapping[str, Any]) -> None:
    fixed = [
        name for name in ("seed", "vary_seed", "tier", "replicates") if values.get(name) not in (None, False)
    ]
    if values.get("replay") and fixed:
        raise ValueError(
            f"--{fixed[0].replace('_', '-')} must not stand beside --replay, which takes it from the file"
        )
    if values.get("vary_seed") and values.get("seed") is not None:
        raise ValueError("--vary-seed must not stand beside --seed, which fixes it")


def _require_images(images: str, names: Sequence[str]) -> None:
    """Before the claims are loaded, which takes seconds; that their names were not looked at is said then."""
    if images == DIGITS:
        return
    try:
        data.require_file(Path(images))
    except ValueError as error:
        unseen = f"; --claim {', '.join(names)} not looked up yet" if names else ""
        raise ValueError(f"{error}{unseen}") from None


def _selected(
    values: Mapping[str, Any], replay: Results | None, tier: Tier, gone: Collection[str]
) -> tuple[AnyClaim | Observation, ...]:
    names, papers = values.get("claim") or [], values.get("paper") or []
    if replay:
        names = names or [name for name in _recorded_names(replay) if name not in gone]
    found = (
        *registry.select(tier, claim=names, paper=papers),
        *registry.select_observations(tier, claim=names, paper=papers),
    )
    if not found:
        asked = " and ".join([*["--claim"] * bool(names), *["--paper"] * bool(papers)])
        reason = f"--tier {tier}" if not names else "these"
        if not names and registry.select(paper=papers):
            reason += "; --tier full has some"
        raise ValueError(f"{asked or '--tier'} must leave at least one claim, got none with {reason}")
    return found


def _programme(
    asked: Sequence[AnyClaim | Observation],
    values: Mapping[str, Any],
    replay: Results | None,
    planned: Settings,
) -> Programme:
    """Which of what only a GPU can draw is drawn; what is named and cannot be is refused."""
    seen = [item for item in asked if isinstance(item, Observation)]
    large = any(o.cost is not None for o in seen)
    device = planned.device
    known = large and device != "cpu" and not values.get("executor")
    found = fitted(
        seen,
        device=device,
        memory=free_memory(device, planned.workers) if known else None,
        images=lambda: images_there(planned.data),
        replicates=planned.repeats,
        recorded=_recorded(replay) if replay else None,
    )
    for name in values.get("claim") or ():
        if name in found.left_out:
            small = next(o.small for o in seen if o.id == name)
            raise ValueError(f"--claim {name} must be possible here: {found.left_out[name]}; see {small}")
    if len(asked) == len(found.left_out):
        option = "--replay" if replay else "--paper" if values.get("paper") else "--tier"
        raise ValueError(f"{option} must leave at least one claim, got none: {'; '.join(found.lines)}")
    return found


def _recorded(replay: Results) -> dict[str, set[str]]:
    """The points at which a run drew, by what was drawn."""
    found: dict[str, set[str]] = {}
    for run in replay.runs:
        found.setdefault(run.experiment, set()).add(at_points(run.parameters))
    return found


def _left_out(
    values: Mapping[str, Any],
    selected: Collection[str],
    waiting: Collection[str],
    tier: Tier,
    loaded: registry.Only,
) -> dict[str, int]:
    """How many claims of the papers that are loaded are not to be judged, by the first option that leaves them out."""
    names, papers = values.get("claim"), values.get("paper")

    def reason(claim: AnyClaim) -> str:
        if claim.id in waiting:
            return OTHER_IMAGES
        if papers and claim.paper not in papers:
            return "--paper"
        if names:
            return NAMED
        return "--replay" if values.get("replay") else f"--tier {tier}"

    return dict(Counter(reason(claim) for claim in registry.claims(loaded) if claim.id not in selected))


def _not_run(waiting: Mapping[str, str], images: str) -> str:
    """Of what is asked for by name, or was recorded: it is run or refused."""
    name, needed = next(iter(waiting.items()))
    return f"claim {name} needs {needed}, got {images}"


def _waiting(waiting: Mapping[str, str]) -> tuple[str, ...]:
    """A line for each sort of images that is missing, with all that needs it."""
    lines: list[str] = []
    for needed in dict.fromkeys(waiting.values()):
        *others, last = (name for name, other in waiting.items() if other == needed)
        listed = (
            f"{', '.join(others)} and {last} are not run, they need"
            if others
            else f"{last} is not run, it needs"
        )
        lines.append(f"{listed} {needed}")
    return tuple(lines)


def _gone(values: Mapping[str, Any], replay: Results | None) -> tuple[str, ...]:
    """The recorded claims and observations that this version no longer has: skipped, unless they are asked for."""
    if replay is None:
        return ()
    recorded, known = _recorded_names(replay), set(registry.ids())
    names = values.get("claim") or ()
    absent = [name for name in names if name not in recorded]
    if absent:
        raise ValueError(f"--claim must name what the results file judges, got {', '.join(absent)}")
    if not recorded:
        raise ValueError("--replay must name a run that judged at least one claim, this one judged none")
    unknown = tuple(name for name in names or recorded if name not in known)
    if unknown and (names or len(unknown) == len(recorded)):
        raise ValueError(f"--replay: this version has no claim {', '.join(unknown)}")
    return unknown


def _recorded_names(replay: Results) -> list[str]:
    return list(dict.fromkeys([*(row.claim for row in replay.rows), *(o.id for o in replay.observations)]))


def _device(name: str, *, here: bool) -> str:
    return (
        name if name == "cpu" else resolve_device(name, here=here)
    )  # the rest is torch's to answer, and it loads slowly


def _workers(asked: Sequence[AnyClaim | Observation], device: str) -> int:
    """One per core or GPU, but this process alone where others would take longer to start than all work takes."""
    costs: dict[str, float] = {}
    for item in asked:
        if isinstance(item, Claim):  # several may read one experiment, whose seconds are those of a point
            costs[item.experiment.id] = item.experiment.seconds * len(item.experiment.points)
        elif isinstance(item, Observation):
            costs[item.id] = item.seconds * len(item.points) * item.replicates
        else:
            costs[item.id] = item.seconds
    return 1 if sum(costs.values()) < WORTH_STARTING else default_workers(device)


def _seed(values: Mapping[str, Any], replay: Results | None) -> int:
    if values.get("vary_seed"):
        return secrets.randbits(32)
    if values.get("seed") is not None:
        return require_seed(values["seed"])
    return replay.suite.seed if replay else SEED


def _tier(word: str) -> Tier:
    if word not in list(Tier):
        raise ValueError(f"--tier must be one of {', '.join(Tier)}, got {word!r}{did_you_mean(word, Tier)}")
    return Tier(word)


def _replicates(count: int, selected: Sequence[AnyClaim | Observation]) -> int:
    """Below `FEWEST` no interval is judged: such a run could decide nothing."""
    sampled = any(isinstance(item, Claim | StatisticalProperty) for item in selected)
    return require_between("--replicates", FEWEST if sampled else 1, MOST_REPLICATES, count)


def _selection(values: Mapping[str, Any], replay: Results | None) -> str:
    parts = [*(values.get("claim") or []), *(values.get("paper") or [])]
    return ", ".join(parts) or (replay.suite.selection.removesuffix(INTERRUPTED) if replay else ALL_CLAIMS)
