# %% [markdown]
# # River and finance
#
# This page reproduces the article "Self-Attention from First Principles" section by section. You follow "bank" in two
# texts, from a layer that can't distinguish its meanings to a layer that can. Each number that the article prints is
# next to the number computed here. A difference would stop the page.

# %%
import torch
from torch import nn

import regard
from drawings import attention as schematic
from drawings import moves
from drawings.kept import keep
from drawings.numbers import beside, show_numbers
from drawings.printed import printed
from drawings.sheet import INPUT, OUTPUT, QUERY
from regard.explain.vectors.similarity import plane

article = printed("river and finance")

# %% [markdown]
# ## 1. "bank" in two texts
#
# To see what context does, you need the same word in two contexts. Here are two texts of three words. Each word has
# four numbers, chosen by hand. The first number means water, and the second means money.

# %%
texts = {name: article[name] for name in ("river", "finance")}
x = {
    name: torch.tensor([article["embeddings"][word] for word in words])
    for name, words in texts.items()
}


def draw(found, title, note, colour, file, columns):
    """Draw the rows of both texts, "bank" framed."""
    parts = [
        (f"{name} text", words, columns or words, found[name])
        for name, words in texts.items()
    ]
    figure = schematic.two_texts(parts, title, "bank", note, colour)
    return keep(figure, file, f"{title}: {note}")


traits = ["water", "money", "third", "fourth"]
five = article["embeddings"]
show_numbers(
    torch.tensor([*five.values()]),
    [*five],
    traits,
    title="five words, four numbers each",
    digits=1,
)
assert torch.equal(x["river"][1], x["finance"][1])
draw(
    x,
    "Five words, four numbers each",
    "framed: “bank” has the same four numbers in both texts",
    INPUT,
    "embeddings.svg",
    traits,
)

# %% [markdown]
# "bank" has as much water as money, so its vector alone can't say which meaning is intended. Lesson 2 shows [the
# origin of such vectors](../lessons/2_words_before_context.py).
#
# ## 2. A layer without context
#
# Can a fully connected layer tell the two meanings apart? It multiplies each word by the same matrix $W$:
#
# $$ y_i = x_i W $$


# %%
def hold(title, found, figures):
    """Show a layer's rows of both texts beside the article's."""
    for name, words in texts.items():
        rows, right = found[name], figures[name]
        beside(rows, right, words, title=f"{title}, {name}", digits=3)


layer = article["context_free_layer"]
plain = {name: rows @ torch.tensor(layer["W"]) for name, rows in x.items()}
assert torch.equal(plain["river"][1], plain["finance"][1])
draw(
    plain,
    "After a fully connected layer",
    "framed: “bank” is still the same in both texts",
    OUTPUT,
    "without_context.svg",
    ["first", "second", "third"],
)

# %%
hold("x W", plain, layer)

# %% [markdown]
# No. The layer sees one word at a time, so equal inputs give equal outputs, to the last bit.
#
# ## 3. Locality is not enough
#
# A layer has to let words exchange information. Models of images have such a layer: a convolution mixes each pixel
# with its neighbours, with fixed weights. That builds in **locality**. In a text, the decisive word can be far away,
# so the mixture should depend on the content of the words.
#
# Test it: exchange the third word of the river text, "mud", for "money". Does the convolution change the first word,
# "stream"?


# %%
def convolved(rows):
    """A third of each word plus a third of each neighbour."""
    kernel = torch.full((4, 1, 3), 1 / 3)
    return torch.conv1d(rows.T[None], kernel, padding=1, groups=4)[0].T


other = x["river"].clone()
# "mud" becomes "money"
other[2] = torch.tensor(article["embeddings"]["money"])
change = (convolved(other)[0] - convolved(x["river"])[0]).abs().max()
print(f"convolution of width 3: “stream” changes by up to {change:.3f}")
assert change == 0

# %% [markdown]
# No. This convolution reaches one neighbour on each side, so "stream" can't notice the third word. The next section has
# a layer that reaches every word. Lesson 6 shows [heads that attend to near and far words](../lessons/6_heads.py).
#
# ## 4. The smallest useful idea
#
# How much should each word contribute to "bank"? Let the words decide, in three steps without any parameters:
#
# 1. Compare the words by dot products: $S = X X^T$.
# 2. Turn each row into weights that sum to 1: $A = \mathrm{softmax}(S)$.
# 3. Mix the words with these weights: $Y = A X$.

# %%
maps = {
    name: regard.attend(rows, rows, rows, scale=1.0).weights
    for name, rows in x.items()
}
scores = {name: each.scores[:] for name, each in maps.items()}
hold("step 1, x xᵀ", scores, article["raw_scores"])

# %%
weights = {name: each.dense() for name, each in maps.items()}
others = [1 - float(each[1, 1]) for each in weights.values()]
draw(
    weights,
    "Step 2: the weights, each row sums to 1",
    f"framed: “bank” takes {others[0]:.0%} and {others[1]:.0%} from the "
    "other two words",
    QUERY,
    "weights.svg",
    None,
)


# %%
def mix(rows):
    """Do the three steps."""
    return (rows @ rows.T).softmax(-1) @ rows


mixed = {name: mix(rows) for name, rows in x.items()}
hold("step 3, softmax(x xᵀ) x", mixed, article["parameter_free_attention"])

# %%
flat = plane(torch.cat([*x.values(), *mixed.values()]))
title = "“bank” moves to the words around it"
figure, (axes,) = moves.panels(title, tall=3.8)
for (name, words), colour in zip(texts.items(), moves.TEXTS, strict=True):
    before, after = flat.place(x[name]), flat.place(mixed[name])
    places = dict(zip(words, before.tolist(), strict=True))
    start = places.pop("bank")
    moves.words(axes, places, colour)
    label = f"“bank” in the {name} text"
    moves.move(axes, start, after[1].tolist(), colour, label)
moves.legend(axes, "“bank” before attention")
keep(
    figure,
    "bank_moves.svg",
    "bank moves to stream and mud in one text, to money and loan in another",
)

# %% [markdown]
# "bank" is now mostly water in one text and mostly money in the other. Lesson 4 does the same [on a pretrained
# model's embeddings](../lessons/4_self_attention.py), where all weights are almost equal.

# %%
for name, rows in mixed.items():
    water, money = rows[1, :2].tolist()
    print(f"“bank” in the {name} text: water {water:.3f}, money {money:.3f}")
    assert (water > money) == (name == "river")

# %% [markdown]
# Now repeat the test of section 3, with "money" in the place of "mud":

# %%
change = (mix(other)[0] - mix(x["river"])[0]).abs().max()
print(f"attention: “stream” changes by up to {change:.3f}")
assert change > 0.1

# %% [markdown]
# "stream" notices, although "money" is two words away. The mixture depends on the words and not on the distance.
#
# ## 5. Three projections
#
# So far a word can only look for words like itself, which is restrictive. A layer should decide what a word looks for
# (query), how other words find it (key), and the vector that it passes on (value). It gets a matrix for each:
#
# $$ Q = X W_Q, \qquad K = X W_K, \qquad V = X W_V $$
#
# $$ \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V $$

# %%
written = article["projected_attention"]
w_query, w_key, w_value = (
    torch.tensor(written[name]).float()
    for name in ("W_query", "W_key", "W_value")
)
show_numbers(w_query, traits, title="W_Q, 4 × 2", digits=1)
show_numbers(w_key, traits, title="W_K, 4 × 2", digits=1)
show_numbers(w_value, traits, title="W_V, 4 × 3", digits=1)


def attention(rows):
    query, key, value = rows @ w_query, rows @ w_key, rows @ w_value
    scores = query @ key.T / key.shape[-1] ** 0.5  # divided by √2
    return scores.softmax(-1) @ value


projected = {name: attention(rows) for name, rows in x.items()}
hold("projected", projected, written)
bank = torch.stack([projected["river"][1, :2], mixed["river"][1, :2]])
assert (bank[0] - bank[1]).abs().max() < 0.05

# %% [markdown]
# These matrices are written by hand. Queries and keys mostly read water and money, and the values keep these two
# numbers and merge the other two. So "bank" in the river text has almost the same numbers as in section 4: 0.957
# water and 0.314 money, compared with 0.949 and 0.356. Other matrices let a word ask for something unlike itself: in
# [lesson 5 on queries and keys](../lessons/5_queries_keys_values.py), a matrix written by hand makes "stream" ask for
# "money".
#
# ## 6. The recipe
#
# Every attention layer follows the same four steps:
#
# 1. **Project** each word to a query, a key and a value.
# 2. **Compare** every query with every key by a dot product.
# 3. **Scale** by $1/\sqrt{d_k}$ and take the softmax, so that each row of weights sums to 1.
# 4. **Mix** the values with these weights.
#
# The smallest idea lacks two things: the projections (section 5) and the scaling. Why scale? The spread of dot
# products grows with the width of the vectors, and the softmax of numbers that are far apart puts almost all weight
# on a single word. The root keeps the spread of the scores near 1:

# %%
torch.manual_seed(0)
spreads = []
for width in (2, 64, 512):
    q, k = torch.randn(2, 2000, width)
    products = (q * k).sum(-1)
    spreads.append([products.std(), (products / width**0.5).std()])
show_numbers(
    torch.tensor(spreads),
    ["width 2", "width 64", "width 512"],
    ["spread of q · k", "divided by √width"],
    title="random queries and keys",
    digits=2,
)
assert all(abs(float(divided) - 1) < 0.1 for _, divided in spreads)

# %% [markdown]
# With a width of 2, the root changes the numbers of section 5 only a little. Lesson 5 measures [what happens without
# the root](../lessons/5_queries_keys_values.py) if vectors are wide.

# %%
rows = x["river"]
unscaled = (rows @ w_query @ (rows @ w_key).T).softmax(-1) @ (rows @ w_value)
change = (attention(rows) - unscaled).abs().max()
print(f"without the root, section 5 differs by up to {change:.3f}")
assert change > 0.01

# %% [markdown]
# ## 7. The recipe as a class
#
# A model learns its matrices, so they become the parameters of a module. Before training they are random.


# %%
class SelfAttention(nn.Module):
    """One head: every word attends to all words of the same text."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.w_query = nn.Parameter(torch.rand(d_in, d_out))
        self.w_key = nn.Parameter(torch.rand(d_in, d_out))
        self.w_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):  # (L, d_in) → (L, d_out)
        query, key = x @ self.w_query, x @ self.w_key
        value = x @ self.w_value
        scores = query @ key.T / key.shape[-1] ** 0.5  # (L, L)
        return scores.softmax(-1) @ value


torch.manual_seed(0)
layer = SelfAttention(d_in=4, d_out=3)
made = {name: layer(rows) for name, rows in x.items()}
hold("SelfAttention(4, 3)", made, article["self_attention_layer"])

# %% [markdown]
# The layers of PyTorch and `regard.SelfAttention(4, 3)` draw their matrices from another distribution. Pass the
# matrices of the class, and you get its outputs:

# %%
ours = regard.SelfAttention.from_weights(
    *(each.detach() for each in layer.parameters()), convention="x @ W"
)
for name, rows in x.items():
    torch.testing.assert_close(ours(rows), made[name])
print("regard.SelfAttention gives the same numbers for both texts")

# %% [markdown]
# Untrained, the layer gives all words of a text nearly the same output: training has to find useful matrices. For
# several heads, two texts or masks, see the [layers of `regard.nn`](../attention.md). If you want to build everything
# from the text up, start with [lesson 1 of the course](../lessons/1_text_to_vectors.py).
