"""Checkpoints: parameters and buffers by name, read without running what else a file may hold."""

from __future__ import annotations

import pickle
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from simulate.objectives.parameters import COMPILED
from verify.practice.loading.foreign import calling, require_given_file

_SHOWN = 4
"""Names in a message."""

_USUAL = ("state_dict", "model_state_dict", "model", "module", "model_state", "net", "network", "params")
"""Under which a checkpoint may hold its state_dict, the likeliest first: of several that fit it is taken."""

_DEEPEST = 3


class _State(NamedTuple):
    """Tensors by name, where in the file they are, and the prefix that the names of the model have there."""

    where: tuple[str, ...]
    tensors: dict[str, Tensor]
    prefix: str = ""

    def inside(self) -> dict[str, Tensor]:
        """Return the tensors whose names have the prefix, by name without it."""
        start = len(self.prefix)
        return {n[start:]: value for n, value in self.tensors.items() if n.startswith(self.prefix)}

    def __str__(self) -> str:
        place = f" of {' / '.join(self.where)}" if self.where else ""
        return f"{place}, their names without {self.prefix!r}" if self.prefix else place


def restore(net: nn.Module, path: str) -> str:
    """Load the parameters and buffers of a checkpoint, all of them, by name; returns what was loaded, in words.

    A state_dict may be nested in dictionaries, and its names may have a prefix, such as ``module.`` of a model that
    was trained in parallel or the name that a model has in a larger one. Entries without the prefix are left out.

    Raises
    ------
    ValueError
        If there is none that has exactly what the model has, or several that nothing tells apart, in one line.
    """
    own = net.state_dict()
    named = {_plain(name): name for name in own}
    state = _choose_state(path, named)
    tensors = {named[name]: value for name, value in state.inside().items()}
    _require_shapes(path, tensors, own)
    with calling(f"checkpoint {path}", "be loaded into the model"):
        # A tensor on the meta device has no memory to copy into, so it is replaced.
        net.load_state_dict(tensors, assign=any(not is_lazy(v) and v.is_meta for v in own.values()))
    left = [name for name in state.tensors if not name.startswith(state.prefix)]
    others = f"; left out: {_few(left)}" if left else ""
    return f"checkpoint {path}: {len(tensors)} tensors{state}{others}"


def _choose_state(path: str, named: Mapping[str, str]) -> _State:
    """Return the state that has, under one prefix, exactly the names of the model: in the most usual place if several.

    Raises
    ------
    ValueError
        If there is none, or nothing tells several apart.
    """
    content = _read(path)
    found = list(_nested(content, ()))
    if not found:
        raise ValueError(f"checkpoint {path} holds no state_dict, got {_content(content)}")
    tried = [(count, s._replace(prefix=p)) for s in found for p, count in _prefixes(s, named).items()]
    fitting = [state for count, state in tried if count == len(named) == len(state.inside())]
    if not fitting:
        nearest = max(tried, key=lambda pair: pair[0], default=(0, found[0]))[1]
        inside = nearest.inside()
        missing = [own for name, own in named.items() if name not in inside]
        words = (("missing", missing), ("unexpected", [name for name in inside if name not in named]))
        got = "; ".join(f"{word} {_few(names)}" for word, names in words if names)
        place = f" under {' / '.join(nearest.where)}" if nearest.where else ""
        raise ValueError(f"checkpoint {path} does not fit the model: {got}{place}")
    best = min(map(_rank, fitting))
    likely = [state for state in fitting if _rank(state) == best]
    if len(likely) > 1:
        got = " and ".join(repr(" / ".join((*state.where, state.prefix)).strip(" /")) for state in likely[:2])
        raise ValueError(
            f"checkpoint {path} holds several state_dicts that fit the model: {got}; save one alone"
        )
    return likely[0]


def _rank(state: _State) -> tuple[int, ...]:
    return tuple(_USUAL.index(key) if key in _USUAL else len(_USUAL) for key in state.where)


def _prefixes(state: _State, named: Mapping[str, str]) -> Counter[str]:
    """Count the names of the model that follow each prefix."""
    counts: Counter[str] = Counter()
    for name in state.tensors:
        parts = name.split(".")
        for k in range(len(parts)):
            if ".".join(parts[k:]) in named:
                counts["".join(f"{part}." for part in parts[:k])] += 1
    return counts


def _plain(name: str) -> str:
    # `torch.compile` puts a part of its own into the names.
    return name.replace(COMPILED, "")


def _require_shapes(path: str, tensors: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    wrong = [n for n, value in tensors.items() if not is_lazy(own[n]) and _form(value) != _form(own[n])]
    if wrong:
        first, more = wrong[0], f", and {len(wrong) - 1} more differ" * (len(wrong) > 1)
        rule = f"checkpoint {path} does not fit the model: {first} must have shape {_form(own[first])}"
        raise ValueError(f"{rule}, got {_form(tensors[first])}{more}")


def _form(value: Tensor) -> str:
    return f"{tuple(value.shape)}{' of complex numbers' * value.is_complex()}"


def _nested(found: Any, where: tuple[str, ...]) -> Iterator[_State]:
    if not isinstance(found, Mapping) or not all(isinstance(key, str) for key in found):
        return
    if found and all(isinstance(value, Tensor) for value in found.values()):
        yield _State(where, {_plain(name): value for name, value in found.items()})
    elif len(where) < _DEEPEST:
        for key, value in found.items():
            yield from _nested(value, (*where, key))


def _read(path: str) -> Any:
    require_given_file("checkpoint", path)
    try:
        with warnings.catch_warnings():
            # A pickle could run any code, hence `weights_only`. The device of the
            # training may not exist here, hence the CPU.
            warnings.simplefilter("ignore")  # the error below says what is wrong
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        rule = f"checkpoint {path} must hold tensors only, since loading other objects can run code"
        # torch names the object in the text of its message alone.
        named = re.search(r"GLOBAL (\S+)", str(error))
        got = f", got {named[1]}" if named else ""
        raise ValueError(f"{rule}{got}; save it with torch.save(model.state_dict(), path)") from None
    except Exception as error:
        got = type(error).__name__
        raise ValueError(f"checkpoint {path} cannot be read as a file of torch.save: {got}") from None


def _content(found: Any) -> str:
    return (
        f"a dictionary with {_few(list(map(str, found)))}"
        if isinstance(found, Mapping)
        else type(found).__name__
    )


def _few(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + f" and {len(names) - _SHOWN} more" * (len(names) > _SHOWN)
