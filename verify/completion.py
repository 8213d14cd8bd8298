"""Tab completion of ``losscurv``: the names of papers, claims and theory functions.

    eval "$(register-python-argcomplete losscurv)"      # in the start-up file of the shell

A key is pressed and waited for: completers load no torch, and of the claims only those of the paper that is named.
They return all names there are: those that begin as what was typed are picked by argcomplete.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from typing import Any


def offer(parser: argparse.ArgumentParser) -> None:
    """Answer the shell and exit, if it asks how a command line may go on."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser, always_complete_options="long")


def with_completer(action: argparse.Action, completer: Any) -> None:
    """Let `completer`, a function of what has been typed, say what the value of an option may be."""
    action.completer = completer  # pyright: ignore[reportAttributeAccessIssue] - where argcomplete looks for it


def paper_names(**_: Any) -> Iterable[str]:
    """Return the ids of papers."""
    from verify.claims import registry

    return registry.paper_ids()


def claim_ids(prefix: str, **_: Any) -> Iterable[str]:
    """Return the ids of the claims of a paper, once its own id and a slash are there; else papers with a slash."""
    from verify.claims import registry

    paper, slash, _name = prefix.partition("/")
    only = registry.in_order([paper]) if slash else ()
    return registry.ids(only) if only else [f"{name}/" for name in registry.paper_ids()]


def function_names(**_: Any) -> Iterable[str]:
    """Return the names of theory functions."""
    from verify.estimate import FUNCTIONS

    return FUNCTIONS


def picture_names(**_: Any) -> Iterable[str]:
    """Return the names of pictures of the gallery."""
    from verify import gallery

    return [picture.name for picture in gallery.PICTURES]
