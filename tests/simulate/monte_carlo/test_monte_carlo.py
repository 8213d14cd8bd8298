"""Streams, points, blocks, executors: what a replicate depends on, and that nothing else changes its bits."""

import copy
import json
import math
import os
import pickle
import platform
import sys
from collections.abc import Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info

from simulate import monte_carlo
from simulate.matrices import ensembles
from simulate.monte_carlo import BLOCK, Block, Point, SerialExecutor, run_block
from tests.interpreters import fresh

POINT = Point(dim=30, spike=1.7)


def run(simulate: Any, **options: Any) -> monte_carlo.BlockResult:
    return run_block(simulate, **{"experiment": "edges", "point": POINT, "seed": 3, "index": 0, **options})


def edges(block: Block, point: Point) -> dict[str, torch.Tensor]:
    """The simulation that the executors below run: needs draws, BLAS and LAPACK."""
    directions = ensembles.unit_vectors(block, point.dim)
    noise = ensembles.wigner(block, point.dim)
    value, vector = ensembles.top_eigenpair(ensembles.spiked(noise, directions, point.spike))
    return {"value": value, "first": vector[:, 0] ** 2}


def failing(block: Block, point: Point) -> dict[str, torch.Tensor]:
    raise ArithmeticError("planted")


def assert_same_bits(executor: Executor) -> None:
    futures = [executor.submit(run, edges, index=index) for index in range(3)]
    for future, scores in zip(futures, expected(), strict=True):
        found = future.result().scores
        assert list(found) == list(scores)
        for name in scores:
            assert_array_equal(found[name], scores[name])


@cache
def expected() -> list[dict[str, np.ndarray]]:
    return [run(edges, index=index).scores for index in range(3)]


# --- points


def test_point_is_a_mapping_read_by_attribute() -> None:
    assert isinstance(POINT, Mapping)
    assert (POINT.dim, POINT["spike"], len(POINT), list(POINT)) == (30, 1.7, 2, ["dim", "spike"])
    assert dict(**POINT) == {"dim": 30, "spike": 1.7}
    assert repr(POINT | {"spike": 2.5, "law": "rademacher"}) == "Point(dim=30, spike=2.5, law='rademacher')"
    with pytest.raises(AttributeError, match=r"no parameter 'width'; this point has dim, spike"):
        _ = POINT.width
    with pytest.raises(KeyError, match="width"):
        POINT["width"]


def test_point_is_immutable() -> None:
    with pytest.raises(AttributeError, match=r"a point is immutable; write point \| \{'dim': value\}"):
        POINT.dim = 3
    with pytest.raises(TypeError, match="does not support item assignment"):
        POINT["dim"] = 3  # pyright: ignore[reportIndexIssue]
    widths = [1, 2]
    point = Point(widths=widths)
    widths.append(3)
    assert point.widths == (1, 2)


def test_equal_points_have_equal_hashes_whatever_the_order() -> None:
    turned = Point(spike=1.7, dim=30)
    assert turned == POINT and hash(POINT) == hash(turned) and len({POINT, turned}) == 1
    assert Point(dim=30, spike=1.8) != POINT and POINT != {"dim": 30, "spike": 1.7}
    assert Point(flag=True) != Point(flag=1) and Point(n=1) != Point(n="1")


@pytest.mark.parametrize(
    "clone",
    [
        copy.copy,
        copy.deepcopy,
        lambda p: pickle.loads(pickle.dumps(p)),
        lambda p: Point(**json.loads(p.canonical())),
    ],
)
def test_copies_are_equal(clone: Any) -> None:
    point = Point(dim=2**70, bias=False, law='\ud7ff"\\é', spike=1e-320, widths=[[1, 2.5], [], ["a", True]])
    assert clone(point) == point and set(clone(point)) == set(point)
    assert clone(point).canonical() == point.canonical() and hash(clone(point)) == hash(point)
    assert list(clone(POINT)) == list(POINT)


def test_numpy_scalars_become_plain_numbers() -> None:
    point = Point(dim=np.int64(3), spike=np.float64(0.5), flag=np.bool_(True), widths=(np.int32(2),))
    assert point.canonical() == '{"dim": 3, "flag": true, "spike": 0.5, "widths": [2]}'
    assert repr(point) == "Point(dim=3, spike=0.5, flag=True, widths=(2,))"


# --- streams


def test_a_stream_depends_on_each_thing_that_names_the_replicate() -> None:
    named = {"seed": 1, "experiment": "edges", "point": POINT, "replicate": 0}
    others = [
        {}, {"seed": 2}, {"experiment": "edge"}, {"point": POINT | {"dim": 31}}, {"point": POINT | {"extra": 0}},
        {"replicate": 1}, {"replicate": 10},
    ]  # fmt: skip
    found = [[monte_carlo.stream(**(named | other)).random() for other in others] for _ in range(2)]
    assert len({*found[0]}) == len(others) and found[0] == found[1]
    assert monte_carlo.stream(**(named | {"point": Point(spike=1.7, dim=30)})).random() == found[0][0]
    fixtures = [monte_carlo.fixture(seed, name).random() for seed in (1, 2) for name in ("one", "two")]
    assert len({*fixtures}) == 4 and monte_carlo.fixture(2, "two").random() == fixtures[3]


def test_streams_are_the_same_on_every_machine() -> None:
    """Pinned: results on file are replayed by these streams."""
    generator = monte_carlo.stream(1, "edges", POINT, 7)
    assert isinstance(generator.bit_generator, np.random.Philox)
    assert generator.integers(2**32, size=2).tolist() == [1559156714, 3686243724]


def test_neighbouring_replicates_are_uncorrelated() -> None:
    draws = np.stack([monte_carlo.stream(0, "edges", POINT, i).standard_normal(2000) for i in range(12)])
    correlations = np.corrcoef(draws)[np.triu_indices(12, 1)]
    assert np.abs(correlations).max() < 4.5 / math.sqrt(2000)


# --- blocks


def test_a_block_stacks_one_draw_per_stream() -> None:
    block, again = (
        Block(tuple(monte_carlo.stream(0, "edges", POINT, i) for i in range(3))) for _ in range(2)
    )
    normal, signs = block.normal(2, 5), block.stack(lambda rng: rng.integers(0, 2, 4))
    assert len(block) == 3
    assert normal.shape == (3, 2, 5) and normal.dtype == torch.float64 and normal.device.type == "cpu"
    for i, rng in enumerate(again.streams):
        assert_array_equal(normal[i], rng.standard_normal((2, 5)))
        assert_array_equal(signs[i], rng.integers(0, 2, 4))


def test_block_index_selects_its_sixteen_replicates() -> None:
    result = run(lambda block, _: {"u": [rng.random() for rng in block.streams]}, index=2)
    expected = [monte_carlo.stream(3, "edges", POINT, i).random() for i in range(2 * BLOCK, 3 * BLOCK)]
    assert_array_equal(result.scores["u"], expected)
    assert result.seconds > 0 and result.scores["u"].dtype == np.float64


def test_the_simulation_sees_its_point_device_and_one_thread_and_threads_are_given_back() -> None:
    def look(block: Block, point: Point) -> dict[str, Any]:
        assert (point, block.device, torch.get_num_threads()) == (POINT, "meta", 1)
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
        assert not torch.backends.cuda.matmul.allow_tf32 and not torch.backends.cudnn.allow_tf32
        return failing(block, point)

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(ArithmeticError, match="planted"):
            run(look, device="meta")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    "values", [torch.arange(16.0, requires_grad=True), np.arange(16), [i > 3 for i in range(16)]]
)
def test_scores_of_any_real_type_become_float64(values: Any) -> None:
    score = run(lambda *_: {"s": values}).scores["s"]
    assert score.dtype == np.float64 and score.shape == (16,)


@pytest.mark.slow
def test_one_thread_reaches_what_scipy_and_torch_bring() -> None:
    """A simulation that imports them first inside a block must find them limited already."""
    script = """
import os, sys
from simulate.monte_carlo import one_thread

def look():
    import scipy.linalg, threadpoolctl
    print("torch" in sys.modules, {pool["num_threads"] for pool in threadpoolctl.threadpool_info()})

os.environ["OMP_NUM_THREADS"] = "1"
with one_thread():
    look()
del os.environ["OMP_NUM_THREADS"]
with one_thread():
    look()
    import torch
    print(torch.get_num_threads())
"""
    free = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    two = free | {"OPENBLAS_NUM_THREADS": "2"}  # counts for a BLAS more than OMP_NUM_THREADS
    assert fresh(script, env=two).splitlines() == ["False {1}", "True {1}", "1"]


# --- executors


def test_serial_and_process_pool_give_the_same_bits_in_any_order(two_workers: Executor) -> None:
    with monte_carlo.open_executor(1) as serial:
        assert isinstance(serial, SerialExecutor)
        assert_same_bits(serial)
    assert isinstance(two_workers, ProcessPoolExecutor)
    assert_same_bits(two_workers)
    with pytest.raises(ArithmeticError, match="planted"):
        two_workers.submit(run, failing).result()


def test_a_process_pool_ends_with_its_context() -> None:
    with monte_carlo.open_executor(2) as pool:
        assert pool.submit(abs, -1).result() == 1
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(abs, -1)


def faults_of_an_array(size: int) -> int:
    """Fewest pages that one of equal arrays, each of which is gone before the next, is given by the system.

    Not those of the second alone: something small may have come to lie where it would have fitted.
    """
    import resource

    found = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.ones(size, dtype=torch.uint8)
        found.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return min(found)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left as they are")
def test_workers_keep_the_memory_of_large_arrays(two_workers: Executor) -> None:
    """64 MiB are 16384 pages."""
    assert two_workers.submit(faults_of_an_array, 1 << 26).result() < 1000


def interrupt() -> None:
    raise KeyboardInterrupt


def test_serial_executor_hands_errors_to_the_caller() -> None:
    executor = SerialExecutor()
    future = executor.submit(run, failing)
    assert future.done() and isinstance(future.exception(), ArithmeticError)
    assert list(executor.map(abs, [-1, 2])) == [1, 2]
    with pytest.raises(KeyboardInterrupt):
        executor.submit(interrupt)


def test_dask_cluster_gives_the_same_bits() -> None:
    """One in this process, which costs no start of another; the tests of whole runs have one of processes."""
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "protocol": "tcp", "host": "127.0.0.1", "dashboard_address": None}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster,
        monte_carlo.open_executor(2, cluster.scheduler_address.replace("tcp://", "dask://")) as executor,
    ):
        assert_same_bits(executor)


def refused(address: str, said: str) -> None:
    opened = monte_carlo.open_executor(1, address)
    with pytest.raises(ValueError, match=said), opened:
        pass


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")

    def refuse(address: str, **options: object) -> None:
        assert address == "tcp://127.0.0.1:1" and options == {"timeout": "10s"}
        raise OSError("Timed out")

    monkeypatch.setattr(distributed, "Client", refuse)
    refused("dask://127.0.0.1:1", "dask://127.0.0.1:1 must be a running Dask scheduler, got Timed out")


def test_dask_needs_the_cluster_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused("dask://127.0.0.1:1", r"needs the cluster extra: pip install 'losscurv\[cluster\]'")
