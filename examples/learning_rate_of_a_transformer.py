"""Learning rate of a transformer.

`losscurv.plan` takes the model, data loader, optimizer and scheduler of a training script, makes short training runs at
several rates and suggests one. Here a small BERT, or torch's encoder if transformers is not installed, learns which of
8 letters is the most frequent in a word of 16. The optimizer is AdamW with weight decay, warm-up and a cosine.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import losscurv

torch.manual_seed(0)
torch.set_num_threads(1)
words = torch.randint(8, (2048, 16))
loader = DataLoader(TensorDataset(words, words.mode(1).values), batch_size=32, shuffle=True)
try:
    import transformers  # pyright: ignore[reportMissingImports]

    sizes = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
    config = transformers.DistilBertConfig(vocab_size=8, num_labels=8, **sizes)
    model = transformers.DistilBertForSequenceClassification(config)
except ImportError:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)
    model = nn.Sequential(nn.Embedding(8, 32), encoder, nn.Flatten(), nn.Linear(16 * 32, 8))


def optimizer_at(rate: float):
    """Return AdamW, and its scheduler for 3 epochs of 64 steps: a tenth warm-up, then a cosine."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.1)
    schedule = {"total_steps": 192, "pct_start": 0.1, "cycle_momentum": False}
    return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, **schedule)


optimizer, scheduler = optimizer_at(1e-3)
plan = losscurv.plan(model, loader, optimizer, scheduler=scheduler, steps=192)
print(plan.summary())
optimizer, scheduler = optimizer_at(plan.trials[0].start or 1e-3)  # None if no trial run trained
losses = list[float]()
for inputs, targets in [batch for _ in range(3) for batch in loader]:
    outputs = model(inputs)
    loss = nn.functional.cross_entropy(getattr(outputs, "logits", outputs), targets)
    losses.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
print(f"loss of 16 batches: {sum(losses[:16]) / 16:.2f} at first, {sum(losses[-16:]) / 16:.2f} at the end")
plt.plot(losses)
plt.savefig("learning_rate_of_a_transformer.png")

# ![Loss of each batch against the step, at the suggested rate](learning_rate_of_a_transformer.png)
#
# ## What to try next
#
# - Your own model, loader, optimizer and scheduler ([Choose a learning rate](../plan.md)).
# - Several batch sizes: `losscurv.plan(..., batch_sizes=[16, 64])`.
# - A limit of time: `losscurv.plan(..., seconds=60)`.
