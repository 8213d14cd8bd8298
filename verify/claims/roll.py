"""The roll: claims of the registry beside what the ledgers of their papers hold."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from verify.claims import registry
from verify.claims.ledger import Ledger, changes, declared, history, ledger, retold, when
from verify.model import AnyClaim, Identity

__all__ = ["ledgers", "missing", "registered", "withdrawn"]


@cache
def ledgers(only: registry.Only = ()) -> dict[str, Ledger]:
    """What claims have declared, by paper, from the file beside each; empty where there is none.

    Of `only` these papers, all if it is empty.

    Raises
    ------
    ValueError
        If a file is no ledger, or was edited by hand.
    """
    return {name: ledger(folder) for name, folder in registry.folders(only).items()}


def missing(only: registry.Only = ()) -> list[str]:
    """Claims that are registered and not withdrawn, and that the registry does not have: dropped or renamed."""
    listed = {claim.id for claim in registry.claims(only)}
    return [
        name
        for found in ledgers(only).values()
        for name, entry in found.items()
        if "withdrawn" not in entry and name not in listed
    ]


def withdrawn(only: registry.Only = ()) -> dict[str, str]:
    """Claims that have been withdrawn, and when."""
    return {
        name: when(entry["withdrawn"])
        for found in ledgers(only).values()
        for name, entry in found.items()
        if "withdrawn" in entry
    }


def registered(claim: AnyClaim, routes: Iterable[str] | None = None) -> str:
    """When a claim was declared and what has changed since, also what is not registered yet.

    Parameters
    ----------
    claim
        As the registry has it.
    routes
        Of an identity, the names of the rivals that it was run against; None if it was not run.

    Returns
    -------
    A sentence; empty where the paper keeps no ledger.
    """
    known = ledgers((claim.paper,)).get(claim.paper)
    if not known:
        return ""
    entry = known.get(claim.id)
    if entry is None:
        return "not registered"
    against = claim.rivals if not isinstance(claim, Identity) else routes
    now = declared(claim, entry["terms"]["rivals"] if against is None else against)
    since = changes(entry["terms"], now)
    return history(entry) + (f"; not registered: {retold(since)}" if since else "")
