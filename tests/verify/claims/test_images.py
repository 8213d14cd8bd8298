"""Claims on given images alone: judged on these, refused by name without them, and never left out without a word."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from simulate.monte_carlo import Block, Point
from tests.verify import toy_claims
from tests.verify.command_line import Planter, elsewhere, judged
from tests.verify.toy_claims import plant
from verify.claims import images, registry
from verify.model import Claim
from verify.model.inventory import Entry

__all__ = ["elsewhere", "plant"]

COLOURS = (3, 6, 5)


def brightness(block: Block, point: Point) -> dict[str, object]:
    """Brightness of the archive's images: their mean, once for each replicate, and a scatter."""
    from simulate import data

    mean = float(data.opened(point.images, COLOURS).images.mean())
    return {"x": mean + 0.01 * block.normal(1)[:, 0]}


COLOURED = Claim(
    id="beyond/colours",
    entries=("D1",),
    source="none",
    statement="x",
    experiment=dataclasses.replace(
        toy_claims.RIGHT.experiment,
        id="beyond/coloured",
        simulate=brightness,
        points=(Point(images="digits", samples=3),),
        data="digits",
        needs=COLOURS,
    ),
    score="x",
    predict=lambda _: 0.0,
    margin=0.1,
    margin_reason="a test",
    relative=False,
    rivals={"one": lambda _: 1.0},
)


def archive(path: Path, *shape: int) -> str:
    np.savez(path, x_train=np.random.default_rng(0).random(shape), y_train=np.arange(shape[0]) % 3)
    return str(path)


def test_a_claim_is_run_on_the_images_that_it_needs(
    plant: Planter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT, COLOURED)
    coloured, grey = archive(tmp_path / "a.npz", 9, 6, 5, 3), archive(tmp_path / "b.npz", 9, 6, 5)

    assert judged("--data", coloured) == 0
    assert "2 agrees" in capsys.readouterr().out
    assert judged("--data", coloured, "--claim", COLOURED.id) == 0
    for words in ([], ["--data", grey], ["--data", archive(tmp_path / "c.npz", 9, 5, 6, 3)]):
        capsys.readouterr()
        assert judged(*words) == 0
        told = capsys.readouterr()
        assert told.out.splitlines()[-1].startswith("1 agrees, 0 disagrees")
        assert "losscurv: not run without images of 3 x 6 x 5 (--data): beyond/colours" in told.err


def test_by_name_it_is_refused_without_them(plant: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    plant(toy_claims.RIGHT, COLOURED)

    assert judged("--claim", COLOURED.id) == 2
    refused = "claim beyond/colours needs images of 3 x 6 x 5 (--data), got digits"
    assert capsys.readouterr().err.splitlines()[-1] == f"losscurv: {refused}"
    plant(COLOURED)
    assert judged() == 2  # nothing would be left


def test_the_inventory_says_what_is_run_on_given_images_alone(
    plant: Planter, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(toy_claims.RIGHT, COLOURED)
    entries = {"beyond": (Entry("D1", "one", "open", scope="half of it"), Entry("D2", "two", "open", "why"))}
    monkeypatch.setattr(registry, "entries", lambda *_: entries)
    one, two = registry.inventory()
    assert one.status == "partly judged"
    assert one.reason == "half of it; on images of 3 x 6 x 5 (--data) alone: beyond/colours"
    assert two.reason == "why"


def test_other_claims_take_any_images() -> None:
    assert images.needed_images(toy_claims.RIGHT) == images.unmet(toy_claims.EXACT, "digits") == ""
