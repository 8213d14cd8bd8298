"""The page "Equations and code": for each entry of the papers its claims, and what they read of theory.

python docs/site/equations.py
"""

from __future__ import annotations

from collections.abc import Iterable

from verify.claims import registry
from verify.claims.places import UNREAD, functions_read, modules
from verify.model import AnyClaim

HEAD = """# Equations and code

For each entry of the papers: the claims that judge it, the module that declares them, and the functions of `theory`
that they read. Identities and inequalities between measured quantities read none.

Printed by `python docs/site/equations.py`.
"""
UNREAD_HEAD = """## What no claim reads

Every public function of `theory`, and every method and field of its classes, is read by a claim, but for these:

| of theory | why |
|---|---|"""


def equations() -> str:
    """Return the page of equations."""
    lines, claims = [HEAD], {claim.id: claim for claim in registry.claims()}
    judged = registry.covered(claims.values())
    for paper, listed in registry.entries().items():
        lines += [f"## {paper}", "", "| entry | in the paper | judged by | theory |", "|---|---|---|---|"]
        for entry in listed:
            mine = [claims[name] for name in judged.get((paper, entry.id), ())]
            cells = (
                f"{entry.id} {entry.title}",
                _sources(mine),
                _judges(mine) or f"*{entry.status}*",
                _theory(mine),
            )
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    table = [f"| `{name}` | {why} |" for why, names in UNREAD.items() for name in names]
    return "\n".join([*lines, UNREAD_HEAD, *table, ""])


def _sources(claims: Iterable[AnyClaim]) -> str:
    """Place in the paper: what the sources of the claims add to its name."""
    authors = [f"{paper}, " for paper in registry.papers()]
    places = (c.source.removeprefix(name) for c in claims for name in authors if c.source.startswith(name))
    return "; ".join(dict.fromkeys(places))


def _judges(claims: Iterable[AnyClaim]) -> str:
    by_module: dict[str, list[str]] = {}
    for claim in claims:
        by_module.setdefault(modules()[claim.id], []).append(claim.id.partition("/")[2])
    return "<br>".join(f"`{module}`: {', '.join(names)}" for module, names in by_module.items())


def _theory(claims: Iterable[AnyClaim]) -> str:
    read = {name for claim in claims for name in functions_read(claim)}
    return ", ".join(f"`{name.removeprefix('theory.')}`" for name in sorted(read))


if __name__ == "__main__":
    print(equations())
