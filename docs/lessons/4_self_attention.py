# %% [markdown]
# # 4. Self-attention
#
# Without context, "bank" is the same word in every sentence. Attention makes every word a mixture of all words and
# computes the proportions from the words themselves. On this page you compute it for one sentence, without any
# parameters.

# %%
import torch
from matplotlib.figure import Figure

import regard
from drawings import attention as schematic
from drawings.grid import heatmap
from drawings.kept import keep
from drawings.numbers import show_numbers
from regard.explain.vectors.similarity import cosine
from regard.textbook import attention

# %% [markdown]
# ## One sentence, no parameters
#
# This is the sentence from the article "Self-Attention Explained with Code". Its eleven words have the default
# model's embeddings, with 384 numbers each: the token embedding of each word plus the position embedding, which the
# article also adds before attention. For "bank", take the dot product with every word (their similarity), divide by
# $\sqrt{384}$, turn the results into weights with a softmax, and mix the words with these weights:
#
# $$ y_{bank} = \sum_j w_j x_j \qquad w = \mathrm{softmax}\left(\frac{x_{bank} X^T}{\sqrt{d}}\right) $$

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
x = (river.token_embeddings + river.position_embeddings)[1:-2]  # (11, 384)
similarities = x @ x[-1]
weights = (similarities / 384**0.5).softmax(-1)
y = weights @ x
way = torch.stack([similarities, similarities / 384**0.5, weights], 1)
show_numbers(
    way,
    words,
    ["similarity", "scaled", "weight"],
    title="“bank” and the words around it",
)
torch.testing.assert_close(y, attention(x, x, x)[0][-1])


def moved(embed):
    """Cosine of bare "bank", and of "bank" after attention in either text, to
    bare "river" and "money"."""
    bare = {
        word: embed(model.trace(word))[1] for word in ("bank", "river", "money")
    }
    mixed = [
        attention(rows, rows, rows)[0][-1]
        for rows in (embed(trace)[1:-2] for trace in (river, money))
    ]
    return torch.tensor(
        [
            [cosine(y, bare[word]) for word in ("river", "money")]
            for y in (bare["bank"], *mixed)
        ]
    )


table = torch.cat(
    [
        moved(lambda trace: trace.token_embeddings + trace.position_embeddings),
        moved(lambda trace: trace.token_embeddings),
    ],
    1,
)
rows, columns = (
    ["bare “bank”", "in the river text", "in the money text"],
    ["river", "money", "river alone", "money alone"],
)
show_numbers(
    table,
    rows,
    columns,
    title=(
        "cosine of “bank” to two words; alone: token embeddings without "
        "positions"
    ),
)
expected = [
    [0.336, 0.448, 0.255, 0.398],
    [0.446, 0.259, 0.376, 0.168],
    [0.265, 0.434, 0.115, 0.423],
]
torch.testing.assert_close(table, torch.tensor(expected), atol=5.1e-4, rtol=0)
assert bool((table[:, :2] > table[:, 2:]).all())

# %% [markdown]
# With and without positions, "bank" gets closer to "river" in the river text and to "money" in the money text. Only
# the embeddings were learned. By itself, "bank" is closer to "money". With positions, all six cosines are larger,
# because the three single words have the same position embedding, and embeddings of other positions are similar to
# it.
#
# The weights, however, are almost equal. These vectors are short, and after the division by $\sqrt{384}$ their
# products are close to 0. So $y_{bank}$ is almost the plain mean of the words. It moves because "river" is in the
# sentence, not because "bank" has selected it. To select words, a model has to learn queries and keys. The article
# also says that "bank" has the largest weight for itself. This is true here, but mostly not in trained layers (page
# 9).

# %%
print(
    f"weights from {weights.min():.3f} to {weights.max():.3f}; equal ones "
    f"would be {1 / 11:.3f}"
)
assert int(weights.argmax()) == 10
assert float(weights.max()) < 0.11

# %% [markdown]
# ## All words at once
#
# If you replace $x_{bank}$ by $X$, you get all weights as an n × n matrix. Without the root, the differences are
# visible.

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
    title="scores: symmetric",
    diverging=True,
    labels=names,
    axes=left,
)
heatmap(
    matrix,
    words,
    words,
    title="weights: rows sum to 1, not symmetric",
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
# So attention is a box: $X$ goes in, and $Y$ of the same size comes out. Inside, each word (such as "bank") has its
# scores, their softmax, and the sum of all words with these weights.

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
# Some claims about these matrices are true and others are not:
#
# - The **scores** are symmetric, because $x_i \cdot x_j = x_j \cdot x_i$. An article claims this for the matrix after
#   the softmax. But the softmax divides each row by a different sum, so the weights are not symmetric.
# - Each row of **weights** sums to 1. The same article claims this for the rows of the output, but these are mixtures
#   of vectors.
# - The article also claims that each word has its largest score with itself or with another occurrence of the same
#   word. This is true here. In the trained layers of this model, only 12 to 21 % of the rows have their largest
#   weight among these words on the diagonal.

# %%
torch.testing.assert_close(scores, scores.T)
print(
    "weights differ from their mirror by up to "
    f"{(matrix - matrix.T).abs().max():.3f}"
)
assert (matrix - matrix.T).abs().max() > 1e-2
torch.testing.assert_close(matrix.sum(-1), torch.ones(11))
assert not torch.allclose((matrix @ x).sum(-1), torch.ones(11), atol=0.1)
assert bool((matrix > 0).all())
assert [words[n] for n in scores.argmax(-1)] == words
inner = [n for n, token in enumerate(river.tokens) if not token.special]
# (layers, heads, 12, 12)
trained = torch.stack(
    [each.dense()[:, inner][:, :, inner] for each in river.attention]
)
diagonal = (trained.argmax(-1) == torch.arange(len(inner))).float().mean((1, 2))
show_numbers(
    diagonal[None],
    ["largest on the diagonal"],
    [f"layer {n}" for n in range(6)],
)
assert (round(float(diagonal.min()), 3), round(float(diagonal.max()), 3)) == (
    0.125,
    0.208,
)

# %% [markdown]
# ## A softmax that doesn't overflow
#
# float32 can't hold $e^{89}$, so the formula as printed divides infinity by infinity. Subtract the largest score of
# each row first. The result stays the same, because $e^{s - c} / \sum e^{s - c}$ doesn't depend on $c$.


# %%
def plain_softmax(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def softmax(scores):
    return plain_softmax(scores - scores.amax(-1, keepdim=True))


large = torch.tensor([[10.0, 20.0, 30.0], [100.0, 200.0, 300.0]])
show_numbers(plain_softmax(large), title="as printed", digits=6)
show_numbers(softmax(large), title="with the largest score taken off", digits=6)
assert bool(plain_softmax(large)[1].isnan().any())
torch.testing.assert_close(plain_softmax(large)[0], softmax(large)[0])
torch.testing.assert_close(softmax(large), large.softmax(-1))
# attend's own is safe too
assert bool(regard.attend(x * 100, x * 100, x).weights.dense().isfinite().all())

# %% [markdown]
# Here a word looks for words like itself. To look for something else, it needs parameters: [5. Queries, keys and
# values](5_queries_keys_values.py).
