# %% [markdown]
# # 11. What changed since 2017
#
# A chat model reads 100,000 tokens. With the code of lesson 4, each head would compute ten billion weights, and the
# whole text would be computed again for each new token. Today's models still use the same formula, with six changes
# around it. On this page you write each change in a few lines. Then you find three of them in a real model and try a
# fourth on it.

# %%
import math

import torch
from matplotlib.figure import Figure

import regard
from drawings.grid import heatmap
from drawings.kept import keep
from drawings.numbers import show_numbers
from regard import textbook
from regard.fetched import find, left_out

# %% [markdown]
# ## Rotary positions
#
# **Why:** a table of learned positions ends at its last row, and most links between words depend on their distance.
# Rotary positions rotate queries and keys by an angle that grows with the position (RoPE, Su et al. 2021). Lesson 3
# pairs neighbouring numbers. Here number n is paired with number n + d/2, as in SmolLM2. Either way, a score depends
# on the distance alone:
#
# $$ (R_i q) \cdot (R_j k) = q \cdot (R_{j-i} k) $$


# %%
def rotary(x, base=10000):
    """Rotate pairs of numbers by position · base^(-2n / d): (L, d)."""
    length, d = x.shape
    rate = base ** (-torch.arange(0, d, 2).double() / d)  # (d / 2,)
    angle = torch.arange(length)[:, None] * rate  # (L, d / 2)
    a, b = x.chunk(2, -1)
    turned = (
        a * angle.cos() - b * angle.sin(),
        b * angle.cos() + a * angle.sin(),
    )
    return torch.cat(turned, -1)


torch.manual_seed(0)
q, k = torch.randn(2, 32).double()
# the same query and the same key at each of 16 positions
queries, keys = q.expand(16, 32), k.expand(16, 32)
waves = textbook.sinusoidal(16, 32).double()
kinds = {
    "sines added to the embedding": (queries + waves) @ (keys + waves).T,
    "rotary": rotary(queries) @ rotary(keys).T,
}
figure = Figure(figsize=(10, 4.4), layout="constrained")
spread = []
for axes, (name, scores) in zip(
    figure.subplots(1, 2), kinds.items(), strict=True
):
    places = [str(n) for n in range(16)]
    heatmap(
        scores,
        places,
        places,
        title=name,
        diverging=True,
        labels=("position of the query", "position of the key"),
        axes=axes,
    )
    along = [float(scores.diagonal(n).std()) for n in range(-8, 9)]
    spread.append([max(along)])
keep(
    figure,
    "rotary.svg",
    "Scores of one query and one key at 16 positions: with rotary positions "
    "each diagonal has a single colour",
)

# %%
show_numbers(torch.tensor(spread), [*kinds], ["spread at one distance"])
assert spread[0][0] > 0.5
assert spread[1][0] < 1e-12
angles = regard.nn.positions.rotary_angles(torch.arange(16), 32)
expected = regard.nn.positions.rotate(queries, angles)
torch.testing.assert_close(rotary(queries), expected)

# %% [markdown]
# With rotary positions, each diagonal has a single colour, because all its cells have the same distance. Values
# aren't rotated.
#
# ## The KV cache
#
# **Why:** when a model writes, each new token would recompute the keys and values of all earlier tokens. The causal
# mask keeps them the same, so you can store them (Pope et al. 2022). A new token $n$ then needs only its own query:
#
# $$ y_n = \mathrm{softmax}\left(\frac{q_n K^T}{\sqrt{d}}\right) V $$


# %%
def write(x, w_query, w_key, w_value):
    """Causal attention, one token after another, with a KV cache."""
    keys, values, rows = x[:0] @ w_key, x[:0] @ w_value, []
    for token in x:
        keys = torch.cat([keys, (token @ w_key)[None]])  # one new key
        values = torch.cat([values, (token @ w_value)[None]])
        rows.append(textbook.attention(token @ w_query, keys, values)[0])
    return torch.stack(rows)


torch.manual_seed(0)
x, *matrices = torch.randn(4, 8, 8).double()
causal = torch.ones(8, 8, dtype=torch.bool).tril()
whole, weights = textbook.attention(*(x @ w for w in matrices), causal)
torch.testing.assert_close(write(x, *matrices), whole, atol=1e-12, rtol=0)

figure = Figure(figsize=(9, 4), layout="constrained")
names = [str(n) for n in range(8)]
again = causal.float()
once = again.clone()
once[:-1] *= 0.25
titles = {
    "without a cache: 36 scores, 8 keys": again,
    "with a cache: 8 scores, 1 key": once,
}
for axes, (title, cells) in zip(
    figure.subplots(1, 2), titles.items(), strict=True
):
    axes.imshow(cells, cmap="Blues", vmin=0, vmax=1.4)
    axes.set_xticks(range(8), names)
    axes.set_yticks(range(8), names)
    axes.set(title=title, xlabel="key", ylabel="query")
figure.suptitle("Computed to write token 8 (dark)")
keep(
    figure,
    "kv_cache.svg",
    "The triangle of weights: without a cache all rows are computed again, "
    "with a cache only the last row",
)

# %%
table = [
    [
        n * (n + 1) / 2,
        n,
        sum(k * (k + 1) / 2 for k in range(1, n + 1)),
        n * (n + 1) / 2,
    ]
    for n in (8, 100, 1000)
]
show_numbers(
    torch.tensor(table, dtype=torch.float64),
    ["8 tokens", "100 tokens", "1000 tokens"],
    ["keys, without", "keys, with", "scores, without", "scores, with"],
    title="computed to write a text, for each head",
    digits=0,
)
assert table[0][3] == float(causal.sum()) == 36
assert table[2][0] // table[2][1] == 500
assert table[2][2] // table[2][3] == 334

# %% [markdown]
# Both ways give the same result. For 1,000 tokens, the cache computes 500 times fewer keys and 334 times fewer scores.
#
# ## Grouped heads
#
# **Why:** the cache holds a key and a value for each head, each layer and each token, and soon needs more memory than
# the model. With grouped-query attention (GQA, Ainslie et al. 2023), several query heads share a key head. If there
# are $H$ query heads and $G$ key heads, query head $h$ uses key head
#
# $$ g = \mathrm{floor}(h G / H) $$


# %%
def grouped(query, key, value, mask=None):
    """H query heads share G key and value heads: (H, L, d), (G, S, d)."""
    shared = len(query) // len(key)
    key, value = (x.repeat_interleave(shared, 0) for x in (key, value))
    return textbook.attention(query, key, value, mask)


torch.manual_seed(0)
query = torch.randn(9, 5, 64).double()
key, value = torch.randn(2, 3, 5, 64).double()
output, weights = grouped(query, key, value)
one = textbook.attention(query[4], key[1], value[1])[0]  # 4 · 3 // 9 = 1
torch.testing.assert_close(output[4], one, atol=1e-12, rtol=0)
# regard shares keys without copying them
result = regard.attend(query[None], key[None], value[None])
torch.testing.assert_close(result.output[0], output, atol=1e-12, rtol=0)

figure = Figure(figsize=(10, 2.6), layout="constrained")
ways = {"multi-head (2017)": 9, "grouped": 3, "multi-query": 1}
for axes, (name, groups) in zip(
    figure.subplots(1, 3), ways.items(), strict=True
):
    for head in range(9):
        group = head * groups // 9
        place = (group + 0.5) * 9 / groups - 0.5
        axes.plot((head, place), (0, 1), color="#999999", zorder=1)
        axes.scatter(head, 0, s=70, color="#0072b2")
        axes.scatter(place, 1, s=70, color="#d55e00", marker="s")
    axes.set_title(f"{name}: {2 * groups * 64:,} numbers", fontsize=10)
    axes.set_yticks((0, 1), ("query heads", "key heads"))
    axes.set_xticks([])
    axes.margins(0.1, 0.25)
    axes.spines[:].set_visible(False)
figure.suptitle("Cached for each token and layer, with heads of width 64")
keep(
    figure,
    "grouped.svg",
    "Nine query heads with nine, three and one key heads, and the size of "
    "their cache",
)


# %%
def gigabytes(key_heads, layers=32, width=128, tokens=131072, bytes_each=2):
    """Size of the keys and values of a text, in GiB."""
    return 2 * key_heads * layers * width * tokens * bytes_each / 2**30


show_numbers(
    torch.tensor([[gigabytes(g)] for g in (32, 8, 1)]),
    ["32 key heads", "8 key heads", "1 key head"],
    ["GiB"],
    title="cache of 131,072 tokens, 32 layers of 32 heads, 2 bytes a number",
    digits=0,
)
assert [gigabytes(g) for g in (32, 8, 1)] == [64, 16, 2]

# %% [markdown]
# These are the sizes of Llama 3.1 8B, which has 8 key heads. Its weights need 16 GB, so without groups the cache of a
# single long text would be more than four times as large as the model.
#
# ## Sliding windows
#
# **Why:** each new token attends to all earlier tokens, so both the scores and the cache grow with the text. In a
# sliding window of $w$ tokens, token $i$ attends to itself and to the earlier tokens $j$ that are near enough (Beltagy
# et al. 2020, Jiang et al. 2023):
#
# $$ i - j < w $$


# %%
def window(length, w):
    """True where query i may attend to key j."""
    i, j = torch.arange(length)[:, None], torch.arange(length)
    return (j <= i) & (i - j < w)


near = window(16, 4)
result = regard.attend(*torch.randn(3, 16, 8), causal=True, window=(3, 0))
assert torch.equal(result.weights.dense() > 0, near)

# how many layers until something of token j can reach token i
reach, layers = near.float(), torch.zeros(16, 16)
for n in range(1, 6):
    layers[(reach > 0) & (layers == 0)] = n
    reach = near.float() @ reach
figure = Figure(figsize=(9, 4.2), layout="constrained")
panels = {"window of 4: who attends": near.float()}
panels["layers until j reaches i"] = layers
for axes, (title, cells) in zip(
    figure.subplots(1, 2), panels.items(), strict=True
):
    heatmap(
        cells,
        places,
        places,
        title=title,
        labels=("token i", "token j"),
        axes=axes,
    )
assert layers[15].tolist() == [5] * 3 + [4] * 3 + [3] * 3 + [2] * 3 + [1] * 4
far = 32 * (4096 - 1)
print(f"a window of 4,096 in 32 layers reaches {far:,} tokens back")
assert far == 131_040
keep(
    figure,
    "window.svg",
    "A band of width 4, and how many layers it takes until an earlier token "
    "reaches a later one",
)

# %% [markdown]
# A token sees further back with each layer: here three tokens per layer. The last printed line uses the sizes of
# Mistral 7B (Jiang et al. 2023). Many models use windows in some layers and full attention in the others.
#
# ## Attention sinks
#
# **Why:** the weights of a row always sum to 1, so a head that finds nothing must still put its weight somewhere.
# Models learn to put it on a token that every query sees, the **sink** (Xiao et al. 2023). Some newer models have a
# learned score $b$ for this instead, which takes weight and has no value:
#
# $$ w_j = \exp(s_j) / (\exp(b) + \sum_k \exp(s_k)) $$


# %%
def with_sink(scores, b):
    """Softmax with one more score in the denominator."""
    return scores.exp() / (math.exp(b) + scores.exp().sum(-1, keepdim=True))


nothing = torch.full((6,), -5.0).double()  # no key fits
first = nothing.clone()
first[0] = 0.0  # the first key takes the rest
rows = torch.stack(
    [nothing.softmax(-1), first.softmax(-1), with_sink(nothing, 0.0)]
)
ways = ["plain softmax", "first token as sink", "learned sink, b = 0"]
show_numbers(rows, ways, [f"key {n}" for n in range(6)])
one = torch.ones(1, 1, 1).double()
result = regard.attend(one, -5 * torch.ones(1, 6, 1).double(),
                       torch.ones(1, 6, 1).double(), scale=1.0,
                       sinks=torch.zeros(1).double())  # fmt: skip
torch.testing.assert_close(result.weights.dense()[0, 0], rows[2])
assert rows[1, 0] > 0.95
assert rows[2].sum() < 0.05

# %% [markdown]
# Without a sink, the head has to mix six values that don't fit. With a learned sink, it mixes almost nothing. With
# the first token as sink, it returns almost only that token's value, so this value has to be short. You check that in
# SmolLM2 below.
#
# The default model is an encoder from 2021, and it has learned sinks by itself. Each text starts with `[CLS]` and
# ends with `[SEP]`, and every token can attend to both:

# %%
model = regard.load()
trace = model.trace("Write a poem about a man fishing on a river bank.")
words = [maps.dense()[:, 1:-1] for maps in trace.attention]  # their rows
rest = torch.stack([w[..., [0, -1]].sum(-1).mean(-1) for w in words])
figure = Figure(figsize=(9, 3.6), layout="constrained")
heatmap(
    rest,
    [f"layer {n}" for n in range(len(rest))],
    [f"head {n}" for n in range(rest.shape[1])],
    title="weight of [CLS] and [SEP], mean of the words",
    axes=figure.add_subplot(),
)
keep(
    figure,
    "sinks.svg",
    "Weight that the words give to CLS and SEP, for each head of MiniLM",
)

# %%
equal = 2 / len(trace.tokens)
most = int((rest > 0.5).sum())
print(f"mean {rest.mean():.2f}, with equal weights it would be {equal:.2f}")
print(f"{most} of {rest.numel()} heads give them more than half")
assert rest.mean() > 3 * equal
assert most > 30

# %% [markdown]
# ## FlashAttention
#
# **Why:** for $n$ tokens, a head has $n$ × $n$ scores. On a GPU, it takes longer to write and read them than to
# compute them. FlashAttention (Dao et al. 2022) never writes them. It takes the keys in blocks and keeps three things
# for each query: the largest score $m$, the sum $l$ of the exponentials, and the mixture $y$ so far. If a block has
# a larger score, the sums so far shrink (online softmax, Milakov and Gimelshein 2018):
#
# $$ m' = \max(m, \max_j s_j) $$
#
# $$ l' = e^{m-m'} l + \sum_j e^{s_j-m'} $$
#
# $$ y' = e^{m-m'} y + \sum_j e^{s_j-m'} v_j $$
#
# The output is $y / l$. In the code, $l$ is `total`.


# %%
def flash(query, key, value, size):
    """softmax(Q Kᵀ / √d) V, one block of keys after another."""
    m = torch.full_like(query[:, :1], -math.inf)  # largest score so far
    total, y = torch.zeros_like(m), torch.zeros_like(query[:, :1] * value[:1])
    for n in range(0, len(key), size):
        s = query @ key[n : n + size].T / math.sqrt(key.shape[1])
        larger = torch.maximum(m, s.amax(1, keepdim=True))
        shrink, part = (m - larger).exp(), (s - larger).exp()
        total = shrink * total + part.sum(1, keepdim=True)
        y = shrink * y + part @ value[n : n + size]
        m = larger
    return y / total


torch.manual_seed(0)
query, key, value = torch.randn(3, 1000, 64).double()
expected = textbook.attention(query, key, value)[0]
table = [
    [size, float((flash(query, key, value, size) - expected).abs().max())]
    for size in (1, 7, 128, 1000)
]
for size, off in table:
    print(f"blocks of {size:4} keys: differs by up to {off:.0e}")
    assert off < 1e-12

# %% [markdown]
# FlashAttention isn't an approximation: the results are equal to about 15 digits. Only the memory changes (and on a
# GPU the time, which isn't measured here):

# %%
lengths = [1000 * n for n in (1, 2, 5, 10, 20, 50, 100)]
memory = {
    "n × n: all scores": [4 * n * n for n in lengths],
    "n × 128: flash above, all queries": [4 * n * 128 for n in lengths],
    "128 × 128: queries in blocks as well": [4 * 128 * 128 for _ in lengths],
}
figure = Figure(figsize=(7.5, 4), layout="constrained")
axes = figure.add_subplot(
    xlabel="tokens n",
    ylabel="bytes of scores",
    title="Memory for the scores of one head, 4 bytes each",
)
for (name, sizes), style in zip(
    memory.items(), ("o-", "s-", "^-"), strict=True
):
    axes.loglog(lengths, sizes, style, label=name)
axes.legend(frameon=False)
axes.grid(alpha=0.3)
keep(
    figure,
    "flash_memory.svg",
    "Bytes of scores by number of tokens: a steep line for all scores, a flat "
    "line for blocks",
)

# %%
for name, sizes in memory.items():
    print(f"{name:36} at 100,000 tokens: {sizes[-1] / 1e6:>12,.3f} MB")
assert memory["n × n: all scores"][-1] == 40e9

# %% [markdown]
# But now the weights are never stored, and you want to see them. `regard.attend` runs such a fast kernel and
# afterwards computes the weights that you ask for. Here are three of 400 million:

# %%
torch.manual_seed(0)
long = torch.randn(20_000, 16)
result = regard.attend(long, long, long)
few = result.weights[19_999, [0, 10_000, 19_999]]
print(
    "weights of the last token:", [f"{weight:.6f}" for weight in few.tolist()]
)
row = (long[-1] @ long.T / 4).softmax(-1)
torch.testing.assert_close(few, row[[0, 10_000, 19_999]], atol=1e-6, rtol=1e-4)

# %% [markdown]
# ## Three of them in a real model
#
# SmolLM2-135M-Instruct (Ben Allal et al. 2025) has rotary positions and grouped heads. Does it have sinks, and does it
# need them? To find out, you let the model predict a text with a window of 16 tokens, then with the window and the
# first token, then with the window and the second token. Run `regard fetch smollm2` to see this part.

# %%
folder = find("smollm2")
text = (
    "A heron stood in the shallow water below the bridge, waiting for a fish "
    "to move. The old man on the bank watched it for an hour and did not move "
    "either. When the church bell rang, the bird opened its wings and flew "
    "slowly up the river, over the mill and the wet fields, until it was a "
    "grey dot above the trees. The man folded his chair, packed his rod into "
    "the car and drove home. He had caught nothing, but he told his wife that "
    "it had been the best day of the summer."
)
if folder:
    smol = regard.load(folder)
    trace = smol.trace(text)
    config, n = smol.model.config, len(trace.tokens)
    heads, groups = config.num_attention_heads, config.num_key_value_heads
    print(f"{heads} query heads, {groups} key heads, {n} tokens")
    assert trace.attention[0].key.shape == (1, groups, n, 64)

    # layer 0's keys are rotated as above
    block = smol.model.model.layers[0]
    with torch.no_grad():
        normed = block.input_layernorm(trace.hidden_states[0])
        keys = block.self_attn.k_proj(normed)[:, :64].double()  # key head 0
    base = config.rope_parameters["rope_theta"]
    found = trace.attention[0].key[0, 0].double()
    torch.testing.assert_close(rotary(keys, base), found, atol=1e-4, rtol=1e-4)
    print(f"keys are rotated with base {base:,.0f}")

    rest = torch.stack([w[:, 8:, 0].mean(-1) for w in trace.attention])
    equal = float((1 / torch.arange(9, n + 1)).mean())
    print(
        f"the first token gets {rest.mean():.2f} of the weight, with equal "
        f"weights it would be {equal:.2f}"
    )
    lengths = torch.stack([v.norm(dim=-1) for v in trace.values])
    print(
        f"length of its value {lengths[..., 0].mean():.1f}, of the others "
        f"{lengths[..., 1:].mean():.1f}"
    )
    assert rest.mean() > 5 * equal
    assert lengths[..., 0].mean() < 0.5 * lengths[..., 1:].mean()

    ids = torch.tensor([[token.id for token in trace.tokens]])

    def loss(mask):
        """Mean of -log of the probability of tokens 33 and later."""
        bias = torch.zeros(1, 1, n, n).masked_fill(~mask, -1e30)
        with torch.no_grad():
            logits = smol.model(input_ids=ids, attention_mask=bias).logits[0]
        return float(
            torch.nn.functional.cross_entropy(logits[32:-1], ids[0, 33:])
        )

    masks = {"all earlier tokens": window(n, n), "window of 16": window(n, 16)}
    for token, name in enumerate(("first", "second")):
        masks[f"window and {name} token"] = window(n, 16)
        masks[f"window and {name} token"][token:, token] = True
    losses = [loss(mask) for mask in masks.values()]
    show_numbers(torch.tensor(losses)[:, None], [*masks], ["loss"], digits=2)
    full, alone, sink, second = losses
    assert alone > full + 1
    assert sink - full < 0.4 * (alone - full)
    assert second > alone
    assert 0.3 < rest.mean() < 0.42
else:
    print(left_out("smollm2"))

# %% [markdown]
# The first token of SmolLM2 gets a third of all attention, but its value is short, so it adds little. The window
# alone increases the loss by more than one nat. With the first token, most of this increase is gone, and with the
# second token the loss is higher than with the window alone. So the window needs the sink, not just one more token.
#
# Attention isn't the only way to read a text: Mamba (Gu and Dao 2023) updates a state of fixed size with each token,
# and keeps no keys and values.
#
# You know what attention does and how it is made fast. But what do the heads of a trained model do? Next, you find
# such a head and cut it: [12. An induction head, found and cut](12_an_induction_head.py).

# %% [markdown]
# ## Exercises
#
# The cells below don't need the cells above. Replace `...` by your answer and run the cell, or run `regard lesson 11
# --exercises`.

# %%
import torch

from drawings.exercise import Exercise
from regard import textbook

# %% [markdown]
# **1. Make the cache fit.** A model has 48 layers and 40 query heads of width 128. It reads 65,536 tokens, with 2
# bytes for each cached number. Find the largest number of key heads with which keys and values fit into 20 GiB. Query
# heads must divide evenly among key heads.

# %%
answer = ...  # a number of key heads


def check(key_heads):
    if not isinstance(key_heads, int) or 40 % key_heads:
        return False, f"40 query heads can't share {key_heads} key heads evenly"

    def size(heads):
        return 2 * heads * 48 * 128 * 65_536 * 2 / 2**30

    larger = min(
        (n for n in range(key_heads + 1, 41) if 40 % n == 0), default=0
    )
    room = larger > 0 and size(larger) <= 20
    told = f"the cache has {size(key_heads):.1f} GiB"
    if room:
        told += f", and {larger} key heads would fit as well"
    return key_heads > 0 and size(key_heads) <= 20 and not room, told


Exercise(check, answer)

# %% [markdown]
# **2. Write the mask of a window with sinks.** Query $i$ may attend to itself, to the $w - 1$ tokens before it, and to
# the first `sinks` tokens of the text, but never to a later token. `i` is a column of positions and `j` a row.

# %%
answer = ...  # lambda i, j, w, sinks: an expression, True where i sees j


def check(mask):
    for length, w, sinks in ((6, 2, 1), (9, 3, 2), (5, 9, 0), (8, 1, 4)):
        i, j = torch.arange(length)[:, None], torch.arange(length)
        expected = torch.zeros(length, length, dtype=torch.bool)
        for query in range(length):
            expected[query, max(0, query - w + 1) : query + 1] = True
            expected[query, : min(sinks, query + 1)] = True
        wrong = int((mask(i, j, w, sinks) != expected).sum())
        case = f"{length} tokens, window {w}, {sinks} sinks"
        if wrong:
            return False, f"{wrong} cells are wrong for {case}"
    return True, "all cells are right for four sizes"


Exercise(check, answer)

# %% [markdown]
# **3. Merge two blocks.** Two graphics cards have attended to half of the keys each. Each has the mixture $y$ of its
# own half, and $l$, the log of its sum of exponentials: `l = scores.exp().sum().log()`. Write the mixture over all
# keys. Scores can be as large as 1,000, so `l.exp()` can be infinite.

# %%
answer = ...  # lambda l1, y1, l2, y2: an expression


def check(merge):
    torch.manual_seed(0)
    for large in (1.0, 1000.0):
        scores, value = large * torch.rand(10), torch.randn(10, 3)
        expected = scores.softmax(0) @ value
        halves = []
        for part in (slice(0, 6), slice(6, 10)):
            log_sum = scores[part].logsumexp(0)
            halves += [log_sum, scores[part].softmax(0) @ value[part]]
        off = float((merge(*halves) - expected).abs().max())
        if not off < 1e-4:
            return (
                False,
                f"with scores up to {large:.0f} it is off by {off:.4f}",
            )
    return True, f"it differs by up to {off:.0e}"


Exercise(check, answer)
