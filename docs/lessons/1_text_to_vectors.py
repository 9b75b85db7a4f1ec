# %% [markdown]
# # 1. From text to tokens to vectors
#
# If you translate "bank" into French without the other words, you may get it wrong. The bank of a river is *rive*,
# and a bank for money is *banque*. A model has to read the other words too, but it can only compute with numbers.
#
# On this page you turn a text into tokens, the tokens into ids and the ids into vectors. You will be able to say which
# numbers a model gets for your text, and why they don't yet settle the question of "bank". Every page of this course is
# a Python file that you can run and change.

# %%
from itertools import pairwise

import torch

import regard
from drawings import sheet, transformer
from drawings.code import Code
from drawings.kept import keep
from drawings.numbers import show_numbers
from drawings.printed import printed
from drawings.token_strip import token_strip
from regard import textbook
from regard.text import tokenizers
from regard.text.tiktoken import cl100k_base, cl100k_tokens

# %% [markdown]
# ## The whole process
#
# This plot shows every step for a text, with the numbers of a real model.

# %%
model = regard.load()
river, money = model.trace(
    [
        "Write a poem about a man fishing on a river bank.",
        "Write a poem about a man withdrawing money from a bank.",
    ]
)
words = river.tokens[1:-2]  # without [CLS], the full stop and [SEP]
embedded = [
    (trace.token_embeddings + trace.position_embeddings)[1:-2]
    for trace in (river, money)
]
# self-attention without parameters: softmax(X Xᵀ) X
mixed = [(x @ x.T).softmax(-1) @ x for x in embedded]
figure = transformer.embedding_process(
    [token.text for token in words],
    [token.id for token in words],
    river.token_embeddings[1:-2],
    30522,
    river.position_embeddings[1:-2],
    mixed[0],
)
assert torch.equal(embedded[0][-1], embedded[1][-1])
assert not torch.allclose(mixed[0][-1], mixed[1][-1], atol=0.01)
assert river.tokens[11].text == money.tokens[11].text == "bank"
shows = (
    "From text to output: tokens, ids, token embeddings plus positions (X), "
    "and the attention output y"
)
keep(figure, "overview.svg", shows)

# %% [markdown]
# 1. The tokenizer splits the text into **tokens**, and each token has a number, its **id** $t_i$.
# 2. Each id selects a row of a table $E$ of vectors, the **token embedding**.
# 3. The position of each token adds another vector $p_i$. The sums are the rows of $X$:
#
# $$ x_i = E[t_i] + p_i $$
#
# In $X$, "bank" has the same vector in both texts, because it is token 11 in both. Only **attention** mixes the
# words: in its output $y$, the two vectors of "bank" differ. Lesson 4 opens the blue box. For now, it is enough that
# it mixes the vectors.
#
# Some models multiply $E[t_i]$ by a constant before they add $p_i$, for example the first transformer and the
# textbook's `Decoder`. Lesson 3 explains why.

# %% [markdown]
# ## A dictionary of six words
#
# The simplest tokenizer drops commas and splits at spaces. It sorts the words, capitals first, and numbers them. This
# is the code of the [textbook](../api/textbook.md). A comment such as `(L,)` gives the shape of a tensor. The letters
# mean:
#
# | letter | size |
# |---|---|
# | L | number of tokens of a text |
# | M | numbers in a token's vector, also called `d_model` |
# | B | number of texts that are computed together |
# | S | number of tokens that can be attended to (lesson 4), often the same as L |
# | H | number of attention heads (lesson 6) |

# %%
Code(textbook.dictionary)

# %%
Code(textbook.ids)

# %%
article = printed("one sentence")  # its numbers, as they are printed there
sentence = article["sentence"]
print(sentence)
words = textbook.dictionary(sentence)
ids = textbook.ids(sentence, words)
for word, number in words.items():
    print(f"{number}  {word}")
print("the sentence:", ids.tolist())

assert words == article["vocabulary"]
assert ids.tolist() == article["ids"]

# %% [markdown]
# The dictionary only knows its own words. "Life is sweet" has a word without a number:

# %%
try:
    textbook.ids("Life is sweet", words)
    raise AssertionError("a word was found that is not there")
except KeyError as error:
    print(f"the dictionary has no {error}")

# %% [markdown]
# ## Byte pairs: a vocabulary for every word
#
# How can a vocabulary have a place for every word? Start with single characters. Find the pair that occurs most
# often, make it a token, and repeat (Sennrich et al. 2016). In the code, `counts` says how often each word occurs.


# %%
def most_common_pair(pieces, counts):
    """Find the two neighbouring pieces that occur together most often."""
    pairs = {}
    for word, parts in pieces.items():
        for pair in pairwise(parts):
            pairs[pair] = pairs.get(pair, 0) + counts[word]
    best = max(sorted(pairs), key=pairs.get)
    return best, pairs[best]


def merge(parts, pair):
    """Make one piece of the pair wherever it occurs."""
    for n in range(len(parts) - 2, -1, -1):
        if parts[n : n + 2] == [*pair]:
            parts[n : n + 2] = ["".join(pair)]


counts = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
pieces = {word: [*word] for word in counts}
for step in range(6):
    pair, count = most_common_pair(pieces, counts)
    for parts in pieces.values():
        merge(parts, pair)
    cut = "   ".join("·".join(parts) for parts in pieces.values())
    print(f"{step + 1}. {pair[0]} + {pair[1]}, {count} times:   {cut}")
assert pieces["low"] == ["low"]
assert pieces["lower"] == ["low", "e", "r"]
assert pieces["widest"][-1] == "est"

# %% [markdown]
# The common word "low" is now a single token. "lower" is rarer and stays in pieces. A new word made of these letters,
# such as "lowest", can be split as well. If you start from bytes instead of letters, no text is unknown.
#
# Several OpenAI models use `cl100k_base`, which was learned in this way from bytes and has 100,277 entries. A space
# is part of the word that follows it. The merges are listed in the order in which they were learned (their ranks), in
# a file of 1.7 MB. Run `regard fetch cl100k_base` to get this file. Without the file, OpenAI's library tiktoken tries
# to download it. If it can't, this page prints a note and continues with the published ids.

# %%
formula = printed("formula")
question, published = (
    formula["question"],
    dict(zip(formula["tokens"], formula["token_ids"], strict=True)),
)
try:
    tokens = cl100k_tokens(question, cl100k_base())
    assert [(token.text, token.id) for token in tokens] == list(
        published.items()
    )
except regard.RegardError as error:
    print(
        "cl100k_base: NOT CHECKED HERE, going on from the published ids: "
        f"{error}"
    )
    tokens = [
        regard.text.tokens.Token(number, part, 0, 0, None, False)
        for part, number in published.items()
    ]
print(len(tokens), "tokens:", *(token.id for token in tokens))
assert len(tokens) == 7
figure, axes = sheet.sheet(4.5, 0.8)
token_strip(axes, tokens)
keep(
    figure,
    "cl100k_base.svg",
    "What is the capital of France? in seven tokens; a dot is a blank",
)

# %% [markdown]
# ## The tokenizer of a model, and special tokens
#
# These pages use all-MiniLM-L6-v2, a small BERT. Its vocabulary has 30,522 entries.

# %%
rare = model.trace("Write a poem about microfinance.")
for number, token in enumerate(rare.tokens):
    print(
        f"{number:2}  {token.text:8} {token.id:6}  characters {token.start} "
        f"to {token.end}"
    )
assert [token.text for token in river.tokens][11] == "bank"
assert [token.text for token in rare.tokens][5:8] == [
    "micro",
    "##fin",
    "##ance",
]
assert len(river.tokens) == 14

# %% [markdown]
# This tokenizer is **WordPiece** (Wu et al. 2016), which also learns pieces from counts. "microfinance" takes three
# tokens, and `##` marks a piece that continues a word. `[CLS]` and `[SEP]` are special tokens, which aren't part of
# the sentence. The model was trained with these tokens at both ends, so every text gets them:

# %%
figure, axes = sheet.sheet(8.5, 0.8)
token_strip(axes, river.tokens)
keep(
    figure,
    "minilm_tokens.svg",
    "The sentence of the river bank in fourteen tokens, between [CLS] and "
    "[SEP]",
)

# %% [markdown]
# ## Padding and context length
#
# To process several texts together, put their ids into a table with a row for each text. Short texts are padded to
# the length of the longest. A **mask** marks the real tokens with 1, and the model ignores the padding (lesson 4
# shows how).

# %%
texts = [river.text, "Money from a bank"]
small = tokenizers.words(texts, lower=True)
batch = tokenizers.batch(small, texts)
print(batch.ids.tolist())
print(batch.mask.int().tolist())
assert batch.ids.shape == batch.mask.shape == (2, 12)
assert batch.mask.sum(1).tolist() == [12, 4]

# %% [markdown]
# A model has positions for a fixed number of tokens, its **context length**. GPT-3 had 2,048 (Brown et al. 2020),
# GPT-4 Turbo 128,000 (OpenAI 2023), and Llama 3.1 has 131,072 (Grattafiori et al. 2024). Here it is 512. Some
# libraries cut longer texts silently, but regard raises an error:

# %%
try:
    model.trace("bank " * 600)
    raise AssertionError("a text was cut")
except regard.RegardError as error:
    print(error)

# %% [markdown]
# ## From ids to vectors
#
# The embedding is a table with a row for each entry of the vocabulary. Here it is 6 × 16 and random, as in an
# untrained model. You look up an id by taking its row, as `torch.nn.Embedding` does. Training changes the rows.


# %%
def look_up(table, ids):
    """Take the row of each id: (entries, M), (L,) → (L, M)."""
    return table[ids]


torch.manual_seed(123)
embedding = torch.nn.Embedding(6, 16)
x = look_up(embedding.weight, ids).detach()  # (6, 16): L tokens, M = 16
names = sentence.replace(",", "").split()
show_numbers(x, names, title="The embedded sentence, 6 × 16", digits=2)

assert torch.equal(x, embedding(ids))
expected = torch.tensor(article["embedding"]["values"])
torch.testing.assert_close(x, expected, atol=5.1e-5, rtol=0)

# %% [markdown]
# These 96 numbers equal those of the article "Understanding and Coding the Self-Attention Mechanism of Large Language
# Models From Scratch", which uses the same sentence.
#
# ## A look-up equals a matrix product
#
# Write an id as a **one-hot** vector $o$, with 1 at the id and 0 elsewhere. Then the product with the table is the row:
#
# $$ x = o \cdot E $$

# %%
learned = model.model.get_input_embeddings().weight.detach()
bank = river.tokens[11].id
one_hot = torch.nn.functional.one_hot(torch.tensor(bank), len(learned)).float()
torch.testing.assert_close(one_hot @ learned, learned[bank])
assert torch.equal(learned[bank], river.token_embeddings[11])
parameters = sum(parameter.numel() for parameter in model.model.parameters())
print(
    f"{tuple(learned.shape)}: {learned.numel():,} of the model's "
    f"{parameters:,} numbers are this table"
)
assert learned.shape == (30522, 384)

# %% [markdown]
# About half of MiniLM's numbers are this table. Its row for "bank" is the same in every sentence. The next page shows
# where such rows come from, and why "bank" needs more than a single row: [2. Words before
# context](2_words_before_context.py).

# %% [markdown]
# ## Exercises
#
# The cells below don't need the cells above. Replace `...` by your answer and run the cell, or run `regard lesson 1
# --exercises`.

# %%
import torch

import regard
from drawings.exercise import Exercise
from regard.text import tokenizers

model = regard.load()

# %% [markdown]
# **1. Hide the bank.** The ids of a word say nothing about its letters. Find a word that begins with "bank" but has no
# token `bank`.

# %%
answer = ...  # a word


def check(word):
    tokens = [token.text for token in model.trace(word).tokens[1:-1]]
    right = word.isalpha() and word.startswith("bank") and "bank" not in tokens
    reason = ", and an id doesn't show any letters" if right else ""
    return right, f"{word} is {' · '.join(tokens)}{reason}"


Exercise(check, answer)

# %% [markdown]
# **2. Between two words.** A one-hot vector selects one row of the table. Choose six numbers $o$ such that $o \cdot
# E$ is the point halfway between the vectors of id 0 and id 1. Attention will choose such numbers for you. Type a
# list such as `[1, 0, 0, 0, 0, 0]`.

# %%
answer = ...  # a list of six numbers
table = torch.nn.Embedding(6, 16).weight.detach()


def check(o):
    halfway = (table[0] + table[1]) / 2
    off = (torch.tensor(o).float() @ table - halfway).norm()
    said = f"o E is {off:.2f} away from the point halfway"
    reason = ": half of one row plus half of the other" if off < 1e-5 else ""
    return off < 1e-5, said + reason


Exercise(check, answer)

# %% [markdown]
# **3. Design a vocabulary.** A tokenizer learns four byte pairs from your words and then splits "banker". Choose
# words that make it two tokens, `bank` and `er`. None of your words may contain "banker".

# %%
answer = ...  # a list of words; repeat a word to make it common


def check(words):
    learned = tokenizers.byte_pairs(words, size=256 + 1 + 4)
    parts = learned.tokenize("banker")
    right = parts == ["bank", "er"] and not any("banker" in w for w in words)
    reason = ": its pairs were the most common in your words" if right else ""
    return right, f"banker is {' · '.join(parts)}{reason}"


Exercise(check, answer)
