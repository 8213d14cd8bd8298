"""Names of the derivations: none takes an argument."""

from __future__ import annotations

from theory import derivations
from theory.derivations import (
    descent as descent_derivations,
    laws as law_derivations,
    linear as linear_derivations,
    spectra as spectral_derivations,
    wide as wide_derivations,
    zone as zone_derivations,
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
    "derivations.descent": (),
    "derivations.laws": (),
    "derivations.linear": (),
    "derivations.spectra": (),
    "derivations.wide": (),
    "derivations.zone": (),
}

WITHOUT_ARGUMENTS = dict.fromkeys(derivations_without_arguments(), "sympy's own")
