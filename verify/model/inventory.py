"""What the papers state: the papers themselves, and the entries of the inventory with where they stand."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

__all__ = ["PAPERS", "Entry", "Paper", "Status"]


class Status(StrEnum):
    """Where an entry of the inventory stands; *judged* and *partly judged* follow from the claims that cover it."""

    JUDGED = "judged"
    PARTLY = "partly judged"
    OPEN = "open"
    DEFINITION = "definition"
    OBSERVED = "observed"
    NOT_CHECKABLE = "not checkable here"


class Paper(NamedTuple):
    """A source of statements."""

    id: str
    authors: str
    title: str


PAPERS = (
    Paper(
        "vysogorets2024",
        "Vysogorets, Dawid and Kempe (2024)",
        "Deconstructing the Goldilocks Zone of Neural Network Initialization",
    ),
    Paper(
        "granziol2022",
        "Granziol, Zohren and Roberts (2022)",
        "Learning Rates as a Function of Batch Size: A Random Matrix Theory Approach",
    ),
    Paper(
        "karakida2019",
        "Karakida, Akaho and Amari (2019)",
        "The Normalization Method for Alleviating Pathological Sharpness in Wide Neural Networks",
    ),
    Paper("beyond", "losscurv", "Beyond the papers"),
)


class Entry(NamedTuple):
    """One statement, as the inventory lists it while nothing judges it.

    Attributes
    ----------
    scope
        What part of it the claims judge, if it is not the whole: it is then *partly judged*.
    ours
        Whether it is a statement of our own, kept with a paper's because it extends one of them.
    """

    id: str
    title: str
    status: str
    reason: str = ""
    scope: str = ""
    ours: bool = False
