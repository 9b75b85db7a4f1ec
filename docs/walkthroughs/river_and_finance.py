# %% [markdown]
# # River and finance
#
# "bank" stands among river words in one text and among money words in another. A layer that looks at one word at a time
# cannot tell the two apart. Four layers are tried here, each with a little more than the one before, on embeddings of
# four numbers that can be followed by eye: a plain matrix, attention without any parameters, attention with
# projections, and the layer as it is used.
#
# Inputs and figures are those of "Self-Attention from First Principles"; each is asserted to its three decimals.

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import regard
from regard.explain.planes import plane
from regard.explain.similarity import cosine
from regard.textbook import self_attention, softmax
from regard.views.figures.heatmap import heatmap

OUT = Path(os.environ.get("REGARD_OUT", "out/walkthroughs"))
OUT.mkdir(parents=True, exist_ok=True)


def check(found: torch.Tensor, expected: list[list[float]]) -> None:
    """Compare with figures of three printed decimals."""
    torch.testing.assert_close(found.detach(), torch.tensor(expected), atol=5.1e-4, rtol=0.0)


# %% [markdown]
# ## Two texts of three words
#
# The first number stands for water, the second for money; "bank" has both, in equal parts.

# %%
embeddings = {
    "stream": [1.2, 0.0, 0.0, 0.3],
    "mud": [0.9, 0.0, 0.0, 0.9],
    "money": [0.0, 1.4, 0.0, 0.1],
    "loan": [0.0, 1.1, 0.0, 0.6],
    "bank": [0.8, 0.8, 0.2, 0.0],
}
texts = {"river": ["stream", "bank", "mud"], "finance": ["money", "bank", "loan"]}
x = {name: torch.tensor([embeddings[word] for word in words]) for name, words in texts.items()}
BANK = 1  # it stands in the middle of both

# %% [markdown]
# ## A layer without context
#
# $y_i = x_i W$: each word by itself. "bank" comes out the same, to the last bit, whatever stands around it.

# %%
w = torch.tensor([[1.0, 0.2, 0.0], [0.1, 1.1, 0.0], [0.5, 0.5, 1.0], [0.0, 0.3, 0.8]])
plain = {name: rows @ w for name, rows in x.items()}
check(plain["river"], [[1.200, 0.330, 0.240], [0.980, 1.140, 0.200], [0.900, 0.450, 0.720]])
check(plain["finance"], [[0.140, 1.570, 0.080], [0.980, 1.140, 0.200], [0.110, 1.390, 0.480]])
assert torch.equal(plain["river"][BANK], plain["finance"][BANK])
print("bank, without context:", plain["river"][BANK].tolist(), plain["finance"][BANK].tolist())

# %% [markdown]
# ## Who is like whom
#
# The dot product of two vectors is large where they point the same way. All pairs at once are $X X^T$: a symmetric
# matrix, one row a word. They are the scores of attention before anything is done to them.

# %%
scores = {name: regard.attend(rows, rows, rows, scale=1.0).weights.scores[:] for name, rows in x.items()}
check(scores["river"], [[1.53, 0.96, 1.35], [0.96, 1.32, 0.72], [1.35, 0.72, 1.62]])
check(scores["finance"], [[1.97, 1.12, 1.60], [1.12, 1.32, 0.88], [1.60, 0.88, 1.57]])
for name, rows in x.items():
    torch.testing.assert_close(scores[name], rows @ rows.T)
    torch.testing.assert_close(scores[name], scores[name].T)

# %% [markdown]
# ## Attention without parameters
#
# Softmax makes of each row of scores weights that are positive and sum to 1, and each word becomes the weighted mean of
# all: $\mathrm{softmax}(X X^T)\, X$. No parameter was learned, and yet "bank" is now another word in each text: more
# water than money in one, three times as much money as water in the other.

# %%
mixed = {name: self_attention(rows) for name, rows in x.items()}
for name, rows in x.items():
    torch.testing.assert_close(mixed[name], softmax(rows @ rows.T) @ rows)
check(mixed["river"], [[1.001, 0.188, 0.047, 0.438], [0.949, 0.356, 0.089, 0.313], [0.987, 0.150, 0.037, 0.520]])
check(mixed["finance"], [[0.161, 1.181, 0.040, 0.243], [0.325, 1.078, 0.081, 0.190], [0.158, 1.163, 0.040, 0.278]])
for name in texts:
    water, money = mixed[name][BANK, :2].tolist()
    print(f"bank in the {name} text: {water:.3f} water, {money:.3f} money")
assert mixed["river"][BANK, 0] > mixed["river"][BANK, 1]
assert mixed["finance"][BANK, 1] > mixed["finance"][BANK, 0]

# %% [markdown]
# ## Query, key and value
#
# So far a word looks for what it is itself. With a query $x W_q$ it can look for something else, with a key $x W_k$ it
# can be found as something else, and with a value $x W_v$ it can hand over something else again. Here the matrices are
# written by hand: queries and keys look at water and money only, values pass on those two and the rest joined. Queries
# and keys are two wide, so scores are divided by $\sqrt{2}$.

# %%
w_query = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.2, 0.2], [0.0, 0.0]])
w_key = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.1, 0.1]])
w_value = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.5]])
projected = regard.SelfAttention.from_weights(w_query, w_key, w_value, convention="x @ W")
check(projected(x["river"]), [[0.992, 0.221, 0.261], [0.957, 0.314, 0.256], [0.986, 0.232, 0.263]])
check(projected(x["finance"]), [[0.188, 1.158, 0.169], [0.297, 1.089, 0.180], [0.204, 1.146, 0.172]])
for rows in x.values():
    by_hand = softmax((rows @ w_query) @ (rows @ w_key).T / 2**0.5) @ (rows @ w_value)
    torch.testing.assert_close(projected(rows), by_hand)

# %%
for name, rows in x.items():
    _, weights = projected(rows, return_attention=True)
    figure = plt.figure(figsize=(4, 3.2), layout="constrained")
    title, labels = f"weights in the {name} text", ("query", "key")
    heatmap(weights.dense(), texts[name], texts[name], title=title, labels=labels, axes=figure.add_subplot())
    figure.savefig(OUT / f"river_and_finance_{name}.png", dpi=130)

# %% [markdown]
# ## The layer
#
# As it is used, the three matrices are parameters that training fills. Before training they are random: here four
# numbers in and three out, so that scores are divided by $\sqrt{3}$.

# %%
torch.manual_seed(0)
query, key, value = torch.rand(4, 3), torch.rand(4, 3), torch.rand(4, 3)
layer = regard.SelfAttention.from_weights(query, key, value, convention="x @ W")
check(layer(x["river"]), [[0.540, 0.705, 1.030], [0.538, 0.706, 1.030], [0.541, 0.703, 1.025]])
check(layer(x["finance"]), [[0.220, 0.418, 0.642], [0.213, 0.404, 0.624], [0.216, 0.409, 0.630]])
assert [p.requires_grad for p in layer.parameters()] == [True, True, True]

# %% [markdown]
# ## What context did to "bank"
#
# One number for each layer: the cosine between the two banks. 1 means that the layer cannot tell them apart.

# %%
stages = {
    "embedding": x,
    "plain matrix": plain,
    "attention without parameters": mixed,
    "with projections": {name: projected(rows) for name, rows in x.items()},
}
alike = {name: cosine(rows["river"][BANK].detach(), rows["finance"][BANK].detach()) for name, rows in stages.items()}
for name, value in alike.items():
    print(f"{name:30} {value:.3f}")
assert abs(alike["embedding"] - 1) < 1e-6
assert abs(alike["plain matrix"] - 1) < 1e-6
assert alike["attention without parameters"] < 0.7
assert alike["with projections"] < 0.7

# %% [markdown]
# And as a picture: all words on the plane on which they differ most, "bank" before attention and after it, pulled to
# its neighbours in each text. A weighted mean cannot leave the ground between them, which is why real models put
# projections, a residual and a feed-forward layer around it.

# %%
flat = plane(torch.cat([*x.values(), *mixed.values()]))
figure = plt.figure(figsize=(7, 4.6), layout="constrained")
axes = figure.add_subplot()
for name, colour in (("river", "#0072b2"), ("finance", "#d55e00")):
    before, after = flat.place(x[name]), flat.place(mixed[name])
    for number, word in enumerate(texts[name]):
        if word != "bank":
            axes.plot(*before[number], "o", color=colour)
            axes.annotate(word, before[number].tolist(), xytext=(6, 4), textcoords="offset points", color=colour)
    axes.plot(*zip(before[BANK].tolist(), after[BANK].tolist(), strict=True), "--", color=colour)
    axes.plot(*after[BANK], "*", markersize=14, color=colour, label=f"bank in the {name} text")
axes.plot(*flat.place(x["river"])[BANK], "ko")
axes.annotate("bank", flat.place(x["river"])[BANK].tolist(), xytext=(6, 6), textcoords="offset points", weight="bold")
axes.margins(0.12)
axes.set_title("“bank” before attention (black) and after it (stars)")
axes.set_xlabel(f"first principal component ({flat.share[0]:.0%} of the variance)")
axes.set_ylabel(f"second ({flat.share[1]:.0%})")
axes.legend(frameon=False)
figure.savefig(OUT / "river_and_finance_bank.png", dpi=130)
