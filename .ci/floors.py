"""The lowest version of every dependency that pyproject.toml declares, as constraints for pip."""

import re
import tomllib
from pathlib import Path

GROUPS = ("cluster", "docs", "dev")
"""The extras that the tests need."""


def floors() -> dict[str, str]:
    """Versions by package."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = [name for group in GROUPS for name in project["optional-dependencies"][group]]
    stated = [re.fullmatch(r"([\w.-]+)>=([\w.]+)", line) for line in [*project["dependencies"], *extras]]
    return {found[1]: found[2] for found in stated if found}


if __name__ == "__main__":
    for package, version in floors().items():
        print(f"{package}=={version}")  # noqa: T201 - a program
