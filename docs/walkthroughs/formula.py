# %% [markdown]
# # Attention from its formula
#
# $$ \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{Q K^T}{\sqrt{d_k}}\right) V $$
#
# One line (Vaswani et al. 2017). This page takes it apart on the question "What is the capital of France?": the tokens,
# the scores, a softmax that survives large numbers, the matrix as a picture, what is symmetric in it and what is not,
# and several heads with their output projection in the original sizes.
#
# It follows an article that builds the same from the formula, and says where that article is loose.

# %%
import math
import os
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from rich.console import Console

import regard
from regard.text.tiktoken import cl100k_base, cl100k_tokens
from regard.text.tokens import Token
from regard.textbook import plain_softmax, softmax
from regard.views.figures.heatmap import heatmap
from regard.views.terminal.tokens import show_tokens

OUT = Path(os.environ.get("REGARD_OUT", "out/walkthroughs"))
OUT.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# ## Tokens
#
# cl100k_base cuts a text into pieces of bytes, blanks included: a blank belongs to the word after it. The tokenizer's
# output is ids, nothing more; embeddings come after it, from the model's table. Its ranks are a file of 1.7 MB: where
# there is a network tiktoken fetches it, elsewhere `TIKTOKEN_CACHE_DIR` names a folder that holds it, and without
# either this page says so and goes on from the published ids.

# %%
question = "What is the capital of France?"
published = ["What", " is", " the", " capital", " of", " France", "?"]
published_ids = [3923, 374, 279, 6864, 315, 9822, 30]
try:
    tokens = cl100k_tokens(question, cl100k_base())
    assert [token.id for token in tokens] == published_ids
    assert [token.text for token in tokens] == published
except regard.RegardError as error:
    print(f"cl100k_base: NOT CHECKED HERE, going on from the published ids: {error}")
    ends = [len("".join(published[: n + 1])) for n in range(len(published))]
    tokens = [
        Token(number, text, end - len(text), end, None, False)
        for number, text, end in zip(published_ids, published, ends, strict=True)
    ]
show_tokens([(question, tokens)], "cl100k_base", Console(width=100, highlight=False))
names = [token.text for token in tokens]
n = len(tokens)
assert n == 7

# %% [markdown]
# ## From ids to a matrix
#
# $M$ is n × d_model, one row a token. A table for 100,277 ids is large; the rows of our seven are all that is needed.
# They are drawn at random here: the shapes and the algebra are the point, not the meaning.

# %%
d_model = 512
torch.manual_seed(0)
rows = torch.nn.Embedding(n, d_model)  # the seven rows of the table that the seven ids take
m = rows(torch.arange(n)).detach() / math.sqrt(d_model) * 8  # so that a token's score with itself is near 3
assert m.shape == (n, d_model)

# %% [markdown]
# ## The formula, and attend
#
# With $Q = K = V = M$ there is nothing to learn yet. `regard.attend` gives the output as a fused kernel computes it and
# keeps the way to the weights open. The square root is of a plain number, for which `math.sqrt` is meant: PyTorch's own
# `torch.sqrt` takes tensors only, as the article's code would have found.

# %%
result = regard.attend(m, m, m)
scores = m @ m.T / math.sqrt(d_model)  # (n, n)
torch.testing.assert_close(result.output, softmax(scores) @ m)
torch.testing.assert_close(result.weights.scores[:], scores)
weights = result.weights.dense()
print("scores", tuple(scores.shape), "weights", result.weights.shape, "output", tuple(result.output.shape))
try:
    torch.sqrt(d_model)
    raise AssertionError("torch.sqrt took a Python int")
except TypeError as error:
    print("torch.sqrt(512):", str(error).splitlines()[0])

# %% [markdown]
# ## What holds, and what is said to hold
#
# - every cell of the matrix is filled: each token looks at every other, n² of them;
# - each row of **weights** sums to 1. The rows of the output do not: they are mixtures of values;
# - the largest scores stand on the diagonal, for a vector is most like itself;
# - the **scores** $Q K^T$ are symmetric, because $m_i \cdot m_j = m_j \cdot m_i$. Softmax divides each row by its own
#   sum, so that the weights are not: the article says they are.

# %%
assert bool((weights > 0).all())
torch.testing.assert_close(weights.sum(-1), torch.ones(n))
output_sums = result.output.sum(-1)
print("rows of the output sum to", [round(s, 2) for s in output_sums.tolist()])
assert not torch.allclose(output_sums, torch.ones(n), atol=0.1)
assert scores.argmax(-1).tolist() == list(range(n))
torch.testing.assert_close(scores, scores.T)
asymmetry = (weights - weights.T).abs().max()
print(f"scores differ from their mirror by {(scores - scores.T).abs().max():.1e}, weights by {asymmetry:.3f}")
assert asymmetry > 1e-2

# %%
figure = plt.figure(figsize=(11, 4.8), layout="constrained")
left, right = figure.subplots(1, 2)
axes_names = ("query", "key")
heatmap(scores, names, names, title="scores: symmetric", diverging=True, labels=axes_names, axes=left)
heatmap(weights, names, names, title="weights: rows sum to 1, not symmetric", labels=axes_names, axes=right)
figure.savefig(OUT / "formula_matrix.png", dpi=130)

# %% [markdown]
# ## A softmax that does not overflow
#
# $e^{89}$ is more than float32 holds. The formula as printed then divides infinity by infinity. Taking each row's
# largest score off first changes nothing, since $e^{s - c} / \sum e^{s - c}$ is the same for every $c$, and no exponent
# is above 0.

# %%
large = torch.tensor([[10.0, 20.0, 30.0], [100.0, 200.0, 300.0]])
print("as printed", plain_softmax(large).tolist())
print("safe      ", softmax(large).tolist())
assert bool(plain_softmax(large)[1].isnan().any())
torch.testing.assert_close(plain_softmax(large)[0], softmax(large)[0])
torch.testing.assert_close(softmax(large), large.softmax(-1))
assert bool(regard.attend(m * 100, m * 100, m).weights.dense().isfinite().all())  # attend's own is safe too

# %% [markdown]
# ## Several heads
#
# $$ \mathrm{MultiHead}(Q, K, V) = \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_H)\, W_O $$
#
# $$ \mathrm{head}_h = \mathrm{Attention}(Q W_h^Q, K W_h^K, V W_h^V) $$
#
# In the original sizes: $d_{model}$ = 512 is divided among 8 heads, so that $d_q = d_k = d_v = 64$, and $W_O$ has
# $H d_v$ × $d_{model}$ numbers. The n rows stay, each as wide as before; and each head divides its scores by
# $\sqrt{64}$, its own width, not by $\sqrt{512}$.

# %%
torch.manual_seed(0)
layer = regard.MultiHeadAttention(d_model=d_model, heads=8)
m = torch.nn.functional.layer_norm(m, (d_model,))  # components of spread 1
for projection in (layer.query, layer.key):
    torch.nn.init.normal_(projection.weight, std=d_model**-0.5)  # so that those of queries and keys have it too
output, maps = layer(m, return_attention=True)
assert output.shape == (n, d_model)
assert maps.shape == (8, n, n)
assert maps.rule.scale == 1 / math.sqrt(64)

# %% [markdown]
# The same by hand, head by head, with the layer's own matrices:

# %%
parts = {name: parameter.detach() for name, parameter in layer.named_parameters()}
joined = []
for head in range(8):
    own = slice(64 * head, 64 * (head + 1))  # this head's rows of each matrix
    q, k, v = (m @ parts[f"{name}.weight"][own].T + parts[f"{name}.bias"][own] for name in ("query", "key", "value"))
    joined.append(softmax(q @ k.T / math.sqrt(64)) @ v)  # (n, 64)
concat = torch.cat(joined, -1)
assert concat.shape == (n, 8 * 64)
assert parts["output.weight"].shape == (d_model, 8 * 64)
torch.testing.assert_close(output.detach(), concat @ parts["output.weight"].T + parts["output.bias"])

# %%
figure = plt.figure(figsize=(12, 6.4), layout="constrained")
for head, axes in enumerate(figure.subplots(2, 4).flat):
    heatmap(maps[head], names, names, title=f"head {head}", axes=axes)
figure.suptitle("Eight untrained heads: each has its own matrices, and so its own weights")
figure.savefig(OUT / "formula_heads.png", dpi=130)
