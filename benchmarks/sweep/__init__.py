"""Sixty models that mix, reorder, rescale or wrap, held against dense references: `python -m benchmarks.sweep`."""

from benchmarks.sweep.listing import Listed
from benchmarks.sweep.mixing import MIXING
from benchmarks.sweep.reordering import REORDERING
from benchmarks.sweep.rescaling import RESCALING
from benchmarks.sweep.wrapping import WRAPPING

__all__ = ["FAMILIES", "Listed"]

FAMILIES = {"mixing": MIXING, "reordering": REORDERING, "rescaling": RESCALING, "wrapping": WRAPPING}
