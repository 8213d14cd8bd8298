"""A run as asked for: what the options come to, with what is left out and why."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from simulate import data
from simulate._checks import did_you_mean
from simulate.monte_carlo import default_workers, free_memory, resolve_device
from verify.claims import registry
from verify.claims.images import DIGITS, Item, images_there, on_images, unmet
from verify.judging.intervals import FEWEST
from verify.model import AnyClaim, Claim, StatisticalProperty, Tier
from verify.model.observation import Observation
from verify.results import OTHER_IMAGES, Results
from verify.running.gpu_only import GpuOnly, at_points, fitted
from verify.running.options import (
    MOST_REPLICATES,
    SEED,
    Options,
    load_results,
    require_between,
    require_seed,
    require_words,
)
from verify.running.replays import INTERRUPTED, names_in, read_by
from verify.running.settings import Settings

WORTH_STARTING = 5.0
"""Seconds of work below which other processes are not started: each loads torch first."""

WORKERS_PER_CORE = 16
"""Most local processes per core: more would only wait for each other, each with the libraries in memory."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A run as asked for: what to judge and to observe, how, where, and what to compare it with.

    `papers` are those that are loaded, empty for all. `waiting` is what of it is left out, with the images that it
    needs; `for_a_gpu` what only a GPU can draw, with what it takes by estimate, or why it is left out; `gone` are the
    ids of what a replayed file holds and this version no longer has, `not_drawn` those and the ids that need a GPU;
    `left_out` counts the claims that are not to be judged, by what leaves them out.
    """

    options: Options
    claims: tuple[AnyClaim, ...]
    observations: tuple[Observation, ...]
    papers: registry.Only
    settings: Settings
    report_dir: Path | None
    replay: Results | None
    selection: str
    waiting: tuple[str, ...]
    for_a_gpu: tuple[str, ...]
    not_drawn: tuple[str, ...]
    gone: tuple[str, ...]
    left_out: Mapping[str, int]

    @property
    def asked(self) -> set[str]:
        """Ids of all that is to be judged and observed."""
        return {item.id for item in (*self.claims, *self.observations)}

    @property
    def drawn(self) -> list[Claim]:
        """The claims on experiments."""
        return [claim for claim in self.claims if isinstance(claim, Claim)]

    @property
    def single(self) -> set[str]:
        """Ids of the experiments and observations that are in single precision."""
        return {item.id for item in (*(c.experiment for c in self.drawn), *self.observations) if item.single}

    @property
    def rounding(self) -> dict[str, float]:
        """By which part the rounding of another machine may move a score that a claim reads, by the id of the claim."""
        moved = {c.id: max(c.experiment.rounding.get(s, 0.0) for s in read_by(c)) for c in self.drawn}
        return {name: part for name, part in moved.items() if part}

    @property
    def heading(self) -> tuple[str, ...]:
        """Return the lines that are printed before the start."""
        skipped = [f"replay: this version has no claim {', '.join(self.gone)}: skipped"] * bool(self.gone)
        return (str(self), *self.waiting, *self.for_a_gpu, *skipped)

    def __str__(self) -> str:
        s = self.settings
        where = self.options.executor or f"{s.workers} worker{'s' * (s.workers > 1)}"
        return f"tier {s.tier}, seed {s.seed}, {where}, {s.device}"


def requested(values: Mapping[str, Any], *, tier: Tier, report_dir: str | None) -> Request:
    """Return the checked and resolved request; `tier` and `report_dir` are used where the option is not given.

    A replay leaves no report unless it is told where, and draws everything itself.

    Raises
    ------
    ValueError
        Naming the option that cannot be used, and why.
    """
    require_words(values)
    o = Options.of(values)
    replay = load_results(o.replay) if o.replay else None
    fixed = [
        name for name in ("seed", "vary_seed", "tier", "replicates") if values.get(name) not in (None, False)
    ]
    if replay and fixed:
        raise ValueError(
            f"--{fixed[0].replace('_', '-')} cannot be combined with --replay, which takes it from the file"
        )
    if o.vary_seed and o.seed is not None:
        raise ValueError("--vary-seed cannot be combined with --seed")
    settings = Settings(
        seed=_seed(o, replay),
        tier=_tier(o.tier or (replay.suite.tier if replay else tier)),
        # A device of the cluster need not exist in this process.
        device=resolve_device(o.device, here=not o.executor),
        replicates=replay.suite.replicates if replay else o.replicates,
        data=o.data or (replay.suite.data if replay else DIGITS),
        draws=o.draws or (replay.suite.draws if replay else ""),
    )
    if o.workers is not None:
        require_between("--workers", 1, WORKERS_PER_CORE * default_workers(), o.workers)
    if settings.data != DIGITS:  # before the claims are loaded, which takes seconds
        data.require_file(Path(settings.data))
    gone = _missing_ids(o.claim, replay) if replay else ()
    candidates = _selected(o, replay, settings.tier, gone)
    settings = replace(settings, workers=o.workers or _workers(candidates, settings.device))
    waiting = {item.id: needed for item in candidates if (needed := unmet(item, settings.data))}
    # Skipping is for a broad selection. What was named, recorded or is all there is must not vanish silently.
    if waiting and (o.claim or replay or len(waiting) == len(candidates)):
        name, needed = next(iter(waiting.items()))
        raise ValueError(f"claim {name} needs {needed}, got {settings.data}")
    gpu_only = _gpu_only(candidates, o, replay, settings)
    absent = {*waiting, *gpu_only.left_out}
    listed = [*(item for item in candidates if not isinstance(item, Observation)), *gpu_only.observations]
    selected = on_images([item for item in listed if item.id not in absent], settings.data)
    # below `FEWEST` no interval is judged: such a run could decide nothing
    if settings.replicates is not None:
        sampled = any(isinstance(item, Claim | StatisticalProperty) for item in selected)
        require_between("--replicates", FEWEST if sampled else 1, MOST_REPLICATES, settings.replicates)
    papers = registry.papers_with(o.claim)
    named = ", ".join([*o.claim, *o.paper])
    # A replay must not replace the report that it is compared with.
    folder = o.report_dir or (None if replay else report_dir)
    return Request(
        options=o,
        claims=tuple(item for item in selected if not isinstance(item, Observation)),
        observations=tuple(item for item in selected if isinstance(item, Observation)),
        papers=papers,
        settings=settings,
        report_dir=Path(folder) if folder else None,
        replay=replay,
        selection=named or (replay.suite.selection.removesuffix(INTERRUPTED) if replay else "all claims"),
        waiting=tuple(
            f"not run without {needed}: {', '.join(n for n, other in waiting.items() if other == needed)}"
            for needed in dict.fromkeys(waiting.values())
        ),
        for_a_gpu=gpu_only.lines,
        not_drawn=(*gone, *gpu_only.left_out),
        gone=gone,
        left_out=_left_out(o, {item.id for item in selected}, waiting, settings.tier, papers),
    )


def _seed(o: Options, replay: Results | None) -> int:
    if o.vary_seed:
        return secrets.randbits(32)
    return require_seed(o.seed) if o.seed is not None else replay.suite.seed if replay else SEED


def _tier(word: str) -> Tier:
    if word not in list(Tier):
        raise ValueError(f"--tier must be one of {', '.join(Tier)}, got {word!r}{did_you_mean(word, Tier)}")
    return Tier(word)


def _missing_ids(names: Sequence[str], replay: Results) -> tuple[str, ...]:
    """The recorded claims and observations that this version no longer has: skipped, unless they are asked for."""
    recorded, known = names_in(replay), set(registry.ids())
    absent = [name for name in names if name not in recorded]
    if absent:
        raise ValueError(f"the results file has no claim {', '.join(absent)}")
    if not recorded:
        raise ValueError("the results file of --replay judges no claim")
    unknown = tuple(name for name in names or recorded if name not in known)
    # Claims asked for by name, or all there are, cannot be skipped.
    if unknown and (names or len(unknown) == len(recorded)):
        raise ValueError(f"--replay: this version has no claim {', '.join(unknown)}")
    return unknown


def _selected(o: Options, replay: Results | None, tier: Tier, gone: Collection[str]) -> tuple[Item, ...]:
    names = o.claim or ([n for n in names_in(replay) if n not in gone] if replay else ())
    found = (
        *registry.select(tier, claim=names, paper=o.paper),
        *registry.select_observations(tier, claim=names, paper=o.paper),
    )
    if not found:
        asked = " and ".join([*["--claim"] * bool(names), *["--paper"] * bool(o.paper)])
        if not names:
            asked = " and ".join([asked, f"--tier {tier}"] if asked else [f"--tier {tier}"])
            asked += "; --tier full has some" * bool(registry.select(paper=o.paper))
        raise ValueError(f"no claim is left to judge with {asked}")
    return found


def _workers(items: Sequence[Item], device: str) -> int:
    """One per core or GPU, but this process alone where others would take longer to start than all work takes."""
    costs: dict[str, float] = {}
    for item in items:
        if isinstance(item, Claim):  # several may read one experiment, whose seconds are those of a point
            # One entry per experiment: several claims may share its draws.
            costs[item.experiment.id] = item.experiment.seconds * len(item.experiment.points)
        elif isinstance(item, Observation):
            costs[item.id] = item.seconds * len(item.points) * item.replicates
        else:
            costs[item.id] = item.seconds
    return 1 if sum(costs.values()) < WORTH_STARTING else default_workers(device)


def _gpu_only(items: Sequence[Item], o: Options, replay: Results | None, settings: Settings) -> GpuOnly:
    """Select the observations that need a GPU; one that is named and cannot run is refused."""
    observations = [item for item in items if isinstance(item, Observation)]
    # Only a device of this machine can be asked how much memory is free.
    known = any(each.cost for each in observations) and settings.device != "cpu" and not o.executor
    recorded: dict[str, set[str]] = {}
    for run in replay.runs if replay else ():
        recorded.setdefault(run.experiment, set()).add(at_points(run.parameters))
    found = fitted(
        observations,
        device=settings.device,
        memory=free_memory(settings.device, settings.workers) if known else None,
        images=partial(images_there, settings.data),
        replicates=settings.repeats,
        recorded=recorded if replay else None,
    )
    for each in observations:
        if each.id in o.claim and each.id in found.left_out:
            why = found.left_out[each.id]
            raise ValueError(f"--claim {each.id} cannot run here: {why}; a smaller version is {each.small}")
    if len(items) == len(found.left_out):
        option = "--replay" if replay else "--paper" if o.paper else "--tier"
        raise ValueError(f"no claim is left to judge with {option}: {'; '.join(found.lines)}")
    return found


def _left_out(
    o: Options, selected: Collection[str], waiting: Collection[str], tier: Tier, loaded: registry.Only
) -> dict[str, int]:
    """Count claims of the loaded papers that are not judged, by the first option that leaves them out."""

    def reason(claim: AnyClaim) -> str:
        if claim.id in waiting:
            return OTHER_IMAGES
        if o.paper and claim.paper not in o.paper:
            return "--paper"
        return "--claim" if o.claim else "--replay" if o.replay else f"--tier {tier}"

    return dict(Counter(reason(claim) for claim in registry.claims(loaded) if claim.id not in selected))
