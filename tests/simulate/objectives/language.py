"""Language models in small, with the protocol of transformers: a mapping in, a mapping with `logits` out."""

from collections import OrderedDict, UserDict
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

V, T, WIDTH, N = 11, 6, 4, 5
"""Vocabulary, positions, width, sequences."""

IGNORED = -100


class Found(OrderedDict[str, Any]):
    """Outputs of a model, by name and by attribute."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class Block(nn.Module):
    """Attention over the past and a bend, in float64."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.mix, self.bend = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, kept: Tensor | None) -> Tensor:
        q, k, v = self.mix(x)[:, None].chunk(3, -1)
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        if kept is not None:
            seen = (seen & kept[:, None, :].bool()) | torch.eye(x.shape[1], dtype=torch.bool)
            seen = seen[:, None]
        x = x + functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)[:, 0]
        return x + self.bend(x).tanh()


class CausalModel(nn.Module):
    """Logits (N, T, V), tied to the embedding; its own loss moves the labels by one position."""

    moves = True

    def __init__(self, tied: bool = True, bias: bool = False) -> None:
        super().__init__()
        state = torch.get_rng_state()
        torch.default_generator.manual_seed(0)
        self.embed, self.place = nn.Embedding(V, WIDTH), nn.Embedding(T, WIDTH)
        self.block, self.head = Block(), nn.Linear(WIDTH, V, bias=bias)
        if tied:
            self.head.weight = self.embed.weight
        torch.set_rng_state(state)
        self.double()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None
    ) -> Found:
        """As transformers have it."""
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        hidden = self.block(self.embed(input_ids) + self.place(places), attention_mask)
        logits = self.head(hidden)
        found = Found(logits=logits, hidden=hidden)
        if labels is not None:
            found["loss"] = self.own_loss(logits, labels)
        return found

    def own_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the model's loss of labels as they are given."""
        if self.moves:
            logits, labels = logits[:, :-1], labels[:, 1:]
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)


class MaskedModel(CausalModel):
    """Its loss takes the labels where they stand."""

    moves = False


class OddModel(CausalModel):
    """Its loss is another one."""

    def own_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """No mean of log-likelihoods."""
        return 2 * super().own_loss(logits, labels)


def tokens(seed: int = 0, *, n: int = N, t: int = T) -> Tensor:
    """Whole numbers (n, t)."""
    return torch.randint(0, V, (n, t), generator=torch.Generator().manual_seed(seed))


def batch(seed: int = 0) -> UserDict[str, Any]:
    """Sequences of different lengths, padded: what is padding is neither seen nor predicted."""
    ids = tokens(seed)
    kept = (torch.arange(T) < torch.tensor([[6], [3], [5], [1], [4]])).long()
    labels = ids.masked_fill(kept == 0, IGNORED)
    return UserDict({"input_ids": ids, "attention_mask": kept, "labels": labels})


def part(whole: UserDict[str, Any], samples: slice) -> UserDict[str, Any]:
    """Some of the samples."""
    return UserDict({name: tensor[samples] for name, tensor in whole.items()})
