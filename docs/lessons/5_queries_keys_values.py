# %% [markdown]
# # 5. Queries, keys and values
#
# A word should be able to look for something other than itself: a pronoun for its noun, a verb for its subject. On
# this page each word gets a query, a key and a value. You follow "bank" through two short texts, compute every number
# of one head, and see why scores are divided by a root.

# %%
import torch
from matplotlib.figure import Figure

import regard
from drawings import attention as schematic
from drawings.code import Code
from drawings.kept import keep
from drawings.numbers import show_numbers
from drawings.printed import printed
from regard import textbook
from regard.explain.vectors.planes import plane
from regard.explain.vectors.similarity import cosine
from regard.explain.weights.head_steps import steps

# %% [markdown]
# ## River and finance: four layers
#
# Now take two texts of three words, with four numbers for each word. The first number means water and the second
# money, and "bank" has equal parts of both. Inputs and results are from the article "Self-Attention from First
# Principles", to three decimals.

# %%
article = printed("river and finance")
embeddings, texts = (
    article["embeddings"],
    {text: article[text] for text in ("river", "finance")},
)
x = {
    name: torch.tensor([embeddings[word] for word in text])
    for name, text in texts.items()
}


def show(name, found, expected):
    """Print what a layer makes of both texts, and hold it against the published
    figures."""
    for text, words in texts.items():
        show_numbers(found[text], words, title=f"{name}, {text}")
        torch.testing.assert_close(
            found[text].detach(),
            torch.tensor(expected[text]),
            atol=5.1e-4,
            rtol=0,
        )


show(
    "embeddings",
    x,
    {
        name: [embeddings[word] for word in words]
        for name, words in texts.items()
    },
)

# %% [markdown]
# **A plain matrix**, $y_i = x_i W$, transforms each word by itself. "bank" is the same in both texts, to the last
# bit.

# %%
w = torch.tensor(article["context_free_layer"]["W"])
show_numbers(w, title="W, 4 × 3")
plain = {name: rows @ w for name, rows in x.items()}
show("x W", plain, article["context_free_layer"])
assert torch.equal(plain["river"][1], plain["finance"][1])

# %% [markdown]
# **Attention without parameters**, $\mathrm{softmax}(X X^T) X$, is unscaled as in the article. Now "bank" differs
# between the texts. In the first text, "bank" has more water than money. In the second text, it has three times as
# much money as water.

# %%
raw = {
    name: regard.attend(rows, rows, rows, scale=1.0).weights.scores[:]
    for name, rows in x.items()
}
show("scores x xᵀ", raw, article["raw_scores"])
loan = dict(zip(texts["finance"], raw["finance"][2].tolist(), strict=True))
print(
    f"“loan” scores {loan['money']:.2f} with “money” and {loan['loan']:.2f} "
    "with itself: “money” is the longer vector"
)
assert loan["money"] > loan["loan"]
mixed = {name: (rows @ rows.T).softmax(-1) @ rows for name, rows in x.items()}
show("softmax(x xᵀ) x", mixed, article["parameter_free_attention"])
for name, (water, gold) in {
    name: rows[1, :2].tolist() for name, rows in mixed.items()
}.items():
    print(f"bank in the {name} text: {water:.3f} water, {gold:.3f} money")
    assert (water > gold) == (name == "river")

# %% [markdown]
# **Attention with projections.** So far, a word looks for words like itself. With a query $x W_q$, it can look for
# something else. With a key $x W_k$, other words can find it by other properties, and with a value $x W_v$ it passes
# on yet another vector. These matrices are written by hand. Queries and keys have width 2, so scores are divided by
# $\sqrt{2}$.

# %%
written = article["projected_attention"]
w_query, w_key, w_value = (
    torch.tensor(written[name]).float()
    for name in ("W_query", "W_key", "W_value")
)
for name, matrix in (
    ("Wq, 4 × 2", w_query),
    ("Wk, 4 × 2", w_key),
    ("Wv, 4 × 3", w_value),
):
    show_numbers(matrix, title=name, digits=1)
projected = regard.SelfAttention.from_weights(
    w_query, w_key, w_value, convention="x @ W"
)
show("projected", {name: projected(rows) for name, rows in x.items()}, written)
for rows in x.values():
    scores = (rows @ w_query) @ (rows @ w_key).T / 2**0.5
    by_hand = scores.softmax(-1) @ (rows @ w_value)
    torch.testing.assert_close(projected(rows), by_hand)

# %% [markdown]
# **One head** is these three matrices and the formula. This is the code of the [textbook](../api/textbook.md):

# %%
Code(textbook.SelfAttention)

# %% [markdown]
# **The layer** as you use it: the three matrices are parameters that training sets. Before training they are random.
# This layer has four inputs and three outputs, and divides scores by $\sqrt{3}$.

# %%
torch.manual_seed(0)
layer = regard.SelfAttention.from_weights(
    torch.rand(4, 3), torch.rand(4, 3), torch.rand(4, 3), convention="x @ W"
)
show(
    "layer",
    {name: layer(rows) for name, rows in x.items()},
    article["self_attention_layer"],
)
assert [p.requires_grad for p in layer.parameters()] == [True, True, True]

stages = {"embeddings": x, "x W": plain, "softmax(x xᵀ) x": mixed}
stages["projected"] = {
    name: projected(rows).detach() for name, rows in x.items()
}
alike = torch.tensor(
    [[cosine(rows["river"][1], rows["finance"][1])] for rows in stages.values()]
)
show_numbers(
    alike,
    [*stages],
    ["cosine"],
    title="how alike the two banks are: 1 means they cannot be told apart",
)
assert alike[:2].min() > 1 - 1e-6
assert alike[2:].max() < 0.7

# %% [markdown]
# This plot shows "bank" before and after attention, on the plane on which the six words differ most. A weighted mean
# can't leave the area between its words. This is why real models add projections, a residual connection and a
# feed-forward layer.

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
# ## Query, key and value, number by number
#
# Now take six words of 16 numbers: the sentence of page 1 with the matrices of its article. Queries and keys meet in
# a dot product, so they have the same width ($d_q = d_k = 24$). You are free to choose the width of the values
# ($d_v = 28$), which is also the width of the result. The article multiplies `W @ x`. PyTorch's layers and many texts
# use `x @ W` with the transposed matrix. Confusing the two is the most common mistake here, so regard asks you for
# the convention.

# %%
sentence = ["Life", "is", "short", "eat", "dessert", "first"]
torch.manual_seed(123)
# page 1's table and ids
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
# `steps` keeps the whole computation of a query in float64. Here you see the computation for the second word, "is":

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
# ## Why scores are divided by a square root
#
# The dot product of two vectors with $d$ numbers of standard deviation 1 has a standard deviation of $\sqrt{d}$. With
# such large scores, your softmax is almost a switch: a single weight is 1, the others are 0, and small changes of a
# score have no effect. Then the gradient is close to zero, and nothing is learned. The table has random queries and
# ten random keys.

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
assert abs(table[-1][0] / 512**0.5 - 1) < 0.1

# %% [markdown]
# The number under the root is the width of the queries and keys of a **single head**. One article writes
# $\sqrt{d_{model}}$, but for a model of width 384 with 12 heads the right value is $\sqrt{32}$.
#
# ## A database that answers with a mixture
#
# A query is compared with every key. A database returns the value of the key that is equal. Attention returns a
# mixture of all values, with more weight for keys that are more similar. If scores are far apart, attention acts like
# the database:

# %%
keys, values = torch.eye(3), torch.tensor([[10.0], [20.0], [90.0]])
for scale in (1.0, 5.0, 100.0):
    answer = regard.attend(keys[1:2], keys, values, scale=scale).output.item()
    print(f"asked for the second key, scores × {scale:5.1f}: {answer:.3f}")
assert answer == 20.0

# %% [markdown]
# A head looks for a single kind of information, but a word needs several: [6. Heads](6_heads.py).

# %% [markdown]
# ## Exercises
#
# The cells below run on their own. Replace `...` by your answer and run the cell, or run `regard lesson 5
# --exercises`.

# %%
import torch

from drawings.exercise import Exercise
from drawings.printed import printed

article = printed("river and finance")
x = torch.tensor([article["embeddings"][word] for word in article["river"]])
given = {
    name: torch.tensor(article["projected_attention"][name]).float()
    for name in ("W_query", "W_key", "W_value")
}

# %% [markdown]
# **1. Let "bank" attend to "mud".** The river text is stream, bank, mud. Write a query matrix `W_query`, 4 × 2, with
# which "bank" gives "mud" more than half of its attention.

# %%
answer = ...  # a list of four rows with two numbers


def check(w_query):
    query = x @ torch.tensor(w_query).float()
    scores = query @ (x @ given["W_key"]).T / 2**0.5
    weights = scores.softmax(-1)[1]
    return weights[2] > 0.5, f"bank gives mud {weights[2]:.2f}"


Exercise(check, answer)
