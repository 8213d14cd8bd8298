"""A Dask cluster gives the scores and verdicts of one process, or says that it has other code."""

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from simulate.monte_carlo import SerialExecutor, open_executor
from tests.verify.running.fatal_calls import Basket, die, nap
from tests.verify.toy_claims import SEEN
from verify.judging.planted import PLANTED
from verify.results import Observed, Row, RunRecord
from verify.running.engine import Session, Settings
from verify.running.store import FILE, Store
from verify.running.workers import WorkerLostError

dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

KINDS = ("mean", "ratio", "limit", "exponent", "component", "identity")
CLAIMS = [claim for claim in PLANTED if claim.id.removeprefix("planted/") in KINDS]
"""Scalar and vector scores at two points, and an identity: a cluster sees no more of a claim than its blocks."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Address of a cluster with two workers; its environment variables are removed afterwards."""
    with (
        mock.patch.dict(os.environ),
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),  # a new worker takes a second
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            protocol="tcp",
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
    ):
        yield cluster.scheduler_address.replace("tcp://", "dask://")


def judged(made: Session) -> tuple[list[Row | Observed], list[RunRecord]]:
    made.judge_all()
    rows = [*made.finished_rows(), *made.finished_observations()]
    return [dataclasses.replace(r, seconds=0.0) for r in rows], [
        dataclasses.replace(record, seconds=0.0) for record in made.records()
    ]


def test_two_processes_of_a_cluster_give_the_scores_and_verdicts_of_one(address: str) -> None:
    serial = judged(Session(CLAIMS, Settings(seed=5), SerialExecutor(), observations=[SEEN]))
    with open_executor(2, address) as executor:
        found = judged(Session(CLAIMS, Settings(seed=5, workers=2), executor, observations=[SEEN]))
    assert repr(found) == repr(serial)  # a NaN is none other than itself
    *rows, table = serial[0]
    assert {row.verdict for row in rows if isinstance(row, Row)} == {"disagrees"} and len(serial[1]) == 4
    assert isinstance(table, Observed) and table.groups


def install_other_code() -> None:
    """As an older version of the package would have it."""
    from verify.running import origin

    origin._sources = lambda: "of another version"  # pyright: ignore


def test_a_cluster_with_other_code_is_refused_in_a_line(address: str, tmp_path: Path) -> None:
    claim = CLAIMS[0]
    with open_executor(2, address) as executor, Store(tmp_path, print) as store:
        executor._client.run(install_other_code)
        (row,) = Session([claim], Settings(workers=2), executor, store=store).rows(claim)
    assert row.verdict == "broken" and row.error.count("\n") == 1
    assert row.error.startswith("a worker runs different code or library versions than this process; ")
    with Store(tmp_path, print) as store:
        Session([claim], Settings(), SerialExecutor(), store=store)
        assert store.replicates == 0 and (tmp_path / FILE).exists()


def test_what_ends_badly_on_a_cluster_ends_alone_and_a_lost_one_in_a_line(address: str) -> None:
    with open_executor(2, address) as executor:
        basket = Basket(executor)
        assert (basket.calls.workers, basket.calls.room) == (2, 4)
        basket.send("good", nap, seconds=0)
        basket.send("bad", nap, seconds=-1)
        found = basket.all(2)
        assert found["good"].result() != os.getpid()
        with pytest.raises(ValueError, match="non-negative"):
            found["bad"].result()
        basket.send("dies", die)
        with pytest.raises(WorkerLostError, match="its worker died 2 times"):
            basket.all(3)["dies"].result()
        basket.send("late", nap, seconds=60)
        executor._client.close()
        basket.send("after", nap, seconds=0)
        for name in ("late", "after"):
            with pytest.raises(WorkerLostError, match=r"the connection .* was lost|has dropped the call"):
                basket.all(5)[name].result()
