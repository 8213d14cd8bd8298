"""A replay finds every score and verdict the same, or says which differs."""

import dataclasses
import math

import numpy as np
import pytest

from simulate.monte_carlo import Block, Point
from tests.verify.engine_runs import ALL, GAMMAS, MEAN, POINTS, claim, gammas, identity, session
from tests.verify.sample_results import sample
from verify import suite
from verify.engine import Settings
from verify.results import Results, load, save


def results(*claims, **options) -> Results:
    made = session(*claims, **options)
    rows = [row for tested in claims for row in made.rows(tested)]
    return Results(suite=sample().suite, rows=rows, runs=made.records(), inventory=[])


@pytest.fixture
def recorded(tmp_path) -> Results:
    """A run read back from its file, where the tuples among the parameters are lists."""
    save(results(*ALL, identity()), tmp_path / "results.json")
    return load(tmp_path / "results.json")


def test_a_replay_finds_every_score_and_verdict_the_same(recorded: Results) -> None:
    assert suite.differences(recorded, results(*ALL, identity())) == []


def test_a_replay_of_fewer_claims_compares_those(recorded: Results) -> None:
    """The others may have drawn more of the same replicates."""
    again = results(MEAN)
    assert again.runs[0].replicates < recorded.runs[0].replicates
    assert suite.differences(recorded, again) == []


def shifted(block: Block, point: Point) -> dict[str, np.ndarray]:
    """Another score changes in its last bit, the one that is judged does not."""
    found = gammas(block, point)
    return found | {"square": np.nextafter(found["square"], math.inf)}


def test_a_replay_finds_a_score_that_changed_in_its_last_bit(recorded: Results) -> None:
    moved = dataclasses.replace(GAMMAS, simulate=shifted)
    again = results(*(dataclasses.replace(c, experiment=moved) for c in ALL))
    found = suite.differences(recorded, again)
    hashes = [line for line in found if "scores differ" in line]
    assert len(hashes) == len(POINTS) and all("paper/gammas at" in line for line in hashes)
    assert not any(line.startswith("paper/mean:") for line in found)
    assert any(line.startswith("paper/ratio: measured") for line in found)


def test_a_replay_finds_measured_values_and_verdicts_that_changed(recorded: Results) -> None:
    changed = claim(predict=lambda p: 2 * p.shape)
    assert suite.differences(recorded, results(changed)) == ["paper/mean: agrees was recorded, now disagrees"]
    (line,) = suite.differences(recorded, results(identity(theory="close")))
    assert line.startswith("paper/identity: measured ")
    seed = suite.differences(recorded, results(MEAN, settings=Settings(seed=8)))
    assert any(line.startswith("paper/mean: measured ") for line in seed)
