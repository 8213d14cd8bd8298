"""What every run of pytest loads where losscurv is installed: only what takes no time and adds no option.

Not inside the package `losscurv`: importing that would end the run of anybody whose project has a `simulate.py`.
"""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Load the options and fixtures of the report before pytest reads its command line, for ``--pyargs verify``."""
    known = early_config.known_args_namespace
    if known.pyargs and any(
        arg.partition("::")[0].partition(".")[0] == "verify" for arg in known.file_or_dir
    ):
        try:
            import losscurv  # noqa: F401 - refuses a `verify` that is not ours
        except ImportError:
            return
        early_config.pluginmanager.import_plugin("verify.plugin")
