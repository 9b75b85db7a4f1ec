# %% [markdown]
# # From text to contextual embeddings
#
# The whole way on a real model: text → tokens → learned embeddings → positions → self-attention → contextual
# embeddings. The plan and the small figures are those of "Self-Attention Explained with Code", asserted as printed; the
# large ones come from all-MiniLM-L6-v2, which the extra `minilm` brings along, and are measured on the way.

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import regard
from regard.explain.movement import movement
from regard.explain.positions import encoding
from regard.explain.similarity import across_texts, cosine, dot, euclidean
from regard.explain.summary import summarise
from regard.nn.positions import rotary_angles, rotate, sinusoidal
from regard.textbook import self_attention, softmax
from regard.trace.trace import gives, special_share
from regard.views.figures.positions import draw_positions
from regard.views.figures.summary import draw

OUT = Path(os.environ.get("REGARD_OUT", "out/walkthroughs"))
OUT.mkdir(parents=True, exist_ok=True)

model = regard.load()
sentences = [
    "Write a poem about a man fishing on a river bank.",
    "Write a poem about a man withdrawing money from a bank.",
]
river, money = model.trace(sentences)
at, there = river.word("bank")[0].tokens[0], money.word("bank")[0].tokens[0]
print([token.text for token in river.tokens])
assert (at, there) == (11, 11)

# %% [markdown]
# ## Learned embeddings: static
#
# The model's table has a row for each entry of its vocabulary, learned in training, the same in every text. To look a
# row up is to multiply the table with a one-hot vector; it is no layer with an activation, only a choice.

# %%
table = model.model.get_input_embeddings().weight.detach()
one_hot = torch.nn.functional.one_hot(torch.tensor(river.tokens[at].id), len(table)).float()
torch.testing.assert_close(one_hot @ table, river.learned[at])
assert torch.equal(river.learned[at], money.learned[there])

# %% [markdown]
# ## Three measures of likeness
#
# The dot product grows with length, the cosine does not, and Euclidean distance says how far apart, small for alike. On
# learned embeddings of real words they need not agree about who is nearest:

# %%
words = {word: model.trace(word).learned[1] for word in ("bank", "river", "water", "money", "loan", "poem")}
for name, other in list(words.items())[1:]:
    measured = (dot(words["bank"], other), cosine(words["bank"], other), euclidean(words["bank"], other))
    print(f"bank – {name:6} dot {measured[0]:6.3f}   cosine {measured[1]:6.3f}   distance {measured[2]:6.3f}")
    lengths = words["bank"].norm() * other.norm()
    assert abs(measured[0] - measured[1] * float(lengths)) < 1e-4
    assert abs(measured[2] ** 2 - float(words["bank"].norm() ** 2 + other.norm() ** 2) + 2 * measured[0]) < 1e-3

# %% [markdown]
# ## Positions
#
# $PE_{pos, 2i} = \sin(pos / 10000^{2i/d})$, $PE_{pos, 2i+1} = \cos$ of the same, added to the embeddings.

# %%
code = sinusoidal(5, 3).round(decimals=2)  # of an odd width the last column is dropped
expected = [[0, 1, 0], [0.84, 0.54, 0], [0.91, -0.42, 0], [0.14, -0.99, 0.01], [-0.76, -0.65, 0.01]]
torch.testing.assert_close(code, torch.tensor(expected), atol=1e-6, rtol=0)
given = [[0.12, 0.94, 0.90], [0.14, 0.65, 0.22], [0.29, 0.58, 0.31], [0.69, 0.37, 0.62], [0.25, 0.61, 0.65]]
added = [[0.12, 1.94, 0.90], [0.98, 1.19, 0.22], [1.20, 0.16, 0.31], [0.83, -0.62, 0.63], [-0.51, -0.04, 0.66]]
torch.testing.assert_close(torch.tensor(given) + code, torch.tensor(added), atol=1e-6, rtol=0)

# %% [markdown]
# The values stay within 1, each column repeats, and what makes them useful: the code at $pos + k$ is the code at $pos$
# turned by an angle that depends on $k$ alone, one matrix for all positions.

# %%
draw_positions("sinusoidal", encoding("sinusoidal", 100, 400), "", OUT / "positions.png")
figure = plt.figure(figsize=(9, 4.6), layout="constrained")
drawn = figure.add_subplot(frameon=False, xticks=[], yticks=[]).imshow(plt.imread(OUT / "positions.png"))

# %%
codes, k = sinusoidal(100, 400).double(), 7
angles = rotary_angles(torch.tensor(k), 400)
turn = torch.block_diag(*[torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]]).double() for a in angles])
torch.testing.assert_close(codes[:-k] @ turn.T, codes[k:], atol=1e-5, rtol=0)
assert float(codes.abs().max()) <= 1

# %% [markdown]
# Other models learn a table of positions (BERT's kind: `positional` is a part of the trace), or turn queries and keys
# inside attention (rotary), so that a score depends on the offset between two tokens and not on where they stand.

# %%
torch.testing.assert_close(river.learned + river.positional + river.segment, river.input, atol=1e-5, rtol=0)
assert torch.equal(river.positional[:5], money.positional[:5])
q, key = torch.randn(2, 64).double()
score = [
    rotate(q[None], rotary_angles(torch.tensor([p]), 64))
    @ rotate(key[None], rotary_angles(torch.tensor([p - 3]), 64)).T
    for p in (3, 50, 500)
]
torch.testing.assert_close(torch.stack(score), score[0].expand(3, 1, 1))

# %% [markdown]
# ## Why order needs them
#
# "the cat ate the mouse" against "the mouse ate the cat". Attention by itself sees a set: without positions "cat" comes
# out the same in both, only in another row. With them it does not.

# %%
cat, mouse = (model.trace(text) for text in ("the cat ate the mouse", "the mouse ate the cat"))
swapped = [0, 1, 5, 3, 4, 2, 6]  # [CLS] the cat ate the mouse [SEP], with cat and mouse exchanged
without = self_attention(cat.learned), self_attention(mouse.learned)
torch.testing.assert_close(without[0][swapped], without[1])
with_them = self_attention(cat.learned + cat.positional), self_attention(mouse.learned + mouse.positional)
print(f"largest change: {(without[0][swapped] - without[1]).abs().max():.1e} without, ", end="")
print(f"{(with_them[0][swapped] - with_them[1]).abs().max():.3f} with positions")
assert float((with_them[0][swapped] - with_them[1]).abs().max()) > 1e-2

# %% [markdown]
# ## The algorithm, without matrices and with them
#
# For each word: likeness to every word, scaled, softmax, weighted sum. The loops and the three matrix products are the
# same; the scale is $1/\sqrt{d_k}$ of **one head** (32 here), not of the model's width (384) as is sometimes written.
#
# Query, key and value are a look-up in a database: the query is compared with every key, and where a database returns
# the value of the one key that is equal, attention returns a mixture, more of those that are more alike. With scores
# far apart it is the database.

# %%
one = river.attention[0]
width = one.query.shape[-1]
looped = torch.zeros(len(river.tokens), len(river.tokens))
for i in range(len(river.tokens)):
    likeness = torch.stack([one.query[0, 3, i] @ one.key[0, 3, j] for j in range(len(river.tokens))])
    looped[i] = softmax(likeness / width**0.5)
torch.testing.assert_close(looped, one[3], atol=1e-5, rtol=0)
assert one.rule.scale == width**-0.5 == 32**-0.5

keys, values = torch.eye(3), torch.tensor([[10.0], [20.0], [90.0]])
for sharpness in (1.0, 5.0, 100.0):
    print(
        f"asked for key 1, scores × {sharpness:5.1f}:", regard.attend(keys[1:2], keys, values, scale=sharpness).output
    )
assert regard.attend(keys[1:2], keys, values, scale=100.0).output.item() == 20.0

# %% [markdown]
# ## Contextual embeddings
#
# "bank" enters both texts as the same vector and leaves as two. It is also said that a word weighs itself most: not
# here.

# %%
cosines = across_texts([(river, "bank"), (money, "bank")])[:, 0, 1]
print("cosine of the two banks, layer by layer:", [round(c, 3) for c in cosines.tolist()])
assert abs(float(cosines[-1]) - 0.847) < 5e-4
row = one[:, at].mean(0)
print(f"layer 0: bank → itself {row[at]:.3f}, river {row[at - 1]:.3f}, fishing {row[at - 4]:.3f}")
assert float(row[at]) < float(row[at - 1])
shares = [
    float(special_share(gives(weights, river.word("bank")[0]).mean(0), river.tokens)) for weights in river.attention
]
print("share that special tokens take, by layer:", [round(s, 2) for s in shares])

# %%
toy = {"money": (0.5, 3.0), "deposit": (1.5, 1.2), "withdraw": (2.5, 0.5),
       "nature": (6.0, 8.0), "river": (7.5, 7.5), "water": (8.0, 5.5)}  # fmt: skip
references = [model.trace(word) for word in ("money", "deposit", "nature", "river", "water")]
moved = movement([(t, t.word("bank")[0]) for t in (river, money)], [river, money], references)
figure = plt.figure(figsize=(13, 5.2), layout="constrained")
left, right = figure.subplots(1, 2)
for word, place in toy.items():
    left.plot(*place, "o", color="#d55e00" if place[0] < 5 else "#0072b2")
    left.annotate(word, place, xytext=(6, 4), textcoords="offset points")
left.plot(*zip((4.5, 4.5), (6.7, 6.5), strict=True), "--k")
left.plot(4.5, 4.5, "ko")
left.plot(6.7, 6.5, "k*", markersize=15)
left.annotate("bank, before", (4.5, 4.5), xytext=(8, -12), textcoords="offset points")
left.annotate("bank, after", (6.7, 6.5), xytext=(8, -12), textcoords="offset points")
left.set(xlim=(0, 10), ylim=(0, 10), title="As it is usually drawn (made-up coordinates)")
for path, name, colour in zip(moved.words, ("river", "money"), ("#0072b2", "#d55e00"), strict=True):
    right.plot(*zip(*path, strict=True), "--", color=colour)
    right.plot(*path[-1], "*", color=colour, markersize=15, label=f"bank in the {name} text")
right.plot(*moved.words[0][0], "ko")
right.annotate("bank, before", moved.words[0][0], xytext=(8, -12), textcoords="offset points")
for trace, path in zip(references, moved.references, strict=True):
    right.plot(*path[-1], "D", color="#666666")
    right.annotate(trace.text, path[-1], xytext=(6, 4), textcoords="offset points")
right.margins(0.12)
right.set_aspect("equal", adjustable="datalim")
right.set_title("As it is in MiniLM: a ★ nearer to a word has the larger cosine to it")
assert moved.disagreement is None  # the plane was held against all 384 dimensions
right.legend(frameon=False)
figure.savefig(OUT / "bank_moves.png", dpi=130)

# %% [markdown]
# ## What each head takes
#
# "ate" should look at who, whose and what. Which head does? Measured, layer by layer: the largest weight a head gives.

# %%
eaten = model.trace("I ate some of Bob's chocolate cake")
ate = eaten.word("ate")[0]
for target in ("I", "Bob's", "cake"):
    wanted = list(eaten.word(target)[0].tokens)
    taken = torch.stack([gives(weights, ate)[:, wanted].sum(1) for weights in eaten.attention])  # (N, H)
    layer, head = divmod(int(taken.argmax()), taken.shape[1])
    print(f"ate → {target:6} {taken.max():.2f} in layer {layer}, head {head}; mean of all heads {taken.mean():.2f}")
    assert float(taken.max()) > float(taken.mean())

# %% [markdown]
# Lines from the word to what each head of a layer attends to, as wide as the weight:

# %%
draw(summarise([eaten], "ate"), [eaten], OUT / "ate_heads.png", layer=0)
figure = plt.figure(figsize=(13, 9), layout="constrained")
drawn = figure.add_subplot(frameon=False, xticks=[], yticks=[]).imshow(plt.imread(OUT / "ate_heads.png"))

# %% [markdown]
# ## The published model
#
# The article's own figures are of distilbert-base-uncased. They are asserted where `REGARD_DISTILBERT` names a folder
# that has it, or `REGARD_HUB=1` allows to fetch it; then the next cell says so.

# %%
folder = os.environ.get("REGARD_DISTILBERT")
if folder or os.environ.get("REGARD_HUB"):
    original = regard.load(folder or "distilbert-base-uncased")
    a, b = original.trace(sentences)
    seen = original.trace("bank").learned[1, :5], a.contextual[11, :5], b.contextual[11, :5]
    figures = [
        [-0.03, -0.06, -0.09, -0.07, -0.03],
        [0.15, -0.16, -0.17, -0.08, 0.44],
        [0.27, -0.23, -0.23, -0.21, 0.79],
    ]
    torch.testing.assert_close(torch.stack(seen), torch.tensor(figures), atol=5.1e-3, rtol=0)
    print("distilbert-base-uncased: all 15 figures hold")
