# %% [markdown]
# # 6. Heads
#
# In "I ate some of Bob's chocolate cake", "ate" needs to know who ate, whose cake it was, and what was eaten. A
# single set of weights can attend to all three words, with a third of the weight on each. But attention then returns
# a single mixture of their values, and you can't tell which word each part came from. So a model runs attention
# several times in parallel, each time with different matrices. These are **heads** (multi-head attention), and each
# returns its own mixture.
#
# On this page you compare one head with four, and compute eight by hand. You search a real model for heads that read
# who, whose and what, and test each of them. You also **ablate** heads: you run the model without them, to see which
# of them matter.

# %%
import torch
from matplotlib.figure import Figure

import regard
from drawings import attention
from drawings.code import Code
from drawings.grid import heatmap
from drawings.kept import keep
from drawings.links import links
from drawings.numbers import show_numbers
from regard import textbook
from regard.explain import effect
from regard.trace.labelled_map import attention_from

# %%
figure = attention.multi_head(tokens=7, d_model=512, heads=8, d_k=64, d_v=64)
keep(
    figure,
    "multi_head.svg",
    "Eight heads: each reads 7 × 512, gives 7 × 64; joined 7 × 512, times "
    "W_O, 7 × 512",
)

# %% [markdown]
# ## The formula and its code
#
# $$ \mathrm{head}_h = \mathrm{Attention}(X W_{Q,h}, X W_{K,h}, X W_{V,h}) $$
#
# $$ \mathrm{MultiHead}(X) = \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_H)\, W_O $$
#
# Each of the $H$ heads attends with its own three matrices, by the formula of lesson 5. Concat puts their outputs
# next to each other, and the matrix $W_O$ mixes them. One linear layer computes the queries of all heads, and the
# same holds for the keys and for the values: the first M / H outputs belong to head 0, the next to head 1. In the
# code, `unflatten` cuts each projection into heads, and `flatten` is Concat.

# %%
Code(textbook.MultiHeadAttention)

# %% [markdown]
# ## Compare one head with four
#
# Is a single head enough? Train a layer of attention and a linear layer to answer three questions from the output for
# "ate": who ate, whose cake, and what. You train them once with a single head and once with four heads, with the same
# number of parameters. The test uses sentences that the layers have never read.

# %%
food = 8
torch.manual_seed(0)
# who (10 names), whose (10 names), what (8 kinds of food)
facts = torch.cartesian_prod(
    torch.arange(10), torch.arange(10), torch.arange(food)
)
known, asked = facts[torch.randperm(len(facts))].split([600, 200])


class Answers(torch.nn.Module):
    """“who ate whose what”: three answers from what attention hands to
    “ate”."""

    def __init__(self, heads):
        super().__init__()
        self.words, self.places = (
            torch.nn.Embedding(10 + food + 1, 32),
            torch.nn.Parameter(0.1 * torch.randn(4, 32)),
        )
        self.attention, self.say = (
            regard.MultiHeadAttention(d_model=32, heads=heads),
            torch.nn.Linear(32, 20 + food),
        )

    def forward(self, facts):
        ate = torch.full_like(facts[:, 0], 10 + food)
        x = (
            self.words(
                torch.stack(
                    [facts[:, 0], ate, facts[:, 1], 10 + facts[:, 2]], 1
                )
            )
            + self.places
        )
        return self.say(self.attention(x)[:, 1]).split([10, 10, food], -1)


found = []
for heads in (1, 4):
    torch.manual_seed(0)
    answers = Answers(heads)
    optimiser = torch.optim.Adam(answers.parameters(), lr=1e-2)
    for _ in range(200):
        some = known[torch.randint(len(known), (64,))]
        loss = sum(
            torch.nn.functional.cross_entropy(*each)
            for each in zip(answers(some), some.T, strict=True)
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    found.append(
        [
            float((each.argmax(-1) == true).float().mean())
            for each, true in zip(answers(asked), asked.T, strict=True)
        ]
    )
show_numbers(
    torch.tensor(found),
    ["1 head", "4 heads"],
    ["who", "whose", "what"],
    title="right answers",
    digits=2,
)
assert min(found[1]) > 0.95
assert min(found[0]) < 0.9

# %% [markdown]
# Four heads answer almost all questions, and a single head misses many. Did each head specialise in a question? $W_O$
# has 8 rows for each head, so its product with Concat is a sum over the heads:
#
# $$ \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_H)\, W_O = \sum_h \mathrm{head}_h W_{O,h} $$
#
# To ablate a head, set its rows $W_{O,h}$ to zero:

# %%
kept, without = answers.attention.output.weight.detach().clone(), []
for head in range(4):
    with torch.no_grad():
        # nn.Linear stores W_O transposed
        answers.attention.output.weight[:, 8 * head : 8 * (head + 1)] = 0
        without.append(
            [
                float((each.argmax(-1) == true).float().mean())
                for each, true in zip(answers(asked), asked.T, strict=True)
            ]
        )
        answers.attention.output.weight.copy_(kept)
without = torch.tensor(without)
show_numbers(
    torch.cat([torch.tensor(found[1:]), without]),
    ["all four heads", *(f"without head {head}" for head in range(4))],
    ["who", "whose", "what"],
    title="right answers",
    digits=2,
)
subject = int(without[:, 0].argmin())
print(f"“who” needs head {subject}")
assert without[subject, 0] < 0.6
assert without[subject, 1:].min() > 0.9
assert ((without[:, 1:] < 0.85).sum(0) == 2).all()

# %% [markdown]
# One head reads who ate: without it, the layer gets the other two questions right and "who" mostly wrong. The other
# two questions are shared: each has two heads whose ablation costs many answers. Training alone divided the work.
#
# ## By hand
#
# The first plot has the sizes of the original transformer: $d_{model}$ = 512 and 8 heads, so $d_q = d_k = d_v = 64$
# (Vaswani et al. 2017). Each head divides its scores by $\sqrt{64}$, the root of its width. The seven tokens are
# those of the question in lesson 1, with random vectors. Computing each head by hand gives the same result as the
# layer:

# %%
names = ["What", " is", " the", " capital", " of", " France", "?"]
torch.manual_seed(0)
layer = regard.MultiHeadAttention(d_model=512, heads=8)
m = torch.nn.functional.layer_norm(torch.randn(7, 512), (512,))
for projection in (layer.query, layer.key):
    # queries and keys with components of spread 1
    torch.nn.init.normal_(projection.weight, std=512**-0.5)
output, maps = layer(m, return_attention=True)
assert output.shape == (7, 512)
assert maps.shape == (8, 7, 7)
assert maps.rule.scale == 64**-0.5

parts = {
    name: parameter.detach() for name, parameter in layer.named_parameters()
}
joined = []
for head in range(8):
    # this head's rows of each matrix: (64, 512)
    rows = slice(64 * head, 64 * (head + 1))
    q, k, v = (
        m @ parts[f"{name}.weight"][rows].T + parts[f"{name}.bias"][rows]
        for name in ("query", "key", "value")
    )
    joined.append((q @ k.T / 64**0.5).softmax(-1) @ v)  # (7, 64)
joined = torch.cat(joined, -1)
assert joined.shape == (7, 8 * 64)
assert parts["output.weight"].shape == (512, 8 * 64)
torch.testing.assert_close(
    output.detach(), joined @ parts["output.weight"].T + parts["output.bias"]
)
same = textbook.MultiHeadAttention(512, 8)  # the code above
same.load_state_dict(layer.state_dict())
torch.testing.assert_close(same(m), output)

# %%
figure = Figure(figsize=(12, 6.2), layout="constrained")
for head, axes in enumerate(figure.subplots(2, 4).flat):
    heatmap(maps[head], names, names, title=f"head {head}", axes=axes)
figure.suptitle(
    "Eight untrained heads: each has its own matrices, and so its own weights"
)
keep(
    figure,
    "untrained_heads.svg",
    "The weights of eight untrained heads on seven tokens: all different",
)

# %% [markdown]
# ## Each head reads the whole vector
#
# You often read that the embedding is cut into chunks and each head gets a chunk. In fact the *output* of the
# projection is cut. Each head's projection matrices take all 512 numbers of a token's vector as input. So the query
# of head 0 changes with the last component of the input, which a chunk of 64 numbers would not contain:

# %%
nudged = m.clone()
nudged[:, -1] += 1
before, after = (layer.query(rows)[:, :64] for rows in (m, nudged))
change = (after - before).detach()
print(
    f"head 0's query changes by {change[0].norm():.3f} when component 511 does"
)
torch.testing.assert_close(change[0], parts["query.weight"][:64, -1])
assert change[0].norm() > 0.1

# %% [markdown]
# ## Long range and short range
#
# Training makes heads different. How far does each head look? `distance()` returns the mean of $|i - j|$, weighted by
# attention, without computing the whole matrix. Here you see the default model's 6 layers with 12 heads each, on a
# text of about 60 tokens. A head that mostly attends to `[CLS]`, the very first token, has a large distance. So check
# the attended tokens before you trust the number.

# %%
model = regard.load()
text = (
    "The old man walked down to the river bank with his nets and waited for "
    "the boat. His daughter had gone to the "
    "bank in the town that morning to ask about the loan, and she had not "
    "come back. When the rain began he took the "
    "nets under the trees and thought about the money."
)
trace = model.trace(text)
real = [n for n, token in enumerate(trace.tokens) if not token.special]
# (layers, heads)
far = torch.stack(
    [weights.distance()[:, real].mean(1) for weights in trace.attention]
)
show_numbers(
    far,
    [f"layer {n}" for n in range(6)],
    [f"head {n}" for n in range(12)],
    title=f"mean distance in tokens, of {len(real)} words",
    digits=1,
)
near_layer, near_head = divmod(int(far.argmin()), 12)
far_layer, far_head = divmod(int(far.argmax()), 12)
print(
    f"shortest: layer {near_layer}, head {near_head}; longest: layer "
    f"{far_layer}, head {far_head}"
)
assert far.max() > 3 * far.min()
# weight of the token before
before = trace.attention[near_layer][near_head].diagonal(-1)[:-1].mean()
print(f"the nearest head attends to the token before with weight {before:.2f}")
takes = trace.attention[far_layer][far_head][real].mean(0)
most = [
    f"{trace.tokens[n].text} {takes[n]:.2f}"
    for n in takes.topk(4).indices.tolist()
]
print(f"the farthest head attends most, on average, to: {', '.join(most)}")

# %%
figure = Figure(figsize=(11, 5.2), layout="constrained")
for axes, (n, head) in zip(
    figure.subplots(1, 2),
    ((near_layer, near_head), (far_layer, far_head)),
    strict=True,
):
    axes.imshow(
        trace.attention[n][head] ** 0.5,
        cmap="cividis",
        vmin=0,
        interpolation="nearest",
    )
    axes.set(
        title=f"layer {n}, head {head}: {far[n, head]:.1f} tokens on average",
        xlabel="key",
        ylabel="query",
    )
figure.suptitle(
    "The head that looks nearest and the one that looks farthest (colours: "
    "root of the weight)"
)
keep(
    figure,
    "ranges.png",
    "One head's weights lie along the diagonal, the other's far away from it",
)

# %% [markdown]
# ## Search for heads that read who, whose and what
#
# Which heads attend from "ate" to "I", "Bob's" and "cake"? Measure all 72 heads, and plot the head with the largest
# weight for each of the three words:

# %%
eaten = model.trace("I ate some of Bob's chocolate cake")
ate = eaten.word("ate")[0]
names = [token.text for token in eaten.tokens]
# (layers, heads, queries, keys)
every = torch.stack([weights[:] for weights in eaten.attention])
found = {}
figure = Figure(figsize=(12.5, 4.2), layout="constrained")
for axes, target in zip(
    figure.subplots(1, 3), ("I", "Bob's", "cake"), strict=True
):
    wanted = list(eaten.word(target)[0].tokens)
    # how much each token gives to the target: (layers, heads, queries)
    given = every[..., wanted].sum(-1)
    best = int(given[..., ate.tokens[0]].argmax())
    found[target] = n, head = divmod(best, 12)
    links(
        axes,
        every[n, head],
        names,
        names,
        title=f"“{target}”: layer {n}, head {head}",
        followed=list(ate.tokens),
    )
keep(
    figure,
    "ate.svg",
    "Lines from ate to what it attends to, in the head that looks most at I, "
    "at Bob's, at cake",
)

# %% [markdown]
# Now test them. How much do the *other* tokens give to the same word, and how much would equal weights give? If "ate"
# isn't above the mean of all tokens, the head doesn't look for something that "ate" needs.

# %%
at, table, columns = ate.tokens[0], [], []
for target, (n, head) in found.items():
    wanted = list(eaten.word(target)[0].tokens)
    column = every[n, head][:, wanted].sum(-1)  # from each token
    columns.append(column)
    mean, evenly = float(column.mean()), len(wanted) / len(names)
    table.append([column[at], mean, column[at] - mean, evenly])
heads = [f"{word}, L{n}H{head}" for word, (n, head) in found.items()]
show_numbers(
    torch.tensor(table),
    heads,
    ["from “ate”", "mean of all", "above mean", "equal weights"],
    title="weight of the word (L0H2: layer 0, head 2)",
    digits=2,
)
columns = torch.stack(columns, -1)
show_numbers(columns, names, heads, title="from each token", digits=2)
assert [*found.values()] == [(near_layer, near_head), (0, 3), (5, 11)]
assert (near_layer, near_head) == (0, 2)
assert table[1][0] < 1.25 * table[1][3]
assert names[int(columns[:, 1].argmax())] == "'"
assert names[int(every[0, 3, at].argmax())] == "[SEP]"
assert abs(table[2][2]) < 0.01
assert columns[:, 2].min() > 0.2

# %%
slowly = model.trace("This is the cake that I slowly ate")
row = attention_from(slowly.attention[0], slowly.word("ate")[0])[2]
back, subject = (
    float(row[slowly.word(word)[0].tokens[0]]) for word in ("slowly", "I")
)
print(f"L0H2, “{slowly.text}”: slowly {back:.2f}, I {subject:.2f}")
most, token = every[0, 3, at].max(-1)
print(f"L0H3: the largest weight of “ate” is {most:.2f}, on {names[token]}")
good = model.trace("The cake that Bob's friend ate was good")
cake = good.attention[5][11][:, good.word("cake")[0].tokens[0]]
print(f"L5H11, “{good.text}”: cake {cake.min():.2f} to {cake.max():.2f}")
most = every[:, :, at].amax((0, 1))
ranked = [f"{names[n]} {most[n]:.2f}" for n in most.argsort(descending=True)]
print(f"largest of 72 weights from “ate”: {', '.join(ranked)}")
assert back > 0.99
assert subject < 0.01
assert cake.min() > 0.39
assert most[names.index("some")] > most[names.index("cake")]

# %% [markdown]
# None of the three heads reads a role.
#
# - Layer 0, head 2 is far above the mean, but it attends to the previous token. Here this token is the subject. In
#   "the cake that I slowly ate" it is "slowly".
# - Layer 0, head 3 is 0.10 above the mean, but it spreads its attention. "Bob's" is three of the eleven tokens, so
#   equal weights would give it 0.27. The apostrophe gives it more than "ate" does, and "ate" attends most to `[SEP]`.
# - In layer 5, head 11, every token attends to "cake", and "ate" no more than the average token. The same happens in
#   another sentence.
#
# The largest of 72 weights is often large: even "some" gets 0.49. So search for the largest weight *above the mean* of
# the same head, and test the result in a sentence in which somebody eats something else:

# %%
wanted = eaten.word("cake")[0].tokens[0]
above = every[:, :, at, wanted] - every[..., wanted].mean(-1)
n, head = divmod(int(above.argmax()), 12)
print(
    f"ate → cake: L{n}H{head}, weight {every[n, head, at, wanted]:.2f}, "
    f"above the mean {above[n, head]:.2f}"
)
near = model.trace("The cake was near the man who slowly ate bread")
row = attention_from(near.attention[n], near.word("ate")[0])[head]
foods = {
    food: round(float(row[near.word(food)[0].tokens[0]]), 2)
    for food in ("cake", "bread")
}
print(f"L{n}H{head}, “{near.text}”: {foods}")
assert (n, head) == (0, 4)
assert abs(above.max() - 0.21) < 0.005
assert foods["cake"] > foods["bread"] > 0.15

# %% [markdown]
# In layer 0, head 4, "ate" gives "cake" 0.21 more than the average token does. But in the test, "cake" gets more than
# "bread", although the bread is eaten. So this head doesn't read the object either. Its real purpose isn't tested
# here.
#
# ## Heads and convolution kernels
#
# Heads are often compared with the kernels of a convolution: several run in parallel, and their results are joined. But
# a kernel of width 3 sees a word and its two neighbours, with the same weights at every position of every text. A head
# sees all words and computes its weights from them, so a row of its matrix needn't be a shifted copy of the row above.

# %%
kernel, count = torch.tensor([0.5, 0.3, 0.2]), len(names)
banded = torch.zeros(count, count)
for shift, weight in zip((-1, 0, 1), kernel, strict=True):
    banded += weight * torch.ones(count - abs(shift)).diag(shift)
signal = torch.randn(count)
torch.testing.assert_close(
    banded @ signal,
    torch.nn.functional.conv1d(signal[None], kernel[None, None], padding=1)[0],
)
chosen = {
    "a kernel of width 3": banded,
    "layer 0, head 2": every[0, 2],
    "layer 5, head 11": every[5, 11],
}
figure = Figure(figsize=(13, 4.4), layout="constrained")
for axes, (title, each) in zip(
    figure.subplots(1, 3), chosen.items(), strict=True
):
    heatmap(each, names, names, title=title, axes=axes)
keep(
    figure,
    "kernels.svg",
    "A kernel's weights are the same band for every word, a head's weights "
    "are made by the words",
)


# %%
def differ(weights):
    """How much weights differ along a diagonal: mean of nine diagonals."""
    along = [weights.diagonal(k, -2, -1).std(-1) for k in range(-4, 5)]
    return torch.stack(along).mean(0)


spread = differ(every).flatten()
smallest, *others = spread.sort().values.tolist()
print(f"kernel {differ(banded):.3f}, L0H2 {smallest:.3f}, ", end="")
print(f"the other 71 heads {others[0]:.3f} to {others[-1]:.3f}")
assert differ(banded) < 1e-6
assert divmod(int(spread.argmin()), 12) == (0, 2)
assert others[0] > 1.5 * smallest

# %% [markdown]
# Along a diagonal, the weights of a kernel don't differ. Among the 72 heads, the head that attends to the previous
# token comes closest to that. The weights of layer 5, head 11 form columns instead.

# %% [markdown]
# ## Ablate a head
#
# A head with a large weight need not matter. To measure its effect, ablate it. Here you ablate the 72 heads one at a
# time, and measure how far the last hidden state of "bank" moves (1 − cosine).

# %%
sat = model.trace("We sat on the river bank.")
bank, river = (sat.word(word)[0].tokens[0] for word in ("bank", "river"))
looks = torch.stack([weights[:, bank, river] for weights in sat.attention])
moved = torch.zeros(6, 12)
for n in range(6):
    for head in range(12):
        cut = regard.ablate(regard.head(n, head))
        ablated = model.trace(sat.text, interventions=[cut])
        moved[n, head] = effect(sat, ablated, "bank").moved

figure = Figure(figsize=(8.5, 7), layout="compressed")
for axes, (title, each) in zip(
    figure.subplots(2, 1),
    {
        "weight of “river” in the row of “bank”": looks,
        "how far “bank” moves without this head, in %": 100 * moved,
    }.items(),
    strict=True,
):
    rows = [f"layer {n}" for n in range(6)]
    heatmap(each, rows, range(12), title=title, labels=("", "head"), axes=axes)
keep(
    figure,
    "ablated.svg",
    "The heads that attend most from bank to river, and those whose ablation "
    "changes bank most: different heads",
)

# %%
for title, each in (("largest weight", looks), ("largest effect", moved)):
    n, head = divmod(int(each.argmax()), 12)
    rank = int((moved > moved[n, head]).sum()) + 1
    print(
        f"{title}: layer {n}, head {head}, weight {looks[n, head]:.2f}, effect "
        f"{moved[n, head]:.3f}, place {rank} of 72 by effect"
    )
assert divmod(int(looks.argmax()), 12) == (near_layer, near_head)
assert int((moved > moved[near_layer, near_head]).sum()) == 8
assert int(moved.argmax()) // 12 == 5

# %% [markdown]
# In the head that attends to the previous token, "bank" gives almost all its attention to "river". But eight other
# heads change "bank" more, and the largest effect comes from a head in the last layer. So measure both before you say
# what a head "is for". `regard why` lists weights and effects for your own sentences.
#
# A complete model has a few more components: [7. A transformer that writes](7_a_transformer_that_writes.py).

# %% [markdown]
# ## Exercises
#
# The cells below don't need the cells above. Replace `...` by your answer and run the cell, or run `regard lesson 6
# --exercises`.

# %%
import torch

import regard
from drawings.exercise import Exercise

torch.manual_seed(0)
head_0, head_1, other_head = torch.randn(3, 5, 2)  # 5 tokens, 2 numbers each

# %% [markdown]
# **1. Ignore a head.** A layer has two heads of width 2, and its output has width 2. Write a 4 × 2 matrix `W_O` such
# that the output doesn't depend on head 1 and loses nothing of head 0.

# %%
answer = ...  # a list of four rows with two numbers


def check(w_o):
    w_o = torch.tensor(w_o).float()
    outputs = [
        torch.cat(heads, -1) @ w_o
        for heads in ((head_0, head_1), (head_0, other_head))
    ]
    change = (outputs[0] - outputs[1]).norm()
    rank = int(torch.linalg.matrix_rank(w_o[:2]))
    right = bool(change == 0 and rank == 2)
    found = f"another head 1 changes the output by {change:.2f}"
    reason = ". The last two rows of W_O are those of head 1"
    return right, (
        f"{found}, and {rank} of 2 dimensions of head 0 are left"
        + reason * right
    )


Exercise(check, answer)

# %%
model = regard.load()
heads = [(layer, head) for layer in range(6) for head in range(12)]
trace = model.trace("The old man walked down to the bank with his nets.")
weights = torch.stack([layer[:] for layer in trace.attention])
print("weights", tuple(weights.shape))

# %% [markdown]
# **2. Find the head that reads ahead.** On this page you met a head that attends to the previous token. Find the head
# of the default model that attends most to the **next** token. `weights` has all its weights, indexed by layer, head,
# query and key. `weights[0, 2].diagonal(1)` has the weights of layer 0, head 2 from each token to the next.

# %%
answer = ...  # (layer, head)


def check(found):
    ahead = weights.diagonal(1, 2, 3).mean(-1)
    layer, head = found
    weight = ahead[layer, head]
    more = int((ahead > weight).sum())
    reason = ". This model has no causal mask, so its heads can look ahead"
    return more == 0, (
        f"layer {layer}, head {head} gives the next token {weight:.2f} on "
        f"average, and {more} heads give it more" + reason * (more == 0)
    )


Exercise(check, answer)

# %% [markdown]
# **3. Which head separates the banks?** `cosine((layer, head))` ablates a head in "We sat on the river bank." and "I
# put money in the bank.", and returns the cosine of the two "bank" vectors. Without which head are the two vectors
# most alike? `heads` lists all 72.


# %%
def cosine(*ablated):
    traces = model.trace(
        ["We sat on the river bank.", "I put money in the bank."],
        interventions=[regard.ablate(regard.head(*each)) for each in ablated],
    )
    banks = [trace["bank"] for trace in traces]
    return float(torch.cosine_similarity(*banks, dim=0))


print(f"with all heads: {cosine():.4f}")

# %%
answer = ...  # (layer, head)


def check(found):
    layer, head = found
    reached = cosine((layer, head))
    more = sum(cosine(each) > reached for each in heads)
    reason = ". No other head, ablated alone, separates the banks as much"
    return more == 0, (
        f"without layer {layer}, head {head} the cosine is {reached:.4f}, and "
        f"{more} heads raise it more" + reason * (more == 0)
    )


Exercise(check, answer)
