"""Shared by all tests: two workers, and a garbage collector that skips what was loaded before the tests."""

import ctypes
import gc
import linecache
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor

import pytest

from simulate.monte_carlo.executors import _begin_worker
from tests import draws
from tests.interpreters import LOADED

# what is started in the background of a shell is deaf to Ctrl-C, and so are the commands that it starts
signal.signal(signal.SIGINT, signal.default_int_handler)

draws.load()

if sys.platform == "linux":
    for option in (-3, -1):  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD
        # keep freed memory: to get it from the system again takes a tenth of the time of large arrays
        ctypes.CDLL(None).mallopt(option, 1 << 28)


def pytest_collection() -> None:
    """Half a million objects come and stay: to look through them over and over takes a tenth of a whole run."""
    gc.disable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--slow`: all tests, as the whole check of a change runs them."""
    parser.addoption("--slow", action="store_true", help="also the tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests, unless asked for or named by their file, and tests of CUDA where there is none."""
    import torch

    named = any(".py" in word for word in config.args)
    left_out = {"slow": not (config.option.slow or config.option.markexpr or named)}
    left_out["cuda"] = not torch.cuda.is_available()
    gone = [i for i in items if any(out and i.get_closest_marker(name) for name, out in left_out.items())]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in set(gone)]


def pytest_collection_finish() -> None:
    """Freeze what is loaded now, because it stays to the end."""
    linecache.clearcache()  # every doctest looks whether the files in it have changed
    _keep()
    # the default collects so often that most objects of a plot or a graph are still in use
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """So is what the tests of a file have left: modules, caches, reports."""
    yield
    if nextitem is None or nextitem.path != item.path:
        _keep()


def _keep() -> None:
    """Collect what is garbage; the collector looks at nothing else that is there now again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """A network that a test does not draw by a generator of its own is the same in every run."""
    import torch

    seed = int(os.environ.get("LOSSCURV_TEST_SEED", "0"))
    torch.default_generator.manual_seed(seed)
    if (
        torch.cuda.is_available()
    ):  # torch.manual_seed would else write down the whole stack, a millisecond each time
        torch.cuda.manual_seed_all(seed)


@pytest.fixture(scope="session")
def two_workers() -> Iterator[Executor]:
    """Two processes as of `open_executor`, started once. Whoever lets one of them die opens their own."""
    with ProcessPoolExecutor(2, LOADED, _begin_worker, (2,)) as executor:
        yield executor
