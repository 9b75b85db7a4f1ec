# %% [markdown]
# # The formula
#
# This page reproduces an article on attention that begins with "What is the capital of France?" and ends with the
# formula's output. The article prints tokens and sizes and draws a matrix. This page asserts the article's claims. If
# a claim is imprecise, you find the exact statement here.

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
# ## "What is the capital of France?"
#
# A search engine compares a query with keys and answers with values. Here the question is the query. Three sentences
# are the keys, each as a single vector of the default model, and each sentence's answer is a value. If scores are far
# apart, attention returns the best answer alone. If they are close, it returns a mixture.

# %%
model = regard.load()
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
# See also [the same as a database](../lessons/4_self_attention.py) and [which heads make a model say
# Paris](../questions/paris.md).
#
# ## The formula and its parts
#
# $$ \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V $$
#
# In Python, it takes two lines. The article's code applies `torch.sqrt` to a whole number, but this function only
# takes tensors. The softmax as printed overflows if scores are large.


# %%
def plain_softmax(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def softmax(scores):  # the same, and it can't overflow
    return plain_softmax(scores - scores.amax(-1, keepdim=True))


def attention(q, k, v):
    weights = softmax(q @ k.T / math.sqrt(k.shape[-1]))
    return weights @ v, weights


try:
    torch.sqrt(64)
    raise AssertionError("torch.sqrt took a whole number")
except TypeError as error:
    print(str(error).splitlines()[0])
large = torch.tensor([[100.0, 200.0, 300.0]])
show_numbers(
    torch.cat([plain_softmax(large), softmax(large)]),
    ["as printed", "largest taken off"],
)
assert bool(plain_softmax(large).isnan().any())

# %% [markdown]
# [`regard.attend`](../attention.md) returns the same result without building a matrix, and lesson 4 explains [the
# root](../lessons/4_self_attention.py).
#
# ## The question in tokens
#
# cl100k_base splits the question into seven tokens and keeps the spaces. tiktoken downloads its ranks. Without them,
# this page prints a note and continues with the published ids. The article says that the tokenizer outputs
# embeddings. In fact a tokenizer outputs ids, and the model's table turns them into vectors.

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
# ## Several heads
#
# These are the original sizes: $d_{model}$ is 512, and each of the eight heads has width $512 / 8 = 64$. The tokens'
# vectors are random here, because you only need the sizes and the algebra.

# %%
torch.manual_seed(0)
m = torch.randn(len(tokens), 512)  # n × d_model
layer = regard.MultiHeadAttention(d_model=512, heads=8)
output, maps = layer(m, return_attention=True)
print(
    "M",
    tuple(m.shape),
    " weights",
    tuple(maps.shape),
    " output",
    tuple(output.shape),
)
parts = dict(layer.named_parameters())
joined = []
for head in range(8):
    own = slice(64 * head, 64 * (head + 1))
    q, k, v = (
        m @ parts[f"{n}.weight"][own].T + parts[f"{n}.bias"][own]
        for n in ("query", "key", "value")
    )
    joined.append(attention(q, k, v)[0])
concat = torch.cat(joined, -1)
assert parts["output.weight"].T.shape == (8 * 64, 512)  # H d_v × d_model
torch.testing.assert_close(
    concat @ parts["output.weight"].T + parts["output.bias"], output
)

# %% [markdown]
# See also [heads](../lessons/5_heads.py).
#
# ## The attention matrix as a picture
#
# Here $Q = K = V = M$, and M has the default model's embeddings of the same question. These vectors are short, so the
# differences are easier to see without the root.

# %%
trace = model.trace(question)
names = [token.text for token in trace.tokens[1:-1]]  # without [CLS] and [SEP]
m = trace.token_embeddings[1:-1]
scores = m @ m.T
weights = softmax(scores)
output = weights @ m
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
# ## What can be noticed
#
# - Every cell is filled, because each word attends to all words.
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
# ## The overall output
#
# $y_i = \sum_j w_{ij} v_j$: the output has as many rows as the input, and each row is a mixture of all values.

# %%
torch.testing.assert_close(
    output[3], sum(w * v for w, v in zip(weights[3], m, strict=True))
)
print(tuple(m.shape), "in,", tuple(output.shape), "out")

# %% [markdown]
# [Contextual embeddings](../lessons/8_contextual_embeddings.py) shows a use of such rows.
