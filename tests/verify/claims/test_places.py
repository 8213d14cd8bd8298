"""Where each equation is: every entry has a line, and what it says of the code is so."""

import runpy
from importlib import import_module

from verify.claims import registry
from verify.claims.places import functions_read


def test_every_entry_has_a_line() -> None:
    lines = runpy.run_path("docs/site/equations.py")["equations"]().splitlines()
    for paper, listed in registry.entries().items():
        for entry in listed:
            assert any(line.startswith(f"| {entry.id} {entry.title} |") for line in lines), (paper, entry.id)


def test_theory_is_found_through_functions_beside_a_claim() -> None:
    read = {claim.id: functions_read(claim) for claim in registry.claims()}
    assert "theory.batch_hessian:batch_ggn_eigenvalue" in read["granziol2022/theorem-7"]
    assert read["vysogorets2024/parameter-count"] == []
    for name in {name for names in read.values() for name in names}:
        module, _, function = name.partition(":")
        assert hasattr(import_module(module), function)
