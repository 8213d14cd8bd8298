"""Where each equation stands: the page is that of the claims, and what it says of the code is so."""

from importlib import import_module
from pathlib import Path

from verify.claims import registry
from verify.claims.places import equations, functions_read

PAGE = Path(__file__).parents[3] / "docs" / "equations.md"


def test_the_page_is_made_from_the_claims() -> None:
    """`python -m verify.claims.places > docs/equations.md` after a claim was added or moved."""
    assert PAGE.read_text(encoding="utf-8") == f"{equations()}\n"


def test_every_entry_has_a_line() -> None:
    lines = equations().splitlines()
    for paper, listed in registry.entries().items():
        for entry in listed:
            assert any(line.startswith(f"| {entry.id} {entry.title} |") for line in lines), (paper, entry.id)


def test_theory_is_found_through_functions_beside_a_claim() -> None:
    read = {claim.id: functions_read(claim) for claim in registry.claims()}
    assert "theory.batch_hessian.batch_ggn_eigenvalue" in read["granziol2022/theorem-7"]
    assert read["vysogorets2024/parameter-count"] == []
    for name in {name for names in read.values() for name in names}:
        module, _, function = name.rpartition(".")
        assert hasattr(import_module(module), function)
