# %% [markdown]
# # The formula
#
# This page reproduces an article on attention that begins with "What is the capital of France?" and ends with the
# output of multi-head attention. The article prints tokens and sizes and draws a matrix. This page follows its order
# and asserts its claims. If a claim is imprecise, you find the exact statement here.

# %%
import math

import torch

import regard
from drawings import sheet
from drawings.grid import heatmap
from drawings.kept import keep
from drawings.numbers import show_numbers
from drawings.printed import printed
from drawings.token_strip import token_strip
from regard.text.tiktoken import cl100k_base, cl100k_tokens

article = printed("formula")
question = article["question"]

# %% [markdown]
# ## "What is the capital of France?" in tokens
#
# cl100k_base splits the question into seven tokens and keeps the spaces. tiktoken downloads its ranks. Without them,
# this page prints a note and continues with the published ids.

# %%
try:
    tokens = cl100k_tokens(question, cl100k_base())
except regard.RegardError as error:
    print(
        f"cl100k_base: NOT CHECKED HERE, going on from the printed ids: {error}"
    )
    both = zip(article["token_ids"], article["tokens"], strict=True)
    tokens = [
        regard.text.tokens.Token(number, part, 0, 0, None, False)
        for number, part in both
    ]
for token, part, number in zip(
    tokens, article["tokens"], article["token_ids"], strict=True
):
    print(f"{token.text!r:11} {token.id:5}   printed {part!r:11} {number:5}")
    assert (token.text, token.id) == (part, number)
figure, axes = sheet.sheet(4.5, 0.8)
token_strip(axes, tokens)
keep(figure, "question.svg", "The question in seven tokens; a dot is a blank")

# %% [markdown]
# In your terminal, run `regard tokens "What is the capital of France?" --tokenizer cl100k_base`. See also [byte
# pairs](../lessons/1_text_to_vectors.py) and [`regard tokens`](../commands/tokens.md).
#
# ## From tokens to vectors
#
# The article says that the tokenizer outputs embeddings. In fact a tokenizer outputs ids, and a table of the model
# turns each id into a vector. All vectors have the same length, $d_{model}$: 384 in the default model, which splits
# the question into the same seven words.

# %%
model = regard.load()
trace = model.trace(question)
names = [token.text for token in trace.tokens[1:-1]]  # without [CLS] and [SEP]
embedded = trace.token_embeddings[1:-1]
print(names)
print("embedded", tuple(embedded.shape))
assert embedded.shape == (len(article["tokens"]), 384)

# %% [markdown]
# [Lesson 2](../lessons/2_words_before_context.py) shows where such vectors come from.
#
# ## The positional encoder
#
# The positional encoder changes each vector slightly, so that it also says where the token is. The length of the
# vector stays the same. Here it adds the model's position embeddings:

# %%
m = embedded + trace.position_embeddings[1:-1]
alike = torch.cosine_similarity(embedded, m, dim=-1)
show_numbers(
    alike[None], ["cosine"], names, title="with and without its position"
)
assert m.shape == embedded.shape
assert 0.85 < float(alike.min()) < float(alike.max()) < 1

# %% [markdown]
# The original transformer adds [sines and cosines](../lessons/3_position.py).
#
# ## The matrix M
#
# The three stages together turn the question into a matrix M with one row per token, n × $d_{model}$. Everything that
# follows starts from M.

# %%
print("M", tuple(m.shape))

# %% [markdown]
# `trace.token_embeddings` and `trace.position_embeddings` have these rows for [any text](../traces.md).
#
# ## Self-attention
#
# Each output is a weighted sum of all inputs, and the weights of a row sum to 1:
#
# $$ y_i = \sum_j w_{ij} x_j $$
#
# Self-attention is a way to compute these weights from the inputs themselves.

# %%
equal = torch.full((len(m), len(m)), 1 / len(m))
y = equal @ m
torch.testing.assert_close(y[3], m.mean(0))  # equal weights: a plain mean

# %% [markdown]
# [Lesson 4](../lessons/4_self_attention.py) computes such a sum for a single word.
#
# ## Scaled dot-product self-attention
#
# A search engine compares a query with keys and answers with values. Here the question is the query. Three sentences
# are the keys, each as a single vector of the default model, and each sentence's answer is a value. If scores are far
# apart, attention returns the best answer alone. If they are close, it returns a mixture.

# %%
pages = {
    "Paris has been the capital of France for centuries.": [1.0, 0.0, 0.0],
    "Berlin is the capital of Germany.": [0.0, 1.0, 0.0],
    "The bank lends money.": [0.0, 0.0, 1.0],
}
key = torch.stack([trace.embedding() for trace in model.trace([*pages])])
query = model.trace(question).embedding()[None]
value = torch.tensor([*pages.values()])
rows = torch.cat(
    [
        regard.attend(query, key, value, scale=scale).output
        for scale in (1, 10, 100)
    ]
)
show_numbers(
    rows,
    ["× 1", "× 10", "× 100"],
    ["Paris", "Berlin", "money"],
    title="how much of each answer",
)
assert rows.argmax(1).tolist() == [0, 0, 0]
assert rows[2, 0] > 0.99

# %% [markdown]
# In self-attention, the text asks itself. Three copies of M take the three roles: Q = K = V = M.
#
# $$ \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V $$
#
# In Python, the formula takes two lines. The article's code applies `torch.sqrt` to a whole number, but this function
# only takes tensors.


# %%
def attention(q, k, v):
    weights = (q @ k.T / math.sqrt(k.shape[-1])).softmax(-1)
    return weights @ v, weights


y, w = attention(m, m, m)
torch.testing.assert_close(y, regard.attend(m, m, m).output)
try:
    torch.sqrt(64)
    raise AssertionError("torch.sqrt took a whole number")
except TypeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# See also [the same as a database](../lessons/5_queries_keys_values.py), [which heads make a model say
# Paris](../questions/paris.md) and [`regard.attend`](../attention.md), which returns the same without building a
# matrix.
#
# ## The root and the softmax
#
# Dot products of long vectors are large. Dividing by $\sqrt{d_k}$ keeps their size independent of the width. The
# softmax works on each row: it makes all weights positive and lets the row sum to 1. As printed in the article, it
# overflows if scores are large.


# %%
def plain_softmax(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def softmax(scores):  # the same, and it can't overflow
    return plain_softmax(scores - scores.amax(-1, keepdim=True))


large = torch.tensor([[100.0, 200.0, 300.0]])
show_numbers(
    torch.cat([plain_softmax(large), softmax(large)]),
    ["as printed", "largest taken off"],
)
assert bool(plain_softmax(large).isnan().any())
torch.manual_seed(0)
q, k = torch.randn(2, 1000, 384)
spread = (q * k).sum(-1).std()
print(f"random dot products spread by {spread:.1f}, about √384")
assert abs(float(spread) / 384**0.5 - 1) < 0.1

# %% [markdown]
# [Lesson 5](../lessons/5_queries_keys_values.py) shows what happens without the root.
#
# ## Back to y = w M
#
# The formula is the weighted sum of above for all rows at once. The attention matrix is $w$:

# %%
torch.testing.assert_close(y, w @ m)
torch.testing.assert_close(
    y[3], sum(weight * x for weight, x in zip(w[3], m, strict=True))
)
print("w", tuple(w.shape), " y", tuple(y.shape))

# %% [markdown]
# In a pretrained model, `trace.attention[layer][head]` is [this matrix](../traces.md).
#
# ## The attention matrix as a picture
#
# M's vectors are short, so the differences are easier to see without the root.

# %%
scores = m @ m.T
weights = softmax(scores)
figure, axes = sheet.sheet(5.2, 4.4)
heatmap(weights, names, names, labels=("query", "key"), axes=axes)
keep(
    figure,
    "matrix.svg",
    "Attention of the question's words on each other, a row a query",
)

# %% [markdown]
# To plot a pretrained layer for a text of any length, use [`regard map`](../commands/map.md).
#
# ## What you can notice
#
# - Every cell is filled, because each word attends to all words. The work grows with n².
# - The **scores** are symmetric. The article claims this for the matrix after the softmax. But the softmax divides
#   each row by a different sum, so the weights are not symmetric.
# - Each row of **weights** sums to 1. The article claims this for the rows of the output, but these are mixtures of
#   vectors.
# - The diagonal of these scores is largest. In trained layers with separate queries and keys, it rarely is.

# %%
assert bool((weights > 0).all())
torch.testing.assert_close(scores, scores.T)
print(
    "weights differ from their mirror by up to "
    f"{(weights - weights.T).abs().max():.3f}"
)
assert (weights - weights.T).abs().max() > 1e-2
torch.testing.assert_close(weights.sum(-1), torch.ones(len(names)))
assert scores.argmax(1).tolist() == list(range(len(names)))
# layers, heads, words
largest = torch.stack([w.dense().argmax(-1) for w in trace.attention])[
    ..., 1:-1
]
share = (largest == torch.arange(1, len(names) + 1)).float().mean()
print(
    f"trained: a word's own weight is its largest in {share:.0%} of all "
    "heads' rows"
)
assert share < 0.5

# %% [markdown]
# [`regard heads`](../commands/heads.md) scores what trained heads do.
#
# ## Multi-head self-attention
#
# Each head has matrices $W^Q$, $W^K$ and $W^V$ and computes $h_i = \mathrm{Attention}(M W_i^Q, M W_i^K, M W_i^V)$. In
# the original, $d_{model}$ is 512 and each of the eight heads has width $512 / 8 = 64$. The rows of M are random here,
# because you only need the sizes and the algebra.

# %%
torch.manual_seed(0)
m = torch.randn(len(tokens), 512)  # n × d_model
layer = regard.MultiHeadAttention(d_model=512, heads=8)
parts = dict(layer.named_parameters())
heads = []
for head in range(8):
    rows = slice(64 * head, 64 * (head + 1))
    q, k, v = (
        m @ parts[f"{n}.weight"][rows].T + parts[f"{n}.bias"][rows]
        for n in ("query", "key", "value")
    )
    heads.append(attention(q, k, v)[0])
print("M", tuple(m.shape), " h", tuple(heads[0].shape))
assert all(h.shape == (7, 64) for h in heads)

# %% [markdown]
# See also [heads](../lessons/6_heads.py).
#
# ## The overall output
#
# $$ \mathrm{MultiHead}(M) = \mathrm{Concat}(h_1, \dots, h_8)\, W^O $$
#
# $W^O$ has $H d_v$ rows and $d_{model}$ columns, so the output has as many rows and columns as M.

# %%
concat = torch.cat(heads, -1)
w_output = parts["output.weight"].T
overall = concat @ w_output + parts["output.bias"]
assert w_output.shape == (8 * 64, 512)
torch.testing.assert_close(overall, layer(m))
print("Concat", tuple(concat.shape), " output", tuple(overall.shape))
assert overall.shape == m.shape

# %% [markdown]
# [Contextual embeddings](../lessons/9_contextual_embeddings.py) shows a use of such rows.
