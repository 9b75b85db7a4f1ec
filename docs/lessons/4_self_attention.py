# %% [markdown]
# # 4. Self-attention
#
# "Bank" has two meanings, but its embedding is the same in "river bank" and in "money from a bank". A model needs a
# vector that depends on the sentence. Self-attention makes such a vector: it replaces each word by a mixture of all
# words. On this page you compute it in three steps, without any parameters, and test eight claims about it.

# %%
import torch
from matplotlib.figure import Figure

import regard
from drawings import attention as schematic
from drawings.code import Code
from drawings.grid import heatmap
from drawings.kept import keep
from drawings.numbers import show_numbers
from regard import textbook
from regard.explain.vectors.similarity import cosine

# %% [markdown]
# ## Three steps
#
# $X$ has a row of $d$ numbers for each word. Self-attention without parameters is
#
# $$ Y = \mathrm{softmax}\left(\frac{X X^T}{\sqrt{d}}\right) X $$
#
# 1. **Dot products.** $X X^T$ has the dot product of each word with every word. It grows with their similarity and
#    with their lengths. Divided by $\sqrt{d}$, the products are the **scores** $s_{ij}$.
# 2. **Softmax.** It turns each row of scores into positive **weights** with the sum 1. A larger score makes a larger
#    weight: $w_{ij} = \exp(s_{ij}) / \sum_k \exp(s_{ik})$.
# 3. **Mixing.** Each word becomes the sum of all words, each multiplied by its weight: $y_i = \sum_j w_{ij} x_j$.
#
# This is the code of the [textbook](../api/textbook.md). You call it with $X$ as query, key and value. Lesson 5
# explains these three names.

# %%
Code(textbook.attention)

# %% [markdown]
# ## The steps for "bank"
#
# The sentence is from the article "Self-Attention Explained with Code" and has eleven words. Their vectors are the
# token embeddings of the default model, with 384 numbers each. The position embeddings of lesson 3 are left out, so
# "bank" starts as the same vector in every sentence.

# %%
model = regard.load()
river, money = model.trace(
    [
        "Write a poem about a man fishing on a river bank.",
        "Write a poem about a man withdrawing money from a bank.",
    ]
)
# without [CLS], the full stop and [SEP]
words = [token.text for token in river.tokens[1:-2]]
x = river.token_embeddings[1:-2]  # (11, 384)
bank = x[-1]

products = x @ bank  # 1. dot products
weights = (products / 384**0.5).softmax(-1)  # 2. scale and softmax
y = weights @ x  # 3. mix: (384,)

show_numbers(
    torch.stack([products, products / 384**0.5, weights], 1),
    words,
    ["product", "/ √384", "weight"],
    title="“bank” and the words around it",
)
torch.testing.assert_close(y, textbook.attention(x, x, x)[0][-1])

# %%
figure = schematic.three_steps(x, products, weights, words, "bank")
keep(
    figure,
    "three_steps.svg",
    "Three steps for bank: dot products with eleven words, their weights, "
    "and the weighted sum",
)

# %% [markdown]
# "Bank" has the largest product with itself, and "river" comes next. Do the same in a sentence about money, and
# compare the results with the embeddings of "river" and "money":

# %%
other = money.token_embeddings[1:-2]  # the sentence about money
assert torch.equal(other[-1], bank)
mixed = {
    "bank, alone": bank,
    "in the river text": y,
    "in the money text": textbook.attention(other, other, other)[0][-1],
}
two = {"river": x[words.index("river")], "money": other[7]}
assert money.tokens[8].text == "money"
table = torch.tensor(
    [[cosine(each, word) for word in two.values()] for each in mixed.values()]
)
show_numbers(table, [*mixed], [*two], title="cosine of “bank” to two words")
expected = torch.tensor([[0.255, 0.398], [0.376, 0.168], [0.115, 0.423]])
torch.testing.assert_close(table, expected, atol=5.1e-4, rtol=0)
assert table[1, 0] > table[1, 1]
assert table[2, 1] > table[2, 0]

# %% [markdown]
# By itself, "bank" is closer to "money". In the river text it is closer to "river". The sentence has changed the
# vector, although you used no parameters but the embeddings.
#
# ## The scale decides how sharp the weights are
#
# The weights above are almost equal: each is close to 1/11. So "bank" became almost the plain mean of the sentence. It
# moved because "river" is there, not because "bank" has selected it. Multiply the products by larger numbers:

# %%
scales = {"1/√384": 384**-0.5, "1": 1.0, "2": 2.0, "5": 5.0}
sharper = torch.stack([(s * products).softmax(-1) for s in scales.values()], 1)
show_numbers(sharper, words, [*scales], title="weights of “bank” by scale")
print(f"cosine of y and the plain mean: {cosine(y, x.mean(0)):.4f}")
print(f"weights from {weights.min():.3f} to {weights.max():.3f}")
assert cosine(y, x.mean(0)) > 0.999
assert weights.max() < 0.1
assert sharper[-1, 1] < 0.4 < 0.9 < sharper[-1, 3]
assert bool((sharper.argmax(0) == 10).all())

# %% [markdown]
# With a small scale you get a mean. With a large scale you get a copy of a single word, here "bank" itself. Lesson 5
# shows why the scale is $1/\sqrt{d}$.
#
# ## All words at once
#
# $X X^T$ has the products of all words, and the softmax works on each row. The plots use scale 1, so the scores are
# the plain products and the differences are easy to see.

# %%
scores = x @ x.T
matrix = scores.softmax(-1)
# the same by a fused kernel, the way to the weights kept open
result = regard.attend(x, x, x, scale=1.0)
torch.testing.assert_close(result.output, matrix @ x)
torch.testing.assert_close(result.weights.scores[:], scores)
torch.testing.assert_close(result.weights.dense(), matrix)
figure = Figure(figsize=(11, 4.9), layout="constrained")
(left, right), names = figure.subplots(1, 2), ("query", "key")
heatmap(
    scores,
    words,
    words,
    title="scores",
    diverging=True,
    labels=names,
    axes=left,
)
heatmap(
    matrix,
    words,
    words,
    title="weights: softmax of each row",
    labels=names,
    axes=right,
)
keep(
    figure,
    "matrix.svg",
    "Scores of eleven words with each other, and the weights that softmax "
    "makes of them",
)

# %% [markdown]
# So attention is a box: $X$ goes in, and $Y$ of the same size comes out. The black frames mark the row of "bank".

# %%
figure = schematic.without_projections(
    x, scores, matrix, result.output, words, words.index("bank")
)
keep(
    figure,
    "without_projections.svg",
    "X goes into a box of scores and weights, Y comes out; the row of bank "
    "is framed",
)

# %% [markdown]
# ## True or false?
#
# Decide for each claim, then compare with the output.
#
# 1. The scores are symmetric.
# 2. The weights are symmetric.
# 3. Each row of weights sums to 1.
# 4. Each column of weights sums to 1.
# 5. Each row of the output sums to 1.
# 6. Some weights are 0.
# 7. If you shuffle the words, each word still gets the same output.
# 8. Each word has its largest score with itself.

# %%
output, ones = result.output, torch.ones(11)
order = torch.randperm(11, generator=torch.Generator().manual_seed(0))
shuffled = regard.attend(x[order], x[order], x[order], scale=1.0).output
claims = [
    torch.allclose(scores, scores.T),
    torch.allclose(matrix, matrix.T, atol=0.01),
    torch.allclose(matrix.sum(1), ones),
    torch.allclose(matrix.sum(0), ones, atol=0.01),
    torch.allclose(output.sum(1), ones, atol=0.01),
    bool((matrix == 0).any()),
    torch.allclose(shuffled, output[order], atol=1e-6),
    # "a" is there three times
    all(
        words[n] == word
        for n, word in zip(scores.argmax(1), words, strict=True)
    ),
]
for number, claim in enumerate(claims, 1):
    print(number, claim)
assert claims == [True, False, True, False, False, False, True, True]

# %% [markdown]
# Scores are symmetric because $x_i \cdot x_j = x_j \cdot x_i$. But the softmax divides each row by a different sum,
# so the weights aren't symmetric. The rows of the output are mixtures of vectors, and a vector can have any sum.
#
# Some articles make the second, the fifth and the eighth claim. The eighth is true here, but not in general: a longer
# vector can have a larger score (lesson 5 has an example). In the trained layers of this model, most words attend
# most to another word. The table compares the weights between the words, with the full stop but without `[CLS]` and
# `[SEP]`:

# %%
inner = [n for n, token in enumerate(river.tokens) if not token.special]
# (layers, heads, 12, 12)
trained = torch.stack(
    [each.dense()[:, inner][:, :, inner] for each in river.attention]
)
diagonal = (trained.argmax(-1) == torch.arange(len(inner))).float().mean((1, 2))
show_numbers(
    diagonal[None],
    ["largest with itself"],
    [f"layer {n}" for n in range(6)],
    title="fraction of words (without [CLS] and [SEP]), mean of 12 heads",
)
assert diagonal.max() < 0.21

# %% [markdown]
# ## Without looking ahead
#
# A model that writes can only read the words written so far. A **causal mask** sets the scores of later words to −∞,
# so their weights are 0.

# %%
mask = torch.ones(11, 11, dtype=torch.bool).tril()  # True: may attend
written, causal = textbook.attention(x, x, x, mask)
show_numbers(causal[:5, :5], words[:5], words[:5], title="the first five words")
assert torch.equal(written[0], x[0])
assert not causal.triu(1).any()
torch.testing.assert_close(written[-1], y)

# %% [markdown]
# The first word attends only to itself, so it stays as it was. The last word has no later words, so nothing changes
# for "bank". In lesson 7, you train a model with this mask.
#
# ## A softmax that doesn't overflow
#
# You can write the softmax of step 2 in two forms:
#
# $$ w_{ij} = \frac{\exp(s_{ij})}{\sum_k \exp(s_{ik})} = \frac{\exp(s_{ij} - c)}{\sum_k \exp(s_{ik} - c)} $$
#
# float32 can't hold $\exp(89)$, so from there on the first form divides infinity by infinity. You can choose any $c$ in
# the second form. If you take the largest score of the row, no exponent is above 0.


# %%
def plain_softmax(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def softmax(scores):
    return plain_softmax(scores - scores.amax(-1, keepdim=True))


large = torch.tensor([[10.0, 20.0, 30.0], [100.0, 200.0, 300.0]])
show_numbers(plain_softmax(large), title="first form", digits=6)
show_numbers(softmax(large), title="with the largest score as c", digits=6)
assert bool(plain_softmax(large)[1].isnan().any())
torch.testing.assert_close(plain_softmax(large)[0], softmax(large)[0])
torch.testing.assert_close(softmax(large), large.softmax(-1))
# attend's own is safe too
assert bool(regard.attend(x * 100, x * 100, x).weights.dense().isfinite().all())

# %% [markdown]
# Here a word attends to words like itself. To look for something else, it needs parameters: [5. Queries, keys and
# values](5_queries_keys_values.py).

# %% [markdown]
# ## Exercises
#
# The cells below don't need the cells above. Replace `...` by your answer and run the cell, or run `regard lesson 4
# --exercises`. The four words are "stream", "bank", "mud" and "money", with four numbers each. The first number means
# water and the second money.

# %%
import torch

from drawings.exercise import Exercise
from drawings.numbers import show_numbers
from drawings.printed import printed
from regard import textbook

embeddings = printed("river and finance")["embeddings"]
words = ["stream", "bank", "mud", "money"]
x = torch.tensor([embeddings[word] for word in words])
show_numbers(x, words)

# %% [markdown]
# **1. Mask a window.** Each word may attend to itself and to the word before it, and to no other. Write the 4 × 4 mask,
# with 1 where a word may attend and 0 where it may not. Rows are queries, as above.

# %%
answer = ...  # a list of four rows with four numbers, or made with torch


def check(mask):
    mask = torch.as_tensor(mask).bool()
    weights = textbook.attention(x, x, x, mask)[1]
    pairs = [(a, b) for a in range(4) for b in range(4)]
    wrong = [p for p in pairs if (weights[p] > 0) != (p[0] - p[1] in (0, 1))]
    right = not wrong
    if right:
        found = "stream attends only to itself: no word comes before it"
    else:
        a, b = (words[n] for n in wrong[0])
        found = f"{len(wrong)} of 16 are wrong, for example {a} to {b}"
    return right, found


Exercise(check, answer)

# %% [markdown]
# **2. Make it sharp.** The weights of "bank" are the softmax of its four dot products times a scale. With which scale
# does "bank" give itself a weight of 0.90? Begin with "bank" and "money" alone: if two scores differ by $d$, the
# larger has the weight $1 / (1 + \exp(-d))$. With all four words, the scale has to be a little larger.

# %%
show_numbers((x @ x[1])[None], ["products of bank"], words)
answer = ...  # a number


def check(scale):
    weights = (scale * (x @ x[1])).softmax(-1)
    right = abs(weights[1] - 0.9) < 0.005
    found = f"bank gives itself {weights[1]:.3f} and money {weights[3]:.3f}"
    reason = f": their scores now differ by {scale * 0.2:.2f}, not by 0.20"
    return right, found + reason * right


Exercise(check, answer)

# %% [markdown]
# **3. Follow the money.** Choose the four numbers of "bank" so that it attends more to "money" than to any other word,
# itself included. Try a long vector and a short one.

# %%
answer = ...  # a list of four numbers


def check(vector):
    rows = x.clone()
    rows[1] = torch.tensor(vector)
    weights = textbook.attention(rows, rows, rows)[1][1]
    most = int(weights.argmax())
    found = f"bank gives {words[most]} most, {weights[most]:.2f}"
    reason = ": money is longer, so its product is larger than that of bank"
    return most == 3, found + reason * (most == 3)


Exercise(check, answer)
