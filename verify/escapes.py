"""Text of others where it is shown: on its line, in its direction, and unable to command a terminal."""

from __future__ import annotations

import unicodedata


def escaped(text: str) -> str:
    r"""Names, paths and messages on one line: what is invisible or acts on other characters as its escape.

    That is control characters and newlines, marks of direction and of width zero, halves of pairs, private characters.

    >>> print(escaped("a\nb\x1b[2J\u202ec"))
    a\nb\x1b[2J\u202ec
    """
    # Nearly all texts are printable and need no look at each character.
    return text if text.isprintable() else "".join(map(_visible, text))


def printable(text: str) -> str:
    r"""Make text of several lines printable.

    >>> print(printable("a\nb\x00"))
    a
    b\x00
    """
    return "\n".join("\t".join(map(escaped, line.split("\t"))) for line in text.split("\n"))


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    acts = category.startswith("C") or category in ("Zl", "Zp")
    return character.encode("unicode_escape").decode() if acts else character
