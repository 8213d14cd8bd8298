"""A Dask cluster gives the scores and verdicts of one process."""

import dataclasses

import pytest

from simulate.monte_carlo import SerialExecutor, open_executor
from verify.engine import Session, Settings
from verify.planted import PLANTED
from verify.results import Row, RunRecord

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow


def judged(session: Session) -> tuple[list[Row], list[RunRecord]]:
    rows = [row for claim in session.claims for row in session.rows(claim)]
    timeless = [dataclasses.replace(row, seconds=0.0) for row in rows]
    return timeless, [dataclasses.replace(record, seconds=0.0) for record in session.records()]


def test_two_processes_of_a_cluster_give_the_scores_and_verdicts_of_one() -> None:
    serial = judged(Session(PLANTED, Settings(seed=5), SerialExecutor()))
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            protocol="tcp",
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        open_executor(2, cluster.scheduler_address.replace("tcp://", "dask://")) as executor,
    ):
        found = judged(Session(PLANTED, Settings(seed=5, workers=2), executor))
    assert repr(found) == repr(serial)  # a NaN is none other than itself
    assert {row.verdict for row in serial[0]} == {"disagrees"} and serial[1]
