# %% [markdown]
# # The formula
#
# This page reproduces an article without a title. The article asks a chat model such as ChatGPT "What is the capital
# of France?" and explains attention from its formula. The article prints tokens and sizes and draws a matrix. This
# page follows its order and checks its claims. If a claim is imprecise, you find the exact statement here.

# %%
import math

import torch
from matplotlib.figure import Figure

import regard
from drawings import attention as schematic
from drawings import sheet
from drawings.grid import heatmap
from drawings.kept import keep
from drawings.numbers import show_numbers
from drawings.printed import printed
from drawings.token_strip import token_strip
from drawings.transformer import embedding_process
from regard.explain.weights.head_steps import steps
from regard.fetched import find, left_out
from regard.text.tiktoken import cl100k_base, cl100k_tokens

article = printed("formula")
question = article["question"]

# %% [markdown]
# ## "What is the capital of France?" in tokens
#
# A model computes with numbers, so it first cuts the text into tokens and gives each token a number. cl100k_base, the
# tokenizer of GPT-4, cuts the question into seven tokens and keeps the spaces.

# %%
try:
    tokens = cl100k_tokens(question, cl100k_base())
except regard.RegardError as error:
    print("cl100k_base: NOT CHECKED HERE, going on from the printed ids")
    print(error)
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

# %%
figure, axes = sheet.sheet(4.5, 0.8)
token_strip(axes, tokens)
keep(figure, "question.svg", "The question in seven tokens, dots for blanks")

# %% [markdown]
# The article asks ChatGPT. Here you ask a small chat model, which you get with `regard fetch smollm2`:

# %%
folder = find("smollm2")
if folder:
    chat = regard.load(folder)
    asked = chat.tokenizer.apply_chat_template(
        [{"role": "user", "content": question}],
        tokenize=False,
        add_generation_prompt=True,
    )
    answer = chat.generate(asked, max_new_tokens=8).text[len(asked) :]
    print(answer)
    assert "Paris" in answer
else:
    print(left_out("smollm2"))

# %% [markdown]
# Download the tokenizer's ranks with `regard fetch cl100k_base`. Without them, this page prints a note and continues
# with the ids from the article. Lesson 1 shows how a tokenizer learns its [byte
# pairs](../lessons/1_text_to_vectors.py), and [`regard tokens`](../commands/tokens.md) cuts any text.
#
# ## From tokens to vectors
#
# An id says nothing about meaning, so a table of the model turns each id into a vector. All vectors have the same
# width, $d_{model}$. It is 384 in the default model, which cuts the question into the same seven words.

# %%
model = regard.load()
trace = model.trace(question)
# without [CLS] and [SEP]
names = [token.text for token in trace.tokens[1:-1]]
embedded = trace.token_embeddings[1:-1]
show_numbers(
    embedded[:, :6],
    names,
    title=f"the first 6 of {embedded.shape[1]} numbers of each vector",
    digits=2,
)
assert embedded.shape == (len(article["tokens"]), 384)

# %% [markdown]
# The article says that the tokenizer outputs these vectors. In fact a tokenizer outputs ids, and the table belongs to
# the model. [Lesson 2](../lessons/2_words_before_context.py) shows where such vectors come from.
#
# ## The positional encoder
#
# Attention sees a set of words without order, so a second vector $p_i$ adds the position:
#
# $$ x_i = e_i + p_i $$

# %%
positions = trace.position_embeddings[1:-1]
m = embedded + positions
alike = torch.cosine_similarity(embedded, m, dim=-1)
show_numbers(
    torch.stack([embedded.norm(dim=-1), positions.norm(dim=-1), alike]),
    ["norm of e", "norm of p", "cosine"],
    names,
    title="norms, and the cosine of e and e + p",
    digits=2,
)
assert m.shape == embedded.shape
assert 0.89 < float(alike.min()) < float(alike.max()) < 1
ratio = positions.norm(dim=-1) / embedded.norm(dim=-1)
assert 0.3 < float(ratio.min()) < float(ratio.max()) < 0.52

# %% [markdown]
# The article says that the position changes each vector slightly. Here the position vectors are a third to a half as
# long as the embeddings, yet the cosine stays above 0.89. The width of the vectors is still 384. The original
# transformer adds sines and cosines: see [lesson 3 on position](../lessons/3_position.py).
#
# ## The matrix M
#
# The three stages together turn the question into a matrix M with one row per token, n × $d_{model}$. Everything that
# follows starts from M.

# %%
figure = embedding_process(
    names,
    [token.id for token in trace.tokens[1:-1]],
    embedded,
    30522,
    positions,
    total="= M",
)
keep(
    figure,
    "stages.svg",
    "The question's tokens, their ids, their vectors, the positions added",
)

# %%
print("M", tuple(m.shape))
assert m.shape == (7, 384)

# %% [markdown]
# The lowest row of the picture is M: seven vectors of 384 numbers. `trace.token_embeddings` and
# `trace.position_embeddings` have these rows for [any text](../traces.md).
#
# ## Self-attention
#
# In M, "france" doesn't know that the question is about a capital. Self-attention replaces each vector by a weighted
# sum of all vectors. The article writes $w$ for the weights, and they sum to 1 in each row:
#
# $$ y_i = \sum_j w_{ij} x_j $$
#
# For example, take half of "capital" and half of "france":

# %%
by_hand = torch.zeros(len(names))
by_hand[[names.index("capital"), names.index("france")]] = 0.5
y = by_hand @ m
close = torch.cosine_similarity(y, m, dim=-1)
show_numbers(
    torch.stack([by_hand, close]),
    ["weight", "cosine"],
    names,
    title="the weights, and the cosine of y to each word",
    digits=2,
)
assert {*close.topk(2).indices.tolist()} == {3, 5}

# %% [markdown]
# The sum is close to both words. Attention is a way to compute such weights from the vectors themselves. [Lesson
# 4](../lessons/4_self_attention.py) computes them for a single word.
#
# ## Scaled dot-product self-attention
#
# Where do the weights come from? A search engine compares a **query** with **keys** and answers with **values**. Here
# the question is the query. Three sentences are the keys, each as a single vector of the default model, and each
# sentence's answer is a value. The weights are the softmax of the products times a scale: positive, with the sum 1
# (explained below).

# %%
pages = [
    "Paris has been the capital of France for centuries.",
    "Berlin is the capital of Germany.",
    "The bank lends money.",
]
means = [t.last_hidden_state.mean(0) for t in model.trace([*pages, question])]
*key, query = torch.nn.functional.normalize(torch.stack(means), dim=1)
key, query = torch.stack(key), query[None]
value = torch.eye(3)  # the answers: Paris, Berlin, money
rows = torch.cat(
    [
        regard.attend(query, key, value, scale=scale).output
        for scale in (1, 10, 100)
    ]
)
show_numbers(
    torch.cat([query @ key.T, rows]),
    ["query · key", "scores × 1", "scores × 10", "scores × 100"],
    ["Paris", "Berlin", "money"],
    title="how much of each answer you get",
)
assert rows.argmax(1).tolist() == [0, 0, 0]
assert rows[2, 0] > 0.99

# %% [markdown]
# If the scores are far apart, you get the best answer alone. If they are close, you get a mixture.
#
# In self-attention, the text asks itself: three copies of M take the three roles, Q = K = V = M.
#
# $$ \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V $$
#
# In Python, the formula takes two lines:


# %%
def attention(q, k, v):
    weights = (q @ k.T / math.sqrt(k.shape[-1])).softmax(-1)
    return weights @ v, weights


y, w = attention(m, m, m)
torch.testing.assert_close(y, regard.attend(m, m, m).output)
shapes = [tuple(each.shape) for each in (m @ m.T, w, y)]
print("Q Kᵀ", shapes[0], " w", shapes[1], " y", shapes[2])
try:
    torch.sqrt(64)
    raise AssertionError("torch.sqrt took a whole number")
except TypeError as error:
    print(f"torch.sqrt(64): {str(error).splitlines()[0]}")

# %% [markdown]
# The article's code applies `torch.sqrt` to a whole number, but this function only takes tensors.
# [`regard.attend`](../attention.md) returns the same as the two lines without building a matrix. If you want to know
# which heads make a real model say Paris, read [the Paris question](../questions/paris.md).
#
# ## The root and the softmax
#
# Why divide by $\sqrt{d_k}$, and why take a softmax? A dot product adds up $d_k$ products, so its spread (standard
# deviation) grows with the width of the vectors. The root cancels this growth:

# %%
torch.manual_seed(0)
spreads = []
for width in (4, 64, 512):
    q, k = torch.randn(2000, 1, width), torch.randn(2000, 7, width)
    products = (q @ k.mT)[:, 0]  # a query and seven keys, 2,000 times
    both = products, products / math.sqrt(width)
    spreads.append(
        [each.std() for each in both]
        + [each.softmax(-1).amax(-1).mean() for each in both]
    )
show_numbers(
    torch.tensor(spreads),
    ["d_k = 4", "d_k = 64", "d_k = 512"],
    ["spread", "÷ root", "largest weight", "÷ root"],
    title="random queries on seven keys",
    digits=2,
)
assert all(abs(float(row[1]) - 1) < 0.1 for row in spreads)
assert spreads[2][2] > 0.9
assert spreads[2][3] < 0.5

# %% [markdown]
# Without the root, the largest weight of wide vectors is almost 1. The layer then reads a single word, and its
# weights hardly change with the scores, so training has almost nothing to follow (the gradient is near 0). [Lesson
# 5](../lessons/5_queries_keys_values.py) measures that.
#
# The softmax works on each row. All weights become positive, the row sums to 1, and larger scores get larger weights:
#
# $$ w_{ij} = \frac{\exp(s_{ij})}{\sum_k \exp(s_{ik})} $$


# %%
def plain_softmax(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def softmax(scores):  # the same, and it can't overflow
    return plain_softmax(scores - scores.amax(-1, keepdim=True))


small, large = (
    torch.tensor([[1.0, 2.0, 3.0]]),
    torch.tensor([[100.0, 200, 300]]),
)
show_numbers(
    torch.cat([softmax(small), plain_softmax(large), softmax(large)]),
    ["scores 1, 2, 3", "scores 100, 200, 300", "largest subtracted first"],
)
torch.testing.assert_close(plain_softmax(small), softmax(small))
assert bool(plain_softmax(large).isnan().any())

# %% [markdown]
# As printed in the article, the softmax overflows if scores are large (nan: not a number). It doesn't if you subtract
# the largest score first.
#
# ## Back to y = w M
#
# The formula is the weighted sum from above for all rows at once, so the attention matrix is $w$:
#
# $$ Y = w M, \qquad w = \mathrm{softmax}\left(\frac{M M^T}{\sqrt{d_{model}}}\right) $$

# %%
torch.testing.assert_close(y, w @ m)
way = steps(regard.attend(m, m, m).weights, m, query=names.index("france"))
torch.testing.assert_close(way.context.float(), y[names.index("france")])
figure = schematic.head_step(way, "france", names, "output", ("x", "M", "M"))
keep(
    figure,
    "weighted_sum.svg",
    "The output of france: seven weights times seven rows, added up",
)

# %% [markdown]
# Here all weights are near 1/7, because the vectors of this model are short and no matrices have been trained to
# compare them. In a trained head, `trace.attention[layer][head]` is [this matrix](../traces.md).
#
# ## The attention matrix as a picture
#
# How much does each word take from each word? A heat map shows all rows at once. M's vectors are short, so the
# differences are easier to see without the root.

# %%
scores = m @ m.T
weights = softmax(scores)
figure = Figure(figsize=(5.6, 4.8), layout="constrained")
axes = figure.add_subplot()
heatmap(
    weights,
    names,
    names,
    title="softmax(M Mᵀ): each row sums to 1",
    labels=("query", "key"),
    axes=axes,
)
keep(
    figure,
    "matrix.svg",
    "Attention of the question's words on each other, a row a query",
)

# %% [markdown]
# Each word takes most from itself. To plot a pretrained layer for a text of any length, use [`regard
# map`](../commands/map.md).
#
# ## What you can notice
#
# The article makes four claims about this matrix. One is true of the scores only, one is about the weights and not the
# output, and one doesn't hold in trained layers:
#
# - Every cell is filled, because each word attends to all words. The work grows with n².
# - The **scores** are symmetric. The article claims this for the matrix after the softmax. But the softmax divides
#   each row by a different sum, so the weights are not symmetric.
# - Each row of **weights** sums to 1. The article claims this for the rows of the output, but these are mixtures of
#   vectors.
# - The diagonal has the largest number of each row, in the scores and in the weights. In trained layers with separate
#   queries and keys, this is rare.

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
assert weights.argmax(1).tolist() == list(range(len(names)))
# layers, heads, words
largest = torch.stack([w.dense().argmax(-1) for w in trace.attention])[
    ..., 1:-1
]
share = (largest == torch.arange(1, len(names) + 1)).float().mean()
print(
    f"trained heads: own weight largest in {share:.0%} of all rows "
    "([CLS] and [SEP] count here)"
)
assert share < 0.5

# %% [markdown]
# [`regard heads`](../commands/heads.md) measures which words trained heads attend to.
#
# ## Multi-head self-attention
#
# A single matrix $w$ gives each word one mixture. Several **heads** give it several mixtures, because each head
# learns separate matrices:
#
# $$ \mathrm{head}_h = \mathrm{Attention}(M W_{Q,h}, M W_{K,h}, M W_{V,h}) $$
#
# In the original transformer, $d_{model}$ is 512 and there are eight heads, so $d_q = d_k = d_v = 512 / 8 = 64$.

# %%
figure = schematic.multi_head(tokens=7, d_model=512, heads=8, d_k=64, d_v=64)
keep(
    figure,
    "multi_head.svg",
    "Eight heads on seven tokens: 7 × 512 in, 7 × 64 from each, 7 × 512 out",
)

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
# The rows of M are random here, because you only need the sizes and the algebra. Lesson 6 shows what [heads of a real
# model](../lessons/6_heads.py) do.
#
# ## The overall output
#
# The next layer expects one vector of width $d_{model}$ per token again. So the eight results are joined and
# multiplied by one more matrix:
#
# $$ \mathrm{MultiHead}(M) = \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_8)\, W_O $$

# %%
concat = torch.cat(heads, -1)
w_output = parts["output.weight"].T
overall = concat @ w_output + parts["output.bias"]
assert w_output.shape == (8 * 64, 512)
torch.testing.assert_close(overall, layer(m))
print("Concat", tuple(concat.shape), " output", tuple(overall.shape))
assert overall.shape == m.shape

# %% [markdown]
# $W_O$ has $8 \cdot 64 = 512$ rows and $d_{model}$ columns, so the output has as many rows and columns as M. regard's
# layer gives the same numbers. In [lesson 9](../lessons/9_contextual_embeddings.py) you use such rows as contextual
# embeddings.
