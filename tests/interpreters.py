"""New interpreters, for tests of what an import loads or sets."""

import subprocess
import sys
from typing import Any

__all__ = ["fresh"]


def fresh(program: str, **options: Any) -> str:
    """Run a program in a new interpreter and return what it prints."""
    words = [sys.executable, "-c", program]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, timeout=300, **options).stdout
