"""Claims and observations that take milliseconds, one of each outcome, for tests of the front doors."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simulate.monte_carlo import Block, Point
from verify.claims import register, registry
from verify.model import AnyClaim, Claim, Experiment, Identity, Passage, Standing, Tier
from verify.model.observation import Column, Observation
from verify.running import suite


def uniform(block: Block, point: Point) -> Mapping[str, Any]:
    return {"x": np.array([point.scale * rng.random() for rng in block.streams])}


def pairs(block: Block, point: Point) -> Mapping[str, Any]:
    """A prediction that is too large by the square root of the size, and one that is right on average."""
    sizes = np.array(point.size)
    drawn = np.stack([rng.uniform(0.9, 1.1, len(sizes)) for rng in block.streams])
    return {"good": drawn, "bad": point.scale * np.sqrt(sizes) * drawn, "spent": drawn.sum(axis=1)}


def still(block: Block, point: Point) -> Mapping[str, Any]:
    return {"x": np.full(len(block), 0.5 * point.scale)}


def crash(_block: Block, _point: Point) -> Mapping[str, Any]:
    raise RuntimeError("the detector is off")


def stop(_block: Block, _point: Point) -> Mapping[str, Any]:
    raise KeyboardInterrupt


def two_routes(rng: np.random.Generator, _point: Point) -> dict[str, Any]:
    x = rng.random(3)
    return {"sum": x.sum(), "product": x @ np.ones(3), "one short": x[1:].sum()}


def _experiment(name: str, simulate: Any = uniform, *, tier: Tier = Tier.DEFAULT) -> Experiment:
    return Experiment(
        id=f"toy/{name}",
        replicate="one uniform variable",
        simulate=simulate,
        points=(Point(scale=1.7),),
        budget=256,
        tier=tier,
    )


def _claim(name: str, experiment: Experiment, *, predict: float = 0.5, **more: Any) -> Claim:
    return Claim(
        id=f"beyond/{name}",
        entries=("D1",),
        source="toy",
        statement=r"\\mathbb{E} x = s/2",
        experiment=experiment,
        score="x",
        predict=lambda p: predict * p.scale,
        margin=more.pop("margin", 0.5),
        margin_reason="a toy",
        **more,
    )


UNIFORM = _experiment("uniform", tier=Tier.SMOKE)

RIGHT = _claim("right", UNIFORM)
MISPRINT = _claim(
    "misprint",
    _experiment("other"),
    printed=lambda p: 3.0 * p.scale,
    finding="too large",
    passage=Passage(Standing.MISPRINT, "for all", "eq. (1)"),
)
WRONG = _claim("wrong", _experiment("wrong"), predict=1.3, margin=0.1)
MANY_RIGHT = tuple(replace(RIGHT, id=f"beyond/right-{i}") for i in range(20))
TIGHT = _claim("tight", _experiment("tight"), margin=1e-4, may_be_undecided="its budget is a toy too")
UNFORESEEN = replace(TIGHT, id="beyond/unforeseen", may_be_undecided="")
STILL = _claim("still", _experiment("still", still))
BROKEN = _claim("broken", _experiment("crash", crash))
STOPS = _claim("stops", _experiment("stop", stop))
EXACT = Identity(
    id="beyond/exact",
    entries=("D1",),
    source="toy",
    statement="a = b",
    routes=two_routes,
    points=(Point(dim=3),),
    tolerance=1e-12,
    tolerance_reason="rounding",
)


def _observation(name: str, simulate: Any = pairs) -> Observation:
    return Observation(
        id=f"beyond/{name}",
        entries=("D1",),
        source="toy",
        title="Uniform variables",
        note="The second prediction forgets a square root, and is too large by 2 to 8.",
        replicate="one row of uniform variables",
        simulate=simulate,
        points=(Point(scale=0.7, size=(4, 16, 64)), Point(scale=1.1, size=(4, 16, 64))),
        along="size",
        columns=(
            Column(score="good", heading="right", ratio=True),
            Column(score="bad", heading="without the root", ratio=True),
            Column(score="spent", heading="sum"),
        ),
        replicates=3,
        seconds=0.01,
    )


SEEN = _observation("seen")
LOST = _observation("lost", crash)
HALTS = _observation("halts", stop)


def replace_all(patch: pytest.MonkeyPatch, *items: AnyClaim | Observation) -> None:
    """Make these all that the registry holds, without rules of admission, ledgers, planted errors and derivations."""
    claims = tuple(item for item in items if not isinstance(item, Observation))
    seen = tuple(item for item in items if isinstance(item, Observation))
    patch.setattr(registry, "claims", lambda *_: claims)
    patch.setattr(registry, "observations", lambda *_: seen)
    for name in ("admit", "admit_observations", "_admit_papers"):
        patch.setattr(registry, name, lambda *_: None)
    patch.setattr(register, "ledgers", lambda *_: {})
    patch.setattr(suite, "PLANTED", ())
    patch.setattr(suite, "_derivations", lambda *_: [])


def require_one_copy() -> None:
    """Check that the patched modules are those that run; otherwise every claim would be judged."""
    assert sys.modules["verify.claims.registry"] is registry


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes what it is given all there is; the costly parts of a results file are left out.

    So are the pages, which take longer than all else together, but for those who ask for them.
    """
    from verify.page import report
    from verify.page.report import contents, paper_pages

    require_one_copy()
    drawn = report.document, report.documents, paper_pages.beside
    left_out = (lambda *_: "no page\n"), (lambda *_: {contents.REPORT: "no page\n"}), (lambda *_: {})

    def planted(*items: AnyClaim | Observation, page: bool = False) -> None:
        replace_all(monkeypatch, *items)
        document, documents, beside = drawn if page else left_out
        monkeypatch.setattr(report, "document", document)
        monkeypatch.setattr(report, "documents", documents)
        monkeypatch.setattr(paper_pages, "beside", beside)

    monkeypatch.setitem(os.environ, "COLUMNS", "100")
    return planted
