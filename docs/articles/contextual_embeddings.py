# %% [markdown]
# # From text to contextual embeddings
#
# This page reproduces the article "Self-Attention Explained with Code" section by section. You see each printed
# number next to the number that was computed when this page was built. A difference would stop the build. The
# exception is the numbers of a single model, DistilBERT.

# %%
import os

import torch
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
)

import regard
from drawings.command import run
from drawings.kept import keep
from drawings.numbers import beside, show_numbers
from drawings.positions import position_grid
from drawings.printed import printed
from regard.explain import head_steps
from regard.nn.positions import sinusoidal
from regard.textbook import attention
from regard.trace.word_rows import gives

article = printed("contextual embeddings")
sentences = article["sentences"]
model = regard.load()  # all-MiniLM-L6-v2
river, money = model.trace(sentences)

# %% [markdown]
# ## 1 From a text to its embeddings
#
# **1.1 Transformers.** [Lesson 7](../lessons/7_a_transformer_that_writes.py) and [lesson 8](../lessons/8_across.py)
# draw and build the whole model.
#
# **1.2 Static embeddings, and 1.3 their limits.** "bank" enters both sentences with the same vector. The output
# vectors differ:

# %%
at = article["pretrained"]["bank_position"]
assert torch.equal(river.token_embeddings[at], money.token_embeddings[at])
alike = torch.cosine_similarity(river["bank"], money["bank"], dim=0)
print(
    f"cosine of the two “bank”: 1.000 as they enter, {alike:.3f} as they leave"
)
assert alike < 0.9

# %% [markdown]
# See also [words before context](../lessons/2_words_before_context.py), where you train such vectors.
#
# **1.4 Learned embeddings, and 1.5 their origin.** The token embedding is a table with a row for each of $V$ entries.
# The article calls it a linear layer with the identity as activation. In fact it is a look-up that gives the same
# result as the product of a one-hot vector with the table.

# %%
table = model.model.get_input_embeddings().weight.detach()  # V × d_model
one_hot = torch.nn.functional.one_hot(
    torch.tensor(river.tokens[at].id), len(table)
)
torch.testing.assert_close(one_hot.float() @ table, river.token_embeddings[at])
print(tuple(table.shape))

# %% [markdown]
# **1.6 The process in four steps.** The model splits the text into tokens, maps them to rows, adds positions, and
# applies attention. A trace has the result of each step.

# %%
print(*(token.text for token in river.tokens))
lengths = [
    each[at].norm()
    for each in (
        river.token_embeddings,
        river.position_embeddings,
        river.segment,
        river.input,
    )
]
names = ["token embedding", "+ positional", "+ segment", "= input"]
show_numbers(torch.stack(lengths)[:, None], names, ["length for “bank”"])
summed = river.token_embeddings + river.position_embeddings + river.segment
torch.testing.assert_close(summed, river.input, atol=1e-5, rtol=0)

# %% [markdown]
# See also [from text to vectors](../lessons/1_text_to_vectors.py) and [traces](../traces.md).
#
# ## 2 Positional encoding
#
# **2.1 The reason.** Without positions, "the cat ate the mouse" and "the mouse ate the cat" give the same vectors,
# only in a different order.

# %%
cat, mouse = model.trace(["the cat ate the mouse", "the mouse ate the cat"])


def mix(x):
    """Self-attention without parameters: softmax(X Xᵀ) X."""
    return (x @ x.T).softmax(-1) @ x


first, second = mix(cat.token_embeddings), mix(mouse.token_embeddings)
torch.testing.assert_close(first[2], second[5])  # "cat" in either
added = [
    mix(each.token_embeddings + each.position_embeddings)
    for each in (cat, mouse)
]
print(
    "with positions “cat” differs by up to "
    f"{(added[0][2] - added[1][5]).abs().max():.3f}"
)
assert not torch.allclose(added[0][2], added[1][5], atol=1e-2)

# %% [markdown]
# **2.2 As in "Attention is All You Need", and 2.3 other kinds.** Sines and cosines, learned, rotary, ALiBi: [lesson
# 3](../lessons/3_position.py) has all four.
#
# **2.4 A positional encoder.** You see the encoding of five positions with width 3, rounded to two decimals, and its
# sum with five embeddings.

# %%
encoder = article["positional_encoding"]
code = sinusoidal(5, 3).round(decimals=2)
rows = [f"position {n}" for n in range(5)]
beside(code, encoder["values"], rows, title="the encoding", digits=2)
given = torch.tensor(encoder["example_input"])
beside(given + code, encoder["example_output"], rows, title="added", digits=2)

# %% [markdown]
# **2.5 The matrix as a plot**, 100 positions of 400 numbers:

# %%
keep(
    position_grid(sinusoidal(100, 400), "sinusoidal positions, 100 × 400"),
    "positions_400.png",
    "A hundred positions of 400 numbers: fast waves on the left, slow ones "
    "on the right",
)

# %% [markdown]
# ## 3 The mechanism
#
# **3.1, 3.2 The effect on "bank".** The article draws the word's movement in a plane with made-up points. Here is the
# movement in a real model, compared with 39 neutral sentences:

# %%
places = article["movement_plot"]
print("made up:", places["bank_before"], "→", places["bank_after"])
run(
    f'regard see "{sentences[0]}" "{sentences[1]}" '
    "--word bank --compare river,money,water,deposit"
)

# %% [markdown]
# [Lesson 9](../lessons/9_contextual_embeddings.py) shows both plots side by side, and [Movement](../movement.md)
# measures twenty such pairs. The article also says that "bank" attends most to itself. In the first layer of this
# model, over all heads, it doesn't:

# %%
row = river.attention[0][:, at].mean(0)
print(
    f"“bank” attends to itself with weight {row[at]:.2f}, and to “river” with "
    f"{row[at - 1]:.2f}"
)
assert row[at] < row[at - 1]

# %% [markdown]
# **3.3 The algorithm, and 3.4 the same with matrices.** Similarity, scale, softmax and sum take four lines, or a
# single line. The article scales by the root of $d_{model}$. A model uses the root of a **single head's** width, here
# $\sqrt{32}$ and not $\sqrt{384}$.

# %%
x = (river.token_embeddings + river.position_embeddings)[1:-1]
similarity = x @ x.T
weights = (similarity / x.shape[1] ** 0.5).softmax(-1)
torch.testing.assert_close(weights @ x, attention(x, x, x)[0])
assert river.attention[0].rule.scale == 32**-0.5

# %% [markdown]
# **3.5 Query, key, value.** This is a head of the model's first layer, with every number computed from the previous
# numbers:

# %%
way = head_steps(river, at, layer=0, head=0)
columns = torch.stack([way.products, way.scaled, way.weights], 1)
words = [token.text for token in river.tokens]
show_numbers(
    columns,
    words,
    ["q · k", "/ √32", "weight"],
    title="“bank”, layer 0, head 0",
)
torch.testing.assert_close(
    way.weights.float(), river.attention[0][0, at], atol=1e-5, rtol=0
)

# %% [markdown]
# See also [`regard steps`](../commands/steps.md) and [lesson 4](../lessons/4_self_attention.py).
#
# **3.6 The database.** If scores are far apart, attention returns a single row, as a database does.

# %%
keys, values = torch.eye(3), torch.tensor([[10.0], [20.0], [90.0]])
assert regard.attend(keys[1:2], keys, values, scale=100.0).output.item() == 20.0

# %% [markdown]
# **3.7 Several heads.** The article wants "ate" to attend to who, whose and what. For each of these words, you see
# the head with the largest weight.

# %%
example = article["heads_example"]
eaten = model.trace(example["sentence"])
word = eaten.word(example["word"])[0]
for target in example["should_attend_to"]:
    wanted = list(eaten.word(target)[0].tokens)
    taken = torch.stack(
        [gives(each, word)[:, wanted].sum(1) for each in eaten.attention]
    )
    layer, head = divmod(int(taken.argmax()), taken.shape[1])
    print(
        f"{word.text} → {target:6} {taken.max():.2f} in layer {layer}, head "
        f"{head}"
    )

# %% [markdown]
# The article also says that each head gets a chunk of the embedding. In fact the output of the projections is cut,
# and each head reads the whole token. [Lesson 6](../lessons/6_heads.py) measures this, and
# [`regard heads`](../commands/heads.md) finds the role of each head.
#
# ## 4 Embeddings of a pretrained model
#
# **4.1 to 4.4.** The article uses DistilBERT and says that it is 40 % smaller than BERT and 60 % faster. You can
# check the size by counting the parameters. We didn't measure the speed here.

# %%
with torch.device("meta"):  # sizes alone
    pair = DistilBertModel(DistilBertConfig()), BertModel(BertConfig())
small, large = (
    sum(part.numel() for part in each.parameters()) for each in pair
)
print(f"{small:,} against {large:,}: {1 - small / large:.0%} fewer")

# %% [markdown]
# **4.5 Tokens.** MiniLM has BERT's vocabulary, like DistilBERT, so tokens and positions are the same as in the
# article:

# %%
assert [token.text for token in river.tokens] == article["pretrained"][
    "tokens_of_sentence_1"
]
assert river.word("bank")[0].tokens[0] == money.word("bank")[0].tokens[0] == at
print("“bank” is token", at, "of both")

# %% [markdown]
# **4.6, 4.7 Learned and contextual embeddings.** The 87 numbers are DistilBERT's. To check them, set
# `REGARD_LESSON_MODEL` to its name or folder. Fifteen of the numbers are of "bank", and 72 are corners of two
# tensors. Without the model, the numbers are not checked.


# %%
def corners(rows):
    """The first and last three rows and columns, as PyTorch prints a large
    tensor."""
    return torch.cat([rows[:3], rows[-3:]])[:, [0, 1, 2, -3, -2, -1]]


figures = article["pretrained"]
folder = os.environ.get("REGARD_LESSON_MODEL")
if folder:
    original = regard.load(folder)
    a, b = original.trace(sentences)
    alone = original.trace("bank").token_embeddings[1, :5]
    beside(
        alone,
        figures["learned_embedding_of_bank_first_5"],
        title="token embedding",
        digits=2,
    )
    both = figures["contextual_embedding_of_bank_first_5"].values()
    for found, expected in zip((a, b), both, strict=True):
        beside(
            found.last_hidden_state[at, :5],
            expected,
            title="contextual",
            digits=2,
        )
    beside(
        corners(a.token_embeddings),
        figures["learned_corners"],
        title="token embeddings, corners",
    )
    beside(
        corners(a.last_hidden_state),
        figures["contextual_corners"],
        title="contextual, corners",
    )
else:
    print(
        "DistilBERT wasn't available for this page, so its 87 numbers are not "
        "checked here"
    )
show_numbers(
    torch.stack(
        [
            model.trace("bank").token_embeddings[1],
            river.last_hidden_state[at],
            money.last_hidden_state[at],
        ]
    )[:, :5],
    ["token embedding", "river text", "money text"],
    title="the first five of “bank” in all-MiniLM-L6-v2",
)

# %% [markdown]
# **4.8 Ids to tokens.** A trace has both, and the characters of each token.

# %%
print(*(f"{token.id} {token.text}" for token in river.tokens[at - 1 : at + 1]))

# %% [markdown]
# ## 5 Conclusion
#
# To continue, compute [contextual embeddings](../lessons/9_contextual_embeddings.py) of pretrained models in three
# ways and measure polysemy, or use [`regard see`](../commands/see.md) for any word and model.
