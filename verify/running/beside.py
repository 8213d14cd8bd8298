"""What a run on a device computes on the CPU all the same."""

from __future__ import annotations

from collections.abc import Iterable

from verify.model import AnyClaim, Claim, ExactProperty, Identity, StatisticalProperty
from verify.model.observation import Observation

__all__ = ["beside_the_device"]

CHECKS = "identities and exact properties"


def beside_the_device(
    device: str, claims: Iterable[AnyClaim], observations: Iterable[Observation]
) -> dict[str, str]:
    """What of a run does not reach its device, by the name of the experiment; nothing where the device is the CPU.

    Examples
    --------
    >>> from verify.judging.planted import PLANTED
    >>> beside_the_device("cuda", PLANTED[:1], ()), beside_the_device("cpu", PLANTED, ())
    ({'planted/sums': 'all of it'}, {})
    """
    if device == "cpu":
        return {}
    listed = list(claims)
    properties = (c for c in listed if isinstance(c, StatisticalProperty))
    drawn = [*(c.experiment for c in listed if isinstance(c, Claim)), *properties, *observations]
    found = {each.id: each.on_host for each in drawn if each.on_host}
    if any(isinstance(claim, Identity | ExactProperty) for claim in listed):
        found[CHECKS] = "all of them"
    return found
