"""Enters claims into the ledgers of this package: ``python -m verify.claims.register`` after one has changed."""

from __future__ import annotations

import datetime
import json
import subprocess
from pathlib import Path

from verify.claims import registry
from verify.claims.ledger import FILE, Ledger, entered, ledger, sealed


def _write(folder: Path, found: Ledger) -> None:
    rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in found.items())
    (folder / FILE).write_text(f"{{\n{rows}\n}}\n")


def _committed(folder: Path) -> tuple[Ledger, str]:
    """The ledger as last committed, and that commit."""
    file = folder / FILE

    def git(*words: str) -> str:
        run = subprocess.run(["git", *words], capture_output=True, text=True, check=False, cwd=folder)  # noqa: S603, S607
        return run.stdout

    text, commit = (
        git("show", f"HEAD:./{file.name}"),
        git("log", "-1", "--format=%h", "--", file.name).strip(),
    )
    return (json.loads(text) if text else {}), commit


def _with_commits(known: Ledger, committed: Ledger, commit: str) -> Ledger:
    """Entries that were written before their commit had a name get it."""
    for name, entry in known.items():
        before = committed.get(name)
        marks = [entry["declared"], *(change["when"] for change in entry["changes"])]
        were = [before["declared"], *(c["when"] for c in before["changes"])] if before else []
        for mark, _ in zip(marks, were, strict=False):
            mark[1] = mark[1] or commit
    return {name: sealed(name, entry) for name, entry in known.items()}


def _main() -> None:
    """Bring the ledgers of this package's papers up to date."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for paper in registry.OWN:
        folder = Path(__file__).parent / paper
        known = _with_commits(ledger(folder, unsealed=True), *_committed(folder))
        found = entered(known, [c for c in registry.select() if c.paper == paper], today)
        new = sum(name not in known for name in found)
        print(f"{paper}: {len(found)} claims, {new} of them new")  # noqa: T201
        _write(folder, found)


if __name__ == "__main__":
    _main()
