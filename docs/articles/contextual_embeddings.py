# %% [markdown]
# # From text to contextual embeddings
#
# This page reproduces the article "Self-Attention Explained with Code" section by section, under the article's
# section numbers. You follow one word, "bank", from a row of a table to a vector that depends on its sentence. The
# numbers that the article prints are next to the numbers computed here, and a difference would stop the page. The
# exception is 87 numbers of DistilBERT, which you can only check with this model (section 4.6).

# %%
import os

import torch
from matplotlib.figure import Figure
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
)

import regard
from drawings import attention as schematic
from drawings import moves, transformer
from drawings.command import run
from drawings.kept import keep
from drawings.links import links
from drawings.numbers import beside, show_numbers
from drawings.positions import position_grid, rotation
from drawings.printed import printed
from regard.explain import head_steps
from regard.explain.weights.head_steps import steps
from regard.nn.positions import rotary_angles, rotate, sinusoidal
from regard.textbook import attention
from regard.trace.labelled_map import attention_from

article = printed("contextual embeddings")
sentences = article["sentences"]
model = regard.load()  # all-MiniLM-L6-v2
river, money = model.trace(sentences)

# %% [markdown]
# ## 1 From a text to its embeddings
#
# ### 1.1 Transformers
#
# A transformer turns a text into one vector per token. [Lesson 7](../lessons/7_a_transformer_that_writes.py) and
# [lesson 8](../lessons/8_across.py) draw and build the whole model.
#
# ### 1.2 The limit of static embeddings
#
# A static embedding has one vector per word, whatever the sentence is about. So "bank" has the same vector next to a
# river and next to money. Lesson 2, [words before context](../lessons/2_words_before_context.py), trains such
# vectors.
#
# ### 1.3 From static to contextual embeddings
#
# A transformer starts with such a vector, so "bank" enters both sentences below with the same numbers. Attention
# makes the output vectors differ:

# %%
at = article["pretrained"]["bank_position"]
assert torch.equal(river.token_embeddings[at], money.token_embeddings[at])
alike = torch.cosine_similarity(river["bank"], money["bank"], dim=0)
print("cosine of the two “bank”: 1.000 as they enter")
print(f"                          {alike:.3f} as they leave")
assert alike < 0.9

# %% [markdown]
# ### 1.4 The table of learned embeddings
#
# The first layer of a transformer is the token embedding. It is a table with a row for each of the $V$ tokens in the
# vocabulary. Here it is framed in the original model:

# %%
config = regard.TransformerConfig.translator(
    37000,
    start=0,
    layers=6,
    d_model=512,
    heads=8,
    d_hidden=2048,
    norm_first=False,
)
keep(
    transformer.blocks(config, mark_tables=True),
    "embedding_layer.svg",
    "The transformer of 2017, its tables of embeddings framed at the foot",
)

# %% [markdown]
# The article calls the table a linear layer with the identity as activation. In fact it is a look-up. It gives the same
# result as the product of the table with a one-hot vector, which is 1 at the token's id and 0 elsewhere:

# %%
table = model.model.get_input_embeddings().weight.detach()  # V × d_model
one_hot = torch.nn.functional.one_hot(
    torch.tensor(river.tokens[at].id), len(table)
)
row = one_hot.float() @ table
torch.testing.assert_close(row, river.token_embeddings[at])
print(f"one-hot × table = row {river.tokens[at].id} of", tuple(table.shape))

# %% [markdown]
# ### 1.5 Where the numbers in the table come from
#
# The table starts with random numbers. Training changes them together with all other weights, and afterwards you can
# read any row. Lesson 7 trains [a whole transformer](../lessons/7_a_transformer_that_writes.py) with such a table.
#
# ### 1.6 The process in four steps
#
# The model splits the text into tokens, maps them to rows, adds positions, and applies attention:

# %%
inner = slice(1, -2)  # without [CLS], the full stop and [SEP]
words = [token.text for token in river.tokens[inner]]
x = (river.token_embeddings + river.position_embeddings)[inner]
figure = transformer.embedding_process(
    words,
    [token.id for token in river.tokens[inner]],
    river.token_embeddings[inner],
    len(table),
    river.position_embeddings[inner],
    attention(x, x, x)[0],
)
keep(
    figure,
    "overview.svg",
    "From eleven tokens to ids, rows of the table, positions added, "
    "attention, y",
)

# %% [markdown]
# The position embedding of "bank" is a third as long as its token embedding, but hardly changes its direction: the
# cosine of the vectors with and without the position is 0.95.

# %%
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
alike = torch.cosine_similarity(x[-1], river.token_embeddings[at], dim=0)
print(f"cosine of “bank” with and without its position: {alike:.3f}")
assert round(float(alike), 2) == 0.95
assert round(float(lengths[1] / lengths[0]), 1) == 0.3
summed = river.token_embeddings + river.position_embeddings + river.segment
torch.testing.assert_close(summed, river.input, atol=1e-5, rtol=0)

# %% [markdown]
# The segment embedding is the same vector for all tokens of a single text. Lesson 1 computes the same steps [from
# text to vectors](../lessons/1_text_to_vectors.py), and a [trace](../traces.md) has the result of each step.
#
# ## 2 Positional encoding
#
# ### 2.1 Why positions are needed
#
# Attention reads all words at once, without order. Without positions, "the cat ate the mouse" and
# "the mouse ate the cat" give the same vectors, only in a different order.

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
show_numbers(
    torch.stack(
        [
            (first[2] - second[5]).abs().max(),
            (added[0][2] - added[1][5]).abs().max(),
        ]
    )[:, None],
    ["without positions", "with positions"],
    ["largest difference of the two “cat”"],
)
assert not torch.allclose(added[0][2], added[1][5], atol=1e-2)

# %% [markdown]
# ### 2.2 The waves of "Attention is All You Need"
#
# Each pair of columns is a wave, and the next pair is slower:
#
# $$ PE_{pos, 2i} = \sin\left(\frac{pos}{10000^{2i/d}}\right) $$
#
# $$ PE_{pos, 2i+1} = \cos\left(\frac{pos}{10000^{2i/d}}\right) $$
#
# The number 10,000 is a choice of the authors. It sets the slowest wave, and `sinusoidal(…, base=)` changes it. All
# numbers are between −1 and 1, and a step of k positions is the same rotation everywhere ([lesson
# 3](../lessons/3_position.py) checks both). There is a code for any position, but a model is trained up to its
# **context length**. The article gives 4,096 tokens for GPT-3, which had 2,048 (Brown et al. 2020), and 128,000 for
# GPT-4, one of the models behind ChatGPT. MiniLM has 512.
#
# ### 2.3 Other encodings
#
# Other models learn a vector for each position, rotate their vectors, or reduce the scores of distant words (ALiBi).
# Rotary encodings (Llama 2, PaLM) add nothing to the embedding. They rotate the two vectors of a dot product by angles
# that grow with their positions, so the dot product depends only on the distance:

# %%
places = [(0, 1), (3, 4), (0, 2)]  # of a query and a key
query, key = (
    rotate(
        torch.tensor([hand] * 3),
        rotary_angles(torch.tensor([place[n] for place in places]), 2),
    )
    for n, hand in enumerate(([1.0, 0.2], [0.9, -0.3]))
)
torch.testing.assert_close(query[0] @ key[0], query[1] @ key[1])
keep(
    rotation(query, key, places),
    "rotation.svg",
    "A query and a key rotated by their positions: at equal distance, an "
    "equal dot product",
)

# %% [markdown]
# The first two panels have the same distance and the same dot product. [Lesson 3](../lessons/3_position.py) has all
# four encodings.
#
# ### 2.4 A positional encoder in Python
#
# Here is the encoding of five positions with width 3, rounded to two decimals, and its sum with five embeddings.

# %%
encoder = article["positional_encoding"]
code = sinusoidal(5, 3).round(decimals=2)
rows = [f"position {n}" for n in range(5)]
beside(code, encoder["values"], rows, title="the encoding", digits=2)
given = torch.tensor(encoder["example_input"])
added = encoder["example_output"]
beside(given + code, added, rows, title="added", digits=2)

# %% [markdown]
# ### 2.5 The matrix as a plot
#
# A row is a position, and a column is one of its 400 numbers:

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
# ### 3.1 Overview
#
# In self-attention, the words of a text attend to each other. In [cross-attention](../lessons/8_across.py) they
# attend to another text. Attention is the core of a transformer layer, and other cores can take its place, such as
# Mamba, which updates a state of fixed size with each token (lesson 11). regard shows attention, so it [doesn't
# support Mamba](../families.md).
#
# ### 3.2 How attention moves "bank"
#
# The article says that attention moves "bank" towards the meaning that the text needs, and draws it with made-up
# points. In this model that holds for the river text only. The right plot is measured. A grey bar is the range of the
# cosine in 39 neutral sentences, such as "Nobody said anything about the bank."

# %%
toy = article["movement_plot"]
references = ["river", "money", "water", "deposit"]
seen = regard.see(sentences, "bank", references=references, model=model)
near, at_end = seen.summary.neutral, dict[str, list[float]]()
for each in seen.summary.references:  # the river text, then the money text
    at_end.setdefault(each.word, []).append(each.last_hidden_state)
figure, (left, right) = moves.panels(
    "As in the article (made-up points)", "In MiniLM (measured)"
)
moves.words(left, toy["words"])
ends = toy["bank_before"], toy["bank_after"]
moves.move(left, *ends, "k", "“bank” after attention")
moves.legend(left, "“bank” before attention")
names = [f"“bank” in the {name} text" for name in ("river", "money")]
neutral = {
    each.word: [v[-1] for v in (each.low, each.mean, each.high)]
    for each in near
}
moves.dots(right, neutral, at_end, names)
right.set_xlabel("cosine of “bank” to each word, at the end")
outside = [
    [not low <= value <= high for value in at_end[word]]
    for word, (low, _, high) in neutral.items()
]
assert [any(text) for text in zip(*outside, strict=True)] == [True, False]
keep(
    figure,
    "bank_moves.svg",
    "bank moves towards river: with made-up points on the left, measured "
    "cosines on the right",
)

# %%
run(
    f'regard see "{sentences[0]}" "{sentences[1]}" '
    f"--word bank --compare {','.join(references)}"
)

# %% [markdown]
# The river text moves "bank" towards "river": the cosine is 0.48, and 0.29 to 0.39 in neutral sentences. In the money
# text, the cosine to "money" is 0.29, which is no more than in neutral sentences (0.32 on average). [Lesson
# 9](../lessons/9_contextual_embeddings.py) follows the word through all layers, and the page on
# [movement](../movement.md) has twenty such pairs.
#
# The article also says that "bank" attends most to itself. In the first layer of this model, on average over all
# heads, it doesn't:

# %%
row = river.attention[0][:, at].mean(0)
print(f"weight for itself {row[at]:.2f}, for “river” {row[at - 1]:.2f}")
assert row[at] < row[at - 1]

# %% [markdown]
# ### 3.3 The algorithm
#
# How much should "bank" take from each word? Measure the similarity of "bank" to every word, scale it, turn it into
# weights, and add up the vectors with these weights. The similarity is a dot product, which is large for long vectors
# that point in the same direction:
#
# $$ x \cdot y = \sum_i x_i y_i $$
#
# In the pictures, the vector that asks is blue, the vectors it is compared with are orange, and the vectors that are
# added up are green. All of them are rows of the same matrix $X$. Section 3.5 makes three different matrices from it.

# %%
maps = regard.attend(x, x, x).weights
way = steps(maps, x, query=len(words) - 1)
assert round(float(way.products[-1]), 2) == 1.93
letters = "x", "X", "X"
keep(
    schematic.head_step(way, "bank", words, "scores", letters),
    "s_bank.svg",
    "The vector of bank times eleven rows gives eleven products",
)

# %% [markdown]
# The product of "bank" with itself is the largest, 1.93 (with positions; lesson 4 leaves them out and has 1.79). Next,
# the products are scaled, and the softmax turns them into weights. Then the rows are added up with these weights:

# %%
show_numbers(
    torch.stack([way.products, way.scores, way.weights], 1),
    words,
    ["product", "/ √384", "weight"],
    title="“bank”, without parameters",
)
keep(
    schematic.head_step(way, "bank", words, "weights", letters),
    "w_bank.svg",
    "Eleven products, over the root of 384, become scores, then weights",
)

# %%
keep(
    schematic.head_step(way, "bank", words, "output", letters),
    "y_bank.svg",
    "Eleven weights times eleven rows, added up to y of bank",
)

# %% [markdown]
# Without trained matrices, all weights here are near 1/11. The article scales by the root of $d_{model}$. A model uses
# the root of a **single head's** width, here $\sqrt{32}$ and not $\sqrt{384}$. A cosine or a distance would measure
# similarity as well, but a dot product is cheaper, as [lesson 9](../lessons/9_contextual_embeddings.py) measures.
#
# ### 3.4 The same with matrices
#
# Computed for all words at once, attention is a box whose output has the size of $X$:
#
# $$ Y = A X, \qquad A = \mathrm{softmax}\left(\frac{X X^T}{\sqrt{d_{model}}}\right) $$

# %%
similarity = x @ x.T
weights = (similarity / x.shape[1] ** 0.5).softmax(-1)
y = weights @ x
torch.testing.assert_close(y, attention(x, x, x)[0])
torch.testing.assert_close(y[-1], way.context.float())
assert abs(river.attention[0].rule.scale - 32**-0.5) < 1e-15
figure = schematic.without_projections(
    x, similarity, weights, y, words, len(words) - 1, scaled="√384"
)
keep(
    figure,
    "without_projections.svg",
    "X goes into a box of scores, scaling and weights, Y comes out",
)

# %% [markdown]
# ### 3.5 Query, key and value
#
# So far nothing can be trained. Three matrices let each word ask (query), be found (key), and pass something on
# (value) with different numbers:
#
# $$ Q = X W_Q, \qquad K = X W_K, \qquad V = X W_V $$
#
# This is a head of the model's first layer, with trained matrices:

# %%
layer = river.attention[0]
query, key, value = layer.query[0, 0], layer.key[0, 0], river.values[0][0]
figure = schematic.head_block(
    river.input,
    (query, key, value),
    layer[0],
    layer[0] @ value,
    [token.text for token in river.tokens],
)
keep(
    figure,
    "query_key_value.svg",
    "X times three matrices; queries and keys make the weights, which mix "
    "the values",
)

# %% [markdown]
# Here is "bank" in this head. Every number is computed from the numbers before it:

# %%
way = head_steps(river, at, layer=0, head=0)
columns = torch.stack([way.products, way.scaled, way.weights], 1)
show_numbers(
    columns,
    [token.text for token in river.tokens],
    ["q · k", "/ √32", "weight"],
    title="“bank”, layer 0, head 0",
)
torch.testing.assert_close(
    way.weights.float(), river.attention[0][0, at], atol=1e-5, rtol=0
)

# %% [markdown]
# [`regard steps`](../commands/steps.md) prints such a table for any word, layer and head. [Lesson
# 4](../lessons/4_self_attention.py) has the steps without matrices, and [lesson
# 5](../lessons/5_queries_keys_values.py) with them.
#
# ### 3.6 A database that answers softly
#
# A database compares your query with its keys and returns the value of the key that fits.
# Attention does the same softly. If scores are far apart, it returns a single value. If they are close, it mixes the
# values.

# %%
keys, values = torch.eye(3), torch.tensor([[10.0], [20.0], [90.0]])
found = [
    regard.attend(keys[1:2], keys, values, scale=scale)
    for scale in (1, 10, 100)
]
show_numbers(
    torch.stack(
        [torch.cat([each.weights[0], each.output[0]]) for each in found]
    ),
    ["scores × 1", "scores × 10", "scores × 100"],
    ["key 1: 10", "key 2: 20", "key 3: 90", "returned"],
    title="a query for key 2",
)
assert found[-1].output.item() == 20.0

# %% [markdown]
# ### 3.7 Several heads
#
# In "I ate some of Bob's chocolate cake", "ate" needs who, whose and what. A single set of weights gives one mixture
# of them. Several heads give several mixtures. But the heads below don't read who, whose and what: lesson 6 tests the
# three, and none of them does.

# %%
keep(
    schematic.multi_head(tokens=14, d_model=384, heads=12, d_k=32, d_v=32),
    "multi_head.svg",
    "Twelve heads of MiniLM on fourteen tokens, joined by one more matrix",
)

# %% [markdown]
# For each of the three words, you see the head that gives it the largest weight (L0H2 is layer 0, head 2):

# %%
example = article["heads_example"]
eaten = model.trace(example["sentence"])
word, texts = eaten.word(example["word"])[0], [t.text for t in eaten.tokens]
figure = Figure(figsize=(10, 4), layout="constrained")
panels = figure.subplots(1, 3)
for target, axes in zip(example["should_attend_to"], panels, strict=True):
    wanted = list(eaten.word(target)[0].tokens)
    taken = torch.stack(
        [
            attention_from(each, word)[:, wanted].sum(1)
            for each in eaten.attention
        ]
    )
    layer, head = divmod(int(taken.argmax()), taken.shape[1])
    links(
        axes,
        eaten.attention[layer][head],
        texts,
        texts,
        title=f"ate → {target}: {taken.max():.2f} (L{layer}H{head})",
        followed=word.tokens,
    )
keep(
    figure,
    "ate.svg",
    "Lines from ate to what it attends to: the heads for I, Bob's and cake",
)

# %% [markdown]
# The article says that each head gets a chunk of the embedding. In fact the output of the projections is cut, and
# each head reads the whole token. [Lesson 6](../lessons/6_heads.py) measures this, and [`regard
# heads`](../commands/heads.md) shows where each head attends.
#
# ## 4 Embeddings of a pretrained model
#
# ### 4.1 Static and contextual embeddings from one model
#
# A pretrained model has both: its table has the static embeddings, and its last layer has the contextual embeddings.
#
# ### 4.2 The library
#
# The article uses the library transformers, and `regard.load` opens the same model folders.
#
# ### 4.3 The model
#
# The article uses DistilBERT and says that it is 40 % smaller than BERT and 60 % faster. You can check the size by
# counting the parameters. With random weights, 14 tokens and one CPU thread, we measured 27 ms, compared with 54 ms
# for BERT: half the layers take half the time. The 60 % were measured by the authors (Sanh et al. 2019).

# %%
with torch.device("meta"):  # sizes alone
    pair = DistilBertModel(DistilBertConfig()), BertModel(BertConfig())
small, large = (
    sum(part.numel() for part in each.parameters()) for each in pair
)
print(f"{small:,} against {large:,}: {1 - small / large:.0%} fewer")

# %% [markdown]
# ### 4.4 The two sentences
#
# They are the sentences of the sections above, about a river bank and about money from a bank.
#
# ### 4.5 Tokens
#
# MiniLM has BERT's vocabulary, like DistilBERT, so tokens and positions are the same as in the
# article:

# %%
figures = article["pretrained"]
texts = [token.text for token in river.tokens]
assert texts == figures["tokens_of_sentence_1"]
assert {*river.word("bank")[0].tokens, *money.word("bank")[0].tokens} == {at}
print("“bank” is token", at, "of both")

# %% [markdown]
# ### 4.6 Token embeddings
#
# The article prints 87 numbers of DistilBERT: the first five of "bank" before and after the layers, and the corners of
# the tensors they come from. To check them, set `REGARD_LESSON_MODEL` to the model's name or folder.


# %%
def corners(rows):
    """The first and last three rows and columns, as PyTorch prints a large
    tensor."""
    return torch.cat([rows[:3], rows[-3:]])[:, [0, 1, 2, -3, -2, -1]]


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
    print("without DistilBERT its 87 numbers are not checked")

# %% [markdown]
# ### 4.7 Contextual embeddings
#
# Here are the same five numbers in MiniLM. "bank" has one row in the table, and a different vector in each text:

# %%
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
# ### 4.8 Ids to tokens
#
# A trace has the id and the text of each token:

# %%
for part in (river.tokens[:7], river.tokens[7:]):
    print(*(f"{token.id} {token.text}" for token in part), sep=" · ")

# %% [markdown]
# ## 5 Conclusion
#
# "bank" entered as one row of a table and left with a different vector in each text. To continue, compute such
# vectors in three ways in [lesson 9 on contextual embeddings](../lessons/9_contextual_embeddings.py), or use [`regard
# see`](../commands/see.md) for any word and model.
