"""Curvature watched while a network trains: `watch`, its records as JSON lines, its picture, and callbacks.

=====================  ====================================================================================
`watch`                a watcher for a training loop; ``losscurv.watch``
`CurvatureRecord`      what one measurement found
`read_records`         the records of a file, of a run that was killed too
`watch_figure`         records as a picture
`lightning_callback`   the same for the ``Trainer`` of Lightning
`trainer_callback`     the same for the ``Trainer`` of transformers
=====================  ====================================================================================
"""

from typing import TYPE_CHECKING, Any

from verify.practice.watch.adapters import lightning_callback, trainer_callback
from verify.practice.watch.journal import read_records
from verify.practice.watch.record import CurvatureRecord
from verify.practice.watch.watcher import Watcher, watch

if TYPE_CHECKING:
    from verify.practice.watch.picture import watch_figure

__all__ = [
    "CurvatureRecord",
    "Watcher",
    "lightning_callback",
    "read_records",
    "trainer_callback",
    "watch",
    "watch_figure",
]


def __getattr__(name: str) -> Any:
    if name == "watch_figure":  # matplotlib, which no training needs before its end
        from verify.practice.watch.picture import watch_figure

        return watch_figure
    raise AttributeError(f"module 'verify.practice.watch' has no attribute {name!r}")
