# %% [markdown]
# # 3. Position
#
# Attention sees a set of vectors without order. For attention, "the cat ate the mouse" and "the mouse ate the cat"
# are the same set. So you have to add the position of every token (positional encoding). There are three ways: add a
# fixed code to the embedding, add a learned vector, or rotate queries and keys inside attention.
#
# The small examples are from the article "Self-Attention Explained with Code". This page asserts its printed numbers.

# %%
import math
import time

import torch
from matplotlib.figure import Figure

import regard
from drawings.kept import keep
from drawings.numbers import show_numbers
from drawings.positions import position_grid
from drawings.printed import printed
from drawings.transformer import embedding_process
from regard.nn.positions import alibi_slopes, rotary_angles, rotate, sinusoidal

# %% [markdown]
# ## Sines and cosines
#
# $$ PE_{pos, 2i} = \sin\left(\frac{pos}{10000^{2i/d}}\right) $$
#
# $$ PE_{pos, 2i+1} = \cos\left(\frac{pos}{10000^{2i/d}}\right) $$
#
# Each pair of columns is like a hand of a clock. The first is fast and the last very slow (Vaswani et al. 2017). Here
# you see the code of five positions with width 3, and its sum with five embeddings. If the width is odd, the last
# column is dropped.

# %%
code = sinusoidal(5, 3).round(decimals=2)
article = printed("contextual embeddings")["positional_encoding"]
given = torch.tensor(article["example_input"])
show_numbers(code, title="positional encoding, 5 × 3", digits=2)
show_numbers(given, title="embeddings", digits=2)
show_numbers(
    given + code, title="their sum, the input of the first layer", digits=2
)

torch.testing.assert_close(
    code, torch.tensor(article["values"]).float(), atol=1e-6, rtol=0
)
torch.testing.assert_close(
    given + code, torch.tensor(article["example_output"]), atol=1e-6, rtol=0
)

# %% [markdown]
# Here is the same for the six words of page 1. Each strip is a vector of 16 numbers. Every second number of the code
# is a cosine and begins at 1.

# %%
torch.manual_seed(123)
ids = [0, 4, 5, 2, 1, 3]
x = torch.nn.Embedding(6, 16)(torch.tensor(ids)).detach()
figure = embedding_process(
    ["Life", "is", "short", "eat", "dessert", "first"],
    ids,
    x,
    6,
    sinusoidal(6, 16),
)
keep(
    figure,
    "added.svg",
    "Six token embeddings, the positional encodings added to them, and "
    "their sums",
)

# %% [markdown]
# ## A hundred positions, 400 wide
#
# Most texts show this plot. The colours are the same as in the article: negative is blue, positive is red.

# %%
codes = sinusoidal(100, 400).double()
keep(
    position_grid(codes, "sinusoidal positional encoding, 100 × 400"),
    "positions.svg",
    "Positional encodings: fast waves in the first dimensions, hardly any "
    "change in the last",
)

# %% [markdown]
# Three claims about this encoding are common: that it is bounded, periodic and predictable. The first claim is true,
# because no number exceeds 1.
#
# The second claim is only partly true. Column pair $i$ repeats after $2\pi \cdot 10000^{2i/d}$ positions, so the
# wavelengths range from $2\pi$ up to nearly $10000 \cdot 2\pi$. In 100 positions, 278 of the 400 columns don't repeat
# even once.

# %%
assert float(codes.abs().max()) <= 1
wavelengths = 2 * math.pi * 10000 ** (torch.arange(0, 400, 2).double() / 400)
slow = 2 * int((wavelengths > 100).sum())
print(
    f"wavelengths from {wavelengths[0]:.2f} to {wavelengths[-1]:,.0f}; the "
    f"bound is {20000 * math.pi:,.0f}"
)
print(f"{slow} of 400 columns do not repeat within 100 positions")
assert slow == 278
torch.testing.assert_close(wavelengths[0].item(), 2 * math.pi)
assert wavelengths[-1] < 20000 * math.pi

# %% [markdown]
# The third claim is true, and it makes the code useful. To get the code at $pos + k$ from the code at $pos$, you
# rotate each hand by an angle that depends on $k$ alone. So a **single** matrix works for all positions, and the dot
# product of two codes depends only on their distance.

# %%
k = 7
angles = rotary_angles(torch.tensor(k), 400)
turn = torch.block_diag(
    *[
        torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]]).double()
        for a in angles
    ]
)
torch.testing.assert_close(codes[:-k] @ turn.T, codes[k:], atol=1e-5, rtol=0)
products = codes @ codes.T
for distance in (0, 1, 7, 50):
    along = products.diagonal(distance)
    print(
        f"{distance:2} apart: {along.mean():6.1f}, the same from position 0 "
        f"to the end within {along.std():.0e}"
    )
    assert float(along.std()) < 1e-3

# %% [markdown]
# ## Learned positions
#
# BERT and GPT-2 use a second table instead, with a learned row for each position. The table has a fixed number of
# rows, here 512. In a trace, the position embedding is a separate component. All components add up to the input of
# the first layer.

# %%
model = regard.load()
river = model.trace("Write a poem about a man fishing on a river bank.")
torch.testing.assert_close(
    river.token_embeddings + river.position_embeddings + river.segment,
    river.input,
    atol=1e-5,
    rtol=0,
)
lengths = [
    [part[11].norm().item()]
    for part in (
        river.token_embeddings,
        river.position_embeddings,
        river.segment,
        river.input,
    )
]
names = ["token embedding of “bank”", "+ position 11", "+ segment 0", "= input"]
show_numbers(torch.tensor(lengths), names, ["length"])

positions = model.model.embeddings.position_embeddings.weight.detach()
assert torch.equal(positions[11], river.position_embeddings[11])
cosines = torch.nn.functional.normalize(positions[:100], dim=1)
cosines = cosines @ cosines.T
near, far = cosines.diagonal(1).mean(), cosines.diagonal(50).mean()
print(
    f"{tuple(positions.shape)}; cosine of rows that are 1 apart: {near:.2f}, "
    f"50 apart: {far:.2f}"
)
assert near > far

# %%
figure = position_grid(
    cosines,
    "learned positions of MiniLM: cosines of the first 100 rows",
    "position",
)
keep(
    figure,
    "learned_positions.png",
    "Cosines of learned positions: nearby positions have similar vectors, "
    "although nothing in training asks for it",
)

# %% [markdown]
# ## Rotary positions
#
# Llama and most newer models add nothing to the embedding. Inside attention, they rotate each pair of components of a
# query and a key by an angle that grows with the position (Su et al. 2021). Two tokens with three positions between
# them then have the same score anywhere in the text:

# %%
torch.manual_seed(0)
q, key = torch.randn(2, 64).double()


def turned(vector, position):
    return rotate(vector[None], rotary_angles(torch.tensor([position]), 64))[0]


scores = [turned(q, p) @ turned(key, p - 3) for p in (3, 50, 500)]
print(
    "score at a distance of 3, from positions 3, 50, 500:",
    [f"{float(score):.4f}" for score in scores],
)
torch.testing.assert_close(torch.stack(scores), scores[0].expand(3))
# a turn changes no length
torch.testing.assert_close(turned(q, 50).norm(), q.norm())

# %% [markdown]
# ALiBi (Press et al. 2022) uses the distance alone. It subtracts a small amount from each score for every position
# between two tokens, and each head has a different amount.
#
# | kind | where it goes | what it knows | how far |
# |---|---|---|---|
# | sinusoidal | added to the embedding, once | the position | any |
# | learned | added to the embedding, once | the position | as many rows as were learned |
# | rotary | rotates queries and keys in every layer, not values | the distance | any, beyond training with care |
# | ALiBi | subtracted from the scores in every layer | the distance | any |

# %%
print(
    "ALiBi's share for each of 8 heads:",
    [round(slope, 4) for slope in alibi_slopes(8).tolist()],
)

# %% [markdown]
# ## Cat and mouse
#
# Without positions, attention gives "cat" the same vector in both sentences, but in a different row. With positions,
# the two vectors differ.

# %%
cat, mouse = (
    model.trace(text)
    for text in ("the cat ate the mouse", "the mouse ate the cat")
)


def mix(x):
    """Self-attention without parameters: softmax(X Xᵀ) X."""
    return (x @ x.T).softmax(-1) @ x


# [CLS] the cat ate the mouse [SEP], with cat and mouse exchanged
swapped = [0, 1, 5, 3, 4, 2, 6]
without = (mix(cat.token_embeddings), mix(mouse.token_embeddings))
torch.testing.assert_close(without[0][swapped], without[1])
with_them = (
    mix(cat.token_embeddings + cat.position_embeddings),
    mix(mouse.token_embeddings + mouse.position_embeddings),
)
change = [float((a[swapped] - b).abs().max()) for a, b in (without, with_them)]
print(
    f"largest change of any number: {change[0]:.1e} without positions, "
    f"{change[1]:.3f} with them"
)
assert change[1] > 1e-2

# %% [markdown]
# ## Compare attention with a recurrent network
#
# A recurrent network needs no positions, because it reads word by word and keeps everything in a single vector. Here
# both networks copy 12 symbols that they have read, with vectors of 64 numbers. Attention can look back at the symbol
# that it needs. On a longer text, the recurrent network takes a step for each word in turn, while attention reads all
# words at once.

# %%
SYMBOLS, LENGTH, WIDE = 12, 12, 64


class Reader(torch.nn.Module):
    """Symbols to scores of the next one, by a recurrent network or by one layer
    of attention."""

    def __init__(self, recurrent):
        super().__init__()
        self.symbols = torch.nn.Embedding(SYMBOLS, WIDE)
        self.places = None if recurrent else torch.nn.Embedding(600, WIDE)
        self.read = (
            torch.nn.GRU(WIDE, WIDE, batch_first=True)
            if recurrent
            else regard.MultiHeadAttention(d_model=WIDE, heads=2)
        )
        self.say = torch.nn.Linear(WIDE, SYMBOLS)

    def forward(self, ids):
        x = self.symbols(ids)
        if self.places is None:
            return self.say(self.read(x)[0])
        return self.say(
            self.read(x + self.places.weight[: ids.shape[1]], causal=True)
        )


def copied(reader, ids):
    """Scores while the second half is written, and what it has to be."""
    return reader(ids[:, :-1])[:, LENGTH:], ids[:, LENGTH + 1 :]


readers, right, took = {"recurrent": True, "attention": False}, {}, {}
for name, recurrent in readers.items():
    torch.manual_seed(0)
    reader = Reader(recurrent)
    optimiser = torch.optim.Adam(reader.parameters(), lr=5e-3)
    right[name] = []
    for _ in range(201):
        first = torch.randint(1, SYMBOLS, (32, LENGTH))
        scores, wanted = copied(
            reader,
            torch.cat([first, torch.zeros(32, 1, dtype=torch.long), first], 1),
        )
        loss = torch.nn.functional.cross_entropy(
            scores.flatten(0, 1), wanted.flatten()
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        right[name].append(float((scores.argmax(-1) == wanted).float().mean()))
    runs = []
    for _ in range(7):
        start = time.perf_counter()
        with torch.no_grad():
            reader(torch.ones(1, 512, dtype=torch.long))
        runs.append(1000 * (time.perf_counter() - start))
    took[name] = sorted(runs)[3]
    print(
        f"{name}: {right[name][-1]:.0%} of the symbols right; 512 symbols "
        f"read in {took[name]:.1f} ms"
    )
assert right["attention"][-1] > 0.95
assert right["recurrent"][-1] < 0.7
figure = Figure(figsize=(7, 3.2), layout="constrained")
axes = figure.add_subplot(
    xlabel="training step",
    ylabel="symbols copied right",
    title="12 symbols, to be written again",
)
for name, colour in (("recurrent", "#d55e00"), ("attention", "#0072b2")):
    axes.plot(
        right[name],
        color=colour,
        label=f"{name}: 512 symbols in {took[name]:.1f} ms",
    )
axes.axhline(
    1 / (SYMBOLS - 1), color="#777777", linestyle=":", label="by chance"
)
axes.legend(frameon=False, loc=(0.5, 0.62))
keep(
    figure,
    "copying.svg",
    "Attention learns to copy 12 symbols while a recurrent reader of the "
    "same width does not",
)

# %% [markdown]
# Words now have vectors and positions. Next, you see how they interact: [4. Self-attention](4_self_attention.py).
