# %% [markdown]
# # 5. Queries, keys and values
#
# In lesson 4, every word attended most to words like itself. But a pronoun needs its noun, and a verb its subject,
# although the two words aren't alike. So each word gets three vectors: a query to ask with, a key to be found by, and
# a value to pass on. On this page you see how three matrices make them, compute every number of one head, and find
# out why scores are divided by a root.

# %%
import torch
from matplotlib.figure import Figure

import regard
from drawings import attention as schematic
from drawings import moving
from drawings.code import Code
from drawings.grid import heatmap
from drawings.kept import keep
from drawings.numbers import show_numbers
from drawings.printed import printed
from regard import textbook
from regard.explain.vectors.similarity import cosine, plane
from regard.explain.weights.head_steps import steps

# %% [markdown]
# ## The formula
#
# $$ \mathrm{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V $$
#
# $$ Q = X W_Q, \quad K = X W_K, \quad V = X W_V $$
#
# - The **query** of a word is what it looks for.
# - The **key** of a word is what other words find it by.
# - The **value** of a word is what it passes on.
#
# A **head** is these three matrices and this formula. Training sets the matrices. This is the code of the
# [textbook](../api/textbook.md), which calls the `attention` of lesson 4:

# %%
Code(textbook.SelfAttention)

# %% [markdown]
# Attention was invented for translation with recurrent networks. Before each new word, the decoder compared its state
# with all states of the source sentence (Bahdanau et al. 2015).
#
# ## River and finance, without parameters
#
# Take two texts of three words, with four numbers for each word. The first number means water and the second money,
# and "bank" has equal parts of both. The inputs are from the article "Self-Attention from First Principles", and the
# results equal its results to three decimals.

# %%
article = printed("river and finance")
embeddings = article["embeddings"]
texts = {name: article[name] for name in ("river", "finance")}
x = {
    name: torch.tensor([embeddings[word] for word in text])
    for name, text in texts.items()
}


def show(title, found, expected=None):
    """Print a layer's output for both texts, and compare it with the published
    numbers."""
    for name, text in texts.items():
        show_numbers(found[name], text, title=f"{title}, {name}")
        if expected:
            torch.testing.assert_close(
                found[name].detach(),
                torch.tensor(expected[name]),
                atol=5.1e-4,
                rtol=0,
            )


show("embeddings", x)

# %% [markdown]
# A matrix alone, $y_i = x_i W$, transforms each word by itself. So "bank" is the same in both texts, to the last bit.
# Attention without parameters, $\mathrm{softmax}(X X^T) X$, makes them different. As in the article, there is no root
# here.

# %%
w = torch.tensor(article["context_free_layer"]["W"])
plain = {name: rows @ w for name, rows in x.items()}
show("x W", plain, article["context_free_layer"])
assert torch.equal(plain["river"][1], plain["finance"][1])

raw = {name: rows @ rows.T for name, rows in x.items()}
show("scores x xᵀ", raw, article["raw_scores"])
mixed = {name: raw[name].softmax(-1) @ rows for name, rows in x.items()}
show("softmax(x xᵀ) x", mixed, article["parameter_free_attention"])
for name, rows in mixed.items():
    water, gold = rows[1, :2].tolist()
    print(f"bank in the {name} text: {water:.3f} water, {gold:.3f} money")
    assert (water > gold) == (name == "river")
assert raw["finance"][2, 0] > raw["finance"][2, 2]

# %% [markdown]
# In the river text, "bank" has more water than money. In the finance text, it has three times as much money as water.
# "Loan" has a larger score with "money" (1.60) than with itself (1.57), because "money" is the longer vector.
#
# The plot shows "bank" before and after attention, on the plane that keeps most of the differences (the first two
# principal components). A weighted mean can't leave the area between its words.

# %%
flat = plane(torch.cat([*x.values(), *mixed.values()]))
figure = Figure(figsize=(7, 4.4), layout="constrained")
axes = figure.add_subplot(
    title="“bank” before attention (black) and after it (stars)"
)
for name, colour in (("river", "#0072b2"), ("finance", "#d55e00")):
    before, after = flat.place(x[name]), flat.place(mixed[name])
    for n, word in enumerate(texts[name]):
        axes.plot(*before[n], "o", color="k" if word == "bank" else colour)
        if word != "bank" or name == "river":
            axes.annotate(
                word,
                before[n].tolist(),
                xytext=(6, 4),
                textcoords="offset points",
            )
    axes.plot(
        *zip(before[1].tolist(), after[1].tolist(), strict=True),
        "--",
        color=colour,
    )
    axes.plot(
        *after[1],
        "*",
        markersize=14,
        color=colour,
        label=f"bank in the {name} text",
    )
axes.set(
    xlabel=f"first axis, {flat.share[0]:.0%} of the variance",
    ylabel=f"second, {flat.share[1]:.0%}",
)
axes.margins(0.15)
axes.legend(frameon=False)
keep(
    figure,
    "river_and_finance.svg",
    "The word bank moves to the river's words in one text, to money's in the "
    "other",
)

# %% [markdown]
# ## A word that looks for something else
#
# Without parameters, the water words attend to water and the money words to money. Now write a query matrix by hand
# that turns water into a question for money. The key of a word is its own water and money, plus a tenth of its fourth
# number.

# %%
four = ["stream", "mud", "money", "loan"]
traits = ["water", "money", "third", "fourth"]
rows = torch.tensor([embeddings[word] for word in four])
w_query = torch.tensor([[0.0, 6.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
w_key = torch.tensor(article["projected_attention"]["W_key"]).float()
query, key = rows @ w_query, rows @ w_key
alike = textbook.attention(rows, rows, rows)[1]
asking = textbook.attention(query, key, rows)[1]
show_numbers(w_query, traits, title="W_Q, 4 × 2", digits=1)
show_numbers(w_key, traits, title="W_K, 4 × 2", digits=1)

figure = Figure(figsize=(9, 4), layout="constrained")
(left, right), names = figure.subplots(1, 2), ("query", "key")
heatmap(alike, four, four, title="without parameters", labels=names, axes=left)
heatmap(asking, four, four, title="with W_Q and W_K", labels=names, axes=right)
keep(
    figure,
    "asking.svg",
    "Weights of four words: without parameters like attends to like; with a "
    "query matrix water attends to money",
)

# %% [markdown]
# "Stream" and "mud" now give more than 0.9 of their attention to "money" and "loan". The other direction is different:
# "money" has the query 0 and attends to all words equally. The score of "stream" for "money" is now large, and that of
# "money" for "stream" is 0. In $X X^T$ the two are the same number.

# %%
scores, symmetric = query @ key.T / 2**0.5, rows @ rows.T
show_numbers(scores, four, four, title="scores with W_Q and W_K")
assert scores[0, 2] > 7
assert scores[2, 0] == 0
assert symmetric[0, 2] == symmetric[2, 0]
assert asking[:2, 2:].sum(-1).min() > 0.9
torch.testing.assert_close(asking[2:], torch.full((2, 4), 0.25))
assert alike[:2, :2].sum(-1).min() > 0.5
assert alike[2:, 2:].sum(-1).min() > 0.5

# %% [markdown]
# ## The matrices of the article
#
# The article writes all three matrices by hand. Queries and keys have width 2, so the scores are divided by
# $\sqrt{2}$. Values have width 3.

# %%
written = article["projected_attention"]
w_query, w_key, w_value = (
    torch.tensor(written[name]).float()
    for name in ("W_query", "W_key", "W_value")
)
show_numbers(w_query, traits, title="W_Q, 4 × 2", digits=1)
show_numbers(w_value, traits, title="W_V, 4 × 3", digits=1)
projected = {
    name: textbook.attention(rows @ w_query, rows @ w_key, rows @ w_value)[0]
    for name, rows in x.items()
}
show("projected", projected, written)

# the same as a layer
layer = regard.SelfAttention.from_weights(
    w_query, w_key, w_value, convention="x @ W"
)
for name, rows in x.items():
    torch.testing.assert_close(layer(rows), projected[name])

stages = {"embeddings": x, "x W": plain, "softmax(x xᵀ) x": mixed}
stages["projected"] = projected
alike = torch.tensor(
    [[cosine(rows["river"][1], rows["finance"][1])] for rows in stages.values()]
)
show_numbers(
    alike, [*stages], ["cosine"], title="how alike “bank” is in the two texts"
)
assert alike[:2].min() > 1 - 1e-6
expected = torch.tensor([[0.623], [0.565]])
torch.testing.assert_close(alike[2:], expected, atol=5.1e-4, rtol=0)

# %% [markdown]
# Before attention, you can't distinguish the two "bank" vectors: their cosine is 1. Attention reduces it to 0.623
# without parameters, and to 0.565 with the three matrices.
#
# A query has two numbers here, so you can see it among the keys. Below is the query of "bank" in the river text. Drag
# it to the centre, and each weight becomes a third. Drag it straight up, so that it asks for money alone: "bank" gets
# most, because its key has the most money. Drag it to the lower left, away from all keys: now all scores are negative,
# and "mud" gets most because its score is nearest to 0.

# %%
rows = x["river"]
query, key = rows @ w_query, rows @ w_key
moved = torch.tensor([[0.0, 0.0], [0.0, 1.8], [-1.8, -1.8]])
scores = moved @ key.T / 2**0.5
torch.testing.assert_close(scores.softmax(-1)[0], torch.full((3,), 1 / 3))
assert scores[1:].argmax(-1).tolist() == [1, 2]
assert scores[2].max() < 0
moving.plane_query(
    texts["river"], query[1].tolist(), key.tolist(), (rows @ w_value).tolist()
)

# %% [markdown]
# ## One head, number by number
#
# Now take the sentence of lesson 1, six words of 16 numbers, with the matrices of its article. A query and a key meet
# in a dot product, so they have the same width ($d_k = 24$). The width of the values is free ($d_v = 28$) and is also
# the width of the result. PyTorch's `MultiheadAttention` always has $d_v = d_k$. In regard, you choose both widths.
#
# The matrices are random, so the weights mean nothing: only follow the arithmetic. The article computes `W @ x`.
# PyTorch's layers store the article's matrix and compute `x @ W.T`. Many texts, and the formula above, call the
# transposed matrix $W_Q$ and write `x @ W_Q`. The two are easily confused, so regard asks you for the convention.

# %%
sentence = ["Life", "is", "short", "eat", "dessert", "first"]
torch.manual_seed(123)
# the table and ids of lesson 1
x = torch.nn.Embedding(6, 16)(torch.tensor([0, 4, 5, 2, 1, 3])).detach()
torch.manual_seed(123)
w_query, w_key, w_value = (
    torch.rand(24, 16),
    torch.rand(24, 16),
    torch.rand(28, 16),
)
layer = regard.SelfAttention.from_weights(
    w_query, w_key, w_value, convention="W @ x"
)
query, key, value = layer.query(x), layer.key(x), layer.value(x)
assert (query.shape, key.shape, value.shape) == ((6, 24), (6, 24), (6, 28))
figure = schematic.projections(x, w_query, w_key, w_value, sentence)
keep(
    figure,
    "projections.svg",
    "The input 6 × 16 times three matrices: queries 6 × 24, keys 6 × 24, "
    "values 6 × 28",
)

# %% [markdown]
# `steps` returns every step of the computation for a query, in float64. Here is the computation for the second word,
# "is":

# %%
context, weights = layer(x, return_attention=True)
way = steps(weights, value, query=1)
show_numbers(
    torch.stack([way.products, way.scores, way.weights], 1),
    sentence,
    ["q · k", "/ √24", "weight"],
    digits=4,
)
show_numbers(
    way.context.view(4, 7),
    ["", "", "", ""],
    title="context vector of “is”, 28 numbers",
    digits=4,
)
close = {"atol": 5.1e-5, "rtol": 0}
article = printed("one sentence")
products = torch.tensor(article["unnormalised_weights"])
torch.testing.assert_close(way.products.float(), products, **close)
assert (
    round(float(way.products[4]), 4)
    == article["unnormalised_weight_query1_key4"]
)
assert abs(way.scale - 24**-0.5) < 1e-9
published = torch.tensor(article["weights"])
torch.testing.assert_close(way.weights.float(), published, **close)
expected = torch.tensor(article["context"])
torch.testing.assert_close(context[1].detach(), expected, **close)
torch.testing.assert_close(context[1], way.context.float())

# %%
figure = schematic.single_head(way, "is", sentence)
keep(
    figure,
    "single_head.svg",
    "One query's way: dot products with six keys, scaled, softmax, sum of "
    "six values",
)

# %% [markdown]
# ## Why scores are divided by a root
#
# Let the numbers of a query and a key be independent, with mean 0 and standard deviation 1. Each of the $d_k$
# products in their dot product has variance 1, and the variances add up:
#
# $$ \mathrm{Var}(q \cdot k) = \sum_i \mathrm{Var}(q_i k_i) = d_k $$
#
# So dot products have a standard deviation of $\sqrt{d_k}$. The table has 500 random queries with ten random keys
# each. The gradient shows how much the weights change with the scores.

# %%
torch.manual_seed(0)
table, widths = [], (4, 24, 64, 512)
for d in widths:
    q, k = torch.randn(500, 1, d), torch.randn(500, 10, d)
    row = [float((q * k).sum(-1).std())]
    for scale in (1.0, d**-0.5):
        s = (scale * (q * k).sum(-1)).softmax(-1)
        # d weight / d score: zero where it is saturated
        slope = torch.diag_embed(s) - s[:, :, None] * s[:, None]
        row += [float(s.amax(-1).mean()), float(slope.norm(dim=(1, 2)).mean())]
    table.append(row)
across = [
    "spread of q·k",
    "largest weight",
    "gradient",
    "scaled: largest",
    "scaled: gradient",
]
show_numbers(torch.tensor(table), [f"d = {d}" for d in widths], across)
assert table[-1][1] > 0.95
assert table[-1][2] < 0.3 * table[-1][4]
for d, (spread, *_, largest, gradient) in zip(widths, table, strict=True):
    assert abs(spread / d**0.5 - 1) < 0.1
    assert abs(largest - 0.32) < 0.02
    assert abs(gradient - 0.345) < 0.01

# %% [markdown]
# Here are the scores of "is" again. Divide them by a number other than $\sqrt{24}$:

# %%
moving.temperature(sentence, way.products.tolist(), 24**0.5, query=sentence[1])

# %% [markdown]
# Without the root, the softmax of wide vectors becomes a switch: a single weight is close to 1 and the gradient is
# close to 0. Then training hardly changes queries and keys. With the root, the largest weight and the gradient are
# almost the same at all widths. The number under the root is the width $d_k$ of a single head, not the width of the
# embedding.
#
# ## A database that answers with a mixture
#
# A database compares a query with all keys and returns the value of the key that is equal. Attention returns a mixture
# of all values, with more weight for more similar keys. Here you ask for the second of three keys, whose value is 20:

# %%
keys, values = torch.eye(3), torch.tensor([[10.0], [20.0], [90.0]])
scales = (1.0, 5.0, 100.0)
answers = torch.stack(
    [((s * keys[1:2] @ keys.T).softmax(-1) @ values)[0] for s in scales]
)
show_numbers(answers, [f"scores × {s:.0f}" for s in scales], ["answer"])
assert answers[-1] == 20.0

# %% [markdown]
# If scores are far apart, attention acts like the database.
#
# A head looks for a single kind of information, but a word needs several: [6. Heads](6_heads.py).

# %% [markdown]
# ## Exercises
#
# The cells below don't need the cells above. Replace `...` by your answer and run the cell, or run `regard lesson 5
# --exercises`.

# %%
import torch

from drawings.exercise import Exercise
from drawings.printed import printed
from regard import textbook

article = printed("river and finance")
x = torch.tensor([article["embeddings"][word] for word in article["river"]])
given = {
    name: torch.tensor(article["projected_attention"][name]).float()
    for name in ("W_query", "W_key", "W_value")
}

# %% [markdown]
# **1. Let "bank" attend to "mud".** The river text is stream, bank, mud. Write a 4 × 2 query matrix `W_query` that
# makes "bank" give "mud" more than half of its attention.

# %%
answer = ...  # a list of four rows with two numbers


def check(w_query):
    query = x @ torch.tensor(w_query).float()
    scores = query @ (x @ given["W_key"]).T / 2**0.5
    weights = scores.softmax(-1)[1]
    right, found = weights[2] > 0.5, f"bank gives mud {weights[2]:.2f}"
    reason = ": all three scores are negative, and mud's is nearest to 0"
    return right, found + reason * bool(right)


Exercise(check, answer)

# %% [markdown]
# **2. Write a head.** Write self-attention with three matrices as a function of `x`, `w_query`, `w_key` and `w_value`,
# without the textbook. The widths $d_k$ and $d_v$ can differ.

# %%
answer = ...  # lambda x, w_query, w_key, w_value: an expression


def check(head):
    torch.manual_seed(0)
    rows, *matrices = (torch.randn(*size) for size in ((5, 8), (8, 3), (8, 3)))
    matrices.append(torch.randn(8, 6))
    query, key, value = (rows @ matrix for matrix in matrices)
    expected = textbook.attention(query, key, value)[0]
    found = head(rows, *matrices)
    if found.shape != expected.shape:
        return False, f"the result has the shape {tuple(found.shape)}"
    off = float((found - expected).abs().max())
    right, numbers = off < 1e-5, f"it differs by up to {off:.5f}"
    reason = ". d_v is free because values meet only the weights"
    return right, numbers + reason * right


Exercise(check, answer)

# %% [markdown]
# **3. Look one word back.** Each of five words has its position as its vector: `x = torch.eye(5)`, so word 2 is `[0,
# 0, 1, 0, 0]`. The key matrix is `torch.eye(5)` as well. Write a 5 × 5 query matrix that makes each word give more
# than 0.9 of its attention to the word before it. The first word may attend to anything.

# %%
answer = ...  # a 5 × 5 matrix: a list of rows, or made with torch


def check(w_query):
    x = torch.eye(5)
    query = x @ torch.as_tensor(w_query).float()
    weights = textbook.attention(query, x, x)[1]
    back = weights.diagonal(-1)
    numbers = ", ".join(f"{weight:.2f}" for weight in back)
    right = bool((back > 0.9).all())
    reason = ": each query fits the key before it best"
    return right, f"words 1 to 4 look back with {numbers}" + reason * right


Exercise(check, answer)
