# %% [markdown]
# # 3. Position
#
# "The cat ate the mouse" and "the mouse ate the cat" have the same words, and only their positions say who is eaten.
# First you check that attention by itself can't see the difference. Then you add positions in four ways: a fixed code
# or a learned vector that is added to the embedding, a rotation inside attention, or a penalty for distance. In the
# last exercise you build a head that attends to the previous position.
#
# This page needs a few terms from later lessons. Attention compares words by dot products (lesson 4). For this, a
# model computes two vectors from each word, a **query** and a **key** (lesson 5). The query of a word is compared
# with the keys of all words. Each dot product is a **score**, and the softmax turns scores into weights that sum to
# 1.

# %%
import math
import time

import torch
from matplotlib.figure import Figure

import regard
from drawings.code import Code
from drawings.kept import keep
from drawings.numbers import show_numbers
from drawings.positions import dial, position_grid
from regard import textbook
from regard.nn.positions import alibi_slopes, rotary_angles, rotate

# %% [markdown]
# ## Attention has no order
#
# Here is attention without parameters: each vector is its own query and key. $X X^T$ holds all dot products, and the
# output of a word is the weighted mean of all rows of $X$. In the second sentence, "cat" and "mouse" have changed
# places. How much does the output of "cat" change?

# %%
model = regard.load()
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
with_them = (
    mix(cat.token_embeddings + cat.position_embeddings),
    mix(mouse.token_embeddings + mouse.position_embeddings),
)
change = [
    float((a[2] - b[5]).norm() / a[2].norm()) for a, b in (without, with_them)
]
print(f"without positions, “cat” changes by {change[0]:.0%} of its length")
print(f"with positions, it changes by {change[1]:.0%}")
torch.testing.assert_close(without[0][swapped], without[1])
assert change[0] < 1e-5
assert change[1] > 0.05

# %% [markdown]
# Let the matrix $P$ put the rows of $X$ into another order. Attention then returns the same rows as before, in the
# new order:
#
# $$ \mathrm{softmax}(P X X^T P^T) P X = P \, \mathrm{softmax}(X X^T) X $$
#
# ## Sines and cosines
#
# The first transformer added a fixed code to each embedding (Vaswani et al. 2017). The code of position $pos$ has $d$
# numbers, in pairs:
#
# $$ PE_{pos, 2i} = \sin(pos \cdot \omega_i) $$
#
# $$ PE_{pos, 2i+1} = \cos(pos \cdot \omega_i) $$
#
# $$ \omega_i = \frac{1}{10000^{2i/d}} $$

# %%
Code(textbook.sinusoidal)

# %% [markdown]
# The first transformer multiplies each embedding by $\sqrt{d}$ before it adds the code, and so does the textbook,
# which calls $d$ M. Otherwise the codes, of length √(d / 2), would be much longer than the embeddings, which have a
# length of about 1 before training. The formula of lesson 1, $x_i = E[t_i] + p_i$, has no such factor. Neither have
# BERT and GPT-2, which learn their positions.
#
# You can read each pair as a hand of a clock that turns by $\omega_i$ with every position. Here a code has six
# numbers, so it has three hands:

# %%
hands = textbook.sinusoidal(101, 6)
shown = (0, 1, 2, 6, 20, 50, 100)
figure = Figure(figsize=(9, 4.3), layout="constrained")
for i, row in enumerate(figure.subplots(3, len(shown))):
    step = math.degrees(10000 ** (-2 * i / 6))
    for position, axes in zip(shown, row, strict=True):
        hand = hands[position, 2 * i : 2 * i + 2]
        above = f"position {position}" if i == 0 else ""
        left = f"{step:.2f}° each" if position == 0 else ""
        dial(axes, [(hand, "", "#d98200")], above, left)
keep(
    figure,
    "hands.svg",
    "Three hands of a clock at seven positions: the first is fast, the last "
    "very slow",
)

# %% [markdown]
# The fast hand shows small steps but is soon back: position 6 looks like position 0. The slower hands distinguish the
# two. The number 10,000 is a choice and sets how slowly the last hand turns. Llama 3 uses 500,000 in its rotary
# positions.
#
# The next plot shows the codes of 100 positions, with 400 numbers each. Negative numbers are red, positive numbers
# blue.

# %%
codes = textbook.sinusoidal(100, 400).double()
keep(
    position_grid(codes, "sinusoidal positional encoding, 100 × 400"),
    "positions.svg",
    "Positional encodings: fast waves in the first dimensions, hardly any "
    "change in the last",
)

# %%
wavelengths = 2 * math.pi * 10000 ** (torch.arange(0, 400, 2).double() / 400)
slow = 2 * int((wavelengths > 100).sum())
print(
    f"wavelengths from {wavelengths[0]:.2f} to {wavelengths[-1]:,.0f} positions"
)
print(f"{slow} of 400 columns do not repeat within 100 positions")
assert slow == 278
torch.testing.assert_close(wavelengths[0].item(), 2 * math.pi)
assert wavelengths[-1] < 20000 * math.pi
assert float(codes.abs().max()) <= 1
lengths = codes.norm(dim=1)
torch.testing.assert_close(lengths, torch.full_like(lengths, math.sqrt(200)))

# %% [markdown]
# ## A step is a rotation
#
# To move $k$ positions on, you turn each hand by $k \omega_i$. So the **same** matrix $R_k$ works at all positions, and
# the dot product of two codes depends on their distance $k$ alone:
#
# $$ PE_{pos+k} = R_k \, PE_{pos} $$
#
# $$ PE_{pos} \cdot PE_{pos+k} = \sum_i \cos(k \omega_i) $$

# %%
k = 7
angles = k * 10000 ** (-torch.arange(0, 400, 2).double() / 400)
turns = [[[a.cos(), a.sin()], [-a.sin(), a.cos()]] for a in angles]
r_k = torch.block_diag(*[torch.tensor(turn).double() for turn in turns])
torch.testing.assert_close(codes[:-k] @ r_k.T, codes[k:], atol=1e-5, rtol=0)

products = codes @ codes.T
table = torch.stack(
    [products.diagonal(far)[[0, 25, -1]] for far in (0, 1, k, 50)]
)
show_numbers(
    table,
    ["same position", "1 apart", "7 apart", "50 apart"],
    ["at the start", "from position 25", "at the end"],
    title="Dot products of two codes",
    digits=1,
)
assert float((table - table[:, :1]).abs().max()) < 1e-3
torch.testing.assert_close(table[2, 0], angles.cos().sum(), atol=1e-4, rtol=0)

# %% [markdown]
# ## Learned positions
#
# BERT and GPT-2 use a second table instead, with a learned row for each position. The number of rows is fixed, here
# 512. This plot compares the first 100 rows of MiniLM:

# %%
positions = model.model.embeddings.position_embeddings.weight.detach()
assert torch.equal(positions[2], cat.position_embeddings[2])
cosines = torch.nn.functional.normalize(positions[:100], dim=1)
cosines = cosines @ cosines.T
print(f"{tuple(positions.shape)}; mean cosine of two rows")
apart = {k: float(cosines.diagonal(k).mean()) for k in (1, 9, 12, 50)}
for k, cosine in apart.items():
    print(f"{k:3} apart: {cosine:.2f}")
assert apart[1] > apart[12] > apart[9] > apart[50]
figure = position_grid(
    cosines,
    "learned positions of MiniLM: cosines of the first 100 rows",
    "position",
)
keep(
    figure,
    "learned_positions.png",
    "Cosines of learned positions: nearby positions have similar vectors, and "
    "stripes run parallel to the diagonal",
)

# %% [markdown]
# The closest positions have the most similar vectors, as with sines and cosines. MiniLM learned this from text. The
# stripes parallel to the diagonal show that similarity doesn't simply fall with distance: 12 apart is more similar
# than 9 apart. Waves make such stripes, so the learned vectors probably contain waves, too.
#
# ## Rotary positions
#
# If a position is added to each word, attention compares these sums:
#
# $$ (x + p) \cdot (x' + p') = x \cdot x' + x \cdot p' + p \cdot x' + p \cdot p' $$
#
# With sines and cosines, $p \cdot p'$ depends on the distance alone. But $x \cdot p'$ and $p \cdot x'$ depend on the
# absolute positions. Rotary positions have no such terms. Llama and most newer models add nothing to the embedding.
# Inside attention, they turn each pair of numbers $(a, b)$ of a query or key by an angle that grows with its position
# $m$ (Su et al. 2021):
#
# $$ a' = a \cos(m \omega_i) - b \sin(m \omega_i) $$
#
# $$ b' = b \cos(m \omega_i) + a \sin(m \omega_i) $$


# %%
def turn(vector, position):
    """Turn each pair of a query or key by its position, (D,) → (D,)."""
    rates = 10000 ** (-torch.arange(0, len(vector), 2).double() / len(vector))
    cos, sin = (position * rates).cos(), (position * rates).sin()
    a, b = vector[0::2], vector[1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten()


# %% [markdown]
# With two numbers, you can draw this. The first circle shows the same query at six positions. The other two circles
# show a query and a key at a distance of 2. In all circles of this page, the first number of a pair points to the
# right and the second up. The first number of a code is a sine, so its hand starts at the top and turns clockwise,
# while a rotary pair turns the other way. That is why $R_k$ has different signs from the formulas above. The
# direction doesn't matter for the score:

# %%
query, key = torch.tensor([[0.9, 0.3], [-0.2, 0.8]]).double()
figure = Figure(figsize=(9, 3.2), layout="constrained")
first, *others = figure.subplots(1, 3)
fading = ["55", "66", "88", "aa", "cc", "ff"]
at = [
    (turn(query, m), str(m), "#0072b2" + alpha)
    for m, alpha in enumerate(fading)
]
dial(first, at, "a query at positions 0 to 5")
scores = []
for axes, m, n in zip(others, (2, 5), (0, 3), strict=True):
    q, k = turn(query, m), turn(key, n)
    scores.append(float(q @ k))
    pair = [(q, "query", "#0072b2"), (k, "key", "#d98200")]
    dial(axes, pair, f"query at {m}, key at {n}: score {scores[-1]:.3f}")
keep(
    figure,
    "turning.svg",
    "A query turns with its position; a query and a key that are 2 apart keep "
    "their angle and their score",
)

# %%
assert abs(scores[0] - scores[1]) < 1e-9
torch.manual_seed(0)
query, key = torch.randn(2, 64).double()
for m in (3, 50, 500):
    score = turn(query, m) @ turn(key, m - 3)
    print(f"64 numbers, query at {m}, key at {m - 3}: score {score:.4f}")
    torch.testing.assert_close(score, turn(query, 3) @ key)

assert (turn(query, 50).norm() - query.norm()).abs() < 1e-9
angles = rotary_angles(torch.tensor([50]), 64)
ours = rotate(query[None], angles, "interleaved")[0]
torch.testing.assert_close(ours, turn(query, 50))

# %% [markdown]
# Both vectors turn together, so the angle between them stays the same. The score depends on their distance alone,
# wherever they are in the text.
#
# **ALiBi** (Press et al. 2022) uses the distance directly. A model runs several attentions in parallel, its **heads**
# (lesson 6). Each head has a slope $c$ and lowers the score by $c$ for every position between query and key:
#
# $$ s_{ij} = q_i \cdot k_j - c |i - j| $$

# %%
slopes = [round(slope, 4) for slope in alibi_slopes(8).tolist()]
print("ALiBi's slopes for 8 heads:", slopes)

# %% [markdown]
# | kind | how it is added | what attention sees | range |
# |---|---|---|---|
# | sinusoidal | added to the embedding, once | the position | any position, but poor beyond those in training |
# | learned | added to the embedding, once | the position | only positions with a learned row |
# | rotary | rotates queries and keys in every layer, not values | the distance | any distance, but beyond training
# only with care |
# | ALiBi | subtracted from the scores in every layer | the distance | any |

# %% [markdown]
# ## Compare attention with a recurrent network
#
# A recurrent network needs no positions. It reads word by word and keeps everything in a single vector. Here a
# recurrent network and a layer of attention learn to copy 12 symbols. Both have vectors of 64 numbers and are trained
# for 200 steps.

# %%
SYMBOLS, LENGTH, WIDE = 12, 12, 64


class Reader(torch.nn.Module):
    """Score the next symbol, by a recurrent network or a layer of attention."""

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
    """Compute the scores of the second half, and return its true symbols."""
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
assert 0.3 < right["recurrent"][-1] < 0.7
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
    "Attention learns to copy 12 symbols sooner than a recurrent reader of the "
    "same width",
)

# %% [markdown]
# After 200 steps, attention copies every symbol and the recurrent network about half of them. With more steps, the
# recurrent network gets better: about 72 % after 800 and 79 % after 1,500. It learns more slowly, probably because it
# has to keep all 12 symbols in its vector, while attention can look back at the symbol that it needs. The recurrent
# network also has to read a text word by word, while attention reads all words at once.
#
# Words now have vectors and positions. Next, they interact: [4. Self-attention](4_self_attention.py).

# %% [markdown]
# ## Exercises
#
# The cells below don't need the cells above. Replace `...` by your answer and run the cell, or run `regard lesson 3
# --exercises`.

# %%
from math import cos, sin

import torch

from drawings.exercise import Exercise
from regard.nn.positions import sinusoidal

# %% [markdown]
# **1. Choose the base.** The base 10,000 is a choice. Codes of six numbers have three hands, and with this base some
# of the first 100 positions are hard to distinguish. Find a base for which no two of them have a cosine above 0.85.

# %%
answer = ...  # a number


def check(base):
    codes = sinusoidal(100, 6, base)
    cosines = (codes @ codes.T / 3).fill_diagonal_(-1)  # each length is √3
    first, second = divmod(int(cosines.argmax()), 100)
    most = f"cosine {cosines.max():.2f}"
    said = f"positions {first} and {second} are the most alike, {most}"
    right = bool(cosines.max() <= 0.85)
    turned = 5730 / base ** (2 / 3)  # degrees, in 100 positions
    return right, said + f". The slowest hand turns by {turned:.0f}°" * right


Exercise(check, answer)

# %% [markdown]
# **2. Move the hand.** A hand turns by 0.5 with every position. Its pair at position $p$ is $(\sin 0.5p, \cos 0.5p)$.
# Find the 2 × 2 matrix $R$ that turns the pair at $p$ into the pair at $p + 7$, for every $p$.

# %%
answer = ...  # a list of two rows with two numbers; it may use sin and cos

pairs = torch.tensor([[sin(0.5 * p), cos(0.5 * p)] for p in range(50)])


def check(matrix):
    moved = pairs[:-7] @ torch.tensor(matrix).float().T
    off = (moved - pairs[7:]).abs().max()
    reason = ": a turn by 7 × 0.5, wherever it starts" if off < 1e-3 else ""
    return off < 1e-3, f"the pairs are off by up to {off:.3f}{reason}"


Exercise(check, answer)

# %% [markdown]
# **3. Look back.** Build a head that only knows positions. A query is $W$ times the code of its position, and a key
# is the code itself. Find a 16 × 16 matrix $W$ that makes every position give more than 0.9 of its attention to the
# position before it. `turn(k)` is the matrix that moves a code by $k$ positions.

# %%
answer = ...  # a matrix; it may use turn


def turn(k):
    angles = [k * 10000 ** (-i / 8) for i in range(8)]
    hands = [[[cos(a), sin(a)], [-sin(a), cos(a)]] for a in angles]
    return torch.block_diag(*map(torch.tensor, hands))


def check(w):
    codes = sinusoidal(40, 16)
    weights = (codes @ w.T @ codes.T).softmax(-1)
    least = weights.diagonal(-1).min()
    said = f"the position before gets {least:.2f} or more"
    right = w.shape == (16, 16) and bool(least > 0.9)
    return right, said + ", because its code fits the query best" * right


Exercise(check, answer)
