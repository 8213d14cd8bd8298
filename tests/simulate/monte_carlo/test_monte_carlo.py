"""Streams, points, blocks, executors: what a replicate depends on, and that nothing else changes its bits."""

import copy
import json
import math
import os
import pickle
import platform
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info

from simulate import monte_carlo
from simulate.matrices import ensembles
from simulate.monte_carlo import BLOCK, Block, Point, SerialExecutor, run_block

ROOT = Path(__file__).parents[2]
POINT = Point(dim=30, spike=1.7)
PINNED = [1559156714, 3686243724]


def edges(block: Block, point: Point) -> dict[str, torch.Tensor]:
    """The simulation that the executors below run: needs draws, BLAS and LAPACK."""
    noise = ensembles.wigner(block, point.dim)
    value, vector = ensembles.top_eigenpair(
        ensembles.spiked(noise, ensembles.unit_vectors(block, point.dim), point.spike)
    )
    return {"value": value, "first": vector[:, 0] ** 2}


def failing(block: Block, point: Point) -> dict[str, torch.Tensor]:
    raise ArithmeticError("planted")


def submit_blocks(executor, count: int = 3) -> list[dict[str, np.ndarray]]:
    futures = [
        executor.submit(run_block, edges, experiment="edges", point=POINT, seed=3, index=index)
        for index in range(count)
    ]
    return [future.result().scores for future in futures]


def assert_same_bits(left: list[dict], right: list[dict]) -> None:
    assert [list(scores) for scores in left] == [list(scores) for scores in right]
    for one, other in zip(left, right, strict=True):
        for name in one:
            assert_array_equal(one[name], other[name])


# --- points


def test_point_is_a_mapping_read_by_attribute() -> None:
    assert isinstance(POINT, Mapping)
    assert (POINT.dim, POINT["spike"], len(POINT), list(POINT)) == (30, 1.7, 2, ["dim", "spike"])
    assert dict(**POINT) == {"dim": 30, "spike": 1.7}
    assert repr(POINT) == "Point(dim=30, spike=1.7)"
    assert repr(POINT | {"spike": 2.5, "law": "rademacher"}) == "Point(dim=30, spike=2.5, law='rademacher')"


def test_point_is_immutable() -> None:
    with pytest.raises(AttributeError, match=r"a point is immutable; write point \| \{'dim': value\}"):
        POINT.dim = 3
    with pytest.raises(TypeError, match="does not support item assignment"):
        POINT["dim"] = 3
    with pytest.raises(AttributeError):
        del POINT.dim
    widths = [1, 2]
    point = Point(widths=widths)
    widths.append(3)
    assert point.widths == (1, 2)


def test_an_absent_parameter_is_named() -> None:
    with pytest.raises(AttributeError, match=r"no parameter 'width'; this point has dim, spike"):
        attrgetter("width")(POINT)
    assert not hasattr(POINT, "width")
    with pytest.raises(KeyError, match="width"):
        POINT["width"]


def test_equal_points_have_equal_hashes_whatever_the_order() -> None:
    turned = Point(spike=1.7, dim=30)
    assert turned == POINT and hash(POINT) == hash(turned) and len({POINT, turned}) == 1
    assert Point(dim=30, spike=1.8) != POINT and POINT != {"dim": 30, "spike": 1.7}
    assert Point(flag=True) != Point(flag=1) and Point(n=1) != Point(n="1")


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_are_equal(clone) -> None:
    point = Point(dim=3, widths=[[1, 2], [3]], law="gaussian", bias=False)
    assert clone(point) == point and list(clone(point)) == list(point)


VALUES = st.recursive(
    st.integers() | st.floats(allow_nan=False) | st.text() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)


@settings(deadline=None, max_examples=20, derandomize=True)
@given(st.dictionaries(st.from_regex(r"p_[a-z]{1,5}", fullmatch=True), VALUES, max_size=4))
def test_json_brings_a_point_back(values: dict) -> None:
    point = Point(**values)
    again = Point(**json.loads(point.canonical()))
    assert again == point and again.canonical() == point.canonical() and hash(again) == hash(point)
    assert pickle.loads(pickle.dumps(point)) == point


def test_numpy_scalars_become_plain_numbers() -> None:
    point = Point(dim=np.int64(3), spike=np.float64(0.5), flag=np.bool_(True), widths=(np.int32(2),))
    assert point.canonical() == '{"dim": 3, "flag": true, "spike": 0.5, "widths": [2]}'
    assert repr(point) == "Point(dim=3, spike=0.5, flag=True, widths=(2,))"


@pytest.mark.parametrize("value", [None, {"a": 1}, np.zeros(2), 1j, b"bytes", [1, None], math.sqrt])
def test_values_without_a_json_form_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"x must be a number, a string, a boolean or a tuple of these, got"):
        Point(x=value)


@pytest.mark.parametrize("name", ["keys", "get", "values", "canonical", "_values"])
def test_names_that_would_hide_a_method_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"named other than the methods of a point, got '{name}'"):
        Point(**{name: 1})


# --- streams


def test_a_stream_depends_on_each_thing_that_names_the_replicate() -> None:
    def first(seed=1, experiment="edges", point=POINT, replicate=0) -> float:
        return monte_carlo.stream(seed, experiment, point, replicate).random()

    draws = {
        first(),
        first(seed=2),
        first(experiment="edge"),
        first(point=POINT | {"dim": 31}),
        first(point=POINT | {"extra": 0}),
        first(replicate=1),
        first(replicate=10),
    }
    assert len(draws) == 7
    assert first() == first() == first(point=Point(spike=1.7, dim=30))


def test_a_fixture_depends_on_seed_and_name() -> None:
    draws = {monte_carlo.fixture(seed, name).random() for seed in (1, 2) for name in ("population", "matrix")}
    assert len(draws) == 4
    assert monte_carlo.fixture(1, "matrix").random() == monte_carlo.fixture(1, "matrix").random()


def test_streams_are_the_same_on_every_machine() -> None:
    """Pinned: results on file are replayed by these streams."""
    generator = monte_carlo.stream(1, "edges", POINT, 7)
    assert isinstance(generator.bit_generator, np.random.Philox)
    assert generator.integers(2**32, size=2).tolist() == PINNED


def test_neighbouring_replicates_are_uncorrelated() -> None:
    draws = np.stack([monte_carlo.stream(0, "edges", POINT, i).standard_normal(2000) for i in range(12)])
    correlations = np.corrcoef(draws)[np.triu_indices(12, 1)]
    assert np.abs(correlations).max() < 4.5 / math.sqrt(2000)


# --- blocks


def test_a_block_stacks_one_draw_per_stream() -> None:
    streams = tuple(monte_carlo.stream(0, "edges", POINT, i) for i in range(3))
    again = [monte_carlo.stream(0, "edges", POINT, i) for i in range(3)]
    block = Block(streams)

    assert len(block) == 3
    normal, signs = block.normal(2, 5), block.stack(lambda rng: rng.integers(0, 2, 4))
    assert normal.shape == (3, 2, 5) and normal.dtype == torch.float64 and normal.device.type == "cpu"
    for i, rng in enumerate(again):
        assert_array_equal(normal[i], rng.standard_normal((2, 5)))
        assert_array_equal(signs[i], rng.integers(0, 2, 4))
    with pytest.raises(AttributeError, match="cannot assign"):
        block.device = "cuda"


def test_block_index_selects_its_sixteen_replicates() -> None:
    def first(block: Block, point: Point) -> dict:
        return {"u": [rng.random() for rng in block.streams]}

    result = run_block(first, experiment="edges", point=POINT, seed=5, index=2)
    expected = [monte_carlo.stream(5, "edges", POINT, i).random() for i in range(2 * BLOCK, 3 * BLOCK)]
    assert_array_equal(result.scores["u"], expected)
    assert result.seconds > 0 and result.scores["u"].dtype == np.float64


def test_the_simulation_sees_its_point_device_and_one_thread() -> None:
    seen = {}

    def look(block: Block, point: Point) -> dict:
        seen.update(point=point, device=block.device, threads=torch.get_num_threads())
        seen["blas"] = {pool["num_threads"] for pool in threadpool_info()}
        seen["tf32"] = (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)
        return {}

    threads = torch.get_num_threads()
    run_block(look, experiment="edges", point=POINT, seed=0, index=0, device="meta")
    assert seen == {"point": POINT, "device": "meta", "threads": 1, "blas": {1}, "tf32": (False, False)}
    assert torch.get_num_threads() == threads


def test_threads_are_given_back_after_a_crash() -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(ArithmeticError, match="planted"):
            run_block(failing, experiment="edges", point=POINT, seed=0, index=0)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    "values",
    [
        torch.arange(16.0, dtype=torch.float32, requires_grad=True),
        np.arange(16),
        list(range(16)),
        [i > 3 for i in range(16)],
    ],
)
def test_scores_of_any_real_type_become_float64(values) -> None:
    result = run_block(lambda b, p: {"s": values}, experiment="edges", point=POINT, seed=0, index=0)
    assert result.scores["s"].dtype == np.float64 and result.scores["s"].shape == (16,)


@pytest.mark.parametrize(
    "values",
    [
        1.0,
        np.zeros(15),
        np.zeros((15, 2)),
        np.zeros((16, 0)),
        np.zeros((16, 2, 2)),
        np.zeros(16, complex),
        ["1"] * 16,
        torch.zeros(16).to(torch.cfloat),
    ],
)
def test_scores_that_are_not_one_number_or_vector_per_replicate_are_refused(values) -> None:
    with pytest.raises(ValueError, match=r"score 'bad' must be one number or one vector per replicate"):
        run_block(lambda b, p: {"bad": values}, experiment="edges", point=POINT, seed=0, index=0)


@pytest.mark.slow
def test_one_thread_reaches_the_blas_that_scipy_brings() -> None:
    """A simulation that imports scipy first inside a block must find it limited already."""
    script = """
from simulate.monte_carlo import one_thread
with one_thread():
    import scipy.linalg, threadpoolctl
    print({pool["num_threads"] for pool in threadpoolctl.threadpool_info()})
"""
    free = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", script], env=free, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "{1}", done.stderr


# --- executors


def test_serial_and_process_pool_give_the_same_bits_in_any_order(two_workers: Executor) -> None:
    with monte_carlo.open_executor(1) as serial:
        assert isinstance(serial, SerialExecutor)
        expected = submit_blocks(serial)
    alone = run_block(edges, experiment="edges", point=POINT, seed=3, index=2).scores
    assert_same_bits([alone], expected[2:])

    assert isinstance(two_workers, ProcessPoolExecutor)
    assert_same_bits(submit_blocks(two_workers), expected)
    with pytest.raises(ArithmeticError, match="planted"):
        two_workers.submit(run_block, failing, experiment="e", point=POINT, seed=0, index=0).result()


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

    found: list[int] = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.ones(size, dtype=torch.uint8)
        found.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return min(found)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left as they are")
def test_workers_keep_the_memory_of_large_arrays(two_workers: Executor) -> None:
    """64 MiB are 16384 pages."""
    assert two_workers.submit(faults_of_an_array, 1 << 26).result() < 1000


def test_serial_executor_hands_errors_to_the_caller() -> None:
    executor = SerialExecutor()
    future = executor.submit(run_block, failing, experiment="e", point=POINT, seed=0, index=0)
    assert future.done() and isinstance(future.exception(), ArithmeticError)
    assert list(executor.map(abs, [-1, 2])) == [1, 2]
    with pytest.raises(KeyboardInterrupt):
        executor.submit(interrupt)


def interrupt() -> None:
    raise KeyboardInterrupt


def test_dask_cluster_gives_the_same_bits() -> None:
    """One in this process, which costs no start of another; the tests of whole runs have one of processes."""
    distributed = pytest.importorskip("distributed")
    expected = submit_blocks(SerialExecutor())
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            protocol="tcp",
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        monte_carlo.open_executor(2, cluster.scheduler_address.replace("tcp://", "dask://")) as executor,
    ):
        assert_same_bits(submit_blocks(executor), expected)


@pytest.mark.parametrize(
    "address",
    [
        "dask://nonsense",
        "dask://",
        "dask://host:port",
        "dask://a b:1",
        "tcp://127.0.0.1:8786",
        "nonsense",
        "",
    ],
)
def test_addresses_that_are_no_dask_addresses_are_refused(address: str) -> None:
    with (
        pytest.raises(ValueError, match=r"executor must be dask://host:port, got"),
        monte_carlo.open_executor(1, address),
    ):
        pass


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")

    def refuse(address: str, **options: object) -> None:
        assert address == "tcp://127.0.0.1:1" and options == {"timeout": "10s"}
        raise OSError("Timed out")

    monkeypatch.setattr(distributed, "Client", refuse)
    message = r"executor dask://127.0.0.1:1 must be a running Dask scheduler, got Timed out"
    with pytest.raises(ValueError, match=message), monte_carlo.open_executor(1, "dask://127.0.0.1:1"):
        pass


def test_dask_needs_the_cluster_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ValueError, match=r"needs the cluster extra: pip install 'losscurv\[cluster\]'"),
        monte_carlo.open_executor(1, "dask://127.0.0.1:1"),
    ):
        pass
