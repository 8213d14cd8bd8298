"""A watcher as a callback of Lightning and of transformers, neither of which is imported here.

Their classes of callbacks are taken from the library that the program has imported by then; without it the callback is
an object with the methods that are called here, fit for a trainer of one's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torch import nn
from torch.optim import Optimizer

from simulate.objectives.batches import carries_labels
from verify.practice.watch.record import CurvatureRecord
from verify.practice.watch.watcher import Watcher

Make = Callable[[Optimizer, nn.Module], Watcher]


def _parts(batch: Any) -> Any:
    """The mapping itself, of one with labels; else the first two parts."""
    return batch if carries_labels(batch) else (batch[0], batch[1])


def lightning_callback(
    make: Make,
    *,
    batch: Callable[[Any], Any] = _parts,
    base: type | None = None,
) -> Any:
    """A callback for the ``Trainer`` of Lightning, which measures in ``on_train_batch_end``.

    Parameters
    ----------
    make
        From the optimiser and the ``LightningModule`` to a watcher, called after the first batch: such as
        ``lambda optimizer, module: losscurv.watch(optimizer, module, loss, every=100)``.
    batch
        Inputs and targets of a batch, or a mapping with labels. Unless given, the batch itself if it is such a mapping,
        else its first two parts.
    base
        Class to inherit from; ``Callback`` of the Lightning that is imported if None.

    Returns
    -------
    A callback with `watcher`, None before the first batch, and `records`. With several processes the first alone
    measures. A module with several optimisers is refused by a ``ValueError`` at its first batch.
    """
    base = base or _imported("Callback", "lightning.pytorch", "pytorch_lightning")
    return _instance("LightningWatch", _Lightning, base)(make, batch)


def trainer_callback(make: Make, *, base: type | None = None) -> Any:
    """A callback for the ``Trainer`` of transformers, which measures in ``on_step_end``.

    That trainer shows its callbacks no batch: curvature is that of the samples that the watcher is made with.

    Parameters
    ----------
    make
        From the optimiser and the model to a watcher, called after the first step: such as ``lambda optimizer, model:
        losscurv.watch(optimizer, model, loss, samples=batch)`` with a batch of its collator, labels among the inputs.
    base
        Class to inherit from; ``TrainerCallback`` of transformers, if that is imported, if None.

    Returns
    -------
    A callback with `watcher`, None before the first step, and `records`. With several processes the first alone
    measures.
    """
    return _instance("TrainerWatch", _Trainer, base or _imported("TrainerCallback", "transformers"))(make)


class _Watching:
    """Base of both callbacks, which makes a watcher once there is a trainer."""

    watcher: Watcher | None = None

    @property
    def records(self) -> tuple[CurvatureRecord, ...]:
        """Records of the watcher so far."""
        return () if self.watcher is None else self.watcher.records


class _Lightning(_Watching):
    def __init__(self, make: Make, batch: Callable[[Any], Any]) -> None:
        super().__init__()
        self._make, self._batch, self._steps = make, batch, 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 (as the library calls it)
        """Remember how many steps were done before."""
        self._steps = trainer.global_step

    def on_train_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,  # noqa: ARG002 (as the library calls it)
        batch: Any,
        batch_idx: int,  # noqa: ARG002 (as the library calls it)
        *others: Any,  # noqa: ARG002 (as the library calls it)
    ) -> None:
        """Measure, if it is time to and the optimiser has stepped: not between batches that are accumulated."""
        if not trainer.is_global_zero or trainer.global_step == self._steps:
            return
        self._steps = trainer.global_step
        if self.watcher is None:
            if len(trainer.optimizers) != 1:
                raise ValueError(
                    f"only a module with one optimizer can be watched, got {len(trainer.optimizers)}"
                )
            self.watcher = self._make(_unwrap(trainer.optimizers[0]), pl_module)
        parts = self._batch(batch)
        self.watcher.step(*((parts,) if carries_labels(parts) else parts))


class _Trainer(_Watching):
    def __init__(self, make: Make) -> None:
        super().__init__()
        self._make = make

    def on_step_end(
        self,
        args: Any,  # noqa: ARG002 (as the library calls it)
        state: Any,
        control: Any,  # noqa: ARG002 (as the library calls it)
        *,
        model: Any = None,
        optimizer: Any = None,
        **others: Any,  # noqa: ARG002 (as the library calls it)
    ) -> None:
        """Measure, if it is time to."""
        if not state.is_world_process_zero:
            return
        if self.watcher is None:
            self.watcher = self._make(_unwrap(optimizer), model)
        self.watcher.step()


def _unwrap(optimizer: Any) -> Any:
    """Return the optimiser that Lightning or accelerate wraps."""
    # Wrappers may wrap each other; all keep what they wrap under this name.
    while not type(optimizer).__module__.startswith("torch.") and hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return optimizer


def _imported(name: str, *modules: str) -> type:
    # Only what the program has imported already: neither library is a dependency.
    for module in modules:
        if module in sys.modules:
            return getattr(sys.modules[module], name)
    return object


def _instance(name: str, watching: type, base: type) -> type:
    # A class made here, since its base is known only once the program has imported the library.
    return type(name, (watching,) if base is object else (watching, base), {})
