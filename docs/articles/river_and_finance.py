# %% [markdown]
# # River and finance
#
# This page reproduces the article "Self-Attention from First Principles" section by section. You follow a word in two
# texts, from a layer that can't distinguish its meanings to a layer that can. You see each printed number next to the
# number that was computed when this page was built. A difference would stop the build.

# %%
import torch

import regard
from drawings.numbers import beside
from drawings.printed import printed

article = printed("river and finance")

# %% [markdown]
# ## "bank" beside river and beside finance
#
# There are two texts of three words. Each word has four numbers, made by hand. The first number means water, and the
# second means money.

# %%
texts = {name: article[name] for name in ("river", "finance")}
x = {
    name: torch.tensor([article["embeddings"][word] for word in words])
    for name, words in texts.items()
}
for name, words in texts.items():
    for word, vector in zip(words, x[name].tolist(), strict=True):
        print(f"{name:8} {word:7}", *(f"{number:5.1f}" for number in vector))

# %% [markdown]
# Lesson 2 shows [the origin of such vectors](../lessons/2_words_before_context.py) and the limits of a single vector
# per word.
#
# ## A layer without context
#
# $y_i = x_i W$ transforms each word alone. So "bank" is the same in both texts, to the last bit.


# %%
def hold(title, found, figures):
    """Show a layer's rows of both texts beside the article's."""
    for name, words in texts.items():
        beside(
            found[name],
            figures[name],
            words,
            title=f"{title}, {name}",
            digits=3,
        )


layer = article["context_free_layer"]
plain = {name: rows @ torch.tensor(layer["W"]) for name, rows in x.items()}
hold("x W", plain, layer)
assert torch.equal(plain["river"][1], plain["finance"][1])

# %% [markdown]
# ## The smallest useful idea
#
# Compare the words by dot products, turn the products into weights, and mix the words with these weights. You need no
# parameters, and no scaling yet.

# %%
maps = {
    name: regard.attend(rows, rows, rows, scale=1.0).weights
    for name, rows in x.items()
}
hold(
    "x xᵀ",
    {name: each.scores[:] for name, each in maps.items()},
    article["raw_scores"],
)


def mix(rows):
    """Self-attention without parameters: softmax(X Xᵀ) X."""
    return (rows @ rows.T).softmax(-1) @ rows


mixed = {name: mix(rows) for name, rows in x.items()}
hold("softmax(x xᵀ) x", mixed, article["parameter_free_attention"])
assert not torch.allclose(mixed["river"][1], mixed["finance"][1], atol=0.1)

# %% [markdown]
# "bank" is now mostly water in one text and mostly money in the other. Lesson 4 does the same without parameters [on
# a pretrained model's embeddings](../lessons/4_self_attention.py), where almost all weights are equal.
#
# ## What a learned layer should decide
#
# A layer should decide what a word looks for (query), how other words find it (key), and the vector that it passes on
# (value). These three matrices are written by hand, and queries and keys have width 2.

# %%
written = article["projected_attention"]
w_query, w_key, w_value = (
    torch.tensor(written[name]).float()
    for name in ("W_query", "W_key", "W_value")
)
layer = regard.SelfAttention.from_weights(
    w_query, w_key, w_value, convention="x @ W"
)
hold("projected", {name: layer(rows) for name, rows in x.items()}, written)

# %% [markdown]
# ## Scaling
#
# Scores are divided by $\sqrt{d_k}$. The article introduces the root here as the only new detail of its class. But
# its numbers above, with projections of width 2, already include it. Without $\sqrt{2}$ you get different numbers.

# %%
scaled = layer(x["river"])
query, key, value = (
    x["river"] @ matrix for matrix in (w_query, w_key, w_value)
)
unscaled = (query @ key.T).softmax(-1) @ value
print(
    "without the root, numbers differ by up to "
    f"{(scaled - unscaled).abs().max():.3f}"
)
assert (scaled - unscaled).abs().max() > 0.01

# %% [markdown]
# Lesson 5 measures [the reason for the root](../lessons/5_queries_keys_values.py) for widths from 4 to 512.
#
# ## The recipe as a class
#
# This is `SelfAttention(4, 3)` with seed 0. The article draws its matrices with `torch.rand`, from 0 to 1 and in the
# order query, key, value. PyTorch's layers use another distribution, and so does `regard.SelfAttention(4, 3, 3)`. So
# you pass the matrices:

# %%
torch.manual_seed(0)
weights = [torch.rand(4, 3) for _ in range(3)]
layer = regard.SelfAttention.from_weights(*weights, convention="x @ W")
hold(
    "layer",
    {name: layer(rows) for name, rows in x.items()},
    article["self_attention_layer"],
)

# %% [markdown]
# See also [layers](../attention.md) with a single head or several heads, for a single sequence or two, with masks.
#
# ## Why not only locality
#
# A convolution mixes neighbours with fixed weights. In a layer of width 3, a word two positions away has no effect,
# however important it is. Attention computes its weights from the words, at any distance.


# %%
def convolved(rows):
    """Each word as the mean of itself and its two neighbours."""
    kernel = torch.full((4, 1, 3), 1 / 3)
    return torch.conv1d(rows.T[None], kernel, padding=1, groups=4)[0].T


other = x["river"].clone()
other[2] = torch.tensor(article["embeddings"]["money"])  # "mud" becomes "money"
for name, layer in {"convolution": convolved, "attention": mix}.items():
    change = (layer(other)[0] - layer(x["river"])[0]).abs().max()
    print(
        f"{name:11} “stream” changes by {change:.3f} when the word two places "
        "on does"
    )
assert torch.equal(convolved(other)[0], convolved(x["river"])[0])
assert not torch.equal(mix(other)[0], mix(x["river"])[0])

# %% [markdown]
# See also [heads that look near and far](../lessons/6_heads.py), or begin the course with its [first
# lesson](../lessons/1_text_to_vectors.py).
