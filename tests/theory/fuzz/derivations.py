"""Names of the derivations: none takes an argument."""

from __future__ import annotations

from theory import (
    derivations,
    descent_derivations,
    law_derivations,
    linear_derivations,
    spectral_derivations,
    wide_derivations,
    zone_derivations,
)

DERIVATIONS = (
    derivations,
    descent_derivations,
    law_derivations,
    linear_derivations,
    spectral_derivations,
    wide_derivations,
    zone_derivations,
)


def derivations_without_arguments() -> list[str]:
    return [
        f"{module.__name__.removeprefix('theory.')}.{name}"
        for module in DERIVATIONS
        for name in module.__all__
        if name != "Derivation"
    ]


MODULES = {
    "derivations": ("Derivation",),
    "descent_derivations": (),
    "law_derivations": (),
    "linear_derivations": (),
    "spectral_derivations": (),
    "wide_derivations": (),
    "zone_derivations": (),
}

WITHOUT_ARGUMENTS = dict.fromkeys(derivations_without_arguments(), "sympy's own")
