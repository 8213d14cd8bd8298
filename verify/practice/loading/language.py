"""Language models from their configuration and text by their tokenizer, by transformers where it is installed.

Nothing is fetched, no code of a configuration is run, and no weights are read: a model draws them.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from verify.practice.loading.foreign import calling, require_given_file

PREFIX = "hf:"
"""Before the file of a configuration."""

BYTES = "bytes"
"""A tokenizer that needs no files: every byte is a token."""

LENGTH = 128
"""Tokens of a sequence where nobody says, if the model takes so many."""

_TOKENIZERS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "vocab.txt",
)
"""Files of which a tokenizer has one at least."""

_SPEAKING = ("tokenizer.json", "tokenizer_config.json", "config.json")
"""Files that say what kind of tokenizer it is."""


def from_configuration(words: str) -> nn.Module:
    """The model that ``hf:config.json`` describes, or the ``config.json`` of a folder, with weights of its own draw.

    It is the first of its ``architectures``, or a causal language model if it names none.

    Raises
    ------
    ValueError
        If the file is none, or transformers is not installed or does not know it, in one line.
    """
    file = _file(words)
    described = _described(words, file)
    transformers = _transformers(words)
    kind, names = described.pop("model_type"), described.pop("architectures", None) or []
    with calling(f"model {words}", "be built by transformers from this configuration"):
        config = transformers.AutoConfig.for_model(kind, **described)
        if not names:
            return transformers.AutoModelForCausalLM.from_config(config)
        known = getattr(transformers, str(names[0]), None)
        if known is None:
            raise ValueError(f"model {words}: transformers has no architecture {names[0]!r}")
        return known(config)


def _file(words: str) -> Path:
    path = Path(words.removeprefix(PREFIX))
    file = path / "config.json" if path.is_dir() else path
    if not words.removeprefix(PREFIX):
        raise ValueError(f"model {words} lacks a configuration file, such as hf:config.json")
    if not file.is_file():
        raise ValueError(f"file not found: {file}")
    return file


def _described(words: str, file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"model {words} cannot be read as JSON: {type(error).__name__}: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("model_type"), str):
        raise ValueError(f'model {words} lacks the entry "model_type", such as "gpt2"')
    return found


def _transformers(words: str) -> Any:
    try:
        return import_module("transformers")
    except ImportError as error:
        raise ValueError(f"{words} needs transformers: {error}; pip install transformers") from None


def sequences(path: str, model: str, net: nn.Module, *, tokenizer: str | None, length: int | None) -> Any:
    """The tokens of a text file as sequences of one length, a mapping with labels, and what became of it in words.

    Parameters
    ----------
    path
        Of a text in UTF-8.
    model
        Words of the model; without `tokenizer`, the folder of its configuration has the tokenizer.
    net
        The model, whose configuration may bound the length.
    tokenizer
        A folder with the files of one, or ``bytes``.
    length
        Tokens of a sequence; 128, or as many as the model takes, if None.

    Raises
    ------
    ValueError
        If there is no such text or tokenizer, too little of it for one sequence, tokens are beyond the vocabulary of
        the model, or `length` is above what it takes.
    """
    config, place = getattr(net, "config", None), _place(model, tokenizer)
    tokens = _tokens(_text(path), place, config)
    _require_known(tokens, place, config)
    most = _most(config)
    if length is not None and most is not None and length > most:
        raise ValueError(f"--length must be at most the {most} positions that the model takes, got {length}")
    length = length or min(LENGTH, most or LENGTH, max(2, len(tokens)))
    count = len(tokens) // length
    if length < 2 or not count:
        got = f"{len(tokens)} tokens for sequences of {length}"
        advice = "use a smaller --length" if len(tokens) > 1 and length > 2 else "give a longer text"
        advice = "use a larger --length" if length < 2 else advice
        raise ValueError(f"data {path} must fill a sequence of at least 2 tokens, got {got}; {advice}")
    ids = tokens[: count * length].view(count, length)
    left = len(tokens) - ids.numel()
    message = f"data {path}: {count} sequences of {length} tokens{f', the last {left} tokens left out' if left else ''}"
    return {"input_ids": ids, "labels": ids.clone()}, message


def _require_known(tokens: Tensor, place: str | Path, config: Any) -> None:
    """Refuse tokens that the embedding has no row for, which it would tell as an index alone."""
    size = getattr(config, "vocab_size", None)
    if isinstance(size, int) and len(tokens) and (largest := int(tokens.max())) >= size:
        raise ValueError(
            f"tokenizer {place} gives token {largest}, but the model's vocabulary has {size}; use its own tokenizer"
        )


def _most(config: Any) -> int | None:
    """Positions that the model takes, if it says so."""
    found = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    return found if isinstance(found, int) and found > 1 else None


def _text(path: str) -> str:
    require_given_file("data", path)
    try:
        return Path(path).read_bytes().decode("utf-8")  # as it is, ends of lines too
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"data {path} cannot be read as UTF-8 text: {type(error).__name__}") from None


def _place(model: str, tokenizer: str | None) -> str | Path:
    if tokenizer == BYTES:
        return BYTES
    if tokenizer is None and not model.startswith(PREFIX):
        raise ValueError("a text needs a tokenizer: give --tokenizer FOLDER or --tokenizer bytes")
    folder = Path(tokenizer) if tokenizer is not None else _file(model).parent
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        raise ValueError(
            f"tokenizer must be a folder with one of {', '.join(_TOKENIZERS)}, got {folder};"
            " give another --tokenizer FOLDER, or --tokenizer bytes"
        )
    return folder


def _tokens(text: str, place: str | Path, config: Any) -> Tensor:
    if isinstance(place, str):
        raw = bytearray(text.encode())  # of which torch refuses an empty one
        return torch.frombuffer(raw, dtype=torch.uint8).long() if raw else torch.empty(0, dtype=torch.int64)
    transformers = _transformers(f"tokenizer {place}")
    # files of a vocabulary do not say which tokenizer reads them: the kind of the model does
    silent = not any((place / name).is_file() for name in _SPEAKING)
    kind = {"config": config} if silent and config is not None else {}
    with calling(f"tokenizer {place}", "be read by transformers"):
        made = transformers.AutoTokenizer.from_pretrained(str(place), local_files_only=True, **kind)
        return torch.tensor(list(made(text, add_special_tokens=False)["input_ids"]), dtype=torch.int64)
