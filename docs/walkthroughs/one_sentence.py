# %% [markdown]
# # One sentence, step by step
#
# Six words go through self-attention here, and every number on the way is shown: words become ids, ids become vectors,
# each vector is projected to a query, a key and a value, queries meet keys, and the weights that come of it mix the
# values. Then three heads do it at once, and at last a second sequence is looked at (cross-attention).
#
# The sentence, the seed and the figures are those of a well-known worked example, "Understanding and Coding the
# Self-Attention Mechanism of Large Language Models From Scratch"; every figure is asserted to its four decimals.

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import regard
from regard.textbook import dictionary, look_up, steps
from regard.views.figures.heatmap import heatmap

OUT = Path(os.environ.get("REGARD_OUT", "out/walkthroughs"))
OUT.mkdir(parents=True, exist_ok=True)


def printed(expected: list[float] | float) -> dict[str, object]:
    """What a tensor is compared with: a figure of four printed decimals."""
    return {"expected": torch.tensor(expected), "atol": 5.1e-5, "rtol": 0.0}


# %% [markdown]
# ## Words to ids
#
# A textbook's tokenizer: commas dropped, split at blanks, the words sorted (capitals first) and numbered. Six words
# make a dictionary of six; a real model's has 30,000 to 50,000 entries and more, and cuts rare words into pieces.

# %%
sentence = "Life is short, eat dessert first"
words = dictionary(sentence)
ids = look_up(sentence, words)
print(words)
print(ids)

assert words == {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}
assert ids.tolist() == [0, 4, 5, 2, 1, 3]

# %% [markdown]
# ## Ids to vectors
#
# An embedding is a table with one row a word, here 6 × 16, drawn at random: an untrained model. Looking a word up takes
# its row; nothing is computed.

# %%
torch.manual_seed(123)
table = torch.nn.Embedding(6, 16)
x = table(ids).detach()  # (6, 16): L tokens, M = 16
print(x.shape)

torch.testing.assert_close(
    x,
    **printed([
        [0.3374, -0.1778, -0.3035, -0.5880, 0.3486, 0.6603, -0.2196, -0.3792, 0.7671, -1.1925, 0.6984,
         -1.4097, 0.1794, 1.8951, 0.4954, 0.2692],
        [0.5146, 0.9938, -0.2587, -1.0826, -0.0444, 1.6236, -2.3229, 1.0878, 0.6716, 0.6933, -0.9487,
         -0.0765, -0.1526, 0.1167, 0.4403, -1.4465],
        [0.2553, -0.5496, 1.0042, 0.8272, -0.3948, 0.4892, -0.2168, -1.7472, -1.6025, -1.0764, 0.9031,
         -0.7218, -0.5951, -0.7112, 0.6230, -1.3729],
        [-1.3250, 0.1784, -2.1338, 1.0524, -0.3885, -0.9343, -0.4991, -1.0867, 0.8805, 1.5542, 0.6266,
         -0.1755, 0.0983, -0.0935, 0.2662, -0.5850],
        [-0.0770, -1.0205, -0.1690, 0.9178, 1.5810, 1.3010, 1.2753, -0.2010, 0.4965, -1.5723, 0.9666,
         -1.1481, -1.1589, 0.3255, -0.6315, -2.8400],
        [0.8768, 1.6221, -1.4779, 1.1331, -1.2203, 1.3139, 1.0533, 0.1388, 2.2473, -0.8036, -0.2808,
         0.7697, -0.6596, -0.7979, 0.1838, 0.2293],
    ]),
)  # fmt: skip

# %% [markdown]
# ## Query, key and value
#
# Three matrices make of each vector $x_i$ a query $q_i = W_q x_i$, a key $k_i = W_k x_i$ and a value $v_i = W_v x_i$.
# Queries and keys meet in a dot product, so their widths are equal ($d_q = d_k = 24$). The width of the values is free
# ($d_v = 28$), and it is that of the result.
#
# The example multiplies `W @ x`. PyTorch's layers and many texts write `x @ W` with the matrix turned round, and mixing
# the two up is the commonest mistake here, so `regard` asks which is meant.

# %%
torch.manual_seed(123)
w_query, w_key, w_value = torch.rand(24, 16), torch.rand(24, 16), torch.rand(28, 16)
layer = regard.SelfAttention.from_weights(w_query, w_key, w_value, convention="W @ x")

query, key, value = layer.query(x), layer.key(x), layer.value(x)
print("queries", tuple(query.shape), "keys", tuple(key.shape), "values", tuple(value.shape))
assert key.shape == (6, 24)
assert value.shape == (6, 28)

# %% [markdown]
# ## Scores
#
# How well does key $j$ answer query $i$? $\omega_{ij} = q_i \cdot k_j$. We follow the second word, "is" (token 1).
# `steps` keeps the whole way of one query, in float64, and checks itself against the weights of the fast kernel.

# %%
context, weights = layer(x, return_attention=True)
way = steps(weights, value, query=1)
for word, product in zip(sentence.replace(",", "").split(), way.products.tolist(), strict=True):
    print(f"is · {word:8} {product:9.4f}")

torch.testing.assert_close(way.products.float(), **printed([8.5808, -7.6597, 3.2558, 1.0395, 11.1466, -0.4800]))
torch.testing.assert_close(way.products[4].float(), **printed(11.1466))

# %% [markdown]
# ## Scale, then softmax
#
# Dot products of wide vectors are large, and a softmax of large numbers is nearly a switch. Dividing by
# $\sqrt{d_k}$, where $d_k$ is the width of queries and keys, keeps their spread near that of the components:
#
# $$ \alpha_{ij} = \frac{\exp(\omega_{ij} / \sqrt{d_k})}{\sum_n \exp(\omega_{in} / \sqrt{d_k})} $$

# %%
assert abs(way.scale - 24**-0.5) < 1e-9
torch.testing.assert_close(way.scaled, way.products / 24**0.5)
torch.testing.assert_close(way.weights.float(), **printed([0.2912, 0.0106, 0.0982, 0.0625, 0.4917, 0.0458]))
torch.testing.assert_close(way.weights.sum(), torch.tensor(1.0, dtype=torch.float64))
print("without scaling", way.products.softmax(0).round(decimals=4).tolist())
print("scaled         ", way.weights.round(decimals=4).tolist())

# %%
names = sentence.replace(",", "").split()
matrix = plt.figure(figsize=(5, 4.2), layout="constrained")
labels = ("attending (query)", "attended to (key)")
heatmap(weights.dense(), names, names, title="attention weights, one head", labels=labels, axes=matrix.add_subplot())
matrix.savefig(OUT / "one_sentence_weights.png", dpi=130)

# %% [markdown]
# ## The context vector
#
# The values, mixed by the weights: $z_i = \sum_j \alpha_{ij} v_j$. It has the width of the values.

# %%
torch.testing.assert_close(way.context, way.weighted.sum(0))
torch.testing.assert_close(context[1], way.context.float())
torch.testing.assert_close(
    context[1].detach(),
    **printed([
        -1.5993, 0.0156, 1.2670, 0.0032, -0.6460, -1.1407, -0.4908, -1.4632, 0.4747, 1.1926, 0.4506, -0.7110, 0.0602,
        0.7125, -0.1628, -2.0184, 0.3838, -2.1188, -0.8136, -1.5694, 0.7934, -0.2911, -1.3640, -0.2366, -0.9564,
        -0.5265, 0.0624, 1.7084,
    ]),
)  # fmt: skip
print(context[1])

# %% [markdown]
# ## Three heads
#
# Several heads are several sets of the three matrices, each free to look for something else. Stacked, they are tensors
# with one more axis, and the shapes tell the story: the input is laid out once a head as (3, 16, 6), projected to
# (3, 24, 6), and turned to (3, 6, 24) so that each token's key is a row again.

# %%
torch.manual_seed(123)
head_query, head_key, head_value = torch.rand(3, 24, 16), torch.rand(3, 24, 16), torch.rand(3, 28, 16)
one_token = torch.einsum("hdm,m->hd", head_query, x[1])
stacked = x.T.repeat(3, 1, 1)
keys, values = torch.bmm(head_key, stacked), torch.bmm(head_value, stacked)
print("query of one token", tuple(one_token.shape), "inputs", tuple(stacked.shape), "keys", tuple(keys.shape))

assert one_token.shape == (3, 24)
assert stacked.shape == (3, 16, 6)
assert (keys.shape, values.shape) == ((3, 24, 6), (3, 28, 6))
keys, values = keys.permute(0, 2, 1), values.permute(0, 2, 1)
assert (keys.shape, values.shape) == ((3, 6, 24), (3, 6, 28))

queries = torch.bmm(head_query, stacked).permute(0, 2, 1)
heads = regard.attend(queries, keys, values)
print("three heads", tuple(heads.output.shape), "their weights", heads.weights.shape)
for head in range(3):  # each is what a layer of its own gives
    alone = regard.SelfAttention.from_weights(head_query[head], head_key[head], head_value[head], convention="W @ x")
    torch.testing.assert_close(heads.output[head], alone(x))

# %% [markdown]
# ## Cross-attention
#
# Queries from one sequence, keys and values from another: what a decoder does when it looks at the sentence that it
# translates. The lengths may differ. The example says that the two must have the same embedding width; with a
# projection for each side they need not, and with one sequence on both sides it is self-attention.

# %%
torch.manual_seed(123)
second = torch.rand(8, 16)  # another text of 8 tokens
cross = regard.CrossAttention.from_weights(w_query, w_key, w_value, convention="W @ x")
assert cross.key(second).shape == (8, 24)
assert cross.value(second).shape == (8, 28)
output, across = cross(x, second, return_attention=True)
print("six queries on eight keys:", across.shape, "→", tuple(output.shape))
assert across.shape == (6, 8)
torch.testing.assert_close(cross(x, x), layer(x))

wide = regard.CrossAttention(d_query=16, d_context=20, d_k=24, d_v=28)  # its own width for the second sequence
assert wide(x, torch.rand(8, 20)).shape == (6, 28)
