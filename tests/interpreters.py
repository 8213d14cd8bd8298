"""Other interpreters: new ones, for tests of what an import loads or sets, and some that have loaded the packages."""

import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

__all__ = ["LOADED", "forked", "fresh"]

LOADED = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
"""Its processes are forked off one that has loaded the packages and has done nothing else.

A new interpreter takes seconds to load them.
"""

LOADED.set_forkserver_preload(["torch._dynamo", "verify.cli", "verify.practice.plan", "verify.page.report"])


def fresh(program: str, **options: Any) -> str:
    """Run a program in a new interpreter and return what it prints."""
    words = [sys.executable, "-c", program]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, timeout=300, **options).stdout


def forked(function: Callable[..., Any], *words: Any) -> Any:
    """Call a function in a process of its own that has loaded the packages, and return what it returns."""
    with ProcessPoolExecutor(1, LOADED) as executor:
        return executor.submit(function, *words).result()
